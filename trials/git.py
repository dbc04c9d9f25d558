"""git inside the sandbox does what it does outside, in the repositories of real packages."""

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.ordinary.git_work import differences, files, steps
from tests.ordinary.person import Person
from tests.ordinary.session import HIDES, session

from trials.sdists import PACKAGES, copied, fetched, repository
from trials.trial import Place, Row, Trial, tried


def _rows(place: Place) -> Iterator[Row]:
    yield from place.missing_user("git")
    works = {(person.title, way): why for person, way, why in place.each(HIDES)}
    for pin in PACKAGES:
        archive = fetched(place, pin)
        for person in place.people:
            if isinstance(archive, str):
                yield Row(f"{pin}, {person.title}", "fetched", archive, False)
                continue
            folder = person.folder(pin)
            original = repository(person, archive, folder)
            for way in HIDES:
                what = f"{pin}, {way}, {person.title}"
                if works[person.title, way]:
                    yield Row(what, "tried", works[person.title, way], None)
                    continue
                yield tried(what, "all the same", partial(_compared, person, original, folder, way))
            shutil.rmtree(folder, ignore_errors=True)


def _compared(person: Person, original: Path, folder: Path, way: str) -> tuple[str, bool]:
    inside = copied(person, original, folder / "inside")
    outside = copied(person, original, folder / "outside")
    work = steps(*files(person, inside))
    with session(person, inside, way) as opened:
        found = differences(person, opened, inside, outside, work)
    measured = f"{len(work) - len(found)} of {len(work)}"
    if found:
        names = ", ".join(dict.fromkeys(step.name for step, _ in found))
        measured += f"; different: {names}; first `{found[0][0].command}`: {found[0][1]}"
    return measured, not found


TRIAL = Trial(
    "git",
    "The 14 packages as fresh repositories: status, diff, add, commit, stash, checkout, rebase, remote add and config "
    "inside the sandbox, against the same commands on a second copy outside.",
    _rows,
)
