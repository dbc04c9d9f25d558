"""Plan mode works while a task runs, as whichever user: the plan is written, and nothing is set aside."""

import re

import pytest

from tests.ordinary.session import HIDES, session


@pytest.mark.parametrize("way", HIDES)
def test_a_plan_is_written_while_a_task_runs(person, needs, way):
    needs(person, way)
    work = person.folder("work")
    person.give(work)
    with session(person, work, way, yes=("call", "plan")) as opened:
        begun = opened.bash("sleep 300", run_in_background=True)
        entered = opened.call("EnterPlanMode")
        path = re.search(r"\S*\.ferrule/plans/\S+\.md", entered.text)
        assert path, entered
        written = opened.call("Write", file_path=path[0], content="# Plan\n\n1. Look.\n")
        left = opened.call("ExitPlanMode")
        again = opened.bash("ls -A .ferrule/plans")

    assert [one.status for one in (begun, entered, written, left)] == ["done"] * 4, (written, left)
    assert again.output.strip().endswith(".md"), again
    assert not any("set aside" in note for one in (written, left, again) for note in one.notes)
