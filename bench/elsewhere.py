"""Tools from elsewhere: what servers cost that nobody uses, searching their tools, calling one, and being one."""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

from bench.measure import Row, milliseconds, pairs, ratio
from ferrule import Engine, Settings

SERVERS, TOOLS = 50, 20
_STARTS = 60
_SESSIONS = 30
_CALLS = 400
_LISTS = 150

PLAIN_SERVER = """
import json, sys

NAME, COUNT = sys.argv[1], int(sys.argv[2])
VERBS = "create read update delete list search move copy open close".split()
THINGS = "issue branch ticket message file page table record event user".split()


def tool(at):
    verb, thing = VERBS[at % len(VERBS)], THINGS[at // len(VERBS) % len(THINGS)]
    words = f"{verb.capitalize()} a {thing} of {NAME}. The {thing} is named by its number, or by a part of its title."
    schema = {
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": f"The title of the {thing}, or a part of it"},
            "number": {"type": "integer", "minimum": 0, "description": f"The number of the {thing}"},
            "labels": {"type": "array", "items": {"type": "string"}, "description": "Labels that it has to have"},
            "state": {"enum": ["open", "closed", "all"], "default": "open"},
        },
        "required": ["title"],
    }
    hints = {"readOnlyHint": True, "openWorldHint": False}
    return {"name": f"{verb}_{thing}", "description": words, "inputSchema": schema, "annotations": hints}


def answer(method, params):
    if method == "initialize":
        about = {"name": NAME, "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        return {"tools": [tool(at) for at in range(COUNT)]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": "done: " + params["arguments"]["title"]}]}
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = answer(message["method"], message.get("params"))
        said = {"error": {"code": -32601, "message": "no"}} if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}), flush=True)
"""
"""In plain Python: fifty of them start in a second."""

LIST = '{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}\n'

BARE_SERVER = """
import asyncio, json, sys

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

with open(sys.argv[1], encoding="utf-8") as file:
    listed = types.ListToolsResult.model_validate(json.load(file))


async def list_tools(ctx, params):
    return listed


async def call_tool(ctx, params):
    return types.CallToolResult(content=[types.TextContent(text="done: " + params.arguments["title"])])


async def main():
    server = Server("bare", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (heard, said):
        await server.run(heard, said, server.create_initialization_options())


asyncio.run(main())
"""
"""As the package's own words tell one to write a server."""

SESSION = """
import asyncio, sys

from ferrule import Engine


async def main():
    async with Engine(".") as engine:
        assert (await engine.call("Read", path="a.txt")).ok
        if len(sys.argv) > 1:
            engine.definitions()


asyncio.run(main())
"""
"""A session that has servers and uses a tool of its own; with an argument, one that shows a model its tools."""


def rows() -> Iterator[Row]:
    subprocess.run([sys.executable, "-m", "compileall", "-q", "src"], check=True)
    with tempfile.TemporaryDirectory() as folder:
        world = _World(folder)
        with world.environment("many"):
            asyncio.run(_approve())
        yield from _fresh(world)
        yield from asyncio.run(_again(world))
        with world.environment("many"):
            yield from asyncio.run(_searches())
        with world.environment("none"):
            yield from asyncio.run(_calls(world))
            yield asyncio.run(_lists(world))


