"""What a plan wants to be allowed: exact command lines become rules, and everything else is asked about later."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.core.services import Wish
from ferrule.files.jail import Jail
from ferrule.permissions.plan_mode import resolve_wishes
from tests.rows import each_kept_row, each_row

PROJECTS = {
    "python": {"pyproject.toml": "[tool.pytest]\n[tool.ruff]\n[tool.mypy]\n", "uv.lock": ""},
    "bare-python": {"pyproject.toml": "[project]\n"},
    "npm": {"package.json": json.dumps({"scripts": {"test": "x", "build": "x", "lint": "x", "deploy": "x"}})},
    "pnpm": {"package.json": json.dumps({"scripts": {"test": "x"}}), "pnpm-lock.yaml": ""},
    "make": {"Makefile": "CC := gcc\ntest: all\n\techo\nlint:\n\techo\ndeploy:\n\techo\n"},
    "rust": {"Cargo.toml": ""},
    "go": {"go.mod": ""},
    "none": {},
    "broken": {"package.json": "{", "Makefile": "\0"},
}
INTENTS = [
    ("python", "Run tests", ("pytest", "pytest -q")),
    ("python", "run the linter", ("ruff check", "ruff check .")),
    ("python", "Type check", ("mypy", "mypy .")),
    ("python", "format the code", ("ruff format", "ruff format .")),
    ("python", "install dependencies", ("uv sync",)),
    ("python", "Run tests and lint", ("pytest", "pytest -q", "ruff check", "ruff check .")),
    ("python", "run tests and deploy", ()),
    ("bare-python", "lint", ()),
    ("bare-python", "run the unit tests", ("pytest", "pytest -q")),
    ("npm", "run tests", ("npm run test", "npm test")),
    ("npm", "build the project", ("npm run build",)),
    ("npm", "format", ()),
    ("npm", "install dependencies", ("npm install", "npm ci")),
    ("pnpm", "run the test suite", ("pnpm run test", "pnpm test")),
    ("make", "run all tests", ("make test",)),
    ("make", "deploy", ()),
    ("rust", "build", ("cargo build",)),
    ("rust", "run the tests", ("cargo test",)),
    ("go", "run tests", ("go test ./...",)),
    ("go", "linting", ("go vet ./...",)),
    ("none", "run tests", ()),
    ("broken", "run tests", ()),
    ("npm", "push to the remote", ()),
    ("npm", "run anything", ()),
    ("npm", "run integration tests", ()),
]


def lines(tmp_path, prompt, tool="Bash"):
    """The command lines that a wish becomes."""
    found = resolve_wishes([Wish(tool, prompt)], Jail(str(tmp_path)))
    assert bool(found.texts) is (found.asked == ())
    assert all(text.startswith("Bash(") and text.endswith(")") for text in found.texts)
    return tuple(text.removeprefix("Bash(").removesuffix(")") for text in found.texts)


@each_row(("project", "prompt", "expected"), INTENTS)
def test_a_well_known_intent_is_what_the_project_has_for_it(tmp_path, project, prompt, expected):
    for name, text in PROJECTS[project].items():
        (tmp_path / name).write_text(text)

    assert lines(tmp_path, prompt) == expected


@pytest.mark.parametrize(
    "command",
    ["ls -la", "git status", "git diff --stat", "grep -rn name src", "make all", "git commit -m done", "cd src && ls"],
)
def test_a_command_line_becomes_a_rule_for_just_that_line(tmp_path, command, monkeypatch):
    for program in ("git", "make"):
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / program).write_text("#!/bin/sh\n")
        (tmp_path / "bin" / program).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin")
    (tmp_path / "work").mkdir()

    assert lines(tmp_path / "work", command) == (command,)


@each_kept_row
def test_whatever_is_not_plain_is_asked_about(tmp_path, prompt):
    assert lines(tmp_path, prompt) == ()


def test_packages_that_the_project_names_itself_may_be_installed(tmp_path):
    assert lines(tmp_path, "npm install") == ()
    (tmp_path / "package.json").write_text("{}")

    assert lines(tmp_path, "npm install") == ("npm install",)


def test_a_program_of_the_workspace_is_not_granted(tmp_path, monkeypatch):
    (tmp_path / "ls").write_text("#!/bin/sh\n")
    (tmp_path / "ls").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin")

    assert lines(tmp_path, "ls -la") == ()


def test_only_wishes_about_the_shell_become_rules(tmp_path):
    assert lines(tmp_path, "ls -la", tool="Write") == ()


def test_the_same_wish_twice_is_one(tmp_path):
    found = resolve_wishes([Wish("Bash", "ls -la"), Wish("Bash", "ls -la"), Wish("Bash", "x y")], Jail(str(tmp_path)))

    assert (found.texts, found.asked) == (("Bash(ls -la)",), ("x y",))


WORDS = ("run", "tests", "ls", "-la", "git", "push", "&&", ";", "|", "$x", "*", "sh")


@given(prompt=st.text(max_size=40) | st.lists(st.sampled_from(WORDS)).map(" ".join))
def test_no_rule_is_a_pattern_or_runs_what_another_word_says(prompt, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp()
    for text in resolve_wishes([Wish("Bash", prompt)], Jail(str(folder))).texts:
        line = text.removeprefix("Bash(").removesuffix(")")
        assert not set(line) & set("*?$`;|<>()\n\\'\"")
        words = line.split()
        assert words[0] not in {"sh", "push"}  # behind `ls` they are names of files
        assert words[:2] != ["git", "push"]
