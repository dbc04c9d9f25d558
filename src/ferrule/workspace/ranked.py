"""A ranked index of texts: BM25 over the names, paths and comments of code, in pieces of a few screens each."""

import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ferrule.workspace.identifiers import NAME, asked, terms

PIECE_LINES = 160
"""A longer file is several pieces: what is about one thing must not drown in what is not."""
_SATURATION = 5.0
_BY_LENGTH = 0.6
_COVERED = 0.4
_FILE_NAME = 14
_FOLDER = 4
_DEFINED = 3
_TOLD = 3
_FIRST = 12
"""How often a word counts: in a file's name, in the name of a folder, where something of that name is defined, in a
comment, and in the sentence that a file begins with, each beside the once that it counts anywhere. Whole numbers: of
the small ones there is one each, however many places hold it."""

_DEFINES = re.compile(
    r"^[ \t]*(?:(?:export|default|pub|public|private|protected|static|final|abstract|async|unsafe|inline)[ \t]+)*"
    r"(?:def|class|function|func|fn|struct|interface|type|trait|enum|impl|module|namespace|sub|const|let|var)[ \t]+"
    r"(?:\([^)\n]{0,80}\)[ \t]*)?(\w+)",
    re.MULTILINE,
)
_TELLS = re.compile(
    r'"""(.{1,2000}?)"""|(?:^|[ \t])(?:#|//+|\*|--)[ \t]+([^\n]+)|/\*(.{1,2000}?)\*/', re.DOTALL | re.MULTILINE
)
_TEST_PATH = re.compile(
    r"(?:^|/)(?:tests?|specs?|__tests__|bench|benchmarks?|examples?|fixtures?|golden|testdata)(?:/|$)|(?:^|/)test_|_test\.|\.(?:test|spec)\."
)
_VENDORED = re.compile(r"(?:^|/)(?:node_modules|_?vendor(?:ed)?|third_?party|site-packages)/")
DATA = (".json", ".jsonl", ".lock", ".csv", ".tsv", ".svg", ".txt", ".xml", ".snap", ".map", ".sum", ".log")
_PROSE = (".md", ".rst", ".adoc", ".html")
_STUB = (".pyi", ".d.ts")
_LESS_TEST, _LESS_DATA, _LESS_PROSE, _LESS_VENDORED, _LESS_STUB = 0.45, 0.4, 0.6, 0.6, 0.7
_SENTENCES = ('"""', "'''", "#", "//", "/*", "<!--", "--", "=")
_ENTRY_NAMES = frozenset({"__init__", "index", "mod", "main"})


class Match(NamedTuple):
    """A piece of a file that fits a question."""

    path: str
    first: int
    last: int
    score: float


class _Piece(NamedTuple):
    path: str
    first: int
    last: int
    length: int
    terms: tuple[str, ...]


class Ranked:
    """Texts by path, and which of them fit a question. It knows nothing of files."""

    def __init__(self) -> None:
        self._pieces: dict[int, _Piece] = {}
        self._of: dict[str, tuple[int, ...]] = {}
        self._holding: dict[str, dict[int, int]] = {}
        self._total = 0
        self._next = 0

    def __len__(self) -> int:
        return len(self._of)

    def __contains__(self, path: str) -> bool:
        return path in self._of

    def put(self, path: str, text: str) -> None:
        """Have a text under a path, in the place of the one that was there."""
        self.drop(path)
        named = _path_terms(path)
        numbers = []
        for first, last, piece in _pieces(text):
            counts = _counted(piece, is_first=first == 1)
            for term, weight in named.items():
                counts[term] = counts.get(term, 0) + weight
            length = sum(counts.values())
            self._total += length
            self._pieces[self._next] = _Piece(path, first, last, length, tuple(counts))
            for term, weight in counts.items():
                self._holding.setdefault(term, {})[self._next] = weight
            numbers.append(self._next)
            self._next += 1
        self._of[path] = tuple(numbers)

    def drop(self, path: str) -> None:
        for number in self._of.pop(path, ()):
            piece = self._pieces.pop(number)
            self._total -= piece.length
            for term in piece.terms:
                holding = self._holding[term]
                del holding[number]
                if not holding:
                    del self._holding[term]

    def search(self, query: str, most: int = 10) -> list[Match]:
        """The best piece of each of the best files, the best first."""
        wanted = self.weights(query)
        if not wanted:
            return []
        usual = self._total / len(self._pieces)
        sums: dict[int, float] = {}
        covered: dict[int, float] = {}
        for term, weight in wanted.items():
            for number, times in self._holding[term].items():
                damped = _SATURATION * (1 - _BY_LENGTH + _BY_LENGTH * self._pieces[number].length / usual)
                sums[number] = sums.get(number, 0.0) + weight * times * (_SATURATION + 1) / (times + damped)
                covered[number] = covered.get(number, 0.0) + weight
        every = sum(wanted.values())
        about_tests = any(term in wanted for term in ("test", "spec"))
        best: dict[str, Match] = {}
        for number, found in sums.items():
            piece = self._pieces[number]
            score = (
                found
                * (1 - _COVERED + _COVERED * covered[number] / every)
                * _standing(piece.path, about_tests=about_tests)
            )
            before = best.get(piece.path)
            if before is None or score > before.score:
                best[piece.path] = Match(piece.path, piece.first, piece.last, score)
        return sorted(best.values(), key=lambda match: (-match.score, match.path))[:most]

    def weights(self, query: str) -> dict[str, float]:
        """The terms of a question that are anywhere, each with how much it says: what is rare says more."""
        count = len(self._pieces)
        return {
            term: weight * math.log(1 + (count - len(holding) + 0.5) / (len(holding) + 0.5))
            for term, weight in asked(query).items()
            if (holding := self._holding.get(term))
        }


