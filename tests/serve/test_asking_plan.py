"""A plan is approved through MCP: the client's user sees it whole, and with it every rule that a yes brings."""

from pathlib import Path
from typing import Any

import pytest

from tests.serve.connected import ERAS, User, connected
from tests.tools.plan.planned import planning

PLAN = "# Plan\n" + "".join(f"{number}. Do it.\n" for number in range(40)) + "The last \x1b[2J line.\n"


def decided(decision: str, message: str = "") -> dict[str, Any]:
    return {"decision": decision, **({"message": message} if message else {})}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("answer", "mode"),
    [
        pytest.param(decided("approve"), "default", id="approved"),
        pytest.param(decided("approve, and edits need no question"), "acceptEdits", id="with-edits"),
        pytest.param(decided("keep planning", "tests first"), "", id="refused"),
        pytest.param(decided("allow once"), "", id="an-answer-to-another-question"),
        pytest.param({}, "", id="nothing"),
    ],
)
async def test_a_plan_is_shown_whole_and_only_a_plain_yes_ends_planning(tmp_path, era, answer, mode):
    user = User(answer)
    async with connected(tmp_path, era, ask=user, dialect="claude") as (engine, _, client):
        path = planning(engine).enter(by="model").path
        Path(path).parent.mkdir(parents=True)
        Path(path).write_text(PLAN)
        wishes = [{"tool": "Bash", "prompt": "mkdir made"}, {"tool": "Bash", "prompt": "deploy"}]
        done = await client.call_tool("ExitPlanMode", {"allowedPrompts": wishes})

        assert planning(engine).is_on is not bool(mode)
        assert done.is_error is not bool(mode), done
        if mode:
            assert engine.policy.standing.name == mode
    (asked,) = user.asked
    assert "\n39. Do it.\n" in asked.message
    assert "The last \\x1b[2J line." in asked.message
    assert "allows Bash(mkdir made) in this session" in asked.message
    assert "asks when it comes: deploy" in asked.message
    assert asked.requested_schema["properties"]["decision"]["default"] == "keep planning"
    if "message" in answer:
        assert "says: tests first" in done.content[0].text


async def test_a_plan_that_changes_between_the_rounds_is_asked_about_again(tmp_path):
    def change() -> dict[str, Any]:
        path.write_text("# Another\n")
        return decided("approve")

    user = User(change, decided("keep planning"))
    async with connected(tmp_path, "2026-07-28", ask=user, dialect="claude") as (engine, _, client):
        path = Path(planning(engine).enter(by="model").path)
        path.parent.mkdir(parents=True)
        path.write_text(PLAN)
        await client.call_tool("ExitPlanMode", {})

        assert planning(engine).is_on
    assert [("# Another" in asked.message) for asked in user.asked] == [False, True]


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_cannot_be_asked_keeps_planning(tmp_path, era):
    async with connected(tmp_path, era, dialect="claude") as (engine, _, client):
        path = Path(planning(engine).enter(by="model").path)
        path.parent.mkdir(parents=True)
        path.write_text(PLAN)
        done = await client.call_tool("ExitPlanMode", {})

        assert planning(engine).is_on
    assert done.is_error
    assert "Nobody can be asked, because this MCP client cannot be asked." in done.content[0].text
