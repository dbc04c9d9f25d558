"""How Claude Code reads what came back about todos, which it calls tasks."""

from typing import TYPE_CHECKING, Any

import msgspec

from ferrule.core.face import Face, copied

if TYPE_CHECKING:
    from ferrule.core.todos import TodoCreated, TodoDeleted, TodoListed, TodoSeen, TodoUpdated

_SHOWN = {"active_form": "activeForm", "blocked_by": "blockedBy"}


def also_deleted(face: Face) -> Face:
    """The face of an update, which accepts the status that later versions have beside the advertised ones."""
    accepts = copied(face.schema)
    accepts["properties"]["status"]["enum"].append("deleted")
    return msgspec.structs.replace(face, accepts=accepts)


def created(outcome: "TodoCreated") -> dict[str, Any]:
    return {"task": {"id": outcome.todo.id, "subject": outcome.todo.subject}}


def seen(outcome: "TodoSeen") -> dict[str, Any]:
    """What there is nothing of is left out, but for what a task always has."""
    todo = outcome.todo
    if todo is None:
        return {"task": None}
    more = {"activeForm": todo.active_form, "owner": todo.owner, "metadata": dict(todo.metadata)}
    return {
        "task": {
            "id": todo.id,
            "subject": todo.subject,
            "description": todo.description,
            "status": todo.status,
            "blocks": list(todo.blocks),
            "blockedBy": list(todo.blocked_by),
            **{name: value for name, value in more.items() if value},
        }
    }


def updated(outcome: "TodoUpdated | TodoDeleted") -> dict[str, Any]:
    from ferrule.core.todos import TodoDeleted  # for sessions that keep a list

    todo = outcome.todo
    if isinstance(outcome, TodoDeleted):
        fields, was, now = ["deleted"], todo.status, "deleted"
    else:
        fields, was, now = [_SHOWN.get(name, name) for name in outcome.fields], outcome.was, todo.status
    change = {"statusChange": {"from": was, "to": now}} if was != now else {}
    return {"success": True, "taskId": todo.id, "updatedFields": fields, **change}


def listed(outcome: "TodoListed") -> dict[str, Any]:
    """Of what a task waits for, only what is not completed."""
    return {
        "tasks": [
            {
                "id": todo.id,
                "subject": todo.subject,
                "status": todo.status,
                **({"owner": todo.owner} if todo.owner else {}),
                "blockedBy": list(todo.waits_for),
            }
            for todo in outcome.todos
        ]
    }
