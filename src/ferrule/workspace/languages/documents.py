"""The documents that a language server has open: as they are on disk, or as somebody says that they are."""

import asyncio
import os
import time
from typing import NamedTuple

from ferrule.core.errors import ToolFailure
from ferrule.support.beneath import describe, is_regular, read_all
from ferrule.workspace.guarded import Guard
from ferrule.workspace.paths import Jail
from ferrule.workspace.textfile import Binary, parse

MOST_BYTES = 8 << 20
_SMALL_BYTES = 256 << 10
"""Up to this size a file is sooner read than handed to a thread."""
_RACY_SECONDS = 0.1
"""A file that was changed so shortly before it was read may be changed again without looking any different."""

Signature = tuple[int, int, int, int]


class Document(NamedTuple):
    """An open document as the server has it."""

    path: str
    uri: str
    language: str
    version: int
    text: str
    signature: Signature | None = None
    """How its file looked when it was read; None for a text that somebody gave, which no file changes."""
    since: int = 0
    """How many reports the server had sent when it was told this version."""


class Text(NamedTuple):
    """What a file holds, and how it looked then."""

    text: str
    signature: Signature


def signature(path: str) -> Signature | None:
    """How a file looks from outside; None where there is none."""
    try:
        seen = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return (seen.st_mtime_ns, seen.st_ctime_ns, seen.st_size, seen.st_ino)


class Reader:
    """Reads files of the workspace for language servers: no secret, nothing too large, nothing but text."""

    def __init__(self, jail: Jail, guard: Guard) -> None:
        self._jail = jail
        self._guard = guard

    def real(self, path: str) -> str:
        """The path behind `path`. Raises for a secret file and for one outside the workspace."""
        real = self._jail.real(path)
        self._guard.check_read(real)
        self._jail.place(real)
        return real

    async def read(self, real: str) -> Text:
        """The text of a file. Raises ToolFailure."""
        looks = signature(real)
        if looks is not None and looks[2] <= _SMALL_BYTES:
            return self._read(real)
        return await asyncio.to_thread(self._read, real)

    def _read(self, real: str) -> Text:
        self._guard.check_read(real)
        place = self._jail.place(real)
        if not place.parts:
            raise ToolFailure(f"{real} is a folder.", code="is-folder", path=real)
        try:
            with place.folder() as folder:
                descriptor = folder.open(place.name)
                try:
                    return _text(real, descriptor)
                finally:
                    os.close(descriptor)
        except FileNotFoundError as error:
            raise ToolFailure(f"{real} does not exist.", code="not-found", path=real) from error
        except OSError as error:
            raise ToolFailure(f"{real} cannot be read: {describe(error)}.", path=real) from error


def _text(real: str, descriptor: int) -> Text:
    if not is_regular(descriptor):
        raise ToolFailure(f"{real} is no file.", code="is-folder", path=real)
    seen = os.fstat(descriptor)
    racy = seen.st_mtime > time.time() - _RACY_SECONDS
    looks = (-1 if racy else seen.st_mtime_ns, seen.st_ctime_ns, seen.st_size, seen.st_ino)
    raw = read_all(descriptor, MOST_BYTES)
    if len(raw) > MOST_BYTES:
        raise ToolFailure(
            f"{real} has more than {MOST_BYTES:,} bytes, which is too much for a language server.",
            code="too-large",
            path=real,
        )
    try:
        return Text(parse(raw).text, looks)
    except Binary as error:
        raise ToolFailure(
            f"{real} is a binary file: a language server reads texts.", code="binary", path=real
        ) from error
