"""Programs of the workspace that the user's own settings name: they run only with the bytes that the user approved."""

import shutil
import sys
from pathlib import Path

from tests.gathering.world import SERVING, World

from ferrule.permissions import Question
from ferrule.settings import McpServer


def server(world: World) -> tuple[McpServer, Path]:
    """A server of the user's own settings, by a path from wherever it is used."""
    _, *words = world.offer("served")
    script = world.workspace / "server.py"
    shutil.copy(SERVING, script)
    return McpServer(command=sys.executable, args=("-ISXutf8", "./server.py", words[-1]), cwd="."), script


async def test_a_server_by_a_relative_path_is_approved_for_each_content_of_its_script(world: World) -> None:
    entry, script = server(world)

    def no(question: Question) -> bool:
        return question.kind != "server"

    async with world.session(servers={"served": entry}, answer=no) as engine:
        assert not (await engine.call("mcp__served__say", word="a")).ok
    assert world.starts("served") == 0

    async with world.session(servers={"served": entry}) as engine:
        reply = await engine.call("mcp__served__say", word="a")
        assert reply.ok, (reply.error, engine.warnings)
    assert world.starts("served") == 1
    asked = [question for question in world.questions if question.kind == "server"]
    assert any("server.py" in line for question in asked for line in question.effects)

    world.questions.clear()
    async with world.session(servers={"served": entry}) as engine:
        reply = await engine.call("mcp__served__say", word="a")
        assert reply.ok, (reply.error, engine.warnings)
    assert [question.kind for question in world.questions if question.kind == "server"] == []

    script.write_text(script.read_text() + "# somebody was here\n")
    async with world.session(servers={"served": entry}, answer=no) as engine:
        assert not (await engine.call("mcp__served__say", word="a")).ok
    assert world.starts("served") == 2


async def test_a_server_that_only_works_on_files_of_the_workspace_needs_no_approval(world: World) -> None:
    (world.workspace / "data.json").write_text("{}")
    command, *args = world.offer("served")
    entry = McpServer(command=command, args=(*args, "data.json"))
    async with world.session(servers={"served": entry}) as engine:
        reply = await engine.call("mcp__served__say", word="a")
        assert reply.ok, (reply.error, engine.warnings)

    assert [question.kind for question in world.questions if question.kind == "server"] == []
