"""Adopting orphans: a program that owns its process may have the processes that its commands abandon fall to it."""

import contextlib
import os
import sys

from ferrule.support import proc
from ferrule.support.child import OWN

_SET_CHILD_SUBREAPER = 36
_adopting: list[int] = []
"""The process that adopts, where this one does. A fork of it does not: it must ask again."""


def adopt_orphans() -> bool:
    """From now on, a process of a command whose parent has ended becomes a child of this process, not of the init.

    That is for programs that own their process, as the command line does: in a host it would adopt what the host's
    own children abandon. False where the system has no such thing.
    """
    if sys.platform != "linux":
        return False
    import ctypes  # one call in the life of a program

    with contextlib.suppress(OSError, AttributeError):
        if ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0:
            _adopting[:] = [os.getpid()]
            return True
    return False


def adopts() -> bool:
    return _adopting == [os.getpid()]


def inherits() -> bool:
    """Do orphans fall to this process, because it asked for them or because it is the init?"""
    return adopts() or os.getpid() == 1


def adopted(pid: int) -> bool:
    """Is it a child of this process that nobody here has started, in a session of its own?

    A program that is run with Python's `subprocess` is in this very session; it is nobody's orphan.
    """
    with contextlib.suppress(OSError, IndexError, ValueError):
        state, parent, _, session = proc.stat(pid)[:4]
        ours = int(parent) == os.getpid() and pid not in OWN
        return ours and (state in {b"Z", b"X"} or int(session) != os.getsid(0))
    return False
