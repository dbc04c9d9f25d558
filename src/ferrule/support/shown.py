"""What is kept in memory of one stream of output: its two ends as a reader would see them, and what is new."""

from codecs import utf_8_decode

from ferrule.support.highlights import Found, Highlights
from ferrule.support.screen import COMMON_CONTROLS, CONTROLS, Screen, stripped
from ferrule.support.tail import Ends

_FLOOD_BYTES = 1 << 15
"""From this size on a piece is one of many, and only looked through for the common control characters."""


class Shown:
    """Bytes in; valid text without control characters out, and of that no more than was asked for.

    What is no UTF-8 is replaced, wherever the bytes were cut.
    """

    def __init__(self, head_chars: int, tail_chars: int) -> None:
        self.total_bytes = 0
        self._rest = b""
        self._screen = Screen()
        self._ends = Ends(head_chars, tail_chars)
        self._highlights = Highlights()
        self._told = ""
        self.news_chars = 0
        """How many characters the last news had, with those between its ends."""
        self._flooded = False
        """May a rare control character have got through? It counts then, but it is not shown."""

    def feed(self, data: bytes) -> str:
        """Take more bytes; the text that has become certain by them. The line that is being written has not."""
        self.total_bytes += len(data)
        if self._rest:
            data = self._rest + data
        text, used = utf_8_decode(data, "replace", False)
        self._rest = data[used:]
        certain = self._screen.feed(text, plain=text.isascii() and self._is_plain(data))
        self._ends.add(certain)
        self._highlights.feed(certain)
        return certain

    def end(self) -> str:
        """No more comes: an unfinished character counts as replaced, an unfinished line as written."""
        certain = self._screen.feed(utf_8_decode(self._rest, "replace", True)[0]) + self._screen.end()
        self._rest = b""
        self._ends.add(certain)
        self._highlights.feed(certain)
        return certain

    def _is_plain(self, data: bytes) -> bool:
        """The fastest looks that there are: output is plain nine times out of ten, and there can be gigabytes of it."""
        if len(data) < _FLOOD_BYTES:
            return len(data.translate(None, CONTROLS)) == len(data)
        self._flooded = True
        return not any(control in data for control in COMMON_CONTROLS)

    @property
    def line(self) -> str:
        """The line that is being written, as it looks now."""
        return self._screen.line

    @property
    def total_chars(self) -> int:
        return self._ends.total_chars + len(self.line)

    @property
    def missing_chars(self) -> int:
        return self._ends.missing_chars(self.line)

    def found(self) -> Found:
        """The lines that matter, and how many there are."""
        return self._highlights.found(self.line)

    def text(self) -> str:
        return self._clean(self._ends.text(self.line))

    def news(self) -> str:
        """What came since this was asked last. A line that was redrawn since then comes whole."""
        news, told = self._ends.news(self.line), self._told
        self._told = self.line
        again = len(told) if news.startswith(told) else 0
        self.news_chars = self._ends.news_chars - again
        return self._clean(news[again:])

    def _clean(self, text: str) -> str:
        return stripped(text) if self._flooded else text
