"""Run a server as a child process with flow control on its output and a complete shutdown.

Output and errors come through pipes that can be paused, so that a server that writes too much has to wait.
`Pace` limits how much unrequested data a process may send in a second before it has to wait.
"""

import asyncio
import contextlib
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from subprocess import Popen

from ferrule.system.child import ProcessHandle, Starter, Waiters
from ferrule.system.command import Launch, begin, end, forget, register
from ferrule.system.proc import let_children_heed
from ferrule.system.tree import ProcessTree


class Piping:
    """A starter that gives a process pipes of its own in place of those it is told, whoever else starts it."""

    def __init__(self, inner: Starter | None = None) -> None:
        """`inner` does the starting; without one the process starts as any program does."""
        self.output = self.errors = -1
        """Our ends of the pipes, once it was started. Whoever started it owns them."""
        self._inner = inner

    def start(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        stdin: int,
        stdout: int,  # noqa: ARG002 - nobody writes there
        stderr: int,  # noqa: ARG002 - nor there
        descriptors: Sequence[int] = (),
    ) -> ProcessHandle:
        theirs: list[int] = []
        ours: list[int] = []
        try:
            for _ in range(2):
                reading, writing = os.pipe()
                ours.append(reading)
                theirs.append(writing)
            process = self._begin(argv, cwd, env, (stdin, *theirs), descriptors)
        except BaseException:
            for descriptor in ours:
                os.close(descriptor)
            raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        self.output, self.errors = ours
        return process

    def _begin(
        self,
        argv: Sequence[str],
        cwd: str,
        env: Mapping[str, str],
        three: tuple[int, ...],
        descriptors: Sequence[int],
    ) -> ProcessHandle:
        stdin, output, errors = three
        if self._inner is not None:
            return self._inner.start(
                argv, cwd=cwd, env=env, stdin=stdin, stdout=output, stderr=errors, descriptors=descriptors
            )
        let_children_heed()
        return Popen(
            argv,
            cwd=cwd,
            env=env,
            stdin=stdin,
            stdout=output,
            stderr=errors,
            start_new_session=True,
            pass_fds=descriptors,
        )


_READ_BYTES = 1 << 16
_LAST_READS = 64
"""Reads of what is left when the writer is gone: a pipe can have been made larger."""


class Spout:
    """Gives what comes to a sink, as it comes, on the running event loop."""

    def __init__(self, descriptor: int, sink: Callable[[bytes], None], end: Callable[[], None]) -> None:
        """The descriptor is its own from now on; `end` is called when nobody can write any more."""
        self.open = True
        self._descriptor = descriptor
        self._sink = sink
        self._end = end
        self._stops: set[str] = set()
        self._loop = asyncio.get_running_loop()
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._arrive)

    def stop(self, reason: str) -> None:
        """Take nothing until every reason that was given is gone."""
        if self.open and not self._stops:
            self._loop.remove_reader(self._descriptor)
        self._stops.add(reason)

    def resume(self, reason: str) -> None:
        if reason in self._stops:
            self._stops.remove(reason)
            if self.open and not self._stops:
                self._loop.add_reader(self._descriptor, self._arrive)

    def drain(self) -> None:
        """Give the sink what is there now."""
        for _ in range(_LAST_READS):
            if not self._pull():
                return

    def shut(self) -> None:
        """Take no more; whoever still writes is told so."""
        if self.open:
            self.open = False
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)

    def _arrive(self) -> None:
        self._pull()
        if not self.open:
            self._end()

    def _pull(self) -> bool:
        data = b""
        if self.open:
            with contextlib.suppress(BlockingIOError):
                data = os.read(self._descriptor, _READ_BYTES)
                if not data:
                    self.shut()
            if data:
                self._sink(data)
        return bool(data)


_SECOND_BYTES = 64 << 20
FRAME_BYTES = 5_000
"""What a message costs beyond its bytes: it is decoded."""
QUESTION_BYTES = 64 << 10
"""What a question costs: it is answered."""


class Pace:
    """Stops whoever sends too much until the second is over. A flood costs this process little, and others nothing."""

    def __init__(self, spouts: Sequence[Spout]) -> None:
        self._loop = asyncio.get_running_loop()
        self._spouts = spouts
        self._since = self._loop.time()
        self._spent_bytes = 0
        self._timer: asyncio.TimerHandle | None = None

    def spend(self, size_bytes: int) -> None:
        now = self._loop.time()
        if now - self._since >= 1.0:
            self._since, self._spent_bytes = now, 0
        self._spent_bytes += size_bytes
        if self._spent_bytes > _SECOND_BYTES and self._timer is None:
            for spout in self._spouts:
                spout.stop("pace")
            self._timer = self._loop.call_at(self._since + 1.0, self._go_on)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _go_on(self) -> None:
        self._timer = None
        self._since, self._spent_bytes = self._loop.time(), 0
        for spout in self._spouts:
            spout.resume("pace")


