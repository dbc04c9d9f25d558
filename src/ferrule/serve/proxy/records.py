"""Record the proxy's requests without their content, sum them up, and optionally tape the traffic for replay.

A tape is one of our recordings.
"""

import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import aclosing
from typing import Any, Literal

import msgspec

from ferrule.core.content import Text
from ferrule.models import Model, ModelError, Prices, RetryNotice
from ferrule.models.cues import RecordedFailure, Repeat
from ferrule.models.recorder import Take, Tape
from ferrule.serve.proxy.upstreams import HostLimits, Upstream
from ferrule.wire import (
    AnswerEnd,
    AnswerStart,
    Delta,
    ModelRequest,
    ModelResponse,
    TextPiece,
    Thinking,
    ThinkingPiece,
    Usage,
    Use,
    UseBegun,
    UseEnded,
    UsePiece,
)
from ferrule.wire.stream import json_text

_KEPT = 200
"""Records that are kept in memory, for the table and for `/requests`."""
_BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""Seconds: the bounds of the histograms."""

_MOST_SUMS = 1_000
"""Sums of so many models are kept apart; clients may name any model of a host whose key is there."""
_OTHERS = "others"
_SHOWN = 200

State = Literal["waiting", "asking", "answering", "done", "failed", "cancelled"]


class Record(msgspec.Struct, kw_only=True):
    """One request."""

    number: int
    at: float
    """Seconds since 1970."""
    api: str
    client: str = ""
    """The program, as it calls itself."""
    requested: str = ""
    model: str = ""
    """The model that answers, as HOST:MODEL."""
    state: State = "waiting"
    stream: bool = False
    status: int = 0
    error: str = ""
    """The kind of failure."""
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    is_estimate: bool = False
    """Did the host not count, so that the tokens are estimated?"""
    cost: float | None = None
    """Dollars; None if the prices are not known."""
    first_ms: float | None = None
    ms: float | None = None
    retries: int = 0
    tried: tuple[str, ...] = ()
    """The models that failed before the one that answered."""
    dropped: tuple[str, ...] = ()
    """What the request had and the API of the model has no place for."""
    searches: int = 0
    """Searches and fetches that were done for the client."""

    def count(self, usage: Usage, prices: Prices | None) -> None:
        """Add the tokens of one answer."""
        self.input += usage.input
        self.output += usage.output
        self.cache_read += usage.cache_read
        self.cache_write += usage.cache_write
        if prices is not None:
            self.cost = (self.cost or 0.0) + prices.cost(usage)


class _Sums(msgspec.Struct):
    """What all requests of one API and one model make together."""

    statuses: dict[int, int] = msgspec.field(default_factory=dict)
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost: float = 0.0
    retries: int = 0
    fallbacks: int = 0
    searches: int = 0
    first: list[int] = msgspec.field(default_factory=lambda: [0] * (len(_BOUNDS) + 1))
    first_seconds: float = 0.0
    whole: list[int] = msgspec.field(default_factory=lambda: [0] * (len(_BOUNDS) + 1))
    whole_seconds: float = 0.0


class RequestRecords:
    """All requests since the start."""

    def __init__(
        self,
        told: Iterable[Callable[[Record], object]] = (),
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Each of `told` is called with every record that has ended."""
        self._told = tuple(told)
        self._clock = clock
        self._now = now
        self._began: dict[int, float] = {}
        self._number = 0
        self._sums: dict[tuple[str, str], _Sums] = {}
        self.open: dict[int, Record] = {}
        self.recent: deque[Record] = deque(maxlen=_KEPT)

    def begin(self, api: str, client: str) -> Record:
        self._number += 1
        record = Record(number=self._number, at=self._now(), api=api, client=client)
        self.open[record.number] = record
        self._began[record.number] = self._clock()
        return record

    def first(self, record: Record) -> None:
        """The first byte of the answer goes out."""
        if record.first_ms is None:
            record.first_ms = round((self._clock() - self._began[record.number]) * 1000, 2)
            record.state = "answering"

    def end(self, record: Record) -> None:
        if self.open.pop(record.number, None) is None:
            return
        seconds = self._clock() - self._began.pop(record.number)
        record.ms = round(seconds * 1000, 2)
        self.recent.append(record)
        self._add(record, seconds)
        for tell in self._told:
            tell(record)

    @property
    def count(self) -> int:
        return self._number

    @property
    def cost(self) -> float:
        return sum(one.cost for one in self._sums.values())

    def tokens(self) -> Usage:
        sums = self._sums.values()
        return Usage(
            sum(one.input for one in sums),
            sum(one.output for one in sums),
            sum(one.cache_read for one in sums),
            sum(one.cache_write for one in sums),
        )

    def costs(self) -> dict[str, Any]:
        """Tokens and dollars by model."""
        rows: dict[str, dict[str, Any]] = {}
        for (_, model), one in self._sums.items():
            row = rows.setdefault(
                model, {"requests": 0, "input": 0, "output": 0, "cache_read": 0, "cache_write": 0, "cost": 0.0}
            )
            row["requests"] += sum(one.statuses.values())
            for name in ("input", "output", "cache_read", "cache_write", "cost"):
                row[name] += getattr(one, name)
        return {"cost": self.cost, "models": rows}

    def _add(self, record: Record, seconds: float) -> None:
        key = (record.api, record.model)
        if key not in self._sums and len(self._sums) >= _MOST_SUMS:
            key = (record.api, _OTHERS)
        sums = self._sums.setdefault(key, _Sums())
        sums.statuses[record.status] = sums.statuses.get(record.status, 0) + 1
        for name in ("input", "output", "cache_read", "cache_write", "retries", "searches"):
            setattr(sums, name, getattr(sums, name) + getattr(record, name))
        sums.cost += record.cost or 0.0
        sums.fallbacks += len(record.tried)
        if record.first_ms is not None:
            sums.first[_bucket(record.first_ms / 1000)] += 1
            sums.first_seconds += record.first_ms / 1000
        sums.whole[_bucket(seconds)] += 1
        sums.whole_seconds += seconds

    def prometheus(self, upstreams: Iterable[Upstream], limits: dict[str, HostLimits]) -> str:
        """The sums in the text form of Prometheus."""
        page = _MetricsPage()
        for (api, model), one in self._sums.items():
            labels = {"api": api, "model": model}
            for status, count in sorted(one.statuses.items()):
                page.add("requests_total", "counter", {**labels, "status": str(status)}, count)
            for kind in ("input", "output", "cache_read", "cache_write"):
                page.add("tokens_total", "counter", {**labels, "kind": kind}, getattr(one, kind))
            page.add("cost_dollars_total", "counter", labels, one.cost)
            page.add("retries_total", "counter", labels, one.retries)
            page.add("fallbacks_total", "counter", labels, one.fallbacks)
            page.add("server_tool_calls_total", "counter", labels, one.searches)
            page.histogram("first_byte_seconds", labels, one.first, one.first_seconds)
            page.histogram("request_seconds", labels, one.whole, one.whole_seconds)
        page.add("requests_open", "gauge", {}, len(self.open))
        for host, limit in limits.items():
            page.add("host_busy", "gauge", {"host": host}, limit.busy)
            page.add("host_queue", "gauge", {"host": host}, limit.queue_length)
        for upstream in upstreams:
            page.add("model_resting", "gauge", {"model": upstream.name}, int(upstream.breaker.is_open))
        return page.text()


