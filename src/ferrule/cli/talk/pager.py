"""A pager for what is too long for the conversation: the user's own, or `less`."""

import contextlib
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterable

from ferrule.cli.talk.line import harmless


def pager() -> list[str]:
    """The command that shows text page by page; empty where there is none."""
    chosen = shlex.split(os.environ.get("PAGER", "")) or ["less", "-R"]
    return chosen if shutil.which(chosen[0]) else []


def show(pieces: Iterable[str], command: list[str]) -> None:
    """Have the pager show a text, and wait until the user has seen it. Nothing but colour steers the terminal."""
    with subprocess.Popen(command, stdin=subprocess.PIPE) as shown:
        assert shown.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # left before its end
            for piece in pieces:
                shown.stdin.write(harmless(piece).encode(errors="replace"))
            shown.stdin.close()