GRACE_SECONDS = 0.5
"""So long a server has to end by itself when its input is closed, and again after TERM."""
_LATE_SECONDS = 0.2
_PATIENCE_SECONDS = 1e6
"""How long a message may take to be read: whoever waits for the answer has a time limit of their own."""


class Served:
    """One process from its start to its last child. What it says and what becomes of it is its kind's to know."""

    def __init__(self, launch: Launch) -> None:
        """Start it on the running loop; `launch.stdin` is to be a pipe.

        Raises: FileNotFoundError, NotADirectoryError, PermissionError or another OSError when it cannot start.
        """
        self.why = ""
        """Why it can answer no more, as the end of a sentence about it; empty while it can."""
        self._backlog: deque[bytes] = deque()
        self._backlog_bytes = 0
        self._writer: asyncio.Task[None] | None = None
        self._stirred = Waiters()
        self._stopping = self._settled = False
        self._exit_code = 0
        self._loop = asyncio.get_running_loop()
        self._tree = ProcessTree()
        self._roster = launch.roster
        piping = Piping(launch.starter)
        self._child, _, self._token = begin(launch._replace(starter=piping), self._tree)
        self.pid = self._child.pid
        self._output = Spout(piping.output, self._read, self._stir)
        self._errors = Spout(piping.errors, self._read_errors, self._stir)
        self._pace = Pace((self._output, self._errors))
        self._child.watcher = self._stir
        register(self)

    def fail(self, why: str) -> None:
        """It is to end, for what it did: `why` is the end of a sentence about it."""
        if not self.why and not self._stopping:
            self.why = why
            self._output.stop("over")
            self._on_failure()

    def close(self) -> None:
        """Kill all of it now, and let go of everything."""
        raise NotImplementedError

    def _hear(self, data: bytes) -> None:
        """Of its output, while it can answer."""
        raise NotImplementedError

    def _complain(self, data: bytes) -> None:
        """Of its standard error."""
        raise NotImplementedError

    def _on_exit(self) -> None:
        """It has ended by itself, and all that it said was heard."""
        raise NotImplementedError

    def _on_failure(self) -> None:
        """Called once when it can answer no more."""
        raise NotImplementedError

    def _wrote(self) -> None:
        """It has read one message of the backlog."""

    def _queue(self, data: bytes) -> None:
        """Have it read this after what it has not read yet."""
        self._backlog.append(data)
        self._backlog_bytes += len(data)
        if self._writer is None or self._writer.done():
            self._writer = self._loop.create_task(self._write())

    async def _wait_and_end(self) -> None:
        """Its input is closed: after a while, end it and all that it has started."""
        await self._wait_until_ended()
        until = self._loop.time() + GRACE_SECONDS
        await end(self._tree, self._child, set(), self._stirred.wait, lambda: self._loop.time() < until)

    def _part(self) -> None:
        """Kill what is left of it, and let go of it."""
        if self._settled:
            return
        self._settled = True
        self._tree.kill()
        self._pace.close()
        for pipe in (self._output, self._errors):
            pipe.drain()
            pipe.shut()
        if self._writer is not None:
            self._writer.cancel()
        self._exit_code = self._child.exit_code  # it is reaped by being asked: from now on its id may be another's
        self._child.close()
        self._tree.leave()
        if self._roster is not None:
            self._roster.remove(self._token)
        forget(self)

    def _how(self) -> str:
        """How it ended, once that is known."""
        code = self._exit_code
        return f"was ended by signal {code - 128}" if code > 128 else f"ended with exit code {code}"

    def _read(self, data: bytes) -> None:
        if not self.why and not self._stopping:
            self._hear(data)

    def _read_errors(self, data: bytes) -> None:
        self._complain(data)
        self._pace.spend(len(data))

    def _stir(self) -> None:
        """The process or one of its pipes has ended."""
        self._stirred.wake()
        if self.why or self._stopping:
            return
        if self._child.ended:
            self._output.drain()
            self._errors.drain()
            self._on_exit()
        elif not self._output.open:
            # A process that ends closes its output first, and how it ended says more.
            self._loop.call_later(_LATE_SECONDS, self.fail, "closed its output")

    async def _write(self) -> None:
        assert self._child.input is not None
        try:
            while self._backlog:
                await self._child.input.write(self._backlog[0], seconds=_PATIENCE_SECONDS)
                self._backlog_bytes -= len(self._backlog.popleft())
                self._wrote()
        except OSError:
            if not self._child.ended:
                await self._wait_until_ended()  # its end says more
            self.fail("reads no more")

    async def _wait_until_ended(self) -> None:
        until = self._loop.time() + GRACE_SECONDS
        while not self._child.ended and self._loop.time() < until:
            await self._stirred.wait(until)
