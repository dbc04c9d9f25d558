"""How Amp arranges and reads its list of tasks, which are todos."""

from typing import TYPE_CHECKING, Any

from ferrule.core.face import Values

if TYPE_CHECKING:
    from ferrule.core.todos import Todo, TodoCreated, TodoDeleted, TodoListed, TodoSeen, TodoUpdated

_MOST = 1e6


def heard(values: Values) -> Values:
    """What is open is pending, and a limit is a whole number."""
    out = {**values, "status": "pending"} if values.get("status") == "open" else values
    return {**out, "limit": int(min(_MOST, out["limit"]))} if isinstance(out.get("limit"), float) else out


def said(values: Values) -> Values:
    """The inverse."""
    return {**values, "status": "open"} if values.get("status") == "pending" else values


def done(outcome: "TodoCreated | TodoSeen | TodoUpdated | TodoDeleted | TodoListed") -> dict[str, Any]:
    """One task, or several without their descriptions."""
    from ferrule.core.todos import TodoDeleted, TodoListed  # for sessions that keep a list

    if isinstance(outcome, TodoListed):
        rows = [{key: value for key, value in _task(todo).items() if key != "description"} for todo in outcome.todos]
        return {"tasks": rows, **({"remaining": outcome.remaining} if outcome.remaining else {})}
    if isinstance(outcome, TodoDeleted):
        return {"deleted": outcome.todo.id}
    return {"task": None if outcome.todo is None else _task(outcome.todo)}


def _task(todo: "Todo") -> dict[str, Any]:
    more = {
        "description": todo.description,
        "repoURL": todo.repository,
        "parentID": todo.parent,
        "dependsOn": list(todo.blocked_by),
        "owner": todo.owner,
    }
    return {
        "id": todo.id,
        "title": todo.subject,
        "status": "open" if todo.status == "pending" else todo.status,
        **{key: value for key, value in more.items() if value},
        **({"ready": todo.is_ready} if todo.status != "completed" else {}),
    }
