"""A destructive script is run by an engine in a copy of the tree, taken back, and the tree compared with what it was.

Also a program: `python -m tests.ordinary.restoring` reads one line of JSON that names scripts, and writes a line for
each; so whoever runs it, runs them as that user.
"""

import asyncio
import json
import os
import re
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ferrule import Engine, Reply, Settings
from ferrule.core.errors import ToolFailure
from ferrule.permissions import Answer, Question
from tests.ordinary import worktree
from tests.ordinary.person import ROOT, Person
from tests.ordinary.picture import Picture, differences, picture, removed, told

LIST = ROOT / "tests" / "data" / "destructive_scripts.toml"
AT_LEAST = 200
STAYS_CLOSED = frozenset({"outside", "host", "folder", "planted", "secret", "server"})
"""What nobody says yes to here: nothing of it is needed to destroy or to restore files of the workspace."""
_GIT_WORDS = re.compile(r"\bgit\b|\bHEAD\b|\bbranch|\bstash|\bindex\b|\bcommit", re.IGNORECASE)
_TASK = re.compile(r"ID: (\w+)")
_LIMIT_MS = 60_000
_SECONDS_EACH = 15


class Script(NamedTuple):
    """One row of the list; docs are at its top."""

    category: str
    name: str
    run: str
    git: str = ""
    tree: str = "plain"
    needs: str = ""
    background: bool = False
    timeout: int = _LIMIT_MS
    quiet: bool = False

    @property
    def id(self) -> str:
        return f"{self.category}: {self.name}"

    @property
    def missing(self) -> str:
        """A program that it needs and this machine lacks."""
        return self.needs if self.needs and shutil.which(self.needs) is None else ""


class Outcome(msgspec.Struct, kw_only=True):
    """What came of one script."""

    id: str
    changed: list[str] = []
    """What the script did to the files, in words."""
    is_moved: bool = False
    """Did it do something to what git says?"""
    wrong: list[str] = []
    """What is not as it was after it was taken back; empty where all is."""
    unsaid: str = ""
    """What should have been said and was not."""
    asked: list[str] = []
    skipped: str = ""

    @property
    def good(self) -> bool:
        return not self.wrong and not self.unsaid and not self.skipped


class Wanting:
    """Somebody who wants the files back: a yes to every question that is about the workspace."""

    is_person = True

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def ask(self, question: Question) -> Answer:
        self.asked.append(f"{question.kind}: {question.summary}")
        return Answer(allow=question.kind not in STAYS_CLOSED)


TakeBack = Callable[[Engine, Path], Awaitable[str]]
"""Brings the files of an engine's folder back; gives what was said about it."""


async def by_undo(engine: Engine, _folder: Path) -> str:
    """As a person does: one step back. Where there was nothing to take back, that is what is said."""
    try:
        # Only what is told counts: the entry itself has the command line, and with it git's name.
        return " ".join((await engine.undo()).notes)
    except ToolFailure as refused:
        return f"refused: {refused.message}"


def by_copy(original: Path) -> TakeBack:
    """In the place of undo: the tree is copied anew. It shows what the comparison is worth."""

    async def take_back(_engine: Engine, folder: Path) -> str:
        for name in os.listdir(os.fsencode(folder)):
            path = Path(os.fsdecode(os.path.join(os.fsencode(folder), name)))
            if path.is_dir() and not path.is_symlink():
                removed(path)
            else:
                path.unlink()
        for name in os.listdir(os.fsencode(original)):
            worktree.copied(original / os.fsdecode(name), folder / os.fsdecode(name))
        shutil.copystat(original, folder)
        return "git's HEAD was copied too"

    return take_back


def scripts() -> list[Script]:
    """The list, in its order."""
    found: dict[str, dict[str, Any]] = tomllib.loads(LIST.read_text(encoding="utf-8"))
    return [
        Script(category, name, **({"run": row} if isinstance(row, str) else row))
        for category, rows in found.items()
        for name, row in rows.items()
    ]


def part(every: int) -> list[Script]:
    """A smaller part of the list, with something of each category."""
    by_category: dict[str, list[Script]] = {}
    for script in scripts():
        by_category.setdefault(script.category, []).append(script)
    return [script for rows in by_category.values() for script in rows[::every]]


