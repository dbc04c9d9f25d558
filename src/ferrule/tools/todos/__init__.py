"""Store the todos of a session in a SQLite file that several processes share.

Each operation is one transaction.

A todo waits for others by edges. Each edge is stored once and read from both ends, and together they never form
a circle.
"""

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import msgspec

from ferrule.core.errors import ToolFailure
from ferrule.system import Threads
from ferrule.system.sqlite import Database, UnusableError

if TYPE_CHECKING:
    import sqlite3


TodoStatus = Literal["pending", "in_progress", "completed"]
TodoAction = Literal["create", "list", "get", "update", "delete"]

_MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}


class Todo(NamedTuple):
    """One thing to be done. Ids are small numbers, written as text; none is ever given twice in a list."""

    id: str
    subject: str
    description: str = ""
    status: TodoStatus = "pending"
    active_form: str = ""
    """What is shown while somebody works on it."""
    owner: str = ""
    metadata: Mapping[str, Any] = MappingProxyType({})
    blocks: tuple[str, ...] = ()
    """Those that have to wait for this one."""
    blocked_by: tuple[str, ...] = ()
    """Those that this one has to wait for, done or not."""
    waits_for: tuple[str, ...] = ()
    """Of those, the ones that are not completed."""
    parent: str = ""
    kind: str = ""
    repository: str = ""

    @property
    def is_ready(self) -> bool:
        """Can it be begun: is it not done, and is everything done that comes before it?"""
        return self.status != "completed" and not self.waits_for


class TodoCreated(NamedTuple):
    """A todo that is new on the list."""

    todo: Todo


class TodoSeen(NamedTuple):
    """The todo that was asked for; None where there is none."""

    todo: Todo | None


class TodoUpdated(NamedTuple):
    """A todo as it is now, and what was changed about it, in canonical names."""

    todo: Todo
    fields: tuple[str, ...]
    was: TodoStatus
    """Its status before."""


class TodoDeleted(NamedTuple):
    """A todo that is off the list, as it was."""

    todo: Todo


class TodoListed(NamedTuple):
    """Todos in the order of their ids."""

    todos: tuple[Todo, ...]
    remaining: int = 0
    """How many more there are than were asked for."""


def todo_lines(todos: Iterable[Todo]) -> list[str]:
    """The list for people, a line each; whoever shows it makes sure that nothing in it steers the screen."""
    lines = []
    for todo in todos:
        about = [f"waits for {', '.join(todo.waits_for)}"] if todo.waits_for and todo.status != "completed" else []
        about = [todo.owner, *about] if todo.owner else about
        doing = todo.active_form if todo.status == "in_progress" and todo.active_form else todo.subject
        lines.append(f"{_MARKS[todo.status]} {todo.id} {doing}" + (f" ({'; '.join(about)})" if about else ""))
    return lines


Rows = dict[int, Todo]
Edge = tuple[int, int]
"""Who blocks, and who is blocked."""

MOST_TODOS = 1_000
MOST_EDGES = 5_000
MOST_METADATA_CHARS = 20_000
_MOST_DIGITS = 9
_MOST_NAMED = 20


class TodoChange(NamedTuple):
    """What to write about a todo; what is None stays as it is."""

    subject: str | None = None
    description: str | None = None
    status: TodoStatus | None = None
    active_form: str | None = None
    owner: str | None = None
    kind: str | None = None
    repository: str | None = None
    metadata: Mapping[str, Any] = MappingProxyType({})
    """Values to add; None takes one away."""
    parent: str | None = None
    """Empty for none."""
    blocked_by: Sequence[str] | None = None
    """All that it has to wait for, in place of what it waited for before."""
    add_blocks: Sequence[str] = ()
    add_blocked_by: Sequence[str] = ()

    @property
    def names_others(self) -> bool:
        """Does it say anything about other todos?"""
        return bool(self.blocked_by is not None or self.add_blocks or self.add_blocked_by or self.parent)


def require_number(rows: Rows, todo_id: str, why: Literal["", "blocks", "blocked_by", "parent"] = "") -> int:
    number = number_of(todo_id)
    if number in rows:
        return number
    there = f"There are {_few(todo.id for todo in rows.values())}." if rows else "The list is empty."
    about = {"": "", "blocks": " that could wait", "blocked_by": " to wait for", "parent": " to be part of"}[why]
    raise ToolFailure(f"There is no task {todo_id[:80]!r}{about}. {there}", code="no-such-todo")


