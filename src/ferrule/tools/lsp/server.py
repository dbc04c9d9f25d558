"""Start, restart and ask one language server of the session, and explain its failures.

A server is started when it is needed and started again if it died. `Using` counts the calls that wait for it,
and `Alone` reserves it for one task.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ferrule.core.errors import ToolFailure
from ferrule.settings import LspSettings
from ferrule.tools.lsp.documents import DocumentReader, Encoding, OpenDocument
from ferrule.tools.lsp.known import LanguageServerEntry
from ferrule.tools.lsp.life import PULL, Life
from ferrule.tools.lsp.opened import Opened
from ferrule.tools.lsp.protocol import NO_METHOD, Gone, LspResponseError, ProcessCallbacks, ServerProcess

_SAID_CHARS = 500
_NAMED = 4


class GivenUp(ToolFailure):
    """A server has ended too often: another one is to be asked in its place."""


def describe_outdated(row: LanguageServerEntry, program: str) -> str:
    return f"The language server {row.name} of the settings is not used, for {program} is too old ({row.install})."


def describe_replacement(why: str, by: str) -> str:
    """What is noted where another server answers than the one that the user named."""
    end = "\n" if "\n" in why else " "  # after what a program has said a line of its own
    return f"{why}{end}{by} answers in its place."


def no_server_failure(
    name: str, path: str, known: Sequence[LanguageServerEntry], failures: Sequence[ToolFailure]
) -> ToolFailure:
    """No server can be had for the file of that name; those that were tried have failed so."""
    if not known:
        message = f"No language server is known for {name}. One can be named in the settings: lsp.servers."
        return ToolFailure(message, code="no-language-server", path=path)
    ways = "; ".join(f"{row.name}: {row.install or _otherwise(row, failures)}" for row in known[:_NAMED])
    if not failures:
        message = f"No language server for {name} is installed. Any of these would do ({ways})."
    else:
        said = "\n".join(failure.message for failure in failures[:_NAMED])
        if all(failure.code == "no-sandbox" for failure in failures):
            return ToolFailure(said, code="no-sandbox", path=path)
        message = f"No language server for {name} can be used. {said}\nHow to get one that can ({ways})."
    return ToolFailure(f"{message} Until then search with a pattern.", code="no-language-server", path=path)


def _otherwise(row: LanguageServerEntry, failures: Sequence[ToolFailure]) -> str:
    return "see its own page" if failures else f"its program {row.program} was not found"


def restart_limit_failure(name: str, starts: int, seconds: float, life: Life | None) -> ToolFailure:
    last = f" {life.failure.message}" if life is not None else ""
    return GivenUp(
        f"The language server {name} was started {starts} times within {seconds / 60:g} minutes and did not stay: it "
        f"is left alone for a while.{last}",
        code="server-failed",
    )


def no_method_failure(name: str, method: str) -> ToolFailure:
    return ToolFailure(f"The language server {name} does not offer {method}.", code="unsupported")


def response_failure(name: str, method: str, error: LspResponseError) -> ToolFailure:
    if error.code == NO_METHOD:
        return no_method_failure(name, method)
    said = error.message[:_SAID_CHARS]
    return ToolFailure(f"The language server {name} answered {method} with an error: {said}", code="server-failed")


def timeout_failure(name: str, seconds: float) -> ToolFailure:
    return ToolFailure(
        f"The language server {name} did not answer within {seconds:g} seconds. It may still be reading the project: "
        "try again later, or search with a pattern.",
        code="server-slow",
    )


class Using:
    """How many wait for a server, and when the last one did."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.count = 0
        self.last_at = clock()
        """By the clock."""

    def __enter__(self) -> None:
        self.count += 1
        self.last_at = self._clock()

    def __exit__(self, *_: object) -> None:
        self.count -= 1
        self.last_at = self._clock()


