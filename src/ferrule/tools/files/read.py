"""Read text files, folders, images, documents and notebooks."""

import os
from collections.abc import Mapping
from typing import Literal, NamedTuple

from ferrule import documents
from ferrule.core.access import Access
from ferrule.core.content import (
    CellOutput,
    DocumentPage,
    FileText,
    FolderListing,
    Notebook,
    Picture,
    ReadDocument,
    Unread,
)
from ferrule.core.errors import BadArguments, ToolFailure, near
from ferrule.core.tool import READS, Args, Context, Tool
from ferrule.documents import BadDocument, BadPages, BadPicture, fit, pages, ranges
from ferrule.files.jail import Jail, JailPath
from ferrule.files.ledger import Ledger
from ferrule.files.text import WHOLE_BYTES, Binary, TooFarError, Window, block, window_in, window_of
from ferrule.system import Threads
from ferrule.system.folder import Folder, describe, is_regular, read_all

Outcome = FileText | FolderListing | Picture | ReadDocument | Notebook | Unread

_PDF = b"%PDF-"
_IMAGES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF")
_HEAD_BYTES = 16

Kind = Literal["image", "document", "notebook"]
EDITABLE_BYTES = 1 << 28
"""Larger files are not edited, and nothing has to be remembered about them."""


class IndentationBlock(Args, frozen=True, kw_only=True):
    """Which lines around one of them belong together, by their indentation."""

    anchor_line: int | None = None
    max_levels: int = 0
    include_siblings: bool = False
    include_header: bool = True
    max_lines: int | None = None


class ReadArgs(Args, frozen=True, kw_only=True):
    path: str
    offset: int | None = None
    """The first line, from 1."""
    limit: int | None = None
    """How many lines."""
    pages: str | None = None
    """For a document: `3`, `1-5`."""
    page_images: bool = False
    """For a document: its pages as pictures too."""
    mode: Literal["slice", "indentation"] = "slice"
    block: IndentationBlock | None = None
    """For the mode `indentation`."""
    refuse_bytes: int | None = None
    """A larger file is not read without an offset or a limit."""
    most_bytes: int = 65_536
    """As many whole lines as fit in this come back, where somebody says how many."""
    broad_bytes: int = 40_000
    """And where nobody does: about 10,000 tokens."""
    usual_lines: int | None = 500
    most_lines: int | None = None
    ranged_bytes: int | None = None
    """Of a range no more than this comes back, where the family would cut the middle out of more."""
    number_bytes: int = 0
    """A line's number takes at least so much."""
    line_bytes: int = 4_096
    line_chars: int | None = None
    decoded: tuple[Kind, ...] = ("image", "document", "notebook")
    """What comes back as what it shows; any other file is text or binary."""
    folders: bool = True
    """May a folder be read as the list of its names?"""
    note_range: bool = True
    """Is it noted which lines these are? Not where the family says so itself."""
    mention_binary: bool = False
    """Is a binary file an answer, and not a failure?"""
    mention_empty: bool = False
    """Does the family say itself that there are no lines to show?"""
    mention_unchanged: bool = False
    """Is it enough to say so, when these lines were read before and are the same?"""


class Read(Tool[ReadArgs, Outcome]):
    """Lines of a text file, the names in a folder, an image, a document or a notebook; never waits for a pipe."""

    name = "read"
    args = ReadArgs
    title = "Read a file"
    hints = READS
    extras = ("page_images",)

    def access(self, args: ReadArgs, ctx: Context) -> tuple[Access, ...]:
        return (Access.read(ctx.path(args.path)),)

    async def run(self, args: ReadArgs, ctx: Context) -> Outcome:
        wrong = [
            f"{ctx.param(name)}: must be at least 1, not {value}."
            for name, value in (("offset", args.offset), ("limit", args.limit))
            if value is not None and value < 1
        ]
        if wrong:
            raise BadArguments("\n".join(wrong))
        place = ctx.need(Jail).place(ctx.path(args.path))
        try:
            found = await ctx.need(Threads).run(_read, place, args, ctx)
        except ToolFailure as failure:
            # Whoever is told to read it first is told this too.
            ctx.need(Ledger).record_failure(place.path, failure.message)
            raise
        if not isinstance(found, _Undecoded):
            return found

        return await decode_content(found.kind, place.path, found.raw, args, ctx)


class _Undecoded(NamedTuple):
    """Bytes that have to be decoded before anybody can read them."""

    kind: Kind
    raw: bytes


