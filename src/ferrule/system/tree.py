"""Find and end all processes of a command, and keep a roster of them for the next engine.

An engine that is killed ends nothing. Whoever sweeps the roster after it ends what it had started: only processes that
are certain to be the ones of the roster, and none that was detached on purpose.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ferrule.system import proc
from ferrule.system.child import OWN, STARTING

_SET_CHILD_SUBREAPER = 36
_adopting: list[int] = []
"""The process that adopts, where this one does. A fork of it does not: it must ask again."""


def adopt_orphans() -> bool:
    """From now on, a process of a command whose parent has ended becomes a child of this process, not of the init.

    That is for programs that own their process, as the command line does: in a host it would adopt what the host's
    own children abandon. False where the system has no such thing.
    """
    if sys.platform != "linux":
        return False
    import ctypes  # one call in the life of a program

    with contextlib.suppress(OSError, AttributeError):
        if ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0:
            _adopting[:] = [os.getpid()]
            return True
    return False


def adopts() -> bool:
    return _adopting == [os.getpid()]


def inherits() -> bool:
    """Do orphans fall to this process, because it asked for them or because it is the init?"""
    return adopts() or os.getpid() == 1


def is_adopted(pid: int) -> bool:
    """Is it a child of this process that nobody here has started, in a session of its own?

    A program that is run with Python's `subprocess` is in this very session; it is nobody's orphan.
    """
    with contextlib.suppress(OSError, IndexError, ValueError):
        state, parent, _, session = proc.stat(pid)[:4]
        ours = int(parent) == os.getpid() and pid not in OWN
        return ours and (state in {b"Z", b"X"} or int(session) != os.getsid(0))
    return False


MARK = "FERRULE_CALL"
"""The environment variable that names the calls which a process belongs to, outermost first."""

_LOCKS = 10
"""RLIMIT_LOCKS: inherited like every limit, and without any effect since Linux 2.4."""
_FORKS_A_SECOND = 300_000
"""Faster than any machine makes processes and threads: how far process ids can have come in a time."""
_LED: set["ProcessTree"] = set()
"""The trees whose leader was started and that are not left yet."""


class ProcessTree:
    """A command's processes: its group and, on Linux, whoever left it.

    A process belongs when it is in the leader's session, when a limit that the kernel never reads has the tree's
    number, when the environment it was started with has the tree's mark, or when one that belongs has started it. The
    session keeps what job control put into other groups, the number outlives `env -i` and programs that write over
    their environment, and the mark is there where limits cannot be set. Until the leader is reaped, no other process
    gets its id.
    """

    def __init__(self, mark: str = "", number: int = 0) -> None:
        """A new tree, or with its mark and number the one that somebody else started."""
        self.number = number or 1 << 61 | int.from_bytes(os.urandom(7))
        self.mark = mark or os.urandom(12).hex()
        self._leader = 0
        self._session = 0
        self._started = 0.0
        self._began = 0
        self._descended: dict[int, int] = {}
        """Those that belong by descent alone, with their beginnings: nothing else tells when their parent has ended."""

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """The environment to start the leader with. Marks of outer calls stay, so that those find it too."""
        outer = env.get(MARK)
        return {**env, MARK: f"{outer},{self.mark}" if outer else self.mark}

    @contextlib.contextmanager
    def number_children(self) -> Iterator[None]:
        """What this process starts meanwhile has the tree's number from its first instant."""
        if sys.platform != "linux":
            yield
            return
        import resource  # not on Windows, and only commands need it

        with STARTING, contextlib.ExitStack() as stack:
            # Refused in some sandboxes: the session and the mark are left then.
            with contextlib.suppress(OSError, ValueError, AttributeError):
                before = resource.prlimit(0, _LOCKS)
                resource.prlimit(0, _LOCKS, (self.number, before[1]))
                stack.callback(resource.prlimit, 0, _LOCKS, before)
            yield

    def lead(self, pid: int, *, born: float | None = None) -> None:
        """Take a process that has just been started with `environment` and `numbering` as the leader.

        `born`: when its process was made, by the monotonic clock, if that was long before.
        """
        self._leader = self._session = pid
        self._started = time.monotonic() if born is None else born
        _LED.add(self)

    def recall(self, pid: int, *, sure: bool) -> None:
        """Take up a tree that was led elsewhere. `sure`: the leader is still the one that it was."""
        self._session = pid if sure else 0  # it is looked for like the others, so it is not the leader here
        self._started = float("-inf")

    def leave(self) -> None:
        """Its leader is reaped: from now on its id may be another's."""
        _LED.discard(self)
        self._session = 0

    def find(self) -> list[int]:
        """The living processes besides the leader; elsewhere the leader's id stands for its whole group."""
        if sys.platform != "linux":
            return [self._session] if proc.signal_group(self._session, 0) else []
        if self._is_newest():
            return []
        found: list[int] = []
        for _ in range(3):
            candidates = self._candidates()
            owned = [pid for pid in candidates if self._owns(pid)]
            owned += self._descendants(owned, candidates)
            found = [pid for pid in owned if proc.lives(pid)]
            # One that has left since it was listed may have put a child in its place.
            if found or not (owned or not all(map(proc.exists, candidates))):
                break
        return found

    def signal(self, number: int, pids: Sequence[int]) -> None:
        """Send a signal to the leader's group and to these processes, if they are still of the tree."""
        if self._session != os.getpgrp():
            proc.signal_group(self._session, number)
        if sys.platform == "linux":
            for pid in set(pids) - _find_exempt_pids():
                descriptor = proc.pidfd(pid)
                # Asked again now that the descriptor stands for the process: its id may be another's by then.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    if self._owns(pid) and descriptor >= 0 and hasattr(signal, "pidfd_send_signal"):
                        signal.pidfd_send_signal(descriptor, number)
                    elif self._owns(pid):
                        os.kill(pid, number)
                if descriptor >= 0:
                    os.close(descriptor)

    def kill(self) -> None:
        """Kill all of it now. What a dying process had just started is found in another round."""
        known: set[int] = set()
        for _ in range(100):
            fresh = [pid for pid in self.find() if pid not in known]
            self.signal(signal.SIGKILL, fresh)
            if not fresh:
                return
            known.update(fresh)

    def _is_newest(self) -> bool:
        """Has nobody at all started a process since the leader? That is quick to see, where the kernel tells it."""
        if not self._leader or adopts():
            return False
        with contextlib.suppress(OSError, ValueError):
            return int(proc.contents("/proc/sys/kernel/ns_last_pid")) == self._leader
        return False

    def _candidates(self) -> list[int]:
        """Ids of processes that can be younger than the leader.

        They are listed as they rise, and so do the ids of what a process starts: as long as they did not begin again,
        nobody slips through by putting a child in its place while they are listed.
        """
        pids: list[int] = []
        reached = self._leader + 1000 + _FORKS_A_SECOND * (time.monotonic() - self._started)
        with contextlib.suppress(OSError, ValueError):
            pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
            if reached < int(proc.contents("/proc/sys/kernel/pid_max")):
                pids = [pid for pid in pids if pid > self._leader]  # ids rise, and did not begin again
        # Those are older than a leader that was started here, and looking them up takes time.
        spared = {1, os.getpid()} if self._leader else _find_exempt_pids()
        return [pid for pid in pids if pid != self._leader and pid not in spared and not self._is_older(pid)]

    def _is_older(self, pid: int) -> bool:
        """Did it begin before the leader? Only an adopted one can belong all the same."""
        if not self._began and self._leader:
            self._began = proc.start_time(self._leader)
        return not adopts() and 0 < proc.cached_start_time(pid) < self._began

    def _descendants(self, owned: Sequence[int], candidates: Iterable[int]) -> list[int]:
        """Whom the leader or one of these has started, though nothing else says so."""
        others = set(candidates).difference(owned)
        if not others or (not owned and not _is_alive(self._leader)):
            return []
        parents: dict[int, int] = {}
        for pid in others:
            with contextlib.suppress(OSError, IndexError, ValueError):
                parents[pid] = int(proc.stat(pid)[1])
        family = {pid for pid in (*owned, self._leader) if pid > 1}  # the parent of the first processes is 0
        grown = True
        while grown:
            grown = False
            for pid, parent in parents.items():
                if parent in family and pid not in family:
                    family.add(pid)
                    self._descended[pid] = proc.start_time(pid)
                    grown = True
        return [pid for pid in others if pid in family]

    def _owns(self, pid: int) -> bool:
        if sys.platform != "linux":
            return False
        import resource  # not on Windows, and only commands need it

        with contextlib.suppress(OSError):
            if self._session and os.getsid(pid) == self._session:
                return True
            with contextlib.suppress(PermissionError, AttributeError):
                if resource.prlimit(pid, _LOCKS)[0] == self.number and not self._is_beside(pid):
                    return True
            if pid in self._descended and self._descended[pid] == proc.start_time(pid):
                return True
            if self.mark.encode() in proc.contents(f"/proc/{pid}/environ"):
                return True
        # With several trees nobody can tell whose orphan it is: the last one to end takes it.
        return adopts() and {self} == _LED and is_adopted(pid) and not _is_anothers(pid)

    def _is_beside(self, pid: int) -> bool:
        """Does it descend from this process, but not through the leader? Another thread started it while numbering."""
        branch = self._branch(pid)
        if branch <= 1 or (self._leader and branch == self._branch(self._leader, beyond=True)):
            return False
        return not (inherits() and is_adopted(branch))

    def _branch(self, pid: int, *, beyond: bool = False) -> int:
        """The child of this process that it descends from, or it itself; 0 without one, and up to the leader only.

        With `beyond` it is the leader that is asked for: somebody else may have started it for this process.
        """
        while pid > 1 and (beyond or pid != self._leader):
            parent = int(proc.stat(pid)[1])
            if parent == os.getpid():
                return pid
            pid = parent
        return 0


def _is_anothers(pid: int) -> bool:
    """Has it the mark or the number of any tree? What was detached on purpose has, and is nobody's orphan.

    A zombie is nobody's: it only has to be reaped.
    """
    if sys.platform != "linux" or not _is_alive(pid):
        return False
    import resource  # not on Windows, and only commands need it

    try:
        numbered = 1 << 61 <= resource.prlimit(pid, _LOCKS)[0] < 1 << 62
        return numbered or f"{MARK}=".encode() in proc.contents(f"/proc/{pid}/environ")
    except (ProcessLookupError, FileNotFoundError):
        return False  # it is about to be a zombie
    except (OSError, AttributeError):
        return True


def _find_exempt_pids() -> set[int]:
    """Whom no tree ever holds, whatever it seems to: this process, those that it descends from, and the first ones."""
    spared, pid = {0, 1}, os.getpid()
    while pid not in spared:
        spared.add(pid)
        with contextlib.suppress(OSError, IndexError, ValueError):
            pid = int(proc.stat(pid)[1])
    return spared


def _is_alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return proc.stat(pid)[0] not in {b"Z", b"X"}
    return False


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
