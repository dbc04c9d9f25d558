"""Check and the policy: rules about the shell bind its commands, a person is asked about each, the sandbox confines."""

import os
from pathlib import Path
from typing import Any

import pytest
from tests.tools.checks.checking import Session

from ferrule import Answer, Call
from ferrule.core.access import Access
from ferrule.files.jail import Jail
from ferrule.permissions import Case, Nobody, Question
from ferrule.permissions.gate import summary
from ferrule.settings import Permissions, SandboxSettings


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder.resolve()


def rules(**lists: Any) -> dict[str, Any]:
    return {"permissions": Permissions(**lists)}


@pytest.mark.parametrize("dialect", ["amp", "claude", "codex"])
@pytest.mark.parametrize("rule", ["Bash(npm *)", "Bash(npm test)"])
async def test_a_rule_about_the_shell_denies_a_check_and_says_how_to_leave_it_out(
    root: Path, dialect: str, rule: str
) -> None:
    commands = {"js": "npm test", "ok": "touch ran"}
    async with Session(root, commands, dialect=dialect, settings=rules(deny=(rule,))) as session:
        reply = await session.check()
        assert not (root / "ran").exists()
        rest = await session.check(checks=["ok"])

    assert reply.status == "rejected-by-user"
    assert f"is denied by {rule}. The check js runs it; to leave it out, name the others: ok." in reply.text
    assert session.statuses == {"ok": "passed"}
    assert rest.ok


async def test_a_rule_s_own_message_says_it_as_well(root: Path) -> None:
    ordered = ("reject --message 'Not here.' Bash --cmd 'rm *'", "allow Bash")
    async with Session(root, {"a": "true", "b": "rm -r x"}, settings=rules(ordered=ordered)) as session:
        reply = await session.check()

    assert reply.status == "rejected-by-user"
    assert "Not here. The check b runs it; to leave it out, name the others: a." in reply.text


async def test_where_several_are_denied_the_names_of_the_others_are_told(root: Path) -> None:
    commands = {"a": "npm test", "b": "ls", "c": "npm run lint", "d": "pwd"}
    async with Session(root, commands, settings=rules(deny=("Bash(npm *)",))) as session:
        reply = await session.check()
        alone = await session.check(checks=["a", "c"])

    assert "The checks a, c are denied; to leave them out, name the others: b, d." in reply.text
    assert "name the others" not in alone.text


async def test_every_command_that_no_rule_covers_says_why_it_is_asked_about(root: Path) -> None:
    commands = {"a": "./one.sh", "b": "ls", "c": "./two.sh"}
    async with Session(root, commands, answer=False) as session:
        await session.check()

    (question,) = session.questions
    assert "`./one.sh`: " in question.why
    assert "`./two.sh`: " in question.why
    assert "`ls`" not in question.why


@pytest.mark.parametrize("order", [1, -1])
async def test_a_check_that_only_edits_files_speaks_for_no_other_one(root: Path, order: int) -> None:
    commands = dict([("edits", "touch a"), ("runs", "python3 -c 'open(1)'")][::order])
    async with Session(root, commands, answer=False, permission_mode="acceptEdits") as session:
        await session.check(checks=["edits"])
        assert session.questions == []
        reply = await session.check()

    assert len(session.questions) == 1
    assert reply.status == "rejected-by-user"


async def test_a_rule_about_the_tool_itself_binds_too(root: Path) -> None:
    async with Session(root, {"a": "true"}, settings=rules(deny=("Check",))) as session:
        reply = await session.check()

    assert reply.status == "rejected-by-user"
    assert session.watched.begun == []


async def test_a_rule_that_allows_the_tool_allows_no_command(root: Path) -> None:
    settings = rules(allow=("Check",))
    async with Session(root, {"a": "touch made"}, answer=False, settings=settings) as session:
        reply = await session.check()

    assert reply.status == "rejected-by-user"
    assert len(session.questions) == 1
    assert not (root / "made").exists()


async def test_rules_that_allow_every_command_need_no_question(root: Path) -> None:
    commands = {"a": "touch a", "b": "touch b"}
    async with Session(root, commands, settings=rules(allow=("Bash(touch *)",))) as session:
        await session.check()

    assert session.questions == []
    assert set(session.statuses.values()) == {"passed"}


