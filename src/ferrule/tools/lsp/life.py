"""Run one connection to a language server: start it, exchange requests, collect diagnostics, and end it.

`CAPABILITIES` and `greeting` tell the server what the client can do. Diagnostics are pulled from the server or
sent by it, and are kept with the version of the document that they are about.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ferrule.core import __version__
from ferrule.core.errors import ToolFailure
from ferrule.system.child import Waiters
from ferrule.tools.lsp.documents import Encoding, path_of, uri
from ferrule.tools.lsp.known import LanguageServerEntry
from ferrule.tools.lsp.protocol import Gone, LspPeer, LspResponseError, NoMethod, ProcessCallbacks, ServerProcess

_SYMBOL_KINDS = list(range(1, 27))
CAPABILITIES: dict[str, Any] = {
    "general": {"positionEncodings": ["utf-8", "utf-16"]},
    "window": {"workDoneProgress": True, "showMessage": {}},
    "workspace": {
        "workspaceFolders": True,
        "configuration": True,
        "applyEdit": False,
        "didChangeConfiguration": {"dynamicRegistration": True},
        "didChangeWatchedFiles": {"dynamicRegistration": True, "relativePatternSupport": True},
        "symbol": {"symbolKind": {"valueSet": _SYMBOL_KINDS}},
    },
    "textDocument": {
        "synchronization": {"didSave": True},
        "hover": {"contentFormat": ["markdown", "plaintext"]},
        "definition": {"linkSupport": True},
        "declaration": {"linkSupport": True},
        "typeDefinition": {"linkSupport": True},
        "implementation": {"linkSupport": True},
        "references": {},
        "documentSymbol": {
            "hierarchicalDocumentSymbolSupport": True,
            "symbolKind": {"valueSet": _SYMBOL_KINDS},
        },
        "callHierarchy": {},
        "publishDiagnostics": {
            "versionSupport": True,
            "relatedInformation": True,
            "codeDescriptionSupport": True,
            "tagSupport": {"valueSet": [1, 2]},
        },
        "diagnostic": {"dynamicRegistration": True, "relatedDocumentSupport": True},
    },
}
"""What this side can do."""


def initialize_params(row: LanguageServerEntry, root: str) -> dict[str, Any]:
    """The parameters of the first question."""
    return {
        # Where it is confined it does not see this process, and would take it for dead.
        "processId": None,
        "clientInfo": {"name": "ferrule", "version": __version__},
        "locale": "en",
        "rootPath": root,
        "rootUri": uri(root),
        "workspaceFolders": folders(root),
        "capabilities": CAPABILITIES,
        "initializationOptions": dict(row.options),
        "trace": "off",
    }


def folders(root: str) -> list[dict[str, str]]:
    return [{"uri": uri(root), "name": os.path.basename(root) or root}]


def encoding(capabilities: Mapping[str, Any]) -> Encoding:
    """In which units it counts; UTF-16 where it does not say."""
    said = capabilities.get("positionEncoding")
    return "utf-8" if said == "utf-8" else "utf-32" if said == "utf-32" else "utf-16"


_PROVIDED = {
    "textDocument/prepareCallHierarchy": "callHierarchyProvider",
    "callHierarchy/incomingCalls": "callHierarchyProvider",
    "callHierarchy/outgoingCalls": "callHierarchyProvider",
    "textDocument/prepareTypeHierarchy": "typeHierarchyProvider",
    "workspace/symbol": "workspaceSymbolProvider",
    "textDocument/formatting": "documentFormattingProvider",
}
"""Methods whose capability has another name than they have."""


def has_capability(capabilities: Mapping[str, Any], method: str) -> bool:
    """Did it say at its start that it can do this?"""
    name = _PROVIDED.get(method) or f"{method.rpartition('/')[2]}Provider"
    said = capabilities.get(name)
    return said is not None and said is not False


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

    def put_answer(self, path: str, answer: Any) -> list[dict[str, Any]] | None:
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


_GOODBYE_SECONDS = 0.5
_LIFE_MOST_KEPT = 1000
"""So many things that it registers, or works on at once, are kept in mind."""
_MOST_ASKED = 200
"""Sections of the configuration in one question."""
_MOST_CHARS = 1000
"""Of a name that it gives to something."""
_LATE_SECONDS = 0.5
"""So long after its start it may still say that it can do more."""
WATCHED = "workspace/didChangeWatchedFiles"
PULL = "textDocument/diagnostic"


class Life:
    """A server that runs, or has run."""

    def __init__(self, row: LanguageServerEntry, root: str, configuration: Mapping[str, Any]) -> None:
        self.capabilities: Mapping[str, Any] = {}
        self.encoding: Encoding = "utf-16"
        self.published = Published()
        self.is_ready = False
        self.pid = 0
        self._ready_at = 0.0
        self._row = row
        self._root = root
        self._configuration = configuration
        self._registered: dict[str, str] = {}
        self._working: dict[str, None] = {}
        self._idle = asyncio.Event()
        self._idle.set()
        self._process: ServerProcess | None = None
        self._peer = LspPeer(self._send, self._answer, self._on_notification)

    @property
    def why(self) -> str:
        """Why it answers no more, as the end of a sentence; empty while it does."""
        return self._peer.why

    @property
    def failure(self) -> ToolFailure:
        """Why it answers no more, for a reply."""
        words = ("", "") if self._process is None else self._process.words
        said = f" It said last:\n{words[1]}" if words[1] else ""
        if not self._ready_at and words[0]:  # why something does not start it mostly says first
            said = f" It said first:\n{words[0]}\nand last:\n{words[1]}"
        return ToolFailure(f"The language server {self._row.name} {self.why}.{said}", code="server-failed")

    @property
    def is_working(self) -> bool:
        """Does it say that it is busy with something, such as reading the project?"""
        return bool(self._working) and not self.why

    async def start(self, start: Callable[[ProcessCallbacks], ServerProcess], *, seconds: float) -> None:
        """Start it and exchange the first words. Raises ToolFailure, and then nothing of it runs."""
        try:
            self._process = start(ProcessCallbacks(self._hear, self._end))
        except ToolFailure:
            self._peer.fail("could not be started")
            raise
        self.pid = self._process.pid
        try:
            answer = await self._peer.ask("initialize", initialize_params(self._row, self._root), seconds=seconds)
            if not isinstance(answer, dict) or not isinstance(answer.get("capabilities", {}), dict):
                self._peer.fail("answered its first question with something else than its capabilities")
                raise self.failure
            self.capabilities = answer.get("capabilities", {})
            self.encoding = encoding(self.capabilities)
            self._peer.tell("initialized", {})
            if self._configuration:
                self._peer.tell("workspace/didChangeConfiguration", {"settings": self._configuration})
            self.is_ready = True
            self._ready_at = asyncio.get_running_loop().time()
        except Gone as error:
            raise self.failure from error
        except LspResponseError as error:
            message = f"The language server {self._row.name} does not start: {error.message}"
            raise ToolFailure(message, code="server-failed") from error
        except TimeoutError as error:
            self._peer.fail(f"did not start within {seconds:g} seconds (lsp.start_seconds)")
            raise self.failure from error
        finally:
            if not self.is_ready:
                await self.stop()

    def give_up(self) -> None:
        """Wait no more for its first words, where they have not come yet."""
        if not self._ready_at:
            self._peer.fail("was ended with the session")

    def can(self, method: str) -> bool:
        """Can it do this, by what it said at its start or registered later?"""
        if has_capability(self.capabilities, method):
            return True
        if method.startswith("callHierarchy/"):
            method = "textDocument/prepareCallHierarchy"
        return method in self._registered.values()

    async def will(self, method: str, until: float) -> bool:
        """Can it do this, or does it say so in a moment? Some say it only after their start. Raises Gone."""
        loop = asyncio.get_running_loop()
        until = min(until, self._ready_at + _LATE_SECONDS)
        while not self.can(method) and loop.time() < until:
            if self.why:
                raise Gone(self.why)
            await self.published.turn(until - loop.time())
        return self.can(method)

    async def ask(self, method: str, params: Mapping[str, Any], *, seconds: float) -> Any:
        """Its answer. Raises Gone, Refusal, TimeoutError."""
        return await self._peer.ask(method, params, seconds=seconds)

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Raises Gone."""
        self._peer.tell(method, params)

    def batch(self) -> contextlib.AbstractContextManager[None]:
        """What it is told in here reaches it at once."""
        return self._peer.batch()

    async def rest(self, seconds: float) -> None:
        """Wait until it is busy with nothing, or for so long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._idle.wait()

    async def stop(self) -> None:
        """Say goodbye, and end it if it does not go."""
        if self._process is None:
            return
        try:
            if self.is_ready and not self.why:
                with contextlib.suppress(Gone, LspResponseError, TimeoutError):
                    await self._peer.ask("shutdown", None, seconds=_GOODBYE_SECONDS)
                    self._peer.tell("exit", None)
            self.is_ready = False
            self._peer.fail("was ended")
            await self._process.stop()
        finally:
            self.is_ready = False
            self._peer.fail("was ended")
            self._idle.set()
            self._process.close()

    def _send(self, data: bytes) -> None:
        assert self._process is not None
        self._process.send(data)

    def _hear(self, body: bytes) -> None:
        self._peer.hear(body)
        if self._peer.why and self._process is not None:
            self._process.fail(self._peer.why)  # whoever talks like that is ended

    def _end(self, why: str) -> None:
        self.is_ready = False
        self._idle.set()
        self._peer.fail(why)
        self.published.end(why)

    def _on_notification(self, method: str, params: Any) -> None:
        """What has not the form that it should is no reason to give up on the rest."""
        with contextlib.suppress(TypeError, KeyError, ValueError, AttributeError):
            if method == "textDocument/publishDiagnostics":
                self.published.put(params)
            elif method == "$/progress":
                self._progress(str(params["token"])[:_MOST_CHARS], params["value"].get("kind"))

    def _progress(self, token: str, kind: Any) -> None:
        if kind == "end":
            self._working.pop(token, None)
        elif kind == "begin" and len(self._working) < _LIFE_MOST_KEPT:
            self._working[token] = None
        if self._working:
            self._idle.clear()
        else:
            self._idle.set()

    def _register(self, wanted: Sequence[Mapping[str, Any]]) -> None:
        for one in wanted:
            if len(self._registered) < _LIFE_MOST_KEPT:
                self._registered[str(one["id"])[:_MOST_CHARS]] = str(one["method"])[:_MOST_CHARS]
        self.published.wake()

    def _answer(self, method: str, params: Any) -> Any:
        match method:
            case "workspace/configuration":
                # A list without an end would become an answer without one.
                return [section(self._configuration, item.get("section")) for item in params["items"][:_MOST_ASKED]]
            case "client/registerCapability":
                self._register(params["registrations"])
            case "client/unregisterCapability":
                # The protocol has it with the slip of the pen; some servers do not.
                for one in params.get("unregisterations") or params.get("unregistrations") or ():
                    self._registered.pop(str(one["id"])[:_MOST_CHARS], None)
            case "workspace/workspaceFolders":
                return folders(self._root)
            case "workspace/applyEdit":
                return {"applied": False, "failureReason": "Only tools change files here."}
            case "window/showDocument":
                return {"success": False}
            case "window/workDoneProgress/create" | "window/showMessageRequest" | "workspace/diagnostic/refresh":
                pass
            case _:
                raise NoMethod
        return None


def section(configuration: Mapping[str, Any], name: str | None) -> Any:
    """The part of a configuration with that name, as `python.analysis`; None where there is none."""
    found: Any = configuration
    for part in (name or "").split(".") if name else ():
        if not isinstance(found, Mapping) or part not in found:
            return None
        found = found[part]
    return found
