"""How often everyday commands ask, with the sandbox off and by default: `ferrule permissions check` over a list."""

import importlib
import json
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.ordinary.person import ROOT, Person
from tests.ordinary.session import ways_of

from trials.trial import Place, Row, Trial

LIST = ROOT / "tests" / "data" / "everyday_commands.toml"
AT_LEAST = 150
MOST_ASK = 0.25
MOST_ASK_CONFINED = 0.05
"""With the default settings, where commands are confined."""
_UNCONFINED = '[sandbox]\nuse = "none"\n'
_FURNISHING = "tests.permissions.shell.everyday"
"""Who furnishes the project that the list is about: its files, its programs and those of the machine."""


class Command(NamedTuple):
    """One line of the list."""

    group: str
    line: str
    asks: bool


def _rows(place: Place) -> Iterator[Row]:
    if not LIST.exists():
        yield Row("the list of everyday commands", "there", f"{LIST.relative_to(ROOT)} is not there", None)
        return
    commands = list(read(LIST))
    yield Row("commands in the list", f"at least {AT_LEAST}", str(len(commands)), len(commands) >= AT_LEAST)
    for person in place.people:
        with tempfile.TemporaryDirectory(dir=person.home) as folder:
            verdicts = decided(person, Path(folder), commands)
        yield from _told(person.title, commands, verdicts)
        if not any(not why for why in ways_of(person).values()):
            yield Row(f"ask with the default settings, {person.title}", "tried", "nothing confines commands here", None)
            continue
        with tempfile.TemporaryDirectory(dir=person.home) as folder:
            verdicts = decided(person, Path(folder), commands, settings="")
        yield _by_default(person.title, commands, verdicts)


def _by_default(title: str, commands: list[Command], verdicts: list[str]) -> Row:
    asked = [one.line for one, verdict in zip(commands, verdicts, strict=True) if verdict != "allow"]
    share = len(asked) / len(commands)
    shown = f"{share:.1%} ({len(asked)}{': ' if asked else ''}{'; '.join(asked[:8])})"
    limit = f"at most {MOST_ASK_CONFINED:.0%}"
    return Row(f"ask with the default settings, {title}", limit, shown, share <= MOST_ASK_CONFINED)


def _told(title: str, commands: list[Command], verdicts: list[str]) -> Iterator[Row]:
    asked = [one for one, verdict in zip(commands, verdicts, strict=True) if verdict != "allow"]
    share = len(asked) / len(commands)
    limit = f"at most {MOST_ASK:.0%}"
    yield Row(f"ask with the sandbox off, {title}", limit, f"{share:.1%} ({len(asked)})", share <= MOST_ASK)
    surprise = [one.line for one in asked if not one.asks]
    shown = f"{len(surprise)}: {'; '.join(surprise[:8])}" if surprise else "none"
    yield Row(f"ask although the list says that they pass, {title}", "none", shown, not surprise)
    lenient = [one.line for one, verdict in zip(commands, verdicts, strict=True) if one.asks and verdict == "allow"]
    shown = f"{len(lenient)}: {'; '.join(lenient[:8])}" if lenient else "none"
    yield Row(f"pass although the list says that they ask, {title}", "none", shown, not lenient)


def read(path: Path) -> Iterator[Command]:
    """Groups with `passes`, `asks` and, with a reason for each, `never`."""
    groups: dict[str, dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))
    for group, rows in groups.items():
        yield from (Command(group, line, asks=False) for line in rows.get("passes", ()))
        yield from (Command(group, line, asks=True) for line in (*rows.get("asks", ()), *rows.get("never", {})))


def decided(person: Person, top: Path, commands: list[Command], settings: str = _UNCONFINED) -> list[str]:
    """What would happen to each command in such a project with these settings; nothing is run."""
    furnished = importlib.import_module(_FURNISHING)
    work, programs = top / "work", top / "bin"
    for name in (*furnished.FILES, *furnished.EXECUTABLES):
        if not name.startswith(".git/"):
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).write_text("x\n", encoding="utf-8")
    programs.mkdir()
    for path in (*(programs / name for name in furnished.PROGRAMS), *(work / name for name in furnished.EXECUTABLES)):
        path.write_text("#!/bin/sh\n", encoding="utf-8")
        path.chmod(0o755)
    top.chmod(0o755)
    file = top / "settings.toml"
    file.write_text(settings)
    person.give(top)
    person.run(["git", "init", "-q", "."], cwd=work)
    lines = "".join(json.dumps({"tool": "Bash", "input": {"command": one.line}}) + "\n" for one in commands)
    done = person.run(
        [_ferrule(person), "permissions", "check", "-", "--dialect", "claude"],
        cwd=work,
        env={"PATH": str(programs), "FERRULE_SETTINGS": str(file), "FERRULE_STATE": str(top / "state")},
        text=lines,
    )
    found = [json.loads(line)["decision"] for line in done.stdout.splitlines()]
    if len(found) != len(commands):
        raise AssertionError(f"{len(found)} answers to {len(commands)} commands: {done.stderr}")
    return found


def _ferrule(person: Person) -> str:
    """By its path: PATH has only what the project's machine has."""
    return person.env()["PATH"].split(":")[0] + "/ferrule"


TRIAL = Trial(
    "everyday",
    "At least 150 everyday commands with the sandbox off: how many ask, and whether those that the list names do; and "
    "how many ask with the default settings.",
    _rows,
)
