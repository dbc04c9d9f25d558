"""What skills bring into a session, and the prompts of servers, which are skills."""

import json

from tests.gathering.world import World, listed, names

from ferrule.permissions import Question
from ferrule.settings import SandboxSettings

GREET = {"name": "greet", "description": "Greets.", "arguments": [{"name": "who", "required": True}]}


async def test_a_server_s_prompt_is_a_skill(world: World) -> None:
    servers = {"one": world.server("one", kinds={"prompts": [GREET]})}
    async with world.session(servers=servers, dialect="claude") as engine:
        assert "Skill" not in names(engine)
        await engine.connect()
        assert "Skill" in names(engine)
        assert "one:greet" in engine.section()
        reply = await engine.call("Skill", skill="one:greet", args="who=Ada")
        assert 'Prompt greet {"who": "Ada"}' in reply.text
        lacking = await engine.call("Skill", skill="one:greet")
        assert lacking.error is not None
        assert "who" in lacking.error.message
    async with world.session(servers=servers, dialect="claude") as engine:
        assert "Skill" in names(engine)
        assert world.starts("one") == 1


async def test_a_prompt_that_comes_later_is_a_skill_too(world: World) -> None:
    tools = [listed("notify")]
    servers = {"one": world.server("one", kinds={"tools": tools, "prompts": [GREET]}, permission="allow")}
    world.offer("one", tools=tools)
    async with world.session(servers=servers, dialect="claude") as engine:
        await engine.connect()
        assert "Skill" not in names(engine)
        world.offer("one", tools=tools, prompts=[GREET])
        await engine.call("mcp__one__notify")
        await world.until(lambda: world.questions)
        await world.until(lambda: "Skill" in names(engine))


async def test_a_call_that_lists_a_server_brings_its_prompts(world: World) -> None:
    servers = {"one": world.server("one", kinds={"prompts": [GREET]}, permission="allow")}
    async with world.session(servers=servers, dialect="claude") as engine:
        assert (await engine.call("mcp__one__say")).ok
        assert "Skill" in names(engine)


async def test_no_rule_about_a_skill_is_proposed_for_the_command_in_it(world: World) -> None:
    world.skill(world.user / "skills", "running", "Now: !`make it`")
    async with world.session(dialect="claude", answer=False, sandbox=SandboxSettings(auto_allow=False)) as engine:
        assert (await engine.call("Skill", skill="running")).status == "rejected-by-user"
    assert [question.proposals for question in world.questions] == [()]


async def test_a_skill_brings_its_toolbox_and_its_server_when_the_user_says_so(world: World) -> None:
    folder = world.skill(world.user / "skills", "carrying", "Use them.")
    boxed = world.box(folder / "toolbox", "carried")
    (folder / "mcp.json").write_text(json.dumps({"brought": world.entry("brought")}))
    ran = boxed.with_name("carried.ran")
    async with world.session(dialect="claude", answer=False) as engine:
        assert (await engine.call("Skill", skill="carrying")).status == "rejected-by-user"
        assert not {"tb__carried", "mcp__brought__say"} & names(engine)
    assert (world.starts("brought"), ran.exists()) == (0, False)

    world.questions.clear()
    async with world.session(dialect="claude") as engine:
        reply = await engine.call("Skill", skill="carrying")
        assert reply.ok, reply
        assert "Use them." in reply.text
        assert {"tb__carried", "mcp__brought__say"} <= names(engine)
        assert [question.kind for question in world.questions] == ["call", "server"]
        assert (await engine.call("tb__carried")).text == "boxed"
        assert (await engine.call("mcp__brought__say")).text == "say {}"
    assert world.living("brought") == []


async def test_a_skill_s_server_that_is_refused_leaves_the_rest(world: World) -> None:
    folder = world.skill(world.user / "skills", "carrying", "Use them.")
    world.box(folder / "toolbox", "carried")
    (folder / "mcp.json").write_text(json.dumps({"brought": world.entry("brought")}))

    def only_calls(question: Question) -> bool:
        return question.kind == "call"

    async with world.session(dialect="claude", answer=only_calls) as engine:
        reply = await engine.call("Skill", skill="carrying")
        assert reply.ok
        assert names(engine) >= {"tb__carried"}
        assert "mcp__brought__say" not in names(engine)
        assert [warning for warning in engine.warnings if "brought" in warning]
    assert world.starts("brought") == 0


async def test_a_project_s_skill_brings_nothing_untrusted(world: World) -> None:
    folder = world.skill(world.workspace / ".claude" / "skills", "theirs", "Look around.")
    boxed = world.box(folder / "toolbox", "carried")
    (folder / "mcp.json").write_text(json.dumps({"brought": world.entry("brought")}))
    async with world.session(dialect="claude") as engine:
        reply = await engine.call("Skill", skill="theirs")
        assert "Look around." in reply.text
        assert [note for note in reply.notes if "does not trust this project" in note]
        assert not {"tb__carried", "mcp__brought__say"} & names(engine)
    assert (world.starts("brought"), boxed.with_name("carried.ran").exists()) == (0, False)

    world.trust()
    async with world.session(dialect="claude") as engine:
        assert (await engine.call("Skill", skill="theirs")).ok
        assert {"tb__carried", "mcp__brought__say"} <= names(engine)


async def test_a_trusted_skill_s_tool_that_changed_in_the_session_is_not_brought(world: World) -> None:
    folder = world.skill(world.workspace / ".claude" / "skills", "theirs", "Look around.")
    boxed = world.box(folder / "toolbox", "carried")
    world.trust()
    async with world.session(dialect="claude") as engine:
        assert "Skill" in names(engine)
        boxed.write_text(boxed.read_text().replace("echo boxed", "echo changed"))
        await engine.call("Skill", skill="theirs")
        assert "tb__carried" not in names(engine)
        assert [warning for warning in engine.warnings if str(boxed) in warning]
    assert not boxed.with_name("carried.ran").exists()