def _read(place: JailPath, args: ReadArgs, ctx: Context) -> "Outcome | _Undecoded":
    try:
        if not place.parts:
            return _listing(place.root.open().below(()), args)
        with place.folder() as folder:
            descriptor = folder.open(place.name)
            try:
                if is_regular(descriptor):
                    return _content(descriptor, place.path, args, ctx)
            finally:
                os.close(descriptor)
            return _listing(folder.below((place.name,)), args)
    except FileNotFoundError as error:
        hint = _suggestion(place.path)
        message = f"{place.path} is not there{hint or '.'}"
        raise ToolFailure(message, code="not-found", path=place.path, hint=hint) from error
    except NotADirectoryError as error:
        raise ToolFailure(f"{place.path} is neither a file nor a folder that can be read.", path=place.path) from error
    except TooFarError as error:
        raise ToolFailure(f"{error} Use a command with tail or sed.", code="too-far", path=place.path) from error
    except BlockingIOError as error:
        raise ToolFailure(
            f"{place.path} has nothing to read yet; it is not an ordinary file.", path=place.path
        ) from error
    except OSError as error:
        raise ToolFailure(f"{describe(error)}: {place.path}", path=place.path) from error


def _content(descriptor: int, path: str, args: ReadArgs, ctx: Context) -> "FileText | Unread | _Undecoded":
    size = os.fstat(descriptor).st_size
    kind = _kind(os.pread(descriptor, _HEAD_BYTES, 0), path)
    if kind is not None and kind in args.decoded:
        most = MOST_BYTES[kind]
        if size > most:
            raise ToolFailure(
                f"The {kind} has {size:,} bytes; {most:,} is the most that is decoded.",
                code="too-large-to-show",
                path=path,
            )
        raw = read_all(descriptor, most)
        if kind == "notebook":
            ctx.need(Ledger).saw(path, raw)
        return _Undecoded(kind, raw)
    if args.pages is not None:
        ctx.note(f"{ctx.param('pages')} only counts for documents with pages; this is a text file.")
    try:
        return _text(descriptor, path, size, args, ctx)
    except Binary as error:
        if args.mention_binary:
            return Unread(path, "binary", size)
        raise ToolFailure("The file is binary.", code="binary", path=path, count=size) from error


def _kind(head: bytes, path: str) -> Kind | None:
    if head.startswith(_IMAGES) and (head[:4] != b"RIFF" or head[8:12] == b"WEBP"):
        return "image"
    if head.startswith(_PDF):
        return "document"
    return "notebook" if path.lower().endswith(".ipynb") else None


def _text(descriptor: int, path: str, size: int, args: ReadArgs, ctx: Context) -> FileText | Unread:
    ranged = args.offset is not None or args.limit is not None
    if not ranged and args.refuse_bytes is not None and size > args.refuse_bytes:
        raise ToolFailure(
            f"It has {size:,} bytes: give {_range_words(ctx)} to read part of it,"
            f" for example the first {args.usual_lines or 500} lines.",
            code="too-large",
            path=path,
            count=size,
        )
    first = args.offset or 1
    lines = min((count for count in (args.limit or args.usual_lines, args.most_lines) if count), default=None)
    last = first + lines - 1 if lines is not None else 1 << 62
    raw = b""
    if size > WHOLE_BYTES:
        window = window_in(
            descriptor, first, last, line_bytes=args.line_bytes, most_bytes=args.most_bytes, over=lambda: ctx.over
        )
        if size <= EDITABLE_BYTES:
            ctx.need(Ledger).saw_at(path, descriptor)
    else:
        raw = read_all(descriptor, max(WHOLE_BYTES, size))
        ledger = ctx.need(Ledger)
        window = window_of(raw, first, last, line_bytes=args.line_bytes)
        if args.mention_unchanged and ledger.mark_shown(path, raw, (args.offset, args.limit)):
            return Unread(path, "unchanged", size)
        ledger.saw(path, raw)
    if args.mode == "indentation":
        window = _block(window, raw, args, ctx)
    return _truncate(path, window, args, ctx, final_newline=raw.endswith((b"\n", b"\r")))


def _block(window: Window, raw: bytes, args: ReadArgs, ctx: Context) -> Window:
    """The block around the anchor, instead of the lines from the offset on."""
    if window.total == 0:
        return window
    if not raw:
        raise ToolFailure(f"The file is too large to be read by indentation; give {_range_words(ctx)} alone.")
    wanted = args.block or IndentationBlock()
    anchor = window.first if wanted.anchor_line is None else wanted.anchor_line
    every = window_of(raw, 1, 1 << 62, line_bytes=1 << 62).lines
    wrong = _wrong(wanted, anchor, len(every))
    if wrong:
        raise BadArguments(f"{ctx.param('block')}: {wrong}")
    start, end = block(
        every,
        anchor,
        levels=wanted.max_levels,
        siblings=wanted.include_siblings,
        header=wanted.include_header,
        most=min(count for count in (wanted.max_lines, args.limit, args.usual_lines, len(every)) if count),
    )
    return window_of(raw, start, end, line_bytes=args.line_bytes)


