"""Files that know when they were damaged: a head and a body, each with its hash."""

import hashlib
import os
from typing import BinaryIO

_MAGIC = b"ferrule journal 1\n"
_LINE_BYTES = 128


class DamagedError(Exception):
    """The bytes are not the ones that were written."""


def sealed(head: bytes, body: bytes) -> bytes:
    """The content of such a file."""
    return b"%s%d %s %s\n%s%s" % (_MAGIC, len(head), _hash(head), _hash(body), head, body)


def read_head(path: str) -> bytes:
    """The head alone, however long the body is. Raises `DamagedError`."""
    with open(path, "rb") as file:
        return _read(file)[0]


def read_both(path: str) -> tuple[bytes, bytes]:
    """The head and the body. Raises `DamagedError`."""
    with open(path, "rb") as file:
        head, digest = _read(file)
        body = file.read()
    if _hash(body) != digest:
        raise DamagedError("its journal entry is damaged")
    return head, body


def _read(file: BinaryIO) -> tuple[bytes, bytes]:
    """The head, and what the body's hash must be."""
    magic, line = file.readline(_LINE_BYTES), file.readline(_LINE_BYTES)
    try:
        size, digest, body_digest = line.split(b" ")
        head = file.read(min(int(size), os.fstat(file.fileno()).st_size))
    except ValueError as error:
        raise DamagedError("its journal entry is damaged") from error
    if magic != _MAGIC or _hash(head) != digest:
        raise DamagedError("its journal entry is damaged")
    return head, body_digest.rstrip(b"\n")


def _hash(raw: bytes) -> bytes:
    return hashlib.blake2b(raw, digest_size=20).hexdigest().encode()
