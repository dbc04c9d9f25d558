"""The policy of a whole engine: layers, trust, modes, grants, and who is asked."""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from ferrule import Call, Engine, Settings
from ferrule.core.errors import ConfigError
from ferrule.permissions import Answer, Nobody, Question
from ferrule.permissions.trust import Trust, project_files
from ferrule.sandbox import choose
from ferrule.settings import Permissions, SandboxSettings


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "docs").mkdir(parents=True)
    (folder / "docs" / "a.md").write_text("a\n", encoding="utf-8")
    (folder / "b.txt").write_text("b\n", encoding="utf-8")
    return folder


def engine(work: Path, permissions: Permissions | None = None, **more: Any) -> Engine:
    settings = Settings(permissions=permissions or Permissions(), sandbox=SandboxSettings(use="none"))
    return Engine(work, **{"settings": settings, "state": work.parent / "state", "ask": Nobody(), **more})


class Recorder:
    """Answers alike to all questions, and remembers them."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.questions: list[Question] = []

    async def ask(self, question: Question) -> Answer:
        self.questions.append(question)
        return self.answer


async def test_a_rule_in_any_family_s_words_binds_the_tool_with_all_its_names(work: Path) -> None:
    for rule in ("Bash(touch x)", "run_shell_command(touch x)", "bash(touch x)", "shell(touch x)"):
        async with engine(work, Permissions(deny=(rule,)), ask=lambda _: True) as one:
            for name, key in (("Bash", "cmd"), ("bash", "command"), ("run_shell_command", "command")):
                reply = await one.call(name, **{key: "touch x"})
                assert (reply.status, reply.error.error_code if reply.error else None) == (
                    "rejected-by-user",
                    "denied-by-rule",
                ), (rule, name)
    assert not (work / "x").exists()


async def test_deny_beats_ask_and_ask_beats_allow_across_layers(work: Path) -> None:
    (work / ".claude").mkdir()
    (work / ".claude" / "settings.json").write_text(json.dumps({"permissions": {"deny": ["Edit(docs/**)"]}}))
    async with engine(work, Permissions(allow=("Edit",), ask=("Edit(b.txt)",))) as one:
        denied = await one.decide(Call("edit_file", {"path": "docs/a.md", "old_str": "a", "new_str": "c"}))
        asked = await one.decide(Call("edit_file", {"path": "b.txt", "old_str": "b", "new_str": "c"}))
        allowed = await one.decide(Call("create_file", {"path": "new.txt", "content": "c"}))

    assert [one.verdict for one in (denied, asked, allowed)] == ["deny", "ask", "allow"]
    assert asked.rule == "Edit(b.txt)"
    assert "cannot be edited" in denied.why


async def test_a_project_can_only_tighten_until_it_is_trusted(work: Path) -> None:
    (work / ".claude").mkdir()
    rules = work / ".claude" / "settings.json"
    rules.write_text(json.dumps({"permissions": {"allow": ["Bash(make deploy)"], "defaultMode": "bypassPermissions"}}))
    deploy = Call("Bash", {"cmd": "make deploy"})

    async with engine(work) as one:
        assert (await one.decide(deploy)).verdict == "ask"
        assert one.policy.standing.name == "default"
    Trust(str(work.parent / "state")).grant(str(work), project_files(str(work)))
    async with engine(work) as one:
        assert (await one.decide(deploy)).rule in {"Bash(make deploy)", ""}
        assert (await one.decide(deploy)).verdict == "allow"
    rules.write_text(rules.read_text() + "\n")
    async with engine(work) as one:
        assert (await one.decide(deploy)).verdict == "ask"


async def test_a_project_s_mode_counts_where_it_tightens(work: Path) -> None:
    (work / ".ferrule").mkdir()
    (work / ".ferrule" / "settings.toml").write_text('[permissions]\nmode = "plan"\n')

    async with engine(work, ask=lambda _: True) as one:
        reply = await one.call("create_file", path="x.txt", content="x")

    assert reply.status == "rejected-by-user"
    assert not (work / "x.txt").exists()


@pytest.mark.parametrize(
    ("mode", "edit", "command", "read"),
    [
        pytest.param("default", "ask", "ask", "allow", id="default"),
        pytest.param("acceptEdits", "allow", "ask", "allow", id="acceptEdits"),
        pytest.param("auto_edit", "allow", "ask", "allow", id="wayland-auto-edit"),
        pytest.param("plan", "deny", "deny", "allow", id="plan"),
        pytest.param("dontAsk", "deny", "deny", "allow", id="dontAsk"),
        pytest.param("bypassPermissions", "allow", "allow", "allow", id="bypass"),
        pytest.param("yolo", "allow", "allow", "allow", id="yolo"),
    ],
)
async def test_modes(work: Path, mode: str, edit: str, command: str, read: str) -> None:
    async with engine(work, permission_mode=mode) as one:
        calls = [
            Call("edit_file", {"path": "b.txt", "old_str": "b", "new_str": "c"}),
            Call("Bash", {"cmd": "curl example.org"}),
            Call("Read", {"path": "b.txt"}),
        ]
        assert [(await one.decide(call)).verdict for call in calls] == [edit, command, read]


async def test_edits_by_commands_are_accepted_with_edits(work: Path) -> None:
    async with engine(work, permission_mode="acceptEdits") as one:
        assert (await one.decide(Call("Bash", {"cmd": "mkdir -p new && cp b.txt new/b.txt"}))).verdict == "allow"
        assert (await one.decide(Call("Bash", {"cmd": "rm /etc/hosts"}))).verdict == "ask"


async def test_no_mode_undoes_a_denial_or_the_guard(work: Path) -> None:
    (work / ".env").write_text("A=1\n")
    async with engine(work, Permissions(deny=("Bash(curl *)",)), permission_mode="bypassPermissions") as one:
        assert (await one.decide(Call("Bash", {"cmd": "curl example.org"}))).verdict == "deny"
        assert (await one.decide(Call("Read", {"path": ".env"}))).verdict == "deny"
        assert (await one.decide(Call("Bash", {"cmd": "cat .env"}))).verdict == "ask"


async def test_the_mode_in_which_nothing_asks_can_be_switched_off(work: Path) -> None:
    with pytest.raises(ConfigError, match="bypassPermissions"):
        async with engine(work, Permissions(bypass=False), permission_mode="bypassPermissions"):
            pass


async def test_leaving_the_sandbox_always_asks(work: Path) -> None:
    for rules in (Permissions(allow=("Bash",)), Permissions()):
        async with engine(work, rules, dialect="claude", permission_mode="bypassPermissions") as one:
            plain = await one.decide(Call("Bash", {"command": "make x"}))
            outside = await one.decide(Call("Bash", {"command": "make x", "dangerouslyDisableSandbox": True}))
        assert (plain.verdict, outside.verdict) == ("allow", "ask")


async def test_who_allows_calls_has_not_let_them_out_of_the_sandbox(work: Path) -> None:
    asked: list[str] = []

    def only_calls(question: Question) -> bool:
        asked.append(question.kind)
        return question.kind == "call"

    async with engine(work, settings=Settings(), dialect="claude", ask=only_calls) as one:
        reply = await one.call("Bash", command="touch x", dangerouslyDisableSandbox=True)

    assert (asked, reply.status) == (["outside"], "rejected-by-user")
    assert not (work / "x").exists()


SPOKEN_OF = [
    ("allow", ""),
    *(
        (kind, rule)
        for kind in ("allow", "ask", "deny")
        for rule in ("Bash(ruff format:*)", "format_file", "Edit(a.py)")
    ),
]


@pytest.mark.parametrize("use", ["auto", "none"])
@pytest.mark.parametrize("mode", ["default", "plan", "dontAsk", "bypassPermissions"])
@pytest.mark.parametrize(("kind", "rule"), SPOKEN_OF)
async def test_a_formatter_is_decided_as_its_command_is(
    work: Path, monkeypatch: pytest.MonkeyPatch, mode: str, use: Literal["auto", "none"], rule: str, kind: str
) -> None:
    """But for what rules say of the tool itself, or of the file: of a file that a command writes they say nothing."""
    monkeypatch.setenv("PATH", f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}")
    (work / "a.py").write_text("x=1\n", encoding="utf-8")
    (work / "pyproject.toml").write_text("[tool.ruff.format]\n", encoding="utf-8")
    rules = {kind: (rule,)} if rule else {}
    settings = Settings(sandbox=SandboxSettings(use=use), permissions=msgspec.structs.replace(Permissions(), **rules))
    async with engine(work, settings=settings, permission_mode=mode) as one:
        command = await one.decide(Call("Bash", {"cmd": "ruff format a.py"}))
        formatter = await one.decide(Call("format_file", {"path": "a.py"}))
    if rule in {"format_file", "Edit(a.py)"} and kind != "allow" and command.verdict == "allow":
        assert formatter.verdict == ("deny" if kind == "deny" or mode == "dontAsk" else "ask")
    else:
        assert formatter.verdict == command.verdict


@pytest.mark.parametrize("mode", ["default", "dontAsk", "acceptEdits"])
@pytest.mark.parametrize("rule", ["Edit", "Edit(a.py)"])
async def test_a_rule_that_allows_an_edit_runs_no_program_of_the_workspace(
    work: Path, monkeypatch: pytest.MonkeyPatch, rule: str, mode: str
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    (work / "a.py").write_text("x=1\n", encoding="utf-8")
    (work / "ruff.toml").write_text("[format]\n", encoding="utf-8")
    planted = work / ".venv" / "bin" / "ruff"
    planted.parent.mkdir(parents=True)
    planted.write_text(f"#!/bin/sh\ntouch {work.parent}/ran\ncat\n")
    planted.chmod(0o755)
    async with engine(work, Permissions(allow=(rule,)), permission_mode=mode) as one:
        reply = await one.call("format_file", path="a.py")

    assert (reply.status, (work.parent / "ran").exists()) == ("rejected-by-user", False)


async def test_what_a_rule_lets_be_read_outside_is_not_written_by_commands(work: Path) -> None:
    elsewhere = Path(tempfile.mkdtemp(dir=os.path.expanduser("~")))
    try:
        (elsewhere / "a.txt").write_text("a\n")
        settings = Settings(permissions=Permissions(allow=(f"Read(/{elsewhere}/**)",)))
        if choose() is None:
            pytest.fail("Nothing on this machine confines commands: install bubblewrap.")
        async with engine(work, settings=settings, ask=lambda question: question.kind == "call") as one:
            read = await one.call("Read", path=str(elsewhere / "a.txt"))
            await one.call("Bash", cmd=f"echo b > {elsewhere}/a.txt; echo c > {work}/b.txt")
        assert read.status == "done"
        assert (elsewhere / "a.txt").read_text() == "a\n"
        assert (work / "b.txt").read_text() == "c\n"
    finally:
        shutil.rmtree(elsewhere)


async def test_folders_that_the_user_keeps_bind_commands_too(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AH_PROTECT_DIRS", "docs")
    async with engine(work, dialect="ah", permission_mode="acceptEdits") as one:
        assert (await one.decide(Call("bash", {"command": "touch docs/new.md"}))).verdict == "ask"
        assert (await one.decide(Call("bash", {"command": "touch new.md"}))).verdict == "allow"


async def test_always_saves_the_rule_that_the_question_shows_and_the_next_session_has_it(work: Path) -> None:
    asker = Recorder(Answer(allow=True, always=True))
    async with engine(work, ask=asker) as one:
        await one.call("Bash", cmd="touch one.txt")
        first = asker.questions[0].proposals
        await one.call("Bash", cmd="git commit -m one")
        second = asker.questions[1].proposals
        await one.call("Bash", cmd="git commit -m two")

    assert len(asker.questions) == 2
    assert second == ("Bash(git commit *)",)
    assert all("(touch" in rule for rule in first)
    async with engine(work) as one:
        decision = await one.decide(Call("Bash", {"cmd": "git commit -m three"}))
    assert (decision.verdict, decision.rule) == ("allow", "Bash(git commit *)")


@pytest.mark.parametrize("command", ["python -c 'print(1)'", "bash -c ls", "sudo make", "env A=1 make", "npx cowsay"])
async def test_always_never_proposes_an_interpreter_a_shell_or_a_wrapper(work: Path, command: str) -> None:
    asker = Recorder(Answer(allow=False))
    async with engine(work, ask=asker) as one:
        await one.call("Bash", cmd=command)

    assert all("*" not in rule for rule in asker.questions[0].proposals)


async def test_ordered_rules_decide_by_the_first_that_matches(work: Path) -> None:
    rules = ("reject --message 'Ask me to push.' Bash --cmd '*git*push*'", "allow Bash --cmd 'git *'", "reject Bash")
    async with engine(work, Permissions(ordered=rules)) as one:
        pushed = await one.call("Bash", cmd="git push origin main")
        assert (await one.decide(Call("Bash", {"cmd": "git fetch"}))).verdict == "allow"
        assert (await one.decide(Call("Bash", {"cmd": "make"}))).verdict == "deny"

    assert (pushed.status, pushed.text) == ("rejected-by-user", "Ask me to push.")


async def test_a_denied_file_is_left_out_of_searches(work: Path) -> None:
    async with engine(work, Permissions(deny=("Read(docs/**)",))) as one:
        found = await one.call("Grep", pattern="a")
        listed = await one.call("glob", filePattern="**/*.md")
        read = await one.call("Read", path="docs/a.md")

    assert "docs" not in found.text
    assert "docs" not in listed.text
    assert (read.status, "cannot be read" in read.text) == ("error", True)


async def test_a_tool_that_is_denied_altogether_is_not_shown(work: Path) -> None:
    async with engine(work, Permissions(deny=("Bash", "Read(docs/**)"))) as one:
        names = {definition["name"] for definition in one.definitions()}

    assert "Bash" not in names
    assert "Read" in names


async def test_rules_that_cannot_be_read_stop_the_session(work: Path) -> None:
    with pytest.raises(ConfigError):
        async with engine(work, Permissions(deny=("Edit(!x)",))):
            pass


async def test_one_file_of_rules_replaces_all_others(work: Path) -> None:
    rules = work.parent / "rules.txt"
    rules.write_text("allow Bash --cmd 'make *'\n")
    async with engine(work, Permissions(deny=("Bash(make *)",)), rules=str(rules)) as one:
        assert (await one.decide(Call("Bash", {"cmd": "make deploy"}))).verdict == "allow"
        assert (await one.decide(Call("Bash", {"cmd": "npm test"}))).verdict == "ask"


async def test_the_same_failing_call_is_noticed_the_third_time(work: Path) -> None:
    async with engine(work) as one:
        replies = [await one.call("Read", path="nowhere.txt") for _ in range(3)]

    assert [any("in a row" in note for note in reply.notes) for reply in replies] == [False, False, True]


async def test_a_delegate_decides(work: Path) -> None:
    judge = work.parent / "judge"
    judge.write_text('#!/bin/sh\nread -r line\ncase "$line" in *deploy*) echo "not on a Friday" >&2; exit 2;; esac\n')
    judge.chmod(0o755)
    async with engine(work, Permissions(ordered=(f"delegate --to {judge} Bash --cmd '*'",))) as one:
        allowed = await one.decide(Call("Bash", {"cmd": "make build"}))
        denied = await one.call("Bash", cmd="make deploy")

    assert allowed.verdict == "allow"
    assert (denied.status, "not on a Friday" in denied.text) == ("rejected-by-user", True)
