"""MCP servers in a session: when each is started, what is known without that, and what changes while it runs."""

import asyncio
import json
import os
from typing import Any

import pytest
from tests.gathering.world import World, listed, names

from ferrule.agent.prompt import InstructionNews
from ferrule.core.call import ToolsChanged
from ferrule.permissions import Answer, ModeConfig
from ferrule.settings import McpServer, Permissions


async def test_a_call_starts_just_the_server_that_it_is_for(world: World) -> None:
    servers = {"one": world.server("one"), "two": world.server("two")}
    async with world.session(servers=servers) as engine:
        assert not {"mcp__one__say", "mcp__two__say"} & names(engine)
        assert [warning for warning in engine.warnings if "one" in warning]
        reply = await engine.call("mcp__one__say", word="hello")
        assert reply.text == 'say {"word": "hello"}'
        assert (world.starts("one"), world.starts("two")) == (1, 0)
        assert "mcp__one__say" in names(engine)
        assert not [warning for warning in engine.warnings if "one" in warning]


async def test_connecting_lists_what_was_never_listed(world: World) -> None:
    servers = {"one": world.server("one"), "two": world.server("two"), "off": world.server("off", disabled=True)}
    async with world.session(servers=servers) as engine:
        await engine.connect(["one"])
        assert {one for one in names(engine) if one.startswith("mcp__")} == {"mcp__one__say"}
        await engine.connect()
        assert {one for one in names(engine) if one.startswith("mcp__")} == {"mcp__one__say", "mcp__two__say"}
        assert [world.starts(name) for name in servers] == [1, 1, 0]
        await engine.connect(["three"])
        assert "There is no MCP server called 'three'. There are one, two, off." in engine.warnings


async def test_a_second_session_knows_the_tools_without_starting_anything(world: World) -> None:
    servers = {"one": world.server("one")}
    async with world.session(servers=servers) as engine:
        await engine.connect()
    async with world.session(servers=servers) as engine:
        (told,) = [one for one in engine.definitions() if one["name"] == "mcp__one__say"]
        assert told["description"] == "Does say."
        assert engine.warnings == ()
        await engine.connect()
        assert world.starts("one") == 1
        assert (await engine.call("mcp__one__say")).ok
        assert world.starts("one") == 2


async def test_no_server_is_started_for_what_the_session_may_not_do(world: World) -> None:
    servers = {"one": world.server("one")}
    for more in (
        {"permissions": Permissions(deny=("mcp__one",))},
        {"permissions": Permissions(deny=("mcp__one__*",))},
        {"mode": ModeConfig(allow_toolbox=True)},
    ):
        async with world.session(servers=servers, **more) as engine:
            assert not (await engine.call("mcp__one__say")).ok
            assert not (await engine.call("say")).ok
            await engine.connect()
            assert "mcp__one__say" not in names(engine)
            assert world.starts("one") == 0, more


async def test_no_server_is_started_for_a_call_that_is_denied(world: World) -> None:
    servers = {"one": world.server("one", kinds={"tools": [listed("say"), listed("sing")]}, permission="allow")}
    async with world.session(servers=servers, permissions=Permissions(deny=("mcp__one__say",))) as engine:
        assert not (await engine.call("mcp__one__say")).ok
        assert world.starts("one") == 0
        assert (await engine.call("mcp__one__sing")).ok
        assert "mcp__one__say" not in names(engine)


async def test_a_mode_without_servers_has_none_of_their_tools(world: World) -> None:
    servers = {"one": world.server("one")}
    async with world.session(servers=servers) as engine:
        await engine.connect()
    async with world.session(servers=servers, mode=ModeConfig(allow_toolbox=True)) as engine:
        assert "mcp__one__say" not in names(engine)
        reply = await engine.call("mcp__one__say")
        assert (reply.status, reply.error and reply.error.error_code) == ("rejected-by-user", "not-in-mode")
    assert world.starts("one") == 1


async def test_closing_ends_every_server(world: World) -> None:
    servers = {"one": world.server("one"), "two": world.server("two")}
    async with world.session(servers=servers) as engine:
        await engine.connect()
        assert (len(world.living("one")), len(world.living("two"))) == (1, 1)
    assert (world.living("one"), world.living("two")) == ([], [])


async def test_a_server_that_dies_or_never_starts_is_a_warning_and_harms_nobody(world: World) -> None:
    servers = {
        "one": world.server("one", kinds={"tools": [listed("die"), listed("say")]}),
        "absent": McpServer(command=str(world.folder / "absent")),
    }
    async with world.session(servers=servers) as engine:
        await engine.connect()
        assert [warning for warning in engine.warnings if "absent" in warning and "cannot be started" in warning]
        died = await engine.call("mcp__one__die")
        assert (died.status, died.error and died.error.error_code) == ("error", "mcp-server")
        assert (await engine.call("mcp__one__say")).ok
        assert world.starts("one") == 2


