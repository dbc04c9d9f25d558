"""Find files by glob pattern, list folders, and read several files at once."""

import os
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ferrule import documents
from ferrule.core.access import Access, within
from ferrule.core.content import FileText, FolderTree, ListDirEntry, ManyFiles, PathPage, Picture
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.tool import READS, Args, Context, Tool
from ferrule.files import search
from ferrule.files.globs import BadGlob, escape, matcher
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail, JailPath
from ferrule.files.ledger import Ledger
from ferrule.files.search import newest_first
from ferrule.files.text import WHOLE_BYTES, Binary, TooFarError, window_in, window_of
from ferrule.system import Threads
from ferrule.system.folder import Folder, describe, is_regular, read_all
from ferrule.tools.search import PatternBase, find_matches, is_shaky, rg, start, there


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


FOLDERS = (
    "node_modules,bower_components,__pycache__,site-packages,venv,env,dist,build,out,target,coverage,vendor"
    ",.git,.hg,.svn,.venv,.tox,.nox,.cache,.next,.nuxt,.idea,.vscode,.mypy_cache,.pytest_cache,.ruff_cache"
)
ENDINGS = (
    "png,jpg,jpeg,gif,webp,bmp,ico,tif,tiff,heic,psd,mp3,mp4,m4a,mov,avi,mkv,wav,flac,ogg,webm,pdf,doc,docx,xls,xlsx"
    ",ppt,pptx,odt,ods,zip,tar,gz,tgz,bz2,xz,zst,7z,rar,jar,war,whl,egg,exe,dll,so,dylib,a,o,obj,lib,bin,dat,class"
    ",pyc,pyo,pyd,wasm,db,sqlite,sqlite3,parquet,npy,npz,pkl,pickle,woff,woff2,ttf,otf,eot,iso,dmg,map,min.js,min.css"
)
NAMES = (
    "*.lock,package-lock.json,npm-shrinkwrap.json,pnpm-lock.yaml,bun.lockb,go.sum,.DS_Store,Thumbs.db,*.swp,*.log,*~"
)
"""What a folder or a pattern does not bring along unless it is asked to: other people's code, what programs make of
one's own, and what is no text. Whatever is named outright is read."""
MOST_INCLUDED = 1_000
MOST_INCLUDED_CHARS = 100_000
"""Of all paths and patterns together: each is looked up before anybody knows whether the call may run."""
MOST_EXCLUDED = 100


class ReadManyArgs(Args, frozen=True, kw_only=True):
    include: tuple[str, ...]
    """Files, folders, or patterns."""
    exclude: tuple[str, ...] = ()
    """Patterns of files to leave out; without a slash they fit at any depth."""
    recursive: bool = True
    """Does a folder stand for all that is below it, or only for its own files?"""
    default_excludes: bool = True
    ignored: bool = False
    """Read also what `.gitignore` hides?"""
    most_files: int = 200
    most_bytes: int = 262_144
    """Of all texts together."""
    usual_lines: int = 2_000
    line_bytes: int = 2_000
    picture_bytes: int = 7_500_000
    """Of all pictures together."""


class _Chosen(NamedTuple):
    path: str
    """The real path."""
    named: bool
    """Was it named outright?"""


class ReadMany(Tool[ReadManyArgs, ManyFiles]):
    """The texts of files in the order in which they were asked for, and pictures that were named outright."""

    name = "read_many"
    args = ReadManyArgs
    title = "Read several files"
    hints = READS

    def access(self, args: ReadManyArgs, ctx: Context) -> tuple[Access, ...]:
        if len(args.include) > MOST_INCLUDED or sum(map(len, args.include)) > MOST_INCLUDED_CHARS:
            raise BadArguments(
                f"{ctx.param('include')}: at most {MOST_INCLUDED:,} paths and patterns of {MOST_INCLUDED_CHARS:,} "
                "characters together are possible; use wider patterns, or several calls."
            )
        folders = [_common_folder(one, args, ctx) for one in args.include if one]
        return tuple(Access.read(folder) for folder in dict.fromkeys(folders))

    async def run(self, args: ReadManyArgs, ctx: Context) -> ManyFiles:
        # Away from the event loop: patterns with many alternatives take their time.
        left_out = await ctx.need(Threads).run(_check, args, ctx)
        chosen, skipped = await _choose(args, left_out, ctx)
        room = _Room(args)
        files: list[FileText | Picture] = []
        for one in chosen[: args.most_files]:
            try:
                files.append(await _read(one, room, args, ctx))
            except _Skipped as why:
                skipped.append((one.path, str(why)))
        if len(chosen) > args.most_files:
            ctx.note(f"{len(chosen)} files match; only the first {args.most_files} were read. Narrow the patterns.")
        if not files and not skipped:
            ctx.note("No files match.")
        return ManyFiles(tuple(files), tuple(skipped))


