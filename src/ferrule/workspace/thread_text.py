"""The words of a text as searches see them, how well they fit a question, and the part of a text that shows it.

`parseQuery` and `parse_query` are the words parse and query, and besides the one word parsequery. Letters count without
their marks and their case; scripts that write no blanks count letter by letter. What is found is the same with SQLite's
index and without it, because both are given these words.
"""

import math
import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

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


class Words(NamedTuple):
    """A text for a search."""

    plain: list[str]
    joined: list[str]
    """Names of several words, each as one."""


def words(text: str) -> Words:
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
    return Words(plain, joined)


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


class Counted(NamedTuple):
    """A text, as its rank needs it."""

    size: int
    """How many words it has."""
    times: tuple[int, ...]
    """How often each of the phrases is in it."""


def counted(text: str, sought: Iterable[tuple[Phrase, bool]]) -> Counted:
    """How often each phrase is in the text; the last word of one that is true may go on."""
    found = words(text)
    columns = [f" {' '.join(column)} " for column in found]
    wanted = (f" {' '.join(phrase)}" + ("" if prefix else " ") for phrase, prefix in sought)
    times = tuple(sum(_count(column, one) for column in columns) for one in wanted)
    return Counted(len(found.plain) + len(found.joined), times)


def _count(column: str, wanted: str) -> int:
    """Also where two share a blank, or words."""
    times, at = 0, column.find(wanted)
    while at >= 0:
        times, at = times + 1, column.find(wanted, at + 1)
    return times


def ranked(texts: Sequence[Counted]) -> list[float]:
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
