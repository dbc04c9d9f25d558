"""What counts as only reading does nothing else when it really runs; `make trials NAMES=flags` tries far more lines."""

import re
from pathlib import Path

import pytest

from ferrule.permissions.shell.programs import table
from tests.rows import each_kept_row

from .flags import Ground, lines, programs

EACH = 2
"""So many lines of each program are run here."""


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    return Ground(tmp_path_factory.mktemp("flags").resolve())


@each_kept_row
def test_a_line_that_does_more_is_not_taken_for_reading(ground: Ground, line: str) -> None:
    assert not ground.only_reads(line)


def test_what_is_taken_for_reading_changes_nothing_and_starts_nothing_here(ground: Ground) -> None:
    # Programs that take long to start are for the trial.
    names = [name for name in programs(ground.path) if not re.match(r"pip|ruff|gh|rustup|sleep|yq", name)]
    reading = [line for name in names for line in _reading(ground, name)]
    deeds = [deed for line in reading for deed in ground.run(line)]

    assert deeds == []
    assert len(reading) > len(names) / 2


def _reading(ground: Ground, name: str) -> list[str]:
    return [line for line in lines(name, 30) if ground.only_reads(line)][:EACH]


def test_the_lines_of_a_program_are_always_the_same() -> None:
    assert list(lines("sort", 20, seed=3)) == list(lines("sort", 20, seed=3))
    assert list(lines("sort", 20, seed=3)) != list(lines("sort", 20, seed=4))


def test_what_a_line_changes_and_starts_is_noticed(tmp_path: Path) -> None:
    ground = Ground(tmp_path.resolve())

    assert [deed.what for deed in ground.run("touch new")] == ["it changed new"]
    assert [deed.what for deed in ground.run("./a.txt")] == ["it changed MARK"]
    assert [deed.what for deed in ground.run("chmod 600 a.txt")] == ["it changed a.txt"]
    assert ground.run("cat a.txt") == []
    assert {name for name in table() if table()[name].harmless} >= set(programs(ground.path))
