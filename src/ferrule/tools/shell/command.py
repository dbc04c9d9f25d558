"""Start commands for all shell tools: shell, environment, limits, sandbox, folder and ports.

bash reports the folder that a command ends in on a pipe when it exits, so the command itself is not changed.

A command that outlives the session is not confined, so the user is always asked about it.

Ports that commands listen on are told in the reply and forwarded to the user. If the sandbox stops a command,
the reply says what was denied and the user may let it through.
"""

import asyncio
import contextlib
import os
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from ferrule.core.content import CommandResult
from ferrule.core.errors import ToolFailure
from ferrule.core.tool import Context
from ferrule.files.jail import Jail
from ferrule.git.environment import git_variables
from ferrule.sandbox import Wrapped, do_nothing
from ferrule.sandbox.confinement import Confinement
from ferrule.settings import Settings
from ferrule.system.command import Finished, Launch, Running, start
from ferrule.system.environment import ProcessLimits, Variables, quiet_environment, shell
from ferrule.system.folder import describe
from ferrule.system.highlights import OutputHighlights, gap, insert_highlights
from ferrule.system.tasks import Task, Tasks, start_detached
from ferrule.system.tree import Roster
from ferrule.tools.shell import Left, TaskSeen

if TYPE_CHECKING:
    from ferrule.system.child import Starter


_SCRIPT = os.path.join(os.path.dirname(__file__), "carry.bash")
_PATH_BYTES = 1 << 13
_MOVES = re.compile(r"(?<![\w./-])(?:cd|pushd|popd|source|\.|eval|builtin|exec|z|j)(?![\w./-])")
"""Words by which a shell may come to end in another folder; where they mean something else, only time is lost."""


class Carrier:
    """A pipe from one shell. Whoever has made it closes it."""

    def __init__(self) -> None:
        self._alone = True
        self._reading, self._writing = os.pipe()
        self._said = b""
        os.set_blocking(self._reading, False)

    def set_out(self, ctx: Context) -> None:
        """Somebody waits for the command."""
        others = ctx.need(Tasks).walking
        self._alone = not others
        for other in others:
            other.crowd()
        others.append(self)

    def crowd(self) -> None:
        """Another command runs beside this one: where they end would depend on which is faster."""
        self._alone = False

    @property
    def env(self) -> Mapping[str, str]:
        """What the shell finds in its environment, and takes out of it before the command runs."""
        return {"BASH_ENV": _SCRIPT, "CARRIED_FOLDER_DESCRIPTOR": str(self._writing)}

    def hand_over(self) -> int:
        """The end that the shell inherits. Whoever starts the shell closes it."""
        writing, self._writing = self._writing, -1
        return writing

    def carry(self, cwd: str, ctx: Context) -> None:
        """Remember where the command has ended, if the session may be there."""
        ended_in, jail = self._folder(), ctx.need(Jail)
        if ended_in is None or ended_in == cwd or not self._alone:
            return
        if jail.holds(ended_in) and os.path.realpath(ended_in) == ended_in and os.path.isdir(ended_in):
            ctx.need(Tasks).folder, ctx.need(Tasks).folder_before = ended_in, cwd
            return
        ctx.need(Tasks).folder = None
        ctx.note(f"Shell cwd was reset to {jail.folder}")

    def _folder(self) -> str | None:
        """Where the shell was when it exited; None where it did not say."""
        path = os.fsdecode(self._said.removesuffix(b"\n"))
        return path if os.path.isabs(path) and "\0" not in path else None

    def part(self, ctx: Context) -> None:
        """Nobody waits for the command any more."""
        ctx.need(Tasks).walking.remove(self)

    def close(self) -> None:
        """To be called after the end of the shell and not before: it would die of a pipe that nobody reads."""
        with contextlib.suppress(BlockingIOError):
            self._said = os.read(self._reading, _PATH_BYTES)
        os.close(self._reading)
        if self._writing >= 0:
            os.close(self._writing)


