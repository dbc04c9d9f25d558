"""Served engines as processes of their own, spoken to by hand."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LIMIT_SECONDS = 60
FERRULE = ("-m", "ferrule", "mcp", "serve")
OFFERED = ("-m", "tests.serve.entry")
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "by hand", "version": "1"},
}


class Program:
    """A server that is spoken to in lines."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process: Any = process
        self._last = 0

    def say(self, message: Any) -> None:
        line = message if isinstance(message, bytes) else json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(line + b"\n")

    async def hear(self) -> Any:
        """The next message; None at the end."""
        line = await asyncio.wait_for(self.process.stdout.readline(), LIMIT_SECONDS)
        return json.loads(line) if line else None

    async def ask(self, method: str, params: Any = None) -> Any:
        """The answer to a request, passing over notifications."""
        self._last += 1
        self.say({"id": self._last, "method": method, **({} if params is None else {"params": params})})
        while (answer := await self.hear()) is not None:
            if answer.get("id") == self._last:
                return answer
        return None

    async def greet(self) -> Any:
        answer = await self.ask("initialize", HELLO)
        self.say({"method": "notifications/initialized"})
        return answer["result"]

    async def ended(self) -> int:
        return await asyncio.wait_for(self.process.wait(), LIMIT_SECONDS)


@asynccontextmanager
async def program(*arguments: str, folder: Path) -> AsyncIterator[Program]:
    """It is killed at the end, should it still run."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *arguments,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=1 << 24,
    )
    try:
        yield Program(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()
