"""Searching the contents of files with ripgrep: the lines that match, or the files and how many lines each has."""

import asyncio
import errno
import os
import re
import stat
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ferrule.support.globs import expand, literal_prefix, matcher, names_hidden, sparing
from ferrule.support.hits import Counting, Gathering, Hits
from ferrule.support.process import capture, stream
from ferrule.support.ripgrep import LIST_BYTES, QUIET, ignoring, siblings

_COUNT = re.compile(rb"([^\0]*)\0(\d+)\r?\n")
_PLAIN_GLOB = re.compile(r"[\w.*/\-]+", re.ASCII)
_NO_KIND = "unrecognized file type"


class BadPattern(ValueError):  # noqa: N818 - the reader is a model
    """ripgrep does not understand the pattern; the message says why."""


class UnknownKind(ValueError):  # noqa: N818 - the same
    """ripgrep knows no such type of file."""


class Query(NamedTuple):
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
    query: Query,
    *,
    per_file: int,
    most: int,
    offset: int = 0,
    before: int = 0,
    after: int = 0,
    line_bytes: int = 800,
    rank: Callable[[str], int] | None = None,
) -> Hits:
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
        return Hits([], 0)
    gathered = Gathering(most, per_file, wanted, before=before, after=after, rank=rank, parts=query.only_matching)
    await _run(argv, root, query, gathered.feed, lambda: bool(gathered.total))
    return gathered.hits(offset)


async def matching(rg: str, root: str, query: Query, *, counted: bool) -> dict[str, int]:
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


async def among(rg: str, root: str, query: Query, names: Sequence[str]) -> list[str]:
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
    listed = await _listed((*argv[:end], *argv[end + 2 :]), root)
    found = (os.fsdecode(one.removeprefix(b"./")) for one in listed.split(b"\0")[:-1])
    is_open = query.hidden or query.glob or query.kind
    return [name for name in found if (is_open or not f"/{name}".count("/.")) and wanted(name)]


class _Listing:
    """A listing that runs, for all who want the same one meanwhile."""

    def __init__(self, argv: tuple[str, ...], root: str) -> None:
        self.task = asyncio.create_task(capture(argv, cwd=root, limit_bytes=LIST_BYTES, is_real=True))
        self.waiting = 0


_underway: dict[tuple[object, ...], _Listing] = {}


async def _listed(argv: tuple[str, ...], root: str) -> bytes:
    """What rg lists. Searches of one message want the same, and a process costs more than most of them."""
    key = (asyncio.get_running_loop(), argv, root)
    listing = _underway.get(key)
    if listing is None or listing.task.done():
        listing = _underway[key] = _Listing(argv, root)
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


def _command(rg: str, root: str, query: Query, options: list[str]) -> tuple[list[str], Callable[[str], bool]]:
    """How rg is started, and which of the paths that it finds count. No command: there is nothing to find."""
    place = _place(root, query.path)
    exclude = [one for glob in query.exclude for one in sparing(glob, query.spare)]
    turned, anchored = _anchored(query.glob or "**")
    wanted = _wanted(query, anchored, turned=turned)
    if place and _excluded(root, place, exclude):
        return [], wanted
    argv = [rg, *QUIET, *(["--no-ignore"] if query.ignored else ignoring(root, parents=query.path is not None))]
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


def _wanted(query: Query, anchored: str, *, turned: bool) -> Callable[[str], bool]:
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
    argv: list[str], root: str, query: Query, feed: Callable[[bytes], bool], found: Callable[[], bool]
) -> None:
    try:
        done = await stream(argv, cwd=root, on_chunk=feed, is_real=True)
    except OSError as error:
        if error.errno in {errno.EINVAL, errno.E2BIG}:
            raise BadPattern(
                "The pattern is too long, or holds a NUL or half a character: write those as escapes."
            ) from error
        raise
    if done.exit_code not in {0, 1, 2} and not done.truncated:
        raise OSError(errno.EIO, f"ripgrep ended with exit code {done.exit_code}")
    explanation = _explanation(done.stderr.decode(errors="replace"))
    if done.exit_code == 2 and explanation and not found():
        raise UnknownKind(query.kind) if explanation.startswith(_NO_KIND) else BadPattern(explanation)


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


def _anchored(glob: str) -> tuple[bool, str]:
    """Is it reversed, and the pattern for paths from the root that a glob of rg stands for."""
    positive = glob.removeprefix("!")
    anywhere = "/" not in positive.rstrip("/")
    return positive != glob, "**/" + positive if anywhere else positive.removeprefix("/")


def _excluded(root: str, place: str, exclude: Sequence[str]) -> bool:
    """Does a glob fit the place, what it links to, or a directory above? rg does not ask about a place it is given."""
    real = os.path.relpath(os.path.realpath(os.path.join(root, place)), os.path.realpath(root))
    fits = _fits_or_holds(exclude, ignore_case=True)
    return fits(place.lstrip("/")) or fits(real)


def _fits_or_holds(globs: Sequence[str], *, ignore_case: bool) -> Callable[[str], bool]:
    """Does one of the globs fit the path, or a directory above it?"""
    anchored = [_anchored(glob)[1].rstrip("/") for glob in globs]
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
