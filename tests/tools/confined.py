"""Engines whose commands are confined in each of the ways there are, and what is looked at from outside."""

import asyncio
import os
import stat
import uuid
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from ferrule import Engine, Settings
from ferrule.core.call import Reply
from ferrule.permissions import Question
from ferrule.sandbox import report

WAYS = ("none", "landlock", "namespaces", "bubblewrap")
CONFINED = WAYS[1:]
SPAWNED = ("landlock", "namespaces")
HIDES = WAYS[2:]
"""Those that can take a file out of a folder that can be written."""
LIMIT_SECONDS = 60
LONG_MS = 20_000


class Bounded(Engine):
    """An engine whose messages end: what goes on running must not keep a test from failing."""

    async def run(self, calls, *, approved=()):
        async with asyncio.timeout(LIMIT_SECONDS):
            return await super().run(calls, approved=approved)


def yes(question: Question) -> bool:
    """Somebody who lets everything run, and nothing outside."""
    return question.kind == "call"


@asynccontextmanager
async def opened(folder: Path, use: str, *, dialect="claude", ask=yes, state: Path | None = None, **shell):
    """An engine on the folder `work` below this one."""
    work = folder / "work"
    work.mkdir(exist_ok=True)
    settings = msgspec.convert({"sandbox": {"use": use}, "shell": shell}, Settings)
    state = state or folder / "state"
    async with Bounded(work, dialect=dialect, settings=settings, state=state, ask=ask) as engine:
        await has_it(engine, use)
        yield engine


async def has_it(engine: Engine, use: str) -> None:
    """Where this machine cannot confine commands this way, none runs, and the test has nothing else to say."""
    why = {row.name: row.why for row in report() if not row.works}.get(use)
    if why is not None:
        name = "exec_command" if engine.dialect.name == "codex" else "Bash"
        reply = await engine.call(name, **{"command" if engine.dialect.name == "claude" else "cmd": "echo ran > ran"})
        assert reply.error is not None
        assert reply.error.error_code == "no-sandbox"
        assert not os.path.exists(os.path.join(engine.jail.folder, "ran"))
        pytest.skip(f"NOT PROVEN HERE: {use} does not work on this machine, and every command was refused. {why}")


def said(reply: Reply) -> str:
    return reply.text if reply.error is None else reply.error.message


def new_mark() -> str:
    """An argument for `sleep` by which its processes are known."""
    return f"98{uuid.uuid4().int % 10**6:06}.{uuid.uuid4().int % 10**6:06}"


def living(mark: str) -> list[int]:
    """The processes that have this word."""
    return [pid for pid in processes() if mark.encode() in _words(pid)]


def processes() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdecimal())


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in {b"Z", b"X"}
    except OSError:
        return False


def _words(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def placeholders(folder: Path) -> list[Path]:
    """What is held free for the time of a command."""
    return [Path(path, name) for path, names, _ in os.walk(folder) for name in names if _is_held(Path(path, name))]


def _is_held(path: Path) -> bool:
    try:
        return stat.S_IMODE(path.lstat().st_mode) == 0o1500
    except FileNotFoundError:
        return False


async def eventually(check: Callable[[], object]) -> None:
    async with asyncio.timeout(LIMIT_SECONDS):
        while not check():
            await asyncio.sleep(0)


def nothing_is_left(folder: Path, mark: str) -> None:
    assert living(mark) == []
    assert placeholders(folder / "work") == []
