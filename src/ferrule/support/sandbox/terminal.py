"""Bubblewrap between a terminal and a command: what interrupts or suspends means the command, and not bubblewrap.

The terminal tells all of its foreground at once, and bubblewrap, which would end with everything in it, is part of
that. So it ignores those signals, and what runs in it starts by not ignoring them any more.
"""

import os
import sys
from collections.abc import Sequence

_AROUND = "trap '' INT QUIT TSTP; exec \"$@\""
_WITHIN = (
    "import os, signal, sys\n"
    "for one in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP): signal.signal(one, signal.SIG_DFL)\n"
    "os.execvp(sys.argv[1], sys.argv[1:])\n"
)


def within(argv: Sequence[str]) -> tuple[str, ...]:
    """The command as it is confined."""
    return (os.path.realpath(sys.executable), "-I", "-S", "-c", _WITHIN, *argv)


def around(argv: Sequence[str]) -> tuple[str, ...]:
    """What confines it as it is started."""
    return ("/bin/sh", "-c", _AROUND, "sh", *argv)
