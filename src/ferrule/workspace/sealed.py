"""Files that know when they were damaged: a struct as the head and bytes as the body, each with its hash."""

import hashlib
import os
from typing import BinaryIO, TypeVar

import msgspec

S = TypeVar("S", bound=msgspec.Struct)

_MAGIC = b"ferrule journal 1\n"
_LINE_BYTES = 128


class DamagedError(Exception):
    """The bytes are not the ones that were written."""


def sealed(struct: msgspec.Struct, body: bytes) -> bytes:
    """The content of such a file."""
    head = _encoded(struct)
    return b"%s%d %s %s\n%s%s" % (_MAGIC, len(head), _hash(head), _hash(body), head, body)


def read_head(path: str, kind: type[S]) -> S:
    """The head alone, however long the body is. Raises `DamagedError`."""
    with open(path, "rb") as file:
        return _decoded(_read(file)[0], kind)


def read_both(path: str, kind: type[S]) -> tuple[S, bytes]:
    """The head and the body. Raises `DamagedError`."""
    with open(path, "rb") as file:
        head, digest = _read(file)
        body = file.read()
    if _hash(body) != digest:
        raise DamagedError("its journal entry is damaged")
    return _decoded(head, kind), body


def _encoded(struct: msgspec.Struct) -> bytes:
    try:
        return msgspec.json.encode(struct)
    except UnicodeEncodeError:
        import json  # only a path that is not UTF-8 needs it

        return json.dumps(msgspec.to_builtins(struct)).encode()


def _decoded(head: bytes, kind: type[S]) -> S:
    try:
        return msgspec.json.decode(head, type=kind)
    except msgspec.DecodeError:
        import json  # as above

        try:
            return msgspec.convert(json.loads(head), kind)
        except (ValueError, msgspec.ValidationError) as error:
            raise DamagedError("its journal entry is of another version") from error


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
