"""The plan of a session, through the whole flow."""

import pytest

from ferrule import Call, Engine, Event
from ferrule.core.call import Progress
from ferrule.core.content import Planned, Step
from ferrule.tools.plan import MOST_CHARS, MOST_STEPS, Steps


@pytest.fixture
async def session(tmp_path):
    async with Engine(tmp_path, dialect="codex") as engine:
        yield engine


def step(text: str, status: str = "pending") -> dict[str, str]:
    return {"step": text, "status": status}


@pytest.mark.parametrize(
    ("plan", "notes"),
    [
        pytest.param([], (), id="nothing"),
        pytest.param([step("a")], (), id="one"),
        pytest.param([step("a", "completed"), step("b", "in_progress"), step("c")], (), id="three"),
        pytest.param([step("x" * MOST_CHARS)] * MOST_STEPS, (), id="the-most"),
        pytest.param(
            [step("a", "in_progress"), step("b", "in_progress")],
            ("2 steps are in progress; a plan is easier to follow with one at a time.",),
            id="two-at-a-time",
        ),
    ],
)
async def test_a_plan_is_taken_without_a_question(session, plan, notes):
    reply = await session.call("update_plan", plan=plan)

    assert (reply.status, reply.result, reply.notes) == ("done", "Plan updated", notes)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        pytest.param([step("")], "plan[0]: the step is empty.", id="empty"),
        pytest.param([step("a"), step(" \n")], "plan[1]: the step is empty.", id="blank"),
        pytest.param(
            [step(""), step("x" * (MOST_CHARS + 1))],
            "plan[0]: the step is empty.\n"
            f"plan[1]: the step has {MOST_CHARS + 1} characters; {MOST_CHARS} is the most.",
            id="one-line-each",
        ),
        pytest.param(
            [step("a")] * (MOST_STEPS + 1), f"plan: has {MOST_STEPS + 1} steps; {MOST_STEPS} is the most.", id="many"
        ),
        pytest.param(
            [step("a", "blocked")],
            'plan[0].status: must be one of "pending", "in_progress", "completed", not "blocked".',
            id="status",
        ),
        pytest.param([{"step": "a"}], "plan[0].status: required, but missing.", id="no-status"),
        pytest.param(None, "plan: required, but missing.", id="no-plan"),
    ],
)
async def test_what_is_no_plan_is_refused(session, plan, message):
    reply = await session.call("update_plan", **({} if plan is None else {"plan": plan}))

    assert (reply.status, reply.error.error_code, reply.error.message) == ("error", "bad-arguments", message)


async def test_how_far_it_is_is_told_to_whoever_listens(tmp_path):
    seen: list[Event] = []
    async with Engine(tmp_path, dialect="codex", on_event=seen.append) as engine:
        await engine.call("update_plan", plan=[step("a", "completed"), step("b")])

    assert [event.message for event in seen if isinstance(event, Progress)] == ["1 of 2 steps are done"]


async def test_other_families_keep_the_same_plan_in_their_own_words(session):
    replies = await session.run(
        [
            Call("TodoWrite", {"todos": [{"content": "a", "status": "pending", "activeForm": "A"}]}),
            Call("todowrite", {"todos": [{"content": "a", "status": "cancelled", "priority": "high"}]}),
            Call("write_todos", {"todos": [{"description": "a", "status": "blocked"}]}),
        ]
    )

    assert [(reply.status, reply.result) for reply in replies] == [("done", "Plan updated")] * 3
    assert [note for reply in replies for note in reply.notes if "understood" not in note] == []


def test_a_plan_replaces_the_one_before():
    steps = Steps()

    assert steps.plan == Planned(())

    new = Planned((Step("a", "pending"),), "because")

    assert steps.replace(new) == new == steps.plan
