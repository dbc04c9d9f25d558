"""The tasks that a small model is tried with: each is broken as it stands, and can be mended in its one file."""

from pathlib import Path

import pytest
from trials.small import SETS, Task, tasks

ALL = [task for file in SETS for task in tasks(file)]


@pytest.mark.parametrize("task", ALL, ids=lambda task: task.name)
def test_a_check_fails_before_the_mend_and_passes_after_it(task: Task, tmp_path: Path) -> None:
    task.lay_out(tmp_path)
    before = task.checked(tmp_path)
    file = tmp_path / task.file
    old, new = task.mend
    text = file.read_text()
    file.write_text(text.replace(old, new))
    after = task.checked(tmp_path)

    assert (bool(before), text.count(old), after) == (True, 1, "")


def test_there_are_twenty_tasks_in_each_set_with_names_of_their_own() -> None:
    assert [len(tasks(file)) for file in SETS] == [20, 20]
    assert len({task.name for task in ALL}) == 40
