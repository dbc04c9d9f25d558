"""The lsp tool over real servers or one that answers what a test says, and the sample projects it is asked about."""

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ferrule.context import CallContext
from ferrule.core.call import Call
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.services import Services
from ferrule.settings import LanguageServer, LspSettings, Settings
from ferrule.system import Threads
from ferrule.tools.lsp import Hovered, InText, Occurrences, Outline
from ferrule.tools.lsp import tool as lsp
from ferrule.tools.lsp.servers import LanguageServers

if TYPE_CHECKING:
    from ferrule.core.access import Access

HERE = Path(__file__).parent
TOP = HERE.parents[2]
REAL = (TOP / ".venv" / "bin", TOP / ".venv" / "npm" / "node_modules" / ".bin", Path(sys.prefix) / "bin")
"""Where the development requirements put the real servers."""
PROJECTS = {"ty": "python", "basedpyright": "python", "typescript": "typescript"}
"""A real server → the sample project for it."""
OTHERS = {"ty": ("basedpyright",), "basedpyright": ("ty",), "typescript": ()}
"""A real server → those that would answer in its place."""


def path_with_servers() -> str:
    return os.pathsep.join([*map(str, REAL), os.environ.get("PATH", os.defpath)])


def lay_out(project: str, folder: Path) -> Path:
    """A copy of a sample project, with one file that has the line ends of another system."""
    shutil.copytree(HERE / "projects" / project, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for path in folder.rglob("windows.*"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    return folder


def spot(path: Path, text: str, number: int = 1) -> tuple[int, int]:
    """The line and the character, from 1, where a text stands in a file for that time."""
    whole = path.read_bytes().decode().replace("\r\n", "\n")
    at = -1
    for _ in range(number):
        at = whole.index(text, at + 1)
    before = whole[:at]
    return before.count("\n") + 1, at - (before.rfind("\n") + 1) + 1


class Asking:
    """Runs the tool by its canonical arguments; what it noted and said on the way last is kept."""

    def __init__(self, folder: Path, settings: LspSettings, *, state: Path, denied: tuple[str, ...] = ()) -> None:
        self.jail = Jail(os.fspath(folder))
        self.services = Services(self.jail, Settings(lsp=settings), os.fspath(state))
        guard = self.services[Guard]
        if denied:
            real = {os.path.realpath(folder / name) for name in denied}
            guard.denied = lambda path, mode: path in real
        self.servers = LanguageServers(
            self.jail, guard, self.services.confinement, settings, lambda: self.services._one("Roster")
        )
        self.services.put(LanguageServers, self.servers)
        self.tool = lsp.Lsp()
        self.notes: list[str] = []
        self.said: list[str] = []
        self.touches: tuple[Access, ...] = ()

    async def __call__(self, operation: str, path: str, line: int = 1, character: int = 1, **more: Any) -> Any:
        """The outcome."""
        values = {"operation": operation, "path": path, "line": line, "character": character, **more}
        ctx = self.context(values)
        self.notes = ctx.notes
        tool = self.tool
        args = lsp.LspArgs(**values)
        self.touches = tool.access(args, ctx)
        return await tool.run(args, ctx)

    def context(self, values: dict[str, Any]) -> CallContext:
        """What a call with these arguments can reach, on the running loop."""
        return CallContext(
            Call("lsp", values, "call"),
            jail=self.jail,
            services=self.services,
            emit=lambda event: self.said.append(getattr(event, "message", "")),
            clock=lambda: 0.0,
            new_log=lambda: ("", ""),
        )

    async def close(self) -> None:
        await self.servers.close()
        await self.services.confinement().close()
        self.services[Threads].close()
        self.jail.close()


def one_server(name: str, *, confined: bool = True) -> LspSettings:
    """Settings under which only that real server answers."""
    others = {other: LanguageServer(disabled=True) for other in OTHERS[name]}
    return LspSettings(servers={name: LanguageServer(), **others}, confined=confined)


def answering(answers: dict[str, Any], lacks: tuple[str, ...] = ()) -> LspSettings:
    """Settings with a server for `.fake` files that answers this, method by method, and lacks some abilities."""
    server = LanguageServer(
        command=sys.executable,
        # As text: a sandbox has a temporary folder of its own, and this project may lie in the real one.
        args=("-c", (HERE / "answering.py").read_text(encoding="utf-8")),
        endings=(".fake",),
        language="fake",
        options={"answers": answers, "lacks": list(lacks)},
    )
    return LspSettings(servers={"fake": server})


def rows(outcome: Occurrences) -> list[tuple[str, str]]:
    """Each place as its path and its line of code."""
    return [(place.path.replace(os.sep, "/"), place.text) for place in outcome.places]


Outcome = Occurrences | Outline | Hovered | InText
