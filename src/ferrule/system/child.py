"""Start a child process and manage its pipes or terminal, its input, its signals and its end.

A process is started by Python's `Popen` or by another `Starter`. Children start with default signals, even if
this program was told to ignore or block some of them.
"""

import asyncio
import contextlib
import errno
import os
import signal
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from subprocess import DEVNULL, STDOUT, Popen, TimeoutExpired
from typing import Literal, Protocol, cast

from ferrule.system.proc import let_children_heed, pidfd, signal_group
from ferrule.system.stream import Pipe


class Input:
    """The writing end of a pipe, or the near end of a terminal, on the running event loop."""

    def __init__(self, descriptor: int) -> None:
        """The descriptor is its own from now on."""
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._writing = asyncio.Lock()
        self._waiter: asyncio.Future[None] | None = None
        os.set_blocking(descriptor, False)

    async def write(self, data: bytes, *, seconds: float) -> None:
        """Raises BrokenPipeError when nobody reads any more, TimeoutError when nobody does for so long."""
        left = memoryview(data)
        try:
            async with asyncio.timeout(seconds), self._writing:
                while left:
                    if self._descriptor < 0:
                        raise BrokenPipeError(errno.EPIPE, "The command reads no more")
                    try:
                        left = left[os.write(self._descriptor, left) :]
                    except BlockingIOError:
                        await self._writable()
                    except OSError as error:
                        raise BrokenPipeError(errno.EPIPE, "The command reads no more") from error
        except TimeoutError as error:
            message = f"The command did not read {len(left):,} of {len(data):,} bytes within {seconds:g} seconds"
            raise TimeoutError(errno.ETIMEDOUT, message) from error

    def push(self, data: bytes) -> int:
        """Write what there is room for now, and nothing while somebody else writes; how many bytes that was.

        Raises BrokenPipeError when nobody reads any more.
        """
        if self._writing.locked():
            return 0
        try:
            return os.write(self._descriptor, data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise BrokenPipeError(errno.EPIPE, "The command reads no more") from error

    def close(self) -> None:
        if self._descriptor >= 0:
            self._loop.remove_writer(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1
            self._wake()

    async def _writable(self) -> None:
        self._waiter = self._loop.create_future()
        self._loop.add_writer(self._descriptor, self._wake)
        try:
            await self._waiter
        finally:
            self._waiter = None
            if self._descriptor >= 0:
                self._loop.remove_writer(self._descriptor)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class ProcessHandle(Protocol):
    """A process that was started; `Popen` is one.

    It stays unreaped until it was asked for its exit code after its end: until then its id is its own.
    """

    pid: int
    returncode: int | None
    """As `Popen` has it: negative for a signal, None until it was asked for after the end."""

    def poll(self) -> int | None:
        """The exit code, if it has ended."""

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, when it has ended. Raises `subprocess.TimeoutExpired`."""


class Attended(ProcessHandle, Protocol):
    """A process that somebody attends to: who can end all that it has started, wherever that went."""

    born: float
    """When the process was made, by the monotonic clock: it may have waited for its command."""

    def alone(self) -> bool:
        """To be asked after its end: is it certain that it has left nothing running? Its id stays its own."""

    def end(self) -> None:
        """Kill it and all that it has started. It may block until that was done."""


class Starter(Protocol):
    """Starts processes, each as the leader of a session of its own."""

    def start(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        stdin: int,
        stdout: int,
        stderr: int,
        descriptors: Sequence[int] = (),
    ) -> ProcessHandle:
        """Start a process with these descriptors; those of `descriptors` it inherits under their own numbers.

        Raises OSError when it cannot start; blocks for a moment only.
        """


class Waiters:
    def __init__(self) -> None:
        self._waiters: set[asyncio.Future[None]] = set()

    async def wait(self, until: float | None) -> None:
        """Give way until something has happened, or the clock shows `until`."""
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()
        self._waiters.add(waiter)
        timer = None if until is None else loop.call_at(until, let_go, waiter)
        try:
            await waiter
        finally:
            self._waiters.discard(waiter)
            if timer is not None:
                timer.cancel()

    def wake(self) -> None:
        """It has happened: whoever waits now goes on."""
        for waiter in self._waiters:
            let_go(waiter)


def let_go(waiter: "asyncio.Future[None]") -> None:
    """Have whoever waits go on."""
    if not waiter.done():
        waiter.set_result(None)


Reads = Literal["none", "pipe", "terminal"]
"""What a process finds as its standard input: nothing, what is written to it, or a terminal of its own."""

STARTING = threading.RLock()
"""Held while a process starts: no two trees may number the processes of one moment."""
OWN: set[int] = set()
"""Processes that were started here and are not reaped: nobody adopts these."""

_TERMINAL = 'true 2>/dev/null <"$0"; exec "$@"'
"""The leader of a session that opens a terminal has it as its controlling one. It is open already, and stays so."""
_ROWS, _COLUMNS = 40, 120


class ChildProcess:
    """One process in a group of its own, with its output on pipes or on a terminal.

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
        reads: Reads = "none",
        starter: Starter | None = None,
        descriptors: Sequence[int] = (),
    ) -> None:
        """Start it. It has a session and mixes errors into its output, or with `apart` does neither.

        `stdin` is the descriptor of a file for it to read; whoever has one has a session, as with `session`.
        It inherits `descriptors`.
        """
        self.ended = False
        """Has the process itself ended? Its pipes may still be held by others."""
        self.pipes: list[Pipe] = []
        """The output and, where they are apart, the errors."""
        self.input: Input | None = None
        """Where to write what it shall read, if it reads anything."""
        self.watcher: Callable[[], None] | None = None
        """Called when the process or one of its pipes has ended."""
        self._loop = asyncio.get_running_loop()
        self._waiters = Waiters()
        self._pidfd = -1
        self._starter = starter
        session = session or stdin is not None or not apart
        files = _Files(stdin, reads, apart=apart)
        try:
            try:
                if files.terminal:
                    argv = ["/bin/sh", "-c", _TERMINAL, files.terminal, *argv]
                with STARTING:
                    self._process = self._start(argv, cwd, env, files, descriptors, session=session)
                    self.pid = self._process.pid
                    OWN.add(self.pid)
            finally:
                files.close_theirs()
        except BaseException as error:
            files.close_ours()
            if isinstance(error, ValueError):  # a NUL, or a character that no file name can hold
                raise OSError(errno.EINVAL, f"The command cannot be started: {error}") from error
            raise
        try:
            if files.input >= 0:
                self.input = Input(files.input)
            self.pipes += [Pipe(descriptor, self._wake) for descriptor in files.ours]
            self._pidfd = pidfd(self.pid)
            if self._pidfd >= 0:
                self._loop.add_reader(self._pidfd, self._end)
            else:
                threading.Thread(target=self._await_end, daemon=True).start()
        except BaseException:
            self.close()
            raise

    def _start(
        self,
        argv: Sequence[str],
        cwd: str,
        env: Mapping[str, str] | None,
        files: "_Files",
        descriptors: Sequence[int],
        *,
        session: bool,
    ) -> ProcessHandle:
        if self._starter is None:
            let_children_heed()
            return Popen(
                argv,
                cwd=cwd,
                env=env,
                stdin=files.stdin,
                stdout=files.output,
                stderr=files.errors,
                start_new_session=session,
                process_group=None if session else 0,
                pass_fds=descriptors,
            )
        return self._starter.start(
            argv,
            cwd=cwd,
            env=dict(os.environ) if env is None else env,
            stdin=files.open_descriptor(files.stdin),
            stdout=files.output,
            stderr=files.output if files.errors == STDOUT else files.errors,
            descriptors=descriptors,
        )

    @property
    def attended(self) -> Attended | None:
        """The process, where somebody can end all that it has started."""
        return cast("Attended", self._process) if hasattr(self._process, "end") else None

    @property
    def exit_code(self) -> int:
        """As shells count: 128 and the number of the signal that ended it. To be asked last, for it reaps."""
        code = self._process.poll()
        if code is None and self.ended:
            # Whoever started it may hear of the end a moment after its descriptor told us.
            with contextlib.suppress(TimeoutExpired):
                code = self._process.wait(1.0)
        code = -signal.SIGKILL if code is None else code  # it was sent, and the kernel has not got to it
        return 128 - code if code < 0 else code

    async def turn(self, until: float | None = None) -> None:
        """Give way until there is enough to read, a pipe or the process ends, or the clock shows `until`."""
        await self._waiters.wait(until)

    def close(self) -> None:
        """Kill what is left of the process group, reap the process and let go of every descriptor."""
        for pipe in self.pipes:
            pipe.shut()
        if self.input is not None:
            self.input.close()
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1
        if self._process.returncode is None:  # not reaped: the id of the group is still its own
            signal_group(self.pid, signal.SIGKILL)
        try:
            self._process.wait(0.1)
        except TimeoutExpired:
            # Not even SIGKILL ends a process that waits for a broken disk. It is reaped when it does end.
            threading.Thread(target=self._process.wait, daemon=True).start()
        else:
            OWN.discard(self.pid)

    def _await_end(self) -> None:
        if self._starter is None and hasattr(os, "waitid"):
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
        self._waiters.wake()
        if self.watcher is not None:
            self.watcher()


class _Files:
    """The descriptors of a process that is about to start: its own three, and our ends of them."""

    def __init__(self, stdin: int | None, reads: Reads, *, apart: bool) -> None:
        self.stdin = DEVNULL if stdin is None else stdin
        self.errors = STDOUT
        self.ours: list[int] = []
        """Where its output comes out and, where they are apart, its errors."""
        self.input = -1
        """Where to write what it shall read."""
        self.terminal = ""
        """The path of its terminal, where it has one."""
        self._theirs: list[int] = []
        try:
            if reads == "terminal":
                self._open_terminal()
                return
            if reads == "pipe":
                self.stdin, self.input = os.pipe()
                self._theirs.append(self.stdin)
            self.output = self._pipe()
            if apart:
                self.errors = self._pipe()
        except BaseException:
            self.close_theirs()
            self.close_ours()
            raise

    def open_descriptor(self, descriptor: int) -> int:
        """The descriptor, where nothing is to be read one of the null device."""
        if descriptor == DEVNULL:
            descriptor = os.open(os.devnull, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
            self._theirs.append(descriptor)
        return descriptor

    def close_theirs(self) -> None:
        while self._theirs:
            os.close(self._theirs.pop())

    def close_ours(self) -> None:
        for descriptor in (*self.ours, self.input):
            if descriptor >= 0:
                os.close(descriptor)

    def _pipe(self) -> int:
        reading, writing = os.pipe()
        self.ours.append(reading)
        self._theirs.append(writing)
        return writing

    def _open_terminal(self) -> None:
        import fcntl  # terminals are not on Windows, and few commands want one
        import termios

        near, far = os.openpty()
        self.ours.append(near)
        self._theirs.append(far)
        self.stdin = self.output = self.errors = far
        self.terminal = os.ttyname(far)
        fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
        self.input = os.dup(near)
