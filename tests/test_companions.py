"""What a session has around its calls: opened with it, ended with it, and not in the way of calls that need none."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ferrule import Call, Engine
from ferrule.core.call import ToolsChanged
from ferrule.core.errors import ConfigError
from ferrule.core.services import Subagents
from ferrule.hooks import Hook
from ferrule.settings import McpServer, Permissions, Settings, Tools
from tests.gathering.world import World, names

CALL = """
import sys
from ferrule.cli.main import run

code = run(["call", "Read", '{"path": "a.txt"}', "--workspace", sys.argv[1]])
elsewhere = ("ferrule.sources", "ferrule.tools.skills", "mcp.", "lupa.")
print(code, [name for name in sys.modules if name.startswith(elsewhere)])
"""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_CONFIG_HOME", "AMP_TOOLBOX", "FERRULE_TOOLBOX"):
        monkeypatch.delenv(name, raising=False)
    return World(tmp_path)


def test_a_call_of_a_built_in_tool_loads_nothing_of_tools_from_elsewhere(world: World) -> None:
    (world.workspace / "a.txt").write_text("text\n")
    world.box(world.user / "toolbox", "boxed")
    world.skill(world.user / "skills", "greeting")
    (world.user / "settings.toml").write_text('[mcp.servers.one]\ncommand = "absent"\n')
    ran = subprocess.run(
        [sys.executable, "-c", CALL, str(world.workspace)],
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.stdout.splitlines()[-1:], ran.stderr) == (["0 []"], "")


async def test_what_is_around_a_session_is_there_only_while_it_is_open(world: World) -> None:
    engine = Engine(world.workspace, settings=Settings(), state=world.state)
    for use in (lambda: engine.sources, lambda: engine.warnings, lambda: engine.beginning, engine.section):
        with pytest.raises(ConfigError, match="not open"):
            use()
    with pytest.raises(ConfigError, match="not open"):
        await engine.connect()
    async with engine:
        assert engine.sources.states() == []
        assert engine.beginning == ()
    with pytest.raises(ConfigError, match="not open"):
        await engine.connect()
    await engine.close()


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in {b"Z", b"X"}
    except OSError:
        return False


async def test_closing_while_a_call_waits_for_its_tool_runs_none_of_the_message(world: World) -> None:
    slow = world.box(world.user / "toolbox", "slow")
    slow.write_text(
        f"#!/bin/sh\necho $$ > {world.folder}/pid; mv {world.folder}/pid {world.folder}/began\nexec sleep 600\n"
    )
    async with world.session(lazy=True) as engine:
        calls = [Call("tb__slow", {}), Call("Bash", {"cmd": "touch touched"})]
        running = asyncio.create_task(engine.run(calls))
        await world.until((world.folder / "began").exists)
    assert not lives(int((world.folder / "began").read_text()))
    with pytest.raises(ConfigError, match="closed while the calls waited"):
        await running
    assert not (world.workspace / "touched").exists()


async def test_servers_end_where_the_session_cannot_begin(world: World) -> None:
    broken = Hook(event="SessionStart", command="exit 0", matcher="(")
    with pytest.raises(ConfigError):
        async with world.session(hooks=[broken], servers={"one": world.server("one")}):
            raise AssertionError("it began")
    assert world.starts("one") == 0


async def test_hooks_are_told_of_tools_from_elsewhere_under_their_names(world: World) -> None:
    world.box(world.user / "toolbox", "boxed")
    told: list[str] = []

    def heard(event: object) -> None:
        told.append(str(event))

    hooks = [Hook(event="PreToolUse", function=heard, matcher="tb__.*|mcp__one__say")]
    servers = {"one": world.server("one", permission="allow")}
    async with world.session(hooks=hooks, servers=servers) as engine:
        for name in ("tb__boxed", "mcp__one__say", "glob"):
            await engine.call(name, **({"filePattern": "*"} if name == "glob" else {}))
    assert len(told) == 2
    assert "tb__boxed" in told[0]
    assert "mcp__one__say" in told[1]


async def test_tools_that_come_with_the_session_s_start_are_no_news_later(world: World) -> None:
    world.tool(world.user / "tools", "mine")
    async with world.session(servers={"one": world.server("one")}) as engine:
        names(engine)
        world.events.clear()
        names(engine)
        assert not [event for event in world.events if isinstance(event, ToolsChanged)]
        await engine.connect()
        assert len([event for event in world.events if isinstance(event, ToolsChanged)]) == 1


async def test_a_subagent_of_a_toolbox_is_there_where_the_program_can_run_one(world: World) -> None:
    box = world.user / "toolbox"
    box.mkdir()
    (box / "helper.md").write_text("---\ntype: subagent\ndescription: Helps.\n---\nYou help.\n")
    async with world.session() as engine:
        assert "tb__helper" not in names(engine)
    async with world.session(subagents=Subagents()) as engine:
        assert "tb__helper" in names(engine)


async def test_warnings_of_every_kind_come_together_and_once(world: World) -> None:
    (world.user / "tools").mkdir()
    (world.user / "tools" / "broken.py").write_text("TOOL = 1 / 0\n")
    world.project_servers(theirs=world.entry("theirs"))
    servers = {"one": McpServer(command=str(world.folder / "absent"))}
    rules = Permissions(allow=("Bash(",))
    async with world.session(servers=servers, answer=False, permissions=rules) as engine:
        await engine.connect()
        await engine.connect()
        warnings = engine.warnings
    for part in ("broken.py", "theirs", "absent", "Bash("):
        assert [warning for warning in warnings if part in warning], (part, warnings)
    assert len(warnings) == len(set(warnings))


async def test_packages_are_looked_through_only_where_they_may_bring_tools(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = world.folder / "installed" / "wordy-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: wordy\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[ferrule.tools]\nwords = absent_module:tool\n")
    monkeypatch.syspath_prepend(str(about.parent))
    async with world.session() as engine:
        assert engine.warnings == ()
    async with world.session(tools={"packages": True}) as engine:
        (warning,) = engine.warnings
        assert "wordy:words" in warning
    assert Tools().packages
