"""Toolboxes for tests: a folder of executables, written here, and a session that has them."""

import os
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ferrule import Engine
from ferrule.settings import Settings, Tools
from ferrule.sources.toolbox import Box, Layer, Toolbox, ToolboxEntry

SESSION = "T-test"
QUICK = Settings(tools=Tools(describe_seconds=20.0))
"""Time enough on a busy machine; what never ends is given less where a test is about that."""

ECHO = """#!/usr/bin/env bash
if [ "$TOOLBOX_ACTION" = describe ]; then
  printf 'name: echo\\ndescription: Say what came.\\nwords: string? what to say\\n'
else
  cat
fi
"""


def put(folder: Path, name: str, text: str | bytes, *, mode: int = 0o755) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(mode)
    return path


def new_mark() -> str:
    """An argument for `sleep` by which its processes are known."""
    return f"600.{uuid.uuid4().int % 10**12:012}"


def describing(output: str, *, then: str = "cat") -> str:
    """A bash script that describes itself so, and does this when it is called."""
    asked = "[ $TOOLBOX_ACTION = describe ]"
    return f"#!/usr/bin/env bash\nif {asked}; then\ncat <<'END'\n{output}\nEND\nelse\n{then}\nfi\n"


def box(folder: Path, layer: Layer = "user") -> Box:
    return Box(os.fspath(folder), layer)


def statuses(entries: list[ToolboxEntry]) -> dict[str, str]:
    return {os.path.basename(entry.path): entry.status for entry in entries}


def toolbox(*folders: Box, settings: Settings = QUICK, **more: Any) -> Toolbox:
    return Toolbox(folders, settings=settings, session=SESSION, **more)


@asynccontextmanager
async def session(
    workspace: Path, *folders: Box, settings: Settings | None = None, **more: Any
) -> AsyncIterator[Engine]:
    """An engine with these toolboxes, and somebody who says yes."""
    brought = await toolbox(*folders).load()
    assert brought.warnings == ()
    async with Engine(workspace, ask=lambda _: True, settings=settings, **more) as engine:
        assert engine.registry.bring("toolbox", brought.tools) == []
        yield engine