def may_move(command: str) -> bool:
    """May the shell end in another folder than it began in?"""
    return _MOVES.search(command) is not None


def start_folder(ctx: Context) -> str:
    """Where the next command begins: where the last one ended, while that is a folder of the session."""
    tasks, jail = ctx.need(Tasks), ctx.need(Jail)
    carried = tasks.folder
    if carried is not None and os.path.isdir(carried) and os.path.realpath(carried) == carried and jail.holds(carried):
        return carried
    return jail.folder


KEPT_CHARS = 80_000
"""So many of the first and of the last characters of a session's output are kept."""
_CHARS_A_TOKEN = 4
_PROGRESS_ROWS, _ROW_CHARS = 10, 200
_NOTHING: Mapping[str, str] = MappingProxyType({})


class CommandStart(NamedTuple):
    """A command that was started, and what belongs to it."""

    running: Running
    command: str
    cwd: str
    id: str
    """Under which it becomes a task, if it does."""
    log: str | None
    limits: ProcessLimits
    carrier: Carrier | None
    done: Callable[[], None]
    """To be called once, after its end."""

    async def abandon(self) -> None:
        """Stop it and let go of it."""
        try:
            await self.running.stop()
        finally:
            self.close()

    def close(self) -> None:
        self.running.close()
        self.done()


async def begin(
    command: str,
    ctx: Context,
    *,
    cwd: str,
    head_chars: int,
    tail_chars: int,
    flags: Sequence[str] = (),
    apart: bool = False,
    stdin: Literal["none", "pipe", "terminal"] = "none",
    outside: bool = False,
    carry: bool = False,
    may_stay: bool = False,
    env: Mapping[str, str] = _NOTHING,
    tell: Callable[[str], None] | None = None,
) -> CommandStart:
    """Start it; `may_stay`: may it become a task? `carry`: is the folder wanted that it ends in?

    `env` is more for its environment. `tell` hears its newest output in the place of whoever hears of the call.
    `cwd` is what was decided on, and is looked at once more: it may have become a link meanwhile.
    """
    settings, jail = ctx.need(Settings).shell, ctx.need(Jail)
    bash = shell(outside=[root.path for root in jail.roots])
    added = ctx.need(Variables)
    variables = {**quiet_environment(os.environ, keep=settings.keep_env), **env, **added}
    variables |= {} if outside else added.confined
    # Whoever started this program may have come from elsewhere: that is no folder of the session's.
    variables.pop("OLDPWD", None)
    if carry and (before := ctx.need(Tasks).folder_before) is not None:
        variables["OLDPWD"] = before
    if "GIT_CONFIG_COUNT" not in env:  # who gives it has seen to it
        variables |= await git_variables(command, cwd, ctx, variables)
    limits = ProcessLimits(settings.memory_mb, settings.processes, settings.open_files, settings.file_mb)
    with contextlib.ExitStack() as after, contextlib.ExitStack() as failed:
        wrapped = await _wrap_command(
            [bash, *flags, "-c", command], ctx, cwd=cwd, outside=outside, typed=stdin == "terminal"
        )
        failed.callback(wrapped.done)
        try:
            jail.check(cwd)
        except BaseException:
            for descriptor in wrapped.descriptors:
                os.close(descriptor)
            raise
        carrier = Carrier() if carry else None
        if carrier is not None:
            after.callback(carrier.close)
        log = ctx.new_log()
        launch = Launch(
            argv=wrapped.argv,
            cwd=cwd,
            env={**variables, **wrapped.env, **(carrier.env if carrier is not None else {})},
            apart=apart,
            stdin=stdin,
            log=log,
            log_limit_bytes=settings.log_mb << 20,
            log_late=not may_stay,
            head_chars=head_chars,
            tail_chars=tail_chars,
            limits=limits,
            starter=cast("Starter | None", wrapped.starter),
            descriptors=(*wrapped.descriptors, *((carrier.hand_over(),) if carrier is not None else ())),
            roster=ctx.need(Roster),
            command=command,
            done=None if wrapped.done is do_nothing else wrapped.done,
            is_done_soon=wrapped.is_done_soon,
        )
        try:
            running = start(launch, on_output=tell or (lambda text: _progress(ctx, text, running.recent)))
        except OSError as error:
            raise ToolFailure(f"Cannot run it in {cwd}: {describe(error)}.", path=cwd) from error
        failed.pop_all()  # from now on the command takes it back when it has ended
        task_id = ctx.need(Tasks).new_id()
        return CommandStart(running, command, cwd, task_id, log, limits, carrier, after.pop_all().close)


