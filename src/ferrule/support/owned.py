"""Whether this process is ours alone, as that of the command line is, and not that of a program that uses us."""

import os

_owned: list[int] = []
"""Its id: a fork of it is another's until it says otherwise."""


def take() -> None:
    """This process is ours: orphans of commands may fall to it."""
    _owned[:] = [os.getpid()]


def is_ours() -> bool:
    return _owned == [os.getpid()]
