"""List, read, stop and write to background tasks, and run commands that may become tasks.

A task is a command or an agent that works in the background. A command is stopped with all its processes, and an
agent with all its work.

Regular expressions from a model may take for ever to match, so their time is limited.
"""

import errno
import functools
import time
from collections.abc import Sequence
from typing import Any

import regex  # type: ignore[import-untyped]

from ferrule.core.access import Access
from ferrule.core.content import CommandResult
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.services import AgentStatus, Worked, last_words, subagents
from ferrule.core.tool import READS, REPLACES, RUNS, Args, Context, Tool
from ferrule.system import Threads
from ferrule.system.environment import describe_limit
from ferrule.system.tasks import Task, Tasks
from ferrule.tools.shell import Left, TaskList, TaskRead, TaskSeen, TaskStatus, TaskStopped
from ferrule.tools.shell.command import (
    KEPT_CHARS,
    begin,
    count_printed_lines,
    leave,
    run_with_approval,
    snapshot_task,
    token_chars,
    truncate_middle,
)

_LISTED = 20
_LABEL_CHARS = 80


class TaskArgs(Args, frozen=True, kw_only=True):
    task_id: str = ""
    number: int | None = None
    """Instead of the id, for families that count their sessions."""
    pid: int | None = None
    """Instead of the id, for families that go by processes."""


def find(args: TaskArgs, ctx: Context) -> Task:
    """The task. Raises with the tasks that there are."""
    found = find_task_or_agent(args, ctx)
    if isinstance(found, Worked):
        raise ToolFailure(f"{found.id} is an agent and no command; it can only be read and stopped.", code="is-agent")
    return found


def find_task_or_agent(args: TaskArgs, ctx: Context) -> Task | Worked:
    """The task, or the agent as it stands. Raises with those that there are."""
    tasks, name = ctx.need(Tasks), args.task_id.strip()
    names = {"task_id": args.task_id or None, "number": args.number, "pid": args.pid}
    given = {key: value for key, value in names.items() if value is not None}
    if not given:
        raise BadArguments(f"{ctx.param('task_id')}: required, but missing.")
    task = tasks.get(name, number=args.number, pid=args.pid)
    if task is not None:
        return task
    works = subagents(ctx).list()
    agent = next((one for one in works if name and one.id == name), None)
    if agent is None:
        shown = ", ".join(f"{ctx.param(key)} {value}" for key, value in given.items())
        by = next(iter(given))
        known = _describe_tasks(tasks.list(), by, works if by == "task_id" else ())
        raise ToolFailure(f"There is no task with {shown}. {known}", code="unknown-task")
    return agent


_STANDS: dict[AgentStatus, TaskStatus] = {
    "running": "running",
    "completed": "completed",
    "failed": "failed",
    "stopped": "killed",
}


def snapshot_agent(worked: Worked, output: str = "", *, total_chars: int = 0) -> TaskSeen:
    """An agent of the background as a task."""
    return TaskSeen(
        id=worked.id,
        number=0,
        pid=0,
        command=agent_label(worked),
        cwd="",
        status=_STANDS[worked.status],
        output=output,
        description=worked.description,
        took=worked.seconds,
        total_chars=total_chars,
        kind="agent",
    )


def agent_label(worked: Worked) -> str:
    """What it is, in a few words on one line."""
    words = " ".join((worked.description or worked.name).split())
    return words if len(words) <= _LABEL_CHARS else words[: _LABEL_CHARS - 1] + "…"


def _describe_tasks(tasks: Sequence[Task], by: str, works: Sequence[Worked] = ()) -> str:
    if not tasks and not works:
        return "This session has no tasks."
    names = {"task_id": "id"}
    rows = [f"{getattr(task, names.get(by, by))} ({task.label}, {task.status})" for task in tasks]
    rows += [f"{one.id} ({agent_label(one)}, {_STANDS[one.status]})" for one in works]
    more = f" and {len(rows) - _LISTED} older ones" if len(rows) > _LISTED else ""
    return f"There are: {', '.join(rows[-_LISTED:])}{more}."


class ShellListArgs(Args, frozen=True, kw_only=True):
    pass


