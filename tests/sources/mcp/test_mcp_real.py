"""The same with real processes behind real connections: approved, listed, called, changed, crashed."""

import asyncio
import os
import sys

import pytest
from tests.sources.mcp.meeting import SCRIPT, SECONDS

from ferrule.core.errors import ToolFailure
from ferrule.settings import Mcp, McpServer
from ferrule.sources.mcp.config import read_servers
from ferrule.sources.mcp.connection import Opening
from ferrule.sources.mcp.servers import Servers


@pytest.fixture
async def session(tmp_path):
    """Makes a session over servers that are scripted in these ways; each is ended with its test."""
    opened = []
    workspace = tmp_path / "workspace"
    workspace.mkdir()

    def make(*modes, changed=lambda: None):
        servers = {mode: McpServer(command=sys.executable, args=("-I", "-S", SCRIPT, mode)) for mode in modes}
        found = read_servers(str(workspace), Mcp(servers=servers), user_folder=str(tmp_path))
        made = Servers(
            found,
            state_folder=str(tmp_path / "state"),
            workspace=str(workspace),
            opening=Opening(dict(os.environ)),
            on_changed=changed,
        )
        opened.append(made)
        return made

    yield make
    for one in opened:
        await one.close()


class Told:
    """A context for calls."""

    def progress(self, message):
        """Nobody listens."""


def named(brought, name):
    return next(tool for tool in brought.tools if tool.name == name)


async def test_a_server_is_listed_called_and_known_the_next_time(session):
    brought = await session("good").connect()

    answer = await named(brought, "mcp__good__echo").run({"text": "hello"}, Told())

    assert answer.parts == ("hello",)
    assert [tool.name for tool in session("good").source_tools().tools] == [tool.name for tool in brought.tools]
    assert session("good").find_unlisted() == ()


async def test_bad_servers_harm_no_good_one(session):
    servers = session("good", "crash-at-start", "bad-schemas")

    brought = await servers.connect()

    assert "mcp__good__echo" in [tool.name for tool in brought.tools]
    assert any("crash-at-start" in warning for warning in brought.warnings)
    assert any("bad-schemas: the tool" in warning for warning in brought.warnings)
    assert {state.name: state.state for state in servers.states()} == {
        "good": "running",
        "crash-at-start": "unlisted",
        "bad-schemas": "running",
    }


async def test_a_tool_that_a_running_server_adds_is_withheld(session):
    changed = asyncio.Event()
    servers = session("good", changed=changed.set)
    brought = await servers.connect()
    before = [tool.name for tool in brought.tools]

    await named(brought, "mcp__good__change").run({}, Told())
    async with asyncio.timeout(SECONDS):
        await changed.wait()

    known = servers.source_tools()
    assert [tool.name for tool in known.tools] == before
    assert "withheld" in known.warnings[0]


async def test_a_server_that_crashes_in_a_call_serves_the_next_one(session):
    brought = await session("good").connect()

    with pytest.raises(ToolFailure):
        await named(brought, "mcp__good__crash").run({}, Told())
    answer = await named(brought, "mcp__good__echo").run({"text": "again"}, Told())

    assert answer.parts == ("again",)
