"""Search code by what it does, with a model or with a ranked index of the files.

The index ranks pieces of a few screens each with BM25 over the names, paths and comments of code. Names are
split into their parts, words are reduced to their stems, and related words count as well.

Files are read within limits, kept, and read again when they have changed.
"""

import functools
import math
import os
import re
import stat
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from ferrule.core.access import Access
from ferrule.core.errors import BadArguments, FerruleError, ToolFailure
from ferrule.core.services import Job, Worked, subagents
from ferrule.core.tool import READS, Args, Context, Tool
from ferrule.files import search
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.system import Threads
from ferrule.tools.agents import run_job, specialist
from ferrule.tools.search import Spot, Spots, rg

NAME = re.compile(r"[^\W\d]\w{1,63}")
"""A name of a program, or a word of a text. What is longer was written by a machine."""
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+")
_LEAST = 2
_STEMMED = 4
"""Shorter words stay as they are: little would be left of them."""

_SAYS_NOTHING = (
    "a about all also an and any are as at be because been before but by can code could did do does done each"
    " every exist exists find for from get gets give given go goes had handled happen happens has have how i if"
    " implemented in into is it its kind like list located look made make makes many may me might must my no not"
    " of on one only or our out place places put really see shall show should so some somewhere such tell than"
    " that the their them then there these they thing things this those to us used uses using very via want was"
    " way we were what when where whether which while who whose why will with work works would you"
)
_KIN = (
    "symlink link",
    "directory dir folder",
    "config configuration setting option preference",
    "delete remove unlink",
    "cancel abort interrupt stop",
    "error failure exception",
    "retry again attempt backoff",
    "auth login permission",
    "parse decode",
    "serialize encode dump",
    "argument parameter param",
    "database sqlite db sql",
    "timeout deadline limit",
    "concurrent parallel",
    "queue schedule scheduler",
    "start launch spawn",
    "fetch download",
    "create new make",
    "check validate verify",
    "print output show display",
    "test spec",
    "dependency requirement",
    "entry main",
    "secret credential token",
    "cache kept",
    "truncate cut shorten",
    "shell command bash",
    "sandbox confine confinement",
    "merge combine join layer",
    "strip scrub sanitize clean escape",
    "misspell typo suggestion near",
    "kill terminate end",
    "environment env variable",
)


@functools.lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """What a word in small letters has in common with its other forms, roughly: `walked` and `walks` are `walk`."""
    if len(word) < _STEMMED:
        return word
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch"), ("shes", "sh")):
        if word.endswith(ending):
            word = word[: -len(ending)] + instead
            break
    else:
        if word.endswith("s") and not word.endswith(("ss", "us", "is")):
            word = word[:-1]
    for ending in ("ations", "ation", "ings", "ing", "ers", "er", "ed", "ly", "ment", "or", "ion"):
        rest = word[: -len(ending)]
        if word.endswith(ending) and len(rest) >= _STEMMED - 1 and any(vowel in rest for vowel in "aeiouy"):
            word = rest
            break
    if len(word) >= _STEMMED and word[-1] == word[-2] and word[-1] not in "aeiou":
        word = word[:-1]
    return word[:-1] if len(word) > _STEMMED and word.endswith("e") else word


@functools.lru_cache(maxsize=65_536)
def terms(name: str) -> tuple[str, ...]:
    """What a name is found by: itself, and its parts where it has several, as in `readFile` and `read_file`."""
    parts = [part.lower() for part in _PART.findall(name)]
    whole = stem(parts[0]) if len(parts) == 1 else name.strip("_").lower()
    found = [whole, *map(stem, parts)] if len(parts) > 1 else [whole]
    return tuple(dict.fromkeys(one for one in found if len(one) >= _LEAST))


def parse_query(query: str) -> dict[str, float]:
    """The terms of a question, each with how much it counts; words that every question has count nothing."""
    found: dict[str, float] = {}
    says_nothing = frozenset(_SAYS_NOTHING.split())
    for name in NAME.findall(query):
        if name.lower() in says_nothing:
            continue
        for place, term in enumerate(terms(name)):
            is_part = place > 0
            found[term] = max(found.get(term, 0.0), 0.6 if is_part else 1.0)
    for term in list(found):
        for other in _kin().get(term, ()):
            found.setdefault(other, 0.35 * found[term])
    return found


@functools.cache
def _kin() -> Mapping[str, tuple[str, ...]]:
    kin: dict[str, tuple[str, ...]] = {}
    for row in _KIN:
        stems = [stem(word) for word in row.split()]
        for one in stems:
            kin[one] = (*kin.get(one, ()), *(other for other in stems if other != one))
    return kin


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
            counts = _count_terms(piece, is_first=first == 1)
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
                * _path_weight(piece.path, about_tests=about_tests)
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
            for term, weight in parse_query(query).items()
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


