"""Find, start, reuse and end the language servers of a session.

For each file the module finds the server's program, the folder of the project, and the packages of that project.

Nothing of the workspace is ever started: a program that lies in it, or is linked into it, counts as missing.
Servers are confined if possible, get a clean environment, and are kept in the roster.
"""

import asyncio
import contextlib
import os
import re
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from ferrule.core.access import within
from ferrule.core.errors import ToolFailure
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.sandbox import Wrapped, do_nothing
from ferrule.sandbox.confinement import Confinement
from ferrule.settings import LspSettings
from ferrule.system.command import Launch
from ferrule.system.environment import lies_in, program_on_path, quiet_environment
from ferrule.system.folder import describe
from ferrule.system.run import pipe
from ferrule.system.tree import Roster
from ferrule.tools.files.format import upwards
from ferrule.tools.lsp.documents import DocumentReader
from ferrule.tools.lsp.known import KNOWN, LanguageServerEntry, describe_absent, merge_tables, rows
from ferrule.tools.lsp.protocol import ProcessCallbacks, ServerProcess
from ferrule.tools.lsp.server import (
    GivenUp,
    LanguageServerRecipe,
    ProjectLanguageServer,
    describe_outdated,
    describe_replacement,
    no_server_failure,
)

if TYPE_CHECKING:
    from ferrule.system.child import Starter


_LISTED = 2000
"""So many names of a folder are looked through for a marker like `*.sln`."""
_TOOLCHAINS = 100
_VERSION_SECONDS = 20.0
_versions: dict[tuple[str, int], int] = {}


def find_program(row: LanguageServerEntry, roots: Sequence[str]) -> str | None:
    """Where the server's program is: on PATH, beside the Python that runs this, or where the user says."""
    if os.path.isabs(row.program):
        candidates = [row.program]
    elif os.sep in row.program or row.program in {"", os.curdir, os.pardir}:
        return None
    else:
        found = program_on_path(row.program, outside=roots)
        outside = list(roots)
        while found is not None and is_stand_in(found):
            outside.append(os.path.dirname(found))
            found = program_on_path(row.program, outside=outside)
        if found is not None:
            return found
        folder = os.path.join(sys.prefix, "Scripts" if os.name == "nt" else "bin")
        candidates = [os.path.join(folder, row.program + ".exe" * (os.name == "nt"))]
    for path in candidates:
        if os.path.isfile(path) and os.access(path, os.X_OK) and not lies_in(path, roots):
            return path
    return None


def is_stand_in(path: str) -> bool:
    """Is it rustup under another name, while no toolchain has the program which that would start?"""
    rustup = os.path.join(os.path.dirname(os.path.realpath(path)), "rustup" + ".exe" * (os.name == "nt"))
    try:
        if not os.path.samefile(path, rustup):  # a link to it, or the same file under two names
            return False
    except OSError:
        return False
    toolchains = os.path.join(os.environ.get("RUSTUP_HOME") or os.path.expanduser("~/.rustup"), "toolchains")
    try:
        names = sorted(os.listdir(toolchains))[:_TOOLCHAINS]
    except OSError:
        names = []
    return not any(os.path.isfile(os.path.join(toolchains, name, "bin", os.path.basename(path))) for name in names)


async def is_new_enough(row: LanguageServerEntry, path: str) -> bool:
    """Is it the program that the row means? Where that depends on its version it is asked for it, once."""
    if not row.least_version:
        return True
    try:
        key = (path, os.stat(path).st_mtime_ns)
    except OSError:
        return False
    if key not in _versions:
        _versions[key] = await _version(path)
    return _versions[key] >= row.least_version


async def _version(path: str) -> int:
    try:
        said = await pipe(
            [path, "--version"],
            b"",
            cwd=os.path.dirname(path),
            env=quiet_environment(os.environ),
            seconds=_VERSION_SECONDS,
            limit_bytes=4096,
        )
    except OSError:
        return 0
    found = re.search(rb"(\d+)\.\d", said.stdout)
    return int(found[1]) if found and not said.stopped and len(found[1]) < 6 else 0


