"""The body of an answer, read and unpacked piece by piece: bounded packed and unpacked, whatever it claims to be."""

import contextlib
import zlib
from collections.abc import AsyncIterable, Callable, Generator, Iterable, Iterator, Mapping

from ferrule.support.web.errors import CutOff, WebError

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


class Layers:
    """All packings of a body, the outermost first."""

    def __init__(self, layers: Iterable[Layer]) -> None:
        self._layers = tuple(layers)

    @property
    def is_complete(self) -> bool:
        return all(layer.is_complete for layer in self._layers)

    def feed(self, piece: bytes) -> Iterator[bytes]:
        parts: Iterable[bytes] = (piece,)
        for layer in self._layers:
            parts = _fed(layer, parts)
        return iter(parts)


def unpacker(headers: Headers, name: str, most_bytes: int) -> Layers:
    """What takes the packing off that the headers name. Raises WebError."""
    named = [each.strip().lower().removeprefix("x-") for each in headers.get("content-encoding", "").split(",")]
    kinds = [each for each in named if each not in {"", "identity"}]
    if len(kinds) > _MOST_LAYERS or any(each not in {"gzip", "deflate"} for each in kinds):
        shown = ascii(", ".join(kinds)[:80])
        raise WebError(f"{name} sent its answer packed as {shown}, which was not asked for.", "bad-answer")
    return Layers(Layer(name, kind, most_bytes) for kind in reversed(kinds))


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


def _fed(layer: Layer, parts: Iterable[bytes]) -> Iterator[bytes]:
    for part in parts:
        yield from layer.feed(part)


def _more(announced: str, most_bytes: int) -> bool:
    with contextlib.suppress(ValueError):  # a number with thousands of digits is none
        return int(announced) > most_bytes
    return True
