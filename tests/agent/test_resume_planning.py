"""A conversation that was left in plan mode goes on in plan mode, until somebody ends it."""

from pathlib import Path
from typing import Any

import pytest

from ferrule.agent import Warned
from ferrule.core.services import Planning
from ferrule.models.cues import calls, said
from ferrule.permissions import Answer, Question
from ferrule.settings import PlanMode, Settings

from .stage import Stage

ENTER = calls(("EnterPlanMode", {}, "enter"))
WRITE = calls(("Write", {"file_path": "${workspace}/b.txt", "content": "x"}, "write"))
PLANNED = calls(("Write", {"file_path": "${result:enter:(/[^ ]+\\.md)}", "content": "# Plan\n"}, "planned"))
LEAVE = calls(("ExitPlanMode", {}, "leave"))


def planning(stage: Stage) -> Planning:
    return stage.session.engine.need(Planning)


async def left(folder: Path, *cues: Any, **session: Any) -> tuple[str, str]:
    """A conversation that was had and left: its id, and the file of its plan."""
    async with Stage(folder, *cues, **session) as stage:
        await stage.run()
        return stage.agent.thread, planning(stage).plan_path


async def test_it_plans_on_with_the_same_plan(tmp_path):
    thread, _ = await left(tmp_path, ENTER, PLANNED, said("I plan."))
    (plan,) = (tmp_path / ".ferrule" / "plans").iterdir()
    async with Stage(tmp_path, WRITE, said("No."), resume=thread) as stage:
        assert planning(stage).is_on
        assert (planning(stage).plan_path, planning(stage).begun_by) == (str(plan), "model")
        assert any("as it was when this conversation was left" in one.sentence for one in stage.of(Warned))
        await stage.run()
        assert [reply.status for reply in stage.replies] == ["rejected-by-user"]
    assert not (tmp_path / "b.txt").exists()

    async with Stage(tmp_path, LEAVE, WRITE, said("Done."), resume=thread) as stage:
        await stage.run()
        assert [reply.status for reply in stage.replies] == ["done", "done"]
    async with Stage(tmp_path, resume=thread) as stage:
        assert not planning(stage).is_on


async def test_what_the_user_began_is_still_the_user_s_to_end(tmp_path):
    async with Stage(tmp_path, said("One."), said("Two.")) as stage:
        planning(stage).enter()
        await stage.run()
        thread = stage.agent.thread
    async with Stage(tmp_path, LEAVE, said("No."), resume=thread) as stage:
        Path(planning(stage).plan_path).parent.mkdir(parents=True)
        Path(planning(stage).plan_path).write_text("# Plan\n")
        await stage.run()  # whoever says yes to everything approves no plan that the user wanted to see
        assert planning(stage).is_on
        assert planning(stage).begun_by == "user"


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "bypassPermissions"])
async def test_another_mode_that_the_user_names_ends_it_for_good(tmp_path, mode):
    thread, _ = await left(tmp_path, ENTER, said("I plan."))
    async with Stage(tmp_path, resume=thread, permission_mode=mode) as stage:
        assert not planning(stage).is_on  # though nobody says a word
    async with Stage(tmp_path, WRITE, said("Done."), resume=thread) as stage:
        assert not planning(stage).is_on
        await stage.run()
    assert (tmp_path / "b.txt").exists()


async def test_the_option_keeps_the_plan_that_there_is(tmp_path):
    thread, was = await left(tmp_path, ENTER, said("I plan."))
    async with Stage(tmp_path, resume=thread, permission_mode="plan") as stage:
        assert planning(stage).plan_path == was
        assert not stage.of(Warned)


async def test_an_option_holds_for_its_own_session_only(tmp_path):
    thread, _ = await left(tmp_path, said("I plan."), permission_mode="plan")
    async with Stage(tmp_path, resume=thread) as stage:
        assert not planning(stage).is_on


async def test_ending_it_between_two_messages_is_kept(tmp_path):
    async with Stage(tmp_path, ENTER, said("I plan.")) as stage:
        await stage.run()
        planning(stage).leave()
        thread = stage.agent.thread
    async with Stage(tmp_path, resume=thread) as stage:
        assert not planning(stage).is_on
        planning(stage).enter()
    async with Stage(tmp_path, resume=thread) as stage:
        assert planning(stage).is_on


async def test_planning_alone_makes_no_conversation(tmp_path):
    async with Stage(tmp_path) as stage:
        planning(stage).enter()
        planning(stage).leave()
        store, thread = stage.session._threads(), stage.agent.thread
    assert store.about(thread) is None


async def test_a_plan_of_a_folder_that_is_none_any_more_is_looked_for_in_the_new_one(tmp_path):
    thread, was = await left(tmp_path, ENTER, said("I plan."))
    async with Stage(tmp_path, resume=thread, settings=Settings(plan=PlanMode(folder="docs/plans"))) as stage:
        assert planning(stage).is_on
        assert Path(planning(stage).plan_path) == tmp_path / "docs" / "plans" / Path(was).name


class No:
    async def ask(self, _: Question) -> Answer:
        return Answer(allow=False)


async def test_a_no_is_no_end(tmp_path):
    thread, _ = await left(tmp_path, ENTER, PLANNED, LEAVE, said("It waits."), ask=No())
    async with Stage(tmp_path, resume=thread) as stage:
        assert planning(stage).is_on
