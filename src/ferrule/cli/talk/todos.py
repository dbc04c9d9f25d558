"""The list of what is to be done, as rows that stay in sight while the agent works."""

from collections.abc import Mapping, Sequence
from typing import Any

from ferrule.cli.talk.line import Line, line
from ferrule.core.events import TodoItem

_MOST_ROWS = 8
_MARKS = {"completed": "✓", "in_progress": "◼", "pending": "◻", "blocked": "◻", "cancelled": "✗"}
_STYLES = {"completed": "green", "in_progress": "bold", "cancelled": "dim"}
_ENDED = frozenset({"completed", "cancelled"})


def todo_rows(todos: Sequence[TodoItem]) -> list[Line]:
    """How many there are of each kind, and the list; nothing where all of it is done.

    Of a long list, what is done gives way to what is not.
    """
    left = [todo for todo in todos if todo.status not in _ENDED]
    if not left:
        return []
    over = [todo for todo in todos if todo.status in _ENDED]
    room = max(0, _MOST_ROWS - len(left))
    chosen = {todo.id for todo in (*left[:_MOST_ROWS], *(over[-room:] if room else ()))}
    rows = [_row(todo) for todo in todos if todo.id in chosen]
    more = len(todos) - len(rows)
    return [
        line(("dim", f"  {_counts(todos)}")),
        *rows,
        *([line(("dim", f"    … {more:,} more, /tasks shows all"))] if more else []),
    ]


def changed_todo(values: Mapping[str, Any], todos: Sequence[TodoItem]) -> str:
    """What a call says of one todo, such as `Write the test → completed`; nothing where it is about none."""
    number, status = values.get("todo_id"), values.get("status")
    if not isinstance(number, str):
        return ""
    subject = next((todo.subject for todo in todos if todo.id == number), number)
    return f"{subject} → {status.replace('_', ' ')}" if isinstance(status, str) else subject


def _row(todo: TodoItem) -> Line:
    words = todo.active_form if todo.status == "in_progress" and todo.active_form else todo.subject
    about = [todo.owner] if todo.owner else []
    about += ["blocked"] if todo.status == "blocked" else []
    style = _STYLES.get(todo.status, "")
    return line((style, f"  {_MARKS[todo.status]} {words}"), ("dim", f"  ({', '.join(about)})" if about else ""))


def _counts(todos: Sequence[TodoItem]) -> str:
    done, doing, cancelled = (
        sum(todo.status == status for todo in todos) for status in ("completed", "in_progress", "cancelled")
    )
    parts = [f"{done} done", f"{doing} in progress", f"{len(todos) - done - doing - cancelled} open"]
    parts += [f"{cancelled} cancelled"] if cancelled else []
    return f"{len(todos)} todo{'s' * (len(todos) != 1)} ({', '.join(parts)})"
