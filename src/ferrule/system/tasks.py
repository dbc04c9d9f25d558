"""Keep track of a session's background commands and its shell's folder, and detach commands.

A detached command goes on when the engine ends; it keeps its log and its place in the roster.
"""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

from ferrule.system.child import OWN
from ferrule.system.command import Running
from ferrule.system.environment import find
from ferrule.system.tree import ProcessTree, Roster

Status = Literal["running", "completed", "failed", "killed"]

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_ID_LENGTH = 6
_REMEMBERED = 64
"""Tasks that have ended; of more than these, those go first whose end somebody has been told of."""
_SHOWN_CHARS = 80


def _do_nothing() -> None:
    """Most tasks leave nothing to be taken back."""


class Task:
    """A command that was left running."""

    def __init__(
        self, running: Running, name: str, number: int, *, command: str, cwd: str, description: str, log: str | None
    ) -> None:
        self.running = running
        self.id = name
        self.number = number
        """The same for who counts them."""
        self.pid = running.pid
        self.command = command
        self.cwd = cwd
        self.description = description
        self.log = log
        """Where its raw output is, whole."""
        self.told = False
        """Was the session told of its end?"""
        self.stopped = False
        """Has a call stopped it?"""
        self.began = time.monotonic() - max(0.0, time.time() - running.started_at)
        self.ended: float | None = None
        self.watch: asyncio.Task[None] | None = None

    @property
    def status(self) -> Status:
        if not self.running.ended:
            return "running"
        if self.stopped:
            return "killed"
        return "failed" if self.running.result().exit_code else "completed"

    @property
    def took_seconds(self) -> float:
        """Since its start, or until its end."""
        return (time.monotonic() if self.ended is None else self.ended) - self.began

    @property
    def label(self) -> str:
        """What it is, in a few words on one line."""
        words = " ".join((self.description or self.command).split())
        return words if len(words) <= _SHOWN_CHARS else words[: _SHOWN_CHARS - 1] + "…"

    def describe_end(self) -> str:
        """How it ended, as a sentence."""
        how = "was stopped" if self.stopped else f"ended with exit code {self.running.result().exit_code}"
        return f"Task {self.id} ({self.label}) {how}."


class FolderTracker(Protocol):
    """A command whose last folder is wanted."""

    def crowd(self) -> None:
        """Another one has begun beside it."""


