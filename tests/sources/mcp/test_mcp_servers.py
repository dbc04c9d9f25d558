"""The servers of a session: known without a start, started when needed, and none of them harms another."""

import asyncio
import json
import subprocess
import sys

import pytest
from tests.sources.mcp.pretend import Script, listing, tool
from tests.sources.mcp.world import Asked, World, names

from ferrule.core.errors import ConfigError, ToolFailure
from ferrule.core.services import ServerResource


@pytest.fixture
async def world(tmp_path):
    made = World(tmp_path)
    yield made
    await made.close()


async def until(holds):
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0)


@pytest.mark.contract("mcp.lazy")
async def test_a_later_session_knows_the_tools_and_starts_nothing(world):
    world.user_servers(x={"command": "c"}, y={"url": "http://h", "exposure": "hidden"})
    world.scripts["y"].says = listing(tool("a.b", "Does."), tool("z" * 80))
    await world.session().connect()
    starts = [len(script.starts) for script in world.scripts.values()]

    found = world.session().source_tools()

    assert [(one.name[:12], one.short[:12], one.origin, one.exposure, one.source) for one in found.tools] == [
        ("mcp__x__read", "read", "x", None, "mcp"),
        ("mcp__y__a_b", "a_b", "y", "hidden", "mcp"),
        ("mcp__y__zzzz", "zzzzzzzzzzzz", "y", "hidden", "mcp"),
    ]
    assert found.tools[1].words == "Does."
    assert all(len(one.name) <= 64 for one in found.tools)
    assert [len(script.starts) for script in world.scripts.values()] == starts


