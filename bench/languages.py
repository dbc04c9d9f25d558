"""Language servers: what a definition costs through the engine, beside asking the same warm server oneself."""

import asyncio
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import ferrule
from bench.measure import Row, milliseconds, ratio
from ferrule import Engine, Settings
from ferrule.settings import LanguageServer, LspSettings

_ROUNDS = 150
_SERVERS = {"ty": ("ty", "server"), "basedpyright": ("basedpyright-langserver", "--stdio")}
_FILES = ("flow.py", "engine.py", "context.py", "services.py", "policing.py")
_BIN = os.path.dirname(sys.executable)


class Bare:
    """The least that can ask a language server: frames over two pipes, one question at a time."""

    def __init__(self, folder: str, argv: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            [os.path.join(_BIN, argv[0]), *argv[1:]],
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


def project(folder: str) -> dict[str, list[tuple[int, int]]]:
    """Ferrule's own source as a project: files, and the places in them where a method is called, from 1."""
    shutil.copytree(os.path.dirname(ferrule.__file__), os.path.join(folder, "ferrule"))
    with open(os.path.join(folder, "pyproject.toml"), "w", encoding="utf-8") as file:
        file.write('[project]\nname = "sample"\nversion = "1"\n')
    found: dict[str, list[tuple[int, int]]] = {}
    for name in _FILES:
        path = os.path.join(folder, "ferrule", name)
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                calls = re.finditer(r"self\.(\w+)\(", line)
                found.setdefault(path, []).extend((number, each.start(1) + 2) for each in calls)
    return found


class Sides:
    """The same questions to one server through the engine and to another one without it."""

    def __init__(self, folder: str, engine: Engine, bare: Bare) -> None:
        places = project(folder)
        self._places = [(path, *place) for path, found in places.items() for place in found]
        self._texts = {}
        for path in places:
            with open(path, encoding="utf-8") as file:
                self._texts[path] = file.read()
        self._engine = engine
        self._bare = bare
        self._asked = 0

    async def open(self) -> None:
        root = "file://" + os.path.dirname(os.path.dirname(self._places[0][0]))
        folders = [{"uri": root, "name": "project"}]
        # As the engine does: who asks for diagnostics is not sent any after each change.
        capabilities: dict[str, Any] = {"textDocument": {"diagnostic": {}}}
        self._bare.ask("initialize", {"processId": None, "workspaceFolders": folders, "capabilities": capabilities})
        self._bare.tell("initialized", {})
        for path, text in self._texts.items():
            item = {"uri": "file://" + path, "languageId": "python", "version": 1, "text": text}
            self._bare.tell("textDocument/didOpen", {"textDocument": item})
        for _ in self._places:  # both are warm then
            await self.ours()
            await self.theirs()

    def edit(self) -> None:
        """The next file has one more line, on disk and for the server that looks at no disk."""
        path = self._next()[0]
        text = f"{self._texts[path]}\nnumber_{self._asked} = {self._asked}\n"
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        self._changed = {
            "textDocument": {"uri": "file://" + path, "version": self._asked + 2},
            "contentChanges": [{"text": text}],
        }

    async def ours(self) -> None:
        path, line, character = self._next()
        place = {"filePath": path, "line": line, "character": character}
        reply = await self._engine.call("LSP", operation="goToDefinition", **place)
        assert "Found" in str(reply.result), reply

    async def theirs(self) -> None:
        path, line, character = self._next()
        where = {"line": line - 1, "character": character - 1}
        found = self._bare.ask(
            "textDocument/definition", {"textDocument": {"uri": "file://" + path}, "position": where}
        )
        assert found
        self._asked += 1

    async def theirs_after_edit(self) -> None:
        self._bare.tell("textDocument/didChange", self._changed)
        await self.theirs()

    def _next(self) -> tuple[str, int, int]:
        return self._places[self._asked % len(self._places)]


async def _timed(function: Callable[[], Awaitable[None]]) -> float:
    began = time.perf_counter()
    await function()
    return time.perf_counter() - began


async def _definitions(name: str) -> tuple[list[float], list[float], list[float], list[float]]:
    os.environ["PATH"] = _BIN + os.pathsep + os.environ["PATH"]
    with tempfile.TemporaryDirectory() as top:
        folder = os.path.realpath(os.path.join(top, "workspace"))
        os.mkdir(folder)
        bare = Bare(folder, _SERVERS[name])
        # Those that are named come first for their files.
        settings = Settings(lsp=LspSettings(servers={name: LanguageServer()}, start_seconds=120))
        try:
            async with Engine(folder, dialect="claude", settings=settings, state=os.path.join(top, "state")) as engine:
                sides = Sides(folder, engine, bare)
                await sides.open()
                times: tuple[list[float], ...] = ([], [], [], [])
                for _ in range(_ROUNDS):
                    times[0].append(await _timed(sides.ours))
                    times[1].append(await _timed(sides.theirs))
                for _ in range(_ROUNDS):
                    sides.edit()
                    times[2].append(await _timed(sides.ours))
                    times[3].append(await _timed(sides.theirs_after_edit))
                return times[0], times[1], times[2], times[3]
        finally:
            bare.close()


def rows() -> Iterator[Row]:
    for name in _SERVERS:
        ours, theirs, edited, bare = asyncio.run(_definitions(name))
        yield Row(
            f"a definition from a warm {name} after an edit of its file, by the server's own answer",
            ratio(edited, bare),
            1.3,
            "×",
            f"on Ferrule's source; {milliseconds(edited)} and {milliseconds(bare)}",
        )
        added = statistics.median(a - b for a, b in zip(ours, theirs, strict=True))
        yield Row(
            f"a definition from a warm {name} in a file that nobody changed: what the engine adds",
            added * 1000,
            1.5,
            "ms",
            f"{milliseconds(ours)} and {milliseconds(theirs)}: {ratio(ours, theirs):.1f} times what it has kept",
        )
