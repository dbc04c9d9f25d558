"""Read, unpack and decode the body of a web response within limits.

The size is bounded both packed and unpacked, whatever the server announces. What the first bytes show counts
more than the media type that the server claims.
"""

import codecs
import contextlib
import functools
import re
import zlib
from collections.abc import AsyncIterable, Callable, Generator, Iterable, Iterator, Mapping
from typing import Literal

from ferrule import documents
from ferrule.sandbox.web_address import CutOff, WebError

Tell = Callable[[str], None]
Headers = Mapping[str, str]

ENCODINGS = "gzip, deflate"
"""What is offered to sites: what can be unpacked here under a limit."""
_MOST_LAYERS = 2
_MOST_MEMBERS = 1000
"""Files in one gzip: in few bytes there can be many that hold nothing, and each takes its time."""
_STEP_BYTES = 1 << 16
_TELL_SECONDS = 0.3
_TEXTS = frozenset(
    (
        *("json", "xml", "javascript", "x-javascript", "ecmascript", "typescript", "yaml", "x-yaml", "toml", "x-toml"),
        *("x-ndjson", "ndjson", "jsonlines", "graphql", "sql", "x-sh", "x-httpd-php", "x-www-form-urlencoded", "rtf"),
        *("x-tex", "x-latex", "x-python"),
    )
)
"""Kinds of `application/` that are text."""


class Body:
    """What has come of a body so far."""

    def __init__(self, name: str, *, most_bytes: int, tell: Tell | None, clock: Callable[[], float]) -> None:
        self.name = name
        self.data = bytearray()
        self.is_over = False
        """Where only the beginning is wanted: is there more?"""
        self._most_bytes = most_bytes
        self._wire_bytes = 0
        self._tell = tell
        self._clock = clock
        self._told = clock()

    async def read(self, pieces: AsyncIterable[bytes], headers: Headers, *, beginning: bool = False) -> None:
        """All of it, or with `beginning` no more than is allowed. Raises WebError."""
        self._refuse_announced(headers, beginning=beginning)
        unpack = unpacker(headers, self.name, self._most_bytes)
        iterator = aiter(pieces)
        try:
            async for piece in iterator:
                self._wire_bytes += len(piece)
                for part in unpack.feed(piece):
                    self.data += part
                    if len(self.data) > self._most_bytes and self._full(beginning=beginning):
                        return
                if self._wire_bytes > self._most_bytes and self._full(beginning=beginning):
                    return
                self._progress()
        finally:
            close = getattr(iterator, "aclose", None)
            if close is not None:
                await close()
        if not unpack.is_complete:
            raise CutOff(f"What {self.name} sent ends in the middle of its packing.")

    def _refuse_announced(self, headers: Headers, *, beginning: bool) -> None:
        announced = headers.get("content-length", "").strip()
        if announced.isascii() and announced.isdigit() and not beginning and _more(announced, self._most_bytes):
            raise too_large(self.name, self._most_bytes)

    def _full(self, *, beginning: bool) -> bool:
        if not beginning:
            raise too_large(self.name, self._most_bytes)
        del self.data[self._most_bytes :]
        self.is_over = True
        return True

    def _progress(self) -> None:
        if self._tell is not None and self._clock() - self._told >= _TELL_SECONDS:
            self._told = self._clock()
            self._tell(f"{len(self.data):,} bytes of {self.name} so far")


