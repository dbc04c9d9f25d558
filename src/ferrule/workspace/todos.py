"""The list of todos of a session, in a SQLite file that several processes share. Each operation is one transaction.

A todo waits for others by edges; each is kept once and read from both ends, and together they never form a circle.
"""

import os
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

import msgspec

from ferrule.core.errors import ToolFailure
from ferrule.core.todos import Todo, TodoUpdated
from ferrule.workspace.todo_rows import MIGRATIONS, forget, sweep
from ferrule.workspace.todo_rules import (
    MOST_TODOS,
    Change,
    Edge,
    Rows,
    check_owner,
    edges_after,
    known,
    merged_metadata,
    number_of,
    parent_of,
)

if TYPE_CHECKING:
    import sqlite3

    from ferrule.support.sqlite import Database
    from ferrule.support.threads import Threads

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

    async def create(self, change: Change) -> Todo:
        return await self._write(lambda connection: self._create(connection, change))

    async def get(self, todo_id: str) -> Todo | None:
        """The todo; None where there is none of that id."""
        number = number_of(todo_id)
        return None if number is None else (await self._all(number)).get(number)

    async def all(self) -> tuple[Todo, ...]:
        """Every todo, by id."""
        return tuple((await self._all()).values())

    async def update(self, todo_id: str, change: Change) -> TodoUpdated:
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
            return database.write(lambda connection: self._used(connection, work))

        done = await self._run(whole)
        self._on_change(await self.all())
        return done

    def _used(self, connection: "sqlite3.Connection", work: "Callable[[sqlite3.Connection], T]") -> T:
        """Some work on the list, which is in use by that. The first time, lists that nobody uses any more go away."""
        done, now = work(connection), self._clock()
        connection.execute("UPDATE lists SET used = ? WHERE id = ?", (now, self.list_id))
        if not self._has_swept:
            self._has_swept = True
            sweep(connection, now, self._keep_days)
        return done

    async def _run(self, work: "Callable[[Database], T]") -> T:
        if self._threads is None:
            from ferrule.support.threads import Threads  # most sessions have no todos

            # One thread: what was called first is done first.
            self._threads = Threads(1)
        return await self._threads.finish(self._explained, work)

    def _explained(self, work: "Callable[[Database], T]") -> T:
        from ferrule.support.sqlite import Database, UnusableError  # loads SQLite

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

    def _create(self, connection: "sqlite3.Connection", change: Change) -> Todo:
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

    def _update(self, connection: "sqlite3.Connection", todo_id: str, change: Change) -> TodoUpdated:
        rows = self._meant(connection, todo_id, alone=not change.names_others and change.owner is None)
        number = known(rows, todo_id)
        before = rows[number]
        check_owner(before, change, rows.values())
        self._apply(connection, rows, number, change)
        after = self._load(connection, number)[number]
        told = (*_PLAIN, "metadata", "parent", "blocks", "blocked_by")
        fields = tuple(name for name in told if getattr(before, name) != getattr(after, name))
        return TodoUpdated(after, fields, before.status)

    def _meant(self, connection: "sqlite3.Connection", todo_id: str, *, alone: bool) -> Rows:
        """The todo that is meant, `alone` or with all others; all of them also where there is none of that id."""
        number = number_of(todo_id)
        rows = self._load(connection, number) if alone and number is not None else {}
        return rows or self._load(connection)

    def _delete(self, connection: "sqlite3.Connection", todo_id: str) -> Todo:
        rows = self._meant(connection, todo_id, alone=True)
        number = known(rows, todo_id)
        where = {"list": self.list_id, "id": number}
        connection.execute("DELETE FROM edges WHERE list = :list AND :id IN (blocker, blocked)", where)
        connection.execute("UPDATE todos SET parent = NULL WHERE list = :list AND parent = :id", where)
        connection.execute("DELETE FROM todos WHERE list = :list AND id = :id", where)
        return rows[number]

    def _apply(self, connection: "sqlite3.Connection", rows: Rows, number: int, change: Change) -> None:
        texts = {name: _bindable(value) for name in _PLAIN if (value := getattr(change, name)) is not None}
        values: dict[str, str | int | None] = {
            **texts,
            "metadata": merged_metadata(rows[number].metadata, change.metadata),
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
