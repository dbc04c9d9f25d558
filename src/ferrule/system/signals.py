"""Signals that commands must heed although whoever started this program has it ignore or hold them back."""

import signal
import threading
from types import FrameType

_LEFT = ("SIGPIPE", "SIGXFSZ", "SIGTTIN", "SIGTTOU")
"""What Python ignores, and gives back to every program that it starts; and what concerns a terminal, which none has."""


def let_children_heed() -> None:
    """Have programs that are started from now on begin with default signals; this one goes on ignoring them.

    Shells start background jobs with SIGINT and SIGQUIT ignored, and `nohup` ignores SIGHUP; a program inherits that,
    and nothing could interrupt it. What is caught and not ignored is not inherited. Only the main thread can do this.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    left = {getattr(signal, name) for name in _LEFT if hasattr(signal, name)}
    for one in signal.valid_signals() - left:
        if signal.getsignal(one) is signal.SIG_IGN:
            signal.signal(one, _ignore)


def is_ignored(number: int) -> bool:
    """Was this program told to ignore the signal?"""
    return signal.getsignal(number) in {signal.SIG_IGN, _ignore}


def hold_none_back() -> None:
    """Let every signal through that whoever started this program has blocked: what it starts would inherit that.

    For a program of its own, at its start; a library has no business with the signals of its host.
    """
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _ignore(number: int, frame: FrameType | None) -> None:
    """Do nothing."""
