"""The user's and the project's own tools in a session: when they are looked for, what they replace, whom they need."""

import asyncio
import re
from pathlib import Path

import pytest
from tests.gathering.world import SECONDS, World, names
from tests.tools.confined import CONFINED

from ferrule import Engine, ModeConfig
from ferrule.dialects import FAMILIES
from ferrule.sandbox import report
from ferrule.settings import Permissions, SandboxSettings, Tools


def ran(path: Path) -> bool:
    """Was anything of this file run?"""
    return path.with_name(f"{path.name}.ran").exists()


async def test_a_session_knows_its_tools_from_the_start(world: World) -> None:
    own, boxed = world.tool(world.user / "tools", "mine"), world.box(world.user / "toolbox", "boxed")
    async with world.session() as engine:
        assert {"mine", "tb__boxed"} <= names(engine)
        assert (ran(own), ran(boxed)) == (True, True)
        assert (await engine.call("mine")).text == "mine"
        assert (await engine.call("tb__boxed")).text == "boxed"
        assert engine.warnings == ()


async def test_a_lazy_session_looks_only_when_a_call_needs_it(world: World) -> None:
    boxed = world.box(world.user / "toolbox", "boxed")
    (world.workspace / "a.txt").write_text("text\n")
    async with world.session(lazy=True, servers={"served": world.server("served")}) as engine:
        assert (await engine.call("Read", path="a.txt")).ok
        assert "gathering" not in engine._companions.__dict__
        assert not ran(boxed)
        reply = await engine.call("tb__boxed")
        assert (reply.text, ran(boxed)) == ("boxed", True)
        assert world.starts("served") == 0


async def test_a_lazy_session_has_the_user_s_tool_in_a_built_in_s_place(world: World) -> None:
    world.tool(world.user / "tools", "Read", "not the file")
    boxed = world.box(world.user / "toolbox", "boxed")
    async with world.session(lazy=True) as engine:
        first, second = await asyncio.gather(engine.call("Read", path="a.txt"), engine.call("Read", path="a.txt"))
        assert (first.text, second.text) == ("not the file", "not the file")
        assert not ran(boxed)


async def test_a_look_that_was_given_up_is_made_again(world: World) -> None:
    program = world.box(world.user / "toolbox", "slow")
    wait = f"[ -e {world.folder}/go ] || {{ : > {world.folder}/began; exec sleep 600; }}"
    program.write_text(program.read_text().replace("#!/bin/sh\n", f"#!/bin/sh\n{wait}\n"))
    async with world.session(lazy=True) as engine:
        given_up = asyncio.create_task(engine.call("tb__slow"))
        await world.until((world.folder / "began").exists)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        (world.folder / "go").touch()
        assert (await engine.call("tb__slow")).text == "boxed"


async def test_rules_about_a_built_in_bind_what_stands_in_its_place(world: World) -> None:
    world.tool(world.user / "tools", "Bash", "not a shell")
    for denied in ("Bash", "run_shell_command", "shell"):
        async with world.session(permissions=Permissions(deny=(denied,))) as engine:
            assert "Bash" not in names(engine), denied
            reply = await engine.call("Bash", cmd="ls")
            assert reply.error is not None
            assert reply.error.error_code == "denied-by-rule", denied
    async with world.session() as engine:
        told = [one["description"] for one in engine.definitions() if one["name"] == "Bash"]
        assert told == ["A tool of mine."]
        assert (await engine.call("Bash", cmd="ls")).text == "not a shell"


