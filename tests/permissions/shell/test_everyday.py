"""Everyday commands of developers' agents, with the sandbox off: few of them ask, and nothing that only looks like one
of them passes."""

import tomllib
from pathlib import Path

import pytest

from .everyday import DATA, Workshop, everyday

ROWS = list(everyday())
LOOKALIKES = [
    command
    for rows in tomllib.loads((DATA / "lookalike_commands.toml").read_text(encoding="utf-8")).values()
    for command in rows["commands"]
]


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("everyday").resolve())


@pytest.mark.parametrize("row", [pytest.param(row, id=row.command[:60]) for row in ROWS])
def test_an_everyday_command_asks_only_where_it_is_written(workshop: Workshop, row) -> None:
    decision = workshop.say(row.command).decision

    assert (decision.verdict == "ask") == row.asks, decision.why


def test_at_most_a_quarter_of_the_everyday_commands_asks() -> None:
    asking = [row for row in ROWS if row.asks]

    assert len(ROWS) >= 150
    assert len({row.command for row in ROWS}) == len(ROWS)
    assert len(asking) <= len(ROWS) / 4


@pytest.mark.parametrize("command", [pytest.param(command, id=command[:60]) for command in LOOKALIKES])
def test_what_only_looks_like_an_everyday_command_is_never_allowed(workshop: Workshop, command: str) -> None:
    judged = workshop.say(command)

    assert judged.decision.verdict == "ask", judged.decision.why
    assert not judged.reads_only


def test_there_are_many_lookalikes() -> None:
    assert len(set(LOOKALIKES)) == len(LOOKALIKES) >= 80
