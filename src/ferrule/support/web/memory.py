"""Pages that were fetched lately, to be given again: for a while, and never more than fit."""

from collections import OrderedDict
from collections.abc import Callable, Hashable

from ferrule.support.web.answer import Got

MOST_BYTES = 32_000_000
MOST_PAGES = 500
_OVERHEAD_BYTES = 2_000
_HEADER_BYTES = 200
"""What each header takes beside its letters: a page may have thousands that are short."""


class Memory:
    """Pages by what was asked. The one that was asked for longest ago goes first."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._clock = clock
        self._pages: OrderedDict[Hashable, tuple[float, Got]] = OrderedDict()
        self._bytes = 0

    def get(self, key: Hashable) -> Got | None:
        found = self._pages.get(key)
        if found is None:
            return None
        until, page = found
        if self._clock() >= until:
            self._drop(key)
            return None
        self._pages.move_to_end(key)
        return page._replace(is_cached=True)

    def put(self, key: Hashable, page: Got) -> None:
        """Keeps a page that is whole and that its site lets us keep."""
        self._drop(key)
        size = _size(page)
        if self._seconds <= 0 or page.why_partial or not 200 <= page.status < 300 or size > MOST_BYTES // 2:
            return
        wishes = page.headers.get("cache-control", "").lower()
        if "no-store" in [each.strip() for each in wishes.split(",")]:
            return
        self._pages[key] = (self._clock() + self._seconds, page)
        self._bytes += size
        while self._bytes > MOST_BYTES or len(self._pages) > MOST_PAGES:
            self._drop(next(iter(self._pages)))

    def clear(self) -> None:
        self._pages.clear()
        self._bytes = 0

    def _drop(self, key: Hashable) -> None:
        found = self._pages.pop(key, None)
        if found is not None:
            self._bytes -= _size(found[1])


def _size(page: Got) -> int:
    headers = sum(len(name) + len(value) + _HEADER_BYTES for name, value in page.headers.items())
    return len(page.body) + headers + _OVERHEAD_BYTES
