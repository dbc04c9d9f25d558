"""A whole task of an agent that has nothing but a shell asks at most once with the default settings."""

import pytest

from tests.ordinary.person import in_turn
from tests.ordinary.shell_tasks import MOST_QUESTIONS, done, repository, tasks

TASKS = tasks()
SAMPLE = [name for name, task in TASKS.items() if task.files]


@pytest.mark.parametrize(("name", "person"), in_turn(*SAMPLE), indirect=["person"])
def test_a_whole_task_ends_as_it_did_outside_and_asks_at_most_once(person, needs, name):
    needs(person, "namespaces")
    folder = repository(person, name, TASKS[name])
    found = done(person, folder, TASKS[name])

    assert found.other == []
    assert len(found.asked) <= MOST_QUESTIONS, found.asked


def test_there_are_seven_tasks_of_some_forty_commands():
    counts = {name: len(task.commands) for name, task in TASKS.items()}

    assert len(counts) == 7
    assert all(35 <= count <= 45 for count in counts.values()), counts
    assert all(bool(task.files) != bool(task.package) for task in TASKS.values())
