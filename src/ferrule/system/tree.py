"""Find and end all processes of a command, and adopt the orphans that commands leave.

A program that owns its process may become the parent of the processes that its commands abandon.
"""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

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
