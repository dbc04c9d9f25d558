"""Read pictures and PDF documents, decode them in a child process, and make versions that model APIs take.

The child runs as the same user, with limits on memory, time and output. On Linux it also closes itself in before it
reads the file: it opens no other file and no connection. Elsewhere, and on kernels without Landlock, it could reach
what the user can.

Everything that is learned here about pictures is learned from headers. Pixels and PDF pages are decoded in a child
process (`decoder`), and pixels only if the header promises not too many of them.
"""

import asyncio
import binascii
import contextlib
import functools
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import msgspec

INSTALL = "pip install 'ferrule[docs]'"
"""How a user gets the libraries that decode."""

_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "worker.py")
_KEPT = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")
"""What some interpreters do not start without."""
_AT_ONCE = 4
_GONE_SECONDS = 2.0
# Exit codes of the child.
_DAMAGED = 1
_UNLOADED = 4


class DecoderLimits(NamedTuple):
    """What one child may use up."""

    seconds: int = 30
    """By the clock, and of processor time."""
    memory_bytes: int = 1 << 30
    output_bytes: int = 32 << 20


class Undecodable(ValueError):  # noqa: N818 - the state of the file, as a tool reports it
    """The file did not decode. The message begins with a verb: the file's name goes before it."""


class Decoded(NamedTuple):
    """What the child said, and the bytes that it gave."""

    said: bytes
    data: bytes


def folders(modules: Iterable[str]) -> list[str] | None:
    """Where these packages are installed; None where one of them is not."""
    from importlib.util import find_spec  # only a file that must be decoded pays for it

    found: list[str] = []
    for name in modules:
        spec = find_spec(name)
        places = None if spec is None else spec.submodule_search_locations
        if not places:
            return None
        found.append(os.path.dirname(os.path.abspath(next(iter(places)))))
    return list(dict.fromkeys(found))


def environment() -> dict[str, str]:
    """All that a child gets of the engine's."""
    return {name: os.environ[name] for name in _KEPT if name in os.environ}


async def decode(
    task: str, raw: bytes, wanted: Mapping[str, Any], *, limits: DecoderLimits, where: Iterable[str]
) -> Decoded:
    """Let a child do `task` on a file's bytes, with packages from the folders `where`.

    It gets no environment, no folder and no descriptor but its pipes. However this ends, also by cancellation, the
    child is killed and reaped.

    Raises: Undecodable.
    """
    order = {
        **wanted,
        "task": task,
        "folders": list(where),
        "seconds": limits.seconds,
        "memory_bytes": limits.memory_bytes,
        "rules": rules().hex(),
    }
    argv = (sys.executable, "-I", "-S", _PROGRAM, json.dumps(order))
    # A group of its own: an interrupt from the keyboard is the engine's to handle.
    apart: dict[str, Any] = {"process_group": 0} if os.name == "posix" else {}
    loop = asyncio.get_running_loop()
    async with _turns(loop):
        heard = _Heard(limits.output_bytes)
        try:
            transport, _ = await loop.subprocess_exec(
                lambda: heard,
                *argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                cwd=os.path.abspath(os.sep),
                env=environment(),
                **apart,
            )
        except OSError as error:
            raise Undecodable(f"could not be decoded: the decoder does not start ({error.strerror}).") from error
        try:
            feed = transport.get_pipe_transport(0)
            assert isinstance(feed, asyncio.WriteTransport)
            feed.write(raw)
            feed.close()  # once all of it is written
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(limits.seconds):
                    await heard.over.wait()
        finally:
            transport.close()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_GONE_SECONDS):
                    await heard.over.wait()
        exit_code = transport.get_returncode()
    if exit_code == _DAMAGED:
        raise Undecodable("is damaged, or not what it claims to be.")
    if exit_code == _UNLOADED:
        raise Undecodable(f"could not be decoded: the libraries for it do not load. Try {INSTALL} again.")
    if exit_code != 0 or heard.too_much:
        memory = f"{limits.memory_bytes / (1 << 20):,.0f} MiB"
        raise Undecodable(f"could not be decoded within the limits of {limits.seconds} seconds and {memory} of memory.")
    said, _, data = bytes(heard.output).partition(b"\n")
    return Decoded(said, data)


