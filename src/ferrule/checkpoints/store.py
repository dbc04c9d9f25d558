"""Store the bytes that checkpoints rely on: file contents by fingerprint, and pinned git objects.

The sessions of one workspace share the store. Each holds a shared lock; only a session that is alone removes
anything.

Git never changes the contents stored under a hash, so most of a work tree needs no copy of its own: its bytes are
those of an object. But a command can remove objects, by `git gc` or by hand. A pin is another name for the file of
an object (a link), or a copy of it, in a place that no command can reach; with the names that lead to them, a
whole repository can be restored from pins.
"""

import contextlib
import hashlib
import math
import mmap
import os
import re
import stat
import struct
import threading
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from ferrule.checkpoints.blobs import Blobs, BlobStoreError, make_private, private
from ferrule.checkpoints.tree import FileFingerprint, NodeSnapshot, TreeChange
from ferrule.files.journal import Node, unkept
from ferrule.git import Objects, entries
from ferrule.system.folder import READ_NO_LINK, Folder, Stamp, is_settled, read_all, share_lock, stamp, try_lock

_LOOSE = re.compile(r"[0-9a-f]{38}|[0-9a-f]{62}")
_PACK = re.compile(r"pack-[0-9a-f]{40,64}\.(?:pack|idx|rev|bitmap|keep|mtimes|promisor)|multi-pack-index")
_UPPERS = tuple(f"{number:02x}" for number in range(256))
_BORROWING = ("alternates", "http-alternates")
"""Where a repository says whose objects it uses beside its own. All else in that folder git makes again."""
_BORROWING_BYTES = 1 << 20
_COPIED_BYTES = 1 << 18
"""What is no larger is copied: a link would be changed by whoever writes into the file itself."""
_DAY_SECONDS = 86_400.0
_INDEX_MAGIC = b"\xfftOc\x00\x00\x00\x02"
_NAMED = re.compile(rb"^(tree|parent|object) ([0-9a-f]+)$", re.MULTILINE)
_FOLDER, _LINK = "40000", "160000"
_SHORT_NAME = 40
_FANOUT = struct.Struct(">256I")


