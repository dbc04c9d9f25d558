"""Whole tasks of an agent that has nothing but a shell, as recorded: how often a person is asked on the way."""

import shutil
import tarfile
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tests.ordinary.person import ROOT, Person
from tests.ordinary.session import YES, session

FOLDER = ROOT / "tests" / "data" / "shell_tasks"
MOST_QUESTIONS = 1
"""At the median of the tasks."""
_COMMIT = "git init -q . && git add -A && git commit -q -m Begin"


class Command(msgspec.Struct):
    """One line, and how it ended when it was recorded, outside of every sandbox."""

    run: str
    code: int


class Task(msgspec.Struct):
    """A repository and what an agent did there."""

    about: str
    commands: list[Command]
    package: str = ""
    """A released package, of which the source archive is the repository."""
    files: dict[str, str] = {}
    """The repository itself, where it is small."""


class Done(NamedTuple):
    """What came of a task."""

    asked: list[str]
    """Every question, with its kind."""
    other: list[str]
    """Commands that ended otherwise than they were recorded."""


def tasks() -> dict[str, Task]:
    """By their names."""
    return {path.stem: msgspec.json.decode(path.read_bytes(), type=Task) for path in sorted(FOLDER.glob("*.json"))}


def repository(person: Person, name: str, task: Task, archive: Path | None = None) -> Path:
    """The task's repository with one commit, which is the person's own."""
    top = person.folder(f"task-{name}")
    folder = top / name
    if archive is not None:
        with tarfile.open(archive) as packed:
            packed.extractall(top, filter="data")
        (folder,) = top.iterdir()
    for path, text in task.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    person.give(top)
    done = person.run(["bash", "-c", _COMMIT], cwd=folder)
    if done.returncode:
        raise AssertionError(f"no repository: {done.stdout}{done.stderr}")
    return folder


def done(person: Person, folder: Path, task: Task, use: str = "auto", **settings: Any) -> Done:
    """The whole task with the default settings. Whether calls may run is answered with yes, and nothing else is."""
    asked, other = [], []
    with session(person, folder, use, settings=settings, yes=YES) as opened:
        for command in task.commands:
            said = opened.bash(command.run)
            asked += [f"{one['kind']}: {one['summary']}" for one in said.asked]
            if said.exit_code != command.code:
                other.append(f"`{command.run[:60]}` ended with {said.exit_code}: {said.output.strip()[-200:]}")
    return Done(asked, other)


def cleared(folder: Path) -> None:
    shutil.rmtree(folder.parent, ignore_errors=True)
