"""Read several files at once: those named, those in a folder, and those that a pattern finds."""

import os
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ferrule.core.access import Access
from ferrule.core.content import FileText, ManyFiles, Picture
from ferrule.core.errors import BadArguments
from ferrule.core.tool import READS, Args, Context, Tool
from ferrule.files.globs import BadGlob, escape, matcher
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.files.ledger import Ledger
from ferrule.files.text import WHOLE_BYTES, Binary, TooFarError, window_in, window_of
from ferrule.system.folder import describe, is_regular, read_all
from ferrule.system.threads import Threads
from ferrule.tools.search.patterns import find_matches, start

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
        folders = [_folder(one, args, ctx) for one in args.include if one]
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


def _folder(include: str, args: ReadManyArgs, ctx: Context) -> str:
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
    from ferrule.documents import formats  # only calls that name one pay for it

    try:
        fitted = await formats.fit(content)
    except formats.BadPicture as error:
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
    from ferrule.documents import formats  # small, but not for every session

    if formats.kind(head) is None:
        return None
    if not one.named:
        raise _Skipped("an image; name it outright to see it")
    raw = read_all(descriptor, formats.PICTURE_BYTES)
    if len(raw) > formats.PICTURE_BYTES:
        raise _Skipped(str(formats.too_many_bytes(len(raw))))
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
