"""What a model is shown while it plans: what reads, what writes the plan, and the way out, in every dialect."""

from itertools import pairwise
from typing import Any

import pytest

from ferrule.core.services import Planning
from ferrule.dialects import FAMILIES
from ferrule.engine import Engine
from ferrule.models.cues import calls, said
from ferrule.permissions import ModeConfig
from ferrule.wire import ModelRequest
from tests.catalog import LOOKS

from .stage import Stage

PLAN = "# Plan\n\n1. Look.\n2. Mend.\n"
WRITERS = {"codex": "patch"}


def prefix(asked: ModelRequest) -> tuple[Any, ...]:
    """What stands before the conversation, and so before all that a prompt cache can keep."""
    return (asked.definitions, *(turn for turn in asked.turns if turn.role == "system"))


@pytest.mark.parametrize("dialect", FAMILIES)
async def test_a_planning_session_shows_what_reads_one_that_writes_the_plan_and_the_way_out(tmp_path, dialect):
    async with Engine(tmp_path, dialect=dialect, permission_mode="plan") as engine:
        tools = [face.tool for face in engine.faces()]
        before = {face.tool for face in engine._available_faces()}
        writer = WRITERS.get(dialect, "write")
        assert [tool for tool in tools if tool not in LOOKS] == [writer]
        assert tools.count("exit_plan") == 1
        assert "enter_plan" not in tools
        assert set(tools) - {"exit_plan"} <= before
        above = engine.section(listed=False)
        engine.change_mode("default")
        assert engine.section(listed=False) == above  # it is about all tools, planning or not
        assert {face.tool for face in engine.faces()} >= before - {"exit_plan"}


@pytest.mark.parametrize("dialect", FAMILIES)
async def test_the_way_out_takes_the_plan_itself(tmp_path, dialect):
    async with Stage(tmp_path, dialect=dialect) as stage:
        planning = stage.session.engine.need(Planning)
        planning.enter(by="model")
        name = next(face.name for face in stage.session.engine.faces() if face.tool == "exit_plan")
        path = planning.plan_path
        reply = await stage.session.engine.call(name, plan=PLAN)
        assert (reply.status, planning.is_on) == ("done", False), reply.text
        assert stage.read(path) == PLAN
        assert PLAN not in reply.text  # the model has just written it


async def test_a_plan_that_is_given_takes_the_place_of_the_file_s(tmp_path):
    async with Stage(tmp_path) as stage:
        planning = stage.session.engine.need(Planning)
        path = planning.enter(by="model").path
        await stage.session.engine.call("Write", file_path=path, content="# An older one\n")
        reply = await stage.session.engine.call("ExitPlanMode", plan="# Plan")
        assert (reply.status, stage.read(path)) == ("done", "# Plan\n")


@pytest.mark.parametrize(
    ("plan", "code"), [("x" * 50_001, "plan-too-long"), ("", "no-plan"), (" \n", "no-plan"), (None, "no-plan")]
)
async def test_a_plan_that_nobody_could_approve_is_refused_and_planning_goes_on(tmp_path, plan, code):
    async with Stage(tmp_path) as stage:
        planning = stage.session.engine.need(Planning)
        planning.enter(by="model")
        given = {} if plan is None else {"plan": plan}
        reply = await stage.session.engine.call("ExitPlanMode", **given)
        assert reply.error is not None
        assert (reply.error.error_code, planning.is_on) == (code, True)
        assert not (tmp_path / ".ferrule" / "plans").exists()


@pytest.mark.parametrize("dialect", FAMILIES)
async def test_each_change_of_the_mode_costs_one_miss_of_the_prompt_cache(tmp_path, dialect):
    way_out = {"gemini": "exit_plan_mode"}.get(dialect, "ExitPlanMode")
    cues = (said("One."), said("I look."), calls((way_out, {"plan": PLAN}, "leave")), said("Done."), said("All."))
    async with Stage(tmp_path, *cues, dialect=dialect) as stage:
        await stage.run()
        stage.session.engine.need(Planning).enter(by="model")
        for _ in range(3):
            await stage.run()
        assert [reply.status for reply in stage.replies] == ["done"]
        prefixes = [prefix(asked) for asked in stage.model.asked]
        turned = [at for at, (one, other) in enumerate(pairwise(prefixes)) if one != other]
        assert len(turned) == 2  # when planning began, and when it ended
        if dialect != "wayland":  # whose way out had to be found first, and is shown from then on
            assert prefixes[0] == prefixes[-1]  # what was kept before it is of use again


async def test_a_subagent_of_a_planning_session_is_shown_no_way_to_write(tmp_path):
    async with Engine(tmp_path, dialect="claude", permission_mode="plan") as engine:
        branch = engine.branch("child", ModeConfig())
        assert {face.tool for face in branch.faces()} <= LOOKS
        assert "exit_plan" not in {face.tool for face in branch.faces()}
        await branch.close()