class _Skipped(Exception):  # noqa: N818 - the reason why a file is left out
    """A file cannot be given; the message says why in a few words."""


class _Room:
    """What still fits into the reply."""

    def __init__(self, args: ReadManyArgs) -> None:
        self.text_bytes = args.most_bytes
        self.picture_bytes = args.picture_bytes


_Fits = Callable[[str], bool]


def _check(args: ReadManyArgs, ctx: Context) -> tuple[_Fits, _Fits]:
    """What is left out, if the arguments are good."""
    wrong = [] if any(args.include) else [f"{ctx.param('include')}: is empty; give paths or patterns."]
    if len(args.exclude) > MOST_EXCLUDED:
        wrong.append(
            f"{ctx.param('exclude')}: at most {MOST_EXCLUDED} patterns are possible, not {len(args.exclude):,}."
        )
    if wrong:
        raise BadArguments("\n".join(wrong))
    try:
        return _left_out(args)
    except BadGlob as error:
        raise BadArguments(f"{ctx.param('exclude')}: {error}") from error


def _common_folder(include: str, args: ReadManyArgs, ctx: Context) -> str:
    """The folder that all files of one include lie below."""
    pattern = _pattern(include, args, ctx)
    return os.path.dirname(ctx.path(include)) if pattern is None else start(pattern, ctx).folder


def _pattern(include: str, args: ReadManyArgs, ctx: Context) -> str | None:
    """The include as a pattern; None for the name of a file, though it be one that looks like a pattern."""
    if any(character in include for character in "*?[{") and not os.path.lexists(_absolute(include, ctx)):
        return include
    real = ctx.path(include)
    if os.path.isdir(real):
        return f"{escape(real)}/{'**/*' if args.recursive else '*'}"
    return None


def _absolute(path: str, ctx: Context) -> str:
    return os.path.join(ctx.need(Jail).folder, os.path.expanduser(path))


async def _choose(
    args: ReadManyArgs, is_left_out: tuple[_Fits, _Fits], ctx: Context
) -> tuple[list[_Chosen], list[tuple[str, str]]]:
    """The files to read, each once, in the order of the includes; and those that were named but are not read."""
    jail, guard = ctx.need(Jail), ctx.need(Guard)
    excluded, unwanted = is_left_out
    chosen: dict[str, _Chosen] = {}
    skipped: dict[str, str] = {}
    left_out: set[str] = set()
    for include in filter(None, args.include):
        pattern = _pattern(include, args, ctx)
        if pattern is None:
            real = ctx.path(include)
            if guard.secret(real) or guard.secret(jail.lexical_path(include)):
                skipped[real] = "secret"
            elif excluded(jail.display_path(real)):
                skipped[real] = "excluded"
            else:
                chosen.setdefault(real, _Chosen(real, named=True))
            continue
        begin = start(pattern, ctx)
        root, names = await find_matches(begin, ctx, ignored=args.ignored)
        head = root.rstrip(os.sep) + os.sep
        for name in names:
            path = head + name
            # Judged from where the search began: a workspace may well lie in a folder called `build`.
            if excluded(jail.display_path(path)) or unwanted(os.path.relpath(path, begin.folder)):
                continue
            if guard.secret(path):
                left_out.add(path)
            else:
                chosen.setdefault(path, _Chosen(path, named=False))
    if left_out:
        ctx.note(f"{len(left_out)} secret file{' was' if len(left_out) == 1 else 's were'} not read.")
    return list(chosen.values()), list(skipped.items())


