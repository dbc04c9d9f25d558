"""A user, a project and a state folder, and sessions over them that follow one another."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ferrule import Engine, Settings
from ferrule.permissions import Answer, Question
from ferrule.permissions.trust import Trust, code_files
from ferrule.settings import Mcp, McpServer, Permissions, SandboxSettings, Tools

if TYPE_CHECKING:
    from ferrule.core.call import Event

SECONDS = 60
"""Longer than anything here takes, on whatever machine."""
SERVING = Path(__file__).parent / "serving.py"
TOOL = """
import pathlib
pathlib.Path(__file__ + ".ran").touch()
TOOL = {{
    "name": "{name}",
    "description": "{words}",
    "input_schema": {{"type": "object"}},
    "execute": lambda given: "{says}",
}}
"""
BOXED = """#!/bin/sh
(: > "$0.ran") 2> /dev/null
if [ "$TOOLBOX_ACTION" = describe ]; then
  printf 'name: {name}\\ndescription: Boxed.\\n'
else
  echo boxed
fi
"""


def listed(name: str, words: str = "", **properties: Any) -> dict[str, Any]:
    """A tool as a server lists it."""
    schema = {"type": "object", "properties": properties}
    return {"name": name, "description": words or f"Does {name}.", "inputSchema": schema}


class World:
    """Everything that a session has around it, none of it yet there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.user = Path(os.environ["FERRULE_SETTINGS"]).parent
        self.workspace, self.state = folder / "workspace", folder / "state"
        self.workspace.mkdir()
        self.questions: list[Question] = []
        self.events: list[Event] = []

    def tool(self, folder: Path, name: str, says: str = "mine", words: str = "A tool of mine.") -> Path:
        """A Python module with a tool, which leaves a mark where it is run."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.py"
        path.write_text(TOOL.format(name=name, says=says, words=words))
        return path

    def box(self, folder: Path, name: str) -> Path:
        """A toolbox's program, which leaves a mark where it is run."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / name
        path.write_text(BOXED.format(name=name))
        path.chmod(0o755)
        return path

    def offer(self, name: str, **kinds: Any) -> list[str]:
        """Write down what a server offers; its command line."""
        (self.folder / f"{name}.json").write_text(json.dumps({"tools": [listed("say", word={})], **kinds}))
        return [sys.executable, "-ISXutf8", str(SERVING), str(self.folder / f"{name}.json")]

    def server(self, name: str, *, kinds: Any = None, **more: Any) -> McpServer:
        command, *args = self.offer(name, **(kinds or {}))
        return McpServer(command=command, args=tuple(args), **more)

    def entry(self, name: str, **kinds: Any) -> dict[str, Any]:
        """The same, as a file says it."""
        command, *args = self.offer(name, **kinds)
        return {"command": command, "args": args}

    def project_servers(self, **entries: Any) -> Path:
        path = self.workspace / ".mcp.json"
        path.write_text(json.dumps({"mcpServers": entries}))
        return path

    def skill(self, folder: Path, name: str, text: str = "Do it.") -> Path:
        path = folder / name
        path.mkdir(parents=True, exist_ok=True)
        (path / "SKILL.md").write_text(f"---\nname: {name}\ndescription: A skill.\n---\n{text}\n")
        return path

    def starts(self, name: str) -> int:
        """How often a server was started."""
        try:
            return len((self.folder / f"{name}.json.starts").read_text().splitlines())
        except FileNotFoundError:
            return 0

    def living(self, name: str) -> list[int]:
        """The processes of a server."""
        wanted, out = os.fsencode(self.folder / f"{name}.json"), []
        for pid in filter(str.isdecimal, os.listdir("/proc")):
            try:
                is_over = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] in {b"Z", b"X"}
                if not is_over and wanted in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                    out.append(int(pid))
            except OSError:
                continue
        return out

    def trust(self) -> None:
        """Trust the project's code as it is now."""
        Trust(str(self.state), "code").grant(str(self.workspace), code_files(str(self.workspace)))

    @asynccontextmanager
    async def session(
        self,
        *,
        answer: bool | Callable[[Question], bool | Answer] = True,
        tools: Any = None,
        servers: Any = None,
        mcp: Any = None,
        permissions: Permissions | None = None,
        sandbox: SandboxSettings | None = None,
        **more: Any,
    ) -> AsyncIterator[Engine]:
        """A new session, as if the program had been started anew; whoever is asked answers so."""

        def asked(question: Question) -> bool | Answer:
            self.questions.append(question)
            return answer(question) if callable(answer) else answer

        settings = Settings(
            tools=Tools(**{"packages": False, "describe_seconds": SECONDS, **(tools or {})}),
            mcp=Mcp(servers=servers or {}, **(mcp or {})),
            permissions=permissions or Permissions(),
            sandbox=sandbox or SandboxSettings(),
        )
        made = Engine(
            self.workspace, settings=settings, state=self.state, ask=asked, on_event=self.events.append, **more
        )
        async with asyncio.timeout(SECONDS), made as engine:
            yield engine

    async def until(self, check: Callable[[], object]) -> None:
        async with asyncio.timeout(SECONDS):
            while not check():
                await asyncio.sleep(0.005)


def names(engine: Engine) -> set[str]:
    return {definition["name"] for definition in engine.definitions()}
