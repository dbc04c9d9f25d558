"""The folder that a command ends in, learned without a change to the command: bash says it on a pipe when it exits."""

import contextlib
import os
import re
from collections.abc import Mapping

from ferrule.core.tool import Context
from ferrule.support.tasks import Tasks
from ferrule.workspace.paths import Jail

_SCRIPT = os.path.join(os.path.dirname(__file__), "carry.bash")
_PATH_BYTES = 1 << 13
_MOVES = re.compile(r"(?<![\w./-])(?:cd|pushd|popd|source|\.|eval|builtin|exec|z|j)(?![\w./-])")
"""Words by which a shell may come to end in another folder; where they mean something else, only time is lost."""


class Carrier:
    """A pipe from one shell. Whoever has made it closes it."""

    def __init__(self) -> None:
        self._alone = True
        self._reading, self._writing = os.pipe()
        self._said = b""
        os.set_blocking(self._reading, False)

    def set_out(self, ctx: Context) -> None:
        """Somebody waits for the command."""
        others = ctx.need(Tasks).walking
        self._alone = not others
        for other in others:
            other.crowd()
        others.append(self)

    def crowd(self) -> None:
        """Another command runs beside this one: where they end would depend on which is faster."""
        self._alone = False

    @property
    def env(self) -> Mapping[str, str]:
        """What the shell finds in its environment, and takes out of it before the command runs."""
        return {"BASH_ENV": _SCRIPT, "CARRIED_FOLDER_DESCRIPTOR": str(self._writing)}

    def hand_over(self) -> int:
        """The end that the shell inherits. Whoever starts the shell closes it."""
        writing, self._writing = self._writing, -1
        return writing

    def carry(self, cwd: str, ctx: Context) -> None:
        """Remember where the command has ended, if the session may be there."""
        ended_in, jail = self._folder(), ctx.need(Jail)
        if ended_in is None or ended_in == cwd or not self._alone:
            return
        if jail.holds(ended_in) and os.path.realpath(ended_in) == ended_in and os.path.isdir(ended_in):
            ctx.need(Tasks).folder, ctx.need(Tasks).folder_before = ended_in, cwd
            return
        ctx.need(Tasks).folder = None
        ctx.note(f"Shell cwd was reset to {jail.folder}")

    def _folder(self) -> str | None:
        """Where the shell was when it exited; None where it did not say."""
        path = os.fsdecode(self._said.removesuffix(b"\n"))
        return path if os.path.isabs(path) and "\0" not in path else None

    def part(self, ctx: Context) -> None:
        """Nobody waits for the command any more."""
        ctx.need(Tasks).walking.remove(self)

    def close(self) -> None:
        """To be called after the end of the shell and not before: it would die of a pipe that nobody reads."""
        with contextlib.suppress(BlockingIOError):
            self._said = os.read(self._reading, _PATH_BYTES)
        os.close(self._reading)
        if self._writing >= 0:
            os.close(self._writing)


def may_move(command: str) -> bool:
    """May the shell end in another folder than it began in?"""
    return _MOVES.search(command) is not None


def start_folder(ctx: Context) -> str:
    """Where the next command begins: where the last one ended, while that is a folder of the session."""
    tasks, jail = ctx.need(Tasks), ctx.need(Jail)
    carried = tasks.folder
    if carried is not None and os.path.isdir(carried) and os.path.realpath(carried) == carried and jail.holds(carried):
        return carried
    return jail.folder
