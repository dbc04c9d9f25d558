"""SQLite files that several processes share: open, bring up to date, replace when damaged, say what is wrong.

Importing this loads SQLite, which most calls of the program never need: import it where it is used.
"""

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Container, Iterator, Sequence
from typing import TypeVar

from ferrule.system.folder import Locks, LockTimeoutError

T = TypeVar("T")

_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_LOCKED = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_NO_FILE = frozenset({sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN})
_ROOM_BYTES = 64 * 1024
"""Less than this is no room for a side file."""
_SIDE_FILES = ("-wal", "-shm", "-journal")
_WAL_LIMIT_BYTES = 4 * 1024 * 1024
_PAUSE_SECONDS = 0.01
_META = "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"


class UnusableError(Exception):
    """The file cannot be used now; the message is what follows its name in a sentence."""


def open_database(
    path: str,
    *,
    migrations: Sequence[str],
    busy_seconds: float,
    check: Callable[[sqlite3.Connection], None] | None = None,
) -> sqlite3.Connection:
    """A connection in autocommit mode to the file, made if it is missing and brought up to date.

    Each migration is one statement, and the file counts those it has seen; more than there are is an
    `UnusableError`. `check` may refuse the file before anything is written to it. The connection may move
    between threads.
    """
    connection = sqlite3.connect(path, timeout=busy_seconds, isolation_level=None, check_same_thread=False)
    try:
        # By name, not by descriptor: closing one would drop the locks that this process holds on the file.
        # SQLite gives its side files the same mode.
        if os.stat(path).st_mode & 0o077:
            os.chmod(path, 0o600)
        if check is not None:
            check(connection)
        if connection.execute("PRAGMA page_count").fetchone() == (0,):
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        _write_ahead(connection, busy_seconds)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT_BYTES}")
        _migrate(connection, migrations)
    except BaseException:
        connection.close()
        raise
    return connection


def _write_ahead(connection: sqlite3.Connection, busy_seconds: float) -> None:
    deadline = time.monotonic() + busy_seconds
    while connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
        # Of two processes that switch at the same moment one is refused at once: SQLite does not wait here.
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if not _is(error, _LOCKED) or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            return


def _migrate(connection: sqlite3.Connection, migrations: Sequence[str]) -> None:
    if _version(connection) == len(migrations):
        return
    with transaction(connection):
        done = _version(connection)
        if done > len(migrations):
            raise UnusableError("was written by a newer version of this program; update to use it")
        for statement in migrations[done:]:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(migrations)}")


def _version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Everything in the block or nothing of it. The right to write is taken first, where waiting is safe."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # Some failures, a full disk for one, have rolled back by themselves.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def set_aside(path: str) -> str | None:
    """Rename a database with its side files to the first free `name.damaged-N`; None when there was none.

    This process has no connection to it any more, and no other one does the same at this moment.
    """
    stem, extension = os.path.splitext(path)
    sides = ("", *_SIDE_FILES)
    number = 1
    while any(os.path.lexists(f"{stem}.damaged-{number}{extension}{side}") for side in sides):
        number += 1
    aside = f"{stem}.damaged-{number}{extension}"
    found = [side for side in sides if os.path.lexists(path + side)]
    for side in found:
        os.rename(path + side, aside + side)
    return aside if found else None