class Tasks:
    """The tasks of one session by id, number or process."""

    def __init__(self, *, most: int = 256) -> None:
        """At most so many of them run at once."""
        self.most = most
        self.folder: str | None = None
        """Where the last command ended whose folder carries over."""
        self.folder_before: str | None = None
        """Where that command began: what `cd -` goes back to."""
        self.walking: list[FolderTracker] = []
        """Commands that run now and whose folder would."""
        self.waited: list[Running] = []
        """Commands that a call waits for, and that may become tasks at once."""
        self._tasks: dict[str, Task] = {}
        self._count = 0

    @property
    def active_count(self) -> int:
        """How many run now."""
        return sum(not task.running.ended for task in self._tasks.values())

    @property
    def has_room(self) -> bool:
        """May another one be left running?"""
        return self.active_count < self.most

    def release(self) -> int:
        """Make a task of every command that a call waits for, as far as there is room; how many."""
        released = [one for one in self.waited if not one.ended][: max(0, self.most - self.active_count)]
        for running in released:
            self.waited.remove(running)
            running.release()
        return len(released)

    def new_id(self) -> str:
        """An id for a command that is or may become a task: easy to type, and not to be guessed."""
        while True:
            made = "b" + "".join(_ALPHABET[byte & 31] for byte in os.urandom(_ID_LENGTH))
            if made not in self._tasks:
                return made

    def add(
        self,
        running: Running,
        name: str,
        *,
        command: str,
        cwd: str,
        description: str = "",
        log: str | None = None,
        done: Callable[[], None] = _do_nothing,
    ) -> Task:
        """Take a running command over, with a `new_id`; it ends with this object at the latest.

        `done` is called after its end.
        """
        self._forget()
        self._count += 1
        task = Task(running, name, self._count, command=command, cwd=cwd, description=description, log=log)
        self._tasks[task.id] = task
        task.watch = asyncio.create_task(_watch(task, done))
        return task

    def get(self, name: str = "", *, number: int | None = None, pid: int | None = None) -> Task | None:
        """The task of that id, number or process; of two that had the same process number, the newer one."""
        if name:
            return self._tasks.get(name)
        found = [
            task for task in self._tasks.values() if (number is not None and task.number == number) or task.pid == pid
        ]
        return found[-1] if found else None

    def list(self) -> Sequence[Task]:
        """All that are remembered, the oldest first."""
        return list(self._tasks.values())

    async def stop(self, task: Task) -> bool:
        """Stop it with all its processes. False where it had ended by itself."""
        if task.running.ended:
            return False
        task.stopped = True
        task.told = True
        await task.running.stop()
        if task.watch is not None:
            await asyncio.wait([task.watch])
        return True

    def take_ended(self) -> Sequence[Task]:
        """Those that have ended since anybody was told; they are given once."""
        fresh = [task for task in self._tasks.values() if task.running.ended and not task.told]
        for task in fresh:
            task.told = True
        return fresh

    async def close(self) -> None:
        """Stop every one of them, side by side, and wait until none is left."""
        tasks, self._tasks = list(self._tasks.values()), {}
        running = [task for task in tasks if not task.running.ended]
        await asyncio.gather(*(task.running.stop() for task in running))
        watches = [task.watch for task in tasks if task.watch is not None]
        if watches:
            await asyncio.wait(watches)
        for task in tasks:
            task.running.close()

    def _forget(self) -> None:
        ended = [task for task in self._tasks.values() if task.running.ended]
        # Python's sorting keeps the order of what is equal: the oldest go first.
        for task in sorted(ended, key=lambda task: not task.told)[: max(0, len(ended) - _REMEMBERED + 1)]:
            task.running.close()
            del self._tasks[task.id]


async def _watch(task: Task, done: Callable[[], None]) -> None:
    try:
        await task.running.wait()
    finally:
        task.ended = time.monotonic()
        done()


_SCRIPT = 'cd -- "$1" || exit; shift; "$@" 2>&1 | { head -c "$0"; exec cat >/dev/null; }'
"""Nobody is there to take its output: what the log has no room for goes nowhere, and the command never waits."""


def start_detached(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    log: str,
    log_limit_bytes: int,
    roster: Roster,
    task: str = "",
) -> int:
    """Start a command that outlives this process; the id of the session that it is in.

    `log` is a path where nothing exists yet. The command is listed in the roster as detached: nothing sweeps it, and
    whoever wants it to end stops its entry.

    Raises: FileNotFoundError, NotADirectoryError, PermissionError or another OSError when it cannot start;
    FileExistsError when there is something at `log`.
    """
    find(argv[0], cwd=cwd, env=env)
    tree = ProcessTree()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    output = os.open(log, flags, 0o600)
    token = roster.add(tree, command=" ".join(argv), cwd=cwd, task=task, detached=True, log=log)
    try:
        with tree.number_children():
            pid = os.posix_spawn(
                "/bin/sh",
                ["sh", "-c", _SCRIPT, str(log_limit_bytes), cwd, *argv],
                tree.environment(env),
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, output, 1),
                    (os.POSIX_SPAWN_DUP2, output, 2),
                ],
                setsid=True,
                setsigdef=[signal.SIGPIPE, *([signal.SIGXFSZ] if hasattr(signal, "SIGXFSZ") else [])],
            )
    except (OSError, ValueError) as error:
        os.unlink(log)
        roster.remove(token)
        raise error if isinstance(error, OSError) else OSError(f"The command cannot be started: {error}") from error
    finally:
        os.close(output)
    OWN.add(pid)
    roster.record_pid(token, pid)
    # As long as this process lives, it is the parent, and nobody else can reap it.
    threading.Thread(target=_reap, args=(roster, token, pid), daemon=True).start()
    return pid


def _reap(roster: Roster, token: str, pid: int) -> None:
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        return
    OWN.discard(pid)
    roster.remove(token)
