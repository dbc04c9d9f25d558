"""Read a file or list a folder."""

import os

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.outcomes import FileText, Listing, Picture
from ferrule.core.tool import Context, Tool
from ferrule.support.beneath import Folder, describe, is_regular, read_all
from ferrule.support.threads import Threads
from ferrule.workspace.ledger import Ledger
from ferrule.workspace.paths import Jail, Place
from ferrule.workspace.textfile import Binary
from ferrule.workspace.window import WHOLE_BYTES, TooFarError, Window, window_in, window_of

PICTURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


class ReadArgs(Args, frozen=True, kw_only=True):
    path: str
    span: tuple[int, int] | None = None
    """First and last line, from 1."""
    most_bytes: int = 65_536
    usual_lines: int = 500
    most_lines: int = 2_000
    line_bytes: int = 4_096
    picture_bytes: int = 3_750_000
    """A larger image is refused: model APIs take 5 MB of base64."""


class Read(Tool[ReadArgs, FileText | Listing | Picture]):
    """Lines of a text file, the names in a folder, or an image; never waits for a pipe or a device."""

    name = "read"
    args = ReadArgs

    def access(self, args: ReadArgs, ctx: Context) -> tuple[Access, ...]:
        return (Access.read(ctx.path(args.path)),)

    async def run(self, args: ReadArgs, ctx: Context) -> FileText | Listing | Picture:
        if args.span is not None and args.span[1] < max(1, args.span[0]):
            raise BadArguments(f"{ctx.param('span')}: the end {args.span[1]} lies before the start {args.span[0]}.")
        place = ctx.need(Jail).place(ctx.path(args.path))
        return await ctx.need(Threads).run(_read, place, args, ctx)


def _read(place: Place, args: ReadArgs, ctx: Context) -> FileText | Listing | Picture:
    try:
        if not place.parts:
            return _listing(place.root.open().below(()))
        with place.folder() as folder:
            descriptor = folder.open(place.name)
            try:
                if is_regular(descriptor):
                    return _content(descriptor, place.path, args, ctx)
            finally:
                os.close(descriptor)
            return _listing(folder.below((place.name,)))
    except FileNotFoundError as error:
        hint = _suggestion(place.path)
        raise ToolFailure(f"{place.path} is not there{hint}.", code="not-found", path=place.path, hint=hint) from error
    except NotADirectoryError as error:
        raise ToolFailure(f"{place.path} is neither a file nor a folder that can be read.", path=place.path) from error
    except Binary as error:
        raise ToolFailure("The file is binary.", code="binary", path=place.path) from error
    except TooFarError as error:
        raise ToolFailure(f"{error} Use Bash with tail or sed.", code="too-far", path=place.path) from error
    except BlockingIOError as error:
        raise ToolFailure(
            f"{place.path} has nothing to read yet; it is not an ordinary file.", path=place.path
        ) from error
    except OSError as error:
        raise ToolFailure(f"{describe(error)}: {place.path}", path=place.path) from error


def _content(descriptor: int, path: str, args: ReadArgs, ctx: Context) -> FileText | Picture:
    size = os.fstat(descriptor).st_size
    head = os.pread(descriptor, 16, 0)
    media_type = next((kind for magic, kind in PICTURES if head.startswith(magic)), None)
    if media_type is not None:
        if size > args.picture_bytes:
            raise ToolFailure(
                f"The image has {size:,} bytes; {args.picture_bytes:,} is the most that can be shown.", path=path
            )
        return Picture(path, media_type, read_all(descriptor, args.picture_bytes))
    if args.span is None and size > args.most_bytes:
        raise ToolFailure(
            f"It has {size:,} bytes: give {ctx.param('span')} to read part of it, for example [1, {args.usual_lines}].",
            code="too-large",
            path=path,
        )
    first, last = args.span or (1, args.usual_lines)
    first = max(1, first)
    last = min(last, first + args.most_lines - 1)
    if size > WHOLE_BYTES:
        window = window_in(
            descriptor, first, last, line_bytes=args.line_bytes, most_bytes=args.most_bytes, over=lambda: ctx.over
        )
    else:
        raw = read_all(descriptor, max(WHOLE_BYTES, size))
        ctx.need(Ledger).saw(path, raw)
        window = window_of(raw, first, last, line_bytes=args.line_bytes)
    return _bounded(path, window, args, ctx)


def _bounded(path: str, window: Window, args: ReadArgs, ctx: Context) -> FileText:
    """As many whole lines as fit, and a note about what was left out."""
    kept, room = 0, args.most_bytes
    for number, line in enumerate(window.lines, window.first):
        room -= len(f"{number}: {line}\n".encode(errors="replace"))
        if room < 0:
            break
        kept += 1
    last = window.first + kept - 1
    of = "" if window.total is None else f" of {window.total}"
    if window.total == 0:
        ctx.note("The file is empty.")
    elif not window.lines:
        ctx.note(f"The file has {window.total} lines; line {window.first} is past its end.")
    elif window.total is None or last < window.total or window.first > 1:
        ctx.note(f"These are lines {window.first} to {last}{of}. Give {ctx.param('span')} for others.")
    if window.clipped:
        ctx.note(f"{window.clipped} lines were cut after {args.line_bytes:,} bytes.")
    return FileText(path, window.first, tuple(window.lines[:kept]))


def _listing(folder: Folder) -> Listing:
    with folder, os.scandir(folder.path if folder.descriptor is None else folder.descriptor) as entries:
        names = sorted(f"{entry.name}/" if entry.is_dir() else entry.name for entry in entries)
        return Listing(folder.path, tuple(names))


def _suggestion(path: str) -> str:
    """Names near the missing one, from the nearest folder that exists."""
    from ferrule.support.near import near  # only a mistake pays for it

    folder, name = os.path.split(path)
    while not os.path.isdir(folder):
        folder, name = os.path.split(folder)
    try:
        names = os.listdir(folder)[:10_000]
    except OSError:
        return ""
    meant = [os.path.join(folder, one) for one in near(name, names)]
    return f". Did you mean {' or '.join(meant)}?" if meant else ""
