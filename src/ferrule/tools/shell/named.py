"""Which task a call means, by whichever of its names: a command, or an agent that works in the background."""

from collections.abc import Sequence

from ferrule.core.args import Args
from ferrule.core.delegated import subagents
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.subagents import AgentStatus, Worked
from ferrule.core.tasks import TaskSeen, TaskStatus
from ferrule.core.tool import Context
from ferrule.support.tasks import Task, Tasks

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
    found = named(args, ctx)
    if isinstance(found, Worked):
        raise ToolFailure(f"{found.id} is an agent and no command; it can only be read and stopped.", code="is-agent")
    return found


def named(args: TaskArgs, ctx: Context) -> Task | Worked:
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
        known = _known(tasks.list(), by, works if by == "task_id" else ())
        raise ToolFailure(f"There is no task with {shown}. {known}", code="unknown-task")
    return agent


_STANDS: dict[AgentStatus, TaskStatus] = {
    "running": "running",
    "completed": "completed",
    "failed": "failed",
    "stopped": "killed",
}


def agent_seen(worked: Worked, output: str = "", *, total_chars: int = 0) -> TaskSeen:
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


def _known(tasks: Sequence[Task], by: str, works: Sequence[Worked] = ()) -> str:
    if not tasks and not works:
        return "This session has no tasks."
    names = {"task_id": "id"}
    rows = [f"{getattr(task, names.get(by, by))} ({task.label}, {task.status})" for task in tasks]
    rows += [f"{one.id} ({agent_label(one)}, {_STANDS[one.status]})" for one in works]
    more = f" and {len(rows) - _LISTED} older ones" if len(rows) > _LISTED else ""
    return f"There are: {', '.join(rows[-_LISTED:])}{more}."