@functools.cache
def rules() -> bytes:
    """The system calls that the child denies itself; nothing where they cannot be named."""
    if sys.platform != "linux":
        return b""
    from ferrule.sandbox import kernel  # only a file that must be decoded pays for it

    with contextlib.suppress(OSError):
        return kernel.native(network=False, unix_sockets=False)
    return b""


class _Heard(asyncio.SubprocessProtocol):
    """What the child has written so far, and whether it is gone."""

    def __init__(self, most_bytes: int) -> None:
        self.output = bytearray()
        self.too_much = False
        self.over = asyncio.Event()
        """The process is reaped and its pipes are closed."""
        self._most_bytes = most_bytes
        self._transport: asyncio.SubprocessTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:  # noqa: ARG002 - only standard output is a pipe to read
        if len(self.output) + len(data) <= self._most_bytes:
            self.output += data
        elif not self.too_much:
            self.too_much = True
            assert self._transport is not None
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - however it ended, it is over
        self.over.set()


_TURNS: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


def _turns(loop: asyncio.AbstractEventLoop) -> asyncio.Semaphore:
    """Who may decode: twenty pictures at once must not take twenty times the memory."""
    return _TURNS.setdefault(loop, asyncio.Semaphore(_AT_ONCE))


LONG_SIDE = 1568
"""Pixels. APIs scale down what is longer, and charge for it first."""
MOST_BYTES = 3_750_000
"""Of a picture that is sent: 5 MB of base64."""
PICTURE_BYTES = 50_000_000
"""Of a file that is scaled down."""
MOST_SIDE = 8_000
MOST_PIXELS = 50_000_000

_PNG = b"\x89PNG\r\n\x1a\n"
_STEPS = 100_000
"""Parts of one file that are looked at: a file of nothing but tiny parts must not hold up the event loop."""


class BadPicture(ValueError):  # noqa: N818 - the state of the file, as a tool reports it
    """The picture cannot be shown. The message is a whole sentence."""

    def __init__(self, message: str, *, code: str = "bad-image") -> None:
        super().__init__(message)
        self.code = code
        """`bad-image`, `too-large-to-show` or `needs-docs`."""


class FittedPicture(NamedTuple):
    """A picture that an API takes."""

    media_type: str
    data: bytes
    size: tuple[int, int]
    """Its width and height."""
    source_size: tuple[int, int]
    """Those of the file, held upright."""

    @property
    def note(self) -> str:
        """What a reader who counts pixels should know; empty where nothing was scaled."""
        (width, height), (shown_width, shown_height) = self.source_size, self.size
        if self.size == self.source_size:
            return ""
        return f"The image was scaled from {width} x {height} to {shown_width} x {shown_height} pixels."


def kind(head: bytes) -> str | None:
    """The media type by the first 12 bytes; None for everything but PNG, JPEG, GIF and WebP."""
    if head.startswith(_PNG):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return None


def size(raw: bytes) -> tuple[int, int]:
    """Width and height, from the header alone.

    Raises: BadPicture.
    """
    readers = {"image/png": _png_size, "image/jpeg": _jpeg_size, "image/gif": _gif_size, "image/webp": _webp_size}
    media_type = kind(raw)
    if media_type is None:
        raise BadPicture("The file is not a PNG, JPEG, GIF or WebP image.")
    width, height = readers[media_type](raw)
    if width < 1 or height < 1:
        raise BadPicture(f"The image is damaged: its header says {width} x {height} pixels.")
    return width, height


async def fit(raw: bytes, *, original: bool = False, limits: "DecoderLimits | None" = None) -> FittedPicture:
    """A version of at most `LONG_SIDE` pixels and `MOST_BYTES`; with `original`, of as many pixels as it has.

    What fits already stays as it is, byte for byte, if it is whole: one cut-off image in a conversation makes an API
    refuse every later turn. Anything else is turned upright and scaled in a child process. PNG and GIF become PNG,
    as does WebP with alpha; JPEG and other WebP become JPEG. A PNG of too many bytes becomes a JPEG on white, and a
    JPEG of too many bytes is saved in lower quality and then made smaller. Of an animation the first picture is left.

    Raises: BadPicture, before anything is decoded, for too many bytes or pixels.
    """
    source_size = width, height = size(raw)
    if len(raw) > PICTURE_BYTES:
        raise too_many_bytes(len(raw))
    if max(width, height) > MOST_SIDE or width * height > MOST_PIXELS:
        raise BadPicture(
            f"The image has {width} x {height} pixels; "
            f"{MOST_SIDE} on a side and {MOST_PIXELS:,} in all are the most that can be shown.",
            code="too-large-to-show",
        )
    media_type = str(kind(raw))
    if len(raw) <= MOST_BYTES and (original or max(width, height) <= LONG_SIDE):
        if not _is_whole(media_type, raw):
            raise BadPicture("The image is cut off: its end is missing.")
        return FittedPicture(media_type, raw, source_size, source_size)
    return await _scale_picture(raw, media_type, source_size, None if original else LONG_SIDE, limits)


