"""The lines of source files, kept while the files look the same: answers about code lead to the same files again."""

import contextlib
from typing import NamedTuple

from ferrule.core.errors import FerruleError
from ferrule.core.tool import Context
from ferrule.workspace.guarded import Guard
from ferrule.workspace.languages.documents import Reader, Signature, signature
from ferrule.workspace.paths import Jail
from ferrule.workspace.textfile import lines

_MOST_FILES = 64
_MOST_CHARS = 4 << 20


class Source(NamedTuple):
    """A text, its lines as people count them, and whether a server counts them differently."""

    text: str
    rows: list[str]
    has_odd_lines: bool


def source_of(text: str) -> Source:
    rows = lines(text)
    # A CR alone ends a line to servers, and to people only where nothing else does.
    return Source(text, rows, "\r" in text and any("\r" in row for row in rows))


NOTHING = Source("", [], has_odd_lines=False)


class Sources:
    """Files of the workspace that were read lately."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Signature, Source]] = {}
        self._chars = 0

    async def get(self, path: str, ctx: Context) -> Source:
        """What a real path holds; nothing where it is gone, is no text or may not be read."""
        jail, guard = ctx.need(Jail), ctx.need(Guard)
        kept = self._kept.get(path)
        if kept is not None and kept[0] == signature(path) and jail.holds(path) and not guard.secret(path):
            return kept[1]
        self._drop(path)
        with contextlib.suppress(FerruleError):
            read = await Reader(jail, guard).read(path)
            source = source_of(read.text)
            self._keep(path, read.signature, source)
            return source
        return NOTHING

    def _keep(self, path: str, looks: Signature, source: Source) -> None:
        self._drop(path)
        self._kept[path] = (looks, source)
        self._chars += len(source.text)
        while len(self._kept) > _MOST_FILES or self._chars > _MOST_CHARS:
            self._drop(next(iter(self._kept)))

    def _drop(self, path: str) -> None:
        kept = self._kept.pop(path, None)
        if kept is not None:
            self._chars -= len(kept[1].text)
