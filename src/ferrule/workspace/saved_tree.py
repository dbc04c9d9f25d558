"""What was found in the workspace, on disk: all of it once, and then what has changed since, piece by piece."""

import contextlib
import hashlib
import os
import struct

import msgspec

from ferrule.workspace.blobs import make_private, private
from ferrule.workspace.journal import Kind, Node

_DIGEST_BYTES = 20
_HEAD = struct.Struct(f">I{_DIGEST_BYTES}s")
_LONG_BYTES = 4 << 20


SavedFile = tuple[int, int, int, bool, tuple[Kind, int, bytes, int, int, int], str]


class SavedFolder(msgspec.Struct, array_like=True):
    """A folder, as it is written down, or what has become of one. Names are bytes: not every one is text."""

    node: Node
    files: dict[bytes, SavedFile | None]
    """None for one that is gone."""
    has_objects: bool


_decode = msgspec.msgpack.Decoder(dict[bytes, SavedFolder | None]).decode


class SavedTree:
    """A file with everything, and beside it one of later changes, which is named after the first."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._path = os.path.join(folder, "tree")
        self._name = ""
        self._later_bytes = 0

    @property
    def is_long(self) -> bool:
        """Have so many changes come that everything should be written anew, or was it never written?"""
        return not self._name or self._later_bytes > _LONG_BYTES

    def read(self) -> dict[bytes, SavedFolder]:
        """What was written down; nothing where that is not whole, or of another version."""
        try:
            with open(self._path, "rb") as file:
                digest, raw = file.read(_DIGEST_BYTES), file.read()
            if _digest(raw) != digest:
                return {}
            found = {path: folder for path, folder in _decode(raw).items() if folder is not None}
        except (OSError, msgspec.DecodeError):
            return {}
        self._name = digest.hex()
        with contextlib.suppress(OSError), open(self._later, "rb") as file:
            later = file.read()
            self._later_bytes = len(later)
            self._add(found, later)
        return found

    def _add(self, found: dict[bytes, SavedFolder], raw: bytes) -> None:
        """Put later changes over what was found, up to the first that is not whole."""
        at = 0
        while at + _HEAD.size <= len(raw):
            size, digest = _HEAD.unpack_from(raw, at)
            piece = raw[at + _HEAD.size : at + _HEAD.size + size]
            at += _HEAD.size + size
            if _digest(piece) != digest:
                return
            for path, folder in _decode(piece).items():
                if folder is None:
                    found.pop(path, None)
                else:
                    _change(found, path, folder)

    def write(self, folders: dict[bytes, SavedFolder]) -> None:
        """Write everything down. Raises OSError."""
        raw = msgspec.msgpack.encode(folders)
        make_private(self._folder)
        unfinished = f"{self._path}.{os.getpid()}"
        with open(unfinished, "wb", opener=private) as file:
            file.write(_digest(raw) + raw)
        os.replace(unfinished, self._path)
        before, self._name, self._later_bytes = self._later, _digest(raw).hex(), 0
        if before != self._later:
            with contextlib.suppress(OSError):
                os.unlink(before)

    def append(self, folders: dict[bytes, SavedFolder | None]) -> None:
        """Write down what has become of some folders; None for what is not there, or is no folder. Raises OSError."""
        raw = msgspec.msgpack.encode(folders)
        with open(self._later, "ab", opener=private) as file:
            file.write(_HEAD.pack(len(raw), _digest(raw)) + raw)
        self._later_bytes += len(raw)

    @property
    def _later(self) -> str:
        return f"{self._path}-{self._name[:16]}"


def _change(found: dict[bytes, SavedFolder], path: bytes, folder: SavedFolder) -> None:
    known = found.get(path)
    files = folder.files if known is None else {**known.files, **folder.files}
    left: dict[bytes, SavedFile | None] = {name: one for name, one in files.items() if one is not None}
    found[path] = SavedFolder(folder.node, left, folder.has_objects)


def _digest(raw: bytes) -> bytes:
    return hashlib.blake2b(raw, digest_size=_DIGEST_BYTES).digest()
