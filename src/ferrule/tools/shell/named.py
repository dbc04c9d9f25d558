"""Which task a call means, by whichever of its names."""

from collections.abc import Sequence

from ferrule.core.args import Args
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.tool import Context
from ferrule.support.tasks import Task, Tasks

_LISTED = 20


class TaskArgs(Args, frozen=True, kw_only=True):
    task_id: str = ""
    number: int | None = None
    """Instead of the id, for families that count their sessions."""
    pid: int | None = None
    """Instead of the id, for families that go by processes."""


def find(args: TaskArgs, ctx: Context) -> Task:
    """The task. Raises with the tasks that there are."""
    tasks = ctx.need(Tasks)
    names = {"task_id": args.task_id or None, "number": args.number, "pid": args.pid}
    given = {key: value for key, value in names.items() if value is not None}
    if not given:
        raise BadArguments(f"{ctx.param('task_id')}: required, but missing.")
    task = tasks.get(args.task_id.strip(), number=args.number, pid=args.pid)
    if task is None:
        shown = ", ".join(f"{ctx.param(key)} {value}" for key, value in given.items())
        raise ToolFailure(
            f"There is no task with {shown}. {_known(tasks.list(), next(iter(given)))}", code="unknown-task"
        )
    return task


def _known(tasks: Sequence[Task], by: str) -> str:
    if not tasks:
        return "This session has no tasks."
    names = {"task_id": "id"}
    rows = [f"{getattr(task, names.get(by, by))} ({task.label}, {task.status})" for task in tasks[-_LISTED:]]
    more = f" and {len(tasks) - _LISTED} older ones" if len(tasks) > _LISTED else ""
    return f"There are: {', '.join(rows)}{more}."
