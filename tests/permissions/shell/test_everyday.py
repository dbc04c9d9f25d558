"""Everyday commands of developers' agents, with the sandbox off: few of them ask, and nothing that only looks like one
of them passes."""

import tomllib
from pathlib import Path

import pytest

from tests.rows import each_row

from .everyday import DATA, Row, Workshop, everyday

ROWS = list(everyday())
LOOKALIKES = [
    command
    for rows in tomllib.loads((DATA / "lookalike_commands.toml").read_text(encoding="utf-8")).values()
    for command in rows["commands"]
]


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("everyday").resolve())


@each_row("row", [pytest.param(row, id=row.command[:60]) for row in ROWS])
def test_an_everyday_command_asks_only_where_it_is_written(workshop: Workshop, row: Row) -> None:
    decision = workshop.say(row.command).decision

    assert (decision.verdict == "ask") == row.asks, decision.why


def test_at_most_a_quarter_of_the_everyday_commands_asks() -> None:
    asking = [row for row in ROWS if row.asks]

    assert len(ROWS) >= 150
    assert len({row.command for row in ROWS}) == len(ROWS)
    assert len(asking) <= len(ROWS) / 4


@each_row("command", [pytest.param(command, id=command[:60]) for command in LOOKALIKES])
def test_what_only_looks_like_an_everyday_command_is_never_allowed(workshop: Workshop, command: str) -> None:
    judged = workshop.say(command)

    assert judged.decision.verdict == "ask", judged.decision.why
    assert not judged.reads_only


def test_there_are_many_lookalikes() -> None:
    assert len(set(LOOKALIKES)) == len(LOOKALIKES) >= 80


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("--color=always", "ls *"),
        ("-n.md", "cat *.md"),
        ("--files0-from=list.py", "wc -l *.py"),
        ("-f.md", "grep x *.md"),
        ("two words.py", "find . -name '*.py' | xargs wc -l"),
        ("src/it's.py", "find src -name '*.py' | xargs grep x"),
        ("src/.env.local", "find src -type f | xargs grep x"),
        ("src/.env.local", "find src -type f -exec grep x {} +"),
    ],
)
def test_a_file_with_an_odd_name_makes_it_ask(tmp_path: Path, name: str, command: str) -> None:
    workshop = Workshop(tmp_path.resolve())
    assert workshop.say(command).decision.verdict == "allow"

    (Path(workshop.top) / name).write_text("x")

    assert workshop.say(command).decision.verdict == "ask"
    assert workshop.say(command, allow=[f"Bash({command.split(maxsplit=1)[0]} *)"]).decision.verdict == "ask"


@pytest.mark.parametrize("command", ["find src | xargs cat", "find src -exec cat {} +", "cat src/*.py"])
def test_a_link_that_leads_out_makes_it_ask(tmp_path: Path, command: str) -> None:
    workshop = Workshop(tmp_path.resolve())
    assert workshop.say(command).decision.verdict == "allow"

    (Path(workshop.top) / "src" / "l.py").symlink_to("/etc/passwd")

    assert workshop.say(command).decision.verdict == "ask"


@pytest.mark.parametrize("command", ["basedpyright src", "isort --check src", "jest", "uv run pytest"])
def test_a_development_program_that_is_not_installed_is_not_asked_about(tmp_path: Path, command: str) -> None:
    workshop = Workshop(tmp_path.resolve())

    assert workshop.say(command).decision.verdict == "allow"
    workshop.programs = f"{workshop.programs}:{workshop.top}/fake/bin"  # where it could come to be
    assert (workshop.say(command).decision.verdict == "ask") == (not command.startswith("uv "))


@pytest.mark.parametrize("wrapper", ["timeout 5", "nice", "env CI=1", "uv run"])
def test_what_leads_to_a_command_has_to_lie_outside_the_workspace(tmp_path: Path, wrapper: str) -> None:
    workshop = Workshop(tmp_path.resolve())
    assert workshop.say(f"{wrapper} pytest -q").decision.verdict == "allow"
    fake = Path(workshop.top) / "fake" / "bin" / wrapper.split(maxsplit=1)[0]
    fake.write_text("#!/bin/sh\n")
    fake.chmod(0o755)

    workshop.programs = f"{fake.parent}:{workshop.programs}"
    (fake.parent / "pytest").unlink()

    assert workshop.say(f"{wrapper} pytest -q").decision.verdict == "ask"
