"""Pictures: what kind a file is, how large, and a version of it that model APIs take.

All that is learned here is learned from headers. Pixels are decoded elsewhere: in a child process (`decoder`), and
only when the header promises not too many of them.
"""

import binascii
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from ferrule.support.decoder import Limits

LONG_SIDE = 1568
"""Pixels. APIs scale down what is longer, and charge for it first."""
MOST_BYTES = 3_750_000
"""Of a picture that is sent: 5 MB of base64."""
SOURCE_BYTES = 50_000_000
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


class Fitted(NamedTuple):
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


async def fit(raw: bytes, *, original: bool = False, limits: "Limits | None" = None) -> Fitted:
    """A version of at most `LONG_SIDE` pixels and `MOST_BYTES`; with `original`, of as many pixels as it has.

    What fits already stays as it is, byte for byte, if it is whole: one cut-off image in a conversation makes an API
    refuse every later turn. Anything else is turned upright and scaled in a child process. PNG and GIF become PNG,
    as does WebP with alpha; JPEG and other WebP become JPEG. A PNG of too many bytes becomes a JPEG on white, and a
    JPEG of too many bytes is saved in lower quality and then made smaller. Of an animation the first picture is left.

    Raises: BadPicture, before anything is decoded, for too many bytes or pixels.
    """
    source_size = width, height = size(raw)
    if len(raw) > SOURCE_BYTES:
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
        return Fitted(media_type, raw, source_size, source_size)
    return await _scaled(raw, media_type, source_size, None if original else LONG_SIDE, limits)


def too_many_bytes(size_bytes: int) -> BadPicture:
    """What to raise for a file of more than `SOURCE_BYTES`; better before it is read."""
    return BadPicture(
        f"The image has {size_bytes:,} bytes; {SOURCE_BYTES:,} are the most that can be shown.",
        code="too-large-to-show",
    )


async def _scaled(
    raw: bytes, media_type: str, source_size: tuple[int, int], side: int | None, limits: "Limits | None"
) -> Fitted:
    from ferrule.support import decoder  # only what does not fit pays for it

    where = decoder.folders(["PIL"])
    if where is None:
        raise BadPicture(
            f"The image has {source_size[0]} x {source_size[1]} pixels and {len(raw):,} bytes. To be shown it must be "
            f"scaled down, and Pillow is not installed: {decoder.INSTALL}.",
            code="needs-docs",
        )
    wanted = {
        "media_type": media_type,
        "source_bytes": SOURCE_BYTES,
        "pixels": MOST_PIXELS,
        "side": side,
        "most_bytes": MOST_BYTES,
    }
    try:
        decoded = await decoder.decode("picture", raw, wanted, limits=limits or decoder.Limits(), where=where)
        said = msgspec.json.decode(decoded.said, type=_Said)
    except decoder.Undecodable as error:
        raise BadPicture(f"The image {error}") from error
    except msgspec.DecodeError as error:
        raise BadPicture("The image could not be decoded.") from error
    # Whoever took over the decoder with a hostile file could write anything.
    if kind(decoded.data) != said.media_type or size(decoded.data) != said.size or len(decoded.data) > MOST_BYTES:
        raise BadPicture("The image could not be decoded.")
    return Fitted(said.media_type, decoded.data, said.size, source_size[::-1] if said.turned else source_size)


class _Said(msgspec.Struct):
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