class ShellList(Tool[ShellListArgs, TaskList]):
    """Those that run, and those that ended and are remembered."""

    name = "shell_list"
    args = ShellListArgs
    title = "List running commands"
    hints = READS

    def access(self, args: ShellListArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - it touches nothing
        return ()

    async def run(self, args: ShellListArgs, ctx: Context) -> TaskList:  # noqa: ARG002 - it has none
        agents = map(snapshot_agent, subagents(ctx).list())
        return TaskList((*map(snapshot_task, ctx.need(Tasks).list()), *agents))


_CHARS = 1_000
_LOOK_SECONDS = 0.1
"""For one look at new output, on the event loop."""
_LINES_SECONDS = 2.0
"""For all lines, on a thread."""


class OutputPattern:
    """One expression. It looks at new output, and picks lines."""

    def __init__(self, text: str, called: str) -> None:
        """`called` is the parameter's name, for words about it."""
        self._called = called
        self._is_slow = False
        if len(text) > _CHARS:
            raise ToolFailure(f"{called}: has more than {_CHARS:,} characters.", code="bad-pattern")
        try:
            self._compiled: Any = regex.compile(text, regex.MULTILINE)
        except (regex.error, OverflowError, RecursionError) as error:
            raise ToolFailure(f"{called}: is no regular expression: {error}.", code="bad-pattern") from error

    def search(self, string: str, /) -> Any:
        """Is it there? Also yes where it takes too long to tell; `check` says so then."""
        if self._is_slow:
            return True
        try:
            return self._compiled.search(string, timeout=_LOOK_SECONDS)
        except TimeoutError:
            self._is_slow = True
            return True

    def check(self) -> None:
        """Raise where a look took too long."""
        if self._is_slow:
            raise ToolFailure(f"{self._called}: takes too long to look for; write it simpler.", code="bad-pattern")

    def lines(self, text: str) -> str:
        """The lines in which it is."""
        lines = text.splitlines(keepends=True)
        return "".join(lines[at] for at in self.where(lines))

    def where(self, lines: Sequence[str]) -> list[int]:
        """The places of the lines in which it is, from 0."""
        until = time.monotonic() + _LINES_SECONDS
        found = []
        for at, line in enumerate(lines):
            try:
                if self._compiled.search(line, timeout=max(0.001, until - time.monotonic()), concurrent=True):
                    found.append(at)
            except TimeoutError:
                self._is_slow = True
                self.check()
        return found


_MOST_SECONDS = 600.0


class ShellOutputArgs(TaskArgs, frozen=True, kw_only=True):
    block: bool = False
    """Is its end waited for?"""
    seconds: float = 30.0
    """For so long at most."""
    until: str | None = None
    """Or until it has printed what this regular expression matches."""
    news: bool = False
    """Only what was not told before?"""
    only: str | None = None
    """Only lines that this regular expression matches."""
    lines: int | None = None
    """Only so many of the last lines."""
    most_chars: int = 30_000


class ShellOutput(Tool[ShellOutputArgs, TaskRead]):
    """It waits for no other call, and no other waits for it."""

    name = "shell_output"
    args = ShellOutputArgs
    title = "Read a running command's output"
    hints = READS
    timed = False
    extras = ("task_id", "number", "until")

    def access(self, args: ShellOutputArgs, ctx: Context) -> tuple[Access, ...]:
        task = find_task_or_agent(args, ctx)  # before it waits for anything
        if isinstance(task, Worked) and args.until is not None:
            raise BadArguments(f"{ctx.param('until')}: {task.id} is an agent; only its end can be waited for.")
        if args.seconds < 0:
            raise BadArguments(f"{ctx.param('seconds')}: must be at least 0.")
        if args.lines is not None and args.lines < 1:
            raise BadArguments(f"{ctx.param('lines')}: must be at least 1.")
        for name, pattern in (("until", args.until), ("only", args.only)):
            if pattern is not None:
                OutputPattern(pattern, ctx.param(name))
        return ()

    async def run(self, args: ShellOutputArgs, ctx: Context) -> TaskRead:
        task, begun = find_task_or_agent(args, ctx), time.perf_counter()
        if isinstance(task, Worked):
            return await self._read_agent(task, args, ctx)
        until = None if args.until is None else OutputPattern(args.until, ctx.param("until"))
        waits = args.block or until is not None
        why = await task.running.wait(min(args.seconds, _MOST_SECONDS) if waits else 0.0, until=until)
        if until is not None:
            until.check()
        news, finished = task.running.news(), task.running.result()
        output = news if args.news else finished.text + finished.errors
        is_whole = args.only is None and args.lines is None
        total_chars = (task.running.news_chars if args.news else finished.total_chars) if is_whole else 0
        found = task.running.highlights if is_whole and not args.news else None
        output = await _select_lines(output, args, ctx)
        task.told = task.told or task.running.ended
        return TaskRead(
            snapshot_task(
                task,
                truncate_middle(output, args.most_chars, total_chars, found),
                total_chars=max(total_chars, len(output)),
            ),
            "running" if why in ("time", "quiet") and not waits else "time" if why == "quiet" else why,
            time.perf_counter() - begun,
        )

    async def _read_agent(self, agent: Worked, args: ShellOutputArgs, ctx: Context) -> TaskRead:
        begun = time.perf_counter()
        now = await subagents(ctx).poll(agent.id, min(args.seconds, _MOST_SECONDS) if args.block else 0.0) or agent
        output = await _select_lines(last_words(now), args, ctx)
        return TaskRead(
            snapshot_agent(now, truncate_middle(output, args.most_chars), total_chars=len(output)),
            "ended" if now.status != "running" else "time" if args.block else "running",
            time.perf_counter() - begun,
        )


async def _select_lines(output: str, args: ShellOutputArgs, ctx: Context) -> str:
    """The lines of it that the caller wants."""
    if args.only is not None:
        output = await ctx.need(Threads).run(OutputPattern(args.only, ctx.param("only")).lines, output)
    if args.lines is not None:
        output = "".join(output.splitlines(keepends=True)[-args.lines :])
    return output


class ShellStopArgs(TaskArgs, frozen=True, kw_only=True):
    pass


class ShellStop(Tool[ShellStopArgs, TaskStopped]):
    """All processes of the task end: first they are told to, and a moment later they are killed."""

    name = "shell_stop"
    args = ShellStopArgs
    title = "End a running command"
    hints = REPLACES
    extras = ("number", "pid")

    def access(self, args: ShellStopArgs, ctx: Context) -> tuple[Access, ...]:
        # The session's own: who was let start it may stop it.
        return (Access("process", "write", find_task_or_agent(args, ctx).id, "own"),)

    async def run(self, args: ShellStopArgs, ctx: Context) -> TaskStopped:
        task = find_task_or_agent(args, ctx)
        if isinstance(task, Worked):
            return await _stop(task, ctx)
        if not await ctx.need(Tasks).stop(task):
            raise ToolFailure(f"There is nothing to stop: {task.describe_end()}", code="not-running")
        return TaskStopped(snapshot_task(task))


async def _stop(agent: Worked, ctx: Context) -> TaskStopped:
    stopped = await subagents(ctx).stop(agent.id) if agent.status == "running" else None
    if stopped is None:
        raise ToolFailure(
            f"There is nothing to stop: the agent {agent.id} ({agent_label(agent)}) has ended.", code="not-running"
        )
    return TaskStopped(snapshot_agent(stopped, stopped.text, total_chars=len(stopped.text)))


_TYPED_SECONDS, _LOOKED_SECONDS, _SHELL_WRITE_MOST_SECONDS = 0.25, 5.0, 300.0
_ENDING = "\x03\x04\x1c"
"""What interrupts a program, ends its input or makes it quit."""


class ShellWriteArgs(TaskArgs, frozen=True, kw_only=True):
    chars: str = ""
    """What to type; nothing to look only."""
    seconds: float | None = None
    """After this time the call comes back."""
    most_tokens: float = 10_000


class ShellWrite(Tool[ShellWriteArgs, TaskRead]):
    """What is typed into a shell or an interpreter is run by it, so it is asked about like a command."""

    name = "shell_write"
    args = ShellWriteArgs
    title = "Type into a running command"
    hints = RUNS
    timed = False
    extras = ("task_id", "pid")

    def access(self, args: ShellWriteArgs, ctx: Context) -> tuple[Access, ...]:
        task = find(args, ctx)
        if args.most_tokens < 1:
            raise BadArguments(f"{ctx.param('most_tokens')}: must be at least 1.")
        if not args.chars:
            return (Access("process", "read", task.id),)
        if not args.chars.strip(_ENDING):
            # Who was let start it may end it.
            return (Access("process", "write", task.id, "own"),)
        return (Access.process(task.id),)

    async def run(self, args: ShellWriteArgs, ctx: Context) -> TaskRead:
        task, begun = find(args, ctx), time.perf_counter()
        if args.chars:
            if task.running.ended:
                raise ToolFailure(f"Nothing was typed: {task.describe_end()}", code="not-running")
            try:
                await task.running.write(args.chars.encode(errors="surrogateescape"))
            except OSError as error:
                if error.errno == errno.EBADF and not args.chars.strip(_ENDING):
                    await ctx.need(Tasks).stop(task)  # without a terminal nobody makes a signal of it
                    return TaskRead(snapshot_task(task, task.running.news()), "ended", time.perf_counter() - begun)
                raise ToolFailure(_unread(task.label, error), code="no-stdin") from error
        seconds = (_TYPED_SECONDS if args.chars else _LOOKED_SECONDS) if args.seconds is None else args.seconds
        why = await task.running.wait(min(max(seconds, 0.0), _SHELL_WRITE_MOST_SECONDS))
        news = task.running.news()
        task.told = task.told or task.running.ended
        total_chars = task.running.news_chars
        shown = truncate_middle(news, token_chars(args.most_tokens), total_chars)
        return TaskRead(
            snapshot_task(task, shown, total_chars=total_chars),
            "ended" if why == "ended" else "time",
            time.perf_counter() - begun,
        )


def _unread(label: str, error: OSError) -> str:
    if error.errno == errno.EBADF:
        return f"{label} reads nothing: it was started without a terminal. Start it again with one to type into it."
    return f"{label} did not take it: {error.strerror}."


_LEAST_SECONDS, _SHELL_SESSION_MOST_SECONDS = 0.25, 30.0


class ShellSessionArgs(Args, frozen=True, kw_only=True):
    command: str
    cwd: str = "."
    seconds: float = 10.0
    """After this time the call comes back, and the command goes on."""
    terminal: bool = False
    """Does it have a terminal, which can be typed into?"""
    most_tokens: float = 10_000
    outside: bool = False
    """Does it run outside of what confines commands?"""
    description: str = ""


class ShellSession(Tool[ShellSessionArgs, CommandResult | Left]):
    """What has not ended in time becomes a task."""

    name = "shell_session"
    args = ShellSessionArgs
    title = "Run a command in a session"
    hints = RUNS
    timed = False

    def access(self, args: ShellSessionArgs, ctx: Context) -> tuple[Access, ...]:
        if not args.command.strip():
            raise ToolFailure("The command is empty.")
        if args.most_tokens < 1:
            raise BadArguments(f"{ctx.param('most_tokens')}: must be at least 1.")
        cwd = ctx.path(args.cwd)
        return (Access.command(args.command, cwd), Access.read(cwd))

    async def run(self, args: ShellSessionArgs, ctx: Context) -> CommandResult | Left:
        return await run_with_approval(functools.partial(self._once, args, ctx), ctx, outside=args.outside)

    async def _once(self, args: ShellSessionArgs, ctx: Context, outside: bool) -> CommandResult | Left:  # noqa: FBT001 - `Once`
        begun = await begin(
            args.command,
            ctx,
            cwd=ctx.path(args.cwd),
            head_chars=KEPT_CHARS,
            tail_chars=KEPT_CHARS,
            stdin="terminal" if args.terminal else "none",
            outside=outside,
            may_stay=True,
        )
        begun_at = time.perf_counter()
        seconds = min(max(args.seconds, _LEAST_SECONDS), _SHELL_SESSION_MOST_SECONDS)
        try:
            why = await begun.running.wait(seconds)
            has_room = ctx.need(Tasks).has_room
            if why != "ended" and not has_room:
                await begun.running.stop()
        except BaseException:
            await begun.abandon()
            raise
        news = begun.running.news()
        total_chars = begun.running.news_chars
        shown = truncate_middle(news, token_chars(args.most_tokens), total_chars, begun.running.highlights)
        if why != "ended" and has_room:
            task = leave(begun, ctx, args.description)
            return Left(snapshot_task(task, shown, total_chars=total_chars), after=seconds)
        begun.close()
        finished = begun.running.result()
        assert finished.exit_code is not None
        if why != "ended":
            ctx.note(f"It was stopped, for {ctx.need(Tasks).most} tasks run already (shell.background_max).")
        if finished.survivors_killed and why == "ended":
            ctx.note("Processes that the command left running were stopped.")
        if limit := describe_limit(begun.limits, finished.exit_code, finished.text):
            ctx.note(limit)
        if (finished.missing_chars or len(shown) < len(news)) and not finished.log_error:
            ctx.keep_log(finished.logged_bytes)
        took = time.perf_counter() - begun_at
        timed_out = seconds if why != "ended" else None
        total_chars = max(finished.total_chars, total_chars)
        lines = count_printed_lines(begun, finished)
        return CommandResult(
            begun.command, begun.cwd, shown, finished.exit_code, timed_out, "", took, None, total_chars, lines
        )
