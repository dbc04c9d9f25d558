"""The roster: a small file for every process that an engine has started, so that the next one can end what is left.

An engine that is killed ends nothing. Whoever sweeps the roster after it ends what it had started: only processes that
are certain to be the ones of the roster, and none that was detached on purpose.
"""

import contextlib
import json
import os
import signal
import sys
import time
from typing import NamedTuple

from ferrule.system import proc
from ferrule.system.tree import ProcessTree

_COMMAND_CHARS = 500
_GRACE_SECONDS = 0.2
_PAUSE_SECONDS = 0.005
_SUFFIX = ".process"
_TASK = "task "
_TORN_SECONDS = 60


class RosterEntry(NamedTuple):
    """One process that an engine has started, and how to know it again."""

    token: str
    """The name of its file."""
    pid: int
    """0 when the engine died before it could write it down."""
    began: int
    """When it began, in the system's own count; 0 where that is not known."""
    mark: str
    number: int
    engine_pid: int
    engine_began: int
    system: str
    """Which system, since which start and in which namespace: elsewhere the ids mean nothing."""
    command: str
    cwd: str
    started: float
    """As `time.time` has it."""
    task: str
    """The id under which the engine knows it, if it has one."""
    detached: bool
    log: str


class Roster:
    """The processes of all engines that share a folder."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._made = False
        self._count = 0
        self._engine = (0, 0, "")

    def add(
        self,
        tree: ProcessTree,
        *,
        command: str,
        cwd: str,
        task: str = "",
        detached: bool = False,
        log: str | None = None,
    ) -> str:
        """Write down a process that is about to start; its token. "" where nothing can be written: it starts anyway."""
        engine_pid, engine_began, system = self._me()
        self._count += 1
        token = f"{engine_pid}-{self._count}-{tree.mark[:8]}{_SUFFIX}"
        fields = {
            "mark": tree.mark,
            "number": tree.number,
            "engine_pid": engine_pid,
            "engine_began": engine_began,
            "system": system,
            "command": command[:_COMMAND_CHARS],
            "cwd": cwd,
            "started": time.time(),
            "task": task,
            "detached": detached,
            "log": log or "",
        }
        return token if self._write(token, json.dumps(fields) + "\n", os.O_CREAT | os.O_EXCL) else ""

    def record_pid(self, token: str, pid: int) -> None:
        """The process that was written down has this id."""
        if token:
            self._write(token, f"{pid} {proc.start_time(pid)}\n", os.O_APPEND)

    def record_task(self, token: str, task: str) -> None:
        """The process, which was started without one, has become a task with this id."""
        if token:
            self._write(token, f"{_TASK}{task}\n", os.O_APPEND)

    def remove(self, token: str) -> None:
        """The process and all that it started have ended."""
        if token:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(self._folder, token))

    def entries(self) -> list[RosterEntry]:
        """The processes of all engines that still live, oldest first."""
        found = [entry for entry in self._read() if _is_here(entry) and _is_same(entry.pid, entry.began)]
        return sorted(found, key=lambda entry: entry.started)

    def sweep(self) -> list[RosterEntry]:
        """End what dead engines have left running, and take it off the roster; what was ended.

        Blocks until it has ended: a fifth of a second and a little more for what does not want to.
        """
        left: list[tuple[RosterEntry, ProcessTree]] = []
        for entry in self._read():
            if entry.system != self._me()[2]:
                if _is_over(entry.system, self._me()[2]):
                    self.remove(entry.token)
                continue
            if _is_same(entry.engine_pid, entry.engine_began):
                continue
            if entry.detached:
                if not _is_same(entry.pid, entry.began):
                    self.remove(entry.token)
                continue
            tree = _tree(entry)
            if _holds_this_process(entry):
                continue  # this engine itself was started by a command of the dead one
            left.append((entry, tree))
        ended = [entry for entry, tree in left if tree.find()]
        _end([tree for _, tree in left])
        for entry, tree in left:
            if not tree.find():
                self.remove(entry.token)
        self._sweep_torn()
        return ended

    def stop(self, entry: RosterEntry) -> bool:
        """End one process and all that it started, whoever has started it; False if something of it lives on."""
        if not _is_here(entry) or _holds_this_process(entry):
            return False
        tree = _tree(entry)
        _end([tree])
        if tree.find():
            return False
        self.remove(entry.token)
        return True

    def _me(self) -> tuple[int, int, str]:
        if self._engine[0] != os.getpid():  # once, and again in a fork
            self._engine = (os.getpid(), proc.start_time(os.getpid()), proc.this_system())
        return self._engine

    def _write(self, token: str, text: str, flags: int) -> bool:
        flags |= os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
        try:
            if not self._made:
                os.makedirs(self._folder, 0o700, exist_ok=True)
                self._made = True
            descriptor = os.open(os.path.join(self._folder, token), flags, 0o600)
        except OSError:
            self._made = False
            return False
        try:
            os.write(descriptor, text.encode(errors="replace"))
        except OSError:
            return False
        finally:
            os.close(descriptor)
        return True

    def _sweep_torn(self) -> None:
        """Remove what an engine had begun to write when it was killed: nothing had started yet.

        Only after a while: it may be an engine that is writing just now.
        """
        with contextlib.suppress(OSError):
            for name in os.listdir(self._folder):
                path = os.path.join(self._folder, name)
                seen = os.stat(path, follow_symlinks=False)
                is_old = name.endswith(_SUFFIX) and time.time() - seen.st_mtime > _TORN_SECONDS
                if is_old and b"\n" not in proc.contents(path):
                    os.unlink(path)

    def _read(self) -> list[RosterEntry]:
        try:
            names = [name for name in os.listdir(self._folder) if name.endswith(_SUFFIX)]
        except OSError:
            return []
        return [entry for name in sorted(names) if (entry := _entry(self._folder, name)) is not None]


def _entry(folder: str, name: str) -> RosterEntry | None:
    """What a file says; None for a file that somebody else wrote, that was cut short or that is gone."""
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        path = os.path.join(folder, name)
        if hasattr(os, "geteuid") and os.stat(path, follow_symlinks=False).st_uid not in {os.geteuid(), 0}:
            return None  # whoever can write here could have any process killed
        head, _, tail = proc.contents(path).decode().partition("\n")
        lines = tail.split("\n")[:-1]  # what was cut short has no end
        fields = json.loads(head)
        pid = began = 0
        for line in lines:
            if line.startswith(_TASK):
                fields["task"] = line.removeprefix(_TASK)
            else:
                pid, began = map(int, line.split())
        entry = RosterEntry(token=name, pid=pid, began=began, **fields)
        if all(isinstance(value, kind) for value, kind in zip(entry, _KINDS, strict=True)) and len(entry.mark) >= 16:
            return entry
    return None


_KINDS = (str, int, int, str, int, int, int, str, str, str, float, str, bool, str)


def _is_here(entry: RosterEntry) -> bool:
    return entry.system == proc.this_system()


def _is_over(system: str, ours: str) -> bool:
    """Was that an earlier start of this very system? Another namespace of it may still be there."""
    return bool(ours) and system.partition(" ")[0] != ours.partition(" ")[0]


def _is_same(pid: int, began: int) -> bool:
    """Does this very process still live? An id alone proves nothing: it may have been given out again."""
    if sys.platform != "linux":
        return pid > 1 and proc.exists(pid)
    return pid > 1 and began > 0 and proc.start_time(pid) == began and proc.lives(pid)


def _tree(entry: RosterEntry) -> ProcessTree:
    tree = ProcessTree(entry.mark, entry.number)
    sure = _is_same(entry.pid, entry.began) and (sys.platform == "linux" or _is_marked(entry.pid, entry.mark))
    tree.recall(entry.pid, sure=sure)
    return tree


def _is_marked(pid: int, mark: str) -> bool:
    """Where nothing tells when a process began: does it lead its group, with the mark in its environment?"""
    import subprocess  # where there is no /proc, and only after an engine was killed

    with contextlib.suppress(OSError, subprocess.SubprocessError):
        if pid > 1 and os.getpgid(pid) == os.getsid(pid) == pid:
            argv = ["/bin/ps", "-Eww", "-o", "command=", "-p", str(pid)]
            return mark.encode() in subprocess.run(argv, capture_output=True, timeout=5, check=False).stdout
    return False


def _holds_this_process(entry: RosterEntry) -> bool:
    return entry.mark in os.environ.get("FERRULE_CALL", "") or os.getsid(0) == entry.pid


def _end(trees: list[ProcessTree]) -> None:
    for number, seconds in ((signal.SIGTERM, _GRACE_SECONDS), (signal.SIGKILL, 10 * _GRACE_SECONDS)):
        until = time.monotonic() + seconds
        told: set[int] = set()
        while living := [(tree, pids) for tree in trees if (pids := tree.find())]:
            for tree, pids in living:
                if fresh := [pid for pid in pids if pid not in told]:
                    tree.signal(number, fresh)
                    told.update(fresh)
            if time.monotonic() >= until:
                break
            time.sleep(_PAUSE_SECONDS)
        else:
            return
