"""The attacks that the tests of the suite make, as every user."""

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial

from tests.ordinary.person import ROOT, Person

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
    yield from place.missing_user("suite")
    for path in SUITE:
        for person in place.people:
            what = f"{path}, {person.title}"
            if (ROOT / path).exists():
                yield tried(what, "all pass", partial(_suite, person, path))
            else:
                yield Row(what, "there", "there is no such file", False)


def _suite(person: Person, path: str) -> tuple[str, bool]:
    """The tests as this user, who may not write the project's folder."""
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--no-header", "--tb=line", "-o", "addopts="]
    argv = [sys.executable, "-m", "pytest", *options, "--basetemp", str(person.home / "pytest"), path]
    env = {"HYPOTHESIS_STORAGE_DIRECTORY": str(person.home / "hypothesis"), "TERM": "dumb"}
    return told(person.run(argv, cwd=ROOT, env=env, seconds=_LIMIT_SECONDS))


def told(done: subprocess.CompletedProcess[str]) -> tuple[str, bool]:
    """What a run of pytest says in the end: how many passed, and which did not."""
    lines = done.stdout.strip().splitlines() or [done.stderr.strip()[-200:] or "nothing"]
    counts = ", ".join(f"{number} {word}" for number, word in _COUNTS.findall(lines[-1])) or lines[-1]
    failed = [line.split()[1] for line in lines if line.startswith(("FAILED ", "ERROR "))]
    return counts + (f": {'; '.join(failed[:5])}" if failed else ""), done.returncode == 0


TRIAL = Trial(
    "suite",
    "The tests of the suite that attack the sandbox, the policy and the files, each in every back end that works here, "
    "as root and as another user.",
    _rows,
)