def _count_terms(text: str, *, is_first: bool) -> dict[str, int]:
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


def _path_weight(path: str, *, about_tests: bool) -> float:
    """What a file counts beside others: who asks where something is done means the code that does it."""
    path = path.lower()
    standing = 1.0 if about_tests or not _TEST_PATH.search(path) else _LESS_TEST
    if _VENDORED.search(path):
        standing *= _LESS_VENDORED
    for endings, less in ((DATA, _LESS_DATA), (_PROSE, _LESS_PROSE), (_STUB, _LESS_STUB)):
        if path.endswith(endings):
            return standing * less
    return standing


FILE_BYTES = 1 << 20
TOTAL_BYTES = 32 << 20
MOST_FILES = 50_000
_NAME_BYTES = 512
"""What a file costs by its name alone, as bytes of text."""
_DATA_BYTES = 1 << 16
"""Of data, and of a file with long lines, which a machine wrote."""
_LONG_LINE = 400
_HEAD_BYTES = 8_192
_TELL_EVERY = 250


class Refreshed(NamedTuple):
    """How much the index holds, how many files were too many for it, and of how many it holds only the beginning."""

    files: int
    left_out: int = 0
    begun: int = 0


class Spotted(NamedTuple):
    """A place in a file that fits a question."""

    path: str
    """As the session shows it."""
    region: Region
    score: float


class RankedFiles:
    """What `Ranked` knows of the files below the roots of a jail; used on worker threads, one at a time."""

    def __init__(self, jail: Jail, guard: Guard) -> None:
        self.jail = jail
        self._guard = guard
        self._ranked = Ranked()
        self._seen: dict[str, tuple[int, int, int]] = {}
        """Path as shown → when the file was changed, its size, and how much of it was wanted, when it was read."""
        self._one_at_a_time = threading.Lock()

    def refresh(
        self,
        listed: Mapping[str, Sequence[str]],
        *,
        tell: Callable[[str], None] = lambda _: None,
        is_over: Callable[[], bool] = lambda: False,
    ) -> Refreshed:
        """Read what is new or has changed; forget what is gone. `listed` has the names below each root."""
        with self._one_at_a_time:
            found = self._map_paths(listed)
            for path in self._seen.keys() - found.keys():
                self._forget(path)
            # Outer files first: where there are too many, the deepest are left out.
            order = sorted(found, key=lambda path: (path.count(os.sep), path))
            for path in order[MOST_FILES:]:
                self._forget(path)
            held = order[:MOST_FILES]
            there = {path: status for path in held if (status := self._status(path, found[path]))}
            wanted = {path: _read_limit(path, status.st_size) for path, status in there.items()}
            level = _level(wanted.values(), TOTAL_BYTES - _NAME_BYTES * len(wanted))
            for at, (path, status) in enumerate(there.items()):
                if is_over():
                    break
                if at and at % _TELL_EVERY == 0:
                    tell(f"{at:,} of {len(there):,} files looked at")
                self._look(path, found[path], status, min(wanted[path], level))
            begun = sum(size > level for size in wanted.values())
            return Refreshed(len(self._ranked), len(order) - len(held), begun)

    def _map_paths(self, listed: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """Path as shown → real path. Of the first root a name is shown as it is, and mostly there is no other."""
        found = {}
        for root, names in listed.items():
            begins, is_first = os.path.join(root, ""), root == self.jail.folder
            for name in names:
                found[name if is_first else self.jail.display_path(begins + name)] = begins + name
        return found

    def _status(self, path: str, real: str) -> os.stat_result | None:
        try:
            return os.lstat(real)
        except OSError:
            self._forget(path)
            return None

    def _look(self, path: str, real: str, status: os.stat_result, most: int) -> None:
        signature = (status.st_mtime_ns, status.st_size, most)
        if self._seen.get(path) == signature:
            return
        self._forget(path)
        self._seen[path] = signature
        # Also what cannot be read is found by its name, but not what nobody may see, or make anything of.
        if stat.S_ISREG(status.st_mode) and not self._guard.secret(real):
            text = self._text(real, most) if status.st_size <= FILE_BYTES else ""
            if text is not None:
                self._ranked.put(path, text)

    def _text(self, real: str, most: int = FILE_BYTES) -> str | None:
        """Its first lines, with so many bytes at most; None for a binary file."""
        try:
            raw = self._read(real)
        except (OSError, FerruleError):
            return ""
        if b"\0" in raw[:_HEAD_BYTES]:
            return None
        if len(raw) > _DATA_BYTES and (real.endswith(DATA) or len(raw) > _LONG_LINE * (raw.count(b"\n") + 1)):
            raw = raw[:_DATA_BYTES]
        if len(raw) > most:
            raw = raw[: raw.rfind(b"\n", 0, most) + 1]
        return raw.decode(errors="replace")

    def _read(self, real: str) -> bytes:
        """By descriptor: a folder that became a link since leads nowhere."""
        place = self.jail.place(real)
        with place.folder() as folder:
            return folder.read(place.name, FILE_BYTES) or b""

    def _forget(self, path: str) -> None:
        self._ranked.drop(path)
        self._seen.pop(path, None)

    def search(self, query: str, most: int = 10) -> list[Spotted]:
        """The places that fit best, the best first; none in a file that nobody may see by now."""
        with self._one_at_a_time:
            weights = self._ranked.weights(query)
            out = []
            for match in self._ranked.search(query, 2 * most):
                real = os.path.join(self.jail.folder, match.path)
                if not self._guard.secret(real):
                    lines = (self._text(real) or "").split("\n")[match.first - 1 : match.last]
                    out.append(Spotted(match.path, region(lines, weights, start=match.first), match.score))
                if len(out) == most:
                    break
            return out


def _read_limit(path: str, size: int) -> int:
    """How much of a file there is to hold."""
    if size > FILE_BYTES:
        return 0
    return min(size, _DATA_BYTES) if path.endswith(DATA) else size


def _level(sizes: Collection[int], total: int) -> int:
    """How much of each file may be held so that all of them together fit: the short ones whole, of the others less."""
    left = max(0, total)
    for at, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - at)
        if size > share:
            # In steps: a file more or less must not have all the others read again.
            step = 1 << max(0, share.bit_length() - 3)
            return share // step * step
        left -= size
    return FILE_BYTES


