"""`ferrule run --permission-mode plan`: nothing but the plan is written, and the plan is the result."""

import pytest
from tests.cli.recordings import lines_of, recording

from ferrule.cli.main import run
from ferrule.models.cues import calls, said

PLAN = "# Plan\n\n1. Write a.py.\n"
WRITE = ("Write", {"file_path": "${workspace}/a.py", "content": "x"}, "write")
SHELL = ("Bash", {"command": "touch b.py"}, "shell")
PLANNED = ("Write", {"file_path": "${result:write:(/[^ ]+\\.md)}", "content": PLAN}, "planned")
CUES = [
    calls(WRITE, SHELL),
    calls(PLANNED),
    calls(("ExitPlanMode", {}, "exit")),
    calls(("Write", {"file_path": "${workspace}/a.py", "content": "y"}, "again")),
    said(f"The plan waits for your yes:\n\n{PLAN}"),
]


@pytest.mark.parametrize("options", [[], ["--deny"]], ids=["nobody", "deny"])
def test_with_nobody_to_ask_it_stays_in_plan_mode(tmp_path, monkeypatch, capsys, options):
    place = tmp_path / "work"
    place.mkdir()
    monkeypatch.chdir(place)
    path = recording(tmp_path / "c.jsonl", *CUES)
    code = run(["run", "Plan.", "--replay", path, "--permission-mode", "plan", "--output", "stream-json", *options])
    lines = lines_of(capsys.readouterr().out)

    assert code == 0
    assert lines[0]["permissionMode"] == "plan"
    blocks = [block for line in lines if line["type"] == "user" for block in line["message"]["content"]]
    told = {block["tool_use_id"]: str(block["content"]) for block in blocks if block.get("is_error")}
    assert list(told) == ["write", "shell", "exit", "again"]
    assert "Nobody is here to approve the plan" in told["exit"]
    assert "Plan mode stays on" in told["exit"]
    assert "Plan mode is on" in told["again"]
    assert lines[-1]["result"].endswith(PLAN)
    (plan,) = (place / ".ferrule" / "plans").iterdir()
    assert plan.read_text() == PLAN
    assert not (place / "a.py").exists()
    assert not (place / "b.py").exists()


def test_yes_to_all_is_no_approval_of_a_plan_that_nobody_saw(tmp_path, monkeypatch, capsys):
    place = tmp_path / "work"
    place.mkdir()
    monkeypatch.chdir(place)
    path = recording(tmp_path / "c.jsonl", *CUES)

    assert run(["run", "Plan.", "--replay", path, "--permission-mode", "plan", "--yes"]) == 0
    assert capsys.readouterr().out.endswith(PLAN)
    assert not (place / "a.py").exists()
