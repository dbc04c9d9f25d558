"""Signals that commands must heed although whoever started this program has it ignore them."""

import signal
import threading
from types import FrameType

_HEEDED = ("SIGINT", "SIGQUIT", "SIGHUP", "SIGTERM", "SIGTSTP")


def let_children_heed() -> None:
    """Have programs that are started from now on begin with default signals; this one goes on ignoring them.

    Shells start background jobs with SIGINT and SIGQUIT ignored, and `nohup` ignores SIGHUP; a program inherits that,
    and nothing could interrupt it. What is caught and not ignored is not inherited. Only the main thread can do this.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for name in _HEEDED:
        one = getattr(signal, name, None)
        if one is not None and signal.getsignal(one) is signal.SIG_IGN:
            signal.signal(one, _ignore)


def _ignore(number: int, frame: FrameType | None) -> None:
    """Do nothing."""
