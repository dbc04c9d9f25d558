"""A workspace with everything that writes to it, and nothing above: what the tests of files work on."""

import os
import stat
from typing import Self

from ferrule.checkpoints.undo import Undo
from ferrule.files.jail import Jail
from ferrule.files.journal import Journal
from ferrule.files.transaction import Contents, TransactionResult, Writer
from ferrule.system.folder import Locks

Picture = dict[str, tuple[int, bytes]]
"""Relative path → mode and bytes; a folder's path ends in a slash and has no bytes."""


class Desk:
    """The folder `workspace` in `home`, with its journal and locks beside it."""

    def __init__(self, home: str | os.PathLike[str], *, seconds: float = 30.0, keep_bytes: int = 1 << 28) -> None:
        home = os.path.realpath(home)
        self.root = os.path.join(home, "workspace")
        os.makedirs(self.root, exist_ok=True)
        self.jail = Jail(self.root)
        self.journal = Journal(os.path.join(home, "journal"), keep_bytes=keep_bytes, keep_days=30)
        self.writer = Writer(self.jail, self.journal, Locks(os.path.join(home, "locks"), seconds=seconds))
        self.undo = Undo(self.journal, self.writer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.jail.close()

    def path(self, name: str) -> str:
        return os.path.join(self.root, name)

    def write(self, name: str, content: bytes | None) -> TransactionResult:
        """One file written whole, or removed."""
        return self.write_all({name: content})

    def write_all(self, contents: Contents) -> TransactionResult:
        """Several files written whole, or removed, in one transaction."""
        wanted = {self.path(name): content for name, content in contents.items()}
        return self.writer.apply(list(wanted), lambda _: wanted, kind="write")

    def move(self, old: str, new: str, content: bytes) -> TransactionResult:
        """One file under another name, with another content."""
        wanted = {self.path(old): None, self.path(new): content}
        return self.writer.apply(list(wanted), lambda _: wanted, kind="patch", moved={self.path(new): self.path(old)})

    def edit(self, name: str, old: bytes, new: bytes) -> TransactionResult:
        """One piece of a file replaced."""
        path = self.path(name)

        def plan(found: Contents) -> Contents:
            raw = found[path]
            assert raw is not None
            assert raw.count(old) == 1
            return {path: raw.replace(old, new)}

        return self.writer.apply([path], plan, kind="edit")

    def bytes(self, name: str) -> bytes | None:
        """What is in the file, read past everything that is being tested."""
        try:
            with open(self.path(name), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def history(self) -> tuple[list[str], list[str]]:
        """The ids of what can be undone and of what can be redone."""
        undoable, redoable = self.undo.history()
        return [entry.id for entry in undoable], [entry.id for entry in redoable]

    def pending(self) -> list[str]:
        """Announced writes that nobody has settled."""
        try:
            return os.listdir(os.path.join(self.journal.folder, "pending"))
        except FileNotFoundError:
            return []


def picture(root: str | os.PathLike[str]) -> Picture:
    """Everything below a folder."""
    seen: Picture = {}
    for folder, folders, files in os.walk(root):
        for name in folders:
            path = os.path.join(folder, name)
            seen[os.path.relpath(path, root) + "/"] = (stat.S_IMODE(os.lstat(path).st_mode), b"")
        for name in files:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                seen[os.path.relpath(path, root)] = (stat.S_IMODE(os.lstat(path).st_mode), file.read())
    return seen


def temporary(root: str | os.PathLike[str]) -> list[str]:
    """Temporary files of ours that were left below a folder."""
    return [name for name in picture(root) if os.path.basename(name).startswith(".ferrule-")]
