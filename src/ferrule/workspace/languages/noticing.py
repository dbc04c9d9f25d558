"""New errors after a message's edits, where a language server runs already: before and after compared."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

from ferrule.core.errors import ToolFailure
from ferrule.core.problems import Problem
from ferrule.tool_settings import Lsp
from ferrule.workspace.languages.compare import news
from ferrule.workspace.languages.life import PULL
from ferrule.workspace.languages.problems import problems
from ferrule.workspace.languages.server import Server
from ferrule.workspace.languages.servers import LanguageServers
from ferrule.workspace.paths import Jail
from ferrule.workspace.textfile import Binary, parse

MOST_TOLD = 10
_MOST_FILES = 40
"""Files of one message that are compared; fewer than a server keeps open."""
_MOST_OTHERS = 20
"""Open files beside them."""
_MOST_BYTES = 2 << 20
"""Of one old text, and of all of them four times as much."""
_BEFORE, _AFTER = 0.5, 0.95
"""Which part of the time is over at most when the errors before are known, and those after."""

_SPARED = 10.0
"""So many times as long as one is waited for it is spared after it was too slow."""


class Before(NamedTuple):
    """What files were before the calls of a message changed them."""

    texts: Mapping[str, str | None]
    """By path; None where there was no file."""
    opened: Mapping[str, str]
    """The same of the files that servers had open, as they knew them."""


class _State(NamedTuple):
    """A document and the errors in it."""

    text: str
    errors: tuple[Problem, ...]


_NOTHING = _State("", ())


class _Edits(NamedTuple):
    """The files of one server that a message changed."""

    paths: tuple[str, ...]
    texts: Mapping[str, str | None]
    """What they were, where that is known."""
    begun: float
    """By the clock of the loop."""


class Noticing:
    """Compares what servers say before and after edits. It starts none, and what it cannot know it does not tell."""

    def __init__(self, servers: LanguageServers, settings: Lsp, jail: Jail) -> None:
        self._servers = servers
        self._settings = settings
        self._jail = jail
        self._turn = asyncio.Lock()
        """One comparison after the other: each shows the servers old texts for a moment."""
        self._spared: WeakKeyDictionary[Server, float] = WeakKeyDictionary()
        """Servers that were too slow, and until when nobody waits for them."""

    def begin(self, paths: Sequence[str]) -> Before | None:
        """Keep what these files are now; calls are about to write them. None where no server runs at all.

        What else the calls change is compared with what the servers had open.
        """
        running = self._servers.running()
        if not running:
            return None
        for server in running:
            server.expect(paths[:_MOST_FILES])
        opened = {path: document.text for server in running for path, document in server.documents.items()}
        texts: dict[str, str | None] = {}
        room = 4 * _MOST_BYTES
        for path in dict.fromkeys(paths):
            if len(texts) >= _MOST_FILES or room <= 0:
                break
            if self._servers.warm(path) is None:
                continue
            try:
                raw = self._read(path, min(room, _MOST_BYTES))
                texts[path] = None if raw is None else parse(raw).text
            except (OSError, ToolFailure, Binary):
                continue  # no text of the workspace: nothing is told of it
            room -= len(raw or b"")
        return Before(texts, opened)

    async def end(self, before: Before, tracked: Sequence[str]) -> Mapping[str, str]:
        """A note for each of the changed files that has new errors, within the time that the settings give.

        What its edits broke in other open files stands in the note of the first of them. Whatever becomes of that,
        all servers learn which files were changed.
        """
        paths = tuple(dict.fromkeys(tracked))
        notes: dict[str, str] = {}
        told: set[Server] = set()
        try:
            if paths and self._settings.after_edits:
                async with asyncio.timeout(self._settings.after_seconds):
                    await self._notice(before, paths, notes, told)
        except TimeoutError:
            pass  # what is known by now is told
        finally:
            for server in self._servers.running():
                self._tell(server, paths, told)
        return {path: notes[path] for path in paths if path in notes}

    async def _notice(self, before: Before, paths: Sequence[str], notes: dict[str, str], told: set[Server]) -> None:
        begun = asyncio.get_running_loop().time()
        edited: dict[Server, list[str]] = {}
        for path in paths:
            server = self._servers.warm(path)
            if server is None or self._spared.get(server, begun) > begun:
                continue
            if sum(map(len, edited.values())) < _MOST_FILES:
                edited.setdefault(server, []).append(path)
        async with self._turn, asyncio.TaskGroup() as group:
            for server, own in edited.items():
                texts = {path: before.texts[path] for path in own if path in before.texts}
                texts |= {path: before.opened[path] for path in own if path in before.opened and path not in texts}
                edits = _Edits(tuple(own), texts, begun)
                group.create_task(self._compare(server, edits, notes, lambda one: self._tell(one, paths, told)))

    def _tell(self, server: Server, paths: Sequence[str], told: set[Server]) -> None:
        """Have it know which files were changed, once."""
        if server not in told:
            told.add(server)
            server.touched(paths)

    async def _compare(
        self, server: Server, edits: _Edits, notes: dict[str, str], tell: Callable[[Server], None]
    ) -> None:
        """Put into `notes` what one server finds; nothing where it fails."""
        others = [path for path in reversed(list(server.documents)) if path not in edits.paths][:_MOST_OTHERS]
        try:
            # Whoever else asks it meanwhile is not to be answered from the old texts.
            async with server.alone.hold():
                try:
                    then = await self._before(server, edits, others)
                finally:
                    # From here on its documents are as their files are, whatever becomes of this.
                    server.release(edits.paths)
                    tell(server)
                there = await self._show(server, edits, others)
            now = await self._after(server, edits, there, others) if then else {}
        except ToolFailure:
            return
        if not any(path in now for path in edits.paths) and edits.texts:
            self._spare(server, edits)
        own = {path: _new(then.get(path), now[path]) for path in edits.paths if path in now}
        elsewhere = [one for path in others if path in now for one in _new(then.get(path), now[path])]
        for path in edits.paths:
            broken = elsewhere if path == edits.paths[0] else []
            if own.get(path) or broken:
                notes[path] = self._note(server, own.get(path, ()), broken)

    def _spare(self, server: Server, edits: _Edits) -> None:
        """One that has said nothing of the edits in time, as while it reads a large project, is not waited for soon."""
        gone = all(not os.path.isfile(path) for path in edits.paths)
        if not gone and server.is_ready:
            self._spared[server] = asyncio.get_running_loop().time() + _SPARED * self._settings.after_seconds

    async def _before(self, server: Server, edits: _Edits, others: Sequence[str]) -> dict[str, _State]:
        """The errors as they were, with the server shown the old texts."""
        until = edits.begun + _BEFORE * self._settings.after_seconds
        old = [path for path, text in edits.texts.items() if text is not None and await _sync(server, path, text)]
        known = await self._states(server, old, others, until)
        return known | {path: _NOTHING for path, text in edits.texts.items() if text is None}

    async def _show(self, server: Server, edits: _Edits, others: Sequence[str]) -> list[str]:
        """Show it the files as they are; those that it has seen."""
        there = [path for path in edits.paths if os.path.isfile(path) and await _sync(server, path)]
        if not there and others:
            await _sync(server, others[0])  # whatever is synced, it learns of all the others too
        return there

    async def _after(
        self, server: Server, edits: _Edits, there: Sequence[str], others: Sequence[str]
    ) -> dict[str, _State]:
        """The errors as they are; files that are gone have none."""
        until = edits.begun + _AFTER * self._settings.after_seconds
        return await self._states(server, there, others, until)

    async def _states(
        self, server: Server, own: Sequence[str], others: Sequence[str], until: float
    ) -> dict[str, _State]:
        """Each of the documents about which something is said in time."""
        loop = asyncio.get_running_loop()

        async def state(path: str) -> _State | None:
            document = server.documents.get(path)
            if not server.is_ready or document is None:
                return None
            try:
                raw = await server.diagnostics(path, seconds=max(0.0, until - loop.time()))
            except ToolFailure:
                return None
            now = server.documents.get(path)
            if raw is None or now is None or now.version != document.version:
                return None  # somebody has changed it meanwhile: nobody knows of which text this was said
            every = problems(
                path, document.text, raw, server.encoding, source=server.name, hides=self._servers.sees_all
            )
            return _State(document.text, tuple(one for one in every if one.severity == "error"))

        if not server.can(PULL):
            # What it tells by itself comes in parts: first about one file when another was not told yet.
            await asyncio.gather(*map(state, own))
            await server.settle(seconds=max(0.0, until - loop.time()))
        paths = [path for path in (*own, *others) if path in server.documents]
        found = await asyncio.gather(*map(state, paths))
        return {path: one for path, one in zip(paths, found, strict=True) if one is not None}

    def _note(self, server: Server, own: Sequence[Problem], elsewhere: Sequence[Problem]) -> str:
        here, there = own[:MOST_TOLD], elsewhere[: max(0, MOST_TOLD - len(own))]
        rows = []
        if here:
            rows += [f"New errors after the edit ({server.name}):", *map(_row, here)]
        if there:
            rows.append(f"New errors in other files after the edit ({server.name}):")
            rows += [f"  {self._jail.shown(one.path)}:{_row(one).lstrip()}" for one in there]
        more = len(own) + len(elsewhere) - len(here) - len(there)
        return "\n".join([*rows, *[f"  and {more} more"] * (more > 0)])

    def _read(self, path: str, limit_bytes: int) -> bytes | None:
        """A file of the workspace, if it is no larger; None where there is none."""
        place = self._jail.place(path)
        if not place.parts:
            raise IsADirectoryError(path)
        try:
            with place.folder() as folder:
                raw = folder.read(place.name, limit_bytes)
        except FileNotFoundError:
            return None
        if raw is None or len(raw) > limit_bytes:
            raise OSError(f"{path} is no file, or too large")
        return raw


async def _sync(server: Server, path: str, text: str | None = None) -> bool:
    """Has it been shown the file? Not one that it cannot be shown. Raises `ToolFailure` where it has died."""
    if not server.is_ready:
        raise ToolFailure(f"The language server {server.name} is gone.", code="server-failed")
    try:
        # What others change meanwhile is no matter of these edits: the next question is told of it.
        await server.sync(path, text, looks=False)
    except ToolFailure as failure:
        if failure.code == "server-failed":
            raise
        return False
    return True


def _new(then: _State | None, now: _State) -> tuple[Problem, ...]:
    """The errors that are new; none where nobody knows what there was before."""
    return () if then is None or not now.errors else news(then.errors, now.errors, then.text, now.text)


def _row(one: Problem) -> str:
    return f"  {one.line}:{one.character}: {one.message}" + f" [{one.code}]" * bool(one.code)