class ObjectPins:
    """The pinned objects of one repository."""

    def __init__(self, folder: str, *, most_bytes: int) -> None:
        """`most_bytes` of objects are copied where they cannot be linked."""
        self.objects = os.path.join(folder, "objects")
        self._info = os.path.join(folder, "info")
        self._most_bytes = most_bytes
        self._copied_bytes = 0
        self._seen: dict[str, Stamp] = {}
        self._loose: set[str] = set()
        self._read: set[str] = set()
        """Those of them that were read, and are what their names say."""
        self._packs: dict[str, _Pack] = {}
        self._lock = threading.Lock()

    def refresh(self, objects: Folder) -> None:
        """Pin what has been added to a repository's folder of objects since. No link is followed."""
        with self._lock:
            self._pin_borrowing(objects)
            for upper in (*_UPPERS, "pack"):
                try:
                    status = objects.status(upper)
                except OSError:
                    continue
                if self._seen.get(upper) == stamp(status):
                    continue
                with contextlib.suppress(OSError), objects.below((upper,)) as folder:
                    self._pin_all(upper, folder)
                    self._seen.pop(upper, None)
                    if is_settled(status):
                        self._seen[upper] = stamp(status)

    def _pin_borrowing(self, objects: Folder) -> None:
        """Keep what says whose objects are used, beside the objects: what is read here borrows nothing."""
        for name in _BORROWING:
            raw = None
            with contextlib.suppress(OSError), objects.below(("info",)) as folder:
                raw = folder.read(name, _BORROWING_BYTES)
            if raw is None or len(raw) > _BORROWING_BYTES:
                continue
            place = os.path.join(self._info, name)
            with contextlib.suppress(OSError):
                if _bytes(place) != raw:
                    make_private(self._info)
                    with open(f"{place}.new", "wb", opener=private) as file:
                        file.write(raw)
                    os.replace(f"{place}.new", place)

    def _pin_all(self, upper: str, folder: Folder) -> None:
        kind = _PACK if upper == "pack" else _LOOSE
        target = os.path.join(self.objects, upper)
        known = set(_list_folder(target))
        assert folder.descriptor is not None
        for name in os.listdir(folder.descriptor):
            if kind.fullmatch(name) and name not in known:
                self._pin(folder, name, target)
        if upper != "pack":
            self._loose.update(upper + name for name in _list_folder(target))
            return
        for name in _list_folder(target):
            if name.endswith(".idx") and name not in self._packs:
                with contextlib.suppress(OSError, ValueError):
                    self._packs[name] = _Pack(os.path.join(target, name))

    def _pin(self, folder: Folder, name: str, target: str) -> None:
        """Link or copy one file, where one of the two can be done."""
        place, unfinished = os.path.join(target, name), os.path.join(target, f"new-{os.getpid()}-{name}")
        try:
            make_private(target)
            source = folder.open(name)
        except OSError:
            return
        try:
            size = os.fstat(source).st_size
            if size > _COPIED_BYTES and self._link(folder, name, source, place):
                return
            if size > _COPIED_BYTES and self._copied_bytes + size > self._most_bytes:
                return
            with open(unfinished, "xb", opener=private) as file:
                while piece := os.read(source, 1 << 20):
                    file.write(piece)
            os.replace(unfinished, place)
            self._copied_bytes += size if size > _COPIED_BYTES else 0
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(unfinished)
        finally:
            os.close(source)

    def _link(self, folder: Folder, name: str, source: int, place: str) -> bool:
        try:
            os.link(name, place, src_dir_fd=folder.descriptor, follow_symlinks=False)
        except OSError:  # another file system, or a file of another user
            return False
        if os.path.samestat(os.fstat(source), os.lstat(place)):
            return True
        os.unlink(place)  # it was replaced meanwhile
        return False

    def has(self, name: str) -> bool:
        """Is there a pinned object with this hash?"""
        return name in self._loose or any(pack.has(name) for pack in self._packs.values())

    def holds(self, name: str) -> bool:
        """The same, and are its bytes there? An object may have been damaged before it was pinned, or be a forgery.

        Of a pack only the end is looked at: to read all of a large one would take too long.
        """
        if name in self._loose and name not in self._read:
            with self._lock:
                (self._read.add if _is_sound(self.objects, name) else self._loose.discard)(name)
        return self.has(name)

    def is_held(self, objects: str, name: str) -> bool:
        """Does the repository itself still have this object, in a file that is not empty?"""
        places = [os.path.join(objects, name[:2], name[2:])]
        places += [
            os.path.join(objects, "pack", f"{index.removesuffix('.idx')}.pack")
            for index, pack in self._packs.items()
            if pack.has(name)
        ]
        if any(_size(place) > 0 for place in places):
            return True
        # What was never its own is of the one that it borrows from.
        return not self.has(name) and any(_size(os.path.join(objects, "info", one)) > 0 for one in _BORROWING)

    def find_missing(self, objects: str, names: Iterable[str]) -> list[str]:
        """The pinned objects that these lead to and that the repository has no more; what it has leads to no other."""
        found: dict[str, None] = {}
        with Objects() as reader:
            left = [(name, "") for name in names]
            while left:
                name, kind = left.pop()
                if name in found or not self.has(name) or self.is_held(objects, name):
                    continue
                found[name] = None
                if kind != "blob":
                    left += _find_references(*reader.read_any(self.objects, name), is_long=len(name) > _SHORT_NAME)
        return list(found)

    def tree_of(self, commit: str) -> str:
        """The tree of a pinned commit; empty where there is none."""
        with Objects() as reader:
            raw = reader.read(self.objects, commit, "commit") if self.has(commit) else None
        return next(
            (name for name, kind in _find_references("commit", raw or b"", is_long=False) if kind == "tree"), ""
        )

    def prune(self, objects: str, needed: Collection[str], keep_days: float) -> None:
        """Let go of what the repository has let go of long ago, unless a file of the workspace needs it."""
        if not os.path.isdir(objects):
            return  # all of it is needed
        before = time.time() - keep_days * _DAY_SECONDS
        with self._lock:
            for upper in _UPPERS:
                for name in _list_folder(os.path.join(self.objects, upper)):
                    if upper + name not in needed and self._let_go(upper, name, objects, before):
                        self._loose.discard(upper + name)
            held = [index for index in self._packs if os.path.lexists(os.path.join(objects, "pack", index))]
            for index in [one for one in self._packs if one not in held]:
                if not self._is_needed(index, needed) and self._let_go("pack", index, objects, before):
                    del self._packs[index]
                    for name in _list_folder(os.path.join(self.objects, "pack")):
                        if name.startswith(index.removesuffix("idx")):
                            self._let_go("pack", name, objects, math.inf)

    def _is_needed(self, index: str, needed: Iterable[str]) -> bool:
        """Is something needed in a pack that is nowhere else?"""
        pack = self._packs[index]
        others = [other for name, other in self._packs.items() if name != index]
        return any(
            pack.has(name) and name not in self._loose and not any(other.has(name) for other in others)
            for name in needed
        )

    def _let_go(self, upper: str, name: str, objects: str, before: float) -> bool:
        pinned = os.path.join(self.objects, upper, name)
        if os.path.lexists(os.path.join(objects, upper, name)):
            return False
        try:
            if os.lstat(pinned).st_ctime >= before:
                return False
            os.unlink(pinned)
        except OSError:
            return False
        return True

    def files(self) -> Iterator[tuple[str, str]]:
        """Every pinned file: its name below the folder of objects, and where it is."""
        for upper in (*_UPPERS, "pack"):
            for name in _list_folder(os.path.join(self.objects, upper)):
                if not name.startswith("new-"):
                    yield f"{upper}/{name}", os.path.join(self.objects, upper, name)
        for name in _list_folder(self._info):
            if name in _BORROWING:
                yield f"info/{name}", os.path.join(self._info, name)


