"""A started process (`Child`) and all that it starts (`Tree`): how its end is noticed, and how all of it is ended."""

import asyncio
import contextlib
import errno
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from subprocess import DEVNULL, PIPE, STDOUT, Popen, TimeoutExpired

from ferrule.support.tail import Pipe

MARK = "FERRULE_CALL"
"""The environment variable that names the calls which a process belongs to, outermost first."""

_LOCKS = 10
"""RLIMIT_LOCKS: inherited like every limit, and without any effect since Linux 2.4."""
_FORKS_A_SECOND = 300_000
"""Faster than any machine makes processes and threads: how far process ids can have come in a time."""
_STARTING = threading.RLock()
"""Held while a process starts: no two trees may number the processes of one moment."""


class Child:
    """One process in a group of its own, with nothing to read or one file, and its output on pipes.

    Raises: FileNotFoundError, NotADirectoryError, PermissionError or another OSError when it cannot start.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str] | None,
        apart: bool = False,
        stdin: int | None = None,
        session: bool = False,
    ) -> None:
        """Start it. It has a session and mixes errors into its output, or with `apart` does neither.

        `stdin` is the descriptor of a file for it to read; whoever has one has a session, as with `session`.
        """
        self.ended = False
        """Has the process itself ended? Its pipes may still be held by others."""
        self.pipes: list[Pipe] = []
        """The output and, where they are apart, the errors."""
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._pidfd = -1
        session = session or stdin is not None or not apart
        try:
            with _STARTING:
                self._process = Popen(
                    argv,
                    cwd=cwd,
                    env=env,
                    stdin=DEVNULL if stdin is None else stdin,
                    stdout=PIPE,
                    stderr=PIPE if apart else STDOUT,
                    start_new_session=session,
                    process_group=None if session else 0,
                )
        except ValueError as error:  # a NUL, or a character that no file name can hold
            raise OSError(errno.EINVAL, f"The command cannot be started: {error}") from error
        self.pid = self._process.pid
        try:
            for file in (self._process.stdout, self._process.stderr):
                if file is not None:
                    self.pipes.append(Pipe(file, self._wake))
            self._pidfd = _pidfd(self.pid)
            if self._pidfd >= 0:
                self._loop.add_reader(self._pidfd, self._end)
            else:
                threading.Thread(target=self._await_end, daemon=True).start()
        except BaseException:
            self.close()
            raise

    @property
    def exit_code(self) -> int:
        """As shells count: 128 and the number of the signal that ended it. To be asked last, for it reaps."""
        code = self._process.poll()
        code = -signal.SIGKILL if code is None else code  # it was sent, and the kernel has not got to it
        return 128 - code if code < 0 else code

    async def turn(self, until: float | None = None) -> None:
        """Give way until there is enough to read, a pipe or the process ends, or the clock shows `until`."""
        self._waiter = self._loop.create_future()
        timer = None if until is None else self._loop.call_at(until, self._wake)
        try:
            await self._waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    def close(self) -> None:
        """Kill what is left of the process group, reap the process and let go of every descriptor."""
        for pipe in self.pipes:
            pipe.shut()
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1
        if self._process.returncode is None:  # not reaped: the id of the group is still its own
            _signal_group(self.pid, signal.SIGKILL)
        try:
            self._process.wait(0.1)
        except TimeoutExpired:
            # Not even SIGKILL ends a process that waits for a broken disk. It is reaped when it does end.
            threading.Thread(target=self._process.wait, daemon=True).start()

    def _await_end(self) -> None:
        if hasattr(os, "waitid"):
            # Leaves the process unreaped: nobody else can get its id, or the id of its group, until `close`.
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        else:
            self._process.wait()
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody asks any more
            self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        self.ended = True
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Tree:
    """A command's processes: its group and, on Linux, whoever left it.

    A process belongs when it is in the leader's session, when a limit that the kernel never reads has the tree's
    number, or when the environment it was started with has the tree's mark. The session keeps what job control put
    into other groups, the number outlives `env -i` and programs that write over their environment, and the mark is
    there where limits cannot be set. Until the leader is reaped, no other process gets its id.
    """

    def __init__(self) -> None:
        self._number = 1 << 61 | int.from_bytes(os.urandom(7))
        self._mark = os.urandom(12).hex()
        self._leader = 0
        self._started = 0.0

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """The environment to start the leader with. Marks of outer calls stay, so that those find it too."""
        outer = env.get(MARK)
        return {**env, MARK: f"{outer},{self._mark}" if outer else self._mark}

    @contextlib.contextmanager
    def numbering(self) -> Iterator[None]:
        """What this process starts meanwhile has the tree's number from its first instant."""
        if sys.platform != "linux":
            yield
            return
        import resource  # not on Windows, and only commands need it

        with _STARTING, contextlib.ExitStack() as stack:
            # Refused in some sandboxes: the session and the mark are left then.
            with contextlib.suppress(OSError, ValueError, AttributeError):
                before = resource.prlimit(0, _LOCKS)
                resource.prlimit(0, _LOCKS, (self._number, before[1]))
                stack.callback(resource.prlimit, 0, _LOCKS, before)
            yield

    def lead(self, pid: int) -> None:
        """Take a process that has just been started with `environment` and `numbering` as the leader."""
        self._leader = pid
        self._started = time.monotonic()

    def find(self) -> list[int]:
        """The living processes besides the leader; elsewhere the leader's id stands for its whole group."""
        if sys.platform != "linux":
            return [self._leader] if _signal_group(self._leader, 0) else []
        found: list[int] = []
        candidates = self._candidates()
        for _ in range(3):
            found = [pid for pid in candidates if self._owns(pid) and _lives(pid)]
            before, candidates = candidates, self._candidates()
            if found or candidates == before:  # nobody left, and put a child in its place, while it was looked for
                break
        return found

    def signal(self, number: int, pids: Sequence[int]) -> None:
        """Send a signal to the leader's group and to these processes, if they are still of the tree."""
        _signal_group(self._leader, number)
        if sys.platform == "linux":
            for pid in pids:
                descriptor = _pidfd(pid)
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

    def _candidates(self) -> list[int]:
        """Ids of processes that can be younger than the leader."""
        pids: list[int] = []
        reached = self._leader + 1000 + _FORKS_A_SECOND * (time.monotonic() - self._started)
        with contextlib.suppress(OSError, ValueError):
            pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
            if reached < int(_contents("/proc/sys/kernel/pid_max")):
                return [pid for pid in pids if pid > self._leader]  # ids rise, and did not begin again
        return [pid for pid in pids if pid != self._leader]

    def _owns(self, pid: int) -> bool:
        if sys.platform == "linux":
            import resource  # not on Windows, and only commands need it

            with contextlib.suppress(OSError):
                if os.getsid(pid) == self._leader:
                    return True
                with contextlib.suppress(PermissionError, AttributeError):
                    if resource.prlimit(pid, _LOCKS)[0] == self._number and not self._is_beside(pid):
                        return True
                return self._mark.encode() in _contents(f"/proc/{pid}/environ")
        return False

    def _is_beside(self, pid: int) -> bool:
        """Does it descend from this process, but not through the leader? Another thread started it while numbering."""
        while pid > 1 and pid != self._leader:
            pid = int(_stat(pid)[1])
            if pid == os.getpid():
                return True
        return False


def _pidfd(pid: int) -> int:
    """A descriptor of the process, or -1: an old kernel or Python has none, and descriptors can run out."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            return os.pidfd_open(pid)
    return -1


def _signal_group(leader: int, number: int) -> bool:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if leader > 1:  # 0 would be the group of this very process
            os.killpg(leader, number)
            return True
    return False


def _lives(pid: int) -> bool:
    """Is it more than a zombie? One that fell to this process as its init is reaped."""
    try:
        if _stat(pid)[0] not in {b"Z", b"X"}:
            return True
    except OSError:
        return False
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    return False


def _stat(pid: int) -> list[bytes]:
    """The state of a process, the id of its parent, and more."""
    fields = _contents(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    if not fields:
        raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH), pid)
    return fields


def _contents(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read()