async def test_the_user_s_word_on_a_server_of_their_own_spares_the_question(world: World) -> None:
    servers = {"one": world.server("one", permission="allow"), "two": world.server("two")}
    async with world.session(servers=servers, answer=False) as engine:
        await engine.connect()
        assert (await engine.call("mcp__one__say")).ok
        assert world.questions == []
        assert (await engine.call("mcp__two__say")).status == "rejected-by-user"
        assert [question.kind for question in world.questions] == ["call"]


async def test_a_project_s_server_is_not_started_before_the_user_has_seen_how(world: World) -> None:
    entry = world.entry("theirs")
    world.project_servers(theirs={**entry, "permission": "allow"})
    async with world.session(answer=False) as engine:
        assert world.questions == []
        await engine.connect()
        (question,) = world.questions
        assert (question.kind, question.name) == ("server", "theirs")
        assert any(entry["args"][-1] in effect for effect in question.effects)
        assert not (await engine.call("mcp__theirs__say")).ok
        assert len(world.questions) == 1
        (warning,) = [one for one in engine.warnings if "theirs" in one and "permission is not used" not in one]
        assert "has not been approved" in warning
        assert ".mcp.json" in warning
    assert world.starts("theirs") == 0

    world.questions.clear()
    async with world.session(answer=lambda question: question.kind == "server") as engine:
        await engine.connect()
        assert world.starts("theirs") == 1
        assert (await engine.call("mcp__theirs__say")).status == "rejected-by-user"
        assert [question.kind for question in world.questions] == ["server", "call"]

    world.questions.clear()
    world.project_servers(theirs={**entry, "env": {"MORE": "1"}})
    async with world.session(answer=False) as engine:
        assert "mcp__theirs__say" not in names(engine)
        assert not (await engine.call("mcp__theirs__say")).ok
        assert [warning for warning in engine.warnings if "has changed since it was approved" in warning]
    assert world.starts("theirs") == 1


async def test_starting_one_server_does_not_hide_what_is_wrong_with_another(world: World) -> None:
    world.project_servers(theirs=world.entry("theirs"))
    async with world.session(servers={"one": world.server("one")}, answer=False) as engine:
        await engine.connect(["one"])
        assert [one for one in engine.warnings if "theirs" in one and "has not been approved" in one]


async def test_a_list_that_changes_is_told_and_a_new_tool_waits_for_the_user(world: World) -> None:
    tools = [listed("say"), listed("notify")]
    servers = {"one": world.server("one", kinds={"tools": tools}, permission="allow")}
    async with world.session(servers=servers, answer=False) as engine:
        await engine.connect()
        world.events.clear()
        world.offer("one", tools=[listed("say", "Changed."), listed("notify"), listed("new")])
        assert (await engine.call("mcp__one__notify")).ok
        await world.until(lambda: any(isinstance(event, ToolsChanged) for event in world.events))
        assert names(engine) & {"mcp__one__say", "mcp__one__new"} == set()
        (question,) = world.questions
        assert (question.kind, question.name) == ("server", "one")
        assert any("Changed." in effect for effect in question.effects)
        (warning,) = [one for one in engine.warnings if "withheld" in one]
        assert "say" in warning
        assert "new" in warning
        reply = await engine.call("mcp__one__say")
        assert reply.error is not None
        assert len(world.questions) == 1

    async with world.session(servers=servers) as engine:
        assert "mcp__one__say" not in names(engine)
        await engine.connect(["one"])
        assert {"mcp__one__say", "mcp__one__new"} <= names(engine)
        (told,) = [one for one in engine.definitions() if one["name"] == "mcp__one__say"]
        assert told["description"] == "Changed."


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param(Answer(allow=True, values={"name": "Ada"}), '"accept", "content": {"name": "Ada"}', id="filled"),
        pytest.param(Answer(allow=False), '"decline"', id="no"),
    ],
)
async def test_what_a_server_asks_goes_to_the_user(world: World, answer: Answer, said: str) -> None:
    servers = {"one": world.server("one", kinds={"tools": [listed("ask")]}, permission="allow")}
    async with world.session(servers=servers, answer=lambda _: answer) as engine:
        reply = await engine.call("mcp__one__ask")
    assert said in reply.text
    (question,) = world.questions
    assert (question.kind, question.name) == ("values", "one")
    assert question.schema["properties"].keys() == {"name"}
    assert "The MCP server one asks: Who" in question.summary
    assert "\x1b" not in question.summary


async def test_what_a_server_offers_to_be_read(world: World) -> None:
    offered = {"resources": [{"uri": "mem://a", "name": "a"}]}
    servers = {"one": world.server("one", kinds=offered), "two": world.server("two")}
    async with world.session(servers=servers) as engine:
        await engine.connect()
        assert {"list_mcp_resources", "read_mcp_resource"} <= names(engine)
        listed = await engine.call("list_mcp_resources")
        assert "mem://a" in listed.text
        assert listed.notes == ()  # it is this session's own tool, whichever family has it too
        assert (await engine.call("read_mcp_resource", server="one", uri="mem://a")).text == "text of mem://a"
    async with world.session() as engine:
        assert not {"list_mcp_resources", "read_mcp_resource"} & names(engine)
        assert "mem://" not in (await engine.call("list_mcp_resources")).text
        for reply in (
            await engine.call("list_mcp_resources", server="one"),
            await engine.call("read_mcp_resource", server="one", uri="mem://a"),
        ):
            assert (reply.status, reply.error and reply.error.error_code) == ("error", "mcp-server")
            assert "No MCP server is configured" in reply.text