class Region(NamedTuple):
    """Some lines of a text, the numbers from 1, and the one that says most."""

    first: int
    last: int
    line: str


def region(lines: Sequence[str], weights: Mapping[str, float], *, start: int = 1, span: int = 12) -> Region:
    """Where in the lines of a piece, which begins at the number `start`, the terms stand closest together."""
    said = [{term for name in NAME.findall(line) for term in terms(name) if term in weights} for line in lines]
    worth = [
        sum(weights[term] for term in found) * (1.5 if _DEFINES.match(line) else 1.0)
        for found, line in zip(said, lines, strict=True)
    ]
    best, at = -1.0, 0
    for first in range(len(lines)):
        if not said[first]:
            continue
        inside = range(first, min(first + span, len(lines)))
        together = sum(weights[term] for term in set().union(*(said[one] for one in inside)))
        value = together + 0.15 * sum(worth[one] for one in inside)
        if value > best:
            best, at = value, first
    inside = range(at, min(at + span, len(lines)))
    if not inside:
        return Region(start, start, "")
    last = max((one for one in inside if said[one]), default=at)
    shown = max(range(at, last + 1), key=lambda one: (worth[one], -one))
    return Region(start + at, start + last, lines[shown].strip())


def _pieces(text: str) -> Iterator[tuple[int, int, str]]:
    """The numbers of its first and last line, and the text, of each piece; cut where something new begins."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        end = min(at + PIECE_LINES, len(lines))
        if end < len(lines):
            for cut in range(end, at + PIECE_LINES // 2, -1):
                if lines[cut] and not lines[cut][0].isspace() and not lines[cut - 1].strip():
                    end = cut
                    break
        yield at + 1, end, "\n".join(lines[at:end])
        at = end


def _counted(text: str, *, is_first: bool) -> dict[str, int]:
    """Names are weighed first, and taken apart once each: most of them are there many times."""
    names: dict[str, int] = dict(Counter(NAME.findall(text)))
    for match in _TELLS.finditer(text):
        for name in NAME.findall(match[match.lastindex or 0]):
            names[name] = names.get(name, 0) + _TOLD
    for name in _DEFINES.findall(text):
        names[name] = names.get(name, 0) + _DEFINED
    begins = text[:400].partition("\n")[0]
    if is_first and begins.startswith(_SENTENCES):
        for name in NAME.findall(begins):
            names[name] = names.get(name, 0) + _FIRST
    counts: dict[str, int] = {}
    for name, weight in names.items():
        for term in terms(name):
            counts[term] = counts.get(term, 0) + weight
    return counts


def _path_terms(path: str) -> dict[str, int]:
    folder, name = os.path.split(path)
    stem_of_name = name.partition(".")[0] if name[:1] != "." else name
    counts: dict[str, int] = {}
    for part in NAME.findall(folder.replace("-", " ")):
        for term in terms(part):
            counts[term] = max(counts.get(term, 0), _FOLDER)
    if stem_of_name in _ENTRY_NAMES:
        return counts
    for part in NAME.findall(stem_of_name.replace("-", " ")):
        for term in terms(part):
            counts[term] = _FILE_NAME
    return counts


def _standing(path: str, *, about_tests: bool) -> float:
    """What a file counts beside others: who asks where something is done means the code that does it."""
    path = path.lower()
    standing = 1.0 if about_tests or not _TEST_PATH.search(path) else _LESS_TEST
    if _VENDORED.search(path):
        standing *= _LESS_VENDORED
    for endings, less in ((DATA, _LESS_DATA), (_PROSE, _LESS_PROSE), (_STUB, _LESS_STUB)):
        if path.endswith(endings):
            return standing * less
    return standing