class Layer:
    """One packing, taken off under a limit."""

    def __init__(self, name: str, kind: str, most_bytes: int) -> None:
        self._name = name
        self._is_gzip = kind == "gzip"
        self._left = most_bytes
        self._most_bytes = most_bytes
        self._unpacking = zlib.decompressobj(31) if self._is_gzip else None
        self._is_done = False
        self._has_begun = False
        self._members = 1

    @property
    def is_complete(self) -> bool:
        return self._is_done or not self._has_begun

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What a piece unpacks to, in small steps. Raises WebError."""
        while data:
            if self._is_done:
                # A gzip file may be several, one after the other; anything else behind the end is padding.
                if not self._is_gzip or not data.startswith(b"\x1f"):
                    return
                self._members += 1
                if self._members > _MOST_MEMBERS:
                    raise WebError(f"What {self._name} sent is packed in too many pieces.", "bad-answer")
                self._unpacking = zlib.decompressobj(31)
                self._is_done = False
            if self._unpacking is None:
                # Some sites leave the wrapping of zlib off. Its first byte says which it is.
                self._unpacking = zlib.decompressobj(15 if data[0] & 0x0F == 8 else -15)
            self._has_begun = True
            size_bytes = yield from self._step(data)
            self._is_done = self._unpacking.eof
            data = self._unpacking.unused_data if self._is_done else self._unpacking.unconsumed_tail
            if not data and not self._is_done and size_bytes == _STEP_BYTES:
                yield from self._rest()

    def _rest(self) -> Iterator[bytes]:
        """What is still inside when all has gone in."""
        assert self._unpacking is not None
        while (yield from self._step(b"")) == _STEP_BYTES:
            pass
        self._is_done = self._unpacking.eof

    def _step(self, data: bytes) -> Generator[bytes, None, int]:
        """What comes out at once, and how much that is."""
        assert self._unpacking is not None
        try:
            part = self._unpacking.decompress(data, _STEP_BYTES)
        except zlib.error as error:
            raise WebError(f"What {self._name} sent cannot be unpacked.", "bad-answer") from error
        self._left -= len(part)
        if part:
            yield part
        if self._left < 0:
            raise too_large(self._name, self._most_bytes)
        return len(part)


class DecoderChain:
    """All packings of a body, the outermost first."""

    def __init__(self, layers: Iterable[Layer]) -> None:
        self._layers = tuple(layers)

    @property
    def is_complete(self) -> bool:
        return all(layer.is_complete for layer in self._layers)

    def feed(self, piece: bytes) -> Iterator[bytes]:
        parts: Iterable[bytes] = (piece,)
        for layer in self._layers:
            parts = _feed_parts(layer, parts)
        return iter(parts)


def unpacker(headers: Headers, name: str, most_bytes: int) -> DecoderChain:
    """What takes the packing off that the headers name. Raises WebError."""
    named = [each.strip().lower().removeprefix("x-") for each in headers.get("content-encoding", "").split(",")]
    kinds = [each for each in named if each not in {"", "identity"}]
    if len(kinds) > _MOST_LAYERS or any(each not in {"gzip", "deflate"} for each in kinds):
        shown = ascii(", ".join(kinds)[:80])
        raise WebError(f"{name} sent its answer packed as {shown}, which was not asked for.", "bad-answer")
    return DecoderChain(Layer(name, kind, most_bytes) for kind in reversed(kinds))


def too_large(name: str, most_bytes: int) -> WebError:
    most = f"{round(most_bytes / (1 << 20), 2):g} MB"
    return WebError(
        f"{name} is larger than {most}, which is the most that is fetched (setting web.most_mb).", "too-large"
    )


def media_type(headers: Headers) -> tuple[str, str]:
    """The kind of a body and its character set, as the headers say."""
    kind, *parameters = headers.get("content-type", "").split(",")[-1].split(";")
    charset = ""
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            charset = value.strip().strip("\"'").lower()[:40]
            break
    return kind.strip().lower()[:100], charset


def is_text(kind: str, data: bytes | bytearray) -> bool:
    """Is a part of it of use by itself?"""
    if not kind:
        return b"\0" not in data
    return (
        kind.startswith("text/")
        or kind.removeprefix("application/") in _TEXTS
        or kind.endswith(("+json", "+xml", "+yaml", "+text"))
    )


def _feed_parts(layer: Layer, parts: Iterable[bytes]) -> Iterator[bytes]:
    for part in parts:
        yield from layer.feed(part)


def _more(announced: str, most_bytes: int) -> bool:
    with contextlib.suppress(ValueError):  # a number with thousands of digits is none
        return int(announced) > most_bytes
    return True


Kind = Literal["page", "text", "data", "document", "picture", "binary"]

_HEAD_BYTES = 8192
_META_BYTES = 4096
"""So far into a page its charset may be told."""
_HTML = ("text/html", "application/xhtml+xml")
_VAGUE = (
    "",
    "application/octet-stream",
    "binary/octet-stream",
    "application/x-unknown-content-type",
    "unknown/unknown",
)
"""What servers say when they do not know."""
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""The longer before the shorter one that it begins with."""
_OTHER_NAMES = {
    # What sites call by these names is what Windows made of them, and every browser reads it so.
    "iso-8859-1": "cp1252",
    "latin1": "cp1252",
    "latin-1": "cp1252",
    "us-ascii": "cp1252",
    "ascii": "cp1252",
    "iso-8859-9": "cp1254",
    "tis-620": "cp874",
    "shift_jis": "cp932",
    "shift-jis": "cp932",
    "sjis": "cp932",
    "x-sjis": "cp932",
    "windows-31j": "cp932",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc-kr": "cp949",
    "ks_c_5601-1987": "cp949",
    "macintosh": "mac_roman",
    "x-mac-roman": "mac_roman",
}
_CONTROLS = frozenset(range(32)) - frozenset(b"\t\n\f\r\x1b\b")
_MOST_CONTROLS = 0.02
_MOST_CONTROLS_TOLD = 0.1
"""The same of what the server says is text."""
_FEW_CONTROLS = 3
"""So many may be in such a text, however short it is, but no more than a quarter of it."""


