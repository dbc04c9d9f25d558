"""Every attack: those of the suite in every back end and as every user, and new ones."""

import re
import sys
from collections.abc import Iterator
from functools import partial

from tests.ordinary.person import ROOT, Person
from tests.ordinary.planted import ATTACKS, Attack, ground
from tests.ordinary.session import ways_of

from trials.trial import Place, Row, Trial, tried

SUITE = (
    "tests/support/sandbox",
    *(f"tests/tools/test_confined{more}.py" for more in ("", "_files", "_planning", "_tasks", "_walls")),
    "tests/flow/test_attacks.py",
    "tests/flow/test_attacks_dialects.py",
    "tests/agent/test_attacks.py",
    "tests/faults",
)
"""What of the suite attacks; each for every back end that works here."""
_COUNTS = re.compile(r"(\d+) (passed|failed|errors?|skipped|warnings?)")
_LIMIT_SECONDS = 1800


def _rows(place: Place) -> Iterator[Row]:
    yield from place.missing_user("attacks")
    for attack in ATTACKS:
        if attack.comes_through:
            what = f"control: {attack.name}, unconfined, {place.people[0].title}"
            yield tried(what, "comes through", partial(_control, attack, place.people[0]))
    for person in place.people:
        why = ways_of(person)
        for attack in ATTACKS:
            for way in attack.ways:
                what = f"{attack.name}, {way}, {person.title}"
                if way != "none" and why.get(way, "unknown"):
                    yield Row(what, "tried", why.get(way, "unknown to this engine"), None)
                    continue
                yield tried(what, attack.expected, partial(_done, attack, person, way))

    for path in SUITE:
        if (ROOT / path).exists():
            for person in place.people:
                yield tried(f"{path}, {person.title}", "all pass", partial(_suite, person, path))


def _done(attack: Attack, person: Person, way: str) -> tuple[str, bool | None]:
    with ground(person, way) as there:
        return attack.run(there)


def _control(attack: Attack, person: Person) -> tuple[str, bool | None]:
    """An attack that nothing stops: one that cannot succeed at all proves nothing where it fails."""
    with ground(person, "none", control=True) as there:
        measured, held = attack.run(there)
    return measured, held is False


def _suite(person: Person, path: str) -> tuple[str, bool]:
    """The tests as this user, who may not write the project's folder."""
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--no-header", "--tb=line", "-o", "addopts="]
    argv = [sys.executable, "-m", "pytest", *options, "--basetemp", str(person.home / "pytest"), path]
    env = {"HYPOTHESIS_STORAGE_DIRECTORY": str(person.home / "hypothesis"), "TERM": "dumb"}
    done = person.run(argv, cwd=ROOT, env=env, seconds=_LIMIT_SECONDS)
    lines = done.stdout.strip().splitlines() or [done.stderr.strip()[-200:] or "nothing"]
    counts = ", ".join(f"{number} {word}" for number, word in _COUNTS.findall(lines[-1])) or lines[-1]
    failed = [line.split()[1] for line in lines if line.startswith(("FAILED ", "ERROR "))]
    return counts + (f": {'; '.join(failed[:5])}" if failed else ""), done.returncode == 0


TRIAL = Trial(
    "attacks",
    "The attacks of the suite as every user, and new ones on the shared network, /tmp, forwarded ports, caches, "
    "secrets, git's settings, nested repositories and formatters: nothing planted runs outside the walls, and no "
    "secret is read.",
    _rows,
)