class Database:
    """A file that is opened on first use, and replaced when it is damaged; the damaged one is set aside.

    An empty file opens without an error, and so does one that somebody else put there. So the file carries an
    identity in its table `meta`, and `store.id` beside it says that there has to be one.
    """

    def __init__(
        self,
        path: str,
        *,
        migrations: Sequence[str],
        busy_seconds: float,
        refill: Callable[[sqlite3.Connection], None] = lambda _: None,
    ) -> None:
        self.warning: str | None = None
        """One sentence when a damaged file was replaced."""
        self._path = path
        self._identity_path = os.path.join(os.path.dirname(path), "store.id")
        self._locks = Locks(os.path.join(os.path.dirname(path), "locks"), seconds=busy_seconds)
        self._migrations = (_META, *migrations)
        self._busy_seconds = busy_seconds
        self._refill = refill
        """Puts into a new file what is known without an old one."""
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """What `work` gives; it runs again on a new file when the old one turns out to be damaged."""
        try:
            try:
                return work(self._ready())
            except sqlite3.DatabaseError as error:
                if not _is(error, _DAMAGED):
                    raise
                distrusted = self._file
                self.close()
                return work(self._open(distrusted))
        except (sqlite3.Error, OSError, OverflowError, LockTimeoutError) as error:
            raise UnusableError(self._sentence(error)) from error

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """The same, in a transaction."""

        def whole(connection: sqlite3.Connection) -> T:
            with transaction(connection):
                return work(connection)

        return self.read(whole)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ready(self) -> sqlite3.Connection:
        if self._connection is not None:
            # Another process may have found the file damaged and replaced it.
            if _file(self._path) == self._file:
                return self._connection
            self.close()
        return self._open(None)

    def _open(self, distrusted: tuple[int, int] | None) -> sqlite3.Connection:
        # One process at a time: the file that another one is just making would look like an emptied one.
        with self._locks.hold([self._path]):
            known = self._read_identity()
            try:
                if distrusted is not None and distrusted == _file(self._path):
                    raise _damage("a part of it cannot be read")
                connection = self._open_trusted(known)
            except sqlite3.DatabaseError as error:
                if not _is(error, _DAMAGED):
                    raise
                connection = self._replacement()
            try:
                self._remember(connection, known)
                self._file = _file(self._path)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return connection

    def _open_trusted(self, known: str | None) -> sqlite3.Connection:
        def check(connection: sqlite3.Connection) -> None:
            if known is not None and _identity(connection) is None:
                raise _damage("it has lost its identity")

        # Before SQLite sees it: it would delete the write-ahead log of an empty file.
        if not _size(self._path) and (known is not None or os.path.exists(self._path + "-wal")):
            raise _damage("it is empty")
        return open_database(self._path, migrations=self._migrations, busy_seconds=self._busy_seconds, check=check)

    def _replacement(self) -> sqlite3.Connection:
        aside = set_aside(self._path)
        what = f"was damaged and is now {os.path.basename(aside)}" if aside else "was gone"
        self.warning = f"{self._path} {what}; a new one was started."
        return self._open_trusted(None)

    def _remember(self, connection: sqlite3.Connection, known: str | None) -> None:
        identity = _identity(connection)
        if identity is None:
            identity = os.urandom(16).hex()
            with transaction(connection):
                connection.execute("INSERT INTO meta VALUES ('identity', ?)", (identity,))
                self._refill(connection)
            # On the disk before the other file says that it is there.
            connection.execute("PRAGMA wal_checkpoint").fetchone()
        if identity != known:
            fresh = self._identity_path + ".new"
            with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
                file.write(identity)
            os.replace(fresh, self._identity_path)

    def _read_identity(self) -> str | None:
        try:
            with open(self._identity_path, encoding="ascii", errors="replace") as file:
                return file.read(64) or None
        except FileNotFoundError:
            return None

    def _sentence(self, error: Exception) -> str:
        if isinstance(error, LockTimeoutError) or _is(error, _LOCKED):
            return f"stayed locked by another process for {self._busy_seconds:g} seconds"
        # A reader needs some room too, for a side file, and is told of an I/O error where there is none.
        if _is(error, {sqlite3.SQLITE_FULL}) or (_is(error, _NO_FILE) and _is_full(os.path.dirname(self._path))):
            return "has no room left on its disk"
        return f"cannot be used: {(isinstance(error, OSError) and error.strerror) or error}"


def _identity(connection: sqlite3.Connection) -> str | None:
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone() is None:
        return None
    row = connection.execute("SELECT value FROM meta WHERE key = 'identity'").fetchone()
    return None if row is None else str(row[0])


def _damage(reason: str) -> sqlite3.DatabaseError:
    error = sqlite3.DatabaseError(reason)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def _is(error: Exception, codes: Container[int]) -> bool:
    # The extended code has the primary one in its low byte; errors of Python's own making have none.
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF in codes


def _file(path: str) -> tuple[int, int] | None:
    """Which file the path names now."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _size(path: str) -> int:
    return os.stat(path).st_size if os.path.exists(path) else 0


def _is_full(folder: str) -> bool:
    try:
        about = os.statvfs(folder)
    except (OSError, AttributeError):  # Windows has none
        return False
    return about.f_bavail * about.f_frsize < _ROOM_BYTES