async def restored(script: Script, trees: dict[str, Path], place: Path, use: str, copy: bool = False) -> Outcome:
    """Run one script in a copy of its tree below `place`, confined by `use`, and take it back."""
    if script.missing:
        return Outcome(id=script.id, skipped=f"there is no {script.missing} on this machine")
    folder = worktree.copied(trees[script.tree], place / "work")
    before = picture(folder, worktree.REMADE)
    said_before = {name: worktree.git_state(folder, name) for name in worktree.REPOSITORIES}
    person = Wanting()
    settings = msgspec.convert({"sandbox": {"use": use}}, Settings)
    try:
        async with Engine(folder, dialect="claude", settings=settings, state=place / "state", ask=person) as engine:
            reply = await _run(engine, script)
            meanwhile = picture(folder, worktree.REMADE)
            is_moved = any(worktree.git_state(folder, name) != said for name, said in said_before.items())
            back = by_copy(trees[script.tree]) if copy else by_undo
            undone = await back(engine, folder)
        after = picture(folder, worktree.REMADE)
        outcome = Outcome(
            id=script.id,
            changed=differences(before, meanwhile)[:5],
            is_moved=is_moved,
            asked=person.asked,
            wrong=differences(before, after)[:20] + list(_git_wrong(script, folder, said_before)),
        )
        moved = is_moved and script.git in ("moves", "breaks") and not _is_whole(folder, said_before)
        outcome.unsaid = "" if copy else _unsaid(script, reply, undone, files=_files(before, meanwhile), moved=moved)
        if outcome.wrong and undone.startswith("refused"):
            outcome.wrong.insert(0, undone)
        if not (outcome.changed or outcome.is_moved or script.quiet):
            outcome.wrong.insert(0, f"the script did nothing: {reply.text[:300]}")
        return outcome
    finally:
        for name in ("work", "state"):
            removed(place / name)


async def _run(engine: Engine, script: Script) -> Reply:
    more = {"run_in_background": True} if script.background else {"timeout": script.timeout}
    reply = await engine.call("Bash", command=script.run, description="A trial", **more)
    task = _TASK.search(reply.text)
    if task is None:
        return reply
    if not script.background:  # out of time, and moved to the background
        return await engine.call("TaskStop", task_id=task[1])
    return await engine.call("TaskOutput", task_id=task[1], block=True, timeout=_LIMIT_MS)


def _is_whole(folder: Path, before: dict[str, str]) -> bool:
    return all(
        worktree.git_state(folder, name) == said and not worktree.unsound(folder, name) for name, said in before.items()
    )


def _git_wrong(script: Script, folder: Path, before: dict[str, str]) -> Iterator[str]:
    """What git says must be as before, but for what only git can move back."""
    if script.git in ("moves", "breaks"):
        return
    for name, said in before.items():
        if script.git == "removes" and (broken := worktree.unsound(folder, name)):
            yield f"git fsck of {name}: {broken}"
        now = worktree.git_state(folder, name)
        if now != said:
            yield f"git in {name} says {' / '.join(now.split(chr(10)))[:200]}"


def _files(before: Picture, after: Picture) -> bool:
    """Has anything changed that is no folder?"""
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    return any(
        row[0] not in ("folder", "git") for path in changed for row in (before.get(path), after.get(path)) if row
    )


def _unsaid(script: Script, reply: Reply, undone: str, *, files: bool, moved: bool) -> str:
    """A command's reply says which files it changed, and who takes it back hears what only git can move back."""
    ended = not script.background and script.timeout == _LIMIT_MS
    if files and ended and (reply.changes is None or not reply.changes.files):
        return "the reply does not say which files changed"
    if moved and not _GIT_WORDS.search(" ".join((*reply.notes, undone))):
        return f"nothing was said of git: {undone[:200]}"
    return ""


def batch(person: Person, chosen: list[Script], use: str, *, copy: bool = False) -> Iterator[Outcome]:
    """Run scripts one after another in a process of a user's own."""
    how = json.dumps({"ids": [script.id for script in chosen], "use": use, "copy": copy})
    env = {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    argv = [sys.executable, "-m", "tests.ordinary.restoring"]
    done = person.run(argv, cwd=person.home, env=env, text=how, seconds=60 + _SECONDS_EACH * len(chosen))
    lines = done.stdout.splitlines()
    if done.returncode or len(lines) != len(chosen):
        raise AssertionError(f"{len(lines)} of {len(chosen)} ended: {done.stderr[-1000:]}")
    yield from (msgspec.json.decode(line, type=Outcome) for line in lines)


async def _main() -> None:
    how = json.loads(sys.stdin.readline())
    known = {script.id: script for script in scripts()}
    with tempfile.TemporaryDirectory(dir=os.path.expanduser("~"), ignore_cleanup_errors=True) as place:
        trees = worktree.built(Path(place, "trees"))
        for number, name in enumerate(how["ids"]):
            here = Path(place, str(number))
            here.mkdir()
            try:
                outcome = await asyncio.wait_for(
                    restored(known[name], trees, here, how["use"], how["copy"]), 4 * _SECONDS_EACH
                )
            except Exception as error:  # noqa: BLE001 - the other scripts go on, and the report says what happened
                outcome = Outcome(id=name, wrong=[f"{type(error).__name__}: {error}"[:500]])
            sys.stdout.write(msgspec.json.encode(outcome).decode() + "\n")
            sys.stdout.flush()
        removed(Path(place, "trees"))


def summary(outcomes: list[Outcome]) -> str:
    """How many are whole again, and what the first ones lack."""
    tried = [one for one in outcomes if not one.skipped]
    bad = [one for one in tried if not one.good]
    words = [f"{len(tried) - len(bad)} of {len(tried)}"]
    words += [f"{one.id}: {told(one.wrong) or one.unsaid}" for one in bad[:4]]
    words += [f"NOT TRIED {one.id}: {one.skipped}" for one in outcomes if one.skipped]
    return "; ".join(words)


if __name__ == "__main__":
    asyncio.run(_main())