async def test_a_project_s_tools_need_trust_in_what_they_are(world: World) -> None:
    paths = [
        world.tool(world.workspace / "tools", "first"),
        world.tool(world.workspace / ".ferrule" / "tools", "second"),
        world.box(world.workspace / ".agents" / "tools", "third"),
        world.box(world.workspace / ".amp" / "toolbox", "fourth"),
    ]
    theirs = {"first", "second", "tb__third", "tb__fourth"}
    async with world.session() as engine:
        assert not theirs & names(engine)
        (warning,) = engine.warnings
        assert warning.startswith("The tools of this project are not used (4 files, such as tools/first.py)")
        assert (await engine.call("first")).status == "error"
    assert not any(map(ran, paths))

    world.trust()
    async with world.session() as engine:
        assert theirs <= names(engine)
        assert engine.warnings == ()
        replies = [await engine.call(name) for name in sorted(theirs)]
        assert [reply.text for reply in replies] == ["mine", "mine", "boxed", "boxed"]

    for path in paths:
        path.with_name(f"{path.name}.ran").unlink()
    world.tool(world.workspace / "tools", "first", "changed")
    async with world.session() as engine:
        assert not theirs & names(engine)
        assert "not used" in engine.warnings[0]
    assert not any(map(ran, paths))


def script(world: World, folder: str, name: str = "release.sh", *, slow: bool = False) -> Path:
    """A program of the project that does its work whatever it is told, in the workspace and beside it."""
    path = world.workspace / folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    marks = "".join(f"echo released >> {place}/RELEASED\n" for place in (world.workspace, world.folder))
    path.write_text(f"#!/bin/sh\n{marks}{'sleep 600' if slow else ''}\necho Releases $(date +%N).\n")
    path.chmod(0o755)
    return path


def released(world: World) -> bool:
    """Has any script done its work?"""
    return any((place / "RELEASED").exists() for place in (world.workspace, world.folder))


def described(engine: Engine, name: str = "release_sh") -> str:
    (words,) = [one["description"] for one in engine.definitions() if one["name"] == name]
    return str(words)


@pytest.mark.parametrize("use", ["auto", "none"])
@pytest.mark.parametrize("folder", ["tools", ".ferrule/tools"])
@pytest.mark.parametrize("dialect", [name for name in FAMILIES if name != "ah"])
async def test_a_script_is_no_tool_before_somebody_describes_it(
    world: World, dialect: str, folder: str, use: str
) -> None:
    path = script(world, folder)
    world.trust()
    async with world.session(dialect=dialect, sandbox=SandboxSettings(use=use)) as engine:  # type: ignore[arg-type]
        assert "release_sh" not in names(engine)
        told = f"{path}: no tool, for nothing describes it. Write what it does into release.sh.md beside it."
        assert engine.warnings == ((told,) if folder == ".ferrule/tools" else ())
    assert not released(world)

    Path(f"{path}.md").write_text("Releases it.\n")
    world.trust()
    async with world.session(dialect=dialect) as engine:
        assert described(engine) == "Releases it."
        assert engine.warnings == ()
    assert not released(world)


async def test_a_script_of_the_user_s_own_needs_words_too_and_all_are_told_of_in_a_line(world: World) -> None:
    for name in ("one", "two", "three"):
        path = world.user / "tools" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n: > {world.folder}/RELEASED\n")
        path.chmod(0o755)
    async with world.session() as engine:
        assert not {"one", "two", "three"} & names(engine)
        (warning,) = engine.warnings
        assert warning.startswith(f"{world.user}/tools/one and 2 more: no tool")
    assert not released(world)


async def test_a_script_is_asked_once_for_its_content(world: World) -> None:
    path = script(world, "tools")
    words = []
    for at in range(4):
        if at == 2:
            path.write_text(path.read_text() + "# another\n")
        world.trust()
        async with world.session(dialect="ah") as engine:
            words.append(described(engine))
    assert all(re.fullmatch(r"Releases \d+\.", one) for one in words), words
    assert words[0] == words[1] != words[2] == words[3]
    assert not released(world)


@pytest.mark.parametrize("use", [*CONFINED, "none"])
async def test_a_script_that_is_asked_can_write_nothing_and_is_not_asked_where_it_could(world: World, use: str) -> None:
    script(world, "tools")
    world.trust()
    async with world.session(dialect="ah", sandbox=SandboxSettings(use=use)) as engine:  # type: ignore[arg-type]
        words = described(engine)
    works = use in {row.name for row in report() if row.works and row.name != "none"}
    assert words.startswith("Releases ") if works else words == "CLI tool: release.sh"
    assert not released(world)


