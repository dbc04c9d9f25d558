"""Noticing that a model goes round in circles: the same calls, with the same answers, turn after turn."""

import hashlib
from collections.abc import Sequence
from typing import Literal

import msgspec

from ferrule.wire.turn import Result, Use

TOLD = (
    "[LOOP DETECTED] You have made the same call with the same answer {times} times in a row. It will not change: "
    "try something else, or say what is in the way. After {most} times the loop is stopped."
)
_KEPT = 64


class Repeating:
    """Counts how often in a row the same thing was done."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._last = b""
        self._times = 0
        self._seen: list[bytes] = []

    def saw(self, uses: Sequence[Use], results: Sequence[Result]) -> Literal["", "tell", "stop"]:
        """Take note of one turn: tell the model, stop, or nothing of that."""
        key = _key(uses, results)
        self._times = self._times + 1 if key == self._last else 1
        self._last = key
        self._seen = [*self._seen[-_KEPT:], key]
        again = max(self._times, self._turns_about())
        if again >= self.most:
            return "stop"
        return "tell" if again == max(2, self.most - 2) else ""

    def told(self) -> str:
        return TOLD.format(times=max(self._times, self._turns_about()), most=self.most)

    def _turns_about(self) -> int:
        """How often two different turns have taken turns: A B A B is a circle as well."""
        seen, times = self._seen, 0
        while len(seen) >= 2 * (times + 1) and seen[-2 * (times + 1) :][:2] == seen[-2:]:
            times += 1
        return times if len(seen) > 1 and seen[-1] != seen[-2] else 0


def _key(uses: Sequence[Use], results: Sequence[Result]) -> bytes:
    asked = [(use.name, use.input) for use in uses]
    said = [(result.parts, result.failed) for result in results]
    return hashlib.blake2b(msgspec.json.encode((asked, said), order="sorted"), digest_size=16).digest()