async def test_the_question_has_every_command_on_a_line_of_its_own(root: Path) -> None:
    (root / "api").mkdir()
    (root / "package.json").write_text('{"name": "x", "scripts": {"lint": "true"}}')
    from ferrule.settings import CheckCommand

    commands: dict[str, Any] = {
        "a": "touch 'two\nlines\x1b[2J'",
        "b": CheckCommand(command="touch b", folder="api"),
    }
    async with Session(root, commands, answer=False) as session:
        reply = await session.check(checks=["a", "b"])

    (question,) = session.questions
    assert question.summary.split("\n") == [
        "Check runs 2 commands:",
        "  touch 'two\\nlines\\x1b[2J'",
        f"  touch b  (in {root}/api)",
    ]
    assert reply.status == "rejected-by-user"
    assert "The user did not allow this: Check runs 2 commands:" in reply.text
    assert session.watched.begun == []


async def test_always_is_about_each_command_and_the_same_as_for_the_shell(root: Path) -> None:
    always = Answer(allow=True, always=True)
    commands = {"a": "python3 -c 1", "b": "python3 -c 2", "c": "python3 -c 3"}
    async with Session(root, commands, answer=always) as session:
        await session.check(checks=["a", "b"])
        assert len(session.questions) == 1
        await session.check(checks=["b"])
        await session.engine.run([Call("Bash", {"cmd": "python3 -c 1"})])
        assert len(session.questions) == 1
        await session.engine.run([Call("Bash", {"cmd": "python3 -c 3"})])
        assert len(session.questions) == 2
        await session.check()

    assert len(session.questions) == 2
    assert set(session.statuses.values()) == {"passed"}


async def test_always_saves_rules_about_the_shell_for_the_commands_that_ask(root: Path) -> None:
    commands = {"a": "touch src", "b": "ls", "c": "mkdir -p out"}
    async with Session(root, commands, answer=Answer(allow=True, always=True)) as session:
        await session.check()
        (question,) = session.questions
        decided = await session.engine.decide(Call("Bash", {"cmd": "touch tests"}))

    assert question.proposals == ("Bash(touch *)", "Bash(mkdir *)")
    assert decided.verdict == "allow"


async def test_yes_without_always_is_asked_again(root: Path) -> None:
    async with Session(root, {"a": "touch a"}) as session:
        await session.check()
        await session.check()

    assert len(session.questions) == 2


async def test_nobody_to_ask_means_no(root: Path) -> None:
    async with Session(root, {"a": "touch a"}) as session:
        session.engine.policy  # noqa: B018 - it is open
        session.engine._parts.flow.gate.hear(Nobody())
        reply = await session.check()

    assert reply.status == "rejected-by-user"
    assert "Nobody can be asked, so this was not allowed: Check runs 1 command:\n  touch a" in reply.text


async def test_a_session_that_plans_runs_no_checks(root: Path) -> None:
    async with Session(root, {"a": "true"}, permission_mode="plan") as session:
        reply = await session.check()

    assert reply.status == "rejected-by-user"
    assert "Plan mode is on, so Check was not run" in reply.text


async def test_the_sandbox_confines_checks_and_is_named_where_it_stopped_one(root: Path, tmp_path: Path) -> None:
    (root / ".claude").mkdir()
    commands = {"inside": "touch made", "outside": f"touch {tmp_path}/escaped; touch .claude/settings.json"}
    async with Session(root, commands, confined=True) as session:
        reply = await session.check()

    assert (root / "made").exists()
    assert not (tmp_path / "escaped").exists()
    assert os.listdir(root / ".claude") == []
    assert session.statuses == {"inside": "passed", "outside": "failed"}
    assert "The sandbox" in session.of("outside").why
    assert session.of("outside").why in reply.text


async def test_confined_checks_need_no_question_where_the_user_says_so(root: Path) -> None:
    settings = {"sandbox": SandboxSettings(auto_allow=True)}
    async with Session(root, {"a": "touch a"}, answer=False, settings=settings) as session:
        reply = await session.check()

    assert reply.ok, reply
    assert session.questions == []


async def test_a_folder_that_became_a_link_meanwhile_is_not_gone_to(root: Path, tmp_path: Path) -> None:
    from ferrule.settings import CheckCommand

    (root / "sub").mkdir()
    (tmp_path / "elsewhere").mkdir()

    def swap(question: Question) -> bool:
        os.rename(root / "sub", root / "gone")
        os.symlink(tmp_path / "elsewhere", root / "sub")
        return True

    async with Session(root, {"a": CheckCommand(command="touch a", folder="sub")}, answer=swap) as session:
        await session.check()

    assert os.listdir(tmp_path / "elsewhere") == []
    assert "passed" not in session.statuses.values()


def test_a_question_about_other_tools_is_one_line_whatever_the_command_says(root: Path) -> None:
    case = Case("1", "Bash", "shell", (Access.command("echo 'a\nAllow? y'", str(root)),))

    assert summary(case, Jail(str(root))) == "run `echo 'a\\nAllow? y'`"
