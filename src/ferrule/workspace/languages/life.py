"""One life of a language server: from its start to its end, with what it said that it can do and what it is doing."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ferrule.core.errors import ToolFailure
from ferrule.support.lsp.peer import Gone, NoMethod, Peer, Refusal
from ferrule.support.lsp.process import Line, ServerProcess
from ferrule.workspace.languages.greeting import encoding, folders, greeting, provided
from ferrule.workspace.languages.published import Published
from ferrule.workspace.languages.table import Row

if TYPE_CHECKING:
    from ferrule.workspace.languages.positions import Encoding

_GOODBYE_SECONDS = 0.5
_MOST_KEPT = 1000
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

    def __init__(self, row: Row, root: str, configuration: Mapping[str, Any]) -> None:
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
        self._peer = Peer(self._send, self._answer, self._told)

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

    async def start(self, start: Callable[[Line], ServerProcess], *, seconds: float) -> None:
        """Start it and exchange the first words. Raises ToolFailure, and then nothing of it runs."""
        try:
            self._process = start(Line(self._hear, self._end))
        except ToolFailure:
            self._peer.fail("could not be started")
            raise
        self.pid = self._process.pid
        try:
            answer = await self._peer.ask("initialize", greeting(self._row, self._root), seconds=seconds)
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
        except Refusal as error:
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
        if provided(self.capabilities, method):
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

    def gathered(self) -> contextlib.AbstractContextManager[None]:
        """What it is told in here reaches it at once."""
        return self._peer.gathered()

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
                with contextlib.suppress(Gone, Refusal, TimeoutError):
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

    def _told(self, method: str, params: Any) -> None:
        """What has not the form that it should is no reason to give up on the rest."""
        with contextlib.suppress(TypeError, KeyError, ValueError, AttributeError):
            if method == "textDocument/publishDiagnostics":
                self.published.put(params)
            elif method == "$/progress":
                self._progress(str(params["token"])[:_MOST_CHARS], params["value"].get("kind"))

    def _progress(self, token: str, kind: Any) -> None:
        if kind == "end":
            self._working.pop(token, None)
        elif kind == "begin" and len(self._working) < _MOST_KEPT:
            self._working[token] = None
        if self._working:
            self._idle.clear()
        else:
            self._idle.set()

    def _register(self, wanted: Sequence[Mapping[str, Any]]) -> None:
        for one in wanted:
            if len(self._registered) < _MOST_KEPT:
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
