"""The full-text index of the threads: brought up to date before a search, so that keeping an item costs nothing for it.

A row of the index is an item, or a thread's title as its item 0. Where SQLite has no FTS5, or the index cannot be
written now, the texts themselves are looked through: slower, with the same finds.
"""

import contextlib
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ferrule.support.sqlite import UnusableError
from ferrule.workspace.thread_text import Phrase, counted, ranked, words

if TYPE_CHECKING:
    from ferrule.support.sqlite import Database
    from ferrule.workspace.thread_query import Term

T = TypeVar("T")

SHIFT = 24
"""An item's number is its thread's, so many bits higher, and its place in it."""
_MAKE = "CREATE VIRTUAL TABLE IF NOT EXISTS words_1 USING fts5(plain, joined, content = '', tokenize = 'ascii')"
"""The table gets the next number, and is made anew, when what counts as a word changes."""
_BATCH_ITEMS = 2_000
"""Items of one transaction: others want to write too."""
_FEW_THREADS = 64


class Best(NamedTuple):
    """How well a thread fits, and by which of its items most."""

    score: float
    item: int


@cache
def has_full_text() -> bool:
    """Does this SQLite have FTS5?"""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute(_MAKE)
        except sqlite3.OperationalError:
            return False
    return True


class Index:
    """Finds items by their words."""

    def __init__(self, *, full_text: bool | None = None) -> None:
        self._full_text = has_full_text() if full_text is None else full_text

    def search(self, database: "Database", terms: "Collection[Term]", among: Collection[int]) -> dict[int, Best]:
        """Those threads of `among` that hold every term somewhere, with how well they fit."""
        if self._full_text:
            # It may be locked, or on a full disk: what was kept can be read all the same.
            with contextlib.suppress(UnusableError):
                try:
                    _refresh(database)
                    return database.read(lambda connection: _look_up(connection, terms, among))
                except _Broken:
                    database.write(drop)
        return database.read(lambda connection: _scan(connection, terms, among))


class _Broken(Exception):  # noqa: N818 - it never leaves this file
    """The index is damaged, and is to be made anew; the threads themselves stay where they are."""


@contextlib.contextmanager
def _whole(connection: sqlite3.Connection) -> Iterator[None]:
    """Tells a damaged index from a damaged file, which is a matter of the database."""
    try:
        yield
        if connection.in_transaction:
            # Has the index written now: with the end of the transaction, damage would look like that of the file.
            connection.execute("SAVEPOINT written")
            connection.execute("RELEASE written")
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_CORRUPT_VTAB:
            raise
        raise _Broken from error


def write(database: "Database", work: Callable[[sqlite3.Connection], T]) -> T:
    """A transaction that changes the index; where that is damaged, it goes away first."""
    try:
        return database.write(work)
    except _Broken:
        database.write(drop)
        try:
            return database.write(work)
        except _Broken as error:
            raise UnusableError("has a damaged index, which cannot be taken out") from error


def drop(connection: sqlite3.Connection) -> None:
    """Do away with the index; the next search makes it anew."""
    try:
        with _whole(connection):
            connection.execute("DROP TABLE IF EXISTS words_1")
    except _Broken:
        # SQLite cannot even open it: its row goes, and then the tables that it kept its words in.
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("DELETE FROM sqlite_master WHERE name = 'words_1'")
        connection.execute("PRAGMA writable_schema = RESET")
        for table in ("words_1_data", "words_1_idx", "words_1_docsize", "words_1_config"):
            connection.execute(f"DROP TABLE IF EXISTS {table}")
    connection.execute("UPDATE threads SET indexed = 0, titled = NULL")


def _refresh(database: "Database") -> None:
    def is_behind(connection: sqlite3.Connection) -> bool:
        return connection.execute(
            "SELECT 1 FROM threads WHERE indexed < items OR titled IS NOT title LIMIT 1"
        ).fetchone() is not None or not _is_there(connection)

    while database.read(is_behind):
        database.write(_add_some)