def detect_kind(raw: bytes, media_type: str) -> Kind:
    """What it is. A media type that the bytes belie is not believed."""
    head = raw[:_HEAD_BYTES]
    if documents.is_pdf(head):
        return "document"
    if documents.kind(head) is not None:
        return "picture"
    if not _is_text(head, lenient=media_type.startswith("text/")):
        return "binary"
    if media_type in _HTML:
        return "page" if _tag().search(raw) else _plain_kind(head, "")
    if media_type in _VAGUE and _is_page(head):
        return "page"
    return _plain_kind(head, media_type)


def decode_text(raw: bytes, charset: str, kind: Kind) -> str:
    """The characters. The mark at the beginning is believed first, then the server, then the page itself."""
    for mark, encoding in _MARKS:
        if raw.startswith(mark):
            return raw.decode(encoding, "replace")
    told = (charset, _find_charset(raw) if kind in {"page", "text"} else "")
    for encoding in filter(None, map(_encoding, told)):
        return raw.decode(encoding, "replace")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        # A text that was cut off may end in the middle of a character.
        is_cut = error.end == len(raw) and len(raw) - error.start < 4
        return raw.decode("utf-8" if is_cut else "cp1252", "replace")


def _plain_kind(head: bytes, media_type: str) -> Kind:
    if media_type.endswith(("/json", "+json")):
        return "data"
    is_vague = media_type in _VAGUE
    return "data" if is_vague and head.lstrip()[:1] in {b"{", b"["} else "text"


def _is_text(head: bytes, *, lenient: bool) -> bool:
    if any(head.startswith(mark) for mark, _ in _MARKS):
        return True
    if b"\0" in head and not lenient:
        return False
    found = sum(byte in _CONTROLS for byte in head)
    if lenient:
        return found <= max(min(_FEW_CONTROLS, len(head) // 4), len(head) * _MOST_CONTROLS_TOLD)
    return found <= len(head) * _MOST_CONTROLS


def _is_page(head: bytes) -> bool:
    return _html_start().match(head) is not None


def _find_charset(raw: bytes) -> str:
    found = _meta().search(raw, 0, _META_BYTES)
    return "" if found is None else found[1].decode("ascii")


def _encoding(name: str) -> str:
    """A way to decode; nothing for what is no charset of the web: Python knows some that are no charsets at all."""
    plain = name.strip().strip("\"'").lower()
    if plain in _OTHER_NAMES:
        return _OTHER_NAMES[plain]
    if not _charset().fullmatch(plain):
        return ""
    # A page that can be read so far as to name it is not written in sixteen bits.
    return "utf-8" if plain.startswith(("utf-16", "utf16", "utf-32", "utf32")) else _codec_name(plain)


def _codec_name(name: str) -> str:
    try:
        return codecs.lookup(name).name
    except LookupError:
        return ""


@functools.cache
def _charset() -> re.Pattern[str]:
    return re.compile(
        r"utf-?(?:8|16|32)(?:-?[lb]e)?|iso-?8859-?[0-9]{1,2}|(?:windows|cp)-?[0-9]{3,4}|koi8-[rut]"
        r"|euc-?jp|big5(?:-hkscs)?|gb18030|iso-2022-(?:jp|kr)|mac[_-]?cyrillic"
    )


@functools.cache
def _meta() -> re.Pattern[bytes]:
    return re.compile(
        rb"""(?i)(?:<meta[^<>]{0,300}?charset\s{0,9}=\s{0,9}["']?|<\?xml[^<>]{0,100}?encoding\s{0,9}=\s{0,9}["'])"""
        rb"([a-z0-9_-]{2,30})"
    )


@functools.cache
def _html_start() -> re.Pattern[bytes]:
    return re.compile(rb"(?i)\s*(?:<!--[^<>]*-->\s*|<\?xml[^<>]*>\s*)*<(?:!doctype\s+html|html|head|body|title)\b")


@functools.cache
def _tag() -> re.Pattern[bytes]:
    return re.compile(rb"<[A-Za-z!/?]")
