"""The store of threads: every conversation, item by item, in a SQLite file that several processes share.

Nothing is opened before the first use, and nothing is written before a thread has an item. Whatever reads or writes may
raise `UnusableError`, with a whole sentence: a conversation goes on without the store, so whoever has one catches it.
The folder is the store's own. Several threads of a process may use one object.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from ferrule.system.sqlite import Database, UnusableError
from ferrule.tools.threads import (
    TITLE,
    Findings,
    Item,
    Thread,
    ThreadFinding,
    ThreadMetadata,
    bindable,
    parse_thread_id,
)
from ferrule.tools.threads.search import (
    MIGRATIONS,
    SELECT,
    ThreadFilter,
    ThreadIndex,
    copy,
    expire,
    files_of,
    find,
    insert,
    is_due,
    items_of,
    list_newest,
    remove,
    tidy,
    write,
)
from ferrule.tools.threads.search import about_of as about_row

if TYPE_CHECKING:
    import sqlite3


__all__ = ["Findings", "Item", "Thread", "ThreadFinding", "ThreadMetadata", "ThreadStore"]

_DAY_SECONDS = 86_400.0
_SWEEP_SECONDS = 3_600.0
_SOME_CHARS = 6
"""How much of an id has to be given, with its T-."""


class ThreadStore:
    """Threads by id, in a folder that only the user can read."""

    def __init__(
        self,
        folder: str,
        *,
        keep_days: float = 365.0,
        clock: Callable[[], float] = time.time,
        busy_seconds: float = 5.0,
        full_text: bool | None = None,
    ) -> None:
        """`full_text`: search with SQLite's index? Where nothing is said, if it has one."""
        self.path = os.path.join(os.path.abspath(folder), "threads.db")
        self._keep_seconds = keep_days * _DAY_SECONDS
        self._clock = clock
        self._busy_seconds = busy_seconds
        self._full_text = full_text
        self._lock = threading.RLock()
        self._database: Database | None = None
        self._begun: dict[str, ThreadMetadata] = {}
        """What is known of the threads of this session, should they have to be made, or made again."""
        self._swept: float | None = None

    @property
    def warning(self) -> str | None:
        """One sentence when a damaged store was replaced by a new one."""
        return None if self._database is None else self._database.warning

    def begin(
        self,
        thread: str,
        *,
        workspace: str,
        repo: str = "",
        model: str = "",
        dialect: str = "",
        parent: str = "",
        title: str = "",
    ) -> None:
        """Say what a thread is; it is made with its first item. One that is there already stays as it is."""
        about = ThreadMetadata(thread, workspace, repo, model, dialect, parent, title, created=self._clock())
        with self._lock:
            self._begun.setdefault(thread, about)

    def append(self, thread: str, items: Sequence[Item], *, branch: str = "") -> None:
        """Keep items, all or none of them, behind those that the thread has.

        `branch` is what is checked out in its workspace now, if that is known.
        """
        if not items:
            return

        now = self._clock()
        with self._lock:
            about = self._begun.setdefault(thread, ThreadMetadata(thread, "", created=now))
            with self._open_database() as database:
                if self._swept is None:
                    _make_private(os.path.dirname(self.path))
                database.write(lambda connection: insert(connection, about, items, now, branch=branch))
                self._sweep(database, now)

    def rename(self, thread: str, title: str) -> bool:
        """Give a thread the user's own title, which no other replaces; false if there is no such thread."""
        if self.about(thread) is None:
            return False
        body = msgspec.json.encode({"title": bindable(title), "by": "user"})
        self.append(thread, [Item(TITLE, "", body)])
        return True

    def copy(self, thread: str, name: str) -> bool:
        """Copy a thread under another id; false if there is no such thread, or nothing in it."""
        with self._lock, self._open_database() as database:
            if not self._is_there():
                return False
            return database.write(lambda connection: copy(connection, thread, name, self._clock()))

    def load(self, thread: str) -> Thread | None:
        """A whole thread. Items at its end that are no JSON are left out, and counted."""

        def whole_thread(connection: "sqlite3.Connection") -> tuple[ThreadMetadata, list[Item], list[str]] | None:
            row = connection.execute(f"{SELECT} WHERE id = ?", (thread,)).fetchone()
            return row and (about_row(row), items_of(connection, row[0]), files_of(connection, row[0]))

        with self._lock, self._open_database() as database:
            kept = database.read(whole_thread) if self._is_there() else None
        if kept is None:
            begun = self._begun.get(thread)
            return None if begun is None else Thread(begun)
        about, items, files = kept
        whole = len(items)
        while items and not _is_json(items[-1].body):
            items.pop()
        return Thread(about, tuple(items), tuple(files), whole - len(items))

    def about(self, thread: str) -> ThreadMetadata | None:
        """What is known of a thread, without reading its items."""
        with self._lock, self._open_database() as database:
            if not self._is_there():
                return self._begun.get(thread)
            row = database.read(lambda connection: connection.execute(f"{SELECT} WHERE id = ?", (thread,)).fetchone())
        return self._begun.get(thread) if row is None else about_row(row)

    def latest(self, workspace: str) -> str | None:
        """The last thread of this very folder; none of a subagent."""
        with self._lock, self._open_database() as database:
            if not self._is_there():
                return None
            row = database.read(
                lambda connection: connection.execute(
                    "SELECT id FROM threads WHERE workspace = ? AND parent = '' ORDER BY updated DESC, number DESC",
                    (workspace,),
                ).fetchone()
            )
        return None if row is None else str(row[0])

    def resolve(self, name: str) -> str | None:
        """The thread that is meant: an id, the beginning of only one, with an @, or an address that ends with one."""
        found = self.find_ids(name)
        return found[0] if len(found) == 1 else None

    def find_ids(self, name: str) -> tuple[str, ...]:
        """The threads whose ids begin so, a few at most; one that is named in full is the only one."""
        wanted = parse_thread_id(name)
        for whole in (name.strip(), wanted):
            if whole and self.about(whole) is not None:
                return (whole,)
        if len(wanted) < _SOME_CHARS or not self._is_there():
            return ()
        with self._lock, self._open_database() as database:
            rows = database.read(
                lambda connection: connection.execute(
                    "SELECT id FROM threads WHERE id BETWEEN ? AND ? ORDER BY updated DESC LIMIT 5",
                    (wanted, wanted + "~"),
                ).fetchall()
            )
        return tuple(thread for (thread,) in rows)

    def find(
        self,
        query: str,
        *,
        limit: int = 20,
        workspace: str | Sequence[str] | None = None,
        children: bool = False,
        own: bool = True,
    ) -> Findings:
        """The threads that fit a query, the best first; without `own`, none of this session's."""
        wanted = self._build_filter(workspace, children=children, own=own)
        with self._lock, self._open_database() as database:
            if not self._is_there():
                return Findings()
            index = ThreadIndex(full_text=self._full_text)
            return find(database, index, query, wanted, limit=limit, now=self._clock())

    def list(
        self, *, limit: int = 20, workspace: str | Sequence[str] | None = None, children: bool = False
    ) -> tuple[ThreadMetadata, ...]:
        """The newest threads, the newest first."""
        wanted = self._build_filter(workspace, children=children)
        with self._lock, self._open_database() as database:
            if not self._is_there():
                return ()
            return tuple(database.read(lambda connection: list_newest(connection, wanted, limit)))

    def delete(self, thread: str) -> bool:
        """Do away with a thread and those of its subagents, so that nothing of them is left in the file."""
        with self._lock, self._open_database() as database:
            self._begun.pop(thread, None)
            if not self._is_there():
                return False
            database.read(lambda connection: connection.execute("PRAGMA secure_delete = ON").fetchone())
            gone = write(database, lambda connection: remove(connection, thread))
            if gone:
                write(database, tidy)
                # Others may be reading: then the next one who writes does it.
                database.read(lambda connection: connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone())
        return gone

    def close(self) -> None:
        """Let go of the file; the next use opens it again."""
        with self._lock:
            if self._database is not None:
                self._database.close()
                self._database = None

    def _build_filter(
        self, workspace: str | Sequence[str] | None, *, children: bool, own: bool = True
    ) -> "ThreadFilter":

        folders = (workspace,) if isinstance(workspace, str) else workspace
        return ThreadFilter(folders, children=children, without=() if own else tuple(self._begun))

    def _is_there(self) -> bool:
        """Asking makes no file."""
        return os.path.exists(self.path)

    def _sweep(self, database: "Database", now: float) -> None:
        """Remove what is too old, at most once an hour over all processes."""
        if self._swept is not None and 0 <= now - self._swept < _SWEEP_SECONDS:
            return
        self._swept = now

        # Whatever stands in the way of it: what is being kept now has its place.
        with contextlib.suppress(UnusableError):
            if database.write(lambda connection: is_due(connection, now, _SWEEP_SECONDS)):
                # What a session of another process has kept within the hour is in use.
                before = now - max(self._keep_seconds, _SWEEP_SECONDS)
                while not write(database, lambda connection: expire(connection, before, self._begun)):
                    pass
                # As a script: `execute` would stop after the first page.
                database.read(lambda connection: connection.executescript("PRAGMA incremental_vacuum"))

    @contextlib.contextmanager
    def _open_database(self) -> "Iterator[Database]":
        """The database; what is wrong with it is said in a whole sentence."""
        try:
            if self._database is None:
                self._database = Database(self.path, migrations=MIGRATIONS, busy_seconds=self._busy_seconds)
            yield self._database
        except UnusableError as error:
            raise UnusableError(f"The store of threads {self.path} {error}.") from error
        except OSError as error:
            raise UnusableError(
                f"The store of threads {self.path} cannot be used: {error.strerror or error}."
            ) from error


def _make_private(folder: str) -> None:
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if os.name == "posix" and os.stat(folder).st_mode & 0o077:
        os.chmod(folder, 0o700)


def _is_json(body: bytes) -> bool:
    try:
        msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
