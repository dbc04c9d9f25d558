"""Find files by glob pattern, and list folders."""

import os
from collections.abc import Callable
from typing import NamedTuple

from ferrule.core.access import Access, within
from ferrule.core.content import FolderTree, ListDirEntry, PathPage
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.tool import READS, Args, Context, Tool
from ferrule.files import search
from ferrule.files.globs import BadGlob, matcher
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail, JailPath
from ferrule.files.search import newest_first
from ferrule.system.folder import Folder, describe
from ferrule.system.threads import Threads
from ferrule.tools.search.patterns import PatternBase, find_matches, is_shaky, rg, start, there


class GlobArgs(Args, frozen=True, kw_only=True):
    pattern: str
    path: str | None = None
    """The folder that the pattern is relative to; the workspace where none is given."""
    limit: int = 1000
    offset: int = 0
    by_time: bool = False
    """Files changed last come first."""
    case_sensitive: bool = True
    ignored: bool = False
    """Find also what `.gitignore` hides?"""
    relative: bool = False
    """Paths from that folder, and not absolute ones."""


class Glob(Tool[GlobArgs, PathPage]):
    """Paths that match a glob pattern, in alphabetical order, so that pages fit together."""

    name = "glob"
    args = GlobArgs
    title = "Find files by name"
    hints = READS

    def access(self, args: GlobArgs, ctx: Context) -> tuple[Access, ...]:
        return (Access.read(_start(args, ctx).folder),)

    async def run(self, args: GlobArgs, ctx: Context) -> PathPage:
        least = (("limit", args.limit, 1), ("offset", args.offset, 0))
        wrong = [f"{ctx.param(name)}: must be at least {low}." for name, value, low in least if value < low]
        if wrong:
            raise BadArguments("\n".join(wrong))
        folder = ctx.need(Jail).folder if args.path is None else _folder(args.path, ctx)
        begin = _start(args, ctx)
        root, names = await find_matches(begin, ctx, case_sensitive=args.case_sensitive, ignored=args.ignored)
        if is_shaky(ctx):
            names = await ctx.need(Threads).run(there, names, root, ctx)
        if args.by_time:
            names = await ctx.need(Threads).run(newest_first, root, names)
        denied = ctx.need(Guard).denied
        if denied is not None:
            told = [name for name in names if not denied(os.path.join(root, name), "read")]
            if left_out := len(names) - len(told):
                ctx.note(
                    f"{left_out} file{' that a rule denies is' if left_out == 1 else 's that rules deny are'} left out."
                )
            names = told
        page = names[args.offset : args.offset + args.limit]
        head = root.rstrip(os.sep) + os.sep
        paths = [head + name for name in page]
        if args.relative:
            paths = [os.path.relpath(path, folder) if within(path, folder) else path for path in paths]
        return PathPage(tuple(paths), max(0, len(names) - args.offset - len(page)), folder)


def _start(args: GlobArgs, ctx: Context) -> PatternBase:
    return start(args.pattern, ctx, path=args.path, case_sensitive=args.case_sensitive)


def _folder(path: str, ctx: Context) -> str:
    real = ctx.path(path)
    if not os.path.isdir(real):
        if os.path.lexists(real):
            raise ToolFailure(f"{real} is not a folder.", code="not-a-folder", path=real)
        raise ToolFailure(f"{real} is not there.", code="not-found", path=real)
    return real


MOST = 100_000
"""Names that are looked at, in all folders together."""
MOST_IGNORED = 100
"""Patterns."""


class ListDirArgs(Args, frozen=True, kw_only=True):
    path: str = "."
    depth: int = 1
    """How many levels, the folder's own names being the first."""
    offset: int = 1
    """The first entry to give, from 1."""
    limit: int | None = None
    ignore: tuple[str, ...] = ()
    """Globs of names to leave out; with a slash in them, of paths from the folder."""
    ignored: bool = True
    """List also what `.gitignore` hides? Links and empty folders are listed anyway."""
    folders_first: bool = False


class ListDir(Tool[ListDirArgs, FolderTree]):
    """The names in a folder in their order, each folder followed by what it holds. No link is followed."""

    name = "list_dir"
    args = ListDirArgs
    title = "List a folder"
    hints = READS

    def access(self, args: ListDirArgs, ctx: Context) -> tuple[Access, ...]:
        return (Access.read(ctx.path(args.path)),)

    async def run(self, args: ListDirArgs, ctx: Context) -> FolderTree:
        least = {"depth": args.depth, "offset": args.offset, "limit": 1 if args.limit is None else args.limit}
        wrong = [f"{ctx.param(name)}: must be at least 1." for name, value in least.items() if value < 1]
        if len(args.ignore) > MOST_IGNORED:
            wrong.append(
                f"{ctx.param('ignore')}: at most {MOST_IGNORED} patterns are possible, not {len(args.ignore):,}."
            )
        if wrong:
            raise BadArguments("\n".join(wrong))
        try:
            # Away from the event loop: patterns with many alternatives take their time.
            unwanted = await ctx.need(Threads).run(
                lambda: [_build_matcher(pattern) for pattern in args.ignore if pattern]
            )
        except BadGlob as error:
            raise BadArguments(f"{ctx.param('ignore')}: {error}") from error
        place = ctx.need(Jail).place(ctx.path(args.path))
        # Looked at before ripgrep is: a missing folder is not an empty one.
        await ctx.need(Threads).run(_open_folder, place)
        seen = None if args.ignored else await _list_unignored(place, ctx)
        walk = _FolderWalk(place, args, unwanted, seen, ctx)
        entries = await ctx.need(Threads).run(walk.entries)
        first = args.offset - 1
        page = entries[first : None if args.limit is None else first + args.limit]
        if entries and not page:
            ctx.note(f"{ctx.param('offset')}: {args.offset} lies past the end; there are {len(entries)} entries.")
        return FolderTree(place.path, tuple(page), max(0, len(entries) - first - len(page)))


