"""List the problems that language servers find, and report errors that are new after edits.

An error is not new if it only moved with its lines. The comparison uses only servers that already run; it starts
none.
"""

import asyncio
import os
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, get_args
from weakref import WeakKeyDictionary

from ferrule.core.access import Access
from ferrule.core.errors import ToolFailure
from ferrule.core.tool import READS, Args, Context, Tool
from ferrule.files.diff import DiffChange, changes
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.files.search import newest_first
from ferrule.files.text import Binary, TextLines, parse
from ferrule.settings import LspSettings, Settings
from ferrule.system import Threads
from ferrule.system.stream import strip_controls
from ferrule.tools.lsp import Problem, Problems, Severity
from ferrule.tools.lsp.documents import Encoding, Layout, without_quoted
from ferrule.tools.lsp.life import PULL
from ferrule.tools.lsp.server import ProjectLanguageServer
from ferrule.tools.lsp.servers import LanguageServers, find_program
from ferrule.tools.search import PatternBase, find_matches

MOST = 5_000
"""More complaints about one file are not even looked at."""
MOST_MESSAGE_CHARS = 600
_MOST_NAME_CHARS = 80
_LARGEST = (1 << 31) - 1
"""The protocol knows no larger number."""
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""The worst first; the protocol counts them from 1."""
_ASIDES = ("info:", "note:", "help:", "hint:")
"""What ty and compilers say behind the message: where they looked, and what to read."""
_ESCAPES = r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]?|\x1b[PX\]^_k][^\x07\x1b\x9c\n]*+(?:\x07|\x1b\\|\x9c)?"


def problems(
    path: str, text: str, raw: Sequence[object], encoding: Encoding, *, source: str = "", hides: bool = False
) -> tuple[Problem, ...]:
    """A server's diagnostics of a document with that text, the worst first. What makes no sense is left out.

    `source` is who says so where a diagnostic does not. `hides`: values that the text does not have are left out.
    """
    every = [one for one in raw if isinstance(one, Mapping)]
    if len(every) > MOST:
        every = sorted(every, key=lambda one: SEVERITIES.index(_severity(one)))[:MOST]
    where = _places(text, encoding)
    found = [one for one in (_problem(path, one, where, source) for one in every) if one is not None]
    if hides:
        found = [one._replace(message=without_quoted(one.message, text)) for one in found]
    return sort_problems(found)


def sort_problems(found: Iterable[Problem]) -> tuple[Problem, ...]:
    """Errors first, then warnings and the rest; those of one kind by their place."""
    return tuple(
        sorted(found, key=lambda one: (SEVERITIES.index(one.severity), one.path, one.line, one.character, one.message))
    )


def _problem(
    path: str, one: Mapping[str, Any], where: Callable[[dict[str, int]], tuple[int, int]], source: str
) -> Problem | None:
    message = _one_line(_without_asides(_text(one.get("message"))), MOST_MESSAGE_CHARS)
    if not message:
        return None
    position = _position(one.get("range"))
    line, character = where(position) if position is not None else (0, 0)
    return Problem(
        path=path,
        line=line,
        message=message,
        character=character,
        severity=_severity(one),
        source=_one_line(_text(one.get("source")), _MOST_NAME_CHARS) or source,
        code=_one_line(_text(one.get("code")), _MOST_NAME_CHARS),
    )


def _severity(one: Mapping[str, Any]) -> Severity:
    """The protocol leaves it to us what one without a severity is."""
    severity = one.get("severity")
    return SEVERITIES[severity - 1] if type(severity) is int and 1 <= severity <= len(SEVERITIES) else "error"


def _places(text: str, encoding: Encoding) -> Callable[[dict[str, int]], tuple[int, int]]:
    """Positions as people count them, for many of one text: its lines are looked for once."""
    layout: list[Layout] = []

    def place(position: dict[str, int]) -> tuple[int, int]:
        if not layout:  # most files have no problem
            layout.append(Layout(text, encoding))
        return layout[0].place(position)

    return place


def _text(value: object) -> str:
    """A word as servers write them: a text, a number, or an object around one."""
    if isinstance(value, Mapping):
        value = value.get("value")
    if isinstance(value, str):
        return value[: 4 * MOST_MESSAGE_CHARS]
    return str(value) if type(value) is int and abs(value) <= _LARGEST else ""


def _without_asides(text: str) -> str:
    lines = text.strip().split("\n")
    end = next((at for at, line in enumerate(lines) if at and line.lstrip().startswith(_ASIDES)), len(lines))
    return "\n".join(lines[:end])


def _one_line(text: str, most: int) -> str:
    line = " ".join(strip_controls(re.sub(_ESCAPES, "", text).replace("\r", "\n")).split())
    # Half of a surrogate pair cannot be written down.
    line = line.encode(errors="replace").decode()
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def _position(span: object) -> dict[str, int] | None:
    """Where it begins; None where nobody said."""
    start = span.get("start") if isinstance(span, Mapping) else None
    if not isinstance(start, Mapping):
        return None
    line, character = start.get("line"), start.get("character")
    if type(line) is not int or type(character) is not int:
        return None
    return {"line": min(max(line, 0), _LARGEST), "character": min(max(character, 0), _LARGEST)}


_NUMBERED = r"\b([Ll]ine|[Cc]olumn) \d+|(\.\w{1,6}):\d+(?::\d+)?"

_Where = Callable[[int], Hashable]
"""What stands for a line when two are compared; None where nothing does."""


def news(old: Sequence[Problem], new: Sequence[Problem], old_text: str, new_text: str) -> tuple[Problem, ...]:
    """Those of the new problems that the old ones do not account for, each of them for one.

    A problem is the old one if it says the same of the same line, wherever that line is now; of the same words
    elsewhere; or of a line that was rewritten, among those that came in its place.
    """
    said = {_message_key(one) for one in old}
    if not any(_message_key(one) in said for one in new):
        return tuple(new)
    before, after = TextLines(old_text).flats, TextLines(new_text).flats
    moved = changes(before, after)
    gone, left = dict.fromkeys(range(len(old))), list(range(len(new)))
    ways: tuple[tuple[_Where, _Where], ...] = (
        (lambda line: _map_line(line, moved), lambda line: line),
        (lambda line: _words(before, line), lambda line: _words(after, line)),
        (lambda line: _find_old_change(line, moved), lambda line: _find_new_change(line, moved)),
    )
    for then, now in ways:
        waiting: dict[Hashable, list[int]] = defaultdict(list)
        for at in reversed(gone):
            if (where := then(old[at].line)) is not None:
                waiting[_message_key(old[at]), where].append(at)
        still = []
        for at in left:
            partners = waiting.get((_message_key(new[at]), now(new[at].line)))
            if partners:
                del gone[partners.pop()]
            else:
                still.append(at)
        left = still
    return tuple(new[at] for at in left)


def _message_key(one: Problem) -> Hashable:
    """What it says, wherever it is. Some name lines in their messages, and those move too."""
    return (re.sub(_NUMBERED, r"\1\2", one.message), one.code, one.source)


def _map_line(line: int, moved: Sequence[DiffChange]) -> int | None:
    """The number of an old line now; None where it was rewritten."""
    at = bisect_right(moved, line - 1, key=lambda change: change.start) - 1
    if at < 0:
        return line
    return None if line - 1 < moved[at].end else line + moved[at].new_end - moved[at].end


def _words(lines: Sequence[str], line: int) -> str | None:
    """What stands there, however far in."""
    return lines[line - 1].strip() if 0 < line <= len(lines) else None


def _find_old_change(line: int, moved: Sequence[DiffChange]) -> int | None:
    """The change that took an old line away."""
    at = bisect_right(moved, line - 1, key=lambda change: change.start) - 1
    return at if at >= 0 and line - 1 < moved[at].end else None


def _find_new_change(line: int, moved: Sequence[DiffChange]) -> int | None:
    """The change that brought a new line."""
    at = bisect_right(moved, line - 1, key=lambda change: change.new_start) - 1
    return at if at >= 0 and line - 1 < moved[at].new_end else None


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


class FilesSnapshot(NamedTuple):
    """What files were before the calls of a message changed them."""

    texts: Mapping[str, str | None]
    """By path; None where there was no file."""
    opened: Mapping[str, str]
    """The same of the files that servers had open, as they knew them."""


class _DocumentState(NamedTuple):
    """A document and the errors in it."""

    text: str
    errors: tuple[Problem, ...]


_NOTHING = _DocumentState("", ())


class _Edits(NamedTuple):
    """The files of one server that a message changed."""

    paths: tuple[str, ...]
    texts: Mapping[str, str | None]
    """What they were, where that is known."""
    begun: float
    """By the clock of the loop."""


class Noticing:
    """Compares what servers say before and after edits. It starts none, and what it cannot know it does not tell."""

    def __init__(self, servers: LanguageServers, settings: LspSettings, jail: Jail) -> None:
        self._servers = servers
        self._settings = settings
        self._jail = jail
        self._turn = asyncio.Lock()
        """One comparison after the other: each shows the servers old texts for a moment."""
        self._spared: WeakKeyDictionary[ProjectLanguageServer, float] = WeakKeyDictionary()
        """Servers that were too slow, and until when nobody waits for them."""

    def begin(self, paths: Sequence[str]) -> FilesSnapshot | None:
        """Keep what these files are now; calls are about to write them. None where no server runs at all.

        What else the calls change is compared with what the servers had open.
        """
        running = self._servers.list_running()
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
        return FilesSnapshot(texts, opened)

    async def end(self, before: FilesSnapshot, tracked: Sequence[str]) -> Mapping[str, str]:
        """A note for each of the changed files that has new errors, within the time that the settings give.

        What its edits broke in other open files stands in the note of the first of them. Whatever becomes of that,
        all servers learn which files were changed.
        """
        paths = tuple(dict.fromkeys(tracked))
        notes: dict[str, str] = {}
        told: set[ProjectLanguageServer] = set()
        try:
            if paths and self._settings.after_edits:
                async with asyncio.timeout(self._settings.after_seconds):
                    await self._notice(before, paths, notes, told)
        except TimeoutError:
            pass  # what is known by now is told
        finally:
            for server in self._servers.list_running():
                self._tell(server, paths, told)
        return {path: notes[path] for path in paths if path in notes}

    async def _notice(
        self, before: FilesSnapshot, paths: Sequence[str], notes: dict[str, str], told: set[ProjectLanguageServer]
    ) -> None:
        begun = asyncio.get_running_loop().time()
        edited: dict[ProjectLanguageServer, list[str]] = {}
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

    def _tell(self, server: ProjectLanguageServer, paths: Sequence[str], told: set[ProjectLanguageServer]) -> None:
        """Have it know which files were changed, once."""
        if server not in told:
            told.add(server)
            server.touch(paths)

    async def _compare(
        self,
        server: ProjectLanguageServer,
        edits: _Edits,
        notes: dict[str, str],
        tell: Callable[[ProjectLanguageServer], None],
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

    def _spare(self, server: ProjectLanguageServer, edits: _Edits) -> None:
        """One that has said nothing of the edits in time, as while it reads a large project, is not waited for soon."""
        gone = all(not os.path.isfile(path) for path in edits.paths)
        if not gone and server.is_ready:
            self._spared[server] = asyncio.get_running_loop().time() + _SPARED * self._settings.after_seconds

    async def _before(
        self, server: ProjectLanguageServer, edits: _Edits, others: Sequence[str]
    ) -> dict[str, _DocumentState]:
        """The errors as they were, with the server shown the old texts."""
        until = edits.begun + _BEFORE * self._settings.after_seconds
        old = [path for path, text in edits.texts.items() if text is not None and await _sync(server, path, text)]
        known = await self._states(server, old, others, until)
        return known | {path: _NOTHING for path, text in edits.texts.items() if text is None}

    async def _show(self, server: ProjectLanguageServer, edits: _Edits, others: Sequence[str]) -> list[str]:
        """Show it the files as they are; those that it has seen."""
        there = [path for path in edits.paths if os.path.isfile(path) and await _sync(server, path)]
        if not there and others:
            await _sync(server, others[0])  # whatever is synced, it learns of all the others too
        return there

    async def _after(
        self, server: ProjectLanguageServer, edits: _Edits, there: Sequence[str], others: Sequence[str]
    ) -> dict[str, _DocumentState]:
        """The errors as they are; files that are gone have none."""
        until = edits.begun + _AFTER * self._settings.after_seconds
        return await self._states(server, there, others, until)

    async def _states(
        self, server: ProjectLanguageServer, own: Sequence[str], others: Sequence[str], until: float
    ) -> dict[str, _DocumentState]:
        """Each of the documents about which something is said in time."""
        loop = asyncio.get_running_loop()

        async def state(path: str) -> _DocumentState | None:
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
            return _DocumentState(document.text, tuple(one for one in every if one.severity == "error"))

        if not server.can(PULL):
            # What it tells by itself comes in parts: first about one file when another was not told yet.
            await asyncio.gather(*map(state, own))
            await server.settle(seconds=max(0.0, until - loop.time()))
        paths = [path for path in (*own, *others) if path in server.documents]
        found = await asyncio.gather(*map(state, paths))
        return {path: one for path, one in zip(paths, found, strict=True) if one is not None}

    def _note(self, server: ProjectLanguageServer, own: Sequence[Problem], elsewhere: Sequence[Problem]) -> str:
        here, there = own[:MOST_TOLD], elsewhere[: max(0, MOST_TOLD - len(own))]
        rows = []
        if here:
            rows += [f"New errors after the edit ({server.name}):", *map(_row, here)]
        if there:
            rows.append(f"New errors in other files after the edit ({server.name}):")
            rows += [f"  {self._jail.display_path(one.path)}:{_row(one).lstrip()}" for one in there]
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


async def _sync(server: ProjectLanguageServer, path: str, text: str | None = None) -> bool:
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


def _new(then: _DocumentState | None, now: _DocumentState) -> tuple[Problem, ...]:
    """The errors that are new; none where nobody knows what there was before."""
    return () if then is None or not now.errors else news(then.errors, now.errors, then.text, now.text)


def _row(one: Problem) -> str:
    return f"  {one.line}:{one.character}: {one.message}" + f" [{one.code}]" * bool(one.code)


MOST_FILES = 200
MOST_PROBLEMS = 500
_AT_ONCE = 8
_PATIENCE = 3
"""A server that is silent about so many files, and has said nothing yet, is asked about no others."""
_TOLD_EVERY = 10
_NAMED = 3


class DiagnosticsArgs(Args, frozen=True, kw_only=True):
    path: str
    """A file, or a folder."""


class Diagnostics(Tool[DiagnosticsArgs, Problems]):
    """Errors and warnings as the language's own server sees them; it is started where none runs."""

    name = "diagnostics"
    args = DiagnosticsArgs
    title = "List the problems in files"
    hints = READS

    def access(self, args: DiagnosticsArgs, ctx: Context) -> tuple[Access, ...]:
        # The answer depends on all files: edits of the same message that come before it are to be done by then, and
        # those after it are to wait.
        return (Access.read(ctx.path(args.path)), Access.read(ctx.need(Jail).folder))

    async def run(self, args: DiagnosticsArgs, ctx: Context) -> Problems:
        real, jail = ctx.path(args.path), ctx.need(Jail)
        if not os.path.lexists(real):
            raise ToolFailure(f"{real} is not there.", code="not-found", path=real)
        jail.check(real)
        look = _DiagnosticsRun(ctx)
        beyond = 0
        if os.path.isdir(real):
            listing = await ctx.need(Threads).run(
                _select_files, *await find_matches(PatternBase(real, ["**/*"]), ctx), ctx
            )
            await look.over(listing.paths)
            if not look.files:
                raise await look.why_nothing(real, listing)
            look.tell(listing)
            beyond = listing.beyond + sum(listing.missing.values())
        else:
            await look.at(real)
            if not look.files:
                raise look.too_slow(real)
        every = sort_problems(dict.fromkeys(look.found))
        return Problems(
            path=real,
            problems=every[:MOST_PROBLEMS],
            files=look.files,
            total=len(every),
            left_out=beyond + len(look.silent) + len(look.unserved),
            folder=jail.folder,
        )


