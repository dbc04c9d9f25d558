"""Run a command that can be waited for, written to, observed, left running and ended.

`Launch` says what to start and how, `Finished` holds the result, and `Seeker` looks for a pattern in the output.

A command is ended with SIGTERM first and SIGKILL after that, at the latest when this process itself ends.
"""

import asyncio
import atexit
import errno
import os
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from ferrule.system import proc
from ferrule.system import tree as reaper
from ferrule.system.child import ChildProcess, Reads, Starter, Waiters
from ferrule.system.environment import ProcessLimits, apply_limits, find
from ferrule.system.highlights import OutputHighlights, together
from ferrule.system.stream import Log, OutputDecoder
from ferrule.system.tree import ProcessTree, Roster

_KILLED_SECONDS = 2.0
_LEAVES_SECONDS = 0.02


class Closable(Protocol):
    def close(self) -> None: ...


class Once:
    """Work that is done once, whoever asks for it first; whoever asks for it meanwhile waits for its end."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work: Callable[[], None] | None = work
        self._lock = threading.Lock()

    def __call__(self) -> None:
        with self._lock:
            work, self._work = self._work, None
            if work is not None:
                work()


_living: set[Closable] = set()
_registered: list[bool] = []


def register(running: Closable) -> None:
    """It is closed when this process ends, should nobody have done it by then."""
    _living.add(running)
    if not _registered:
        atexit.register(_close_all)
        _registered.append(True)


def forget(running: Closable) -> None:
    _living.discard(running)


def _close_all() -> None:
    while _living:
        _living.pop().close()


async def end(
    tree: ProcessTree,
    child: ChildProcess,
    survivors: set[int],
    nap: Callable[[float], Awaitable[None]],
    patient: Callable[[], bool],
) -> bool:
    """SIGTERM and, when the patience is over, SIGKILL to whoever lives; was that enough?

    `survivors` gets those that lived: what is about to end by itself when the command has is given a moment before.
    `nap` gives way until that moment of the loop's clock, or less.
    """
    loop = asyncio.get_running_loop()
    if child.ended and ((child.attended is not None and child.attended.alone()) or await _leaves(tree, nap, patient)):
        return True
    for number in (signal.SIGTERM, signal.SIGKILL):
        until = loop.time() + _KILLED_SECONDS
        pause_seconds = 0.001
        told: set[int] | None = None
        while (living := tree.find()) or not child.ended:
            survivors.update(living)
            fresh = set(living).difference(told or ())
            if fresh or told is None:
                tree.signal(number, tuple(fresh))
                told = fresh.union(told or ())
            if not patient() if number == signal.SIGTERM else loop.time() >= until:
                break
            await nap(loop.time() + pause_seconds)
            pause_seconds = min(2 * pause_seconds, 0.05)
        else:
            return True
    return False


async def _leaves(tree: ProcessTree, nap: Callable[[float], Awaitable[None]], patient: Callable[[], bool]) -> bool:
    """Does nothing live any more, now or in a moment? What starts commands may end a moment after them."""
    loop = asyncio.get_running_loop()
    until = loop.time() + _LEAVES_SECONDS
    pause_seconds = 0.001
    while tree.find():
        if loop.time() >= until or not patient():
            return False
        await nap(loop.time() + pause_seconds)
        pause_seconds *= 2
    return True


SAY_SECONDS = 0.1
_SAY_CHARS = 8192


class TextThrottle:
    """Collects the newest text and passes it on with pauses in between."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say_at = 0.0
        """Not before this moment of the loop's clock is it told more."""
        self.waiting = False
        """Is there something to be told?"""
        self.recent = ""
        """The end of all that is certain, told or not."""
        self._say = say
        self._unsaid = self._told = ""

    def hear(self, certain: str) -> None:
        """Something has come: this, or a change of the line that is being written."""
        self.recent = (self.recent + certain[-_SAY_CHARS:])[-_SAY_CHARS:]
        self._unsaid = (self._unsaid + certain[-_SAY_CHARS:])[-_SAY_CHARS:]
        self.waiting = True

    def speak(self, line: str, now: float) -> None:
        """Tell it what has come since, with the line that is being written as it looks now."""
        line = line[-_SAY_CHARS:]
        text = (self._unsaid + line).removeprefix(self._told)[-_SAY_CHARS:]
        self._unsaid, self._told, self.waiting = "", line, False
        if text:
            self.say_at = now + SAY_SECONDS
            self._say(text)


_SEEN_CHARS = 8192
"""What a pattern matches may be so long and lie across two pieces of output."""

Outcome = Literal["ended", "time", "quiet", "found"]


class SearchPattern(Protocol):
    """What can look for something in a text; an `re.Pattern` can."""

    def search(self, string: str, /) -> object | None: ...


