"""Server-sent events: bytes, however they were split on the way, into events, and events into bytes.

Every byte is looked at a fixed number of times, so a stream costs time in proportion to its length whatever the size
of its pieces.
"""

from typing import Any

import msgspec

LIMIT_BYTES = 32 * 1024 * 1024
"""More than any API sends as one event; what is longer is an attack or no stream of events."""

_MARK = b"\xef\xbb\xbf"
_encode = msgspec.json.Encoder().encode


class ServerSentEvent(msgspec.Struct, frozen=True, gc=False):
    """One event; both ends of every stream speak in these."""

    name: str
    """Empty where the stream did not name it."""
    data: bytes


DONE = ServerSentEvent("", b"[DONE]")
"""How some APIs say that nothing more will come."""


class EventTooLongError(ValueError):
    """An event is longer than its reader takes."""


class EventReader:
    """Reads events out of bytes that arrive in pieces of any size."""

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._pending = bytearray()
        """The beginning of an event whose end has not come; its lines end in a line feed and no other way."""
        self._lead, self._name = b"data: ", ""
        """What the last event had before its data, and the name that this gave it."""
        self._is_too_long = False
        self._at_start = True
        self._after_return = False

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """The events that these bytes complete.

        Raises EventTooLongError when there is nothing left to give before the event that is too long, and from then
        on every time.
        """
        if self._at_start:
            chunk = self._without_mark(chunk)
        if self._after_return or b"\r" in chunk:
            chunk = self._with_line_feeds(chunk)
        out: list[ServerSentEvent] = []
        if self._pending and self._pending[-1] == 0x0A and chunk[:1] == b"\n":
            chunk = chunk[1:]
            self._close(out)
        *blocks, rest = chunk.split(b"\n\n")
        if blocks and self._pending:
            self._pending += blocks[0]
            self._close(out)
            del blocks[0]
        self._read_all(blocks, out)
        self._pending += rest
        # One more than the limit: the first half of the blank line that ends an event may be here already.
        if len(self._pending) > self._limit_bytes + 1:
            self._is_too_long = True
        self._check(out)
        return out

    def end(self) -> list[ServerSentEvent]:
        """The last event of a stream that stopped without the blank line after it."""
        out: list[ServerSentEvent] = []
        self._close(out)
        self._check(out)
        return out

    def _check(self, out: list[ServerSentEvent]) -> None:
        if self._is_too_long:
            self._pending.clear()
            if not out:
                raise EventTooLongError(f"An event of this stream is longer than {self._limit_bytes:,} bytes.")

    def _close(self, out: list[ServerSentEvent]) -> None:
        block = bytes(self._pending).removesuffix(b"\n")
        self._pending.clear()
        self._read_all([block], out)

    def _read_all(self, blocks: list[bytes], out: list[ServerSentEvent]) -> None:
        lead, name, limit_bytes = self._lead, self._name, self._limit_bytes
        for block in blocks:
            if len(block) > limit_bytes or self._is_too_long:
                self._is_too_long = True
                return
            # Most events begin like the one before them.
            if block.startswith(lead) and b"\n" not in (data := block[len(lead) :]):
                out.append(ServerSentEvent(name, data))
            else:
                self._read(block, out)
                lead, name = self._lead, self._name

    def _read(self, block: bytes, out: list[ServerSentEvent]) -> None:
        """The event that some lines make, if they make one."""
        name = ""
        lines: list[bytes] = []
        for line in block.split(b"\n"):
            field, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if field == b"data":
                lines.append(value)
            elif field == b"event":
                name = value.decode("utf-8", "replace")
        if lines:
            out.append(ServerSentEvent(name, b"\n".join(lines)))
            lead = block[: len(block) - len(lines[0])]
            is_named = lead.startswith(b"event:") and lead.endswith(b"\ndata: ") and lead.count(b"\n") == 1
            if len(lines) == 1 and (is_named or lead == b"data: "):
                self._lead, self._name = lead, name

    def _with_line_feeds(self, chunk: bytes) -> bytes:
        # A return at the very end is a line's end already; the line feed that may still follow belongs to it.
        if self._after_return and chunk[:1] == b"\n":
            chunk = chunk[1:]
            self._after_return = False
        if chunk:
            self._after_return = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _without_mark(self, chunk: bytes) -> bytes:
        self._pending += chunk
        if len(self._pending) < len(_MARK) and _MARK.startswith(self._pending):
            return b""
        chunk = bytes(self._pending).removeprefix(_MARK)
        self._pending.clear()
        self._at_start = False
        return chunk


def event(name: str, value: Any) -> ServerSentEvent:
    """An event that carries a value as JSON."""
    return ServerSentEvent(name, _encode(value))


def text(given: ServerSentEvent) -> bytes:
    """An event as it goes over the wire. JSON has no line breaks in it, and data is JSON."""
    if given.name:
        return b"event: %b\ndata: %b\n\n" % (given.name.encode(), given.data)
    return b"data: %b\n\n" % given.data