class Alone:
    """Keeps others from a server while one task shows it texts that no file has: their answers would be of those."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._owner: asyncio.Task[object] | None = None

    @contextlib.asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        async with self._lock:
            self._owner = asyncio.current_task()
            try:
                yield
            finally:
                self._owner = None

    async def wait(self) -> None:
        """Until nobody else is alone with it."""
        while self._lock.locked() and self._owner is not asyncio.current_task():
            async with self._lock:
                pass


_MOST_STARTS = 4
"""One start, and three after a crash,"""
_STARTS_SECONDS = 300.0
"""within so long."""
_AGAIN = frozenset({-32801, -32802})
"""The contents changed meanwhile, or the server was busy with something else: it wants to be asked again."""
_AGAIN_SECONDS = 0.05
_SURROGATE = "A lone surrogate cannot be sent to a language server."


class LanguageServerRecipe(NamedTuple):
    """Which server it is, and how it is started."""

    row: LanguageServerEntry
    root: str
    start: Callable[[ProcessCallbacks], ServerProcess]
    """Raises ToolFailure."""
    configuration: Mapping[str, Any]


class ProjectLanguageServer:
    """One server for one project. It answers questions that change nothing, so that they can be asked twice."""

    def __init__(
        self,
        recipe: LanguageServerRecipe,
        reader: DocumentReader,
        settings: LspSettings,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = recipe.row.name
        self.root = recipe.root
        self.has_run = False
        """Has it ever said what it can do?"""
        self.alone = Alone()
        self._recipe = recipe
        self._reader = reader
        self._settings = settings
        self._clock = clock
        self._opened = Opened(recipe.row, recipe.root, reader)
        self._life: Life | None = None
        self._dead: set[asyncio.Task[None]] = set()
        self._starts: deque[float] = deque()
        self._starting = asyncio.Lock()
        self._syncing = asyncio.Lock()
        self._using = Using(clock)
        self._closed = False

    @property
    def encoding(self) -> Encoding:
        """In which units it counts characters."""
        return self._life.encoding if self._life is not None else "utf-16"

    @property
    def is_ready(self) -> bool:
        """Does it run, and has it said what it can do?"""
        return self._life is not None and self._life.is_ready

    @property
    def is_busy(self) -> bool:
        """Does somebody wait for it?"""
        return self._using.count > 0

    @property
    def last_used_at(self) -> float:
        """When somebody last needed it, by the clock."""
        return self._using.last_at

    @property
    def pid(self) -> int:
        """The process that was started for it; 0 while there is none."""
        return self._life.pid if self._life is not None and not self._life.why else 0

    def can(self, method: str) -> bool:
        """Can it do this, by what it said at its start or later? As `textDocument/definition`."""
        return self._life is not None and self._life.can(method)

    async def start(self) -> None:
        """Have it run. Raises ToolFailure with the code `server-failed`."""
        with self._using:
            await self._alive()

    async def sync(self, path: str, text: str | None = None, *, looks: bool = True) -> OpenDocument:
        """Have it see this file, as it is on disk or as `text` says, and whatever else has changed.

        `looks`: also what others than tools have changed, as far as that is seen in a moment.
        Raises ToolFailure: for a file that must not or cannot be read, and with `server-failed`.
        """
        real = self._reader.real(path)
        if text is not None and not text.isascii():
            _refuse_surrogates(text)
        if text is None:
            await self.alone.wait()
        with self._using:
            for attempt in (0, 1):
                life = await self._alive()
                try:
                    async with self._syncing:
                        return await self._opened.sync(life, real, text, looks=looks)
                except Gone as error:
                    if attempt:
                        raise life.failure from error
        raise AssertionError

    async def ask(self, method: str, params: Mapping[str, Any], *, seconds: float | None = None) -> Any:
        """Its answer to a question that changes nothing.

        It is asked again when it died over it, when it wants to be, and when it found nothing while it was still
        reading the project. Raises ToolFailure with the code `server-failed`, `server-slow` or `unsupported`.
        """
        seconds = self._settings.seconds if seconds is None else seconds
        await self.alone.wait()
        until = asyncio.get_running_loop().time() + seconds
        with self._using:
            for attempt in (0, 1):
                life = await self._alive()
                try:
                    await self._revive(life)
                    if not await life.will(method, until):
                        raise no_method_failure(self.name, method)
                    return await self._answer(life, method, params, until)
                except Gone as error:
                    if attempt:
                        raise life.failure from error
                except TimeoutError as error:
                    raise timeout_failure(self.name, seconds) from error
                except UnicodeEncodeError as error:
                    raise ToolFailure(_SURROGATE) from error
        raise AssertionError

    async def diagnostics(self, path: str, *, seconds: float) -> list[dict[str, Any]] | None:
        """What it says is wrong with the document as it was last synced; None where it says nothing in time.

        Raises ToolFailure where the document was not synced, and with `server-failed`.
        """
        real = self._reader.real(path)
        if self._opened.get(real) is None:
            raise ToolFailure(f"{real} is not open in the language server {self.name}.", code="not-found", path=real)
        until = asyncio.get_running_loop().time() + seconds
        with self._using:
            for attempt in (0, 1):
                life = await self._alive()
                try:
                    await self._revive(life)
                    return await self._problems(life, real, until)
                except Gone as error:
                    if attempt:
                        raise life.failure from error
                except TimeoutError:
                    return None
        raise AssertionError

    @property
    def documents(self) -> Mapping[str, OpenDocument]:
        """What it has open, by path; the one that was needed last at the end."""
        return self._opened.all()

    def release(self, paths: Sequence[str]) -> None:
        """Texts that were given for these files count no more: with the next sync they are as on disk, or closed."""
        self._opened.release(paths)

    async def settle(self, *, seconds: float) -> None:
        """Wait until it has told what it means to tell unasked; one that is asked for diagnostics tells nothing."""
        if self._life is not None and not self._life.can(PULL):
            await self._life.published.quiet(seconds=seconds)

    def touch(self, paths: Sequence[str]) -> None:
        """These files, or anything in these folders, were changed by tools: it is told so with the next sync."""
        self._opened.touch(paths)

    def expect(self, paths: Sequence[str]) -> None:
        """Calls of a message are about to write these files; it is told of each that they have by the next sync."""
        self._opened.expect(paths)

    async def sleep(self) -> None:
        """End its process; who needs it again starts it again."""
        async with self._starting:
            life, self._life = self._life, None
            self._starts.clear()
            self._opened.rest()
        try:
            if life is not None:
                await life.stop()
        finally:
            if self._dead:
                await asyncio.wait(self._dead)

    async def close(self) -> None:
        """End it for good."""
        self._closed = True
        if self._life is not None:
            self._life.give_up()  # whoever still waits for its start waits no longer
        await self.sleep()

    async def _answer(self, life: Life, method: str, params: Mapping[str, Any], until: float) -> Any:
        """Raises Gone, TimeoutError, ToolFailure."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                answer = await life.ask(method, params, seconds=until - loop.time())
            except LspResponseError as error:
                if error.code not in _AGAIN:
                    raise response_failure(self.name, method, error) from error
                await asyncio.sleep(_AGAIN_SECONDS)
                continue
            if answer or not life.is_working:
                return answer
            await life.rest(until - loop.time())
            if loop.time() >= until:
                return answer

    async def _problems(self, life: Life, real: str, until: float) -> list[dict[str, Any]] | None:
        """Raises Gone, TimeoutError, ToolFailure."""
        document = self._opened.get(real)
        if document is None:
            return None  # its file is gone by now
        published = life.published
        if not life.can(PULL):
            if self._opened.is_stirred:
                # What it said of this document may be from before other files changed; nothing says when it is not.
                self._opened.is_stirred = False
                await published.quiet(seconds=until - asyncio.get_running_loop().time())
            seconds = until - asyncio.get_running_loop().time()
            found = await published.wait(
                real, document.version, document.since, seconds=seconds, stop=lambda: life.can(PULL)
            )
            if found is not None or not life.can(PULL):
                return found
        known = published.result_id(real)
        params = {"textDocument": {"uri": document.uri}} | ({"previousResultId": known} if known else {})
        return published.put_answer(real, await self._answer(life, PULL, params, until))

    async def _revive(self, life: Life) -> None:
        """Where it was started again: have the documents open that were. Raises Gone."""
        if self._opened.is_stale(life):
            async with self._syncing:
                await self._opened.revive(life)

    async def _alive(self) -> Life:
        async with self._starting:
            if self._closed:
                raise ToolFailure(f"The language server {self.name} was ended with the session.", code="server-failed")
            life = self._life
            if life is not None and not life.why:
                return life
            if life is not None:
                self._bury(life)
            now = self._clock()
            while self._starts and now - self._starts[0] > _STARTS_SECONDS:
                self._starts.popleft()
            if len(self._starts) >= _MOST_STARTS:
                raise restart_limit_failure(self.name, _MOST_STARTS, _STARTS_SECONDS, life)
            self._opened.look()
            fresh = self._life = Life(self._recipe.row, self.root, self._recipe.configuration)
            try:
                await fresh.start(self._recipe.start, seconds=self._settings.start_seconds)
            except ToolFailure as failure:
                if failure.code == "server-failed":
                    self._starts.append(now)
                raise
            self._starts.append(now)
            self.has_run = True
            return fresh

    def _bury(self, life: Life) -> None:
        """What it has left running is ended, and nobody waits for that."""
        task = asyncio.get_running_loop().create_task(life.stop())
        self._dead.add(task)
        task.add_done_callback(self._dead.discard)


def _refuse_surrogates(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ToolFailure(_SURROGATE) from error