class Launch(NamedTuple):
    """What is started, and what is kept of it."""

    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    apart: bool = False
    """Are the errors kept apart from the output?"""
    stdin: Reads = "none"
    log: str | None = None
    """A path where nothing exists yet. It receives the raw bytes; its owner alone can read it."""
    log_limit_bytes: int = 0
    log_late: bool = False
    """Is the log made when the first byte comes?"""
    head_chars: int = 0
    tail_chars: int = 50_000
    limits: ProcessLimits | None = None
    starter: Starter | None = None
    """What starts it; None: as any program is started."""
    descriptors: tuple[int, ...] = ()
    """Inherited under their own numbers, and closed here when it was started or could not be."""
    roster: Roster | None = None
    task: str = ""
    """Under which id the roster lists it."""
    grace_seconds: float = 0.2
    """So long what it left running may still write when it has ended, and so long each has between TERM and KILL."""
    command: str = ""
    """What the roster shows of it, where that is not all of its words."""
    done: Callable[[], None] | None = None
    """Called once on a thread when it was started and all of it has ended; only then it counts as ended."""
    is_done_soon: bool = False
    """Does that take less time than a thread? Then it is called on the loop."""


class Finished(NamedTuple):
    """What came of a command, or has come of it so far."""

    exit_code: int | None
    """As shells count: 128 and the signal's number where a signal ended it. None while it runs."""
    text: str
    """The ends of the output, as a reader would see them, with the errors among it unless those are apart."""
    errors: str
    """The ends of the errors, where they are apart."""
    missing_chars: int
    """Characters of the output that lie between its ends."""
    total_bytes: int
    total_chars: int
    """Characters that a reader would have seen."""
    logged_bytes: int
    timed_out: bool
    survivors_killed: int
    """Processes besides the command that still ran; where they cannot be counted, 1 for all of them."""
    log_error: str | None
    """Why the log ends early, where that is not its limit."""


def begin(launch: Launch, tree: ProcessTree) -> tuple[ChildProcess, Log, str]:
    """Start the process that leads the tree; it, its log and its token in the roster. Raises OSError."""
    roster, token = launch.roster, ""
    if proc.is_ours() and not reaper.adopts():
        reaper.adopt_orphans()
    try:
        log = Log(launch.log, launch.log_limit_bytes, late=launch.log_late)
        try:
            argv = apply_limits(launch.argv, launch.limits)
            if argv is not launch.argv or launch.stdin == "terminal":
                find(launch.argv[0], cwd=launch.cwd, env=launch.env)  # the shell in front would only say it
            if roster is not None:
                command, cwd = launch.command or " ".join(launch.argv), launch.cwd
                token = roster.add(tree, command=command, cwd=cwd, task=launch.task, log=launch.log)
            with tree.number_children():
                child = ChildProcess(
                    argv,
                    cwd=launch.cwd,
                    env=tree.environment(launch.env),
                    apart=launch.apart,
                    session=True,
                    reads=launch.stdin,
                    starter=launch.starter,
                    descriptors=launch.descriptors,
                )
        except BaseException:
            log.discard()
            if roster is not None:
                roster.remove(token)
            raise
    finally:
        for descriptor in launch.descriptors:
            os.close(descriptor)
    tree.lead(child.pid, born=child.attended.born if child.attended is not None else None)
    if roster is not None:
        # The command is starting anyway meanwhile; without this it would be found by its mark.
        asyncio.get_running_loop().call_soon(roster.record_pid, token, child.pid)
    return child, log, token


class Seeker:
    """Looks for a pattern in output that comes piece by piece."""

    def __init__(self, pattern: SearchPattern, texts: Sequence[str]) -> None:
        self.found = any(pattern.search(text) is not None for text in texts)
        self._pattern = pattern
        self._seen: dict[int, str] = {number: text[-_SEEN_CHARS:] for number, text in enumerate(texts)}

    def look(self, stream: int, certain: str, line: str) -> bool:
        """Is it there, now that this has come and the line that is being written looks like that?"""
        if not self.found:
            text = self._seen.get(stream, "") + certain
            self.found = self._pattern.search(text + line) is not None
            self._seen[stream] = text[-_SEEN_CHARS:]
        return self.found


def start(launch: Launch, *, on_output: Callable[[str], None] | None = None) -> "Running":
    """Start a command on the running loop. From then on its output is taken, whether somebody waits for it or not.

    `on_output` gets the newest text while somebody waits, at most ten times a second.

    Raises: FileNotFoundError, NotADirectoryError, PermissionError or another OSError when it cannot start;
    FileExistsError when there is something at the log's path.
    """
    tree = ProcessTree()
    child, log, token = begin(launch, tree)
    return Running(launch, child, tree, log, token, on_output=on_output)


class Running:
    """One command between its start and its last byte, and what was kept of it after that."""

    def __init__(
        self,
        launch: Launch,
        child: ChildProcess,
        tree: ProcessTree,
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
        self._listener = None if on_output is None else TextThrottle(on_output)
        self._shown = [OutputDecoder(launch.head_chars, launch.tail_chars) for _ in child.pipes]
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
        until: SearchPattern | None = None,
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
            self._launch.roster.record_task(self._token, task)

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

    def result(self) -> Finished:
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

    def highlights(self) -> OutputHighlights:
        """The lines of its output that matter."""
        return together([one.highlights() for one in self._shown])

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
