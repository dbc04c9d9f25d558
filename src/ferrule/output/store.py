"""Keep full outputs that were cut for the model, and process logs, readable by id for a while.

Texts are rows of a SQLite file that the engines of several processes share; logs of processes are files beside
it. Nothing is created before the first use. Edits and undo do not depend on the store: a `StoreError` costs the
full output of one call, and a damaged file is set aside and never overwritten.
"""

import codecs
import contextlib
import errno
import io
import os
import stat
import time
from collections.abc import Callable, Container, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from ferrule.core.errors import FerruleError

if TYPE_CHECKING:
    import sqlite3

    from ferrule.system import Threads
    from ferrule.system.sqlite import Database


ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_TYPED = str.maketrans("ilo", "110")
_ID_LENGTH = 10
_OPEN = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


def new_id() -> str:
    """A name that nobody guesses and that is easy to type."""
    return "".join(ALPHABET[byte & 31] for byte in os.urandom(_ID_LENGTH))


def is_id(text: str) -> bool:
    return len(text) == _ID_LENGTH and set(text) <= set(ALPHABET)


def normalize_id(typed: str) -> str | None:
    """The id, or the beginning of one, that somebody typed: i, l and o are read as 1, 1 and 0."""
    text = typed.strip().lower().translate(_TYPED)
    return text if text and set(text) <= set(ALPHABET) else None


def make_private(directory: str) -> None:
    """Make the directory, for the user alone. Raises `OSError`, also for one that is shared with others."""
    with contextlib.suppress(FileExistsError):
        os.makedirs(directory, mode=0o700)
    status = os.stat(directory)
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), directory)
    if os.name != "posix" or not status.st_mode & 0o077:
        return
    # A sticky directory is one that everybody uses, like the one for temporary files.
    if status.st_uid != os.geteuid() or status.st_mode & stat.S_ISVTX:
        raise PermissionError(errno.EPERM, "the directory is shared with other users", directory)
    os.chmod(directory, 0o700)


