"""The ranked index of a session's files: read within limits, kept, and read again where a file has changed."""

import os
import stat
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ferrule.core.errors import FerruleError
from ferrule.support.beneath import is_regular, read_all
from ferrule.workspace.guarded import Guard
from ferrule.workspace.paths import Jail
from ferrule.workspace.ranked import DATA, Ranked, Region, region

FILE_BYTES = 1 << 20
TOTAL_BYTES = 32 << 20
MOST_FILES = 20_000
_DATA_BYTES = 1 << 16
"""Of data, and of a file with long lines, which a machine wrote."""
_LONG_LINE = 400
_HEAD_BYTES = 8_192
_TELL_EVERY = 250


class Refreshed(NamedTuple):
    """How much the index holds, and how many files were too many for it."""

    files: int
    left_out: int = 0


class Spotted(NamedTuple):
    """A place in a file that fits a question."""

    path: str
    """As the session shows it."""
    region: Region
    score: float


class RankedFiles:
    """What `Ranked` knows of the files below the roots of a jail; used on worker threads, one at a time."""

    def __init__(self, jail: Jail, guard: Guard) -> None:
        self.jail = jail
        self._guard = guard
        self._ranked = Ranked()
        self._seen: dict[str, tuple[int, int]] = {}
        """Path as shown → when the file was changed, and its size, when it was read."""
        self._one_at_a_time = threading.Lock()

    def refresh(
        self,
        listed: Mapping[str, Sequence[str]],
        *,
        tell: Callable[[str], None] = lambda _: None,
        is_over: Callable[[], bool] = lambda: False,
    ) -> Refreshed:
        """Read what is new or has changed; forget what is gone. `listed` has the names below each root."""
        with self._one_at_a_time:
            found = {
                self.jail.shown(os.path.join(root, name)): (root, name) for root in listed for name in listed[root]
            }
            for path in self._seen.keys() - found.keys():
                self._forget(path)
            # Outer files first: where there are too many, the deepest are left out.
            order = sorted(found, key=lambda path: (path.count(os.sep), path))
            left = TOTAL_BYTES
            for at, path in enumerate(order):
                if is_over():
                    break
                if at >= MOST_FILES or left <= 0:
                    for later in order[at:]:
                        self._forget(later)
                    return Refreshed(len(self._ranked), len(order) - at)
                if at and at % _TELL_EVERY == 0:
                    tell(f"{at:,} of {len(order):,} files looked at")
                left -= self._look(path, os.path.join(*found[path]))
            return Refreshed(len(self._ranked))

    def _look(self, path: str, real: str) -> int:
        """How many bytes of it count towards the limit."""
        try:
            status = os.lstat(real)
        except OSError:
            self._forget(path)
            return 0
        signature = (status.st_mtime_ns, status.st_size)
        if self._seen.get(path) != signature:
            self._forget(path)
            self._seen[path] = signature
            # Also what cannot be read is found by its name, but not what nobody may see, or make anything of.
            if stat.S_ISREG(status.st_mode) and not self._guard.secret(real):
                text = self._text(real) if status.st_size <= FILE_BYTES else ""
                if text is not None:
                    self._ranked.put(path, text)
        return min(status.st_size, FILE_BYTES) if path in self._ranked else 0

    def _text(self, real: str) -> str | None:
        """None for a binary file."""
        try:
            raw = self._read(real)
        except (OSError, FerruleError):
            return ""
        if b"\0" in raw[:_HEAD_BYTES]:
            return None
        if len(raw) > _DATA_BYTES and (real.endswith(DATA) or len(raw) > _LONG_LINE * (raw.count(b"\n") + 1)):
            raw = raw[:_DATA_BYTES]
        return raw.decode(errors="replace")

    def _read(self, real: str) -> bytes:
        """By descriptor: a folder that became a link since leads nowhere."""
        place = self.jail.place(real)
        with place.folder() as folder:
            file = folder.open(place.name)
        try:
            return read_all(file, FILE_BYTES) if is_regular(file) else b""
        finally:
            os.close(file)

    def _forget(self, path: str) -> None:
        self._ranked.drop(path)
        self._seen.pop(path, None)

    def search(self, query: str, most: int = 10) -> list[Spotted]:
        """The places that fit best, the best first; none in a file that nobody may see by now."""
        with self._one_at_a_time:
            weights = self._ranked.weights(query)
            out = []
            for match in self._ranked.search(query, 2 * most):
                real = os.path.join(self.jail.folder, match.path)
                if not self._guard.secret(real):
                    lines = (self._text(real) or "").split("\n")[match.first - 1 : match.last]
                    out.append(Spotted(match.path, region(lines, weights, start=match.first), match.score))
                if len(out) == most:
                    break
            return out
