"""Language servers: what a definition costs through the engine, beside asking the same warm server oneself."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from bench.measure import Row, milliseconds, pairs, ratio
from ferrule import Engine

_ROUNDS = 200
_FUNCTIONS = 60
_BIN = os.path.dirname(sys.executable)


class Bare:
    """The least that can ask a language server: frames over two pipes, one question at a time."""

    def __init__(self, folder: str) -> None:
        self._process = subprocess.Popen(
            [os.path.join(_BIN, "ty"), "server"],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._asked = 0

    def tell(self, method: str, params: Any, **more: Any) -> None:
        raw = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(raw) + raw)
        self._process.stdin.flush()

    def ask(self, method: str, params: Any) -> Any:
        self._asked += 1
        self.tell(method, params, id=self._asked)
        assert self._process.stdout is not None
        while True:
            size = 0
            while line := self._process.stdout.readline().strip():
                if line.lower().startswith(b"content-length:"):
                    size = int(line.split(b":")[1])
            message = json.loads(self._process.stdout.read(size))
            if message.get("id") == self._asked and "method" not in message:
                return message["result"]
            if "id" in message:  # a question of the server's
                raw = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": None}).encode()
                assert self._process.stdin is not None
                self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(raw) + raw)
                self._process.stdin.flush()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def project(folder: str) -> str:
    """Two modules: one has functions, the other calls them. The path of the other one."""
    with open(os.path.join(folder, "pyproject.toml"), "w", encoding="utf-8") as file:
        file.write('[project]\nname = "sample"\nversion = "1"\n')
    with open(os.path.join(folder, "given.py"), "w", encoding="utf-8") as file:
        file.writelines(
            f"def function_{at}(value: int) -> int:\n    return value + {at}\n\n\n" for at in range(_FUNCTIONS)
        )
    path = os.path.join(folder, "user.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write("import given\n\n")
        file.writelines(f"name_{at} = given.function_{at}({at})\n" for at in range(_FUNCTIONS))
    return path


async def _definitions() -> tuple[list[float], list[float]]:
    os.environ["PATH"] = _BIN + os.pathsep + os.environ["PATH"]
    with tempfile.TemporaryDirectory() as top:
        folder = os.path.realpath(os.path.join(top, "workspace"))
        os.mkdir(folder)
        path = project(folder)
        uri = "file://" + path
        bare = Bare(folder)
        try:
            root: dict[str, Any] = {"processId": None, "rootUri": "file://" + folder, "capabilities": {}}
            bare.ask("initialize", root)
            bare.tell("initialized", {})
            with open(path, encoding="utf-8") as file:
                item = {"uri": uri, "languageId": "python", "version": 1, "text": file.read()}
            bare.tell("textDocument/didOpen", {"textDocument": item})
            async with Engine(folder, dialect="claude", state=os.path.join(top, "state")) as engine:
                at = {"line": 0}

                async def ours() -> None:
                    line = at["line"] % _FUNCTIONS + 3
                    reply = await engine.call("LSP", operation="goToDefinition", filePath=path, line=line, character=20)
                    assert "given.py" in str(reply.result), reply
                    at["line"] += 1

                async def theirs() -> None:
                    where = {"line": at["line"] % _FUNCTIONS + 2, "character": 19}
                    found = bare.ask("textDocument/definition", {"textDocument": {"uri": uri}, "position": where})
                    assert "given.py" in json.dumps(found), found

                return await pairs(ours, theirs, _ROUNDS)
        finally:
            bare.close()


def rows() -> Iterator[Row]:
    ours, theirs = asyncio.run(_definitions())
    yield Row(
        "a warm definition through the engine, by the server's own answer",
        ratio(ours, theirs),
        1.3,
        "×",
        f"ty; {milliseconds(ours)} and {milliseconds(theirs)}",
    )
