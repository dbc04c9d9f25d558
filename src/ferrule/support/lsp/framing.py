"""Frames of the language server protocol: how long a message is, then the message; nothing is held without a bound."""

import msgspec

MOST_BYTES = 24 << 20
"""A longer message is not taken: nothing else goes on in this process while it is decoded."""
_HEADER_BYTES = 4096
_SHOWN_BYTES = 300


class Garbled(Exception):  # noqa: N818 - the state of the stream
    """What came is no frame. The message is the end of a sentence about whoever sent it."""


class Framing:
    """Takes bytes as they come and gives the messages that are whole."""

    def __init__(self, limit_bytes: int = MOST_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._header = bytearray()
        self._length = -1
        """How long the message is that is being read; -1 while its header is."""
        self._pieces: list[bytes] = []
        self._missing = 0

    @property
    def rest(self) -> bytes:
        """What came of a header that is not whole: when the sender has ended, this is what it printed."""
        return bytes(self._header)

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that are whole now. Raises Garbled; after that nothing can be read any more."""
        found: list[bytes] = []
        view = memoryview(data)
        while view:
            if self._length < 0:
                view = self._read_header(view)
                if self._length != 0:
                    continue
            else:
                piece = bytes(view[: self._missing])
                view = view[len(piece) :]
                self._pieces.append(piece)
                self._missing -= len(piece)
            if not self._missing:
                found.append(b"".join(self._pieces))
                self._pieces.clear()
                self._length = -1
        return found

    def _read_header(self, view: memoryview) -> memoryview:
        held = len(self._header)
        self._header += view[: _HEADER_BYTES - held]
        end = self._header.find(b"\r\n\r\n")
        if end < 0:
            _refuse_garbage(self._header, whole=False)
            if len(self._header) >= _HEADER_BYTES:
                raise Garbled("sent a header that does not end")
            return view[len(self._header) - held :]
        header = bytes(self._header[:end])
        _refuse_garbage(header + b"\r\n", whole=True)
        self._length = self._missing = _length(header)
        if self._length > self._limit_bytes:
            raise Garbled(
                f"sent a message of {self._length:,} bytes, and {self._limit_bytes:,} is the most that is taken"
            )
        self._header.clear()
        return view[end + 4 - held :]


def frame(message: object) -> bytes:
    """A message as it is sent."""
    body = msgspec.json.encode(message)
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def _refuse_garbage(header: bytes | bytearray, *, whole: bool) -> None:
    """Raise as soon as it cannot be a header: whoever prints words there will never send a frame."""
    *lines, last = bytes(header).split(b"\n")
    for line in lines:
        name = line.partition(b":")[0].lower()
        if name not in {b"content-length", b"content-type"} or not line.endswith(b"\r"):
            raise Garbled(f"wrote what is no message to its output: {_shown(header)}")
    begun = last.partition(b":")[0].lower()
    names = (b"content-length", b"content-type")
    if not whole and last != b"\r" and not any(name.startswith(begun) for name in names):
        raise Garbled(f"wrote what is no message to its output: {_shown(header)}")


def _length(header: bytes) -> int:
    found = [line.partition(b":")[2].strip() for line in header.lower().split(b"\r\n") if b"length" in line[:14]]
    if len(found) != 1 or not found[0].isdigit() or len(found[0]) > 12:
        raise Garbled(f"sent a header that says no length: {_shown(header)}")
    return int(found[0])


def _shown(data: bytes | bytearray) -> str:
    text = bytes(data[:_SHOWN_BYTES]).decode(errors="replace")
    return "".join(char if char.isprintable() else " " for char in text).strip()
