"""Plan mode in a whole session: looking around, writing the plan, and the user's yes or no."""

import os
from pathlib import Path
from typing import Any

import pytest

from ferrule import Call, Engine, ModeConfig, Question, tool
from ferrule.core.errors import ConfigError
from ferrule.core.services import Planning
from ferrule.hooks import Hook
from ferrule.permissions import Answer, Everybody
from ferrule.settings import Permissions, PlanMode, Settings
from tests.tools.plan.planned import NAMES, enter_by_tool, leave_by_tool, planning

FAMILIES = tuple(NAMES)
PLAN = "# Plan\n\n1. Write b.txt.\n"


class User:
    """Answers in turn, and remembers what was asked."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.asked: list[Question] = []

    def __call__(self, question: Question) -> Any:
        self.asked.append(question)
        answer = self._answers.pop(0)
        return answer(question) if callable(answer) else answer


def engine(folder: Path, dialect: str = "claude", ask: Any = None, **more: Any) -> Engine:
    return Engine(folder, dialect=dialect, ask=ask, **more)


async def written(one: Engine, text: str = PLAN) -> str:
    """Plan mode, with a plan in it."""
    path = planning(one).enter(by="model").path
    reply = await one.call("write", path=path, content=text)
    assert reply.ok, reply
    return path


@pytest.mark.parametrize("family", FAMILIES)
async def test_from_entering_to_the_user_s_yes(tmp_path, family):
    user = User(True, True)
    async with engine(tmp_path, family, user) as one:
        mode = planning(one)
        entered = await enter_by_tool(one)
        assert entered.text.startswith("Entered plan mode")
        assert mode.plan_path in entered.text
        assert any("only reading works" in note for note in entered.notes)
        assert (await enter_by_tool(one)).text.startswith("Already in plan mode")
        refused = await one.call("write", path="b.txt", content="x")
        assert (refused.status, (tmp_path / "b.txt").exists()) == ("rejected-by-user", False)
        assert "Plan mode is on" in refused.text
        missing = await leave_by_tool(one)
        assert missing.error is not None
        assert missing.error.error_code == "no-plan"
        assert (await one.call("write", path=mode.plan_path, content=PLAN)).ok
        approved = await leave_by_tool(one)
        assert approved.ok, approved
        assert "approved" in approved.text
        assert not mode.is_on
        assert (await one.call("write", path="b.txt", content="x")).ok
        over = await leave_by_tool(one)
        assert over.text.startswith("Not in plan mode")

    plan, write = user.asked
    assert (plan.kind, plan.input["plan"], plan.tool) == ("plan", PLAN, "exit_plan")
    assert write.kind == "call"


async def test_wayland_finds_the_tools_by_searching(tmp_path):
    async with engine(tmp_path, "wayland") as one:
        shown = {face.name for face in one.faces()}
        found = await one.call("ToolSearch", query="plan")

    assert "ToolSearch" in shown
    assert not shown & {"EnterPlanMode", "ExitPlanMode"}
    assert '"EnterPlanMode"' in found.text
    assert '"ExitPlanMode"' in found.text


async def test_a_no_keeps_planning_and_the_model_hears_why(tmp_path):
    user = User(Answer(allow=False, message="The user wants tests first."), True)
    async with engine(tmp_path, ask=user) as one:
        path = await written(one)
        refused = await leave_by_tool(one)
        assert refused.status == "rejected-by-user"
        assert refused.text.startswith("The user wants tests first. Plan mode stays on")
        assert planning(one).plan_path == path
        assert (await one.call("write", path="b.txt", content="x")).status == "rejected-by-user"
        assert (await leave_by_tool(one)).ok


async def test_a_user_who_ends_planning_instead_of_answering_is_believed(tmp_path):
    def ends(question: Question) -> bool:
        planning(one).leave()
        return False

    async with engine(tmp_path, ask=User(ends)) as one:
        await written(one)
        refused = await leave_by_tool(one)

    assert refused.text.endswith("The user has ended plan mode meanwhile.")


async def test_nobody_to_ask_keeps_planning(tmp_path):
    async with engine(tmp_path) as one:
        await written(one)
        refused = await leave_by_tool(one)

        assert refused.status == "rejected-by-user"
        assert "Nobody is here to approve the plan" in refused.text
        assert planning(one).is_on


@pytest.mark.parametrize(("by", "is_on"), [("model", False), ("user", True)])
async def test_a_yes_to_everything_ends_what_the_model_began(tmp_path, by, is_on):
    async with engine(tmp_path, ask=Everybody()) as one:
        path = planning(one).enter(by=by).path
        await one.call("write", path=path, content=PLAN)
        await leave_by_tool(one)

        assert planning(one).is_on is is_on


async def test_what_was_shown_is_what_is_approved(tmp_path):
    def changes(question: Question) -> bool:
        Path(planning(one).plan_path).write_text("something else\n")
        return True

    user = User(changes, True)
    async with engine(tmp_path, ask=user) as one:
        await written(one)
        refused = await leave_by_tool(one)
        assert refused.error is not None
        assert refused.error.error_code == "plan-changed"
        assert planning(one).is_on
        assert "something else" in (await leave_by_tool(one)).text


@pytest.mark.parametrize("family", FAMILIES)
async def test_a_plan_that_the_user_edits_is_written_approved_and_told(tmp_path, family):
    async with engine(tmp_path, family, User(Answer(allow=True, input={"plan": "# Less\n\n1. Nothing."}))) as one:
        path = await written(one)
        reply = await leave_by_tool(one)
        undone = await one.undo(path)

        assert (reply.ok, one.policy.is_planning) == (True, False)
        assert "The user has edited the plan before they approved it" in reply.text
        assert reply.text.endswith("# Less\n\n1. Nothing.")
        assert undone.entry.call_id == reply.id
        assert Path(path).read_text() == PLAN


@pytest.mark.parametrize(
    ("given", "code"),
    [
        pytest.param({"plan": " "}, "plan-not-approved", id="empty"),
        pytest.param({"plan": "x" * 50_001}, "plan-not-approved", id="too-long"),
        pytest.param({"plan": 3}, "plan-not-approved", id="no-text"),
        pytest.param({}, "plan-not-approved", id="no-plan"),
    ],
)
async def test_what_can_be_no_plan_is_not_approved(tmp_path, given, code):
    async with engine(tmp_path, ask=User(Answer(allow=True, input=given))) as one:
        path = await written(one)
        reply = await leave_by_tool(one)

        assert reply.error is not None
        assert (reply.error.error_code, one.policy.is_planning, Path(path).read_text()) == (code, True, PLAN)


@pytest.mark.parametrize(
    ("began", "answer", "now"),
    [
        pytest.param("default", Answer(allow=True), "default", id="yes"),
        pytest.param("default", Answer(allow=True, values={"mode": "acceptEdits"}), "acceptEdits", id="with-edits"),
        pytest.param("default", Answer(allow=True, values={"mode": "bypassPermissions"}), "default", id="never-more"),
        pytest.param("default", Answer(allow=True, values={"mode": "plan"}), "default", id="nothing-else"),
        pytest.param("acceptEdits", Answer(allow=True), "acceptEdits", id="the-earlier-one"),
        pytest.param("dontAsk", Answer(allow=True, values={"mode": "acceptEdits"}), "dontAsk", id="the-stricter-one"),
        pytest.param("bypassPermissions", Answer(allow=True), "bypassPermissions", id="bypass-comes-back"),
        pytest.param("plan", Answer(allow=True), "default", id="began-in-plan-mode"),
        pytest.param("plan", Answer(allow=True, values={"mode": "acceptEdits"}), "acceptEdits", id="then-with-edits"),
    ],
)
async def test_the_mode_after_a_yes(tmp_path, began, answer, now):
    async with engine(tmp_path, ask=User(answer), permission_mode=began) as one:
        planning(one)
        await written(one)
        assert (await leave_by_tool(one)).ok

        assert one.policy.standing.name == now
        assert not one.policy.is_planning


@pytest.mark.usefixtures("asking")
async def test_wishes_become_rules_of_the_session_that_the_user_has_seen(tmp_path):
    (tmp_path / "Makefile").write_text("test:\n\ttrue\n")
    wishes = [{"tool": "Bash", "prompt": one} for one in ("run tests", "mkdir made", "deploy it", "git push")]
    user = User(True)
    async with engine(tmp_path, ask=user, state=tmp_path / "state") as one:
        await written(one)
        reply = await leave_by_tool(one, allowedPrompts=wishes, pushToRemote=True)
        verdicts = [
            (await one.decide(Call("Bash", {"command": command}))).verdict
            for command in ("mkdir made", "mkdir other", "git push", "deploy it")
        ]
        made = await one.decide(Call("Bash", {"command": "mkdir made"}))

    (question,) = user.asked
    assert question.proposals == ("Bash(make test)", "Bash(mkdir made)")
    assert question.effects == (
        "allows Bash(make test) in this session",
        "allows Bash(mkdir made) in this session",
        "asks when it comes: deploy it",
        "asks when it comes: git push",
    )
    assert "Allowed in this session: Bash(make test), Bash(mkdir made)." in reply.text
    assert "Asked about when it comes: deploy it; git push." in reply.text
    assert any("sent nowhere" in note for note in reply.notes)
    assert verdicts == ["allow", "ask", "ask", "ask"]
    assert made.rule == "Bash(mkdir made)"
    assert not (tmp_path / "state" / "grants").exists()


async def test_a_granted_wish_does_not_beat_a_rule_that_denies(tmp_path):
    settings = Settings(permissions=Permissions(deny=("Bash(mkdir:*)",)))
    async with engine(tmp_path, ask=User(True), settings=settings) as one:
        await written(one)
        await leave_by_tool(one, allowedPrompts=[{"tool": "Bash", "prompt": "mkdir made"}])

        assert (await one.decide(Call("Bash", {"command": "mkdir made"}))).verdict == "deny"


async def test_rules_that_allow_everything_do_not_beat_plan_mode(tmp_path):
    settings = Settings(permissions=Permissions(allow=("Bash", "Edit", "Write", "mcp__s")))
    async with engine(tmp_path, settings=settings, permission_mode="bypassPermissions") as one:
        planning(one).enter()
        calls = [
            Call("Bash", {"command": "touch x"}),
            Call("Write", {"file_path": "x", "content": ""}),
            Call("mcp__s__read", {}),
        ]

        assert [(await one.decide(call)).verdict for call in calls] == ["deny"] * 3


async def test_a_tool_of_the_user_s_own_does_not_run_whatever_it_says_of_itself(tmp_path):
    ran = []

    @tool(touches=())
    def peek() -> str:
        """Look."""
        ran.append(1)
        return "seen"

    async with engine(tmp_path, tools=[peek]) as one:
        assert (await one.call("peek")).ok
        planning(one).enter()
        assert (await one.call("peek")).status == "rejected-by-user"

    assert ran == [1]


async def test_a_call_after_it_in_the_same_message_is_held(tmp_path):
    async with engine(tmp_path, permission_mode="bypassPermissions") as one:
        planning(one)
        calls = [
            Call("Write", {"file_path": str(tmp_path / "before.txt"), "content": "x"}),
            Call("EnterPlanMode", {}),
            Call("Write", {"file_path": str(tmp_path / "after.txt"), "content": "x"}),
            Call("Bash", {"command": "touch by-shell"}),
        ]
        replies = await one.run(calls)

    assert [reply.status for reply in replies] == ["done", "done", "rejected-by-user", "rejected-by-user"]
    assert sorted(os.listdir(tmp_path)) == ["before.txt"]


async def test_the_plan_is_written_before_it_is_shown(tmp_path):
    user = User(True)
    async with engine(tmp_path, ask=user) as one:
        path = planning(one).enter(by="model").path
        write, leave = await one.run([Call("Write", {"file_path": path, "content": PLAN}), Call("ExitPlanMode", {})])

    assert write.ok
    assert leave.ok, leave
    assert user.asked[0].input["plan"] == PLAN


@pytest.mark.parametrize(
    ("sight", "changed", "is_lost"),
    [
        pytest.param("written", None, True, id="as-the-model-left-it"),
        pytest.param("written", "the user's own words\n", False, id="changed-by-the-user"),
        pytest.param("unseen", "the user's own words\n", False, id="never-seen"),
        pytest.param("read", "the user's own words\n", True, id="read-again"),
        pytest.param("unseen", PLAN, True, id="the-same-text"),
    ],
)
async def test_a_plan_given_to_the_call_replaces_only_what_the_model_has_seen(tmp_path, sight, changed, is_lost):
    user = User(True)
    given = PLAN if changed == PLAN else f"{PLAN}2. Write c.txt.\n"
    async with engine(tmp_path, ask=user) as one:
        path = Path(planning(one).enter(by="model").path if sight == "unseen" else await written(one))
        if changed is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(changed)
        if sight == "read":
            assert (await one.call("Read", file_path=str(path))).ok
        reply = await leave_by_tool(one, plan=given)
        is_on = planning(one).is_on

    assert path.read_text() == (given if is_lost else changed)
    assert (reply.ok, is_on, len(user.asked)) == (is_lost, not is_lost, int(is_lost))
    if reply.error is not None:
        assert reply.error.error_code == "plan-changed"
        assert "Read it" in reply.text


async def test_two_ways_out_ask_once(tmp_path):
    user = User(True)
    async with engine(tmp_path, ask=user) as one:
        await written(one)
        first, second = await one.run([Call("ExitPlanMode", {}), Call("ExitPlanMode", {})])

    assert (first.ok, second.ok) == (True, False)
    assert len(user.asked) == 1


@pytest.mark.parametrize("kind", ["file", "folder"])
async def test_a_link_in_the_plan_s_place_is_not_followed(tmp_path, kind):
    target = tmp_path / "src"
    target.mkdir()
    (target / "victim.py").write_text("before\n")
    async with engine(tmp_path, permission_mode="bypassPermissions") as one:
        path = Path(planning(one).enter().path)
        if kind == "file":
            path.parent.mkdir(parents=True)
            path.symlink_to(target / "victim.py")
        else:
            path.parent.parent.mkdir()
            path.parent.symlink_to(target)
            (target / path.name).write_text("before\n")
        reply = await one.call("write", path=str(path), content="after\n")

    assert not reply.ok
    assert {one.read_text() for one in target.iterdir()} == {"before\n"}


async def test_a_link_to_the_plan_is_not_the_plan(tmp_path):
    async with engine(tmp_path, permission_mode="bypassPermissions") as one:
        path = await written(one)
        (tmp_path / "link.md").symlink_to(path)
        reply = await one.call("write", path="link.md", content="after\n")

    assert not reply.ok
    assert Path(path).read_text() == PLAN


async def test_a_patch_that_touches_the_plan_and_another_file_is_refused_whole(tmp_path):
    async with engine(tmp_path, permission_mode="bypassPermissions") as one:
        path = await written(one)
        shown = one.jail.display_path(path)
        update, more = f"*** Update File: {shown}\n@@\n-# Plan\n+# New\n", "*** Add File: other.txt\n+x\n"
        alone, together = (f"*** Begin Patch\n{one}*** End Patch\n" for one in (update, update + more))
        both = await one.call("patch", patch=together)
        assert (both.status, Path(path).read_text()) == ("rejected-by-user", PLAN)
        assert (await one.call("patch", patch=alone)).ok

    assert Path(path).read_text().startswith("# New")
    assert not (tmp_path / "other.txt").exists()


async def test_what_runs_already_is_not_typed_into_or_stopped(tmp_path):
    async with engine(tmp_path, ask=User(True, True)) as one:
        begun = await one.call("Bash", command="cat; sleep 300", run_in_background=True)
        assert begun.ok, begun
        task = one._services._one("Tasks").list()[-1]
        planning(one).enter()
        typed = await one.call("shell_write", task_id=task.id, chars="rm -rf .\n")
        stopped = await one.call("TaskStop", task_id=task.id)
        read = await one.call("TaskOutput", task_id=task.id, block=False)

    assert (typed.status, stopped.status, read.status) == ("rejected-by-user", "rejected-by-user", "done")


async def test_a_hook_gets_no_other_call_through_than_those_that_read(tmp_path):
    changed = {"permissionDecision": "allow", "updatedInput": {"command": "touch b.txt"}}
    hook = Hook("PreToolUse", "Bash", function=lambda _: {"hookSpecificOutput": changed})
    async with engine(tmp_path, hooks=[hook], permission_mode="bypassPermissions") as one:
        planning(one).enter()
        reply = await one.call("Bash", command="ls")

    assert reply.status == "rejected-by-user"
    assert not (tmp_path / "b.txt").exists()


async def test_more_rights_are_not_asked_for_while_planning(tmp_path):
    user = User()
    async with engine(tmp_path, ask=user) as one:
        planning(one).enter()
        reply = await one.call("request_permissions", network=True)

    assert reply.status == "rejected-by-user"
    assert user.asked == []


@pytest.mark.parametrize("name", ["EnterPlanMode", "ExitPlanMode"])
async def test_a_subagent_neither_enters_nor_leaves(tmp_path, name):
    async with engine(tmp_path, ask=User(True)) as one:
        await written(one)
        if name == "EnterPlanMode":
            planning(one).leave()
        branch = one.branch("helper", ModeConfig(), services={"Planning": Planning.under(planning(one))})
        (reply,) = await branch.run([Call(name, {})])
        await branch.close()

        assert not reply.ok
        assert "subagent" in reply.text
        assert planning(one).is_on is (name == "ExitPlanMode")


async def test_a_subagent_that_runs_already_is_held_from_its_next_call_on(tmp_path):
    async with engine(tmp_path, permission_mode="bypassPermissions") as one:
        mode = planning(one)
        branch = one.branch("helper", ModeConfig())
        (before,) = await branch.run([Call("Write", {"file_path": str(tmp_path / "a.txt"), "content": "x"})])
        path = mode.enter().path
        after = await branch.run(
            [
                Call("Write", {"file_path": str(tmp_path / "b.txt"), "content": "x"}),
                Call("Write", {"file_path": path, "content": "x"}),
                Call("Bash", {"command": "touch c"}),
                Call("Bash", {"command": "ls"}),
            ]
        )
        await branch.close()

    assert before.ok
    assert [reply.ok for reply in after] == [False, False, False, True]
    assert sorted(os.listdir(tmp_path)) == ["a.txt"]


async def test_a_session_that_begins_in_plan_mode_has_a_plan_to_write(tmp_path):
    async with engine(tmp_path, ask=User(True), permission_mode="plan") as one:
        mode = planning(one)
        assert mode.is_on
        assert mode.reminder()
        assert (await enter_by_tool(one)).text.startswith("Already in plan mode")
        assert (await one.call("write", path=mode.plan_path, content=PLAN)).ok
        assert (await leave_by_tool(one)).ok
        assert one.policy.standing.name == "default"


async def test_a_folder_that_cannot_be_used_is_the_user_s_to_mend(tmp_path):
    async with engine(tmp_path, settings=Settings(plan=PlanMode(folder="../plans"))) as one:
        planning(one)
        reply = await enter_by_tool(one)
        with pytest.raises(ConfigError, match=r"plan\.folder"):
            planning(one).enter()

    assert reply.error is not None
    assert reply.error.error_code == "no-plan-folder"
    assert "Ask the user" in reply.text


@pytest.mark.parametrize(
    ("wishes", "why"),
    [
        pytest.param([{"tool": "Bash", "prompt": "x"}] * 21, "20 is the most", id="many"),
        pytest.param([{"tool": "Bash", "prompt": " "}], "at most 200", id="empty"),
        pytest.param([{"tool": "Bash", "prompt": "x" * 201}], "at most 200", id="long"),
    ],
)
async def test_wishes_that_nobody_would_read_are_refused(tmp_path, wishes, why):
    async with engine(tmp_path, ask=User()) as one:
        await written(one)
        reply = await leave_by_tool(one, allowedPrompts=wishes)

    assert why in reply.text


async def test_gemini_may_name_an_earlier_plan_and_nothing_else(tmp_path):
    plans = tmp_path / ".ferrule" / "plans"
    plans.mkdir(parents=True)
    (plans / "old.md").write_text("# Old\n")
    (tmp_path / "old.txt").write_text("no plan")
    user = User(True)
    async with engine(tmp_path, "gemini", user) as one:
        planning(one).enter()
        assert not (await leave_by_tool(one, plan_filename="old.txt")).ok
        assert (await leave_by_tool(one, plan_filename="old.md")).ok

    assert user.asked[0].input["plan"] == "# Old\n"


async def test_the_agent_s_notes_are_no_way_around(tmp_path):
    async with engine(tmp_path, "amp", permission_mode="bypassPermissions") as one:
        planning(one).enter()
        reply = await one.call("create_file", path=".amp/notes.md", content="x")

    assert reply.status == "rejected-by-user"
