"""Rewinding, at length: any work in any prompts, and kills at any moment, as every user and in every back end."""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.faults.stage import why_no_strace
from tests.ordinary.person import ROOT, Person
from tests.ordinary.picture import removed
from tests.ordinary.rewinding import PHASES, TRACED, Kill, Prompts, killed, lived, prompts
from tests.ordinary.session import CONFINED

from trials.trial import Place, Row, Trial, tried

WORKS, FEWER_WORKS, KILLS = 300, 60, 80
_MOST_CALLS, _MOST_SYSTEM_CALLS = 150, 40
_LIMIT_SECONDS = 3600


def _rows(place: Place) -> Iterator[Row]:
    yield from place.missing_user("rewind")
    for person, way, why in place.each(("namespaces", "bubblewrap", "landlock", "none")):
        if way in CONFINED and why:
            yield Row(f"{way}, {person.title}", "tried", why, None)
            continue
        count = WORKS if way == "namespaces" else FEWER_WORKS
        what = f"{count} works in random prompts, rewound and back, {way}, {person.title}"
        yield tried(what, "always the same tree", partial(_asked, person, "works", count, way))
        if way == "namespaces":
            what = f"{KILLS} kills at a call through which files are changed, {person.title}"
            yield tried(what, "always the right tree", partial(_asked, person, "kills", KILLS, way))
            what = f"{KILLS} kills at a system call, {person.title}"
            if reason := why_no_strace():
                yield Row(what, "tried", reason, None)
            else:
                yield tried(what, "always the right tree", partial(_asked, person, "traced", KILLS, way))


def _asked(person: Person, subject: str, count: int, use: str) -> tuple[str, bool]:
    """In a process of this user."""
    env = {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    argv = [sys.executable, "-m", "trials.rewind", subject, str(count), use]
    done = person.run(argv, env=env, seconds=_LIMIT_SECONDS)
    if done.returncode:
        return done.stderr.strip()[-300:] or "it failed", False
    said = json.loads(done.stdout.splitlines()[-1])
    return f"{said['tried']} tried, {said['killed']} killed; {said['wrong'] or 'none wrong'}", not said["wrong"]


def _many(subject: str, count: int, use: str) -> dict[str, object]:
    """The property with many examples; the first that does not hold ends it, made small where that can be done."""
    tally = {"tried": 0, "killed": 0}
    # What was killed at one moment is not killed there again for certain: such an example is not made smaller.
    how = (Phase.generate, Phase.shrink) if subject == "works" else (Phase.generate,)
    ran = settings(
        max_examples=count, deadline=None, database=None, phases=how, suppress_health_check=list(HealthCheck)
    )

    @ran
    @given(work=prompts(5), data=st.data())
    def holds(work: Prompts, data: st.DataObject) -> None:
        to = data.draw(st.integers(1, len(work)))
        tally["tried"] += 1
        with tempfile.TemporaryDirectory(dir=os.path.expanduser("~"), ignore_cleanup_errors=True) as name:
            top = Path(name)
            try:
                if subject == "works":
                    wrong = asyncio.run(lived(top, work, to, use))
                else:
                    phase = data.draw(st.sampled_from(PHASES))
                    most = _MOST_SYSTEM_CALLS if subject == "traced" else _MOST_CALLS
                    syscall = data.draw(st.sampled_from(TRACED)) if subject == "traced" else ""
                    was_killed, wrong = killed(
                        top, Kill(work, phase, data.draw(st.integers(1, most)), syscall, use, to)
                    )
                    tally["killed"] += was_killed
            finally:
                removed(top / "work")
        assert not wrong, wrong

    wrong = ""
    try:
        holds()
    except Exception as error:  # noqa: BLE001 - hypothesis wraps what went wrong in several ways
        wrong = str(error) or type(error).__name__
    return {**tally, "wrong": wrong}


TRIAL = Trial(
    "rewind",
    "Random commands and edits in random prompts, then a rewind to any of them and the way back, compared byte for "
    "byte; and the same with the engine killed while a command runs, after it, or while it is rewound.",
    _rows,
)

if __name__ == "__main__":
    print(json.dumps(_many(sys.argv[1], int(sys.argv[2]), sys.argv[3])))