async def test_a_session_s_own_servers_come_from_texts_and_files(world: World) -> None:
    (world.folder / "given.json").write_text(json.dumps({"mcpServers": {"two": world.entry("two")}}))
    given: Any = [json.dumps({"one": world.entry("one")}), world.folder / "given.json"]
    async with world.session(mcp_config=given) as engine:
        assert "The tools of the server one are not known yet: a call of one lists them." in engine.warnings
        await engine.connect()
        assert {"mcp__one__say", "mcp__two__say"} <= names(engine)
        states = {one.name: (one.layer, one.state, one.tools) for one in engine.sources.states()}
        assert states == {"one": ("session", "running", 1), "two": ("session", "running", 1)}


async def test_what_is_no_server_is_said_to_be_none(world: World) -> None:
    servers = {"one": world.server("one"), "off": world.server("off", disabled=True)}
    async with world.session(servers=servers) as engine:
        assert "There is no MCP server called noone in this session." in (await engine.call("mcp__noone__say")).text
        assert "The MCP server off is disabled in your settings." in (await engine.call("mcp__off__say")).text


async def test_calls_to_a_server_that_nobody_has_listed_start_it_once(world: World) -> None:
    async with world.session(servers={"one": world.server("one")}) as engine:
        replies = await asyncio.gather(*(engine.call("mcp__one__say", word=at) for at in range(4)))
        assert [reply.text for reply in replies] == [f'say {{"word": {at}}}' for at in range(4)]
    assert world.starts("one") == 1


async def test_what_a_server_says_of_its_tools_stands_in_the_section(world: World) -> None:
    kinds = {"instructions": "Call say before anything else."}
    servers = {"one": world.server("one", kinds=kinds), "two": world.server("two", kinds=kinds, exposure="deferred")}
    async with world.session(servers=servers) as engine:
        assert "instructions" not in engine.section()
        await engine.connect()
    async with world.session(servers=servers) as engine:
        for name in servers:
            assert f'<server-instructions name="{name}">\nCall say before' in engine.section(listed=False)
    for more in ({"permissions": Permissions(deny=("mcp__one", "mcp__two"))}, {"mode": ModeConfig()}):
        async with world.session(servers=servers, **more) as engine:
            assert "Call say" not in engine.section()
    assert world.starts("one") == 1


async def test_the_rest_of_long_instructions_is_read_with_a_tool(world: World) -> None:
    servers = {"one": world.server("one", kinds={"instructions": "word " * 1000 + "END"})}
    async with world.session(servers=servers, dialect="claude") as engine:
        await engine.connect()
        section = engine.section()
        assert "END" not in section
        assert "ReadMcpResourceTool" in names(engine)
        address = {"server": "one", "uri": "ferrule://instructions/one"}
        assert f"ReadMcpResourceTool {json.dumps(address)} reads all of it" in section
        assert "ListMcpResourcesTool" not in names(engine)
        assert "END" in (await engine.call("ReadMcpResourceTool", **address)).text
    assert [one.kind for one in world.questions] == []


async def test_the_model_is_told_once_of_instructions_that_come_later(world: World) -> None:
    tools = [listed("die"), listed("say", word={})]
    servers = {"one": world.server("one", kinds={"instructions": "Call say first.", "tools": tools})}
    async with world.session(servers=servers) as engine:
        news = InstructionNews(engine.instructions)
        assert news.news() == ()
        await engine.connect()
        (told,) = news.news()
        assert "Call say first." in told
        assert news.news() == ()
        world.offer("one", instructions="Call it last.", tools=tools)
        await engine.call("mcp__one__die")
        await engine.call("mcp__one__say", word="x")
        (told,) = news.news()
        assert "Call it last." in told


@pytest.mark.parametrize("layer", ["project", "user"])
@pytest.mark.parametrize(
    ("command", "args", "why"),
    [
        pytest.param("my-server", [], "No such file or directory", id="program"),
        pytest.param("sh", ["-c", "echo no module >&2; exit 1"], "ended with exit code 1", id="interpreter"),
    ],
)
async def test_a_program_of_an_activated_environment_is_named_as_it_is_to_be_written(
    world: World, monkeypatch: pytest.MonkeyPatch, command: str, args: list[str], why: str, layer: str
) -> None:
    folder = world.workspace / ".venv" / "bin"
    folder.mkdir(parents=True)
    (folder / command).write_text("#!/bin/sh\n")
    (folder / command).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    if layer == "project":
        world.project_servers(one={"command": command, "args": args})
    servers = {} if layer == "project" else {"one": McpServer(command=command, args=tuple(args))}

    async with world.session(servers=servers) as engine:
        await engine.connect()
        (warning,) = [one for one in engine.warnings if "MCP server" in one]

    written = f".venv/bin/{command}" if layer == "project" else f"${{WORKSPACE}}/.venv/bin/{command}"
    assert why in warning
    assert f"write '{written}' as the command in" in warning
