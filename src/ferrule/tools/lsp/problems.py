"""List the problems that language servers find in a file or in a folder's files."""

import asyncio
import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ferrule.core.access import Access
from ferrule.core.errors import ToolFailure
from ferrule.core.tool import READS, Args, Context, Tool
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.files.search import newest_first
from ferrule.settings.schema import Settings
from ferrule.system.threads import Threads
from ferrule.tools.lsp.diagnostics import problems, sort_problems
from ferrule.tools.lsp.outcomes import Problem, Problems
from ferrule.tools.lsp.server import ProjectLanguageServer
from ferrule.tools.lsp.servers import LanguageServers, find_program
from ferrule.tools.search.patterns import PatternBase, find_matches

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
