"""How gemini arranges and reads the tasks of its tracker, which are todos."""

from typing import TYPE_CHECKING

from ferrule.core.face import Values
from ferrule.dialects.arrange import turned, without

if TYPE_CHECKING:
    from ferrule.core.todos import Todo, TodoCreated, TodoDeleted, TodoListed, TodoSeen, TodoUpdated

_STATUS = {"open": "pending", "in_progress": "in_progress", "closed": "completed"}
_MARKS = {"open": " ", "in_progress": ">", "blocked": "!", "closed": "x"}


def kind(values: Values) -> Values:
    """A new task always has a type."""
    return {"kind": "task", **values}


def heard(values: Values) -> Values:
    """A status in canonical words. Blocked is what waits for something, and not a status of its own."""
    if "status" not in values:
        return values
    return {**values, "status": _STATUS.get(values["status"], "pending")}


def said(values: Values) -> Values:
    """The inverse."""
    if "status" not in values:
        return values
    return {**values, "status": turned(_STATUS).get(values["status"], values["status"])}


def wanted(values: Values) -> Values:
    """The same for a list: what is blocked is not open."""
    if values.get("status") not in {"open", "blocked"}:
        return heard(values)
    return {**values, "status": "pending", "waiting": values["status"] == "blocked"}


def wants(values: Values) -> Values:
    """The inverse."""
    shown = said(without(values, "waiting"))
    return {**shown, "status": "blocked"} if values.get("waiting") else shown


def dependency(values: Values) -> Values:
    """One more task to wait for."""
    return {**without(values, "dependencyId"), "add_blocked_by": [values["dependencyId"]]}


def as_dependency(values: Values) -> Values:
    """The inverse."""
    return {**without(values, "add_blocked_by"), "dependencyId": next(iter(values.get("add_blocked_by", ())), "")}


def created(outcome: "TodoCreated") -> str:
    return f"Created task {outcome.todo.id}: {outcome.todo.subject}"


def updated(outcome: "TodoUpdated | TodoDeleted") -> str:
    from ferrule.core.todos import TodoDeleted  # for sessions that keep a list

    todo = outcome.todo
    if isinstance(outcome, TodoDeleted):
        return f"Deleted task {todo.id}."
    return f"Updated task {todo.id}. Status: {_status(todo)}"


def depends(outcome: "TodoUpdated | TodoDeleted") -> str:
    return f"Task {outcome.todo.id} depends on: {', '.join(outcome.todo.blocked_by) or 'nothing'}"


def seen(outcome: "TodoSeen") -> str:
    todo = outcome.todo
    if todo is None:
        return "Task not found."
    rows = (
        ("ID", todo.id),
        ("Title", todo.subject),
        ("Type", todo.kind),
        ("Status", _status(todo)),
        ("Parent", todo.parent),
        ("Dependencies", ", ".join(todo.blocked_by)),
        ("Blocks", ", ".join(todo.blocks)),
        ("Owner", todo.owner),
        ("Description", todo.description),
    )
    return "\n".join(f"{name}: {value}" for name, value in rows if value)


def listed(outcome: "TodoListed") -> str:
    return "\n".join(map(_line, outcome.todos)) or "No tasks found."


def drawn(outcome: "TodoListed") -> str:
    """Tasks below those that they are part of; each knows what it waits for."""
    below: dict[str, list[Todo]] = {}
    for todo in outcome.todos:
        below.setdefault(todo.parent, []).append(todo)
    rows: list[str] = []
    ahead = [(0, todo) for todo in reversed(below.get("", ()))]
    while ahead:
        depth, todo = ahead.pop()
        rows.append(f"{'  ' * depth}{_line(todo)}")
        ahead += [(depth + 1, child) for child in reversed(below.get(todo.id, ()))]
    return "\n".join(rows) or "No tasks to show."


def _line(todo: "Todo") -> str:
    status = _status(todo)
    waits = f" (depends on {', '.join(todo.waits_for)})" if todo.waits_for else ""
    return f"[{_MARKS[status]}] {todo.id} {status}: {todo.subject}{waits}"


def _status(todo: "Todo") -> str:
    return "blocked" if todo.status == "pending" and todo.waits_for else turned(_STATUS)[todo.status]
