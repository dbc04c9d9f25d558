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


class SavedFolder(msgspec.Struct, array_like=True):
    """A folder, as it is written down."""

    node: Node
    files: dict[str, tuple[int, int, int, bool, tuple[Kind, int, str, int, int, int], str]]
    names: tuple[str, ...]
    folders: tuple[str, ...]
    remade: tuple[str, ...]
    has_objects: bool


_decode_all = msgspec.msgpack.Decoder(dict[str, SavedFolder]).decode
_decode_some = msgspec.msgpack.Decoder(dict[str, SavedFolder | None]).decode


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

    def read(self) -> dict[str, SavedFolder]:
        """What was written down; nothing where that is not whole, or of another version."""
        try:
            with open(self._path, "rb") as file:
                digest, raw = file.read(_DIGEST_BYTES), file.read()
            if _digest(raw) != digest:
                return {}
            found = _decode_all(raw)
        except (OSError, msgspec.DecodeError):
            return {}
        self._name = digest.hex()
        with contextlib.suppress(OSError), open(self._later, "rb") as file:
            later = file.read()
            self._later_bytes = len(later)
            self._add(found, later)
        return found

    def _add(self, found: dict[str, SavedFolder], raw: bytes) -> None:
        """Put later changes over what was found, up to the first that is not whole."""
        at = 0
        while at + _HEAD.size <= len(raw):
            size, digest = _HEAD.unpack_from(raw, at)
            piece = raw[at + _HEAD.size : at + _HEAD.size + size]
            at += _HEAD.size + size
            if _digest(piece) != digest:
                return
            for path, folder in _decode_some(piece).items():
                if folder is None:
                    found.pop(path, None)
                else:
                    found[path] = folder

    def write(self, folders: dict[str, SavedFolder]) -> None:
        """Write everything down. Raises OSError."""
        raw = _encoded(folders)
        make_private(self._folder)
        unfinished = f"{self._path}.{os.getpid()}"
        with open(unfinished, "wb", opener=private) as file:
            file.write(_digest(raw) + raw)
        os.replace(unfinished, self._path)
        before, self._name, self._later_bytes = self._later, _digest(raw).hex(), 0
        if before != self._later:
            with contextlib.suppress(OSError):
                os.unlink(before)

    def append(self, folders: dict[str, SavedFolder | None]) -> None:
        """Write down some folders as they are now; None for what is not there, or is no folder. Raises OSError."""
        raw = _encoded(folders)
        with open(self._later, "ab", opener=private) as file:
            file.write(_HEAD.pack(len(raw), _digest(raw)) + raw)
        self._later_bytes += len(raw)

    @property
    def _later(self) -> str:
        return f"{self._path}-{self._name[:16]}"


def _encoded(folders: "dict[str, SavedFolder] | dict[str, SavedFolder | None]") -> bytes:
    try:
        return msgspec.msgpack.encode(folders)
    except UnicodeEncodeError:  # names that are no text: what is in their folders is read again
        return msgspec.msgpack.encode({one: folder for one, folder in folders.items() if _is_text(one, folder)})


def _is_text(path: str, folder: SavedFolder | None) -> bool:
    names = () if folder is None else (*folder.names, *folder.folders, *folder.remade)
    links = () if folder is None else tuple(seen[4][2] for seen in folder.files.values())
    try:
        "".join((path, *names, *links)).encode()
    except UnicodeEncodeError:
        return False
    return True


def _digest(raw: bytes) -> bytes:
    return hashlib.blake2b(raw, digest_size=_DIGEST_BYTES).digest()
