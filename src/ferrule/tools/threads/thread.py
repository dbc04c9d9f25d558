"""Define a kept conversation, the search results about it, and the words that searches compare.

`parseQuery` and `parse_query` are the words parse and query, and also the one word parsequery. Accents and case
are ignored; scripts without blanks count letter by letter. The results are the same with SQLite's index and
without it, because both are given these words.
"""

import math
import re
import time
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

TITLE = "title"
"""The kind of an item that gives its thread another title: `{"title": …, "by": "user" or "model"}`."""
PROMPT = "prompt"
"""The kind of an item that is the number of a prompt; the turn behind it is the prompt."""
WRITTEN = "written"
"""The kind of an item that is what the user wrote: a prompt may hold more, from a program or a hook."""
SAID_CHARS = 300
"""So much of the last words is kept for lists."""
_ADDRESSED = r"[Tt]-([0-9a-fA-F-]+)|([0-9a-fA-F][0-9a-fA-F-]*)"


class Item(NamedTuple):
    """One thing of a conversation, in its place."""

    kind: str
    """`turn`, or whatever else the loop keeps; the store looks into none of them."""
    role: str
    """`user`, `assistant`, `system` or nothing."""
    body: bytes
    """JSON."""
    text: str = ""
    """What searches find."""
    files: tuple[str, ...] = ()
    """Paths that it touched; a thread that is loaded has them together."""
    at: float = 0.0
    """When it was kept."""
    said: str = ""
    """The beginning of what the user or the model said with it, for lists; it is not kept with the item."""


class ThreadMetadata(NamedTuple):
    """What is known of a thread without its items."""

    id: str
    workspace: str
    repo: str = ""
    model: str = ""
    dialect: str = ""
    parent: str = ""
    """The thread whose subagent had this one."""
    title: str = ""
    created: float = 0.0
    updated: float = 0.0
    turns: int = 0
    """Messages of either side."""
    items: int = 0
    branch: str = ""
    """The git branch of its last prompt; empty for a thread of before this was kept."""
    prompts: int = 0
    """What the user has said; also what was rewound since."""
    answers: int = 0
    """Of the model: one for each time that it was asked."""
    titled_by: str = ""
    """`user`, `model`, or nothing for the first words of the thread."""
    last_prompt: str = ""
    last_answer: str = ""

    @property
    def size(self) -> str:
        """How long it is, in words."""
        return f"{count_noun(self.prompts, 'prompt')}, {count_noun(self.answers, 'answer')}"

    def facts(self) -> dict[str, object]:
        """All of it by name, as JSON has it. What a turn is elsewhere is an answer, so turns are `messages` here."""
        return {("messages" if name == "turns" else name): value for name, value in self._asdict().items()}


class Thread(NamedTuple):
    """A whole thread."""

    about: ThreadMetadata
    items: tuple[Item, ...] = ()
    files: tuple[str, ...] = ()
    skipped: int = 0
    """Items at its end that could not be read and are left out."""


class ThreadFinding(NamedTuple):
    """A thread that a search has found."""

    about: ThreadMetadata
    excerpt: str = ""
    """One line of it, with what was looked for."""
    files: tuple[str, ...] = ()
    """Some of the paths that it touched, those that were looked for first."""
    more_files: int = 0


class Findings(NamedTuple):
    """What a search has found, the best first."""

    found: tuple[ThreadFinding, ...] = ()
    total: int = 0
    """How many there are; more than were asked for are counted only."""
    notes: tuple[str, ...] = ()
    """Sentences about what of the query was left out."""


def count_noun(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def parse_thread_id(name: str) -> str:
    """The id, or the beginning of one, in `T-…`, `@T-…`, an address that ends with it, or without its T; else empty."""
    text = name.strip().removeprefix("@")
    if "/" in text:
        text = re.split("[?#]", text, maxsplit=1)[0].rstrip("/").rpartition("/")[2]
    found = re.fullmatch(_ADDRESSED, text)
    return f"T-{(found[1] or found[2]).lower()}" if found is not None else ""


def bindable(text: str) -> str:
    """SQLite takes no half of a surrogate pair in its texts."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def when(at: float) -> str:
    """A moment of a thread, to the minute."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


Phrase = tuple[str, ...]
"""Words that follow one another."""

INDEXED_CHARS = 100_000
"""Of one item; what is behind is kept, and not found."""
_WORD_CHARS = 64
_UNSPACED = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_CAMEL = r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])"
_ASCII_WORD = "[a-z0-9]+"
_WORD = f"[{_UNSPACED}]|(?:(?![{_UNSPACED}])[^\\W_])+"
_CHUNK = r"\w+"
_compiled = cache(re.compile)
"""On first use: most sessions search for nothing."""