def clean_client_text(text: str) -> str:
    """What a client has written, without what steers a terminal and of a bounded length."""
    text = "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text[: _SHOWN + 1])
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _bucket(seconds: float) -> int:
    return next((at for at, bound in enumerate(_BOUNDS) if seconds <= bound), len(_BOUNDS))


_ABOUT = {
    "requests_total": "Requests that have ended, by status.",
    "tokens_total": "Tokens, as the hosts count them.",
    "cost_dollars_total": "Dollars, where the prices are known.",
    "retries_total": "Repetitions before an answer began.",
    "fallbacks_total": "Models that failed, so that the next one answered.",
    "server_tool_calls_total": "Searches and fetches that were done for clients.",
    "first_byte_seconds": "Seconds to the first byte of the answer.",
    "request_seconds": "Seconds to the end of the answer.",
    "requests_open": "Requests that are being answered.",
    "host_busy": "Requests that a host is working on.",
    "host_queue": "Requests that wait for a host.",
    "model_resting": "1 for a model that has failed too often and is left alone for a while.",
}


class _MetricsPage:
    """A page of metrics; each name is described once and its samples stand together."""

    def __init__(self) -> None:
        self._samples: dict[str, list[str]] = {}
        self._kinds: dict[str, str] = {}

    def add(self, name: str, kind: str, labels: dict[str, str], value: float, *, suffix: str = "") -> None:
        self._kinds[name] = kind
        words = ",".join(f'{label}="{_escape_label(text)}"' for label, text in labels.items())
        shown = f"{{{words}}}" if words else ""
        self._samples.setdefault(name, []).append(f"ferrule_proxy_{name}{suffix}{shown} {value}")

    def histogram(self, name: str, labels: dict[str, str], counts: list[int], total: float) -> None:
        seen = 0
        for bound, count in zip((*map(str, _BOUNDS), "+Inf"), counts, strict=True):
            seen += count
            self.add(name, "histogram", {**labels, "le": bound}, seen, suffix="_bucket")
        self.add(name, "histogram", labels, total, suffix="_sum")
        self.add(name, "histogram", labels, seen, suffix="_count")

    def text(self) -> str:
        lines = []
        for name, samples in self._samples.items():
            lines += [f"# HELP ferrule_proxy_{name} {_ABOUT[name]}", f"# TYPE ferrule_proxy_{name} {self._kinds[name]}"]
            lines += samples
        return "\n".join([*lines, ""])