def _wrong(wanted: IndentationBlock, anchor: int, total: int) -> str:
    """What makes the block one that there is not."""
    if anchor < 1 or (wanted.max_lines is not None and wanted.max_lines < 1) or wanted.max_levels < 0:
        return "anchor_line and max_lines must be at least 1, and max_levels at least 0."
    return f"the file has {total} lines; line {anchor} is past its end." if anchor > total else ""


def _truncate(path: str, window: Window, args: ReadArgs, ctx: Context, *, final_newline: bool) -> FileText:
    """As many whole lines as fit, and a note about what was left out."""
    lines, clipped = window.lines, set(window.clipped)
    if args.line_chars is not None:
        clipped |= {number for number, line in enumerate(lines, window.first) if len(line) > args.line_chars}
        lines = [line[: args.line_chars] for line in lines]
    is_ranged = args.ranged_bytes is not None and (args.offset is not None or args.limit is not None)
    kept, room = 0, args.ranged_bytes if is_ranged and args.ranged_bytes else args.most_bytes
    # The family's own bound cuts a line that alone is too long for these.
    is_first_shown = is_ranged or (args.limit is None and room > args.broad_bytes)
    if args.limit is None:
        room = min(room, args.broad_bytes)
    for number, line in enumerate(lines, window.first):
        room -= max(len(f"{number}: "), args.number_bytes) + len(line.encode(errors="replace")) + 1
        if room < 0 and not (is_first_shown and kept == 0):
            break
        kept += 1
    last = window.first + kept - 1
    of = "" if window.total is None else f" of {window.total}"
    if not lines and args.mention_empty:
        pass  # the family has its own words for it
    elif window.total == 0:
        ctx.note("The file is empty.")
    elif not lines:
        ctx.note(f"The file has {window.total} lines; line {window.first} is past its end.")
    elif args.note_range and (window.total is None or last < window.total or window.first > 1):
        ctx.note(f"These are lines {window.first} to {last}{of}. Give {_range_words(ctx)} for others.")
    if cut_lines := sum(number <= last for number in clipped):
        cut = f"{args.line_bytes:,} bytes" if args.line_chars is None else f"{args.line_chars:,} characters"
        ctx.note(f"{cut_lines} {'lines were' if cut_lines > 1 else 'line was'} cut after {cut}.")
    ends = last == window.total and final_newline
    limited = args.limit is not None and kept >= args.limit
    return FileText(path, window.first, tuple(lines[:kept]), window.total, ends, limited)


def _range_words(ctx: Context) -> str:
    return " and ".join(dict.fromkeys((ctx.param("offset"), ctx.param("limit"))))


def _listing(folder: Folder, args: ReadArgs) -> FolderListing:
    with folder, os.scandir(folder.path if folder.descriptor is None else folder.descriptor) as entries:
        if not args.folders:
            raise ToolFailure(
                f"{folder.path} is a folder. List it with a command or a tool for that.",
                code="is-folder",
                path=folder.path,
            )
        names = sorted(f"{entry.name}/" if entry.is_dir() else entry.name for entry in entries)
        return FolderListing(folder.path, tuple(names))


def _suggestion(path: str) -> str:
    """Names near the missing one, from the nearest folder that exists."""
    folder, name = os.path.split(path)
    while not os.path.isdir(folder):
        folder, name = os.path.split(folder)
    try:
        names = os.listdir(folder)[:10_000]
    except OSError:
        return ""
    meant = [os.path.join(folder, one) for one in near(name, names)]
    return f". Did you mean {' or '.join(meant)}?" if meant else ""


MOST_BYTES: Mapping["Kind", int] = {"image": 50_000_000, "document": 100_000_000, "notebook": 50_000_000}
"""Larger files are refused before anything looks into them."""
MOST_PICTURES = 20
PICTURE_BYTES = 7_500_000
"""Of all pictures in a notebook that are shown together: they must fit into one turn of a model."""


async def decode_content(
    kind: "Kind", path: str, raw: bytes, wanted: "ReadArgs", ctx: Context
) -> Picture | ReadDocument | Notebook:
    """The content as an outcome. Raises `ToolFailure` for what cannot be decoded within the limits."""
    if kind == "notebook":
        return await _with_pictures(await ctx.need(Threads).run(_notebook, path, raw, wanted))
    if kind == "document":
        return await _document(path, raw, wanted, ctx)

    try:
        fitted = await fit(raw)
    except BadPicture as error:
        raise ToolFailure(f"{error}", code=error.code, path=path) from error
    if fitted.note:
        ctx.note(fitted.note)
    return Picture(path, fitted.media_type, fitted.data)