async def _wrap_command(argv: Sequence[str], ctx: Context, *, cwd: str, outside: bool, typed: bool) -> Wrapped:
    """The command as it is confined; `typed`: is it told by a terminal when to stop?"""
    confinement = ctx.need(Confinement)
    if outside or not typed or confinement.name != "bubblewrap":
        return await confinement.wrap(argv, cwd=cwd, outside=outside, is_certain=os.path.isdir(cwd))
    from ferrule.sandbox import bubblewrap  # few commands have one

    wrapped = await confinement.wrap(bubblewrap.within(argv), cwd=cwd)
    is_ours = wrapped.argv[0] == argv[0]  # another way of confining took it on, whose processes no terminal tells
    return wrapped if is_ours else wrapped._replace(argv=bubblewrap.around(wrapped.argv))


def check_room(ctx: Context) -> None:
    """Raise where no more commands may be left running."""
    tasks = ctx.need(Tasks)
    if not tasks.has_room:
        raise ToolFailure(
            f"{tasks.most} tasks run already (shell.background_max). Stop one of them first.", code="too-many-tasks"
        )


def leave(begun: CommandStart, ctx: Context, description: str) -> Task:
    """Make a task of it: from now on it is the session's, and its log is kept."""
    begun.running.name(begun.id)
    task = ctx.need(Tasks).add(
        begun.running,
        begun.id,
        command=begun.command,
        cwd=begun.cwd,
        description=description,
        log=begun.log,
        done=begun.done,
    )
    finished = begun.running.result()
    if begun.log is not None and not finished.log_error:
        ctx.keep_log(finished.logged_bytes)
    return task


def snapshot_task(task: Task, output: str = "", *, total_chars: int | None = None) -> TaskSeen:
    """The task as it is at this moment."""
    return TaskSeen(
        id=task.id,
        number=task.number,
        pid=task.pid,
        command=task.command,
        cwd=task.cwd,
        status=task.status,
        exit_code=task.running.result().exit_code if task.running.ended else None,
        output=output,
        description=task.description,
        took=task.took_seconds,
        total_chars=len(output) if total_chars is None else total_chars,
    )


def truncate_middle(
    text: str, most_chars: int, total_chars: int = 0, found: Callable[[], OutputHighlights] | None = None
) -> str:
    """The beginning and the end of a text, with a sentence between them where it is longer, and what matters of it.

    `total_chars` is how many it had before its middle was left out already.
    """
    if len(text) <= most_chars:
        return text
    half = most_chars // 2
    missing = max(total_chars, len(text)) - 2 * half
    cut = f"{text[:half]}{gap(missing)}{text[len(text) - half :]}"
    return cut if found is None else insert_highlights(cut, missing, found)


def count_printed_lines(begun: CommandStart, finished: Finished) -> int | None:
    """How many lines the command has printed, shown or not; None where there are too many to be counted."""
    shown = [text for text in (finished.text, finished.errors) if text]
    if finished.missing_chars:
        newlines = begun.running.highlights().newlines
        return None if newlines is None else newlines + (not finished.text.endswith("\n"))
    return sum(text.count("\n") + (not text.endswith("\n")) for text in shown)


