"""What programs have said of themselves, by the hash of their content: nobody is asked twice."""

import contextlib
import os
from typing import Literal

import msgspec

from ferrule.core.errors import ConfigError
from ferrule.permissions.kept import Kept

_MOST = 1000
_LONGEST_CHARS = 20_000
"""A longer answer is not kept: it is asked for again."""


class _Answered(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file: the hash of a program's content → what it has answered, the newest last."""

    version: Literal[1] = 1
    lines: dict[str, str] = {}


class Answers:
    """The answers of this user's programs, kept in the state folder: what they said to `--help`, or to `describe`."""

    def __init__(self, state_folder: str, question: Literal["help", "describe"] = "help") -> None:
        self._kept = Kept(os.path.join(state_folder, "tools", f"{question}.json"), _Answered)
        self._lines: dict[str, str] | None = None

    def of(self, content: str) -> str | None:
        """What the program with this content has answered; None where it was never asked."""
        if self._lines is None:
            self._lines = self._kept.read().lines
        return self._lines.get(content)

    def keep(self, content: str, line: str) -> None:
        """Keep its answer, if only for the session."""
        if len(line) > _LONGEST_CHARS:
            return
        if self._lines is not None:
            self._lines[content] = line
        with contextlib.suppress(ConfigError):
            self._kept.change(lambda kept: _Answered(lines=dict([*kept.lines.items(), (content, line)][-_MOST:])))