def _left_out(args: ReadManyArgs) -> tuple[_Fits, _Fits]:
    """Is a path excluded by the caller, and is it what nobody asks for? Raises BadGlob."""
    usual = [f"**/{{{FOLDERS}}}/**", f"**/*.{{{ENDINGS}}}", f"**/{{{NAMES}}}"] if args.default_excludes else []
    return _any(map(_anywhere, filter(None, args.exclude))), _any(usual, ignore_case=True)


def _anywhere(pattern: str) -> str:
    plain = pattern.removeprefix("./").removeprefix("/")
    return plain if "/" in plain.rstrip("/") else f"**/{plain}"


def _any(patterns: Iterable[str], *, ignore_case: bool = False) -> _Fits:
    fits = [
        matcher(one, dots=True, ignore_case=ignore_case) for pattern in patterns for one in (pattern, f"{pattern}/**")
    ]
    return lambda path: any(fit(path) for fit in fits)


async def _read(one: _Chosen, room: _Room, args: ReadManyArgs, ctx: Context) -> FileText | Picture:
    content = await ctx.need(Threads).run(_content, one, room, args, ctx)
    if isinstance(content, FileText):
        return content

    try:
        fitted = await documents.fit(content)
    except documents.BadPicture as error:
        raise _Skipped(str(error)) from error
    if len(fitted.data) > room.picture_bytes:
        raise _Skipped("there is no room for another picture")
    room.picture_bytes -= len(fitted.data)
    return Picture(one.path, fitted.media_type, fitted.data)


def _content(one: _Chosen, room: _Room, args: ReadManyArgs, ctx: Context) -> FileText | bytes:
    """The text, or the bytes of a picture."""
    place = ctx.need(Jail).place(one.path)
    try:
        with place.folder() as folder:
            descriptor = folder.open(place.name)
        try:
            if not is_regular(descriptor):
                raise _Skipped("not an ordinary file")
            head = os.pread(descriptor, 16, 0)
            return _special(one, head, descriptor) or _text(one.path, descriptor, room, args, ctx)
        finally:
            os.close(descriptor)
    except FileNotFoundError as error:
        raise _Skipped("not found") from error
    except Binary as error:
        raise _Skipped("binary") from error
    except TooFarError as error:
        raise _Skipped("too large") from error
    except OSError as error:
        raise _Skipped(describe(error)) from error


def _special(one: _Chosen, head: bytes, descriptor: int) -> bytes | None:
    """The bytes of a picture; None for what may be a text."""
    if head.startswith(b"%PDF-"):
        raise _Skipped("a PDF; read it by itself")

    if documents.kind(head) is None:
        return None
    if not one.named:
        raise _Skipped("an image; name it outright to see it")
    raw = read_all(descriptor, documents.PICTURE_BYTES)
    if len(raw) > documents.PICTURE_BYTES:
        raise _Skipped(str(documents.too_many_bytes(len(raw))))
    return raw


def _text(path: str, descriptor: int, room: _Room, args: ReadManyArgs, ctx: Context) -> FileText:
    if room.text_bytes <= 0:
        raise _Skipped(f"the other files have {args.most_bytes:,} bytes already")
    raw = b""
    if os.fstat(descriptor).st_size > WHOLE_BYTES:
        window = window_in(
            descriptor,
            1,
            args.usual_lines,
            line_bytes=args.line_bytes,
            most_bytes=room.text_bytes,
            over=lambda: ctx.over,
        )
    else:
        raw = read_all(descriptor, WHOLE_BYTES)
        window = window_of(raw, 1, args.usual_lines, line_bytes=args.line_bytes)
    kept = 0
    for line in window.lines:
        room.text_bytes -= len(line.encode(errors="replace")) + 1
        if room.text_bytes < 0:
            break
        kept += 1
    if window.total != kept:
        of = "" if window.total is None else f" of {window.total}"
        ctx.note(f"{path}: these are the first {kept} lines{of}.")
    elif not window.clipped:
        ctx.need(Ledger).saw(path, raw)
    if cut := sum(number <= kept for number in window.clipped):
        ctx.note(f"{path}: {cut} {'lines were' if cut > 1 else 'line was'} cut after {args.line_bytes:,} bytes.")
    ends = window.total == kept and raw.endswith((b"\n", b"\r"))
    return FileText(path, 1, tuple(window.lines[:kept]), window.total, ends)
