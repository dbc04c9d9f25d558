"""What a trial is: a name, a sentence, and rows; and the machine that it is tried on."""

import os
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tests.ordinary.person import ROOT, Person, UnavailableError, myself, ordinary
from tests.ordinary.session import ways_of

FOLDER = ROOT / ".trials"
"""Everything that is fetched, built or kept."""


class Row(NamedTuple):
    """One thing that was tried."""

    what: str
    expected: str
    measured: str
    ok: bool | None
    """None: it could not be tried on this machine."""


class Place:
    """Where trials run: the folder for what they fetch, and the users that they run as."""

    def __init__(self, people: list[Person], untried: list[str]) -> None:
        self.people = people
        self.untried = untried
        """Why there is no other user, where there is none."""
        FOLDER.mkdir(exist_ok=True)

    def tool(self, name: str) -> Path:
        """A folder for one fetched thing."""
        folder = FOLDER / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def fetch(self, argv: list[str], seconds: float = 900) -> str:
        """Run a program that fetches or installs; its last words where it failed, nothing where it did not."""
        env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        try:
            done = subprocess.run(
                argv,
                cwd=FOLDER,
                env=env,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=seconds,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        return "" if done.returncode == 0 else (done.stderr.strip() or done.stdout.strip() or "failed").splitlines()[-1]

    def each(self, ways: Iterable[str]) -> Iterator[tuple[Person, str, str]]:
        """Every user with every way that confines its commands, and why not where it does not work."""
        for person in self.people:
            why = ways_of(person)
            for way in ways:
                yield person, way, why.get(way, "unknown to this engine")

    def missing_user(self, what: str) -> Iterator[Row]:
        for reason in self.untried:
            yield Row(f"{what}, another user", "tried", reason, None)


class Trial(NamedTuple):
    """One subject."""

    name: str
    description: str
    rows: Callable[[Place], Iterator[Row]]


def places(stack: ExitStack) -> Place:
    """This machine with its users, until the stack is closed."""
    people, untried = [stack.enter_context(myself())], []
    if os.geteuid() == 0:
        try:
            people.append(stack.enter_context(ordinary()))
        except UnavailableError as why:
            untried.append(str(why))
    return Place(people, untried)


def waited(check: Callable[[], object], seconds: float = 20) -> bool:
    """Does it come true in time?"""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if check():
            return True
        time.sleep(0.05)
    return bool(check())


def tried(what: str, expected: str, function: Callable[[], tuple[str, bool | None]]) -> Row:
    """A row of what a function measured; what goes wrong in it is a row that fails."""
    try:
        measured, ok = function()
    except Exception as error:  # noqa: BLE001 - the other rows go on, and the page says what happened
        return Row(what, expected, f"{type(error).__name__}: {error}", False)
    return Row(what, expected, measured, ok)
