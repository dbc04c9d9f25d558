"""The rows of the lists of todos: how they are laid out, and how whole lists are taken out."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

MIGRATIONS = (
    "CREATE TABLE lists (id TEXT PRIMARY KEY, last INTEGER NOT NULL) WITHOUT ROWID",
    """CREATE TABLE todos (
        list TEXT NOT NULL,
        id INTEGER NOT NULL,
        subject TEXT NOT NULL,
        description TEXT NOT NULL,
        status TEXT NOT NULL,
        active_form TEXT NOT NULL,
        owner TEXT NOT NULL,
        kind TEXT NOT NULL,
        repository TEXT NOT NULL,
        metadata TEXT NOT NULL,
        parent INTEGER, -- NULL: it is part of no other
        PRIMARY KEY (list, id)
    ) WITHOUT ROWID""",
    """CREATE TABLE edges (
        list TEXT NOT NULL,
        blocker INTEGER NOT NULL,
        blocked INTEGER NOT NULL,
        PRIMARY KEY (list, blocker, blocked)
    ) WITHOUT ROWID""",
    "ALTER TABLE lists ADD COLUMN used REAL NOT NULL DEFAULT 0",
)
_TABLES = {"edges": "list", "todos": "list", "lists": "id"}
"""Table → its column with the id of the list."""
_DAY_SECONDS = 86_400.0
_OF_CONVERSATIONS = "T-*"
"""The ids of lists that belong to a conversation; people give others names of their own, and those stay."""


def forget(connection: "sqlite3.Connection", lists: Iterable[str]) -> None:
    """Take out whole lists."""
    doomed = [(one,) for one in lists]
    for table, column in _TABLES.items():
        connection.executemany(f"DELETE FROM {table} WHERE {column} = ?", doomed)  # noqa: S608 - names of ours


def sweep(connection: "sqlite3.Connection", now: float, keep_days: float) -> None:
    """Take out the lists of conversations that nobody has written to for so many days."""
    before = now - max(keep_days, 1.0) * _DAY_SECONDS
    old = "SELECT id FROM lists WHERE id GLOB ? AND used BETWEEN 1 AND ?"
    forget(connection, [one for (one,) in connection.execute(old, (_OF_CONVERSATIONS, before)).fetchall()])
    # Those that were there before anybody noted it count from now on.
    connection.execute("UPDATE lists SET used = ? WHERE used = 0", (now,))