def token_chars(tokens: float) -> int:
    """How many characters about so many tokens have, up to what is kept of the output of a session."""
    return int(min(tokens * _CHARS_A_TOKEN, 2 * KEPT_CHARS))


def _progress(ctx: Context, text: str, recent: str) -> None:
    # A task prints on when the call that started it has its answer.
    if not ctx.over:
        rows = tuple(row[:_ROW_CHARS] for row in recent.rstrip().rsplit("\n", _PROGRESS_ROWS)[-_PROGRESS_ROWS:])
        ctx.progress(text.rstrip().rsplit("\n", 1)[-1][-_ROW_CHARS:], rows)


def detach(command: str, ctx: Context, *, cwd: str) -> CommandResult:
    """Start it and let it go; whoever wants to see or end it later does that by `ferrule tasks`."""
    settings, jail = ctx.need(Settings).shell, ctx.need(Jail)
    jail.check(cwd)
    log, name = ctx.new_log(), ctx.need(Tasks).new_id()
    if log is None:
        raise ToolFailure("It was not started: there is no place for its output.", code="no-log")
    try:
        pid = start_detached(
            [shell(outside=[root.path for root in jail.roots]), "-c", command],
            cwd=cwd,
            env=quiet_environment(os.environ, keep=settings.keep_env),
            log=log,
            log_limit_bytes=settings.log_mb << 20,
            roster=ctx.need(Roster),
            task=name,
        )
    except OSError as error:
        raise ToolFailure(f"Cannot run it in {cwd}: {describe(error)}.", path=cwd) from error
    ctx.keep_log(0)
    said = (
        f"It goes on when this session ends, as task {name} (process {pid}). For the user: `ferrule tasks output"
        f" {name}` shows what it prints, and `ferrule tasks stop {name}` ends it.\n"
    )
    return CommandResult(command, cwd, said, 0)


_SETTLE_SECONDS = 0.4
"""So long a command that is left running is waited for until it listens; a later reply tells of one that is slower."""
_LOOK_SECONDS = 0.05
_FEW_TASKS = 4
"""With more of them nobody waits: whoever starts many at once starts no servers."""


async def wait_for_ports(begun: CommandStart, ctx: Context) -> None:
    """Wait a little until a command that is left running listens somewhere, and say where."""
    confinement = ctx.need(Confinement)
    if confinement.inside() is None or ctx.need(Tasks).active_count >= _FEW_TASKS:
        return
    until = time.monotonic() + _SETTLE_SECONDS
    while not await tell_ports(ctx) and time.monotonic() < until:
        if await begun.running.wait(_LOOK_SECONDS) == "ended":
            return


async def tell_ports(ctx: Context) -> bool:
    """Say where commands have begun to listen, and forward those ports where the settings say so."""
    confinement = ctx.need(Confinement)
    fresh = confinement.take_new_listeners()
    for one in fresh:
        forwarded = await confinement.forward(one.port, ctx.need(Settings).sandbox.forward)
        reached = f"; the user reaches it at http://127.0.0.1:{one.port}/" if forwarded else ""
        ctx.note(f"A command is listening on {one}{reached}.")
    return bool(fresh)


Once = Callable[[bool], Awaitable[CommandResult | Left]]
"""Runs the command, outside or not."""

_END_CHARS = 4_000
"""So much of the end of an output is looked at."""
_GRACE_SECONDS = 1.0
"""So long a command may take to give up by itself after it asked for a name, before the user is asked."""


