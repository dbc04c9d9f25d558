"""What a call touches, declared once as data: permissions decide on it, and the scheduler orders by it.

Two calls that touch the same file are kept apart unless both only read it.
"""

import os
from collections.abc import Iterable
from typing import Literal, NamedTuple

Mode = Literal["read", "write", "restore"]
"""To restore is to write what the session itself has replaced before: ordered like a write, free like a read."""
Kind = Literal["path", "process", "host", "command", "server", "everything"]


class Access(NamedTuple):
    """One thing that a call touches. A path stands for the whole tree below it."""

    kind: Kind
    mode: Mode
    key: str
    folder: str = ""
    """For a command: where it runs."""
    git: str = ""
    """For a command: the folders in which git starts, with NUL between them, if all that git does there is reading."""
    shell: str = ""
    """For a command: `follows` if it begins where the last one ended, `moves` if it may end elsewhere as well."""

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Access":
        return cls("path", "read", os.fspath(path))

    @classmethod
    def write(cls, path: str | os.PathLike[str]) -> "Access":
        return cls("path", "write", os.fspath(path))

    @classmethod
    def restore(cls, path: str | os.PathLike[str]) -> "Access":
        return cls("path", "restore", os.fspath(path))

    @classmethod
    def host(cls, name: str, *, mode: Mode = "read") -> "Access":
        return cls("host", mode, name.lower())

    @classmethod
    def process(cls, name: str, *, mode: Mode = "write") -> "Access":
        return cls("process", mode, name)

    @classmethod
    def server(cls, name: str, *, mode: Mode = "write") -> "Access":
        """A tool of an MCP server. It may touch anything; one that only reads may run beside other reads."""
        return cls("server", mode, name)

    @classmethod
    def command(cls, line: str, folder: str, *, shell: str = "") -> "Access":
        """A command line in its final form. Unless it is found to read only, it conflicts with every other call."""
        return cls("command", "write", line, folder, shell=shell)


EVERYTHING = Access("everything", "write", "")
"""The access of a call about which nothing is known: it conflicts with every other call."""

MODE = Access("everything", "write", "mode")
"""The access of a call that only makes the session stricter: whatever comes after it is decided on anew."""


UNKNOWN = frozenset({"everything", "command", "server"})
"""Kinds of access about which nothing more is known."""


def within(path: str, folder: str) -> bool:
    """Is `path` the folder itself or below it? Both are absolute and normal; whole components are compared."""
    return path == folder or path.startswith(folder if folder.endswith(os.sep) else folder + os.sep)


def conflict(one: Access, other: Access) -> bool:
    """May the two not overlap in time? Symmetric.

    Two reads conflict only where one may touch everything, or moves to where the other begins.
    """
    kinds = {one.kind, other.kind}
    if "process" in kinds and len(kinds) > 1:
        # A look at a process, or a word to one, waits for nobody: it may be what everybody waits for.
        return False
    if "everything" in kinds:
        return True
    if one.shell and other.shell and "moves" in {one.shell, other.shell}:
        return True
    if one.mode == "read" and other.mode == "read":
        return False
    if "command" in kinds or "server" in kinds:
        return True
    if one.kind != other.kind:
        return False
    if one.kind == "path":
        return within(one.key, other.key) or within(other.key, one.key)
    return one.key == other.key


def conflicts(ones: Iterable[Access], others: Iterable[Access]) -> bool:
    """Does any access of the one call conflict with any of the other?"""
    others = tuple(others)
    return any(conflict(one, other) for one in ones for other in others)


def check_touches(touches: Iterable[Access]) -> tuple[Access, ...]:
    """What a tool says that it touches, as data that can be read twice; anything else is the tool's bug."""
    every = tuple(touches)
    for access in every:
        fields: tuple[object, ...] = access
        if type(access) is not Access or not all(isinstance(field, str) for field in fields):
            raise TypeError(f"access() must give Access values, not {access!r:.100}")
    return every
