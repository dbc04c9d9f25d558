"""Define a kept conversation, its turns as text, and the words that searches compare.

`parseQuery` and `parse_query` are the words parse and query, and also the one word parsequery. Accents and case
are ignored; scripts without blanks count letter by letter. The results are the same with SQLite's index and
without it, because both are given these words.

A turn's body is JSON that this file reads as it comes: nothing of it is taken for granted. Pictures are named and never
given, and what a model thought is left out.
"""

import math
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import msgspec


class ThreadFound(NamedTuple):
    """One conversation that a search has found."""

    id: str
    title: str
    when: str
    """When it last went on: local time, to the minute."""
    turns: int
    """Of both sides, with those that hold only results of calls."""
    excerpt: str = ""
    """A line of it with what was looked for."""
    files: tuple[str, ...] = ()
    more_files: int = 0
    """How many more it touched."""
    workspace: str = ""
    """Its folder, where that is not the session's own."""


class ThreadsFound(NamedTuple):
    """Conversations that a search has found, the best first."""

    query: str
    found: tuple[ThreadFound, ...]
    total: int
    """How many there are in all."""


class ThreadRead(NamedTuple):
    """A conversation as text, or the part of it that serves a goal."""

    id: str
    title: str
    when: str
    workspace: str
    model: str
    text: str
    messages: int
    """How many it has."""
    left_out: str = ""
    """The numbers of those that are not in the text."""


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


_LINE_CHARS = 160
_CUT_CHARS = 4_000
_NAMED_CUT_CHARS = 20_000
_GAP_CHARS = 50
"""With the line about what is missing beside a message."""
_BYTES_A_CHAR = 2.4
_GOAL_CHARS = 2_000
_GOAL_WORDS = 64
_NUMBERS = r"#?[0-9]{1,9}(?:\s*(?:-|to)\s*#?[0-9]{1,9})?"
_NAMED = rf"\b(?:messages?|turns?)\s+({_NUMBERS}(?:\s*(?:,|;|&|and)\s*(?:and\s+)?{_NUMBERS})*)"
_FIRST_LAST = r"([0-9]+)(?:\s*(?:-|to)\s*#?([0-9]+))?"
_BESIDE = "give show read bring get me the and please of this thread from left out what was in only just"
"""Words that say nothing beside the numbers of messages."""
_MOST_NAMED = 10_000
_REWINDS = frozenset({"rewound", "unrewound"})

_SHORTENED = re.compile(r"\[(?:Tool result truncated:|output truncated:|truncated) \d+")
"""What stands where a result was shortened: its lines are not those that there were."""
_FILES = {"image": "a picture", "document": "a document"}


class ThreadCall(NamedTuple):
    """A call, and what came of it."""

    name: str
    given: str
    """Its input, as JSON."""
    result: str | None = None
    """None where it has none."""
    failed: bool = False


class Message(NamedTuple):
    """What one side said at once."""

    number: int
    """Its place among the messages, from 1; the results of calls stand with the calls."""
    speaker: str
    text: str
    calls: tuple[ThreadCall, ...] = ()
    at: float = 0.0


class Selected(NamedTuple):
    """A part of a thread."""

    text: str
    shown: int
    total: int
    left_out: str = ""
    """The numbers of the messages that are not in it."""


def messages(items: Iterable[Item]) -> list[Message]:
    """The messages of a thread, without the system's."""
    items = list(items)
    results = {key: result for item in items if item.kind == "turn" for key, result in _results(item)}
    found: list[Message] = []
    for item in items:
        if item.kind in _REWINDS:
            message = Message(0, "rewind", _rewind(item), at=item.at)
        elif item.kind != "turn":
            message = Message(0, "summary", _summary(item), at=item.at)
        else:
            parts = _parts(item)
            text = "\n\n".join(said for part in parts if (said := _render_part(part)))
            calls = tuple(_build_call(part, results) for part in parts if _is_call(part))
            message = Message(0, item.role or "?", text, calls, item.at)
        if message.speaker != "system" and (message.text or message.calls):
            found.append(message._replace(number=len(found) + 1))
    return found


