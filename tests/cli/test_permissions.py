"""`ferrule permissions`: rules listed, calls decided, projects trusted, and what was said before taken back."""

import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from ferrule.cli.main import run

RULES = {"permissions": {"allow": ["Bash(git log *)", "Edit(docs/**)"], "deny": ["Bash(rm *)"], "ask": ["Read(b.txt)"]}}


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    (folder / "docs").mkdir(parents=True)
    (folder / "b.txt").write_text("b\n", encoding="utf-8")
    (tmp_path / "rules.json").write_text(json.dumps(RULES), encoding="utf-8")
    monkeypatch.setenv("FERRULE_STATE", str(tmp_path / "state"))
    (tmp_path / "settings.toml").touch()
    monkeypatch.setenv("FERRULE_SETTINGS", str(tmp_path / "settings.toml"))
    monkeypatch.chdir(folder)
    return folder


def checked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], calls: Sequence[object], *more: str
) -> tuple[int, list[dict[str, object]]]:
    """The exit code and the decisions on some lines."""
    text = "\n".join(call if isinstance(call, str) else json.dumps(call) for call in calls)
    monkeypatch.setattr(sys, "stdin", io.StringIO(text + "\n"))
    code = run(["permissions", "check", "-", *more])
    return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_check_decides_on_calls_in_any_dialect_s_words(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = [
        {"tool": "Bash", "input": {"command": "git log --oneline"}},
        {"tool": "run_shell_command", "input": {"command": "rm -rf docs"}},
        {"tool": "edit_file", "input": {"path": "docs/a.md", "old_str": "a", "new_str": "b"}},
        {"tool": "Edit", "input": {"file_path": "b.txt", "old_string": "b", "new_string": "c"}},
        {"tool": "read", "input": {"path": "b.txt"}},
        {"tool": "mcp__some__thing", "input": {}},
    ]
    code, said = checked(monkeypatch, capsys, calls, "--rules", str(work.parent / "rules.json"))

    assert code == 0
    assert [one["decision"] for one in said] == ["allow", "deny", "allow", "ask", "ask", "ask"]
    assert [one["rule"] for one in said][:3] == ["Bash(git log *)", "Bash(rm *)", "Edit(docs/**)"]
    assert all(set(one) == {"decision", "rule", "why"} and str(one["why"]).endswith(".") for one in said)


@pytest.mark.parametrize("name", ["Bash", "exec_command", "run_shell_command"])
def test_a_rule_for_one_tool_of_commands_holds_for_all_of_them(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (work.parent / "rules.txt").write_text(f"reject {name} --cmd 'rm*'\n", encoding="utf-8")
    calls = [
        {"tool": "Bash", "input": {"cmd": "rm x"}},
        {"tool": "exec_command", "input": {"cmd": "ls && rm x"}},
        {"tool": "run_shell_command", "input": {"command": "rm x"}},
    ]
    _, said = checked(monkeypatch, capsys, calls, "--rules", str(work.parent / "rules.txt"))

    assert [one["decision"] for one in said] == ["deny", "deny", "deny"]


def test_a_line_that_is_no_call_is_denied_and_the_rest_is_decided(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = ["nonsense", {"input": {}}, {"tool": "Read", "input": []}, {"tool": "Read", "input": {"path": "b.txt"}}]
    code, said = checked(monkeypatch, capsys, calls)

    assert code == 1
    assert [one["decision"] for one in said] == ["deny", "deny", "deny", "allow"]
    assert "Line 1" in str(said[0]["why"])


def test_check_reads_a_file_and_another_workspace(
    work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "calls.jsonl").write_text('{"tool": "Read", "input": {"path": "b.txt"}}\n')

    assert run(["permissions", "check", str(tmp_path / "calls.jsonl"), "--workspace", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out)["decision"] == "allow"


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        pytest.param("{", "rules.bad", id="broken-json"),
        pytest.param('{"permissions": {"deny": ["Edit(!x)"]}}', "Edit(!x)", id="bad-rule"),
        pytest.param("permit Bash", "permit", id="bad-action"),
    ],
)
def test_rules_that_cannot_be_read_are_an_error(
    work: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    rules: str,
    words: str,
) -> None:
    (work.parent / "rules.bad").write_text(rules)
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"tool": "Read", "input": {"path": "b.txt"}}\n'))

    assert run(["permissions", "check", "-", "--rules", str(work.parent / "rules.bad")]) == 2
    assert words in capsys.readouterr().err


def test_rules_that_are_not_there_are_an_error(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["permissions", "list", "--rules", "nowhere.json"]) == 2
    assert "nowhere.json" in capsys.readouterr().err


def test_one_call_is_explained(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work.parent / "settings.toml").write_text('[permissions]\ndeny = ["Bash(git push *)"]\n')

    assert run(["permissions", "test", "Bash", "--command", "git push origin main"]) == 3
    said = capsys.readouterr().out
    assert "action: deny" in said
    assert "matched-rule: Bash(git push *)" in said
    assert "source: user" in said
    assert run(["permissions", "test", "Read", "--path=b.txt"]) == 0


def test_why_commands_are_not_let_in_is_explained_where_one_asks(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (work.parent / "settings.toml").write_text("[sandbox]\nauto_allow = false\n")

    assert run(["permissions", "test", "Bash", "--command", "make deploy"]) == 3
    assert "\nconfined commands: ask. sandbox.auto_allow is false" in capsys.readouterr().out
    assert run(["permissions", "test", "Bash", "--command", "ls"]) == 0
    assert "confined commands" not in capsys.readouterr().out


def test_rules_are_listed_with_their_layers(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work.parent / "settings.toml").write_text('[permissions]\ndeny = ["Bash(git push *)"]\n')
    (work / ".claude").mkdir()
    (work / ".claude" / "settings.json").write_text(json.dumps({"permissions": {"allow": ["Bash(make *)"]}}))

    assert run(["permissions", "list"]) == 0
    said = capsys.readouterr().out
    assert "Bash(git push *)  (user: " in said
    assert "Bash(make *)  (project: " in said
    assert "not trusted" in said
    assert run(["permissions", "list", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["layer"] for row in rows} == {"user", "project"}


def test_whether_a_project_s_code_is_trusted_is_listed(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def code() -> str:
        capsys.readouterr()
        assert run(["permissions", "list"]) == 0
        return capsys.readouterr().out.split("project code: ")[1].split("\n")[0]

    assert code() == "none"
    (work / "tools").mkdir()
    tool = work / "tools" / "hello.py"
    tool.write_text("TOOLS = []\n")
    assert code() == "not trusted, so it is not used (1 files)"
    assert run(["call", "hello"]) == 2
    assert "The tools of this project are not used" in capsys.readouterr().err
    assert run(["permissions", "trust"]) == 0
    assert code() == "trusted (1 files)"
    tool.write_text("TOOLS = [] \n")
    assert code() == "changed since you trusted it, so it is not used (1 files)"


def test_a_project_is_trusted_and_no_longer_when_it_changes(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work.parent / "settings.toml").write_text("[sandbox]\nauto_allow = false\n")
    (work / ".claude").mkdir()
    rules = work / ".claude" / "settings.json"
    rules.write_text(json.dumps({"permissions": {"allow": ["Bash(make deploy)"]}}))

    def decision() -> str:
        capsys.readouterr()
        run(["permissions", "test", "Bash", "--cmd", "make deploy"])
        return capsys.readouterr().out.split("action: ")[1].split("\n")[0]

    assert decision() == "ask"
    assert run(["permissions", "trust"]) == 0
    assert ".claude/settings.json" in capsys.readouterr().out
    assert decision() == "allow"
    rules.write_text(json.dumps({"permissions": {"allow": ["Bash(make *)"]}}))
    assert decision() == "ask"
    run(["permissions", "trust"])
    assert decision() == "allow"
    run(["permissions", "trust", "--revoke"])
    assert decision() == "ask"


def test_what_was_said_before_is_taken_back(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from ferrule.permissions.trust import Grants

    Grants(str(work.parent / "state"), str(work)).add("Bash(make deploy)")

    assert run(["permissions", "forget"]) == 0
    assert capsys.readouterr().out == "Bash(make deploy)\n"
    assert run(["permissions", "forget", "Bash(nothing)"]) == 2
    assert "Saved are: Bash(make deploy)" in capsys.readouterr().err
    assert run(["permissions", "forget", "Bash(make deploy)"]) == 0
    assert capsys.readouterr().out == ""


def test_a_call_is_tried_by_what_it_touches_and_the_rest_is_left_open(tmp_path, monkeypatch, capsys):
    (tmp_path / "a.py").write_text("x = 1\n")
    monkeypatch.chdir(tmp_path)

    assert run(["permissions", "test", "Edit", "--file_path", "a.py"]) == 3
    out = capsys.readouterr().out
    assert "left open: old_str, new_str\n" in out
    assert "action: ask\n" in out
    assert run(["permissions", "test", "Read"]) == 2
    assert "What Read would touch is not said: give --path." in capsys.readouterr().err
