"""A workspace with configured servers that are no processes, and sessions over it that follow one another."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from tests.sources.mcp.pretend import Pretend, Script

from ferrule.settings import Mcp
from ferrule.sources.mcp.approval import Approval
from ferrule.sources.mcp.config import read_servers
from ferrule.sources.mcp.connection import Opening
from ferrule.sources.mcp.servers import Servers


class Asked:
    """A user who is asked, and answers as a test says."""

    def __init__(self, *, answer: bool) -> None:
        self.answer = answer
        self.questions: list[Approval] = []

    async def __call__(self, question: Approval) -> bool:
        self.questions.append(question)
        return self.answer


class World:
    """Files, scripts and sessions."""

    def __init__(self, folder: Any) -> None:
        self.workspace, self.user, self.state = folder / "workspace", folder / "user", folder / "state"
        for made in (self.workspace, self.user):
            made.mkdir()
        self.scripts: dict[str, Script] = {}
        self.changes = 0
        self.kind = type("Told", (Pretend,), {"scripts": self.scripts})
        self._open: list[Servers] = []

    def user_servers(self, **entries: Any) -> None:
        self._write(self.user / "mcp.json", entries)

    def project_servers(self, **entries: Any) -> None:
        self._write(self.workspace / ".mcp.json", entries)

    def _write(self, path: Any, entries: dict[str, Any]) -> None:
        for name in entries:
            self.scripts.setdefault(name, Script())
        path.write_text(json.dumps({"mcpServers": entries}))

    def session(
        self,
        approve: Callable[[Approval], Awaitable[bool]] | None = None,
        *,
        state: Any = None,
        environment: dict[str, str] | None = None,
        given: tuple[str, ...] = (),
    ) -> Servers:
        """A new session, as if the program had been started anew."""
        found = read_servers(str(self.workspace), Mcp(), user_folder=str(self.user), given=given)
        servers = Servers(
            found,
            state_folder=str(state or self.state),
            workspace=str(self.workspace),
            opening=Opening(environment or {}, kind=self.kind),
            approve=approve,
            on_changed=self._changed,
        )
        self._open.append(servers)
        return servers

    def _changed(self) -> None:
        self.changes += 1

    async def close(self) -> None:
        for servers in self._open:
            await servers.close()


def names(brought: Any) -> list[str]:
    return [tool.name for tool in brought.tools]
