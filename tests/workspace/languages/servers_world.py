"""Language servers over a small project in a folder, and what tests ask of them."""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from ferrule.core.errors import ToolFailure
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.sandbox.confinement import Confinement, Wishes
from ferrule.settings import LanguageServer, LspSettings
from ferrule.system.tree import Roster
from ferrule.tools.lsp.documents import to_server
from ferrule.tools.lsp.server import ProjectLanguageServer
from ferrule.tools.lsp.servers import LanguageServers

FAKE = str(Path(__file__).with_name("fake_server.py"))
_PROGRAM = Path(FAKE).read_text(encoding="utf-8")
"""As text: a sandbox has a temporary folder of its own, and this project may lie in the real one."""
SECONDS = 60.0
"""For everything that is waited for: long enough for a busy machine, and not for ever."""
PYTHON = 'def helper(x: int) -> int:\n    return x\n\n\nhelper("s")\n'
SCRIPT = 'function helper(x: number): number {\n  return x;\n}\n\nhelper("s");\n'


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def fake(*, env: dict[str, str] | None = None, **options: Any) -> LanguageServer:
    """The fake server, for files with the ending `.fake`; `FAKE` in the environment holds before it starts."""
    return LanguageServer(
        command=sys.executable, args=("-I", "-S", "-c", _PROGRAM), endings=(".fake",), options=options, env=env or {}
    )


def misbehaving(**told: Any) -> LanguageServer:
    return fake(env={"FAKE": json.dumps(told)})


@contextlib.asynccontextmanager
async def opened(
    folder: Path,
    servers: dict[str, LanguageServer] | None = None,
    *,
    use: Any = "none",
    clock: Callable[[], float] | None = None,
    **settings: Any,
) -> AsyncIterator[LanguageServers]:
    """The servers of a session on the folder `work` below this one, all ended in the end."""
    work = folder / "work"
    work.mkdir(exist_ok=True)
    jail = Jail(str(work))
    guard = Guard((), jail)
    confinement = Confinement(jail, guard, Wishes(use=use), state=str(folder / "state"), home=[str(work)])
    given = LspSettings(
        servers=servers or {"fake": fake()}, **{"seconds": SECONDS, "start_seconds": SECONDS, **settings}
    )
    roster = Roster(str(folder / "processes"))
    more = {} if clock is None else {"clock": clock}
    languages = LanguageServers(jail, guard, lambda: confinement, given, lambda: roster, **more)
    try:
        async with asyncio.timeout(SECONDS * 2):
            yield languages
    finally:
        await languages.close()
        await confinement.close()
        jail.close()
        left = [pid for pid in processes() if _folder(pid).startswith(str(work))]
        assert left == []
        assert not any(os.scandir(folder / "processes")) if (folder / "processes").exists() else True


def put(folder: Path, name: str, text: str) -> str:
    path = folder / "work" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


async def definition(server: ProjectLanguageServer, path: str, line: int, character: int, **more: Any) -> list[int]:
    """The lines, counted from 1, on which the server says that it is defined."""
    document = await server.sync(path)
    position = to_server(document.text, line, character, server.encoding)
    params = {"textDocument": {"uri": document.uri}, "position": position}
    found = await server.ask("textDocument/definition", params, **more)
    return [(one.get("targetSelectionRange") or one["range"])["start"]["line"] + 1 for one in found or ()]


async def wrong(server: ProjectLanguageServer, path: str, *, seconds: float = SECONDS) -> list[int] | None:
    """The lines, counted from 1, that it says are wrong."""
    found = await server.diagnostics(path, seconds=seconds)
    if found is None:
        return None
    return sorted({one["range"]["start"]["line"] + 1 for one in found if one.get("severity", 1) == 1})


async def heard(server: ProjectLanguageServer, *methods: str) -> list[Any]:
    """What the fake server was told, of these methods."""
    return [params for method, params in await server.ask("fake/heard", {}) if method in methods]


async def died(server: ProjectLanguageServer) -> None:
    async with asyncio.timeout(SECONDS):
        while server.is_ready:
            await asyncio.sleep(0.001)


async def watches(server: ProjectLanguageServer) -> ProjectLanguageServer:
    """The server, when it has said that it wants to know about files."""
    async with asyncio.timeout(SECONDS):
        while not server.can("workspace/didChangeWatchedFiles"):
            await asyncio.sleep(0.001)
    return server


async def failure(awaited: Any) -> ToolFailure:
    try:
        await awaited
    except ToolFailure as error:
        return error
    raise AssertionError("It did not fail.")


def processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()] if os.path.isdir("/proc") else []


def _folder(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""
