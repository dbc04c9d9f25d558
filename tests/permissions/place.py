"""A workspace with a gate before it."""

import asyncio
from pathlib import Path
from typing import Any

from ferrule.core.access import Access
from ferrule.core.errors import Denied
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.permissions import Asker, Case, ModeConfig
from ferrule.permissions.gate import Gate
from ferrule.permissions.policy import Policy

LIMIT_SECONDS = 10


class Place:
    """A real workspace with a real gate before it."""

    def __init__(self, top: Path, asker: Asker, **more: Any) -> None:
        self.top = top.resolve()
        self.work = self.top / "work"
        self.work.mkdir(exist_ok=True)
        self.jail = Jail(str(self.work))
        guard = Guard()
        self.gate = Gate(
            self.jail,
            guard,
            asker,
            policy=Policy(self.jail, guard, notes=".amp"),
            **{"mode": ModeConfig(), "canonical": lambda name: name.lower(), **more},
        )
        self.blocked: list[str] = []

    def case(self, tool: str, *touches: Access, **more: Any) -> Case:
        real = tuple(a._replace(key=self.jail.real(a.key)) if a.kind == "path" else a for a in touches)
        return Case("1", tool.capitalize(), tool, real, **more)

    def command(self, command: str, cwd: str = ".") -> Case:
        here = self.jail.real(cwd)
        return Case("1", "Bash", "shell", (Access.command(command, here), Access.read(here)))

    async def admit(self, case: Case) -> None:
        async with asyncio.timeout(LIMIT_SECONDS):
            await self.gate.admit(case, self.blocked.append)

    async def asks(self, case: Case) -> bool:
        """Would a person be asked? Only for a gate with nobody behind it."""
        try:
            await self.admit(case)
        except Denied:
            return True
        return False