def _summary(item: Item) -> str:
    """Of an earlier part, where the conversation was made smaller; whatever else is kept is nothing to read."""
    return item.text.strip() if item.kind == "compacted" else ""


def _rewind(item: Item) -> str:
    if item.kind == "unrewound":
        return "The last rewind was taken back: what it had left is said again."
    try:
        step = msgspec.json.decode(item.body)
    except (msgspec.DecodeError, RecursionError):
        return ""
    number = step.get("prompt") if isinstance(step, dict) else None
    if not isinstance(number, int):
        return ""
    return f"The conversation went back to before prompt {number}: what was said from there on is said no more."


def _parts(item: Item) -> list[Mapping[str, Any]]:
    try:
        body = msgspec.json.decode(item.body)
    except (msgspec.DecodeError, RecursionError):
        return [{"type": "text", "text": "[This message could not be read.]"}]
    parts = body.get("parts") if isinstance(body, dict) else None
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _render_part(part: Mapping[str, Any]) -> str:
    if part.get("type") == "text":
        text = part.get("text")
        return text.strip() if isinstance(text, str) else ""
    if part.get("type") not in _FILES:
        return ""
    about = (part.get("title"), part.get("media_type"))
    known = ", ".join((_FILES[part["type"]], *(one[:80] for one in about if isinstance(one, str) and one)))
    text = part.get("text")
    return f"[{known}]\n{text}".strip() if isinstance(text, str) else f"[{known}]"


def _results(item: Item) -> Iterator[tuple[str, tuple[str, bool]]]:
    for part in _parts(item):
        if part.get("type") == "result" and isinstance(part.get("id"), str):
            inner = part.get("parts")
            texts = [_render_part(one) for one in inner if isinstance(one, dict)] if isinstance(inner, list) else []
            yield part["id"], ("\n".join(filter(None, texts)), part.get("failed") is True)


def _is_call(part: Mapping[str, Any]) -> bool:
    return part.get("type") == "use" and isinstance(part.get("name"), str)


def _build_call(part: Mapping[str, Any], results: Mapping[str, tuple[str, bool]]) -> ThreadCall:
    given = part.get("input")
    text = given if isinstance(given, str) else msgspec.json.encode(given).decode()
    key = part.get("id")
    result, failed = results.get(key, (None, False)) if isinstance(key, str) else (None, False)
    return ThreadCall(part["name"], text, result, failed)


def render(message: Message, *, full: bool = False) -> str:
    """A message as text; `full` gives the calls with all that they came back with."""
    head = f"[{message.number}] {message.speaker.capitalize()}:"
    body = [message.text] if message.text else []
    calls = "\n".join(_whole_line(call) if full else _line(call) for call in message.calls)
    return "\n".join([head, *body, *([calls] if calls else [])])


def _line(call: ThreadCall) -> str:
    """A call and its outcome."""
    if call.result is None:
        outcome = "no result"
    else:
        lines = call.result.strip().split("\n")
        outcome = _short(lines[0]) or "nothing"
        if _SHORTENED.search(call.result):
            outcome += " (and more, shortened)"
        elif len(lines) > 1:
            outcome += f" (and {len(lines) - 1:,} more line{'s' if len(lines) > 2 else ''})"
    return f"- {_short(f'{call.name} {call.given}')} → {'failed: ' if call.failed else ''}{outcome}"


def _whole_line(call: ThreadCall) -> str:
    result = "no result" if call.result is None else call.result.strip() or "nothing"
    inside = "\n".join(f"    {line}" for line in result.split("\n"))
    return f"- {call.name} {call.given} →{' failed:' if call.failed else ''}\n{inside}"


