"""Implement `ferrule tasks`: list and stop the commands that engines have left running.

The module also describes the background work that is stopped when a session ends.
"""

import json
import os
import time
from collections import deque
from typing import TYPE_CHECKING

import click

from ferrule.cli.show import DONE, FAILED, paint
from ferrule.core.services import Subagents
from ferrule.output import clean
from ferrule.settings import state_folder
from ferrule.system.tasks import Tasks
from ferrule.system.tree import Roster, RosterEntry

if TYPE_CHECKING:
    from ferrule.engine import Engine


_SHOWN_CHARS = 60


_ALL = click.option("--all", "every", is_flag=True, help="Also the commands that calls are waiting for.")
_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")


@click.group("tasks", invoke_without_command=True)
@_ALL
@_JSON
@click.pass_context
def command(ctx: click.Context, *, every: bool, as_json: bool) -> None:
    """List the commands that were left running, by any engine of this user.

    \b
    Examples:
      ferrule tasks
      ferrule tasks --json
      ferrule tasks output b3f9a2
      ferrule tasks stop b3f9a2
    """
    if ctx.invoked_subcommand is None:
        _list(every=every, as_json=as_json)


@command.command("list")
@_ALL
@_JSON
def list_tasks(*, every: bool, as_json: bool) -> int:
    """List them; so does `ferrule tasks` alone."""
    _list(every=every, as_json=as_json)
    return DONE


def _list(*, every: bool, as_json: bool) -> None:
    entries = [entry for entry in _roster().entries() if every or entry.task]
    if as_json:
        for entry in entries:
            click.echo(json.dumps(_row(entry), ensure_ascii=False))
    elif not entries:
        click.echo("No command was left running.")
    else:
        click.echo(f"{'task':<10} {'pid':>8} {'for':>8}  command")
        for entry in entries:
            shown = " ".join(entry.command.split())[:_SHOWN_CHARS]
            more = paint(" (detached)", "yellow") if entry.detached else ""
            click.echo(f"{entry.task or '-':<10} {entry.pid:>8} {_ago(entry.started):>8}  {shown}{more}")


@command.command("stop")
@click.argument("task")
def stop(*, task: str) -> int:
    """End a task, named by its id or process id, with its children."""
    entry = _find(task)
    if not _roster().stop(entry):
        click.echo(f"Task {task} could not be ended: something of it still runs.", err=True)
        return FAILED
    click.echo(f"Task {task} was ended: {entry.command}")
    return DONE


@command.command("output")
@click.argument("task")
@click.option("--lines", default=100, show_default=True, help="How many of the last lines; 0 for all.")
def output(*, task: str, lines: int) -> int:
    """Print what a task has written so far."""
    entry = _find(task)
    if not entry.log or not os.path.exists(entry.log):
        click.echo(f"Nothing was kept of the output of task {task}.", err=True)
        return FAILED

    with open(entry.log, encoding="utf-8", errors="replace", newline="") as file:
        text = "".join(deque(file, lines)) if lines > 0 else file.read()
    click.echo(clean(text), nl=False)
    return DONE


def _roster() -> Roster:
    return Roster(os.path.join(state_folder(), "processes"))


def _find(task: str) -> RosterEntry:
    entries = _roster().entries()
    for entry in entries:
        if task in {entry.task, str(entry.pid)}:
            return entry
    known = ", ".join(entry.task or str(entry.pid) for entry in entries)
    raise click.UsageError(f"There is no task {task!r}. Running are: {known or 'none'}.")


def _row(entry: RosterEntry) -> dict[str, object]:
    return {
        "task": entry.task,
        "pid": entry.pid,
        "command": entry.command,
        "cwd": entry.cwd,
        "started": entry.started,
        "detached": entry.detached,
        "engine": entry.engine_pid,
        "log": entry.log,
    }


def _ago(started: float) -> str:
    seconds = max(0, int(time.time() - started))
    if seconds < 60:
        return f"{seconds}s"
    return f"{seconds // 60}m" if seconds < 3600 else f"{seconds // 3600}h{seconds % 3600 // 60:02}m"


_MOST = 5
_MOST_CHARS = 60
_HOW = "Whoever needs the end of that has the model wait for it."


def short(command: str) -> str:
    """A command on one line, cut to what is enough to know it by."""
    words = " ".join(command.split())
    return words if len(words) <= _MOST_CHARS else words[: _MOST_CHARS - 1] + "…"


def left_running(engine: "Engine", how: str = _HOW) -> str:
    """A sentence about them, and one that says how to have their end; empty where nothing is left."""
    told = describe_running(engine)
    return f"Still at work in the background, and stopped with the session: {told}. {how}".rstrip() if told else ""


def describe_running(engine: "Engine") -> str:
    """The agents and commands that are at work, on one line; empty where there are none."""
    tasks = engine.need(Tasks).list()
    agents = [
        f"the {one.name} agent {one.id} ({one.description})" if one.description else f"the {one.name} agent {one.id}"
        for one in engine.need(Subagents).list()
        if one.status == "running"
    ]
    # By the command itself: what the model says that it is for may be anything.
    commands = [f"the command {one.id} ({short(one.command)})" for one in tasks if not one.running.ended]
    found = [*agents, *commands]
    more = f" and {len(found) - _MOST} more" * (len(found) > _MOST)
    return " ".join(clean(f"{', '.join(found[:_MOST])}{more}").split())