async def _document(path: str, raw: bytes, wanted: "ReadArgs", ctx: Context) -> ReadDocument:

    try:
        found = await pages(raw, wanted.pages, images=wanted.page_images)
    except BadPages as error:
        raise BadArguments(f"{ctx.param('pages')}: {error}") from error
    except BadDocument as error:
        raise ToolFailure(f"{error}", code=error.code, path=path) from error
    last = max((end or 0 for _, end in ranges(wanted.pages)), default=0) if wanted.pages else 0
    if last > found.total:
        ctx.note(f"The document has {found.total} pages; there is none after that.")
    leaves = (
        DocumentPage(leaf.number, leaf.text, Picture(path, leaf.media_type, leaf.data) if leaf.data else None)
        for leaf in found.pages
    )
    return ReadDocument(path, tuple(leaves), found.total)


def _notebook(path: str, raw: bytes, wanted: "ReadArgs") -> Notebook:
    from ferrule.files.notebook import BadNotebook, read_notebook  # for notebooks

    try:
        notebook = read_notebook(path, raw)
    except BadNotebook as error:
        raise ToolFailure(f"{os.path.basename(path)}: {error}", code="bad-notebook", path=path) from error
    first = wanted.offset or 1
    last = len(notebook.cells) if wanted.limit is None else first + wanted.limit - 1
    return notebook._replace(cells=notebook.cells[first - 1 : last], first=first, total=len(notebook.cells))


async def _with_pictures(notebook: Notebook) -> Notebook:
    """The notebook with its pictures as model APIs take them, and those that they would not take left out."""
    drawn = [output for cell in notebook.cells for output in cell.outputs if output.picture is not None]
    if not drawn:
        return notebook
    fitted: dict[int, CellOutput] = {}
    room = PICTURE_BYTES
    for at, output in enumerate(drawn):
        fitted[id(output)] = shown = await _fit_output(output, room if at < MOST_PICTURES else 0)
        room -= len(shown.picture.data) if shown.picture is not None else 0
    cells = (
        cell._replace(outputs=tuple(fitted.get(id(output), output) for output in cell.outputs))
        for cell in notebook.cells
    )
    return notebook._replace(cells=tuple(cells))


async def _fit_output(output: CellOutput, room: int) -> CellOutput:

    assert output.picture is not None
    why = "There is no room for another picture."
    try:
        fitted = await fit(output.picture.data) if room > 0 else None
    except BadPicture as error:
        fitted, why = None, str(error)
    if fitted is not None and len(fitted.data) <= room:
        return output._replace(picture=Picture(output.picture.path, fitted.media_type, fitted.data))
    return CellOutput(f"{output.text}\n[A picture is left out. {why}]".lstrip("\n"))


class ViewImageArgs(Args, frozen=True, kw_only=True):
    path: str
    original: bool = False
    """Keep the resolution, as far as the API's limits allow."""


class ViewImage(Tool[ViewImageArgs, Picture]):
    """An image, scaled down to what model APIs take."""

    name = "view_image"
    args = ViewImageArgs
    title = "Look at a picture"
    hints = READS

    def access(self, args: ViewImageArgs, ctx: Context) -> tuple[Access, ...]:
        return (Access.read(ctx.path(args.path)),)

    async def run(self, args: ViewImageArgs, ctx: Context) -> Picture:
        place = ctx.need(Jail).place(ctx.path(args.path))
        try:
            raw = await ctx.need(Threads).run(_raw, place)
            fitted = await documents.fit(raw, original=args.original)
        except documents.BadPicture as error:
            raise ToolFailure(str(error), code=error.code, path=place.path) from error
        if fitted.note:
            ctx.note(fitted.note)
        return Picture(place.path, fitted.media_type, fitted.data)


def _raw(place: JailPath) -> bytes:
    path = place.path
    try:
        with place.folder() as folder:
            # The workspace itself has no name in a folder; `.` is then what is opened, and is no file.
            descriptor = folder.open(place.name if place.parts else os.curdir)
            try:
                return _picture_content(descriptor, path)
            finally:
                os.close(descriptor)
    except FileNotFoundError as error:
        raise ToolFailure(f"{path} is not there.", code="not-found", path=path) from error
    except OSError as error:
        raise ToolFailure(f"{describe(error)}: {path}", path=path) from error


def _picture_content(descriptor: int, path: str) -> bytes:
    if not is_regular(descriptor):
        raise ToolFailure(f"{path} is not a file, so it is no image.", code="not-an-image", path=path)
    if documents.kind(os.pread(descriptor, 16, 0)) is None:
        raise ToolFailure(f"{path} is not a PNG, JPEG, GIF or WebP image.", code="not-an-image", path=path)
    size_bytes = os.fstat(descriptor).st_size
    if size_bytes > documents.PICTURE_BYTES:
        raise documents.too_many_bytes(size_bytes)
    return read_all(descriptor, documents.PICTURE_BYTES)
