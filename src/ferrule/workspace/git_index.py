"""Git's index, read: which files it names, and whether it is the one of a commit."""

import hashlib
import struct
from typing import NamedTuple

_HEAD = struct.Struct(">4sII")
_LINK = 0o160000
_MODE_AT = 24
_HASH_AT = 40
_EXTENDED, _LONG_NAME = 0x4000, 0x0FFF
_STAGE = 0x3000


class Staged(NamedTuple):
    """What the index says of one file."""

    mode: int
    blob: str

    @property
    def is_link(self) -> bool:
        """Does it stand for a commit of another repository?"""
        return self.mode == _LINK


class Index(NamedTuple):
    """What an index holds."""

    files: dict[bytes, Staged]
    is_merged: bool = True
    """Is there one version of each file, as is always so but in the middle of a merge?"""
    tree: str = ""
    """The tree that it is of as a whole, where git has written that down."""


def read_index(raw: bytes) -> Index | None:
    """What the bytes of an index say; None where they are of a kind that is not known here."""
    size = _hash_size(raw)
    if not size:
        return None
    try:
        return _read(raw[:-size], size)
    except (struct.error, ValueError, IndexError):
        return None


def _hash_size(raw: bytes) -> int:
    """How long the hashes are: the last one is of all that stands before it."""
    for name, size in (("sha1", 20), ("sha256", 32)):
        if hashlib.new(name, raw[:-size], usedforsecurity=False).digest() == raw[-size:]:
            return size
    return 0


def _read(raw: bytes, size: int) -> Index:
    magic, version, count = _HEAD.unpack_from(raw)
    if magic != b"DIRC" or version not in (2, 3, 4):
        raise ValueError(magic)
    files: dict[bytes, Staged] = {}
    at, name, is_merged = _HEAD.size, b"", True
    for _ in range(count):
        (mode,) = struct.unpack_from(">I", raw, at + _MODE_AT)
        (flags,) = struct.unpack_from(">H", raw, at + _HASH_AT + size)
        start = at + _HASH_AT + size + (4 if flags & _EXTENDED else 2)
        if version == 4:
            stripped, start = _number(raw, start)
            end = raw.index(b"\0", start)
            name = name[: len(name) - stripped] + raw[start:end]
            after = end + 1
        else:
            end = raw.index(b"\0", start + (flags & _LONG_NAME))
            name = raw[start:end]
            after = at + (end - at + 8) // 8 * 8
        is_merged = is_merged and not flags & _STAGE
        files[name] = Staged(mode, raw[at + _HASH_AT : at + _HASH_AT + size].hex())
        at = after
    return Index(files, is_merged, _tree(raw, at, size))


def _number(raw: bytes, at: int) -> tuple[int, int]:
    """A number of as many bytes as it needs, and where it ends."""
    value = raw[at] & 0x7F
    while raw[at] & 0x80:
        at += 1
        value = ((value + 1) << 7) | (raw[at] & 0x7F)
    return value, at + 1


def _tree(raw: bytes, at: int, size: int) -> str:
    """The tree of all that is staged. Raises ValueError where the index is only a part of another one."""
    tree = ""
    while at < len(raw):
        kind, length = struct.unpack_from(">4sI", raw, at)
        body = raw[at + 8 : at + 8 + length]
        if kind[:1].islower():
            raise ValueError(kind)
        if kind == b"TREE" and body[:1] == b"\0":
            counts, _, rest = body[1:].partition(b"\n")
            tree = rest[:size].hex() if not counts.startswith(b"-") else ""
        at += 8 + length
    return tree
