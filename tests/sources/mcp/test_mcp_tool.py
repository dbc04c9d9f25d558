"""A tool of a server in the engine's hands: arguments as they are, access, time limits, answers."""

import asyncio
from typing import Any, cast

import pytest
from tests.sources.mcp.pretend import listing, tool
from tests.sources.mcp.world import World

from ferrule.arguments import receive
from ferrule.arguments.schema import Arguments
from ferrule.core.access import Access
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.services import Mixed
from ferrule.registry import Registry
from ferrule.registry.entry import plain_face


class Heard:
    """The part of a call's context that arguments and tools use."""

    def __init__(self):
        self.input = {}
        self.notes = []
        self.messages = []

    def note(self, sentence):
        self.notes.append(sentence)

    def progress(self, message):
        self.messages.append(message)


@pytest.fixture
async def world(tmp_path):
    made = World(tmp_path)
    yield made
    await made.close()


async def tools(world, *listed, **entry):
    world.user_servers(x={"command": "c", **entry})
    world.scripts["x"].says = listing(*listed)
    return (await world.session().connect()).tools


SCHEMA = {
    "type": "object",
    "properties": {"a b": {"type": "string"}, "class": {"type": ["integer", "null"]}, "deep": {"type": "array"}},
    "required": ["a b"],
}


async def test_arguments_reach_the_server_as_they_are(world):
    (found,) = await tools(world, tool("t", schema=SCHEMA))
    face = plain_face(found)
    ctx: Any = Heard()
    values = {"a b": "12", "class": None, "deep": [{"x": 1.5, "y": ["1", None, True]}]}

    args = Arguments().understand(face, face, found, receive(values), ctx)
    await found.run(args, ctx)

    assert world.scripts["x"].calls == [("t", values)]
    assert ctx.input == values
    assert ctx.notes == []


async def test_arguments_are_held_to_the_servers_own_schema(world):
    (found,) = await tools(world, tool("t", schema=SCHEMA))
    face = plain_face(found)

    with pytest.raises(BadArguments, match="a b"):
        Arguments().understand(face, face, found, receive({"class": 1}), cast("Any", Heard()))


async def test_a_registry_takes_it_beside_others(world):
    found = await tools(world, tool("read"), tool("other"))
    registry = Registry(found, (), {})

    assert [face.name for face in registry.visible_faces()] == ["mcp__x__read", "mcp__x__other"]
    assert registry.hear("mcp__x__read", {"path": "a"}).tool is found[0]


@pytest.mark.parametrize(
    ("hints", "mode"),
    [
        pytest.param({}, "write", id="nothing-said"),
        pytest.param({"readOnlyHint": True}, "read", id="reads"),
        pytest.param({"readOnlyHint": False}, "write", id="writes"),
        pytest.param({"readOnlyHint": "true"}, "write", id="a-text-is-no-yes"),
    ],
)
async def test_only_a_plain_yes_makes_a_call_shareable(world, hints, mode):
    (found,) = await tools(world, tool("t", hints=hints))

    assert found.access({}, Heard()) == (Access.server("x", mode=mode),)


async def test_what_it_says_of_itself_is_there(world):
    output = {"type": "object", "properties": {"n": {"type": "integer"}}}
    (found,) = await tools(world, tool("t", "", title="A title", hints={"readOnlyHint": True}, output_schema=output))
    ctx = Heard()

    answer = await found.run({"path": "a"}, ctx)

    assert found.words == "A title"
    assert found.hints == {"title": "A title", "readOnlyHint": True}
    assert found.output_schema == output == world.scripts["x"].schemas[0]
    assert (found.guidance, found.timed, found.own_thread) == ("", True, False)
    assert answer == Mixed(("done",))
    assert found.definition_chars > 0


async def test_progress_is_passed_on(world):
    (found,) = await tools(world, tool("t"))
    world.scripts["x"].progress = ("1/2", "2/2")
    ctx = Heard()

    await found.run({}, ctx)

    assert ctx.messages == ["1/2", "2/2"]


async def test_a_servers_own_time_limit_ends_a_call(world):
    (found,) = await tools(world, tool("t"), seconds=0.02)
    world.scripts["x"].answer = asyncio.Event().wait

    assert found.timed is False
    with pytest.raises(ToolFailure, match=r"timed out after 0\.02 seconds") as failure:
        await found.run({}, Heard())
    assert failure.value.code == "timed-out"


async def test_progress_starts_the_servers_time_limit_anew(world, monkeypatch):
    (found,) = await tools(world, tool("t"), seconds=3600)
    script, loop, ahead = world.scripts["x"], asyncio.get_running_loop(), [0.0]
    script.answer = asyncio.Event().wait
    real = loop.time
    monkeypatch.setattr(loop, "time", lambda: real() + ahead[0])

    async def forward(seconds):
        ahead[0] += seconds
        for _ in range(5):
            await asyncio.sleep(0)

    call = asyncio.create_task(found.run({}, Heard()))
    await forward(0)
    for _ in range(5):
        await forward(3000)
        script.tell("still here")
    is_over_early = call.done()
    await forward(3700)

    assert (is_over_early, isinstance(call.exception(), ToolFailure)) == (False, True)


async def test_a_time_limit_of_the_servers_own_code_is_not_taken_for_ours(world):
    (found,) = await tools(world, tool("t"), seconds=60)

    async def late():
        raise TimeoutError("theirs")

    world.scripts["x"].answer = late

    with pytest.raises(TimeoutError, match="theirs"):
        await found.run({}, Heard())