def test_knowing_servers_loads_neither_the_package_nor_a_validator(tmp_path):
    program = f"""
import json, os, sys
from ferrule.settings import Mcp
from ferrule.sources.mcp.config import read_servers
from ferrule.sources.mcp.connection import Opening
from ferrule.sources.mcp.servers import Servers
given = [json.dumps({{"x": {{"command": "c"}}}})]
found = read_servers({str(tmp_path)!r}, Mcp(), given=given, user_folder={str(tmp_path)!r})
servers = Servers(found, state_folder={str(tmp_path / "s")!r}, workspace={str(tmp_path)!r}, opening=Opening({{}}))
assert servers.source_tools().warnings == (), servers.source_tools()
assert servers.find_unlisted() == ("x",)
heavy = ("mcp", "mcp_types", "pydantic", "jsonschema_rs", "httpx2")
print([name for name in heavy if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)

    assert (done.stdout.strip(), done.stderr) == ("[]", "")


async def test_a_server_that_cannot_be_started_is_a_warning_and_the_others_go_on(world):
    world.user_servers(good={"command": "c"}, bad={"command": "c"}, slow={"command": "c", "startSeconds": 0.02})
    world.scripts["bad"].fails = "The server bad ended with exit code 1."
    world.scripts["slow"].hangs = True
    servers = world.session()

    found = await servers.connect()

    assert names(found) == ["mcp__good__read"]
    assert found.warnings == (
        "The server bad ended with exit code 1.",
        "The MCP server slow has not answered for 0.04 seconds.",
    )
    assert [(one.name, one.state, bool(one.error)) for one in servers.states()] == [
        ("good", "running", False),
        ("bad", "unlisted", True),
        ("slow", "unlisted", True),
    ]
    assert servers.find_unlisted() == ("bad", "slow")


async def test_servers_are_started_side_by_side(world):
    world.user_servers(**{f"s{n}": {"command": "c"} for n in range(20)})
    for script in world.scripts.values():
        script.hangs = True
    servers = world.session()
    task = asyncio.create_task(servers.connect())
    await until(lambda: sum(len(script.connections) for script in world.scripts.values()) == 8)

    for script in world.scripts.values():
        script.hangs = False
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert len((await servers.connect()).tools) == 20


@pytest.mark.parametrize("entry", [{"disabled": True}, {"permission": "deny"}], ids=["disabled", "denied"])
async def test_a_server_that_is_switched_off_never_starts(world, entry):
    world.user_servers(x={"command": "c", **entry})
    servers = world.session(Asked(answer=True))

    found = await servers.connect(["x"])

    assert servers.source_tools() == ((), ())
    assert servers.find_unlisted() == ()
    assert "is switched off" in found.warnings[0]
    assert servers.serves("mcp__x__read") is None
    assert world.scripts["x"].connections == []
    with pytest.raises(ToolFailure, match="is switched off"):
        await servers.resources("x")


async def test_a_variable_that_is_not_set_stops_only_its_server(world):
    world.user_servers(x={"command": "c", "args": ["${NO_SUCH}"]}, y={"command": "c", "env": {"A": "${B:-b}"}})

    found = await world.session().connect()

    assert names(found) == ["mcp__y__read"]
    assert "needs the variable NO_SUCH" in found.warnings[0]
    assert world.scripts["y"].starts[0].env == {"A": "b"}


async def test_a_server_gets_no_secret_but_those_it_is_given(world):
    world.user_servers(x={"command": "c", "env": {"KEY": "${MY_TOKEN}"}})

    await world.session(environment={"MY_TOKEN": "s", "OTHER_TOKEN": "o", "HOME": "/h"}).connect()

    (environment,) = world.scripts["x"].environments
    assert "MY_TOKEN" not in environment
    assert "OTHER_TOKEN" not in environment
    assert environment["HOME"] == "/h"
    assert world.scripts["x"].starts[0].env == {"KEY": "s"}


async def test_a_server_that_is_rejected_only_when_its_variables_are_known_does_not_start(world):
    (world.user / "mcp.json").write_text(
        json.dumps(
            {
                "mcpServers": {"x": {"url": "${BASE}/mcp"}},
                "amp.mcpPermissions": [{"matches": {"url": "http://evil*"}, "action": "reject"}],
            }
        )
    )
    servers = world.session(environment={"BASE": "http://evil.h"})

    found = await servers.connect()

    assert found.tools == ()
    assert "rejected by amp.mcpPermissions" in found.warnings[0]


async def test_only_the_tools_that_are_wanted_are_there(world):
    world.user_servers(x={"command": "c", "includeTools": ["read*", "*_log"]})
    script = world.scripts["x"]
    script.says = listing(*map(tool, ("read", "read_all", "write", "git_log", "logs")))
    servers = world.session()

    found = await servers.connect()
    assert names(found) == ["mcp__x__read", "mcp__x__read_all", "mcp__x__git_log"]

    script.says = listing(*map(tool, ("read", "read_all", "git_log", "logs", "newer")), tool("write", "Changed."))
    again = await world.session().connect(["x"])
    assert again.warnings == ()

    with pytest.raises(ToolFailure, match="does not have the tool write any more"):
        await found.tools[0]._held.call("write", {}, lambda _: None)


async def test_one_bad_schema_is_reported_and_breaks_nothing(world):
    world.user_servers(x={"command": "c"})
    world.scripts["x"].says = listing(tool("good"), tool("bad", schema={"type": "string"}))

    found = await world.session().connect()
    later = world.session()

    assert names(found) == names(later.source_tools()) == ["mcp__x__good"]
    assert found.warnings == later.source_tools().warnings
    assert "the tool bad is not used: its schema is about something else than an object" in found.warnings[0]
    assert later.states()[0].quarantined[0][0] == "bad"


async def test_a_changed_list_is_told_once_and_only_if_something_changed(world):
    world.user_servers(x={"command": "c"})
    script = world.scripts["x"]
    script.says = listing(tool("read"), tool("other"))
    servers = world.session()
    await servers.connect()

    script.change(script.says)
    await until(lambda: script.listings == 2 and servers._held["x"]._later.done())
    assert world.changes == 0

    for _ in range(10):
        script.change(listing(tool("other")))
    await until(lambda: world.changes == 1)
    assert names(servers.source_tools()) == ["mcp__x__other"]
    assert script.listings == 3


async def test_a_server_that_never_stops_saying_so_is_not_asked_for_ever(world):
    world.user_servers(x={"command": "c"})
    script = world.scripts["x"]
    servers = world.session()
    await servers.connect()
    script.listings, script.is_restless = 0, True
    script.change(script.says)
    await until(servers._held["x"]._later.done)

    assert script.listings <= 5


async def test_a_server_that_died_is_started_again_and_looked_at_again(world):
    world.user_servers(x={"command": "c"})
    servers = world.session()
    (found,) = (await servers.connect()).tools
    script = world.scripts["x"]
    await found._held.call("read", {}, lambda _: None)
    await found._held.call("read", {}, lambda _: None)
    assert script.listings == 1

    script.die()
    await found._held.call("read", {}, lambda _: None)

    assert (script.listings, len(script.starts), len(script.calls)) == (2, 2, 3)


async def test_a_call_to_a_server_that_was_never_listed_names_it(world):
    world.user_servers(x={"command": "c"})
    servers = world.session()

    assert servers.serves("mcp__x__read") == "x"
    assert servers.serves("mcp__y__read") is None
    assert servers.serves("read") is None
    await servers.connect(["x"])
    assert servers.serves("mcp__x__read") is None


async def test_an_unknown_server_is_answered_with_the_nearest(world):
    world.user_servers(github={"command": "c"})
    servers = world.session()

    assert (await servers.connect(["gihub"])).warnings == (
        "There is no MCP server called 'gihub'. Did you mean github?",
    )
    with pytest.raises(ToolFailure, match="Did you mean github"):
        await servers.read("gihub", "a:b")
    with pytest.raises(ConfigError, match="Did you mean github"):
        servers.forget("gihub")


async def test_what_the_configuration_says_to_calls_becomes_rules(world):
    world.user_servers(
        a={"command": "c", "permission": "allow"}, b={"command": "c", "permission": "deny"}, d={"command": "c"}
    )
    world.project_servers(e={"command": "c", "permission": "allow"}, f={"command": "c", "permission": "deny"})

    assert world.session().rules() == (("allow", "mcp__a"), ("deny", "mcp__b"), ("deny", "mcp__f"))


async def test_resources_come_from_every_server_that_may_be_started(world):
    world.user_servers(x={"command": "c"}, y={"command": "c"}, bad={"command": "c"}, none={"command": "c"})
    world.project_servers(evil={"command": "c"})
    for name in "xy":
        world.scripts[name].says = listing(tool("read"), has_resources=True)
        world.scripts[name].resources = [ServerResource(name, f"{name}:{n}", str(n)) for n in range(150)]
    servers = world.session()
    await servers.connect(["x", "none"])
    world.scripts["bad"].fails = "It is ill."

    first = await servers.resources(None)
    second = await servers.resources(None, cursor=first.next_cursor)

    assert first.silent == (("bad", "It is ill."),)
    assert [len(first.resources), len(second.resources), second.next_cursor] == [200, 100, ""]
    assert {one.server for one in (*first.resources, *second.resources)} == {"x", "y"}
    assert world.scripts["evil"].connections == []
    assert (await servers.resources("y", templates=True)) == ((), True, (), "")
    assert (await servers.read(None, "y:3")).parts == ("y: y:3",)
    assert (await servers.read("x", "z:3")).parts == ("x: z:3",)
    with pytest.raises(ToolFailure, match="No server lists it; say which server"):
        await servers.read(None, "z:3")
    with pytest.raises(ToolFailure, match="It is ill"):
        await servers.resources("bad")
    with pytest.raises(ToolFailure, match="cursor"):
        await servers.resources(None, cursor="x")


async def test_a_skills_servers_join_and_take_no_name(world):
    world.user_servers(x={"command": "mine"})
    asked = Asked(answer=True)
    servers = world.session(asked)
    world.scripts["y"] = Script()

    found = await servers.add({"X": {"command": "evil"}, "y": {"command": "c"}}, "skills/s/mcp.json")

    assert names(found) == ["mcp__y__read"]
    assert "there is one of that name" in found.warnings[0]
    assert [one.server for one in asked.questions] == ["y"]
    assert world.scripts["x"].connections == []
    assert "mcp__y__read" in names(servers.source_tools())


async def test_a_skills_server_needs_an_approval(world):
    servers = world.session()

    found = await servers.add({"y": {"command": "c"}}, "skills/s/mcp.json")

    assert found.tools == ()
    assert "has not been approved" in found.warnings[0]


async def test_closing_ends_every_server(world):
    world.user_servers(x={"command": "c"}, y={"command": "c"})
    servers = world.session()
    await servers.connect(["x"])

    await servers.close()
    await servers.close()

    assert (world.scripts["x"].closed, world.scripts["y"].closed) == (1, 0)
    with pytest.raises(ToolFailure, match="was closed with its session"):
        await servers.resources("x")
