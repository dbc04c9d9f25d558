"""The rows of the store of threads: how they are laid out, put in and taken out."""

import sqlite3
from collections.abc import Container, Sequence
from typing import Any

from ferrule.workspace.thread import About, Item, bindable
from ferrule.workspace.thread_index import SHIFT, forget

MIGRATIONS = (
    """CREATE TABLE threads (
        number INTEGER PRIMARY KEY AUTOINCREMENT, -- never given twice: the index may still name one that is gone
        id TEXT NOT NULL UNIQUE,
        workspace TEXT NOT NULL,
        repo TEXT NOT NULL,
        model TEXT NOT NULL,
        dialect TEXT NOT NULL,
        parent TEXT NOT NULL,
        title TEXT NOT NULL,
        created REAL NOT NULL,
        updated REAL NOT NULL,
        turns INTEGER NOT NULL,
        items INTEGER NOT NULL,
        indexed INTEGER NOT NULL DEFAULT 0, -- as many of the items are in the index
        titled TEXT -- the title that is in the index
    )""",
    """CREATE TABLE items (
        number INTEGER PRIMARY KEY, -- the thread's number and the place in it: a thread lies together
        at REAL NOT NULL,
        kind TEXT NOT NULL,
        role TEXT NOT NULL,
        body BLOB NOT NULL,
        text TEXT NOT NULL
    )""",
    "CREATE TABLE files (thread INTEGER, path TEXT, PRIMARY KEY (thread, path)) WITHOUT ROWID",
)
_SPOKEN = frozenset({"user", "assistant"})
_TITLE_CHARS = 80
_EXPIRED_AT_ONCE = 50
"""Threads of one transaction: others want to write too."""


def insert(connection: sqlite3.Connection, about: About, items: Sequence[Item], now: float) -> None:
    """Put items behind those of their thread, which is made where it is not there."""
    row = connection.execute("SELECT number, items, title FROM threads WHERE id = ?", (about.id,)).fetchone()
    if row is None:
        made = connection.execute(
            "INSERT INTO threads (id, workspace, repo, model, dialect, parent, title, created, updated, turns, items)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0)",
            (*map(bindable, about[:7]), about.created or now, now),
        )
        row = (made.lastrowid, 0, bindable(about.title))
    number, last, title = row
    first = (number << SHIFT) + last + 1
    connection.executemany(
        "INSERT INTO items VALUES (?, ?, ?, ?, ?, ?)",
        [(first + at, now, one.kind, one.role, bytes(one.body), bindable(one.text)) for at, one in enumerate(items)],
    )
    paths = [(number, bindable(path)) for one in items for path in one.files]
    if paths:
        connection.executemany("INSERT OR IGNORE INTO files VALUES (?, ?)", paths)
    connection.execute(
        "UPDATE threads SET items = ?, turns = turns + ?, updated = ?, title = ? WHERE number = ?",
        (
            last + len(items),
            sum(one.role in _SPOKEN for one in items),
            now,
            title or _title(items),
            number,
        ),
    )


def _title(items: Sequence[Item]) -> str:
    """The beginning of what the user said first."""
    text = next((one.text for one in items if one.role == "user" and one.text.strip()), "")
    line = " ".join(text.strip()[: 4 * _TITLE_CHARS].split())
    return bindable(line if len(line) <= _TITLE_CHARS else line[: _TITLE_CHARS - 1].rstrip() + "…")


def about(row: Sequence[Any]) -> About:
    """A whole row of `threads`."""
    return About(*row[1 : len(About._fields) + 1])


def items_of(connection: sqlite3.Connection, number: int) -> list[Item]:
    """The items of a thread, in their order."""
    rows = connection.execute(
        "SELECT at, kind, role, body, text FROM items WHERE number BETWEEN ? AND ? ORDER BY number", span(number)
    )
    return [Item(kind, role, _raw(body), text, (), at) for at, kind, role, body, text in rows]


def files_of(connection: sqlite3.Connection, number: int) -> list[str]:
    return [path for (path,) in connection.execute("SELECT path FROM files WHERE thread = ? ORDER BY path", (number,))]


def span(number: int) -> tuple[int, int]:
    """The numbers of a thread's items, first and last."""
    return number << SHIFT, ((number + 1) << SHIFT) - 1


def _raw(body: Any) -> bytes:
    return body if isinstance(body, bytes) else str(body).encode("utf-8", "replace")


def remove(connection: sqlite3.Connection, thread: str) -> bool:
    """Take a thread out, and those of its subagents; was it there?"""
    doomed, gone = [thread], False
    while doomed:
        one = doomed.pop()
        if _remove_alone(connection, one):
            gone = True
            doomed += [child for (child,) in connection.execute("SELECT id FROM threads WHERE parent = ?", (one,))]
    return gone


def _remove_alone(connection: sqlite3.Connection, thread: str) -> bool:
    row = connection.execute("SELECT number FROM threads WHERE id = ?", (thread,)).fetchone()
    if row is None:
        return False
    forget(connection, row[0])
    connection.execute("DELETE FROM items WHERE number BETWEEN ? AND ?", span(row[0]))
    connection.execute("DELETE FROM files WHERE thread = ?", row)
    connection.execute("DELETE FROM threads WHERE number = ?", row)
    return True


def is_due(connection: sqlite3.Connection, now: float, pause_seconds: float) -> bool:
    """Is it time to look for old threads again? Whoever asks first, over all processes, does it."""
    last = connection.execute("SELECT value FROM meta WHERE key = 'swept'").fetchone()
    if last is not None and 0 <= now - float(last[0]) < pause_seconds:
        return False
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('swept', ?)", (str(now),))
    return True


def expire(connection: sqlite3.Connection, before: float, spared: Container[str]) -> bool:
    """Take out some of the threads that nothing was added to since; is that all of them?"""
    rows = connection.execute("SELECT id FROM threads WHERE updated < ? ORDER BY updated", (before,)).fetchall()
    old = [thread for (thread,) in rows if thread not in spared]
    for thread in old[:_EXPIRED_AT_ONCE]:
        _remove_alone(connection, thread)
    return len(old) <= _EXPIRED_AT_ONCE
