"""The bytes that checkpoints rely on: contents of files by their fingerprints, and git's objects, pinned.

Sessions of one workspace share it. Each holds a lock together with the others; only who is alone lets go of anything.
"""

import hashlib
import math
import os
import stat
import threading
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from ferrule.support.beneath import READ_NO_LINK, read_all
from ferrule.support.git_objects import Objects
from ferrule.support.locks import share_lock, try_lock
from ferrule.workspace.blobs import Blobs, StoreError, make_private
from ferrule.workspace.journal import Node, unkept
from ferrule.workspace.pins import Pins
from ferrule.workspace.tree_state import Change, Kept, Seen

_WHOLE_BYTES = 4 << 20
"""Larger files are not held in memory."""
_DIGEST_BYTES = 20


class Limits(NamedTuple):
    """How much is kept."""

    file_bytes: int
    keep_bytes: int


class Needed(NamedTuple):
    """What somebody may still ask for."""

    current: AbstractSet[str]
    """Contents of files as they are."""
    past: AbstractSet[str]
    """Contents of files as they were before some command or other."""
    pinned: AbstractSet[str]
    """Objects whose bytes nobody else has."""


class CheckpointStore:
    """Keeps the bytes of files."""

    def __init__(self, folder: str, limits: Limits, needed: Callable[[], Needed]) -> None:
        self.blobs = Blobs(os.path.join(folder, "blobs"))
        self.used_bytes = 0
        self._folder = folder
        self._limits = limits
        self._needed = needed
        self._pins: dict[str, Pins] = {}
        self._relied: set[str] = set()
        """Contents that the look under way has found here."""
        self._claimed = -1
        """An open file by whose lock other sessions know that the store is in use."""
        self._lock = threading.RLock()

    def claim(self) -> None:
        """Have other sessions know that this one relies on what is here. Raises OSError."""
        if self._claimed < 0:
            make_private(self._folder)
            self._claimed = os.open(os.path.join(self._folder, "in-use"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            share_lock(self._claimed)

    def close(self) -> None:
        if self._claimed >= 0:
            os.close(self._claimed)
            self._claimed = -1

    def begin_look(self) -> None:
        """Another look begins: what the last one relied on is known as the state of the workspace by now."""
        self._relied.clear()

    def keep(self, folder: int, name: str, path: str, status: os.stat_result) -> Kept:
        """Keep a file, by its name in an open folder. Raises OSError, and `StoreError` where there is no room."""
        if status.st_size > self._limits.file_bytes:
            why = f"it is larger than {self._limits.file_bytes >> 20} MB (checkpoints.file_mb)"
            return Kept(unkept(status), why=why)
        descriptor = os.open(name, READ_NO_LINK, dir_fd=folder)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise FileNotFoundError(path)
            if status.st_size > _WHOLE_BYTES:
                return self._keep_large(descriptor, path, status.st_size)
            raw = read_all(descriptor)
        finally:
            os.close(descriptor)
        content = hashlib.blake2b(raw, digest_size=_DIGEST_BYTES).hexdigest()
        if pinned := self._pinned(hashlib.sha1(b"blob %d\0" % len(raw) + raw, usedforsecurity=False)):
            return Kept(content, pinned)
        if not self.blobs.has(content, len(raw)):
            self._make_room(len(raw), path)
            self.blobs.put(raw, content)
        self._relied.add(content)
        return Kept(content)

    def _keep_large(self, descriptor: int, path: str, size: int) -> Kept:
        digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        name = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
        while piece := os.read(descriptor, 1 << 20):
            digest.update(piece)
            name.update(piece)
        if pinned := self._pinned(name):
            return Kept(digest.hexdigest(), pinned)
        if self.blobs.has(digest.hexdigest(), size):
            self._relied.add(digest.hexdigest())
            return Kept(digest.hexdigest())
        self._make_room(size, path)
        return Kept(self.blobs.take(descriptor))

    def keep_bytes(self, folder: int, name: str, path: str, status: os.stat_result) -> str:
        """Keep a file itself, and not only by a pin; its fingerprint, or what it is told by where it is too large."""
        with self._lock:
            kept = self.keep(folder, name, path, status)
            if kept.pinned and not self.blobs.has(kept.content):
                self.bring_home([Change(path, Node("file", content=kept.content), None, kept.pinned)])
            return kept.content

    def read(self, node: Node) -> bytes | None:
        """The bytes of a file as it was; None where they were not kept, or are damaged."""
        return self.blobs.read(node.content) if node.kind == "file" and not node.is_unkept else None

    def bring_home(self, changes: Iterable[Change]) -> None:
        """Keep the bytes themselves of what was only pinned: an entry needs them for longer than git does."""
        pinned = [one for one in changes if one.pinned and one.before is not None]
        if not pinned:
            return
        with Objects() as objects:
            for one in pinned:
                assert one.before is not None
                for pins in self._pins.values():
                    if not self.blobs.has(one.before.content) and pins.has(one.pinned):
                        raw = objects.read(pins.objects, one.pinned, "blob")
                        if raw is not None:
                            self.blobs.put(raw, one.before.content)

    def has(self, seen: Seen) -> bool:
        """Can what was found still be brought back?"""
        node = seen.node
        if node.kind != "file":
            return True
        if seen.pinned:
            return any(pins.has(seen.pinned) for pins in self._pins.values())
        return not node.is_unkept and self.blobs.has(node.content, node.size)

    def pins_of(self, repository: str) -> Pins:
        """The pinned objects of a repository, by the folder of its own data."""
        with self._lock:
            if repository not in self._pins:
                name = hashlib.blake2b(os.fsencode(repository), digest_size=10).hexdigest()
                place = os.path.join(self._folder, "pins", name)
                self._pins[repository] = Pins(place, most_bytes=self._limits.keep_bytes // 2)
            return self._pins[repository]

    def pinned_repositories(self) -> AbstractSet[str]:
        """The repositories whose objects are pinned."""
        return self._pins.keys()

    def prune(self, keep_days: float) -> None:
        """Let go of what nobody needs, unless another session may: what that needs is not known here.

        An object that git has let go of stays for so many days.
        """
        if self._claimed < 0:
            return
        try:
            if try_lock(self._claimed):
                needed = self._needed()
                current = needed.current | self._relied
                self.used_bytes = self.blobs.prune(current, needed.past, keep_bytes=self._limits.keep_bytes)
                for repository, pins in self._pins.items():
                    pins.prune(os.path.join(repository, "objects"), needed.pinned, keep_days)
        finally:
            share_lock(self._claimed)

    def _pinned(self, name: "hashlib._Hash") -> str:
        wanted = name.hexdigest()
        return wanted if any(pins.holds(wanted) for pins in self._pins.values()) else ""

    def _make_room(self, size: int, path: str) -> None:
        if self.used_bytes + size > self._limits.keep_bytes:
            self.prune(math.inf)
        if self.used_bytes + size > self._limits.keep_bytes:
            raise StoreError(
                f"there is no room for {path} among {self._limits.keep_bytes >> 20} MB (checkpoints.keep_mb)"
            )
        self.used_bytes += size