def too_many_bytes(size_bytes: int) -> BadPicture:
    """What to raise for a file of more than `SOURCE_BYTES`; better before it is read."""
    return BadPicture(
        f"The image has {size_bytes:,} bytes; {PICTURE_BYTES:,} are the most that can be shown.",
        code="too-large-to-show",
    )


async def _scale_picture(
    raw: bytes, media_type: str, source_size: tuple[int, int], side: int | None, limits: "DecoderLimits | None"
) -> FittedPicture:

    where = folders(["PIL"])
    if where is None:
        raise BadPicture(
            f"The image has {source_size[0]} x {source_size[1]} pixels and {len(raw):,} bytes. To be shown it must be "
            f"scaled down, and Pillow is not installed: {INSTALL}.",
            code="needs-docs",
        )
    wanted = {
        "media_type": media_type,
        "source_bytes": PICTURE_BYTES,
        "pixels": MOST_PIXELS,
        "side": side,
        "most_bytes": MOST_BYTES,
    }
    try:
        decoded = await decode("picture", raw, wanted, limits=limits or DecoderLimits(), where=where)
        said = msgspec.json.decode(decoded.said, type=_PictureReply)
    except Undecodable as error:
        raise BadPicture(f"The image {error}") from error
    except msgspec.DecodeError as error:
        raise BadPicture("The image could not be decoded.") from error
    # Whoever took over the decoder with a hostile file could write anything.
    if kind(decoded.data) != said.media_type or size(decoded.data) != said.size or len(decoded.data) > MOST_BYTES:
        raise BadPicture("The image could not be decoded.")
    return FittedPicture(said.media_type, decoded.data, said.size, source_size[::-1] if said.turned else source_size)


class _PictureReply(msgspec.Struct):
    media_type: str
    size: tuple[int, int]
    turned: bool


def _number(raw: bytes, at: int, count: int, *, big: bool = False) -> int:
    piece = raw[at : at + count]
    if len(piece) < count:
        raise BadPicture("The image is cut off inside its header.")
    return int.from_bytes(piece, "big" if big else "little")


def _png_size(raw: bytes) -> tuple[int, int]:
    if raw[8:16] != b"\0\0\0\x0dIHDR"[: len(raw) - 8]:
        raise BadPicture("The image is damaged: a PNG begins with its header.")
    width, height, check = (_number(raw, at, 4, big=True) for at in (16, 20, 29))
    if binascii.crc32(raw[12:29]) != check or max(width, height) >= 1 << 31:
        raise BadPicture("The image is damaged: its header is not what was written.")
    return width, height


def _gif_size(raw: bytes) -> tuple[int, int]:
    return _number(raw, 6, 2), _number(raw, 8, 2)


def _webp_size(raw: bytes) -> tuple[int, int]:
    chunk = raw[12:16]
    if chunk == b"VP8X":
        return 1 + _number(raw, 24, 3), 1 + _number(raw, 27, 3)
    if chunk == b"VP8L":
        bits = _number(raw, 21, 4)
        if raw[20] == 0x2F:
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    elif chunk == b"VP8 ":
        width, height = _number(raw, 26, 2), _number(raw, 28, 2)
        if raw[23:26] == b"\x9d\x01\x2a":
            return width & 0x3FFF, height & 0x3FFF
    raise BadPicture("The image is damaged or cut off: it has no WebP header that is known.")


def _jpeg_size(raw: bytes) -> tuple[int, int]:
    for marker, at in _jpeg_segments(raw):
        if 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:
            return _number(raw, at + 5, 2, big=True), _number(raw, at + 3, 2, big=True)
    raise BadPicture("The image is damaged: it has no header with its size.")


