"""The rows of the store of threads: how they are laid out, put in and taken out."""

import sqlite3
from collections.abc import Callable, Container, Sequence
from typing import Any

import msgspec

from ferrule.workspace.thread import PROMPT, SAID_CHARS, TITLE, WRITTEN, About, Item, bindable
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
    "ALTER TABLE threads ADD COLUMN branch TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE threads ADD COLUMN prompts INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE threads ADD COLUMN answers INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE threads ADD COLUMN titled_by TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE threads ADD COLUMN last_prompt TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE threads ADD COLUMN last_answer TEXT NOT NULL DEFAULT ''",
    """UPDATE threads SET
        answers = (SELECT count(*) FROM items WHERE role = 'assistant'
            AND items.number BETWEEN threads.number << 24 AND ((threads.number + 1) << 24) - 1),
        prompts = (SELECT count(*) FROM items WHERE kind = 'prompt'
            AND items.number BETWEEN threads.number << 24 AND ((threads.number + 1) << 24) - 1)""",
    # What was kept before prompts were numbered: what the user said, and not what calls came back with.
    """UPDATE threads SET
        prompts = (SELECT count(*) FROM items WHERE role = 'user'
            AND items.number BETWEEN threads.number << 24 AND ((threads.number + 1) << 24) - 1
            AND instr(body, CAST('"type":"result"' AS BLOB)) = 0)
        WHERE prompts = 0""",
)
SELECT = (
    "SELECT number, id, workspace, repo, model, dialect, parent, title, created, updated, turns, items,"
    " branch, prompts, answers, titled_by, last_prompt, last_answer FROM threads"
)
"""What `about` reads."""
_SPOKEN = frozenset({"user", "assistant"})
_TITLE_CHARS = 80
_FORK = " (fork)"
_EXPIRED_AT_ONCE = 50
"""Threads of one transaction: others want to write too."""


class _Title(msgspec.Struct):
    title: str
    by: str = "user"


def insert(
    connection: sqlite3.Connection, about: About, items: Sequence[Item], now: float, *, branch: str = ""
) -> None:
    """Put items behind those of their thread, which is made where it is not there. `branch` is that of a prompt."""
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
    # Another title is nothing new in the conversation.
    is_newer = any(one.kind != TITLE for one in items)
    connection.execute(
        "UPDATE threads SET items = ?, turns = turns + ?, prompts = prompts + ?, answers = answers + ?,"
        " updated = CASE WHEN ? THEN ? ELSE updated END, title = ?, branch = CASE ? WHEN '' THEN branch ELSE ? END,"
        " last_prompt = CASE ? WHEN '' THEN last_prompt ELSE ? END,"
        " last_answer = CASE ? WHEN '' THEN last_answer ELSE ? END WHERE number = ?",
        (
            last + len(items),
            sum(one.role in _SPOKEN for one in items),
            sum(one.kind == PROMPT for one in items),
            sum(one.role == "assistant" for one in items),
            is_newer,
            now,
            title or _title(items),
            *(bindable(branch),) * 2,
            *(_last(items, lambda one: one.kind == WRITTEN),) * 2,
            *(_last(items, lambda one: one.role == "assistant"),) * 2,
            number,
        ),
    )
    for one in items:
        if one.kind == TITLE:
            _rename(connection, number, one.body)


def _last(items: Sequence[Item], fits: Callable[[Item], bool]) -> str:
    return bindable(next((one.said for one in reversed(items) if one.said and fits(one)), "")[:SAID_CHARS])


def _rename(connection: sqlite3.Connection, number: int, body: bytes) -> None:
    """Give a thread another title; what the user has called it stays unless the user says otherwise."""
    try:
        title, by = msgspec.structs.astuple(msgspec.json.decode(body, type=_Title))
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return
    connection.execute(
        "UPDATE threads SET title = ?, titled_by = ? WHERE number = ? AND (? = 'user' OR titled_by != 'user')",
        (bindable(title), bindable(by), number, by),
    )


def copy(connection: sqlite3.Connection, thread: str, name: str, now: float) -> bool:
    """Copy a thread with all its items under another id, as the newest of all; was it there?"""
    row = connection.execute("SELECT number, title, titled_by FROM threads WHERE id = ?", (thread,)).fetchone()
    if row is None:
        return False
    old, title, by = row
    made = connection.execute(
        "INSERT INTO threads (id, parent, title, updated, titled_by, workspace, repo, model, dialect, created, turns,"
        " items, branch, prompts, answers, last_prompt, last_answer)"
        " SELECT ?, '', ?, ?, ?, workspace, repo, model, dialect, created, turns,"
        " items, branch, prompts, answers, last_prompt, last_answer FROM threads WHERE number = ?",
        (name, f"{title}{_FORK}" if title and not title.endswith(_FORK) else title, now, by or "model", old),
    )
    new = made.lastrowid or 0
    connection.execute(
        "INSERT INTO items SELECT number + ?, at, kind, role, body, text FROM items WHERE number BETWEEN ? AND ?",
        ((new - old) << SHIFT, *span(old)),
    )
    connection.execute("INSERT INTO files SELECT ?, path FROM files WHERE thread = ?", (new, old))
    return True


def _title(items: Sequence[Item]) -> str:
    """The beginning of what the user said first."""
    text = next((one.text for one in items if one.role == "user" and one.text.strip()), "")
    line = " ".join(text.strip()[: 4 * _TITLE_CHARS].split())
    return bindable(line if len(line) <= _TITLE_CHARS else line[: _TITLE_CHARS - 1].rstrip() + "…")


def about(row: Sequence[Any]) -> About:
    """A row of `SELECT`."""
    return About(*row[1:])


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