async def run_with_approval(once: Once, ctx: Context, *, outside: bool) -> CommandResult | Left:
    """Run it and, where it was denied something and the user agrees, run it again with that."""
    confinement = ctx.need(Confinement)
    if outside or confinement.name == "none":
        return await once(outside)
    outcome, is_refused = await _within(once, ctx, confinement)
    await _tell(outcome, ctx, confinement)
    if isinstance(outcome, Left):
        return outcome
    names = confinement.unresolved_hosts()
    denied = confinement.explain_denial((outcome.output + outcome.errors)[-_END_CHARS:], outcome.exit_code or 0)
    if not denied:
        return outcome
    if not outcome.exit_code:  # it succeeded, or hid the failure in a pipe
        ctx.note(denied)
        return outcome
    if names and not is_refused:
        said = await ctx.approve_hosts(_sentence(names))
        if said != "no":
            return await _rerun(once, ctx, confinement, names, said)
        is_refused = True
    again = f"run `{outcome.command}` in {outcome.cwd} again, outside the sandbox. {denied}"
    if is_refused or not await ctx.approve(again):
        ctx.note(f"{denied} With {ctx.param('outside')} the user is asked to run it outside the sandbox.")
        return outcome
    ctx.drop_log()
    ctx.note(f"{denied} It was run again outside the sandbox, as the user has agreed.")
    return await once(True)


async def _tell(outcome: CommandResult | Left, ctx: Context, confinement: Confinement) -> None:
    """Say what the sandbox did beside letting the command run."""
    for warning in confinement.warnings():
        ctx.note(warning)
    await tell_set_aside(ctx)
    if isinstance(outcome, CommandResult):
        if ctx.need(Tasks).active_count:  # nothing else outlives its command
            await tell_ports(ctx)
        if said := await confinement.describe_skipped_files(outcome.command):
            ctx.note(said)


async def tell_set_aside(ctx: Context) -> None:
    """Say what commands wrote that other programs obey; where a person agrees, it goes back to its place."""
    confinement = ctx.need(Confinement)
    for aside, contents in confinement.set_aside():
        shown = ctx.need(Jail).display_path(aside.path)
        if contents and await ctx.approve(
            f"A command {aside.why} {shown}, which other programs obey", planted=contents
        ):
            if confinement.bring_back(aside, contents):
                ctx.note(f"A command {aside.why} {shown}, which other programs obey; the user lets it stay.")
                continue
            ctx.note(f"The user would let {shown} stay, but something else is there by now.")
        ctx.note(str(aside))


async def _within(once: Once, ctx: Context, confinement: Confinement) -> tuple[CommandResult | Left, bool]:
    """Run it inside, and tell whether a host was refused: who was offered the way outside then is not asked again.

    When it asks for a host by name, the user is asked then, and not after all of its retries.
    """
    running = asyncio.ensure_future(once(False))
    try:
        heard = asyncio.ensure_future(confinement.names_asked())
        try:
            await asyncio.wait((running, heard), return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                await asyncio.wait((running,), timeout=_GRACE_SECONDS)
            if running.done():
                return running.result(), False
        finally:
            heard.cancel()
        names = confinement.unresolved_hosts()
        question = asyncio.ensure_future(ctx.approve_hosts(_sentence(names)))
        try:
            await asyncio.wait((running, question), return_when=asyncio.FIRST_COMPLETED)
            said = question.result() if question.done() else "no"
            if said == "no":
                return await running, question.done()
        finally:
            question.cancel()
    finally:
        if not running.done():
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running
    return await _rerun(once, ctx, confinement, names, said), False


async def _rerun(
    once: Once, ctx: Context, confinement: Confinement, names: Sequence[str], said: str
) -> CommandResult | Left:
    """Run it again with the hosts that it asked for, or outside, as the user said."""
    ctx.drop_log()
    if said == "outside":
        ctx.note("It was run again outside the sandbox, as the user has agreed.")
        return await once(True)
    for name in names:
        confinement.allow_host(name, for_good=said == "always")
    span = "from now on in this workspace" if said == "always" else "for this session"
    ctx.note(f"The user allowed {', '.join(names)} {span}; the command was started again.")
    return await once(False)


def _sentence(names: Sequence[str]) -> str:
    return f"The command wants to reach {', '.join(names)}, which the sandbox does not allow"
