"""Noticing that a model goes round in circles: the same calls, with the same answers, turn after turn."""

import hashlib
from collections.abc import Sequence
from typing import Literal

import msgspec

from ferrule.core.reply import Reply
from ferrule.wire.turn import Result, Use

TOLD = (
    "[LOOP DETECTED] You have made the same call with the same answer {times} times in a row. It will not change: "
    "try something else, or say what is in the way. After {most} times the loop is stopped."
)
_LONGEST_CIRCLE = 4
"""So many turns may lie between one and the same again."""
_PATIENT_SECONDS = 5.0
_POLLS = 10


class Repeating:
    """Counts how often in a row the same thing was done.

    Whoever waits does the same again and again as well, and is right: a build takes its time. So where calls that went
    well have taken some seconds since a turn was last the same, only one in ten such turns counts.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._times = 0
        self._seen: list[bytes] = []
        self._waited = 0.0
        self._polls = 0
        self._when: dict[bytes, float] = {}
        """How long had been waited when a turn was seen last."""

    def saw(self, uses: Sequence[Use], results: Sequence[Result], seconds: float = 0.0) -> Literal["", "tell", "stop"]:
        """Take note of one turn, whose calls took so long: tell the model, stop, or nothing of that."""
        key = _key(uses, results)
        if not any(result.failed for result in results):
            self._waited += seconds
        if self._is_waiting(key):
            return ""
        kept = self.most * _LONGEST_CIRCLE
        self._seen = [*self._seen[1 - kept :], key]
        before, self._times = self._times, max(map(self._rounds, range(1, _LONGEST_CIRCLE + 1)))
        if self._times >= self.most:
            return "stop"
        return "tell" if before < self._times == max(2, self.most - 2) else ""

    def told(self) -> str:
        return TOLD.format(times=self._times, most=self.most)

    def _is_waiting(self, key: bytes) -> bool:
        before = self._when.pop(key, self._waited)
        self._when[key] = self._waited
        if len(self._when) > self.most * _LONGEST_CIRCLE:
            del self._when[next(iter(self._when))]
        if self._waited - before < _PATIENT_SECONDS:
            return False
        self._polls += 1
        return self._polls % _POLLS != 0

    def _rounds(self, period: int) -> int:
        """How often in a row the last turns were the same: A A A, and with a longer period A B A B as well."""
        seen, times = self._seen, 1
        while len(seen) >= period * (times + 1) and seen[-period * (times + 1) :][:period] == seen[-period:]:
            times += 1
        return times


def longest(replies: Sequence[Reply]) -> float:
    """How many seconds the calls took that were made at all."""
    return max((reply.ended - reply.started for reply in replies if reply.started), default=0.0)


def _key(uses: Sequence[Use], results: Sequence[Result]) -> bytes:
    asked = [(use.name, use.input) for use in uses]
    said = [(result.parts, result.failed) for result in results]
    try:
        raw = msgspec.json.encode((asked, said), order="sorted")
    except UnicodeEncodeError:  # half of a surrogate pair, which models do write
        raw = repr((asked, said)).encode(errors="surrogatepass")
    return hashlib.blake2b(raw, digest_size=16).digest()