def _is_there(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'words_1'").fetchone() is not None


def _add_some(connection: sqlite3.Connection) -> None:
    with _whole(connection):
        connection.execute(_MAKE)
        room = _BATCH_ITEMS
        for number, indexed, items, title, titled in connection.execute(
            "SELECT number, indexed, items, title, titled FROM threads"
            " WHERE indexed < items OR titled IS NOT title LIMIT ?",
            (room,),
        ).fetchall():
            if titled != title:
                if titled is not None:
                    _remove(connection, [(number << SHIFT, titled)])
                _insert(connection, [(number << SHIFT, title)])
            upto = min(items, indexed + room)
            _insert(connection, _texts(connection, number, indexed + 1, upto))
            connection.execute("UPDATE threads SET indexed = ?, titled = title WHERE number = ?", (upto, number))
            room -= upto - indexed + 1
            if room <= 0:
                return


def forget(connection: sqlite3.Connection, number: int) -> None:
    """Take a thread out of the index, before its items go."""
    row = connection.execute("SELECT indexed, titled FROM threads WHERE number = ?", (number,)).fetchone()
    if row is None or not has_full_text() or not _is_there(connection):
        return
    with _whole(connection):
        if row[1] is not None:
            _remove(connection, [(number << SHIFT, row[1])])
        _remove(connection, _texts(connection, number, 1, row[0]))


def tidy(connection: sqlite3.Connection) -> None:
    """Put the index together anew: what was taken out of it is then gone from the file."""
    if has_full_text() and _is_there(connection):
        with _whole(connection):
            connection.execute("INSERT INTO words_1 (words_1) VALUES ('optimize')")


def _texts(connection: sqlite3.Connection, number: int, first: int, last: int) -> list[tuple[int, str]]:
    base = number << SHIFT
    return connection.execute(
        "SELECT number, text FROM items WHERE number BETWEEN ? AND ? AND text <> ''", (base + first, base + last)
    ).fetchall()


def _insert(connection: sqlite3.Connection, texts: Iterable[tuple[int, str]]) -> None:
    connection.executemany("INSERT INTO words_1 (rowid, plain, joined) VALUES (?, ?, ?)", map(_row, texts))


def _remove(connection: sqlite3.Connection, texts: Iterable[tuple[int, str]]) -> None:
    connection.executemany(
        "INSERT INTO words_1 (words_1, rowid, plain, joined) VALUES ('delete', ?, ?, ?)", map(_row, texts)
    )


def _row(text: tuple[int, str]) -> tuple[int, str, str]:
    found = words(text[1])
    return text[0], " ".join(found.plain), " ".join(found.joined)


def _look_up(connection: sqlite3.Connection, terms: "Collection[Term]", among: Collection[int]) -> dict[int, Best]:
    best: dict[int, Best] = {}
    with _whole(connection):
        left = _holding(connection, terms, among)
        spans = [(one << SHIFT, ((one + 1) << SHIFT) - 1) for one in left]
        if len(left) > _FEW_THREADS:
            spans = [(0, (max(left) + 1) << SHIFT)]
        for span in spans:
            rows = connection.execute(
                "SELECT rowid, rank FROM words_1 WHERE words_1 MATCH ? AND rowid BETWEEN ? AND ?",
                (_expression(terms), *span),
            )
            for item, rank in rows:
                number = item >> SHIFT
                if number in left and (number not in best or best[number].score < -rank):
                    best[number] = Best(-rank, item)
    return best


def _holding(connection: sqlite3.Connection, terms: "Iterable[Term]", among: Iterable[int]) -> set[int]:
    left = set(among)
    for term in terms:
        rows = connection.execute(
            "SELECT DISTINCT rowid >> ? FROM words_1 WHERE words_1 MATCH ?", (SHIFT, _expression([term]))
        )
        left.intersection_update(number for (number,) in rows)
        if not left:
            break
    return left


def _expression(terms: "Iterable[Term]") -> str:
    """In the words of FTS5. Nothing of a query is in it but letters and digits, between quotes."""
    return " OR ".join(f'"{" ".join(phrase)}"{"*" if prefix else ""}' for phrase, prefix in forms(terms))


def forms(terms: "Iterable[Term]") -> Iterator[tuple[Phrase, bool]]:
    """All that terms may look like, and whether it may go on."""
    return ((phrase, term.prefix) for term in terms for phrase in term.forms)


def _scan(connection: sqlite3.Connection, terms: "Collection[Term]", among: Collection[int]) -> dict[int, Best]:
    """The same without an index."""
    sought = tuple(forms(terms))
    titles = connection.execute("SELECT number << ?, title FROM threads", (SHIFT,))
    texts = connection.execute("SELECT number, text FROM items WHERE text <> ''")
    # One text at a time in memory; of each, only numbers are kept.
    found = [(item, counted(text, sought)) for rows in (titles, texts) for item, text in rows]
    left, at = set(among), 0
    for term in terms:
        own = slice(at, at := at + len(term.forms))
        left &= {item >> SHIFT for item, one in found if any(one.times[own])}
    best: dict[int, Best] = {}
    for (item, _), score in zip(found, ranked([one for _, one in found]), strict=True):
        number = item >> SHIFT
        if score and number in left and (number not in best or best[number].score < score):
            best[number] = Best(score, item)
    return best
