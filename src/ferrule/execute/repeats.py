"""Noticing that a model makes the same failing call again and again."""

import json
from collections.abc import Mapping
from typing import Any

TIMES = 3


class Repeats:
    """Counts how often in a row one call has failed."""

    def __init__(self) -> None:
        self._last = ""
        self._times = 0

    def ended(self, name: str, given: Mapping[str, Any] | str, *, failed: bool) -> str:
        """Take note of how a call ended; a sentence for the model when it is the third time, or a later one."""
        key = _key(name, given) if failed else ""
        if not key:
            # Another call that works may well be what the failing one needs next.
            self._last, self._times = "", 0
            return ""
        self._times = self._times + 1 if key == self._last else 1
        self._last = key
        if self._times < TIMES:
            return ""
        return (
            f"This very call has now failed {self._times} times in a row. "
            "The same call will fail again: change it, or look at why it fails."
        )


def _key(name: str, given: Mapping[str, Any] | str) -> str:
    try:
        return json.dumps([name, given], sort_keys=True, default=repr)
    except (TypeError, ValueError, RecursionError):  # keys that cannot be ordered, or nested without end
        return ""