@pytest.mark.parametrize("dialect", ["ah", "claude"])
async def test_thirty_slow_scripts_keep_no_call_waiting_that_does_not_need_them(world: World, dialect: str) -> None:
    for number in range(30):
        script(world, "tools", f"slow{number}.sh", slow=True)
        world.box(world.workspace / ".amp" / "toolbox", f"box{number}")
    (world.workspace / "a.txt").write_text("hello\n")
    world.trust()
    tools = {"describe_seconds": 2 * SECONDS}
    async with world.session(dialect=dialect, lazy=True, tools=tools) as engine:
        read = next(face.name for face in engine.registry.visible_faces() if face.tool == "read")
        reply = await engine.call(read, **{"path" if dialect == "ah" else "file_path": "a.txt"})
        assert "hello" in reply.text
    assert not released(world)
    assert not list((world.workspace / ".amp" / "toolbox").glob("*.ran"))


async def test_a_project_s_toolbox_is_described_once_for_its_content_and_confined(world: World) -> None:
    path = world.workspace / ".amp" / "toolbox" / "release"
    path.parent.mkdir(parents=True)
    text = (
        f"#!/bin/sh\n(echo x >> {world.workspace}/RELEASED; echo x >> {world.folder}/RELEASED) 2> /dev/null\n"
        "printf 'name: release\\ndescription: At %s.\\n' $(date +%N)\n"
    )
    words = []
    for more in ("", "", "# another\n"):
        path.write_text(text + more)
        path.chmod(0o755)
        world.trust()
        async with world.session() as engine:
            words.append(described(engine, "tb__release"))
            if works := any(row.works for row in report() if row.name in CONFINED):
                assert not released(world)
    assert works
    assert words[0] == words[1] != words[2]


async def test_a_trusted_program_that_changes_in_the_session_is_not_run(world: World) -> None:
    boxed = world.box(world.workspace / ".amp" / "toolbox", "boxed")
    world.trust()
    async with world.session() as engine:
        boxed.write_text("#!/bin/sh\necho other\n")
        reply = await engine.call("tb__boxed")
    assert reply.error is not None
    assert reply.error.error_code == "changed"


async def test_the_user_s_tool_comes_before_the_project_s_box_and_behind_its_module(world: World) -> None:
    world.tool(world.user / "tools", "mine", "the user's")
    world.tool(world.workspace / "tools", "mine", "the project's")
    world.box(world.user / "toolbox", "boxed")
    (world.box(world.workspace / ".amp" / "toolbox", "boxed")).write_text(
        "#!/bin/sh\n[ $TOOLBOX_ACTION = describe ] && echo 'name: boxed\ndescription: Theirs.' || echo theirs\n"
    )
    world.trust()
    async with world.session() as engine:
        assert (await engine.call("mine")).text == "the project's"
        assert (await engine.call("tb__boxed")).text == "boxed"
        (warning,) = engine.warnings
        assert ".amp/toolbox/boxed" in warning


async def test_what_cannot_be_used_is_a_sentence_with_the_file_in_it(world: World) -> None:
    own = world.user / "tools"
    world.tool(own, "good")
    (own / "broken.py").write_text("TOOL = 1 / 0\n")
    (own / "broken.lua").write_text("return {")
    world.box(world.user / "toolbox", "mute").write_text("#!/bin/sh\nexit 3\n")
    (world.user / "mcp.json").write_text("{ broken")
    world.project_servers(bad={"nothing": True})
    async with world.session() as engine:
        assert "good" in names(engine)
        warnings = engine.warnings
    for path in (own / "broken.py", own / "broken.lua", world.user / "toolbox/mute", world.user / "mcp.json"):
        assert len([warning for warning in warnings if str(path) in warning]) == 1, path
    assert [warning for warning in warnings if ".mcp.json" in warning]
    assert all(re.fullmatch(r"\S[^\n]*[.)`]|failed to .+|invalid .+", warning) for warning in warnings), warnings


