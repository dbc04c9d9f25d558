"""A started process and all that it starts: how output and end are noticed, and how all of it is ended.

`Child` is one process on the running event loop; `Tree` is that process and its descendants.
"""

import asyncio
import contextlib
import errno
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from subprocess import DEVNULL, PIPE, STDOUT, Popen, TimeoutExpired

MARK = "FERRULE_CALL"
"""The environment variable that names the calls which a process belongs to, outermost first."""

_LOCKS = 10
"""RLIMIT_LOCKS: inherited like every limit, and without any effect since Linux 2.4."""
_FORKS_A_SECOND = 300_000
"""Faster than any machine makes processes and threads: how far process ids can have come in a time."""
_PIPE_BYTES = 1 << 16
"""What a pipe holds. Larger pipes and reads were slower when measured: fresh memory for each, and cold caches."""
_SMALL_BYTES, _LULL_SECONDS = 1 << 12, 0.002
"""After a read of less than this, the next waits so long: small writes are left to gather."""


class Child:
    """One process in a group of its own, with nothing to read and its output on pipes.

    Raises: FileNotFoundError, NotADirectoryError, PermissionError or another OSError when it cannot start.
    """

    def __init__(self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str] | None, apart: bool = False) -> None:
        """Start it. It has a session and mixes errors into its output, or with `apart` does neither."""
        self.ended = False
        """Has the process itself ended? Its pipes may still be held by others."""
        self.eager = False
        """Does a turn end with any output, rather than with some amount of it?"""
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._held: dict[int, list[bytes]] = {}
        self._held_bytes = 0
        self._pidfd = -1
        try:
            self._process = Popen(
                argv,
                cwd=cwd,
                env=env,
                stdin=DEVNULL,
                stdout=PIPE,
                stderr=PIPE if apart else STDOUT,
                start_new_session=not apart,
                process_group=0 if apart else None,
            )
        except ValueError as error:  # a NUL, or a character that no file name can hold
            raise OSError(errno.EINVAL, f"The command cannot be started: {error}") from error
        self.pid = self._process.pid
        pipes = (self._process.stdout, self._process.stderr)
        self.open = {pipe.fileno(): pipe for pipe in pipes if pipe is not None}
        """The pipes that more can come from."""
        self.output, self.errors = (*self.open, -1)[:2]
        try:
            for descriptor in self.open:
                os.set_blocking(descriptor, False)
                self._listen(descriptor)
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

    def read(self, descriptor: int) -> bytes:
        """What has come; nothing if nothing has, and at the end, after which the pipe is not open."""
        held = self._held.pop(descriptor, None)
        if held is None:
            return self._pull(descriptor)
        data = b"".join(held)
        self._held_bytes -= len(data)
        return data

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

    def shut(self, descriptor: int) -> None:
        """Take no more from this pipe; whoever still writes to it is told so."""
        pipe = self.open.pop(descriptor, None)
        if pipe is not None:
            self._loop.remove_reader(descriptor)
            pipe.close()

    def close(self) -> None:
        """Kill what is left of the process group, reap the process and let go of every descriptor."""
        for descriptor in tuple(self.open):
            self.shut(descriptor)
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

    def _listen(self, descriptor: int) -> None:
        if descriptor in self.open:
            self._loop.add_reader(descriptor, self._arrive, descriptor)

    def _arrive(self, descriptor: int) -> None:
        if self._held_bytes < _PIPE_BYTES:
            data = self._pull(descriptor)
            if data:
                self._held.setdefault(descriptor, []).append(data)
                self._held_bytes += len(data)
                if len(data) < _SMALL_BYTES and descriptor in self.open:
                    # Waking for every small write would take the processor from the writer.
                    self._loop.remove_reader(descriptor)
                    self._loop.call_later(_LULL_SECONDS, self._listen, descriptor)
        if self.eager or self._held_bytes >= _PIPE_BYTES or descriptor not in self.open:
            self._wake()

    def _pull(self, descriptor: int) -> bytes:
        if descriptor not in self.open:
            return b""
        try:
            data = os.read(descriptor, _PIPE_BYTES)
        except BlockingIOError:
            return b""
        if not data:
            self.shut(descriptor)
        return data

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

    A process belongs when it is in the leader's session, when a limit that the kernel never reads carries the
    tree's number, or when the environment it was started with carries the tree's mark. The session keeps what
    job control put into other groups, the mark is there from the first instant, and the number outlives
    `env -i` and programs that write over their environment. Until the leader is reaped, nobody gets its id.
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

    def lead(self, pid: int) -> None:
        """Take a process that has just been started with `environment` as the leader."""
        self._leader = pid
        self._started = time.monotonic()
        if sys.platform == "linux":
            import resource  # noqa: PLC0415 - not on Windows, and only commands need it

            # Refused in some sandboxes, and for a program with other rights: the mark is left then.
            with contextlib.suppress(OSError, ValueError, AttributeError):
                resource.prlimit(pid, _LOCKS, (self._number, resource.prlimit(pid, _LOCKS)[1]))

    def find(self) -> list[int]:
        """The living processes besides the leader; elsewhere the leader's id stands for its whole group."""
        if sys.platform != "linux":
            return [self._leader] if _signal_group(self._leader, 0) else []
        return [pid for pid in self._candidates() if self._owns(pid) and _lives(pid)]

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
            import resource  # noqa: PLC0415 - not on Windows, and only commands need it

            with contextlib.suppress(OSError):
                if os.getsid(pid) == self._leader:
                    return True
                with contextlib.suppress(PermissionError, AttributeError):
                    if resource.prlimit(pid, _LOCKS)[0] == self._number:
                        return True
                return self._mark.encode() in _contents(f"/proc/{pid}/environ")
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
        state = _contents(f"/proc/{pid}/stat").rpartition(b")")[2].split(None, 1)[0]
    except (OSError, IndexError):
        return False
    if state not in {b"Z", b"X"}:
        return True
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    return False


def _contents(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read()
