"""A command that runs: whoever started it can wait for it, write to it, look at its output, leave it and come back."""

import asyncio
import errno
import time
from collections.abc import Callable

from ferrule.support.child import Child
from ferrule.support.ending import Once, end, forget, register
from ferrule.support.highlights import Found, together
from ferrule.support.launch import Finished, Launch, Outcome, Pattern, Seeker, begin
from ferrule.support.listener import Listener
from ferrule.support.shown import Shown
from ferrule.support.tail import Log
from ferrule.support.tree import Tree
from ferrule.support.waiters import Waiters

__all__ = ["Finished", "Launch", "Outcome", "Pattern", "Running", "start"]


def start(launch: Launch, *, on_output: Callable[[str], None] | None = None) -> "Running":
    """Start a command on the running loop. From then on its output is taken, whether somebody waits for it or not.

    `on_output` gets the newest text while somebody waits, at most ten times a second.

    Raises: FileNotFoundError, NotADirectoryError, PermissionError or another OSError when it cannot start;
    FileExistsError when there is something at the log's path.
    """
    tree = Tree()
    child, log, token = begin(launch, tree)
    return Running(launch, child, tree, log, token, on_output=on_output)


class Running:
    """One command between its start and its last byte, and what was kept of it after that."""

    def __init__(
        self,
        launch: Launch,
        child: Child,
        tree: Tree,
        log: Log,
        token: str,
        *,
        on_output: Callable[[str], None] | None,
    ) -> None:
        self.pid = child.pid
        self.started_at = time.time()
        self.ended = False
        """Has it ended, with all that it had started, and has its output been taken?"""
        self.heard_at = 0.0
        """When the loop's clock last saw output, or the start."""
        self._loop = asyncio.get_running_loop()
        self._launch = launch
        self._child = child
        self._tree = tree
        self._log = log
        self._token = token
        self._listener = None if on_output is None else Listener(on_output)
        self._shown = [Shown(launch.head_chars, launch.tail_chars) for _ in child.pipes]
        self._seekers: list[Seeker] = []
        self._waiters = Waiters()
        self._stirred = Waiters()
        self._ending: asyncio.Task[None] | None = None
        self._tidied = Once(self._tidy)
        self._survivors: set[int] = set()
        self._exit_code: int | None = None
        self._timed_out = False
        self._hurried = self._over = False
        self._is_released = False
        self.heard_at = self._loop.time()
        for number, pipe in enumerate(child.pipes):
            pipe.sink = self._ear(number)
        child.watcher = self._stir
        register(self)

    async def wait(
        self,
        seconds: float | None = None,
        *,
        quiet_seconds: float | None = None,
        until: Pattern | None = None,
        fresh: bool = False,
    ) -> Outcome:
        """Wait for the end, or for at most `seconds`, for so long a silence, or until the output has a pattern.

        `fresh`: only what comes from now on is looked at; else all that is kept of the output. Several may wait at
        once, and giving up waiting does not stop the command.
        """
        deadline = None if seconds is None else self._loop.time() + seconds
        seeker = None if until is None else Seeker(until, [] if fresh else [one.text() for one in self._shown])
        if seeker is not None:
            self._seekers.append(seeker)
        try:
            while True:
                now = self._loop.time()
                self._speak(now)
                if seeker is not None and seeker.found:
                    return "found"
                if self.ended:
                    return "ended"
                if self._is_released or (deadline is not None and now >= deadline):
                    self._is_released = False
                    return "time"
                if quiet_seconds is not None and now >= self.heard_at + quiet_seconds:
                    return "quiet"
                times = [deadline] if deadline is not None else []
                if quiet_seconds is not None:
                    times.append(self.heard_at + quiet_seconds)
                if self._listener is not None and self._listener.waiting:
                    times.append(self._listener.say_at)
                await self._waiters.wait(min(times, default=None))
        finally:
            if seeker is not None:
                self._seekers.remove(seeker)

    async def stop(self, grace_seconds: float | None = None, *, timed_out: bool = False) -> None:
        """End it and all that it started: TERM and, after the grace, KILL. Stopping it twice does no harm.

        Whoever is cancelled here leaves nothing behind: what still lives is killed at once.
        """
        if self.ended:
            return
        if self._ending is None:
            self._timed_out = timed_out and not self._child.ended
            grace_seconds = self._launch.grace_seconds if grace_seconds is None else grace_seconds
            self._ending = asyncio.create_task(self._wind_up(grace_seconds, drain=False))
        try:
            await asyncio.shield(self._ending)
        except asyncio.CancelledError:
            self._hurry()
            raise

    def release(self) -> None:
        """Have whoever waits for it stop waiting, as when the time is up; it goes on running."""
        self._is_released = True
        self._waiters.wake()

    def name(self, task: str) -> None:
        """It is a task from now on: that is what the roster lists it as."""
        if self._launch.roster is not None and not self.ended:
            self._launch.roster.named(self._token, task)

    def abandon(self) -> None:
        """Nobody wants more of its output: whoever writes is told so."""
        for pipe in self._child.pipes:
            pipe.shut()

    def pids(self) -> list[int]:
        """Its processes: the one that was started, and those that belong to it."""
        return [] if self.ended else [self.pid, *self._tree.find()]

    async def write(self, data: bytes, *, seconds: float = 5.0) -> None:
        """Give it something to read. Raises OSError when it reads nothing, has ended, or does not read in time."""
        if self._child.input is None:
            raise OSError(errno.EBADF, "The command was started with nothing to read")
        if self._child.ended:
            raise BrokenPipeError(errno.EPIPE, "The command has ended")
        await self._child.input.write(data, seconds=seconds)

    def close_stdin(self) -> None:
        """There is nothing more for it to read. A terminal stays: its end is a character of its own."""
        if self._launch.stdin == "pipe" and self._child.input is not None:
            self._child.input.close()

    def finished(self) -> Finished:
        """What has come of it; while it runs, what has come of it so far."""
        shown = self._shown
        return Finished(
            exit_code=self._exit_code,
            text=shown[0].text(),
            errors="".join(other.text() for other in shown[1:]),
            missing_chars=sum(one.missing_chars for one in shown),
            total_bytes=sum(one.total_bytes for one in shown),
            total_chars=sum(one.total_chars for one in shown),
            logged_bytes=self._log.logged_bytes,
            timed_out=self._timed_out,
            survivors_killed=len(self._survivors),
            log_error=self._log.error,
        )

    def found(self) -> Found:
        """The lines of its output that matter."""
        return together([one.found() for one in self._shown])

    def news(self) -> str:
        """What it said since this was asked last, where that is much only the ends of it."""
        return "".join(one.news() for one in self._shown)

    @property
    def news_chars(self) -> int:
        """How many characters it had said when news were asked for last, since the time before."""
        return sum(one.news_chars for one in self._shown)

    def close(self) -> None:
        """Kill all of it now, and let go of everything. What was kept stays."""
        if not self.ended:
            self._hurry()
            if self._ending is not None:
                self._ending.cancel()
            self._settle()

    def _ear(self, number: int) -> Callable[[bytes], None]:
        shown, listener = self._shown[number], self._listener

        def hear(data: bytes) -> None:
            self.heard_at = self._loop.time()
            self._log.write(data)
            certain = shown.feed(data)
            found = False
            for seeker in self._seekers:
                found |= seeker.look(number, certain, shown.line)
            if listener is not None:
                found |= not listener.waiting  # whoever waits looks at the clock once, and tells it all at once
                listener.hear(certain)
            if found:
                self._waiters.wake()

        return hear

    def _speak(self, now: float) -> None:
        """Tell the listener, unless it has just been told. It may raise, so it is whoever waits that tells."""
        listener = self._listener
        if listener is not None and listener.waiting and (now >= listener.say_at or self.ended):
            listener.speak(self._shown[0].line, now)

    @property
    def recent(self) -> str:
        """The end of the output as it looks now, where somebody listens."""
        return "" if self._listener is None else self._listener.recent + self._shown[0].line

    def _stir(self) -> None:
        """The process or a pipe has ended."""
        self._stirred.wake()
        if self._child.ended and self._ending is None and not self.ended:
            self._ending = self._loop.create_task(self._wind_up(self._launch.grace_seconds, drain=True))

    async def _wind_up(self, grace_seconds: float, *, drain: bool) -> None:
        child = self._child
        try:
            self._drain()
            until = self._loop.time() + grace_seconds
            while drain and any(pipe.open for pipe in child.pipes) and self._loop.time() < until and not self._hurried:
                await self._stirred.wait(until)
            until = self._loop.time() + grace_seconds
            patient = lambda: not self._hurried and self._loop.time() < until  # noqa: E731 - two words
            self._over = await end(self._tree, child, self._survivors, self._stirred.wait, patient)
            is_alone = child.attended is None or child.attended.alone()
            if not is_alone or not (self._launch.done is None or self._launch.is_done_soon):
                self._part()
                await asyncio.to_thread(self._tidied)
        finally:
            self._settle()

    def _drain(self) -> None:
        for pipe in self._child.pipes:
            pipe.drain()

    def _hurry(self) -> None:
        """No time for manners."""
        self._hurried = True
        if not self._over:
            self._tree.kill()
        self._stirred.wake()

    def _settle(self) -> None:
        if self.ended:
            return
        self._part()
        self._tidied()
        if self._launch.roster is not None:
            self._launch.roster.remove(self._token)
        self.ended = True
        forget(self)
        self._waiters.wake()

    def _tidy(self) -> None:
        """What may take a moment: end what nobody can see from here, and take back what was put there for it."""
        if self._child.attended is not None:
            self._child.attended.end()
        if self._launch.done is not None:
            self._launch.done()

    def _part(self) -> None:
        """Let go of the process."""
        if self._exit_code is not None:
            return
        if not self._over:
            self._tree.kill()
        self._drain()
        for shown in self._shown:
            certain = shown.end()
            if self._listener is not None:
                self._listener.hear(certain)
        self._exit_code = self._child.exit_code
        self._child.close()
        self._tree.leave()
        self._log.close()
