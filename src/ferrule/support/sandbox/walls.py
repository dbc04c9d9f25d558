"""What the commands of one cell have in common."""

from typing import NamedTuple


class Walls(NamedTuple):
    """What a cell's commands have in common."""

    namespaces: bool
    proc: bool
    """Can the commands have a /proc of their own?"""
    program: bytes
    """The filter of system calls."""
    landlock: int
    """The version of Landlock, 0 for none."""
    ports: bool
    """Is TCP Landlock's business too?"""
    host: bytes
    """Where the machine's own files lie."""
    open: bool = False
    """Does another program, which the commands are, put up the walls? They then only share a network."""
    is_sessions: bool = False
    """Is the cell for one session alone, whose commands see nearly the same?"""