def _escape_label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class TrafficTape:
    """Writes every answer down as it ends. The file is the user's alone and holds no key."""

    def __init__(self, path: str, secrets: Iterable[str]) -> None:
        self._tape = Tape(path)
        self._tape.portable.hide(tuple(secrets))

    async def record_answer(
        self, model: Model, asked: ModelRequest, answer: AsyncGenerator[list[Delta] | RetryNotice, None]
    ) -> AsyncGenerator[list[Delta] | RetryNotice, None]:
        """The same answer; its end is passed on when it is on the disk."""
        await self._begin(model)
        take = Take(self._tape, asked)
        try:
            async with aclosing(answer):
                async for batch in answer:
                    if isinstance(batch, RetryNotice):
                        await self._tape.put(take.cue(again=Repeat(why=batch.why, seconds=batch.seconds)))
                        take = Take(self._tape, asked)
                    else:
                        await self._take(take, batch)
                    yield batch
        except ModelError as error:
            await self._tape.put(take.cue(fail=RecordedFailure(kind=error.kind, message=str(error))))
            raise

    async def put_said(self, model: Model, asked: ModelRequest, said: ModelResponse) -> None:
        """Write down an answer that came in one piece."""
        await self._begin(model)
        await self._take(Take(self._tape, asked), deltas_of(said))

    async def close(self) -> None:
        await self._tape.close()

    async def _begin(self, model: Model) -> None:
        self._tape.portable.hide(getattr(model, "secrets", ()))
        await self._tape.begin(model)

    async def _take(self, take: Take, batch: Iterable[Delta]) -> None:
        for delta in batch:
            take.put(delta)
            if isinstance(delta, AnswerEnd):
                await self._tape.put(take.cue())


def deltas_of(said: ModelResponse) -> Iterator[Delta]:
    """A whole answer as a stream would have brought it."""
    yield AnswerStart(said.id, said.model)
    at = 0
    for part in said.parts:
        if isinstance(part, Text):
            yield TextPiece(part.text)
        elif isinstance(part, Thinking):
            yield ThinkingPiece(part.text, part.signature, part.sealed, part.wire)
        elif isinstance(part, Use):
            yield UseBegun(at, part.id, part.name, part.is_text)
            yield UsePiece(at, part.input if isinstance(part.input, str) else json_text(part.input))
            yield UseEnded(at)
            at += 1
    yield AnswerEnd(said.reason, said.usage)