class _UnignoredNames(NamedTuple):
    """What ignore files leave, from the folder that is listed."""

    files: set[str]
    folders: set[str]


async def _list_unignored(place: JailPath, ctx: Context) -> _UnignoredNames:
    root = place.root.path
    ctx.need(Jail).check(root)
    below = "/".join(place.parts)
    listed = await search.files(rg(ctx), root, hidden=True, below=below)
    files = {name[len(below) + 1 :] if below else name for name in listed}
    folders: set[str] = set()
    for name in files:
        folder = name.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return _UnignoredNames(files, folders)


class _FolderWalk:
    """Goes through the folders by descriptor, each opened from the root anew: however deep, few are open at once."""

    def __init__(
        self,
        place: JailPath,
        args: ListDirArgs,
        unwanted: list[Callable[[str], bool]],
        seen: _UnignoredNames | None,
        ctx: Context,
    ) -> None:
        self._place = place
        self._args = args
        self._unwanted = unwanted
        self._seen = seen
        self._ctx = ctx
        self._visited = 0
        self._left_out = 0

    def entries(self) -> list[ListDirEntry]:
        out: list[ListDirEntry] = []
        waiting = list(reversed(self._names(())))
        while waiting and not self._ctx.over:
            entry = waiting.pop()
            out.append(entry)
            parts = tuple(entry.path.split("/"))
            if entry.kind == "folder" and len(parts) < self._args.depth and self._visited < MOST:
                try:
                    waiting += reversed(self._names(parts))
                except OSError as error:
                    self._ctx.note(f"{entry.path} could not be listed: {describe(error)}.")
        if self._visited >= MOST:
            self._ctx.note(f"Only {MOST:,} names were looked at; list a folder further down for the others.")
        if self._left_out:
            self._ctx.note(f"{self._left_out} names are left out because ignore files hide them.")
        return out

    def _names(self, parts: tuple[str, ...]) -> list[ListDirEntry]:
        """What one folder holds, in order."""
        above = "".join(f"{part}/" for part in parts)
        found: list[ListDirEntry] = []
        with _open_folder(self._place, parts) as folder, os.scandir(_scan_target(folder)) as scan:
            for entry in scan:
                if self._visited >= MOST:
                    break
                self._visited += 1
                if self._wants(above + entry.name) and (listed := _read_entry(above, entry)) is not None:
                    found.append(listed)
        if self._seen is not None:
            kept = [entry for entry in found if self._is_seen(entry, self._seen)]
            self._left_out += len(found) - len(kept)
            found = kept
        return sorted(found, key=lambda one: (self._args.folders_first and one.kind != "folder", one.path))

    def _wants(self, path: str) -> bool:
        return not any(fits(path) for fits in self._unwanted)

    def _is_seen(self, entry: ListDirEntry, seen: _UnignoredNames) -> bool:
        """ripgrep lists files only: of a folder without any that git would see, just an empty one is not ignored."""
        if entry.kind == "file":
            return entry.path in seen.files
        if entry.kind != "folder" or entry.path in seen.folders:
            return True
        try:
            with (
                _open_folder(self._place, tuple(entry.path.split("/"))) as folder,
                os.scandir(_scan_target(folder)) as scan,
            ):
                return next(scan, None) is None
        except OSError:
            return False


def _open_folder(place: JailPath, parts: tuple[str, ...] = ()) -> Folder:
    """A folder at or below the place. Raises OSError below it."""
    if parts:
        return place.root.open().below((*place.parts, *parts))
    try:
        return place.root.open().below(place.parts)
    except FileNotFoundError as error:
        raise ToolFailure(f"{place.path} is not there.", code="not-found", path=place.path) from error
    except NotADirectoryError as error:
        raise ToolFailure(f"{place.path} is not a folder.", code="not-a-folder", path=place.path) from error
    except OSError as error:
        raise ToolFailure(f"{describe(error)}: {place.path}", path=place.path) from error


def _scan_target(folder: Folder) -> int | str:
    return folder.path if folder.descriptor is None else folder.descriptor


def _read_entry(above: str, entry: "os.DirEntry[str]") -> ListDirEntry | None:
    """The entry as it is at this moment; None where it has just gone."""
    path = above + entry.name
    if entry.is_symlink():
        return ListDirEntry(path, "link")
    if entry.is_dir(follow_symlinks=False):
        return ListDirEntry(path, "folder")
    if not entry.is_file(follow_symlinks=False):
        return ListDirEntry(path, "other")
    try:
        return ListDirEntry(path, "file", entry.stat(follow_symlinks=False).st_size)
    except OSError:
        return None


def _build_matcher(pattern: str) -> Callable[[str], bool]:
    """Does the pattern fit a path from the folder? What is below a folder that fits is never come to."""
    plain = pattern.strip("/")
    return matcher(plain if "/" in pattern.rstrip("/") else f"**/{plain}", dots=True)