class _FolderFiles(NamedTuple):
    """The files of a folder that servers are for."""

    paths: list[str]
    """Those to be looked at, the ones changed last first."""
    beyond: int
    """How many more there are."""
    missing: dict[str, int]
    """How many there are of languages whose servers are not installed, by one of them each."""


class _DiagnosticsRun:
    """A look at one file or many, several at once, and what could not be looked at."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._servers = ctx.need(LanguageServers)
        self._seconds = ctx.need(Settings).lsp.seconds
        self.found: list[Problem] = []
        self.files = 0
        self.silent: list[str] = []
        """Files about which nothing was said in time."""
        self.unserved: list[str] = []
        """Files that no server could be asked about."""
        self._failures: dict[tuple[str, ...], ToolFailure] = {}
        """By the names of the servers that would do."""
        self._quiet: dict[str, int] = {}
        """How often a server has said nothing, by its name and root; none of it counts once it has answered."""
        self._answered: set[str] = set()

    async def at(self, path: str) -> None:
        """One file. Raises `ToolFailure` where no server can be asked."""
        await self._servers.use(
            path, lambda server: self._ask(server, path), tell=self._ctx.progress, note=self._ctx.note
        )

    async def _ask(self, server: ProjectLanguageServer, path: str) -> None:
        which = f"{server.name} {server.root}"
        if which not in self._answered and self._quiet.get(which, 0) >= _PATIENCE:
            self.silent.append(path)
            return
        document = await server.sync(path)
        raw = await server.diagnostics(path, seconds=self._seconds)
        if raw is None:
            self.silent.append(path)
            self._quiet[which] = self._quiet.get(which, 0) + 1
            return
        self._answered.add(which)
        self.files += 1
        hides = self._servers.sees_all
        self.found += problems(path, document.text, raw, server.encoding, source=server.name, hides=hides)

    async def over(self, paths: list[str]) -> None:
        """All of these files; each server is asked about several at once."""
        todo = iter(paths)
        async with asyncio.TaskGroup() as group:
            for _ in range(min(_AT_ONCE, len(paths))):
                group.create_task(self._each(todo, len(paths)))

    async def _each(self, todo: Iterator[str], total: int) -> None:
        for path in todo:
            able = tuple(row.name for row in self._servers.find_entries(path))
            if able not in self._failures:
                try:
                    await self.at(path)
                except ToolFailure as failure:
                    self.unserved.append(path)
                    # Of others it is not known that they fail alike: a file may be gone, or too large.
                    if failure.code in ("no-language-server", "server-failed", "no-sandbox"):
                        self._failures[able] = failure
                    else:
                        self._failures.setdefault((path,), failure)
            else:
                self.unserved.append(path)
            done = self.files + len(self.silent) + len(self.unserved)
            if done % _TOLD_EVERY == 0:
                self._ctx.progress(f"{done} of {total} files")

    def too_slow(self, path: str) -> ToolFailure:
        return ToolFailure(
            f"The language server said nothing about {path} within {self._seconds:g} seconds. It may still be reading "
            "the project: try again in a while.",
            code="server-slow",
            path=path,
        )

    async def why_nothing(self, folder: str, listing: _FolderFiles) -> ToolFailure:
        """Why not one file could be looked at."""
        if self._failures:
            return next(iter(self._failures.values()))
        if self.silent:
            return self.too_slow(self.silent[0])
        for path in listing.missing:
            try:
                await self._servers.server(path)
            except ToolFailure as failure:
                return failure
        return ToolFailure(
            f"No file below {folder} is of a language that a server is known for. Ignored files do not count.",
            code="no-language-server",
            path=folder,
        )

    def tell(self, listing: _FolderFiles) -> None:
        """Note what was left out."""
        ctx = self._ctx
        if listing.beyond:
            ctx.note(
                f"Only the {MOST_FILES} files that were changed last were looked at; {listing.beyond} more were not. "
                "Name a folder further down for those."
            )
        if listing.missing:
            kinds = [
                f"{_kind(path)} ({self._servers.find_entries(path)[0].name})" for path in list(listing.missing)[:_NAMED]
            ]
            more = " and others" if len(listing.missing) > _NAMED else ""
            count = _count(sum(listing.missing.values()))
            ctx.note(f"No language server is installed for {count}: {', '.join(kinds)}{more}.")
        if self.unserved:
            why = " ".join(dict.fromkeys(failure.message for failure in list(self._failures.values())[:_NAMED]))
            ctx.note(f"{_count(len(self.unserved))} could not be looked at. {why}")
        if self.silent:
            shown = ", ".join(ctx.need(Jail).display_path(path) for path in self.silent[:_NAMED])
            more = " and others" if len(self.silent) > _NAMED else ""
            ctx.note(f"Nothing was said in time about {_count(len(self.silent))}: {shown}{more}.")


def _count(files: int) -> str:
    return f"{files} file" + "s" * (files != 1)


def _kind(path: str) -> str:
    name = os.path.basename(path)
    return os.path.splitext(name)[1] or name


def _select_files(root: str, names: Sequence[str], ctx: Context) -> _FolderFiles:
    """Of these files, those that may be read and that an installed server is for."""
    servers, guard = ctx.need(LanguageServers), ctx.need(Guard)
    roots = [one.path for one in ctx.need(Jail).roots]
    installed: dict[tuple[str, ...], bool] = {}
    first: dict[tuple[str, ...], str] = {}
    missing: dict[str, int] = {}
    wanted = []
    for name in names:
        path = os.path.join(root, name)
        rows = servers.find_entries(path)
        if not rows or guard.secret(path):
            continue
        able = tuple(row.name for row in rows)
        if able not in installed:
            installed[able] = any(find_program(row, roots) for row in rows)
        if installed[able]:
            wanted.append(name)
        else:
            example = first.setdefault(able, path)
            missing[example] = missing.get(example, 0) + 1
    wanted = newest_first(root, wanted)
    most = dict(sorted(missing.items(), key=lambda item: -item[1]))
    return _FolderFiles(
        [os.path.join(root, name) for name in wanted[:MOST_FILES]], max(0, len(wanted) - MOST_FILES), most
    )
