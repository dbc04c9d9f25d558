"""A message's edits between the two halves of noticing, over real servers or one that a test has made."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.services import Services
from ferrule.settings import LspSettings, Settings
from ferrule.system import Threads
from ferrule.tools.lsp.diagnostics import Noticing
from ferrule.tools.lsp.server import ProjectLanguageServer
from ferrule.tools.lsp.servers import LanguageServers

TOP = Path(__file__).parents[3]
PATHS = (TOP / ".venv" / "bin", TOP / ".venv" / "npm" / "node_modules" / ".bin", Path(sys.prefix) / "bin")
"""Where the development requirements put the real servers."""


def path_with_servers() -> str:
    return os.pathsep.join([*map(str, PATHS), os.environ.get("PATH", os.defpath)])


class Edited:
    """A workspace with language servers, whose files a test changes as tools would."""

    def __init__(self, folder: Path, settings: LspSettings) -> None:
        self.folder = folder
        self.jail = Jail(os.fspath(folder))
        self.services = Services(self.jail, Settings(lsp=settings), os.fspath(folder.parent / "state"))
        self.servers = LanguageServers(
            self.jail,
            self.services[Guard],
            self.services.confinement,
            settings,
            lambda: self.services._one("Roster"),
        )
        self.noticing = Noticing(self.servers, settings, self.jail)

    def path(self, name: str) -> str:
        return os.path.realpath(self.folder / name)

    def write(self, **files: str | bytes | None) -> None:
        """Put files there, `a_py` meaning `a.py`; None takes one away."""
        for name, text in files.items():
            path = self.folder / name.replace("__", "/").replace("_", ".")
            if text is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(text if isinstance(text, bytes) else text.encode())

    async def open(self, *names: str) -> ProjectLanguageServer:
        """Have the server for these files run, with all of them open and looked through."""
        for name in names:
            server = await self.servers.server(self.path(name))
            await server.sync(self.path(name))
            assert await server.diagnostics(self.path(name), seconds=60) is not None, name
        return server

    async def edit(self, *, declared: tuple[str, ...] | None = None, **files: str | bytes | None) -> Mapping[str, str]:
        """What is told after the files became these, by name; `declared` says otherwise what calls said they write."""
        names = [name.replace("__", "/").replace("_", ".") for name in files]
        before = self.noticing.begin([self.path(name) for name in (names if declared is None else declared)])
        self.write(**files)
        if before is None:
            return {}
        notes = await self.noticing.end(before, [self.path(name) for name in names])
        return {os.path.relpath(path, self.path(".")): note for path, note in notes.items()}

    async def close(self) -> None:
        await self.servers.close()
        await self.services.confinement().close()
        self.services[Threads].close()
        self.jail.close()