def _jpeg_segments(raw: bytes) -> Iterator[tuple[int, int]]:
    """Markers with a length, and where that stands, up to the first scan."""
    at = 2
    for _ in range(_STEPS):
        if _number(raw, at, 1) != 0xFF:
            raise BadPicture("The image is damaged: there is no marker where one must be.")
        marker = _number(raw, at + 1, 1)
        if marker == 0xFF:  # padding
            at += 1
        elif marker == 0x01 or 0xD0 <= marker <= 0xD8:
            at += 2
        elif marker in {0x00, 0xD9}:
            return
        else:
            yield marker, at + 2
            if marker == 0xDA:
                return
            length = _number(raw, at + 2, 2, big=True)
            if length < 2:
                raise BadPicture("The image is damaged: a part of it has no length.")
            at += 2 + length


def _is_whole(media_type: str, raw: bytes) -> bool:
    """Does the file reach its own end? What stands behind that does not matter."""
    try:
        if media_type == "image/png":
            return _png_ends(raw)
        if media_type == "image/gif":
            return _gif_ends(raw)
        if media_type == "image/webp":
            return 8 + _number(raw, 4, 4) <= len(raw)
        return any(marker == 0xDA and raw.find(b"\xff\xd9", at) > 0 for marker, at in _jpeg_segments(raw))
    except BadPicture:
        return False


def _png_ends(raw: bytes) -> bool:
    at = 8
    for _ in range(_STEPS):
        length = _number(raw, at, 4, big=True)
        if raw[at + 4 : at + 8] == b"IEND":
            return at + 12 + length <= len(raw)
        at += 12 + length
    return False


def _gif_ends(raw: bytes) -> bool:
    at = 13 + _gif_colours(_number(raw, 10, 1))
    steps = iter(range(_STEPS))
    for _ in steps:
        block = _number(raw, at, 1)
        if block == 0x3B:
            return True
        if block == 0x21:
            at += 2
        elif block == 0x2C:
            at += 11 + _gif_colours(_number(raw, at + 9, 1))
        else:
            return False
        for _ in steps:  # the pieces of its data, up to an empty one
            length = _number(raw, at, 1)
            at += 1 + length
            if not length:
                break
    return False


def _gif_colours(flags: int) -> int:
    """Bytes of the table of colours that follows."""
    return 6 << (flags & 7) if flags & 0x80 else 0


DOCUMENT_BYTES = 100_000_000
MOST_PAGES = 20
"""That are given at once."""
MOST_UNASKED = 10
"""A longer document must be asked for by pages."""
PAGE_CHARS = 50_000
"""Of a page's text; what is longer is cut, and says so."""
PAGE_PICTURE_BYTES = 1_000_000
"""Of a page's picture: twenty of them must fit into one turn of a model."""
LIMITS = DecoderLimits(seconds=60)

_MANY = f"at most {MOST_PAGES} pages can be read at once."
_RANGE = r"([0-9]{1,7})(?:(\s*-\s*)([0-9]{1,7})?)?"


class BadDocument(ValueError):  # noqa: N818 - the state of the file, as a tool reports it
    """The document cannot be read. The message is a whole sentence."""

    def __init__(self, message: str, *, code: str = "bad-document") -> None:
        super().__init__(message)
        self.code = code
        """`bad-document`, `encrypted`, `too-large-to-show` or `needs-docs`."""


class BadPages(ValueError):  # noqa: N818 - the reader is a model
    """Those pages cannot be given. The message goes behind the name of the argument and a colon."""


class Leaf(NamedTuple):
    """One page."""

    number: int
    text: str
    media_type: str = ""
    """Of the picture; empty where there is none."""
    data: bytes = b""


class Pages(NamedTuple):
    """Some pages, in the order in which they were asked for."""

    pages: tuple[Leaf, ...]
    total: int
    """How many the document has."""


def is_pdf(head: bytes) -> bool:
    """Do these first bytes begin a PDF?"""
    return head.startswith(b"%PDF-")