class Logs:
    """The logs in one directory, one file for each id."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def path(self, output_id: str) -> str:
        return os.path.join(self.directory, f"{output_id}.log")

    def owner(self, path: str) -> str | None:
        """The id whose log lies at that path, or None when it is not a log of this directory."""
        output_id = os.path.basename(path).removesuffix(".log")
        return output_id if is_id(output_id) and os.path.abspath(path) == self.path(output_id) else None

    def list_logs(self) -> Iterator[tuple[str, os.stat_result]]:
        """The logs that there are."""
        try:
            names = os.listdir(self.directory)
        except FileNotFoundError:
            return
        for name in names:
            path = os.path.join(self.directory, name)
            output_id = self.owner(path)
            # Another process may remove it at any moment.
            with contextlib.suppress(FileNotFoundError):
                if output_id is not None and stat.S_ISREG((status := os.lstat(path)).st_mode):
                    yield output_id, status

    def remove(self, output_id: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path(output_id))


def open_log(path: str) -> io.FileIO:
    """The log, to be read. Raises `OSError`, also for what is no regular file: it could block for ever."""
    descriptor = os.open(path, _OPEN)
    file = open(descriptor, "rb", buffering=0)  # noqa: SIM115 - the caller closes it
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is not a file", path)
    return file


class LogPage(NamedTuple):
    """A piece of an output, and the offset of the next one; None at the end."""

    text: str
    next_offset: int | None


def page(file: io.RawIOBase | io.BytesIO, offset: int, limit_bytes: int) -> LogPage:
    """The bytes from `offset` on, as whole characters; what is not UTF-8 becomes U+FFFD."""
    wanted = max(4, limit_bytes) + 1
    file.seek(offset)
    raw = bytearray()
    while len(raw) < wanted and (piece := file.read(wanted - len(raw))):
        raw += piece
    more = len(raw) == wanted
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(bytes(raw[: wanted - 1]), final=not more)
    split_bytes = len(decoder.getstate()[0])
    return LogPage(text, offset + wanted - 1 - split_bytes if more else None)


T = TypeVar("T")

_PREFIX_LENGTH = 4
_PAGE_BYTES = 65_536
_DAY_SECONDS = 86_400.0
_SWEEP_SECONDS = 3600.0
_MIGRATIONS = (
    """CREATE TABLE outputs (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        tool TEXT NOT NULL,
        call_id TEXT NOT NULL,
        created REAL NOT NULL,
        size_bytes INTEGER NOT NULL,
        body BLOB -- NULL: the output is the log of that id
    )""",
    "CREATE INDEX outputs_by_age ON outputs (created, number, id, size_bytes)",
)


class StoreError(FerruleError):
    """An output could not be kept or read; the message says why."""


class OutputEntry(msgspec.Struct, frozen=True):
    """What is known about an output without reading it."""

    id: str
    tool: str
    call_id: str
    created: float
    size_bytes: int


class Stored(OutputEntry, frozen=True):
    """An output: its text, or the path of the log that holds it."""

    text: str | None = None
    path: str | None = None

    def read(self, offset: int = 0, limit_bytes: int = _PAGE_BYTES) -> LogPage:
        """The bytes from `offset` on, as whole characters; what is not UTF-8 becomes U+FFFD."""
        if self.path is None:
            return page(io.BytesIO((self.text or "").encode("utf-8", "surrogatepass")), offset, limit_bytes)
        try:
            with open_log(self.path) as file:
                return page(file, offset, limit_bytes)
        except OSError as error:
            raise StoreError(f"The log of output {self.id} cannot be read: {error.strerror or error}.") from error


class Aged(NamedTuple):
    """An output as retention sees it."""

    created: float
    number: int
    id: str
    size_bytes: int


def surplus(oldest_first: Iterable[Aged], *, expired: float, keep_bytes: int, spared: Container[str]) -> list[Aged]:
    """What has to go: all that was made before `expired`, then the oldest until the rest fits; nothing spared."""
    rows = list(oldest_first)
    total_bytes = sum(row.size_bytes for row in rows)
    gone = []
    for row in rows:
        if row.id not in spared and (row.created < expired or total_bytes > keep_bytes):
            gone.append(row)
            total_bytes -= row.size_bytes
    return gone


class Store:
    """Full outputs by id, in a directory that only the user can read."""

    def __init__(
        self,
        directory: str,
        *,
        keep_days: float,
        keep_bytes: int,
        clock: Callable[[], float] = time.time,
        busy_seconds: float = 5.0,
    ) -> None:
        self._directory = os.path.abspath(directory)
        self._path = os.path.join(self._directory, "outputs.sqlite")
        self._logs = Logs(os.path.join(self._directory, "logs"))
        self._keep_seconds = keep_days * _DAY_SECONDS
        self._keep_bytes = keep_bytes
        self._clock = clock
        self._busy_seconds = busy_seconds
        self._database: Database | None = None
        self._threads: Threads | None = None
        self._closed = False
        self._session: set[str] = set()
        self._swept: float | None = None

    @property
    def warning(self) -> str | None:
        """One sentence when a damaged store was replaced by a new one."""
        return None if self._database is None else self._database.warning

    async def put(self, text: str, *, call_id: str, tool: str) -> str:
        """Keep a text; its id."""
        return await self._run(self._put, text, call_id, tool)

    def new_log(self) -> tuple[str, str]:
        """A fresh id, and the path at which a process may write its log; `adopt` makes an output of it."""
        try:
            make_private(self._directory)
            make_private(self._logs.directory)
        except OSError as error:
            raise self._error(f"cannot be used: {error.strerror or error}") from error
        output_id = new_id()
        self._session.add(output_id)
        return output_id, self._logs.path(output_id)

    async def adopt(self, log_path: str, *, size_bytes: int, call_id: str, tool: str) -> str:
        """Keep the log that was written at a path of `new_log`; its id. Adopting it again renews the size."""
        return await self._run(self._adopt, log_path, size_bytes, call_id, tool)

    async def get(self, output_id: str) -> Stored | None:
        """The output with that id, or the only one whose id begins so."""
        return await self._run(self._get, output_id)

    async def entries(self, limit: int = 100) -> list[OutputEntry]:
        """The newest outputs, newest first."""
        return await self._run(self._entries, limit)

    async def close(self) -> None:
        """Finish what was begun and let go of the files. Closing twice is fine."""
        threads, self._threads, self._closed = self._threads, None, True
        if threads is not None:
            try:
                await threads.run(self._disconnect)
            finally:
                threads.close()

    async def _run(self, work: Callable[..., T], *args: object) -> T:
        if self._closed:
            raise StoreError("The store of full outputs is closed.")
        if self._threads is None:
            from ferrule.system import Threads  # most sessions store nothing

            # One thread, because SQLite lets one writer in at a time anyway.
            self._threads = Threads(1)
        return await self._threads.run(self._run_on_database, work, *args)

    def _run_on_database(self, work: Callable[..., T], *args: object) -> T:
        from ferrule.system.sqlite import Database, UnusableError  # loads SQLite

        if self._database is None:
            self._database = Database(
                self._path, migrations=_MIGRATIONS, busy_seconds=self._busy_seconds, refill=self._refill
            )
        try:
            return work(self._database, *args)
        except UnusableError as error:
            raise self._error(str(error)) from error
        except OSError as error:
            raise self._error(f"cannot be used: {error.strerror or error}") from error

    def _error(self, what: str) -> StoreError:
        return StoreError(f"The store of full outputs in {self._directory} {what}.")

    def _disconnect(self) -> None:
        if self._database is not None:
            self._database.close()

    def _put(self, database: "Database", text: str, call_id: str, tool: str) -> str:
        body = text.encode("utf-8", "surrogatepass")
        return self._insert(database, (new_id(), tool, call_id, self._clock(), len(body), body))

    def _adopt(self, database: "Database", log_path: str, size_bytes: int, call_id: str, tool: str) -> str:
        output_id = self._logs.owner(log_path)
        if output_id is None or os.path.islink(log_path) or not os.path.isfile(log_path):
            raise StoreError(f"There is no log of the store of full outputs at {log_path}.")
        return self._insert(database, (output_id, tool, call_id, self._clock(), size_bytes, None))

    def _insert(self, database: "Database", row: tuple[str, str, str, float, int, bytes | None]) -> str:
        output_id, tool, call_id, *rest = row
        make_private(self._directory)
        self._session.add(output_id)
        database.write(
            lambda connection: connection.execute(
                "INSERT OR REPLACE INTO outputs (id, tool, call_id, created, size_bytes, body)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (output_id, _bindable(tool), _bindable(call_id), *rest),
            )
        )
        self._sweep(database)
        return output_id

    def _get(self, database: "Database", output_id: str) -> Stored | None:
        wanted = normalize_id(output_id)
        if wanted is None or len(wanted) < _PREFIX_LENGTH or not os.path.exists(self._path):
            return None
        rows = database.read(
            lambda connection: connection.execute(
                "SELECT id, tool, call_id, created, size_bytes, body FROM outputs WHERE id BETWEEN ? AND ? LIMIT 2",
                (wanted, wanted + "~"),
            ).fetchall()
        )
        if len(rows) != 1:
            return None
        found, tool, called, created, size_bytes, body = rows[0]
        text = None if body is None else body.decode("utf-8", "surrogatepass")
        path = self._logs.path(found) if body is None else None
        return Stored(found, tool, called, created, size_bytes, text, path)

    def _entries(self, database: "Database", limit: int) -> list[OutputEntry]:
        if not os.path.exists(self._path):
            return []
        rows = database.read(
            lambda connection: connection.execute(
                "SELECT id, tool, call_id, created, size_bytes FROM outputs ORDER BY created DESC, number DESC LIMIT ?",
                (max(0, limit),),
            ).fetchall()
        )
        return [OutputEntry(*row) for row in rows]

    def _sweep(self, database: "Database") -> None:
        """Remove what is too old or too much, at most once an hour over all processes."""
        from ferrule.system.sqlite import UnusableError  # loads SQLite

        now = self._clock()
        if self._swept is not None and 0 <= now - self._swept < _SWEEP_SECONDS:
            return
        self._swept = now
        # Whatever stands in the way of it: the output that is being kept now has its place.
        with contextlib.suppress(UnusableError, OSError):
            gone = database.write(lambda connection: self._sweep_rows(connection, now))
            if gone is None:
                return
            for row in gone:
                self._logs.remove(row.id)
            kept = database.read(lambda connection: connection.execute("SELECT id FROM outputs").fetchall())
            spared = self._session.union(output_id for (output_id,) in kept)
            for output_id, status in self._logs.list_logs():
                if output_id not in spared and now - status.st_mtime > _DAY_SECONDS:
                    self._logs.remove(output_id)
            # As a script: `execute` would stop after the first page.
            database.read(lambda connection: connection.executescript("PRAGMA incremental_vacuum"))

    def _sweep_rows(self, connection: "sqlite3.Connection", now: float) -> list[Aged] | None:
        last = connection.execute("SELECT value FROM meta WHERE key = 'swept'").fetchone()
        if last is not None and 0 <= now - float(last[0]) < _SWEEP_SECONDS:
            return None
        rows = connection.execute(
            "SELECT created, number, id, size_bytes FROM outputs ORDER BY created, number"
        ).fetchall()
        gone = surplus(
            map(Aged._make, rows),
            expired=now - self._keep_seconds,
            keep_bytes=self._keep_bytes,
            spared=self._session,
        )
        connection.executemany("DELETE FROM outputs WHERE number = ?", [(row.number,) for row in gone])
        connection.execute("INSERT OR REPLACE INTO meta VALUES ('swept', ?)", (str(now),))
        return gone

    def _refill(self, connection: "sqlite3.Connection") -> None:
        """A new file after a damaged one: the logs are still there, so their ids go on working."""
        connection.executemany(
            "INSERT INTO outputs (id, tool, call_id, created, size_bytes) VALUES (?, '', '', ?, ?)",
            [(output_id, status.st_mtime, status.st_size) for output_id, status in self._logs.list_logs()],
        )


def _bindable(text: str) -> str:
    """SQLite takes no half of a surrogate pair in its texts."""
    return text.encode("utf-8", "replace").decode()