_SATURATION = 1.2
_BY_LENGTH = 0.75
_LEAST_RARITY = 1e-6
"""As SQLite's own ranking has them."""
_AROUND_CHARS = 80


class SearchText(NamedTuple):
    """A text for a search."""

    plain: list[str]
    joined: list[str]
    """Names of several words, each as one."""


def words(text: str) -> SearchText:
    """The words of a text, in their order."""
    bare = _bare(text[:INDEXED_CHARS])
    plain = _split(bare)
    joined = []
    for chunk in _compiled(_CHUNK).findall(bare):
        if chunk.islower() and "_" not in chunk:
            continue
        whole = chunk.replace("_", "").casefold()[:_WORD_CHARS]
        if whole and ("_" in chunk.strip("_") or _compiled(_CAMEL).search(chunk)):
            joined.append(whole)
    return SearchText(plain, joined)


def phrases(text: str) -> tuple[Phrase, ...]:
    """What a word of a query may stand for in a text: its parts in a row, or all of it as one word."""
    parts = tuple(_split(_bare(text)))
    if not parts:
        return ()
    whole = "".join(parts)[:_WORD_CHARS]
    return (parts,) if len(parts) == 1 else (parts, (whole,))


def _bare(text: str) -> str:
    """Letters without their marks, in their case."""
    if text.isascii():
        return text
    import unicodedata  # plain ASCII, which most texts are, needs none of its tables

    return "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))


def _split(bare: str) -> list[str]:
    low = _compiled(_CAMEL).sub(" ", bare).casefold()
    return [word[:_WORD_CHARS] for word in _compiled(_ASCII_WORD if low.isascii() else _WORD).findall(low)]


class PhraseCounts(NamedTuple):
    """A text, as its rank needs it."""

    size: int
    """How many words it has."""
    times: tuple[int, ...]
    """How often each of the phrases is in it."""


def count_phrases(text: str, sought: Iterable[tuple[Phrase, bool]]) -> PhraseCounts:
    """How often each phrase is in the text; the last word of one that is true may go on."""
    found = words(text)
    columns = [f" {' '.join(column)} " for column in found]
    wanted = (f" {' '.join(phrase)}" + ("" if prefix else " ") for phrase, prefix in sought)
    times = tuple(sum(_count(column, one) for column in columns) for one in wanted)
    return PhraseCounts(len(found.plain) + len(found.joined), times)


def _count(column: str, wanted: str) -> int:
    """Also where two share a blank, or words."""
    times, at = 0, column.find(wanted)
    while at >= 0:
        times, at = times + 1, column.find(wanted, at + 1)
    return times


def rank_texts(texts: Sequence[PhraseCounts]) -> list[float]:
    """How well each text fits, by BM25: higher is better, 0 where nothing is found."""
    usual = sum(one.size for one in texts) / len(texts) if texts else 1.0
    sums = [0.0] * len(texts)
    for phrase in range(len(texts[0].times) if texts else 0):
        found = [(at, one.times[phrase]) for at, one in enumerate(texts) if one.times[phrase]]
        share = (len(texts) - len(found) + 0.5) / (len(found) + 0.5)
        rarity = max(math.log(share), _LEAST_RARITY)
        for at, times in found:
            damped = _SATURATION * (1 - _BY_LENGTH + _BY_LENGTH * texts[at].size / (usual or 1.0))
            sums[at] += rarity * times * (_SATURATION + 1) / (times + damped)
    return sums


def excerpt(text: str, wanted: Iterable[Phrase]) -> str:
    """One line of the text around the first thing in it that was looked for; its beginning where that is not seen."""
    text = text[:INDEXED_CHARS]
    begin, end = 0, 0
    for phrase in wanted:
        # At most a few signs between the words: more would take long on a hostile text.
        sought = r"[\W_]{0,8}".join(map(re.escape, phrase))
        found = re.search(sought, text, re.IGNORECASE)
        if found is not None:
            begin, end = found.span()
            break
    start, stop = max(0, begin - _AROUND_CHARS), min(len(text), max(end, begin + _AROUND_CHARS) + _AROUND_CHARS)
    shown = " ".join(text[start:stop].split())
    return ("…" if start else "") + shown + ("…" if stop < len(text) else "")