def ranges(text: str) -> tuple[tuple[int, int | None], ...]:
    """First and last page of each part of `3`, `1-5`, `10-` or `1,3-4`; None is the end of the document.

    Raises: BadPages.
    """
    found: list[tuple[int, int | None]] = []
    parts = text.split(",")
    if len(parts) > MOST_PAGES:
        raise BadPages(_MANY)
    for part in parts:
        match = re.fullmatch(_RANGE, part.strip())
        if match is None:
            raise BadPages(f'{part.strip()[:40]!r} names no pages; write for example "3", "1-5" or "1,3-4".')
        first = int(match[1])
        last = first if match[2] is None else int(match[3]) if match[3] else None
        if first < 1:
            raise BadPages("pages are counted from 1.")
        if last is not None and last < first:
            raise BadPages(f"the end {last} lies before the start {first}.")
        found.append((first, last))
    if sum(1 if last is None else last - first + 1 for first, last in found) > MOST_PAGES:
        raise BadPages(_MANY)
    return tuple(found)


async def pages(
    raw: bytes, wanted: str | None = None, *, images: bool = False, limits: DecoderLimits = LIMITS
) -> Pages:
    """The pages `wanted` (as `ranges` reads them) of a PDF, or all of a short one.

    A page comes with its picture when `images` are asked for, or when it has something on it but no text. A range
    that ends behind the last page ends with it.

    Raises: BadDocument, BadPages.
    """
    chosen = None if wanted is None else ranges(wanted)
    if len(raw) > DOCUMENT_BYTES:
        raise BadDocument(
            f"The document has {len(raw):,} bytes; {DOCUMENT_BYTES:,} are the most that can be read.",
            code="too-large-to-show",
        )
    where = folders(["pypdfium2", "PIL"])
    pictures = "all" if images else "textless"
    if where is None and not images:
        where, pictures = folders(["pypdfium2"]), ""
    if where is None:
        raise BadDocument(
            f"The libraries that read PDF and draw its pages are not installed: {INSTALL}.", code="needs-docs"
        )
    order = {
        "ranges": chosen,
        "pictures": pictures,
        "side": LONG_SIDE,
        "most_bytes": PAGE_PICTURE_BYTES,
        "most_pages": MOST_PAGES,
        "most_unasked": MOST_UNASKED,
        "page_chars": PAGE_CHARS,
        "source_bytes": DOCUMENT_BYTES,
    }
    try:
        decoded = await decode("pages", raw, order, limits=limits, where=where)
        said = msgspec.json.decode(decoded.said, type=_DocumentReply)
        if said.wrong:
            raise _refusal(said)
        return Pages(_leaves(said, decoded.data), said.total)
    except Undecodable as error:
        raise BadDocument(f"The document {error}") from error
    except (msgspec.DecodeError, BadPicture) as error:
        raise BadDocument("The document could not be decoded.") from error


class _DocumentPage(msgspec.Struct):
    number: int
    text: str
    media_type: str = ""
    size_bytes: int = 0


class _DocumentReply(msgspec.Struct):
    wrong: str = ""
    total: int = 0
    number: int = 0
    pages: tuple[_DocumentPage, ...] = ()


def _leaves(said: _DocumentReply, data: bytes) -> tuple[Leaf, ...]:
    """The pages, if what the child said is true of its bytes: it may have been taken over."""
    found: list[Leaf] = []
    at = 0
    for row in said.pages[:MOST_PAGES]:
        drawn = data[at : at + max(0, row.size_bytes)]
        at += len(drawn)
        if drawn and (kind(drawn) != row.media_type or max(size(drawn)) > LONG_SIDE or len(drawn) > PAGE_PICTURE_BYTES):
            raise BadPicture("A page's picture is not what was asked for.")
        found.append(Leaf(row.number, row.text[: PAGE_CHARS + 200], row.media_type if drawn else "", drawn))
    return tuple(found)


def _refusal(said: _DocumentReply) -> BadDocument | BadPages:
    have = f"the document has {said.total} page{'' if said.total == 1 else 's'}"
    if said.wrong == "encrypted":
        return BadDocument("The document is encrypted: it cannot be read without its password.", code="encrypted")
    if said.wrong == "unasked":
        return BadPages(f'{have}; name those to read, at most {MOST_PAGES}, for example "1-5".')
    if said.wrong == "past":
        return BadPages(f"{have}, and none after that.")
    if said.wrong == "many":
        return BadPages(f"{_MANY[:-1]}, and {have}.")
    if said.wrong == "page":
        return BadDocument(f"Page {said.number} of {said.total} is damaged; others may be readable.")
    return BadDocument("The document is damaged, or not a PDF.")
