"""`ferrule skills`: what is listed, and what one of them says."""

import json
from pathlib import Path

import pytest

from ferrule.cli.main import run

HOSTILE = '---\ndescription: "a\\u202eb"\nallowed-tools: "Read(\\u202ex)"\n---\nBody \x1b[2J\u202eend.\n'


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path.resolve() / "work"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.chdir(folder)
    return folder


def put(place: Path, name: str, text: str = "---\ndescription: Does it.\n---\nDo it.\n") -> Path:
    (place / name).mkdir(parents=True)
    (place / name / "SKILL.md").write_text(text, encoding="utf-8")
    return place / name / "SKILL.md"


def test_skills_are_listed_with_whose_they_are(work, tmp_path, capsys):
    put(tmp_path / "home" / ".claude" / "skills", "own")
    put(work / ".agents" / "skills", "theirs-and-longer")
    put(work / ".agents" / "skills", "broken", "no header")

    assert run(["skills"]) == 0
    said = capsys.readouterr()
    assert said.out == (
        "theirs-and-longer  (the project's, not trusted)  Does it.\nown                (yours)  Does it.\n"
    )
    assert said.err.startswith("warning: ")
    assert "broken/SKILL.md is not a skill: it does not begin with a front matter" in said.err


def test_a_project_s_skills_are_trusted_with_its_code(work, capsys):
    put(work / ".agents" / "skills", "theirs")

    assert run(["permissions", "trust"]) == 0
    capsys.readouterr()
    assert run(["skills", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["name"], row["trusted"]) == ("theirs", True)


def test_where_there_are_none_the_places_are_named(work, capsys):
    assert run(["skills", "list"]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert f"{work}/.agents/skills" in said.err


def test_one_skill_is_shown(work, capsys):
    header = "description: Does it.\nargument-hint: <where>\nallowed-tools: Read, Bash(git *)\nhooks: {Stop: []}"
    file = put(work / ".claude" / "skills", "x", f"---\n{header}\ndisable-model-invocation: true\n---\nDo it.\n")

    assert run(["skills", "show", "x"]) == 0
    assert capsys.readouterr().out == (
        f"x  (the project's, not trusted)  {file}\n\nDoes it.\n\n"
        "arguments: <where>\nfor_model: False\nallowed_tools: Read, Bash(git *)\nnot_obeyed: hooks\n\nDo it.\n"
    )


def test_one_skill_as_json(work, capsys):
    file = put(work / ".claude" / "skills", "x")

    assert run(["skills", "show", "x", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "name": "x",
        "description": "Does it.",
        "layer": "project",
        "trusted": False,
        "file": str(file),
        "arguments": "",
        "for_model": True,
        "for_user": True,
        "allowed_tools": [],
        "toolbox": "",
        "servers": "",
        "not_obeyed": [],
        "instructions": "Do it.\n",
    }


@pytest.mark.parametrize("more", [(), ("--json",)], ids=["text", "json"])
def test_what_a_skill_says_cannot_steer_the_terminal(work, capsys, more):
    put(work / ".claude" / "skills", "x", HOSTILE)

    assert run(["skills", "show", "x", *more]) == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "\u202e" not in said


@pytest.mark.parametrize(
    ("words", "error"),
    [
        pytest.param(["show"], "ferrule skills show NAME", id="no-name"),
        pytest.param(["list", "x"], "ferrule skills show NAME", id="a-name-too-many"),
        pytest.param(["show", "deplyo"], "Did you mean deploy?", id="unknown"),
        pytest.param(["--workspace", "nowhere"], "nowhere is not a folder.", id="no-folder"),
    ],
)
def test_a_mistake_is_a_usage_error(work, capsys, words, error):
    put(work / ".claude" / "skills", "deploy")

    assert run(["skills", *words]) == 2
    assert error in capsys.readouterr().err
