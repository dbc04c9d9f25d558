"""The language servers of a session: found for a file, started on demand, kept warm, and ended."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from ferrule.core.errors import ToolFailure
from ferrule.support.roster import Roster
from ferrule.tool_settings import Lsp
from ferrule.workspace.confinement import Confinement
from ferrule.workspace.guarded import Guard
from ferrule.workspace.languages.documents import Reader
from ferrule.workspace.languages.failures import GivenUp, absent, missing, outdated, replaced
from ferrule.workspace.languages.finding import find_program, find_root, has_marker, is_new_enough, python_configuration
from ferrule.workspace.languages.known import KNOWN
from ferrule.workspace.languages.server import Recipe, Server
from ferrule.workspace.languages.starting import Starting
from ferrule.workspace.languages.table import Row, merged, rows
from ferrule.workspace.paths import Jail

_RECENT = 256
_RECENT_SECONDS = 2.0
"""So long the server that was found for a file is taken to be the one for it: somebody asks many things of one file."""
_FAILED_SECONDS = 300.0

Answer = TypeVar("Answer")
Teller = Callable[[str], None]


class LanguageServers:
    """One server for each kind and each project."""

    def __init__(  # noqa: PLR0917 - each is another service
        self,
        jail: Jail,
        guard: Guard,
        confinement: Callable[[], Confinement],
        settings: Lsp,
        roster: Callable[[], Roster],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._jail = jail
        self._settings = settings
        self._clock = clock
        self._reader = Reader(jail, guard)
        self._starting = Starting(jail, confinement, roster, settings.confined)
        self._rows = rows(KNOWN, settings.servers)
        self._servers: dict[tuple[str, str], Server] = {}
        self._recent: dict[str, tuple[Server, float]] = {}
        self._failed: dict[tuple[str, str], float] = {}
        """Those that have failed at their first start, and until when others are tried before them."""
        self._unused: dict[str, str] = {}
        """Those that the user named and that are not used, by their names, and why."""
        self._noted: set[str] = set()
        self._for_names: dict[str, tuple[Row, ...]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._closed = False

    def known(self, path: str) -> tuple[Row, ...]:
        """The servers in the table for such a file, best first, installed or not."""
        name = os.path.basename(path)
        found = self._for_names.get(name)
        if found is None:
            if len(self._for_names) >= _RECENT:
                self._for_names.clear()
            found = self._for_names[name] = tuple(row for row in self._rows if row.language(name))
        return found

    async def use(self, path: str, ask: Callable[[Server], Awaitable[Answer]], *, tell: Teller, note: Teller) -> Answer:
        """What `ask` has of the server for this file, or of the next one, where that one ends again and again.

        `tell` and `note` are as for `server`. Raises ToolFailure, as `server` and `ask` do.
        """
        try:
            return await ask(await self.server(path, tell=tell, note=note))
        except GivenUp:
            return await ask(await self.server(path, tell=tell, note=note))

    async def server(self, path: str, *, tell: Teller | None = None, note: Teller | None = None) -> Server:
        """The server for this file, running.

        `tell` hears what takes a while, and `note` once of each server that the user named and that is not used.
        Raises ToolFailure: `no-language-server`, `server-failed`, `no-sandbox`.
        """
        recent = self._recent.get(path)
        if recent is not None and recent[0].is_ready and self._clock() < recent[1]:
            return recent[0]
        real = self._reader.real(path)
        failures: list[ToolFailure] = []
        for row, program, root in self._candidates(real):
            if not await is_new_enough(row, program):
                self._unused[row.name] = outdated(row, program)
                continue
            if self._closed:
                raise ToolFailure("The session has ended.", code="server-failed")
            try:
                server = await self._started(row, program, root, tell)
            except ToolFailure as failure:
                if not isinstance(failure, GivenUp) and (
                    failure.code not in {"server-failed", "no-sandbox"} or self._is_over(row, root)
                ):
                    raise
                failures.append(failure)
                self._unused[row.name] = failure.message
                self._failed[row.name, root] = self._clock() + _FAILED_SECONDS
            else:
                self._remember(path, server)
                if note is not None and self._unused:
                    self._say_unused(real, server, note)
                return server
        raise missing(os.path.basename(real), real, self.known(real), failures)

    def warm(self, path: str) -> Server | None:
        """The server for this file if it runs already and is ready."""
        recent = self._recent.get(path)
        if recent is not None and recent[0].is_ready and self._clock() < recent[1]:
            return recent[0]
        try:
            real = self._reader.real(path)
            top = self._jail.place(real).root.path
        except ToolFailure:
            return None
        for row in self.known(real):
            if row.needs_marker and not has_marker(row, find_root(row, real, top)):
                continue
            server = self._servers.get((row.name, find_root(row, real, top)))
            if server is not None and server.is_ready:
                self._remember(path, server)
                return server
        return None

    @property
    def sees_all(self) -> bool:
        """Do servers see secret and denied files too? Only the sandbox hides those from them."""
        return self._starting.sees_all

    def running(self) -> tuple[Server, ...]:
        """All that run and are ready."""
        return tuple(server for server in self._servers.values() if server.is_ready)

    def touched(self, paths: Sequence[str]) -> None:
        """These files, or anything in these folders, were changed: every server is told so with its next sync."""
        for server in self._servers.values():
            server.touched(paths)

    async def close(self) -> None:
        """End all of them."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        servers, self._servers = list(self._servers.values()), {}
        ended = await asyncio.gather(*(server.close() for server in servers), *self._ending, return_exceptions=True)
        for error in ended:
            if isinstance(error, BaseException):
                raise error

    def _candidates(self, real: str) -> list[tuple[Row, str, str]]:
        """The servers for this file whose programs are there, each with its root; such as have failed come last."""
        top = self._jail.place(real).root.path
        found = []
        for row in self.known(real):
            root = find_root(row, real, top)
            if row.needs_marker and not has_marker(row, root):
                continue
            program = find_program(row, self._starting.roots)
            if program is not None:
                found.append((row, program, root))
            elif row.is_named:
                self._unused[row.name] = absent(row)
        now = self._clock()
        return sorted(found, key=lambda one: self._failed.get((one[0].name, one[2]), now) > now)

    def _say_unused(self, real: str, server: Server, note: Teller) -> None:
        """Say once of each server that the user named, and that would be asked before this one, why it is not."""
        for row in self.known(real):
            if row.name == server.name:
                return
            if row.is_named and row.name in self._unused and row.name not in self._noted:
                self._noted.add(row.name)
                note(replaced(self._unused[row.name], server.name))

    async def _started(self, row: Row, program: str, root: str, tell: Teller | None) -> Server:
        self._end_idle()
        key = (row.name, root)
        server = self._servers.get(key)
        if server is None:
            server = self._servers[key] = self._new(row, program, root)
        self._make_room(server)
        if tell is not None and not server.is_ready:
            tell(f"Starting {row.name}")
        await server.start()
        self._watch()
        return server

    def _is_over(self, row: Row, root: str) -> bool:
        """Has a server that failed run before, or has the session ended? Then it is no matter of its start."""
        server = self._servers.get((row.name, root))
        return server is None or server.has_run

    def _remember(self, path: str, server: Server) -> None:
        if len(self._recent) >= _RECENT:
            self._recent.clear()
        self._recent[path] = (server, self._clock() + _RECENT_SECONDS)

    def _new(self, row: Row, program: str, root: str) -> Server:
        configuration = row.configuration
        if "python" in row.languages.values():
            configuration = merged(python_configuration(root, self._starting.roots), configuration)
        recipe = Recipe(row, root, lambda line: self._starting.start(row, program, root, line), configuration)
        return Server(recipe, self._reader, self._settings, self._clock)

    def _make_room(self, wanted: Server) -> None:
        """End those that were asked longest ago, and such that nobody waits for first."""
        others = [server for server in self._servers.values() if server is not wanted and server.pid]
        others.sort(key=lambda server: (server.is_busy, server.used_at))
        for server in others[: max(0, len(others) + 1 - self._settings.most)]:
            self._end(server)

    def _end_idle(self) -> None:
        before = self._clock() - self._settings.idle_seconds
        for server in self._servers.values():
            if server.pid and server.used_at < before and not server.is_busy:
                self._end(server)

    def _end(self, server: Server) -> None:
        """It is started again when it is needed again."""
        task = asyncio.get_running_loop().create_task(server.sleep())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def _watch(self) -> None:
        """Look again when the next one may have been idle for too long."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._servers and not self._closed:
            seconds = self._settings.idle_seconds + 1.0
            self._timer = asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        self._end_idle()
        self._watch()
