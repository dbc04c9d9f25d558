"""Whole tasks of a shell-only agent with the default settings: questions per task, and whether all went as recorded."""

import statistics
from collections.abc import Iterator

from tests.ordinary.person import Person
from tests.ordinary.shell_tasks import MOST_QUESTIONS, Done, Task, cleared, done, repository, tasks

from trials.sdists import fetched
from trials.trial import Place, Row, Trial


def _rows(place: Place) -> Iterator[Row]:
    yield from place.missing_user("tasks")
    for person in place.people:
        counts: list[int] = []
        for name, task in tasks().items():
            what = f"{name}: {len(task.commands)} commands, {person.title}"
            found = _done(place, person, name, task)
            if isinstance(found, str):
                yield Row(what, "tried", found, False)
                continue
            counts.append(len(found.asked))
            told = f"{len(found.asked)} questions" + (f" ({'; '.join(found.asked[:3])})" if found.asked else "")
            wrong = f"; {len(found.other)} ended otherwise: {found.other[0]}" if found.other else ""
            yield Row(what, "ends as recorded", told + wrong, not found.other)
        median = statistics.median(counts) if counts else float("inf")
        expected = f"at most {MOST_QUESTIONS} at the median"
        yield Row(
            f"questions for each task, {person.title}", expected, f"{median:g} of {counts}", median <= MOST_QUESTIONS
        )


def _done(place: Place, person: Person, name: str, task: Task) -> Done | str:
    archive = fetched(place, task.package) if task.package else None
    if isinstance(archive, str):
        return archive
    folder = repository(person, name, task, archive)
    try:
        return done(person, folder, task)
    except Exception as error:  # noqa: BLE001 - the other tasks go on, and the page says what happened
        return f"{type(error).__name__}: {error}"
    finally:
        cleared(folder)


TRIAL = Trial(
    "tasks",
    "Recorded tasks of some 40 commands each, as an agent works that has nothing but a shell: reading, searching, "
    "here-documents, sed, scripts, tests and git in real repositories, with the default settings.",
    _rows,
)
