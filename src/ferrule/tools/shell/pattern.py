"""Regular expressions that a model wrote: they can be written so that they take for ever, so their time is limited."""

import time
from collections.abc import Sequence
from typing import Any

from ferrule.core.errors import ToolFailure

_CHARS = 1_000
_LOOK_SECONDS = 0.1
"""For one look at new output, on the event loop."""
_LINES_SECONDS = 2.0
"""For all lines, on a thread."""


class Pattern:
    """One expression. It looks at new output, and picks lines."""

    def __init__(self, text: str, called: str) -> None:
        """`called` is the parameter's name, for words about it."""
        import regex  # type: ignore[import-untyped]  # it has no types; for calls that wait for something, or filter

        self._called = called
        self._is_slow = False
        if len(text) > _CHARS:
            raise ToolFailure(f"{called}: has more than {_CHARS:,} characters.", code="bad-pattern")
        try:
            self._compiled: Any = regex.compile(text, regex.MULTILINE)
        except (regex.error, OverflowError, RecursionError) as error:
            raise ToolFailure(f"{called}: is no regular expression: {error}.", code="bad-pattern") from error

    def search(self, string: str, /) -> Any:
        """Is it there? Also yes where it takes too long to tell; `check` says so then."""
        if self._is_slow:
            return True
        try:
            return self._compiled.search(string, timeout=_LOOK_SECONDS)
        except TimeoutError:
            self._is_slow = True
            return True

    def check(self) -> None:
        """Raise where a look took too long."""
        if self._is_slow:
            raise ToolFailure(f"{self._called}: takes too long to look for; write it simpler.", code="bad-pattern")

    def lines(self, text: str) -> str:
        """The lines in which it is."""
        lines = text.splitlines(keepends=True)
        return "".join(lines[at] for at in self.where(lines))

    def where(self, lines: Sequence[str]) -> list[int]:
        """The places of the lines in which it is, from 0."""
        until = time.monotonic() + _LINES_SECONDS
        found = []
        for at, line in enumerate(lines):
            try:
                if self._compiled.search(line, timeout=max(0.001, until - time.monotonic()), concurrent=True):
                    found.append(at)
            except TimeoutError:
                self._is_slow = True
                self.check()
        return found
