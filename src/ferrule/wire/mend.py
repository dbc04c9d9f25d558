"""Events that are almost JSON: bytes that are no text, and characters cut in two between events."""

import re

_ESCAPE = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)


class Mender:
    """Makes JSON readable again where the sender cut a text in the middle of a character.

    Such a sender writes half of a surrogate pair at the end of one event and the other half at the beginning of a
    later one. The first half is kept until the second comes. A half that has no other is no character: what stands in
    the middle of a text becomes the mark for one that could not be read.
    """

    def __init__(self) -> None:
        self._half = b""

    def mend(self, data: bytes) -> bytes:
        """The event with every half character joined, kept or replaced. Only for what could not be read as it is."""
        data = data.decode("utf-8", "replace").encode()
        out: list[bytes] = []
        done = 0
        open_half: re.Match[bytes] | None = None
        for found in _ESCAPE.finditer(data):
            code = int(found[1], 16) if found[1] else 0
            follows = open_half is not None and open_half.end() == found.start()
            if open_half is not None and not (follows and 0xDC00 <= code <= 0xDFFF):
                out.append(data[done : open_half.start()] + self._alone(data, open_half))
                done = open_half.end()
            if 0xDC00 <= code <= 0xDFFF and not follows:
                out.append(data[done : found.start()] + (self._half + found[0] if self._half else rb"\ufffd"))
                done = found.end()
                self._half = b""
            open_half = found if 0xD800 <= code <= 0xDBFF else None
        if open_half is not None:
            out.append(data[done : open_half.start()] + self._alone(data, open_half))
            done = open_half.end()
        out.append(data[done:])
        return b"".join(out)

    def _alone(self, data: bytes, half: re.Match[bytes]) -> bytes:
        """What stands for the first half of a pair that is not followed by the second in its own text."""
        if data[half.end() : half.end() + 1] != b'"':
            return rb"\ufffd"
        self._half = half[0]
        return b""
