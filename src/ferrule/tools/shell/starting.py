"""Starting a command, for every tool that does: its shell, its environment, its limits, and what confines it."""

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from ferrule.core.errors import ToolFailure
from ferrule.core.tasks import TaskSeen
from ferrule.core.tool import Context
from ferrule.settings import Settings
from ferrule.support.beneath import describe
from ferrule.support.environment import quiet_environment
from ferrule.support.highlights import Found, gap, highlighted
from ferrule.support.limits import Limits
from ferrule.support.programs import shell
from ferrule.support.roster import Roster
from ferrule.support.running import Finished, Launch, Running, start
from ferrule.support.sandbox.profile import Wrapped, nothing
from ferrule.support.tasks import Task, Tasks
from ferrule.tools.shell.carry import Carrier
from ferrule.workspace.confinement import Confinement
from ferrule.workspace.paths import Jail
from ferrule.workspace.reading_git import reading_git
from ferrule.workspace.variables import Variables

if TYPE_CHECKING:
    from ferrule.support.starter import Starter

KEPT_CHARS = 80_000
"""So many of the first and of the last characters of a session's output are kept."""
_CHARS_A_TOKEN = 4
_PROGRESS_ROWS, _ROW_CHARS = 10, 200
_NOTHING: Mapping[str, str] = MappingProxyType({})


class Begun(NamedTuple):
    """A command that was started, and what belongs to it."""

    running: Running
    command: str
    cwd: str
    id: str
    """Under which it becomes a task, if it does."""
    log: str | None
    limits: Limits
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
) -> Begun:
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
        variables |= await reading_git(command, cwd, ctx, variables)
    limits = Limits(settings.memory_mb, settings.processes, settings.open_files, settings.file_mb)
    with contextlib.ExitStack() as after, contextlib.ExitStack() as failed:
        wrapped = await _wrapped(
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
            done=None if wrapped.done is nothing else wrapped.done,
            is_done_soon=wrapped.is_done_soon,
        )
        try:
            running = start(launch, on_output=tell or (lambda text: _progress(ctx, text, running.recent)))
        except OSError as error:
            raise ToolFailure(f"Cannot run it in {cwd}: {describe(error)}.", path=cwd) from error
        failed.pop_all()  # from now on the command takes it back when it has ended
        task_id = ctx.need(Tasks).new_id()
        return Begun(running, command, cwd, task_id, log, limits, carrier, after.pop_all().close)


async def _wrapped(argv: Sequence[str], ctx: Context, *, cwd: str, outside: bool, typed: bool) -> Wrapped:
    """The command as it is confined; `typed`: is it told by a terminal when to stop?"""
    confinement = ctx.need(Confinement)
    if outside or not typed or confinement.name != "bubblewrap":
        return await confinement.wrap(argv, cwd=cwd, outside=outside, is_certain=os.path.isdir(cwd))
    from ferrule.support.sandbox import terminal  # few commands have one

    wrapped = await confinement.wrap(terminal.within(argv), cwd=cwd)
    is_ours = wrapped.argv[0] == argv[0]  # another way of confining took it on, whose processes no terminal tells
    return wrapped if is_ours else wrapped._replace(argv=terminal.around(wrapped.argv))


def check_room(ctx: Context) -> None:
    """Raise where no more commands may be left running."""
    tasks = ctx.need(Tasks)
    if not tasks.has_room:
        raise ToolFailure(
            f"{tasks.most} tasks run already (shell.background_max). Stop one of them first.", code="too-many-tasks"
        )


def leave(begun: Begun, ctx: Context, description: str) -> Task:
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
    finished = begun.running.finished()
    if begun.log is not None and not finished.log_error:
        ctx.keep_log(finished.logged_bytes)
    return task


def seen(task: Task, output: str = "", *, total_chars: int | None = None) -> TaskSeen:
    """The task as it is at this moment."""
    return TaskSeen(
        id=task.id,
        number=task.number,
        pid=task.pid,
        command=task.command,
        cwd=task.cwd,
        status=task.status,
        exit_code=task.running.finished().exit_code if task.running.ended else None,
        output=output,
        description=task.description,
        took=task.took_seconds,
        total_chars=len(output) if total_chars is None else total_chars,
    )


def middle_cut(text: str, most_chars: int, total_chars: int = 0, found: Callable[[], Found] | None = None) -> str:
    """The beginning and the end of a text, with a sentence between them where it is longer, and what matters of it.

    `total_chars` is how many it had before its middle was left out already.
    """
    if len(text) <= most_chars:
        return text
    half = most_chars // 2
    missing = max(total_chars, len(text)) - 2 * half
    cut = f"{text[:half]}{gap(missing)}{text[len(text) - half :]}"
    return cut if found is None else highlighted(cut, missing, found)


def printed_lines(begun: Begun, finished: Finished) -> int | None:
    """How many lines the command has printed, shown or not; None where there are too many to be counted."""
    shown = [text for text in (finished.text, finished.errors) if text]
    if finished.missing_chars:
        newlines = begun.running.found().newlines
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
