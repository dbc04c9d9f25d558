"""What a language server has said about documents: pulled from it or told by it, and for which version."""

import asyncio
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from ferrule.support.lsp.peer import Gone
from ferrule.support.waiters import Waiters
from ferrule.workspace.languages.positions import path_of

_MOST_PATHS = 1000
_MOST_ITEMS = 5000
_MOST_KEPT = 50_000
"""Items of all reports."""
_MESSAGE_CHARS = 4000
_SETTLE_SECONDS = 0.25
"""Where a server does not say which version it speaks of, so long it has to have said nothing more."""


class Report(NamedTuple):
    """All that is said about one document."""

    items: list[dict[str, Any]]
    version: int | None = None
    """Of the document, where the server says it."""
    number: int = 0
    """How many reports had come before."""
    at: float = 0.0


class Published:
    """The newest report about each document."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.number = 0
        """How many have come."""
        self._clock = clock
        self._why = ""
        self._reports: dict[str, Report] = {}
        self._results: dict[str, tuple[str, list[dict[str, Any]]]] = {}
        self._waiters = Waiters()
        self._kept = self._pulled = 0
        """How many items there are in the reports, and in the results."""

    def put(self, params: Any) -> None:
        """Take what a server tells without being asked."""
        path = path_of(params["uri"])
        version = params.get("version")
        if path is None:
            return
        self.number += 1
        self._drop(path)
        self._reports[path] = Report(
            _items(params.get("diagnostics")),
            version if isinstance(version, int) else None,
            self.number,
            self._clock(),
        )
        self._kept += len(self._reports[path].items)
        while len(self._reports) > _MOST_PATHS or (self._kept > _MOST_KEPT and len(self._reports) > 1):
            self._drop(next(iter(self._reports)))
        self.wake()

    def wake(self) -> None:
        """Have all who wait look again."""
        self._waiters.wake()

    def end(self, why: str) -> None:
        """No more comes."""
        self._why = why
        self.wake()

    async def wait(
        self, path: str, version: int, since: int, *, seconds: float, stop: Callable[[], bool]
    ) -> list[dict[str, Any]] | None:
        """The report about that version, or without versions the last of those after `since`.

        None after `seconds`, and when `stop` says so. Raises Gone.
        """
        until = self._clock() + seconds
        while True:
            now = self._clock()
            report = self._reports.get(path)
            pause = until - now
            if report is not None and _is_about(report, version, since):
                # What is said first may be the smaller part of it; but errors with a version are worth telling.
                is_sure = report.version is not None and bool(report.items)
                quiet = report.at + _SETTLE_SECONDS - now
                if is_sure or quiet <= 0 or pause <= 0:
                    return report.items
                pause = min(pause, quiet)
            if pause <= 0 or stop():
                return None
            if self._why:
                raise Gone(self._why)
            await self.turn(pause)

    async def quiet(self, *, seconds: float) -> None:
        """Wait until nothing has come for a while, or for so long."""
        until = self._clock() + seconds
        known = -1
        while known != self.number and (pause := min(until - self._clock(), _SETTLE_SECONDS)) > 0:
            known = self.number
            await self.turn(pause)

    def result_id(self, path: str) -> str | None:
        """Under which name the server knows what was pulled last."""
        kept = self._results.get(path)
        return kept[0] if kept else None

    def pulled(self, path: str, answer: Any) -> list[dict[str, Any]] | None:
        """What an answer says about the document; what it says about others is kept."""
        if not isinstance(answer, dict):
            return None
        related = answer.get("relatedDocuments")
        for address, report in related.items() if isinstance(related, dict) else ():
            other = path_of(address)
            if other is not None and isinstance(report, dict):
                self._keep(other, report)
        return self._keep(path, answer)

    def forget(self, path: str) -> None:
        self._unkeep(path)
        self._drop(path)

    def _drop(self, path: str) -> None:
        report = self._reports.pop(path, None)
        if report is not None:
            self._kept -= len(report.items)

    def _unkeep(self, path: str) -> list[dict[str, Any]] | None:
        kept = self._results.pop(path, None)
        if kept is None:
            return None
        self._pulled -= len(kept[1])
        return kept[1]

    def _keep(self, path: str, report: dict[str, Any]) -> list[dict[str, Any]] | None:
        before = self._unkeep(path)
        items = before if report.get("kind") == "unchanged" else _items(report.get("items"))
        name = report.get("resultId")
        if isinstance(name, str) and items is not None:
            self._results[path] = (name[:_MESSAGE_CHARS], items)
            self._pulled += len(items)
            while len(self._results) > _MOST_PATHS or (self._pulled > _MOST_KEPT and len(self._results) > 1):
                self._unkeep(next(iter(self._results)))
        return items

    async def turn(self, seconds: float) -> None:
        """Give way until something is said, or for so long."""
        await self._waiters.wait(asyncio.get_running_loop().time() + seconds)


def _is_about(report: Report, version: int, since: int) -> bool:
    return report.number > since if report.version is None else report.version >= version


def _items(said: Any) -> list[dict[str, Any]]:
    return [_slim(one) for one in said[:_MOST_ITEMS] if isinstance(one, dict)] if isinstance(said, list) else []


def _slim(one: dict[str, Any]) -> dict[str, Any]:
    """What is ever looked at of a diagnostic, and no more of it than is: whoever sends much is not to fill memory."""
    kept = {name: _short(one.get(name)) for name in ("severity", "code", "source", "message")}
    span = one.get("range")
    start = span.get("start") if isinstance(span, dict) else None
    if isinstance(start, dict):
        kept["range"] = {"start": {name: _short(start.get(name)) for name in ("line", "character")}}
    return {name: value for name, value in kept.items() if value is not None}


def _short(value: Any) -> Any:
    """A text or a whole number; some write an object around it."""
    if isinstance(value, dict):
        value = value.get("value")
    if isinstance(value, str):
        return value[:_MESSAGE_CHARS]
    return value if type(value) is int else None