class _Pack:
    """The names in the index of a pack. It is searched where it lies."""

    def __init__(self, path: str) -> None:
        """Raises OSError and ValueError."""
        with open(path, "rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if self._map[:8] != _INDEX_MAGIC:
            raise ValueError(path)
        self._ends = _FANOUT.unpack_from(self._map, 8)
        count = self._ends[-1]
        # Names, checksums, offsets and two hashes at the end: only one size of names fits.
        rest = len(self._map) - 8 - 1024
        self._size = 32 if count and (rest - 64) // count >= 40 else 20
        if self._map[-2 * self._size : -self._size] != _end_of(path.removesuffix(".idx") + ".pack", self._size):
            raise ValueError(path)

    def has(self, name: str) -> bool:
        if len(name) != 2 * self._size:
            return False
        wanted = bytes.fromhex(name)
        low, high = self._ends[wanted[0] - 1] if wanted[0] else 0, self._ends[wanted[0]]
        while low < high:
            middle = (low + high) // 2
            at = 8 + 1024 + middle * self._size
            found = self._map[at : at + self._size]
            if found == wanted:
                return True
            low, high = (middle + 1, high) if found < wanted else (low, middle)
        return False


def _end_of(path: str, size: int) -> bytes:
    """The checksum at the end of a pack, which its index tells too."""
    with open(path, "rb") as file:
        file.seek(-size, os.SEEK_END)
        return file.read()


def _is_sound(objects: str, name: str) -> bool:
    """Are the bytes of a loose object those that it is named after?"""
    try:
        with open(os.path.join(objects, name[:2], name[2:]), "rb") as file:
            raw = zlib.decompress(file.read())
    except (OSError, zlib.error):
        return False
    algorithm = hashlib.sha1 if len(name) == _SHORT_NAME else hashlib.sha256
    return algorithm(raw, usedforsecurity=False).hexdigest() == name


def _find_references(kind: str, raw: bytes, *, is_long: bool) -> Iterator[tuple[str, str]]:
    """The objects that another one names, each with its kind where that is known."""
    if kind == "tree":
        for _, (mode, name) in entries(raw, is_long=is_long):
            if mode != _LINK:
                yield name, "tree" if mode == _FOLDER else "blob"
    elif kind in ("commit", "tag"):
        for word, name in _NAMED.findall(raw.partition(b"\n\n")[0]):
            yield name.decode(), {b"tree": "tree", b"parent": "commit"}.get(word, "")


def _bytes(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def _list_folder(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


_WHOLE_BYTES = 4 << 20
"""Larger files are not held in memory."""
_DIGEST_BYTES = 20


class CheckpointLimits(NamedTuple):
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

    def __init__(self, folder: str, limits: CheckpointLimits, needed: Callable[[], Needed]) -> None:
        self.blobs = Blobs(os.path.join(folder, "blobs"))
        self.used_bytes = 0
        self._folder = folder
        self._limits = limits
        self._needed = needed
        self._pins: dict[str, ObjectPins] = {}
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

    def keep(self, folder: int, name: str, path: str, status: os.stat_result) -> FileFingerprint:
        """Keep a file, by its name in an open folder. Raises OSError, and `StoreError` where there is no room."""
        if status.st_size > self._limits.file_bytes:
            why = f"it is larger than {self._limits.file_bytes >> 20} MB (checkpoints.file_mb)"
            return FileFingerprint(unkept(status), why=why)
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
        if pinned := self._find_pin(hashlib.sha1(b"blob %d\0" % len(raw) + raw, usedforsecurity=False)):
            return FileFingerprint(content, pinned)
        if not self.blobs.has(content, len(raw)):
            self._make_room(len(raw), path)
            self.blobs.put(raw, content)
        self._relied.add(content)
        return FileFingerprint(content)

    def _keep_large(self, descriptor: int, path: str, size: int) -> FileFingerprint:
        digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        name = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
        while piece := os.read(descriptor, 1 << 20):
            digest.update(piece)
            name.update(piece)
        if pinned := self._find_pin(name):
            return FileFingerprint(digest.hexdigest(), pinned)
        if self.blobs.has(digest.hexdigest(), size):
            self._relied.add(digest.hexdigest())
            return FileFingerprint(digest.hexdigest())
        self._make_room(size, path)
        return FileFingerprint(self.blobs.take(descriptor))

    def keep_bytes(self, folder: int, name: str, path: str, status: os.stat_result) -> str:
        """Keep a file itself, and not only by a pin; its fingerprint, or what it is told by where it is too large."""
        with self._lock:
            kept = self.keep(folder, name, path, status)
            if kept.pinned and not self.blobs.has(kept.content):
                self.keep_pinned([TreeChange(path, Node("file", content=kept.content), None, kept.pinned)])
            return kept.content

    def read(self, node: Node) -> bytes | None:
        """The bytes of a file as it was; None where they were not kept, or are damaged."""
        return self.blobs.read(node.content) if node.kind == "file" and not node.is_unkept else None

    def keep_pinned(self, changes: Iterable[TreeChange]) -> None:
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

    def has(self, seen: NodeSnapshot) -> bool:
        """Can what was found still be brought back?"""
        node = seen.node
        if node.kind != "file":
            return True
        if seen.pinned:
            return any(pins.has(seen.pinned) for pins in self._pins.values())
        return not node.is_unkept and self.blobs.has(node.content, node.size)

    def pins_of(self, repository: str) -> ObjectPins:
        """The pinned objects of a repository, by the folder of its own data."""
        with self._lock:
            if repository not in self._pins:
                name = hashlib.blake2b(os.fsencode(repository), digest_size=10).hexdigest()
                place = os.path.join(self._folder, "pins", name)
                self._pins[repository] = ObjectPins(place, most_bytes=self._limits.keep_bytes // 2)
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

    def _find_pin(self, name: "hashlib._Hash") -> str:
        wanted = name.hexdigest()
        return wanted if any(pins.holds(wanted) for pins in self._pins.values()) else ""

    def _make_room(self, size: int, path: str) -> None:
        if self.used_bytes + size > self._limits.keep_bytes:
            self.prune(math.inf)
        if self.used_bytes + size > self._limits.keep_bytes:
            raise BlobStoreError(
                f"there is no room for {path} among {self._limits.keep_bytes >> 20} MB (checkpoints.keep_mb)"
            )
        self.used_bytes += size