async def test_settings_switch_tools_off_and_hide_them(world: World) -> None:
    for name in ("one", "two", "three", "four"):
        world.tool(world.user / "tools", name)
    world.box(world.user / "toolbox", "boxed")
    tools = {"disable": ("tw*", "tb__*", "Grep"), "exposure": {"three": "hidden", "fo*": "deferred"}}
    async with world.session(tools=tools) as engine:
        shown = names(engine)
        assert "one" in shown
        told = set(re.findall(r"^(\w+): ", engine.section(), re.MULTILINE))
        assert not {"two", "three", "four", "tb__boxed", "Grep"} & (shown | told)
        for name in ("two", "tb__boxed", "Grep"):
            reply = await engine.call(name)
            assert (reply.status, reply.error and reply.error.error_code) == ("error", "unknown-tool"), name
        assert (await engine.call("three")).text == "mine"
        assert (await engine.call("four")).text == "mine"
        assert "four" in names(engine)


@pytest.mark.contract("custom.section")
async def test_the_section_tells_of_tools_their_guidance_and_skills(world: World) -> None:
    own = world.tool(world.user / "tools", "mine", words="Does it.\\nAnd more.")
    own.write_text(own.read_text().replace('"execute"', '"system_prompt": "Only on Mondays.", "execute"'))
    world.skill(world.user / "skills", "greeting")
    async with world.session() as engine:
        section = engine.section()
    first, *lines = section.splitlines()
    assert re.fullmatch(r"Tools: .*\bmine\b.*\.", first)
    assert "mine: Does it." in lines
    assert "And more." not in section
    assert "## mine\nOnly on Mondays." in section
    assert "greeting" in section


async def test_tools_in_the_workspace_are_the_project_s_whoever_names_their_folder(world: World) -> None:
    inside, box = world.workspace / "mine", world.workspace / "box"
    paths = [world.tool(inside, "sneaky"), world.box(box, "sneaky_box")]
    tools = {"folders": (str(inside),), "toolbox": (str(box),)}
    async with world.session(tools=tools) as engine:
        assert not {"sneaky", "tb__sneaky_box"} & names(engine)
        assert sum(str(inside) in warning or str(box) in warning for warning in engine.warnings) == 2
    assert not any(map(ran, paths))


async def test_settings_are_read_from_their_file_for_a_session_without_any(world: World) -> None:
    elsewhere = world.folder / "elsewhere"
    world.tool(elsewhere, "mine")
    (world.user / "settings.toml").write_text(f'[tools]\nfolders = ["{elsewhere}"]\npackages = false\n')
    async with Engine(world.workspace, state=world.state, ask=lambda _: True) as engine:
        assert engine.settings.tools == Tools(folders=(str(elsewhere),), packages=False)
        assert (await engine.call("mine")).text == "mine"


async def test_a_program_answers_to_its_whole_file_name_too(world: World) -> None:
    folder = world.user / "tools"
    folder.mkdir(parents=True)
    program = folder / "greet.sh"
    program.write_text("#!/bin/sh\necho hello $1\n")
    program.chmod(0o755)
    (folder / "greet.sh.md").write_text("Greets.\n")
    async with world.session() as engine:
        replies = [await engine.call(name, args="you") for name in ("greet_sh", "greet.sh")]

    assert [reply.text for reply in replies] == ["hello you\n", "hello you\n"]


@pytest.mark.parametrize("types", ['["reviewer"]', '["all"]', '"other"', "null", "[]"])
@pytest.mark.parametrize("kind", ["other", "reviewer", None])
async def test_a_toolbox_tool_is_shown_to_those_whose_calls_it_takes(
    world: World, types: str, kind: str | None
) -> None:
    box = world.user / "toolbox"
    box.mkdir(parents=True)
    (box / "look").write_text(
        "#!/bin/sh\n"
        f'echo \'{{"name": "look", "description": "Looks.", "args": {{}}, "meta": {{"subagentTypes": {types}}}}}\'\n'
    )
    (box / "look").chmod(0o755)
    mode = ModeConfig(allow_toolbox=True, subagent_type=kind)
    async with world.session(mode=mode) as engine:
        shown = "tb__look" in names(engine)
        told = "tb__look" in engine.section()
        reply = await engine.call("tb__look")

    refused = reply.error is not None and reply.error.error_code == "not-in-mode"
    assert shown is told is not refused
