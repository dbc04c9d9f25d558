"""A store of file contents by their fingerprints: what a checkpoint keeps of the files that a command may change.

Each content is one file, written beside its place and renamed, so that a name never stands for half of it. Nothing is
believed when it is read: bytes that do not have the fingerprint they are asked for by are as good as none.
"""

import contextlib
import errno
import hashlib
import os
import secrets
import sys
import time
from collections.abc import Callable, Collection, Iterator

from ferrule.system.folder import FRESH, READ_NO_LINK, write_all

_PIECE = 1 << 20
_BLOCK = 1 << 16
_DIGEST_BYTES = 20
_CLONE = 0x40049409
"""The call by which some file systems copy a file without copying its bytes."""
_ABANDONED_SECONDS = 3600.0
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
_UNFINISHED = "new-"
_BOTH = FRESH & ~os.O_WRONLY | os.O_RDWR


class BlobStoreError(OSError):
    """The store itself cannot be written, as on a full disk: nothing more can be kept."""


class Blobs:
    """Contents of files, in a folder that only its owner can read."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._made: set[str] = set()

    def put(self, raw: bytes, name: str) -> None:
        """Keep bytes under their fingerprint."""
        if self._size(self._place(name)) == len(raw):
            return
        with self._fresh(lambda: name) as descriptor:
            write_all(descriptor, raw)

    def take(self, source: int) -> str:
        """Keep what an open file holds, from its beginning; its fingerprint."""
        digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        with self._fresh(digest.hexdigest) as descriptor:
            os.lseek(source, 0, os.SEEK_SET)
            is_cloned = _clone(source, descriptor)
            # What was cloned counts, whatever the file has become since.
            while piece := os.read(descriptor if is_cloned else source, _PIECE):
                digest.update(piece)
                if not is_cloned:
                    write_sparse(descriptor, piece)
            if not is_cloned:
                os.ftruncate(descriptor, os.lseek(descriptor, 0, os.SEEK_CUR))
        return digest.hexdigest()

    def has(self, name: str, size: int = -1) -> bool:
        """Is there a content of this name, and of this size where that is known?"""
        found = self._size(self._place(name))
        return found >= 0 and size in {-1, found}

    def is_whole(self, name: str) -> bool:
        """Are the bytes there, and not damaged?"""
        digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        try:
            with open(self._place(name), "rb") as file:
                while piece := file.read(_PIECE):
                    digest.update(piece)
        except OSError:
            return False
        return digest.hexdigest() == name

    def size(self, name: str) -> int:
        """How many bytes it has; 0 where it is not there."""
        return max(0, self._size(self._place(name)))

    def read(self, name: str) -> bytes | None:
        """The bytes with this fingerprint; None where they are not there, or damaged."""
        try:
            with open(self._place(name), "rb") as file:
                raw = file.read()
        except OSError:
            return None
        return raw if hashlib.blake2b(raw, digest_size=_DIGEST_BYTES).hexdigest() == name else None

    def copy(self, name: str, target: int) -> bool:
        """Write a content to an open, empty file; no where it is not there, or damaged."""
        try:
            source = os.open(self._place(name), READ_NO_LINK)
        except OSError:
            return False
        try:
            digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
            while piece := os.read(source, _PIECE):
                digest.update(piece)
                write_sparse(target, piece)
            os.ftruncate(target, os.lseek(target, 0, os.SEEK_CUR))
        finally:
            os.close(source)
        return digest.hexdigest() == name

    def prune(self, current: Collection[str], past: Collection[str], *, keep_bytes: int) -> int:
        """Let go of what nobody needs; then, oldest first, of the past that there is no room for. The bytes left.

        What was put there a moment ago stays: another session may be about to need it.
        """
        left, total = [], 0
        recent = time.time() - _ABANDONED_SECONDS
        for path, name in self._files():
            with contextlib.suppress(OSError):
                status = os.stat(path)
                if name not in current and name not in past and status.st_mtime < recent:
                    os.unlink(path)
                    continue
                total += status.st_blocks * 512
                if name not in current and status.st_mtime < recent:
                    left.append((status.st_mtime, status.st_blocks * 512, path))
        for _, size, path in sorted(left):
            if total <= keep_bytes:
                break
            with contextlib.suppress(OSError):
                os.unlink(path)
                total -= size
        return total

    def _files(self) -> Iterator[tuple[str, str]]:
        """Every file with its name; what was left unfinished has one that nobody needs."""
        for upper in _list_folder(self._folder):
            place = os.path.join(self._folder, upper)
            if upper.startswith(_UNFINISHED):
                yield place, upper
            for lower in _list_folder(place):
                yield os.path.join(place, lower), upper + lower

    def _place(self, name: str) -> str:
        return os.path.join(self._folder, name[:2], name[2:])

    def _size(self, place: str) -> int:
        try:
            return os.stat(place).st_size
        except OSError:
            return -1

    @contextlib.contextmanager
    def _fresh(self, name: Callable[[], str]) -> Iterator[int]:
        """A new file that gets its name when it is whole."""
        temporary = os.path.join(self._folder, f"{_UNFINISHED}{secrets.token_hex(8)}")
        try:
            make_private(self._folder)
            descriptor = os.open(temporary, _BOTH, 0o600)
        except OSError as error:
            raise BlobStoreError(error.errno, error.strerror, self._folder) from error
        try:
            try:
                yield descriptor
            finally:
                os.close(descriptor)
            self._settle(temporary, self._place(name()))
        except BaseException as error:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            if isinstance(error, OSError) and error.errno in _FULL:
                raise BlobStoreError(error.errno, error.strerror, self._folder) from error
            raise

    def _settle(self, temporary: str, final: str) -> None:
        upper = os.path.dirname(final)
        try:
            if upper not in self._made:
                make_private(upper)
                self._made.add(upper)
            os.replace(temporary, final)
        except OSError as error:  # as where somebody has removed the store
            self._made.clear()
            raise BlobStoreError(error.errno, error.strerror, self._folder) from error


def make_private(folder: str) -> None:
    """Make a folder and those above it that are missing, for their owner alone. Raises OSError."""
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        if not os.path.isdir(folder):
            raise
    except FileNotFoundError:
        make_private(os.path.dirname(folder))
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)


def private(path: str, flags: int) -> int:
    """Opens files for their owner alone."""
    return os.open(path, flags, 0o600)


def write_sparse(descriptor: int, piece: bytes) -> None:
    """Write bytes, but leave holes where there is nothing; whoever ends the file sets its size."""
    if not _is_blank(piece[:_BLOCK]) and not _is_blank(piece[-_BLOCK:]):
        _write(descriptor, piece)
        return
    for at in range(0, len(piece), _BLOCK):
        block = piece[at : at + _BLOCK]
        if _is_blank(block):
            os.lseek(descriptor, len(block), os.SEEK_CUR)
        else:
            _write(descriptor, block)


def _write(descriptor: int, raw: bytes) -> None:
    left = memoryview(raw)
    while left:
        left = left[os.write(descriptor, left) :]


def _is_blank(block: bytes) -> bool:
    return len(block) == _BLOCK and block.count(0) == _BLOCK


def _clone(source: int, target: int) -> bool:
    if sys.platform != "linux":
        return False
    import fcntl  # not everywhere

    try:
        fcntl.ioctl(target, _CLONE, source)
    except OSError:
        return False
    return True


def _list_folder(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