def _few(ids: Iterable[str]) -> str:
    every = list(ids)
    more = len(every) - _MOST_NAMED
    return ", ".join(every[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def check_owner(before: Todo, change: TodoChange, every: Iterable[Todo]) -> None:
    """Nobody takes what another one is working on."""
    claims = change.owner is not None and change.owner.strip() not in {"", before.owner}
    if not (claims and before.owner and before.status == "in_progress") or change.status == "pending":
        return
    free = [one.id for one in every if one.status == "pending" and one.is_ready and not one.owner]
    instead = f"Nobody has {_few(free)} yet." if free else "Everything else is taken, done or has to wait."
    raise ToolFailure(
        f"{before.owner} is working on task {before.id}. {instead} To hand it over all the same, set its status to "
        "pending with the new owner first.",
        code="todo-taken",
    )


def merge_metadata(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """The metadata as JSON."""
    merged = {key: value for key, value in {**old, **new}.items() if value is not None}
    try:
        text = msgspec.json.encode(merged).decode()
    except (UnicodeEncodeError, RecursionError) as error:
        raise ToolFailure(f"The metadata cannot be kept: {error}.", code="bad-metadata") from error
    if len(text) > MOST_METADATA_CHARS:
        raise ToolFailure(
            f"The metadata would have {len(text):,} characters as JSON; {MOST_METADATA_CHARS:,} is the most. "
            "Set keys to null to take them away.",
            code="too-much-metadata",
        )
    return text


def parent_of(rows: Rows, number: int, wanted: str) -> int | None:
    if not wanted.strip():
        return None
    parent = require_number(rows, wanted, "parent")
    above = {(int(todo.id), int(todo.parent)) for todo in rows.values() if todo.parent and int(todo.id) != number}
    if found := find_cycle({*above, (number, parent)}, number):
        raise ToolFailure(f"A task cannot be a part of itself: {found}.", code="todo-circle")
    return parent


def edges_after(rows: Rows, number: int, change: TodoChange, edges: set[Edge]) -> set[Edge]:
    """All edges of the list after the change."""
    before = {require_number(rows, one, "blocked_by") for one in change.add_blocked_by}
    after = {require_number(rows, one, "blocks") for one in change.add_blocks}
    wanted = set(edges)
    if change.blocked_by is not None:
        wanted = {edge for edge in edges if edge[1] != number}
        before |= {require_number(rows, one, "blocked_by") for one in change.blocked_by}
    wanted |= {(one, number) for one in before} | {(number, one) for one in after}
    if (number, number) in wanted:
        raise ToolFailure(f"Task {number} cannot wait for itself. Nothing was changed.", code="todo-circle")
    if found := find_cycle(wanted, number):
        raise ToolFailure(
            f"These tasks would wait for each other, and none could ever begin: {found}. Nothing was changed.",
            code="todo-circle",
        )
    if len(wanted) > MOST_EDGES and len(wanted) > len(edges):
        raise ToolFailure(
            f"The list would have {len(wanted):,} dependencies; {MOST_EDGES:,} is the most.", code="too-many-edges"
        )
    return wanted


def number_of(todo_id: str) -> int | None:
    digits = todo_id.strip().removeprefix("#")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS else None


def find_cycle(edges: Iterable[Edge], start: int) -> str:
    """The way from `start` back to it, as `1 → 3 → 1`; empty where there is none."""
    follows: dict[int, list[int]] = {}
    for one, other in sorted(edges):
        follows.setdefault(one, []).append(other)
    came: dict[int, int] = {}
    ahead = [start]
    for at in ahead:
        for other in follows.get(at, ()):
            if other == start:
                way = [start, at]
                while way[-1] != start:
                    way.append(came[way[-1]])
                return " → ".join(map(str, reversed(way)))
            if other not in came:
                came[other] = at
                ahead.append(other)
    return ""


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


T = TypeVar("T")
_PLAIN = ("subject", "description", "status", "active_form", "owner", "kind", "repository")


class Todos:
    """One list by its id. Nothing is made before the first todo is."""

    def __init__(
        self,
        folder: str,
        list_id: str,
        *,
        keep_days: float = 365.0,
        clock: Callable[[], float] = time.time,
        busy_seconds: float = 5.0,
        on_change: Callable[[tuple[Todo, ...]], object] = lambda _: None,
    ) -> None:
        """`keep_days`: lists of conversations that nobody has written to for so long go away.

        `on_change` is told the whole list after each change that is made here.
        """
        self._on_change = on_change
        self.list_id = _bindable(list_id)
        self._keep_days = keep_days
        self._clock = clock
        self._has_swept = False
        self._path = os.path.join(os.path.abspath(folder), "todos.sqlite")
        self._busy_seconds = busy_seconds
        self._database: Database | None = None
        self._threads: Threads | None = None
        self._warned = False

    def warning(self) -> str | None:
        """One sentence, once, when a damaged file was replaced by a new one."""
        said = None if self._database is None or self._warned else self._database.warning
        self._warned = self._warned or said is not None
        return said

    async def create(self, change: TodoChange) -> Todo:
        return await self._write(lambda connection: self._create(connection, change))

    async def get(self, todo_id: str) -> Todo | None:
        """The todo; None where there is none of that id."""
        number = number_of(todo_id)
        return None if number is None else (await self._all(number)).get(number)

    async def all(self) -> tuple[Todo, ...]:
        """Every todo, by id."""
        return tuple((await self._all()).values())

    async def update(self, todo_id: str, change: TodoChange) -> TodoUpdated:
        """Change all of it or, with a failure, nothing."""
        return await self._write(lambda connection: self._update(connection, todo_id, change))

    async def delete(self, todo_id: str) -> Todo:
        """Take it off the list; nothing waits for it any more. The todo as it was."""
        return await self._write(lambda connection: self._delete(connection, todo_id))

    async def forget(self) -> None:
        """Delete the whole list, as one does with the conversation that it belongs to; nothing of it stays behind."""

        def work(database: "Database") -> None:
            if os.path.exists(self._path):
                database.read(lambda connection: connection.execute("PRAGMA secure_delete = ON").fetchone())
                database.write(lambda connection: forget(connection, [self.list_id]))
                # Others may be reading: then the next one who writes does it.
                database.read(lambda connection: connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone())

        await self._run(work)

    async def close(self) -> None:
        """Finish what was begun and let go of the file. It opens again when it is needed."""
        threads, self._threads = self._threads, None
        if threads is not None:
            try:
                await threads.finish(self._disconnect)
            finally:
                threads.close()

    async def _write(self, work: "Callable[[sqlite3.Connection], T]") -> T:
        def whole(database: "Database") -> T:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            return database.write(lambda connection: self._run_and_touch(connection, work))

        done = await self._run(whole)
        self._on_change(await self.all())
        return done

    def _run_and_touch(self, connection: "sqlite3.Connection", work: "Callable[[sqlite3.Connection], T]") -> T:
        """Some work on the list, which is in use by that. The first time, lists that nobody uses any more go away."""
        done, now = work(connection), self._clock()
        connection.execute("UPDATE lists SET used = ? WHERE id = ?", (now, self.list_id))
        if not self._has_swept:
            self._has_swept = True
            sweep(connection, now, self._keep_days)
        return done

    async def _run(self, work: "Callable[[Database], T]") -> T:
        if self._threads is None:
            # One thread: what was called first is done first.
            self._threads = Threads(1)
        return await self._threads.finish(self._run_on_database, work)

    def _run_on_database(self, work: "Callable[[Database], T]") -> T:

        try:
            if self._database is None:
                self._database = Database(self._path, migrations=MIGRATIONS, busy_seconds=self._busy_seconds)
            return work(self._database)
        except UnusableError as error:
            raise self._unusable(str(error)) from error
        except OSError as error:
            raise self._unusable(f"cannot be used: {error.strerror or error}") from error

    def _unusable(self, what: str) -> ToolFailure:
        return ToolFailure(
            f"The task list {self._path} {what}. Try again once; if that fails too, go on without it and tell the user "
            "what is left to do in your own words.",
            code="todos-unusable",
        )

    def _disconnect(self) -> None:
        if self._database is not None:
            self._database.close()

    async def _all(self, only: int | None = None) -> Rows:
        def work(database: "Database") -> Rows:
            # Several statements that have to agree; a reader waits for nobody.
            there = os.path.exists(self._path)
            return database.read(lambda connection: self._rows_now(connection, only)) if there else {}

        return await self._run(work)

    def _rows_now(self, connection: "sqlite3.Connection", only: int | None) -> Rows:
        connection.execute("BEGIN")
        try:
            return self._load(connection, only)
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def _load(self, connection: "sqlite3.Connection", only: int | None = None) -> Rows:
        """All todos by their numbers, or `only` one of them: on a long list that is a fraction of the work."""
        where = {"list": self.list_id, "id": only}
        edges = connection.execute(
            "SELECT blocker, blocked FROM edges WHERE list = :list AND (:id IS NULL OR :id IN (blocker, blocked))",
            where,
        ).fetchall()
        found = connection.execute(
            f"SELECT id, metadata, parent, {', '.join(_PLAIN)} FROM todos"  # noqa: S608 - names of ours
            " WHERE list = :list AND (:id IS NULL OR id = :id) ORDER BY id",
            where,
        ).fetchall()
        completed = "SELECT id FROM todos WHERE list = ? AND status = 'completed'"
        done = {number for (number,) in connection.execute(completed, (self.list_id,))} if edges else set()
        blocks: dict[int, list[int]] = {}
        blocked_by: dict[int, list[int]] = {}
        for blocker, blocked in sorted(edges):
            blocks.setdefault(blocker, []).append(blocked)
            blocked_by.setdefault(blocked, []).append(blocker)
        return {
            number: Todo(
                id=str(number),
                **dict(zip(_PLAIN, plain, strict=True)),
                metadata=msgspec.json.decode(metadata),
                parent="" if parent is None else str(parent),
                blocks=_texts(blocks.get(number, ())),
                blocked_by=_texts(blocked_by.get(number, ())),
                waits_for=_texts(one for one in blocked_by.get(number, ()) if one not in done),
            )
            for number, metadata, parent, *plain in found
        }

    def _create(self, connection: "sqlite3.Connection", change: TodoChange) -> Todo:
        (count,) = connection.execute("SELECT COUNT(*) FROM todos WHERE list = ?", (self.list_id,)).fetchone()
        if count >= MOST_TODOS:
            raise ToolFailure(
                f"The task list has {count:,} tasks, which is the most. Delete those that are done first.",
                code="too-many-todos",
            )
        connection.execute("INSERT OR IGNORE INTO lists (id, last) VALUES (?, 0)", (self.list_id,))
        ((number,),) = connection.execute(
            "UPDATE lists SET last = last + 1 WHERE id = ? RETURNING last", (self.list_id,)
        ).fetchall()
        connection.execute(
            "INSERT INTO todos VALUES (?, ?, '', '', 'pending', '', '', '', '', '{}', NULL)", (self.list_id, number)
        )
        change = change._replace(blocked_by=change.blocked_by or None)  # a new one waits for nothing that could go
        rows = self._load(connection, None if change.names_others else number)
        self._apply(connection, rows, number, change)
        return self._load(connection, number)[number]

    def _update(self, connection: "sqlite3.Connection", todo_id: str, change: TodoChange) -> TodoUpdated:
        rows = self._load_target(connection, todo_id, alone=not change.names_others and change.owner is None)
        number = require_number(rows, todo_id)
        before = rows[number]
        check_owner(before, change, rows.values())
        self._apply(connection, rows, number, change)
        after = self._load(connection, number)[number]
        told = (*_PLAIN, "metadata", "parent", "blocks", "blocked_by")
        fields = tuple(name for name in told if getattr(before, name) != getattr(after, name))
        return TodoUpdated(after, fields, before.status)

    def _load_target(self, connection: "sqlite3.Connection", todo_id: str, *, alone: bool) -> Rows:
        """The todo that is meant, `alone` or with all others; all of them also where there is none of that id."""
        number = number_of(todo_id)
        rows = self._load(connection, number) if alone and number is not None else {}
        return rows or self._load(connection)

    def _delete(self, connection: "sqlite3.Connection", todo_id: str) -> Todo:
        rows = self._load_target(connection, todo_id, alone=True)
        number = require_number(rows, todo_id)
        where = {"list": self.list_id, "id": number}
        connection.execute("DELETE FROM edges WHERE list = :list AND :id IN (blocker, blocked)", where)
        connection.execute("UPDATE todos SET parent = NULL WHERE list = :list AND parent = :id", where)
        connection.execute("DELETE FROM todos WHERE list = :list AND id = :id", where)
        return rows[number]

    def _apply(self, connection: "sqlite3.Connection", rows: Rows, number: int, change: TodoChange) -> None:
        texts = {name: _bindable(value) for name in _PLAIN if (value := getattr(change, name)) is not None}
        values: dict[str, str | int | None] = {
            **texts,
            "metadata": merge_metadata(rows[number].metadata, change.metadata),
        }
        if change.parent is not None:
            values["parent"] = parent_of(rows, number, change.parent)
        connection.execute(
            f"UPDATE todos SET {', '.join(f'{name} = :{name}' for name in values)} WHERE list = :list AND id = :id",  # noqa: S608 - names of ours
            {**values, "list": self.list_id, "id": number},
        )
        if not change.names_others:
            return
        every = connection.execute("SELECT blocker, blocked FROM edges WHERE list = ?", (self.list_id,))
        edges: set[Edge] = set(every)
        wanted = edges_after(rows, number, change, edges)
        connection.executemany(
            "DELETE FROM edges WHERE list = ? AND blocker = ? AND blocked = ?",
            [(self.list_id, *edge) for edge in edges - wanted],
        )
        connection.executemany(
            "INSERT INTO edges VALUES (?, ?, ?)", [(self.list_id, *edge) for edge in sorted(wanted - edges)]
        )


def _texts(numbers: Iterable[int]) -> tuple[str, ...]:
    return tuple(map(str, numbers))


def _bindable(text: str) -> str:
    """SQLite takes no half of a surrogate pair in its texts."""
    return text.encode("utf-8", "replace").decode()
