"""The file in which a `SessionStart` hook leaves variables for the session's commands.

Its path is in `CLAUDE_ENV_FILE`. It is read, never run: `export NAME=value` and `NAME=value`, in quotes or not. A value
that the shell would have to work out, such as `$PATH:/more`, is not taken.
"""

import contextlib
import os
import re
from typing import NamedTuple

_FILE_BYTES = 1 << 16
_NAMES = 500
_STATEMENT = r"(?:[^'\"\\\n;#]|(?<=[^\s;])#|'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.)+"
"""One command of the shell, up to the end of its line; a `#` inside of a word begins no comment.

Nothing in it is possessive: before Python 3.11.5 such repetitions inside of one another match too much.
"""
_BETWEEN = r"(?:[\s;]|#[^\n]*)+"
_ASSIGNMENTS = r"(?:export\s+|declare\s+-x\s+|typeset\s+-x\s+)?(?=[A-Za-z_])"
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_QUOTED = r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\."
_WORKED_OUT = r"[$`()<>&|]|[=:]~"
"""What means more than itself where nothing quotes it."""
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


class Variables(NamedTuple):
    """What the file says."""

    values: dict[str, str]
    wrong: tuple[str, ...] = ()
    """What of it was not taken, and why, as the end of a sentence that begins with the hook."""


class VariablesFile:
    """One file for one hook. It is its user's alone, and gone when it was read."""

    def __init__(self, folder: str | None = None, *, seen_as: str = "") -> None:
        """In `folder`, which the hook knows as `seen_as`. Raises OSError where none can be made."""
        import tempfile  # only sessions with such hooks need it

        descriptor, self.path = tempfile.mkstemp(prefix="ferrule-", suffix=".sh", dir=folder)
        os.close(descriptor)
        self.named = os.path.join(seen_as, os.path.basename(self.path)) if seen_as else self.path
        """Its path, as the hook is told it."""

    def read(self) -> Variables:
        """What the hook wrote into it."""
        import stat  # the same

        try:
            descriptor = os.open(self.path, _READ)
        except OSError:
            return Variables({})  # the hook has removed it, or put something else in its place
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return Variables({}, ("left no file where it should have written variables",))
            raw = b""
            while len(raw) <= _FILE_BYTES and (piece := os.read(descriptor, _FILE_BYTES + 1 - len(raw))):
                raw += piece
        finally:
            os.close(descriptor)
        if len(raw) > _FILE_BYTES:
            return Variables({}, (f"wrote more than {_FILE_BYTES:,} bytes of variables; none of them is set",))
        return parse(raw.decode(errors="replace"))

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self.path)


def parse(text: str) -> Variables:
    """The variables that the text sets, the last value of each."""
    values: dict[str, str] = {}
    wrong: list[str] = []
    at = 0
    while at < len(text):
        if between := re.compile(_BETWEEN).match(text, at):
            at = between.end()
            continue
        statement = re.compile(_STATEMENT, re.DOTALL).match(text, at)
        if statement is None:
            wrong.append("wrote a variable whose quotes do not end")
            break
        at = statement.end()
        if text[at : at + 1] in {"'", '"', "\\"}:
            wrong.append("wrote a variable whose quotes do not end")
            break
        _take(statement.group().strip(), values, wrong)
    if len(values) > _NAMES:
        return Variables({}, (f"wrote more than {_NAMES:,} variables; none of them is set",))
    return Variables(values, tuple(dict.fromkeys(wrong)))


def _take(statement: str, values: dict[str, str], wrong: list[str]) -> None:
    import shlex  # the same

    begin = re.match(_ASSIGNMENTS, statement)
    if begin is None or "\0" in statement:
        wrong.append("wrote a line that sets no variable; use lines such as export NAME=value")
        return
    if re.search(_WORKED_OUT, re.sub(_QUOTED, _left, statement, flags=re.DOTALL)):
        wrong.append("wrote a variable whose value would have to be worked out; only plain values are taken")
        return
    try:
        plain = re.sub(_QUOTED, _plainer, statement[begin.end() :], flags=re.DOTALL)
        words = [word.partition("=") for word in shlex.split(plain)]
    except ValueError:
        wrong.append("wrote a variable whose quotes do not end")
        return
    # `export NAME` alone sets nothing; `NAME=value command` sets it for the command alone.
    if any(equals or not begin.group() for name, equals, _ in words if not (equals and re.fullmatch(_NAME, name))):
        wrong.append("wrote a line that sets no variable; use lines such as export NAME=value")
        return
    values.update({name: value for name, equals, value in words if equals})


def _left(quoted: re.Match[str]) -> str:
    """What of a quoted text the shell would still work out."""
    return re.sub(r"\\.|[^$`\\]", "", quoted.group(), flags=re.DOTALL) if quoted.group().startswith('"') else ""


def _plainer(quoted: re.Match[str]) -> str:
    """The same for `shlex`, which would keep the backslash that a shell takes from `\\$` in double quotes."""
    text = quoted.group()
    return re.sub(r"\\([$`\\])", lambda found: found[1].replace("\\", "\\\\"), text) if text[0] == '"' else text