def find_root(row: LanguageServerEntry, path: str, top: str) -> str:
    """The nearest folder above the file, up to `top`, where a project of the row begins; else `top`."""
    for folder in upwards(os.path.dirname(path), top):
        if not within(folder, top):
            break
        if has_marker(row, folder):
            return folder
    return top


def has_marker(row: LanguageServerEntry, folder: str) -> bool:
    """Does a project of the row begin in that folder?"""
    return any(_has(folder, marker) for marker in row.markers)


def _has(folder: str, marker: str) -> bool:
    if "*" not in marker:
        return os.path.lexists(os.path.join(folder, marker))
    try:
        with os.scandir(folder) as entries:
            return any(entry.name.endswith(marker[1:]) for entry, _ in zip(entries, range(_LISTED), strict=False))
    except OSError:
        return False


def search_path(roots: Sequence[str]) -> str:
    """PATH without what is relative and what lies in the workspace: a server starts programs by their names too."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(one for one in folders if os.path.isabs(one) and not lies_in(one, roots))


def python_configuration(root: str, roots: Sequence[str]) -> dict[str, Any]:
    """What servers for Python are told of the project's virtual environment, which is looked at and never run.

    Those of pyright's kind would run the interpreter that they are given, or find: they are given one from outside.
    """
    settings: dict[str, Any] = {}
    interpreter = program_on_path("python3", outside=roots) or program_on_path("python", outside=roots)
    if interpreter is None and not lies_in(sys.executable, roots):
        interpreter = sys.executable
    # Rather none than the one that it would find in the project.
    settings["pythonPath"] = settings["defaultInterpreterPath"] = interpreter or os.devnull
    venv = next((path for name in (".venv", "venv") if os.path.isdir(path := os.path.join(root, name))), "")
    found: dict[str, Any] = {"python": settings}
    if venv:
        packages = list(_site_packages(venv))
        settings["analysis"] = {"extraPaths": packages}
        found["basedpyright"] = {"analysis": {"extraPaths": packages}}
        found["ty"] = {"configuration": {"environment": {"python": venv}}}
    return found


def _site_packages(venv: str) -> Iterator[str]:
    windows = os.path.join(venv, "Lib", "site-packages")
    if os.name == "nt" and os.path.isdir(windows):
        yield windows
    try:
        names = sorted(os.listdir(os.path.join(venv, "lib")))
    except OSError:
        return
    for name in names:
        path = os.path.join(venv, "lib", name, "site-packages")
        if name.startswith(("python", "pypy")) and os.path.isdir(path):
            yield path


class Starting(NamedTuple):
    """What it takes to start any server of the session."""

    jail: Jail
    confinement: Callable[[], Confinement]
    roster: Callable[[], Roster]
    is_confined: bool
    """Are servers to run in the sandbox, where there is one?"""

    @property
    def roots(self) -> list[str]:
        return [root.path for root in self.jail.roots]

    @property
    def sees_all(self) -> bool:
        """Does nothing keep servers from secret and denied files?"""
        return not self.is_confined or self.confinement().sandbox is None

    def start(self, row: LanguageServerEntry, program: str, root: str, line: ProcessCallbacks) -> ServerProcess:
        """Start it. Raises ToolFailure where it cannot be started, or may not."""
        own = os.path.join(os.path.expanduser("~"), ".cache", "ferrule", "servers", row.name)
        wrapped = self._wrap(row, [program, *row.args], root)
        with contextlib.ExitStack() as failed:
            failed.callback(wrapped.done)
            private = wrapped.env.get("TMPDIR", "").rstrip(os.sep) or own
            env = {
                **quiet_environment(os.environ),
                "PATH": search_path(self.roots),
                # What it keeps for itself goes where it may write.
                **({"XDG_CACHE_HOME": os.path.join(private, "cache")} if private != own else {}),
                **{name: value.replace("{private}", private) for name, value in row.env.items()},
                **wrapped.env,
            }
            launch = Launch(
                [word.replace("{private}", private) for word in wrapped.argv],
                root,
                env,
                stdin="pipe",
                starter=cast("Starter | None", wrapped.starter),
                descriptors=wrapped.descriptors,
                roster=self.roster(),
                command=" ".join((program, *row.args)),
                done=None if wrapped.done is do_nothing else wrapped.done,
            )
            try:
                self.jail.check(root)
            except BaseException:
                for descriptor in wrapped.descriptors:
                    os.close(descriptor)
                raise
            try:
                process = ServerProcess(launch, line)
            except OSError as error:
                message = f"The language server {row.name} cannot be started: {describe(error)}."
                raise ToolFailure(message, code="server-failed") from error
            failed.pop_all()  # from now on the process takes it back when it has ended
            return process

    def _wrap(self, row: LanguageServerEntry, argv: Sequence[str], root: str) -> Wrapped:
        confinement = self.confinement() if self.is_confined else None
        sandbox = None if confinement is None else confinement.sandbox
        if confinement is None or sandbox is None:
            if row.runs_project_code and not row.is_named:
                raise ToolFailure(
                    f"The language server {row.name} runs code of the project, and nothing confines it here. The user "
                    f"can allow that by naming it in the settings, as [lsp.servers.{row.name}], or install a sandbox.",
                    code="no-sandbox",
                )
            return Wrapped(tuple(argv))
        # It reads and never writes, whatever commands may.
        profile = confinement.read_only_profile(*self.roots, *_own_folders(argv[0], self.roots))
        try:
            return sandbox.wrap(argv, profile, cwd=root)
        except (OSError, ValueError) as error:
            message = f"The language server {row.name} was not started, for it could not be confined: {error}"
            raise ToolFailure(message, code="no-sandbox") from error


def _own_folders(program: str, roots: Sequence[str]) -> list[str]:
    """Where the program lies, by its name and behind a link; for programs in places that are private to commands."""
    folders = [os.path.dirname(path) for path in (program, os.path.realpath(program))]
    return [folder for folder in dict.fromkeys(map(os.path.realpath, folders)) if folder not in {os.sep, *roots}]


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
        settings: LspSettings,
        roster: Callable[[], Roster],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._jail = jail
        self._settings = settings
        self._clock = clock
        self._reader = DocumentReader(jail, guard)
        self._starting = Starting(jail, confinement, roster, settings.confined)
        self._rows = rows(KNOWN, settings.servers)
        self._servers: dict[tuple[str, str], ProjectLanguageServer] = {}
        self._recent: dict[str, tuple[ProjectLanguageServer, float]] = {}
        self._failed: dict[tuple[str, str], float] = {}
        """Those that have failed at their first start, and until when others are tried before them."""
        self._unused: dict[str, str] = {}
        """Those that the user named and that are not used, by their names, and why."""
        self._noted: set[str] = set()
        self._for_names: dict[str, tuple[LanguageServerEntry, ...]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._closed = False

    def find_entries(self, path: str) -> tuple[LanguageServerEntry, ...]:
        """The servers in the table for such a file, best first, installed or not."""
        name = os.path.basename(path)
        found = self._for_names.get(name)
        if found is None:
            if len(self._for_names) >= _RECENT:
                self._for_names.clear()
            found = self._for_names[name] = tuple(row for row in self._rows if row.language(name))
        return found

    async def use(
        self, path: str, ask: Callable[[ProjectLanguageServer], Awaitable[Answer]], *, tell: Teller, note: Teller
    ) -> Answer:
        """What `ask` has of the server for this file, or of the next one, where that one ends again and again.

        `tell` and `note` are as for `server`. Raises ToolFailure, as `server` and `ask` do.
        """
        try:
            return await ask(await self.server(path, tell=tell, note=note))
        except GivenUp:
            return await ask(await self.server(path, tell=tell, note=note))

    async def server(
        self, path: str, *, tell: Teller | None = None, note: Teller | None = None
    ) -> ProjectLanguageServer:
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
                self._unused[row.name] = describe_outdated(row, program)
                continue
            if self._closed:
                raise ToolFailure("The session has ended.", code="server-failed")
            try:
                server = await self._start_server(row, program, root, tell)
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
        raise no_server_failure(os.path.basename(real), real, self.find_entries(real), failures)

    def warm(self, path: str) -> ProjectLanguageServer | None:
        """The server for this file if it runs already and is ready."""
        recent = self._recent.get(path)
        if recent is not None and recent[0].is_ready and self._clock() < recent[1]:
            return recent[0]
        try:
            real = self._reader.real(path)
            top = self._jail.place(real).root.path
        except ToolFailure:
            return None
        for row in self.find_entries(real):
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

    def list_running(self) -> tuple[ProjectLanguageServer, ...]:
        """All that run and are ready."""
        return tuple(server for server in self._servers.values() if server.is_ready)

    def touch(self, paths: Sequence[str]) -> None:
        """These files, or anything in these folders, were changed: every server is told so with its next sync."""
        for server in self._servers.values():
            server.touch(paths)

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

    def _candidates(self, real: str) -> list[tuple[LanguageServerEntry, str, str]]:
        """The servers for this file whose programs are there, each with its root; such as have failed come last."""
        top = self._jail.place(real).root.path
        found = []
        for row in self.find_entries(real):
            root = find_root(row, real, top)
            if row.needs_marker and not has_marker(row, root):
                continue
            program = find_program(row, self._starting.roots)
            if program is not None:
                found.append((row, program, root))
            elif row.is_named:
                self._unused[row.name] = describe_absent(row)
        now = self._clock()
        return sorted(found, key=lambda one: self._failed.get((one[0].name, one[2]), now) > now)

    def _say_unused(self, real: str, server: ProjectLanguageServer, note: Teller) -> None:
        """Say once of each server that the user named, and that would be asked before this one, why it is not."""
        for row in self.find_entries(real):
            if row.name == server.name:
                return
            if row.is_named and row.name in self._unused and row.name not in self._noted:
                self._noted.add(row.name)
                note(describe_replacement(self._unused[row.name], server.name))

    async def _start_server(
        self, row: LanguageServerEntry, program: str, root: str, tell: Teller | None
    ) -> ProjectLanguageServer:
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

    def _is_over(self, row: LanguageServerEntry, root: str) -> bool:
        """Has a server that failed run before, or has the session ended? Then it is no matter of its start."""
        server = self._servers.get((row.name, root))
        return server is None or server.has_run

    def _remember(self, path: str, server: ProjectLanguageServer) -> None:
        if len(self._recent) >= _RECENT:
            self._recent.clear()
        self._recent[path] = (server, self._clock() + _RECENT_SECONDS)

    def _new(self, row: LanguageServerEntry, program: str, root: str) -> ProjectLanguageServer:
        configuration = row.configuration
        if "python" in row.languages.values():
            configuration = merge_tables(python_configuration(root, self._starting.roots), configuration)
        recipe = LanguageServerRecipe(
            row, root, lambda line: self._starting.start(row, program, root, line), configuration
        )
        return ProjectLanguageServer(recipe, self._reader, self._settings, self._clock)

    def _make_room(self, wanted: ProjectLanguageServer) -> None:
        """End those that were asked longest ago, and such that nobody waits for first."""
        others = [server for server in self._servers.values() if server is not wanted and server.pid]
        others.sort(key=lambda server: (server.is_busy, server.last_used_at))
        for server in others[: max(0, len(others) + 1 - self._settings.most)]:
            self._end(server)

    def _end_idle(self) -> None:
        before = self._clock() - self._settings.idle_seconds
        for server in self._servers.values():
            if server.pid and server.last_used_at < before and not server.is_busy:
                self._end(server)

    def _end(self, server: ProjectLanguageServer) -> None:
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