class _World:
    """A workspace, and two users: one with fifty servers and one with none."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.work = f"{folder}/work"
        os.mkdir(self.work)
        self.plain = self.write("plain.py", PLAIN_SERVER)
        self.bare = self.write("bare.py", BARE_SERVER)
        for user in ("many", "none"):
            os.mkdir(f"{folder}/{user}")
            self.write(f"{user}/settings.toml", "")
        servers = {f"server{number}": self.entry(f"server{number}", TOOLS) for number in range(SERVERS)}
        self.write("many/mcp.json", json.dumps({"mcpServers": servers}))
        with open(f"{self.work}/a.txt", "w", encoding="utf-8") as file:
            file.write("hello\n")

    def write(self, name: str, text: str) -> str:
        path = f"{self.folder}/{name}"
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def entry(self, name: str, tools: int) -> dict[str, Any]:
        return {"command": sys.executable, "args": ["-S", "-E", self.plain, name, str(tools)]}

    def variables(self, user: str) -> dict[str, str]:
        place = f"{self.folder}/{user}"
        return {"FERRULE_SETTINGS": f"{place}/settings.toml", "FERRULE_STATE": f"{place}/state"}

    def environment(self, user: str) -> "_Changed":
        return _Changed(self.variables(user), self.work)


class _Changed:
    """Other variables, and another current folder, for a while."""

    def __init__(self, variables: Mapping[str, str], folder: str) -> None:
        self._variables, self._folder = variables, folder

    def __enter__(self) -> None:
        self._before, self._at = dict(os.environ), os.getcwd()
        os.environ.update(self._variables)
        os.chdir(self._folder)

    def __exit__(self, *_: object) -> None:
        os.chdir(self._at)
        os.environ.clear()
        os.environ.update(self._before)


async def _approve() -> None:
    """The first session of all, in which every server is started and listed."""
    async with Engine(".", ask=lambda _: True) as engine:
        await engine.connect()
        assert len(engine.registry.deferred) == SERVERS * TOOLS, engine.warnings


def _fresh(world: _World) -> Iterator[Row]:
    """Whole processes, so that what only sessions with servers import counts too."""
    session = [sys.executable, "-c", SESSION]
    read = [_ferrule(), "call", "Read", '{"path": "a.txt"}']
    for name, argv, limit in (
        ("50 servers with 1,000 tools, none used: what a session more takes, in a new process", session, 5),
        ("the same for `ferrule call Read`", read, 5),
        ("the same for a session that tells a model of them", [*session, "show"], float("inf")),
    ):

        async def run(user: str, argv: list[str] = argv) -> None:
            environment = {**os.environ, **world.variables(user)}
            subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, cwd=world.work, env=environment)

        many, none = asyncio.run(pairs(partial(run, "many"), partial(run, "none"), _STARTS))
        yield Row(name, _more(many, none), limit, "ms", f"{milliseconds(many)} and {milliseconds(none)}")


async def _again(world: _World) -> list[Row]:
    """The same in a process that has all the code."""
    out = []
    for name, is_shown, limit in (("a session more", False, 5), ("with its tools shown", True, float("inf"))):

        async def session(user: str, is_shown: bool = is_shown) -> None:
            with world.environment(user):
                async with Engine(".") as engine:
                    assert (await engine.call("Read", path="a.txt")).ok
                    if is_shown:
                        engine.definitions()

        many, none = await pairs(partial(session, "many"), partial(session, "none"), _SESSIONS)
        detail = f"{milliseconds(many)} and {milliseconds(none)}"
        out.append(Row(f"the same, once all is imported: {name}", _more(many, none), limit, "ms", detail))
    return out


def _more(ours: list[float], theirs: list[float]) -> float:
    return statistics.median(a - b for a, b in zip(ours, theirs, strict=True)) * 1000


async def _searches() -> list[Row]:
    queries = ("close an issue", "search messages by title", "server17 read table", "record", "nothing like it")
    out = []
    for how in ("ranked", "substring"):
        async with Engine(".") as engine:
            assert len(engine.registry.deferred) == SERVERS * TOOLS
            first, times = 0.0, []
            for number in range(200):
                query = queries[number % len(queries)]
                start = time.perf_counter()
                await engine.registry.catalog.search(query, how=how, limit=8)
                times.append(time.perf_counter() - start)
                first = first or times.pop()
            name = f"a search in 1,000 deferred tools, {how}"
            out.append(
                Row(
                    name,
                    statistics.median(times) * 1000,
                    5,
                    "ms",
                    f"p95 {sorted(times)[190] * 1000:.2f} ms; the first, reading 50 listings, {first * 1000:.0f} ms",
                )
            )
    return out


async def _calls(world: _World) -> list[Row]:
    """The same server and the same call, by the engine and by the package's own client."""
    plain = world.entry("local", 10)
    said = subprocess.run(
        [plain["command"], *plain["args"]], input=LIST, capture_output=True, check=True, text=True
    ).stdout
    listed = world.write("plain.json", json.dumps(json.loads(said)["result"]))
    package = {"command": sys.executable, "args": [world.bare, listed]}
    return [
        await _called("a call of a local server, against the package's own client", package, 1.3),
        await _called("the same, of a server that does next to nothing", plain, float("inf")),
    ]


async def _called(name: str, entry: dict[str, Any], limit: float) -> Row:
    from mcp import Client, StdioServerParameters

    given = json.dumps({"mcpServers": {"local": {**entry, "permission": "allow"}}})
    bare = StdioServerParameters(command=entry["command"], args=entry["args"])
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client(bare))
        with tempfile.TemporaryDirectory() as state:
            engine = await stack.enter_async_context(Engine(".", settings=Settings(), mcp_config=[given], state=state))
            await engine.connect()
            await client.list_tools()
            number = 0

            async def ours() -> None:
                nonlocal number
                number += 1
                reply = await engine.call("mcp__local__read_issue", title=f"the {number}")
                assert reply.text == f"done: the {number}", reply

            async def theirs() -> None:
                result = await client.call_tool("read_issue", {"title": f"the {number}"})
                assert not result.is_error

            mine, other = await pairs(ours, theirs, _CALLS)
    return Row(name, ratio(mine, other), limit, "×", f"{milliseconds(mine)} and {milliseconds(other)}")


async def _lists(world: _World) -> Row:
    """The same tools and the same client; only the server is another."""
    from mcp import Client, StdioServerParameters

    environment = {**os.environ, **world.variables("none")}
    served = StdioServerParameters(command=_ferrule(), args=["mcp", "serve"], env=environment, cwd=world.work)
    async with AsyncExitStack() as stack:
        ferrule = await stack.enter_async_context(Client(served, cache=None))
        tools = await ferrule.list_tools()
        listed = world.write("tools.json", tools.model_dump_json(by_alias=True, exclude_none=True))
        alone = StdioServerParameters(command=sys.executable, args=[world.bare, listed], cwd=world.work)
        bare = await stack.enter_async_context(Client(alone, cache=None))
        assert (await bare.list_tools()).tools == tools.tools
        mine, other = await pairs(ferrule.list_tools, bare.list_tools, _LISTS)
    detail = f"{len(tools.tools)} tools, {milliseconds(mine)} and {milliseconds(other)}"
    return Row(
        "tools/list of ferrule mcp serve, against a bare server of the package", ratio(mine, other), 1.2, "×", detail
    )


def _ferrule() -> str:
    return os.path.join(os.path.dirname(sys.executable), "ferrule")
