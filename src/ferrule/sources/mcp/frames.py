"""Frames: lines of JSON out of a stream of bytes, none longer than its limit, and whatever is no frame counted."""

_BLANK = b" \t\r"


class TooLong(Exception):  # noqa: N818 - the state of the stream
    """A frame is longer than any may be."""


class Frames:
    """Takes bytes as they come and gives the lines that may be frames; of the rest nothing is kept."""

    def __init__(self, limit_bytes: int) -> None:
        self.junk_lines = 0
        """Lines that cannot be frames: an object does not begin in them."""
        self._limit_bytes = limit_bytes
        self._pieces: list[bytes] = []
        self._held_bytes = 0
        self._skipping = False
        """Is the line that is being written junk?"""

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are whole now. Raises TooLong, and then holds nothing."""
        if not self._pieces and b"{" not in data:
            return self._skip(data)
        lines = data.split(b"\n")
        last = lines.pop()
        found: list[bytes] = []
        for line in lines:
            whole = self._ended(line)
            if whole is not None:
                found.append(whole)
        if last:
            self._begin(last)
        return found

    def _ended(self, line: bytes) -> bytes | None:
        if self._skipping:
            self._skipping = False
            self.junk_lines += 1
            return None
        if self._pieces:
            self._hold(line)
            line = b"".join(self._pieces)
            self._drop()
        line = line.strip(_BLANK)
        if not line:
            return None
        if not line.startswith(b"{"):
            self.junk_lines += 1
            return None
        if len(line) > self._limit_bytes:
            raise TooLong
        return line

    def _begin(self, piece: bytes) -> None:
        if self._skipping:
            return
        if not self._pieces:
            piece = piece.lstrip(_BLANK)
            if piece and not piece.startswith(b"{"):
                self._skipping = True
                return
        if piece:
            self._hold(piece)

    def _hold(self, piece: bytes) -> None:
        self._held_bytes += len(piece)
        if self._held_bytes > self._limit_bytes:
            self._drop()
            raise TooLong
        self._pieces.append(piece)

    def _drop(self) -> None:
        self._pieces.clear()
        self._held_bytes = 0

    def _skip(self, data: bytes) -> list[bytes]:
        """What has no object in it is counted, not looked at: somebody may send gigabytes of it."""
        self.junk_lines += data.count(b"\n")
        tail = data.rpartition(b"\n")[2]
        self._skipping = bool(tail.strip(_BLANK)) or (self._skipping and b"\n" not in data)
        return []
