"""A way to call custom tools as the engine does: real services, the runner with its threads, and its time limit."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ferrule.context import CallContext
from ferrule.core.call import Call
from ferrule.core.errors import ToolFailure
from ferrule.core.services import has_failed, render_outcome
from ferrule.core.tool import AnyTool, Raw
from ferrule.execute import ToolRunner
from ferrule.files.jail import Jail
from ferrule.services import Services
from ferrule.settings import LimitSettings, Settings
from ferrule.system import Threads

LIMIT_SECONDS = 60


class Calls:
    """Runs tools; what a call noted and kept last is to be seen afterwards."""

    def __init__(self, workspace: Path, *, seconds: float = LIMIT_SECONDS) -> None:
        self.workspace = workspace
        self.settings = Settings(limits=LimitSettings(seconds=seconds))
        self.jail = Jail(str(workspace))
        self.services = Services(self.jail, self.settings, os.path.join(workspace, os.pardir, "state"))
        self.runner = ToolRunner(seconds=seconds)
        self.logs = 0
        self.context: CallContext | None = None

    def new_context(self, tool: AnyTool) -> CallContext:
        self.logs += 1
        self.context = CallContext(
            Call(tool.name, {}, "call"),
            jail=self.jail,
            services=self.services,
            emit=lambda _: None,
            clock=lambda: 0.0,
            new_log=lambda: ("id", os.path.join(self.workspace, os.pardir, f"log-{self.logs}")),
        )
        return self.context

    async def outcome(self, tool: AnyTool, /, **values: Any) -> Any:
        ctx = self.new_context(tool)
        args = Raw(values=values) if tool.args is Raw else tool.args(**values)
        try:
            async with asyncio.timeout(LIMIT_SECONDS):
                return await self.runner.run(tool, args, ctx)
        finally:
            ctx.over = True

    async def text(self, tool: AnyTool, /, **values: Any) -> tuple[Any, bool]:
        """What is said, and whether it is an error."""
        try:
            outcome = await self.outcome(tool, **values)
        except ToolFailure as error:
            return error.message, True
        return render_outcome(outcome), has_failed(outcome)

    def close(self) -> None:
        self.runner.close()
        self.services[Threads].close()
        self.jail.close()


@pytest.fixture
async def calls(tmp_path: Path) -> AsyncIterator[Calls]:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    made = Calls(workspace)
    yield made
    made.close()


@pytest.fixture
async def hasty(tmp_path: Path) -> AsyncIterator[Calls]:
    """The same with a time limit that a tool can reach."""
    workspace = tmp_path / "workspace"
    workspace.mkdir(exist_ok=True)
    made = Calls(workspace, seconds=0.3)
    yield made
    made.close()
