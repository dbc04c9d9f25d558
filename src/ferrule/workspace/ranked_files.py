"""The ranked index of a session's files: read within limits, kept, and read again where a file has changed."""

import os
import stat
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from ferrule.core.errors import FerruleError
from ferrule.workspace.guarded import Guard
from ferrule.workspace.paths import Jail
from ferrule.workspace.ranked import DATA, Ranked, Region, region

FILE_BYTES = 1 << 20
TOTAL_BYTES = 32 << 20
MOST_FILES = 50_000
_NAME_BYTES = 512
"""What a file costs by its name alone, as bytes of text."""
_DATA_BYTES = 1 << 16
"""Of data, and of a file with long lines, which a machine wrote."""
_LONG_LINE = 400
_HEAD_BYTES = 8_192
_TELL_EVERY = 250


class Refreshed(NamedTuple):
    """How much the index holds, how many files were too many for it, and of how many it holds only the beginning."""

    files: int
    left_out: int = 0
    begun: int = 0


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
        self._seen: dict[str, tuple[int, int, int]] = {}
        """Path as shown → when the file was changed, its size, and how much of it was wanted, when it was read."""
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
            found = self._found(listed)
            for path in self._seen.keys() - found.keys():
                self._forget(path)
            # Outer files first: where there are too many, the deepest are left out.
            order = sorted(found, key=lambda path: (path.count(os.sep), path))
            for path in order[MOST_FILES:]:
                self._forget(path)
            held = order[:MOST_FILES]
            there = {path: status for path in held if (status := self._status(path, found[path]))}
            wanted = {path: _wanted(path, status.st_size) for path, status in there.items()}
            level = _level(wanted.values(), TOTAL_BYTES - _NAME_BYTES * len(wanted))
            for at, (path, status) in enumerate(there.items()):
                if is_over():
                    break
                if at and at % _TELL_EVERY == 0:
                    tell(f"{at:,} of {len(there):,} files looked at")
                self._look(path, found[path], status, min(wanted[path], level))
            begun = sum(size > level for size in wanted.values())
            return Refreshed(len(self._ranked), len(order) - len(held), begun)

    def _found(self, listed: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """Path as shown → real path. Of the first root a name is shown as it is, and mostly there is no other."""
        found = {}
        for root, names in listed.items():
            begins, is_first = os.path.join(root, ""), root == self.jail.folder
            for name in names:
                found[name if is_first else self.jail.shown(begins + name)] = begins + name
        return found

    def _status(self, path: str, real: str) -> os.stat_result | None:
        try:
            return os.lstat(real)
        except OSError:
            self._forget(path)
            return None

    def _look(self, path: str, real: str, status: os.stat_result, most: int) -> None:
        signature = (status.st_mtime_ns, status.st_size, most)
        if self._seen.get(path) == signature:
            return
        self._forget(path)
        self._seen[path] = signature
        # Also what cannot be read is found by its name, but not what nobody may see, or make anything of.
        if stat.S_ISREG(status.st_mode) and not self._guard.secret(real):
            text = self._text(real, most) if status.st_size <= FILE_BYTES else ""
            if text is not None:
                self._ranked.put(path, text)

    def _text(self, real: str, most: int = FILE_BYTES) -> str | None:
        """Its first lines, with so many bytes at most; None for a binary file."""
        try:
            raw = self._read(real)
        except (OSError, FerruleError):
            return ""
        if b"\0" in raw[:_HEAD_BYTES]:
            return None
        if len(raw) > _DATA_BYTES and (real.endswith(DATA) or len(raw) > _LONG_LINE * (raw.count(b"\n") + 1)):
            raw = raw[:_DATA_BYTES]
        if len(raw) > most:
            raw = raw[: raw.rfind(b"\n", 0, most) + 1]
        return raw.decode(errors="replace")

    def _read(self, real: str) -> bytes:
        """By descriptor: a folder that became a link since leads nowhere."""
        place = self.jail.place(real)
        with place.folder() as folder:
            return folder.read(place.name, FILE_BYTES) or b""

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


def _wanted(path: str, size: int) -> int:
    """How much of a file there is to hold."""
    if size > FILE_BYTES:
        return 0
    return min(size, _DATA_BYTES) if path.endswith(DATA) else size


def _level(sizes: Collection[int], total: int) -> int:
    """How much of each file may be held so that all of them together fit: the short ones whole, of the others less."""
    left = max(0, total)
    for at, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - at)
        if size > share:
            # In steps: a file more or less must not have all the others read again.
            step = 1 << max(0, share.bit_length() - 3)
            return share // step * step
        left -= size
    return FILE_BYTES