PLACES = 10
_QUERY_CHARS = 4_000
_LINE_CHARS = 200


class FinderArgs(Args, frozen=True, kw_only=True):
    query: str


class Finder(Tool[FinderArgs, Worked | Spots]):
    """Places in the workspace that fit a question in words; nothing is changed, and nobody is asked."""

    name = "finder"
    args = FinderArgs
    title = "Find code by what it does"
    hints = READS
    timed = False
    waits = True

    def __init__(self) -> None:
        self._files: RankedFiles | None = None
        """The index, kept for the session."""

    def access(self, args: FinderArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - it is the same for all
        """Nothing by itself: whoever it asks has calls of their own, and the index has only what needs no question."""
        return ()

    async def run(self, args: FinderArgs, ctx: Context) -> Worked | Spots:
        if not args.query.strip():
            raise BadArguments(f"{ctx.param('query')}: is empty; say in words what to look for.")
        if not subagents(ctx).can_run:
            ctx.note("No model was asked: this session has none for subagents. The places are ranked by their words.")
            return await self._rank_places(args.query[:_QUERY_CHARS], ctx)
        agent = specialist("finder", ("read", "glob", "grep"))
        try:
            return await run_job(Job(agent, args.query, description=_short(args.query)), ctx)
        except ToolFailure as failure:
            ctx.note(f"{failure.message} The places are ranked by their words instead.")
            return await self._rank_places(args.query[:_QUERY_CHARS], ctx)

    async def _rank_places(self, query: str, ctx: Context) -> Spots:
        jail, threads, program = ctx.need(Jail), ctx.need(Threads), rg(ctx)
        listed = {}
        for root in jail.roots:
            jail.check(root.path)
            try:
                listed[root.path] = await search.files(program, root.path, hidden=False)
            except OSError as error:
                raise ToolFailure(f"The files of {root.path} cannot be listed: {error}.", path=root.path) from error
        if self._files is None or self._files.jail is not jail:
            self._files = RankedFiles(jail, ctx.need(Guard))
        refreshed = await threads.run(self._files.refresh, listed, tell=ctx.progress, is_over=lambda: ctx.over)
        if refreshed.left_out:
            ctx.note(f"{refreshed.left_out:,} files were too many for the index; the deepest ones were left out.")
        if refreshed.begun:
            ctx.note(
                f"There is more text than the index holds: {refreshed.begun:,} long files are in it with their first "
                "lines only."
            )
        found = await threads.run(self._files.search, query, PLACES)
        spots = (Spot(one.path, one.region.first, one.region.last, one.region.line[:_LINE_CHARS]) for one in found)
        return Spots(query, tuple(spots), refreshed.files)


def _short(query: str) -> str:
    first = query.strip().partition("\n")[0]
    return first if len(first) <= 80 else first[:77] + "..."