def _short(text: str) -> str:
    line = " ".join(text[: 2 * _LINE_CHARS].split())
    return line if len(line) <= _LINE_CHARS and len(text) <= 2 * _LINE_CHARS else line[: _LINE_CHARS - 1] + "…"


def _cut(text: str, limit_chars: int) -> str:
    """The beginning and the end of a long text."""
    if len(text) <= limit_chars:
        return text
    head, tail = limit_chars * 3 // 4, limit_chars // 4
    gone = len(text) - head - tail
    return f"{text[:head].rstrip()}\n[… {gone:,} characters left out …]\n{text[-tail:].lstrip()}"


def select(said: Sequence[Message], goal: str, *, limit_chars: int) -> Selected:
    """All of a thread where it fits; else its beginning, its end, and what shares most words with the goal.

    Messages that the goal names, as `messages 4-6, 9`, come first; a goal that says nothing else brings no others.
    """
    asked = _parse_numbers(goal)
    texts = [_cut(render(one), _NAMED_CUT_CHARS if one.number in asked else _CUT_CHARS) for one in said]
    costs = [_cost(text) + _GAP_CHARS for text in texts]
    kept = set(range(len(texts)))
    if sum(costs) > limit_chars:
        kept.clear()
        room = limit_chars
        alone = _names_only(goal) and any(one.number in asked for one in said)
        for at in _order(said, texts, goal, asked):
            if costs[at] <= room and not (alone and said[at].number not in asked):
                kept.add(at)
                room -= costs[at]
    return _join_kept(texts, kept)


def _cost(text: str) -> int:
    """Its characters; more for scripts that take three bytes for one, because what a model gets is bound in bytes."""
    return max(len(text), int(len(text.encode("utf-8", "replace")) / _BYTES_A_CHAR))


def _parse_numbers(goal: str) -> set[int]:
    asked: set[int] = set()
    for named in re.findall(_NAMED, goal[:_GOAL_CHARS], re.IGNORECASE):
        for first, last in re.findall(_FIRST_LAST, named, re.IGNORECASE):
            begin = int(first)
            asked |= set(range(begin, min(int(last or first), begin + _MOST_NAMED) + 1))
    return asked


def _names_only(goal: str) -> bool:
    """Does the goal say nothing but which messages?"""
    rest = re.sub(_NAMED, " ", goal[:_GOAL_CHARS], flags=re.IGNORECASE)
    return not set(re.findall(r"\w+", rest.lower())) - set(_BESIDE.split())


def _order(said: Sequence[Message], texts: Sequence[str], goal: str, asked: set[int]) -> list[int]:
    """The places of the messages, those that matter most first."""
    sought = [(form, True) for word in goal[:_GOAL_CHARS].split()[:_GOAL_WORDS] for form in phrases(word)]
    scores = rank_texts([count_phrases(text, sought) for text in texts])
    first = next((at for at, one in enumerate(said) if one.speaker == "user"), -1)
    last = next((at for at in reversed(range(len(said))) if said[at].speaker == "assistant" and said[at].text), -1)
    return sorted(
        range(len(said)),
        key=lambda at: (said[at].number not in asked, at not in (first, last), -scores[at], -at),
    )


def _join_kept(texts: Sequence[str], kept: set[int]) -> Selected:
    """What is kept, in its order, with a line wherever something is missing."""
    blocks: list[str] = []
    gaps: list[str] = []
    at = 0
    while at < len(texts):
        if at in kept:
            blocks.append(texts[at])
            at += 1
            continue
        begin = at
        while at < len(texts) and at not in kept:
            at += 1
        gaps.append(str(at) if at == begin + 1 else f"{begin + 1}-{at}")
        blocks.append(f"[… message{'' if at == begin + 1 else 's'} {gaps[-1]} left out …]")
    return Selected("\n\n".join(blocks), len(kept), len(texts), ", ".join(gaps))
