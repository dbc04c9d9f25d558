"""Store and search earlier conversations, with filters and a full-text index.

The index is brought up to date before a search, so that storing an item costs nothing. Each row is an item, or a
thread's title as its item 0. If SQLite has no FTS5, or the index cannot be written, the texts themselves are
searched: slower, but with the same results.

A query has words, phrases and filters; every text is a valid query.
"""

import contextlib
import math
import os
import re
import sqlite3
import time
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import msgspec

from ferrule.core.access import within
from ferrule.files.globs import BadGlob, matcher
from ferrule.system.sqlite import UnusableError
from ferrule.tools.threads import (
    PROMPT,
    SAID_CHARS,
    TITLE,
    WRITTEN,
    Findings,
    Item,
    Phrase,
    ThreadFinding,
    ThreadMetadata,
    bindable,
    count_phrases,
    excerpt,
    phrases,
    rank_texts,
    words,
)

if TYPE_CHECKING:
    from ferrule.system.sqlite import Database


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


class ThreadIndex:
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
        left = _filter_by_terms(connection, terms, among)
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


def _filter_by_terms(connection: sqlite3.Connection, terms: "Iterable[Term]", among: Iterable[int]) -> set[int]:
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
    found = [(item, count_phrases(text, sought)) for rows in (titles, texts) for item, text in rows]
    left, at = set(among), 0
    for term in terms:
        own = slice(at, at := at + len(term.forms))
        left &= {item >> SHIFT for item, one in found if any(one.times[own])}
    best: dict[int, Best] = {}
    for (item, _), score in zip(found, rank_texts([one for _, one in found]), strict=True):
        number = item >> SHIFT
        if score and number in left and (number not in best or best[number].score < score):
            best[number] = Best(score, item)
    return best


QUERY_CHARS = 2_000
_TERMS = 32
_PIECE = r'(?P<key>[A-Za-z]+):(?:"(?P<quoted>[^"]*)"?|(?P<value>[^\s"]*))|"(?P<phrase>[^"]*)"?|(?P<word>[^\s"]+)'
_KEYS = frozenset({"file", "repo", "after", "before", "author"})
_TIME = r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:\.[0-9]+)?)?"
_DAY = rf"([0-9]{{4}})-([0-9]{{1,2}})-([0-9]{{1,2}})(?:[T ]{_TIME} ?(Z|[+-][0-9]{{2}}:?[0-9]{{2}})?)?"
_AGO = r"([0-9]{1,6})\s*([hdwmy]|hours?|days?|weeks?|months?|years?)"
_UNIT_SECONDS = {"h": 3_600, "d": 86_400, "w": 604_800, "m": 2_629_800, "y": 31_557_600}
_PREFIX_CHARS = 2


class Term(NamedTuple):
    """One thing that a thread must hold, in any of these forms."""

    forms: tuple[Phrase, ...]
    prefix: bool
    """May its last word go on? In quotes it may not."""


class ThreadQuery(NamedTuple):
    """What is looked for."""

    terms: tuple[Term, ...] = ()
    files: tuple[str, ...] = ()
    repos: tuple[str, ...] = ()
    after: float | None = None
    before: float | None = None
    notes: tuple[str, ...] = ()
    """Sentences about what was left out of it."""
    is_empty: bool = False
    """Was something written, and nothing of it can be looked for?"""


def parse(text: str, *, now: float) -> ThreadQuery:
    """Understand a query; what cannot be understood is named in its notes and left out."""
    terms: dict[Term, None] = {}
    kept: dict[str, list[str]] = {"file": [], "repo": []}
    moments: dict[str, float] = {}
    notes: list[str] = []
    is_anybody = False
    if len(text) > QUERY_CHARS:
        notes.append(f"Only the first {QUERY_CHARS:,} characters of the query were looked at.")
        text = text[:QUERY_CHARS]
    for piece in re.finditer(_PIECE, text):
        key = (piece["key"] or "").lower()
        value = (piece["quoted"] if piece["quoted"] is not None else piece["value"] or "").strip()
        if key not in _KEYS:
            terms |= dict.fromkeys(term for term in _terms(piece) if term.forms)
        elif not value:
            notes.append(f"{key}: has nothing behind it and was left out.")
        elif key in kept:
            kept[key].append(value)
        elif key == "author":
            is_anybody = True
            notes.append("author: was left out: all threads here are by the user of this machine.")
        else:
            at = moment(value, now=now)
            if at is None:
                notes.append(f"{key}:{value} is no date and was left out; write 2026-01-31, or 7d for 7 days ago.")
            else:
                # Of two, the one that asks for more.
                moments[key] = max(at, moments.get(key, at)) if key == "after" else min(at, moments.get(key, at))
    if len(terms) > _TERMS:
        notes.append(f"Only the first {_TERMS} words of the query were looked for.")
    query = ThreadQuery(
        tuple(terms)[:_TERMS],
        tuple(kept["file"]),
        tuple(kept["repo"]),
        moments.get("after"),
        moments.get("before"),
        tuple(notes),
    )
    if text.strip() and not is_anybody and query._replace(notes=()) == ThreadQuery():
        nothing = "There is nothing in the query that can be looked for; write words, or file:NAME."
        return query._replace(is_empty=True, notes=(*notes, nothing))
    return query


def _terms(piece: re.Match[str]) -> list[Term]:
    """A word, a phrase, or what looks like a filter and is none."""
    if piece["phrase"] is not None:
        return [_term(piece["phrase"], quoted=True)]
    if piece["quoted"] is not None:
        return [_term(piece["key"], quoted=False), _term(piece["quoted"], quoted=True)]
    return [_term(piece[0], quoted=False)]


def _term(text: str, *, quoted: bool) -> Term:
    forms = phrases(text)
    long_enough = bool(forms) and len(forms[0][-1]) >= _PREFIX_CHARS
    return Term(forms, prefix=long_enough and not quoted)


def moment(text: str, *, now: float) -> float | None:
    """A day (its beginning), a day with a time, local unless it names a zone, or a while ago such as `7d` or `2w`."""
    low = text.strip().lower()
    days: dict[str, Literal[0, 1]] = {"today": 0, "yesterday": 1}
    if low in days:
        return _local(*time.localtime(now - days[low] * 86_400)[:3])
    if (ago := re.fullmatch(_AGO, low)) is not None:
        return now - int(ago[1]) * _UNIT_SECONDS[ago[2][0]]
    if (day := re.fullmatch(_DAY, low.upper())) is None:
        return None
    *parts, zone = day.groups()
    numbers = [int(part or 0) for part in parts]
    return _local(*numbers) if zone is None else _in_zone(zone, *numbers)


def _local(*numbers: int) -> float | None:
    """The moment of a year, a month, a day and, where they are known, an hour, a minute and a second."""
    year, month, day, hour, minute, second = (*numbers, 0, 0, 0)[:6]
    try:
        at = time.mktime((year, month, day, hour, minute, second, 0, 0, -1))
        # It takes the 31st of February for the 3rd of March.
        same = time.localtime(at)[:3] == (year, month, day) and hour < 24 and minute < 60 and second < 60
    except (OverflowError, ValueError, OSError):
        return None
    return at if same else None


def _in_zone(zone: str, *numbers: int) -> float | None:
    """In universal time, or so many hours and minutes before it."""
    sign, hours, minutes = (zone[0], int(zone[1:3]), int(zone[-2:])) if zone != "Z" else ("+", 0, 0)
    try:
        at = datetime(*numbers, tzinfo=UTC).timestamp()  # type: ignore[arg-type,misc] # year to second
        ahead = timedelta(hours=hours, minutes=minutes).total_seconds()
    except (OverflowError, ValueError, OSError):
        return None
    return at - ahead if sign == "+" else at + ahead


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
    connection: sqlite3.Connection, about: ThreadMetadata, items: Sequence[Item], now: float, *, branch: str = ""
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


def about_of(row: Sequence[Any]) -> ThreadMetadata:
    """A row of `SELECT`."""
    return ThreadMetadata(*row[1:])


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


_SHOWN_FILES = 8
_HALF_LIFE_SECONDS = 30 * 86_400.0
"""What is so much older gets half as much for being new."""


class ThreadFilter(NamedTuple):
    """Which threads are looked at."""

    workspaces: Sequence[str] | None = None
    """Those of these folders and of what is below them; None means all."""
    children: bool = False
    """Those of subagents too?"""
    without: Collection[str] = ()

    def takes(self, about: ThreadMetadata) -> bool:
        return (
            (self.children or not about.parent)
            and about.id not in self.without
            and (self.workspaces is None or any(within(about.workspace, folder) for folder in self.workspaces))
        )


def find(
    database: "Database", index: ThreadIndex, text: str, wanted: ThreadFilter, *, limit: int, now: float
) -> Findings:
    """The threads that fit a query: by how well and how new they are, or by age where it has no words."""
    query = parse(text, now=now)
    if query.is_empty:
        return Findings(notes=query.notes)
    known = database.read(lambda connection: _find_candidates(connection, query, wanted))
    if query.terms:
        best = index.search(database, query.terms, known.keys()) if known else {}
        order = sorted(best, key=lambda number: (-_worth(best[number], known[number], now), -known[number].updated))
    else:
        best = {}
        order = sorted(known, key=lambda number: -known[number].updated)
    shown = order[: max(0, limit)]
    found = database.read(
        lambda connection: [
            _build_finding(connection, query, number, known[number], best.get(number)) for number in shown
        ]
    )
    return Findings(tuple(found), len(order), query.notes)


def _worth(best: Best, about: ThreadMetadata, now: float) -> float:
    age = max(0.0, now - about.updated)
    return best.score * (1.0 + math.exp2(-age / _HALF_LIFE_SECONDS))


def _find_candidates(
    connection: sqlite3.Connection, query: ThreadQuery, wanted: ThreadFilter
) -> dict[int, ThreadMetadata]:
    rows = connection.execute(
        f"{SELECT} WHERE updated >= ? AND created < ?",
        (
            float("-inf") if query.after is None else query.after,
            float("inf") if query.before is None else query.before,
        ),
    )
    repos = [name.casefold() for name in query.repos]
    known = {}
    for row in rows:
        about = about_of(row)
        if wanted.takes(about) and all(name in _repo(about) for name in repos):
            known[row[0]] = about
    for pattern in query.files:
        fits = _build_path_matcher(pattern)
        touching = {thread for thread, path in connection.execute("SELECT thread, path FROM files") if fits(path)}
        known = {number: about for number, about in known.items() if number in touching}
    return known


def _repo(about: ThreadMetadata) -> str:
    """What `repo:` looks in; a workspace that is no repository goes by its folder's name."""
    return (about.repo or os.path.basename(about.workspace)).casefold()


def _build_path_matcher(pattern: str) -> Callable[[str], bool]:
    """A part of a path in any case, or a glob of its end."""
    low = pattern.casefold().replace("\\", "/")
    if any(sign in pattern for sign in "*?["):
        try:
            fits = matcher("**/" + low.lstrip("/"), dots=True, ignore_case=True)
        except BadGlob:
            pass
        else:
            return lambda path: fits(path.casefold().replace("\\", "/").lstrip("/"))
    return lambda path: low in path.casefold().replace("\\", "/")


def _build_finding(
    connection: sqlite3.Connection, query: ThreadQuery, number: int, about: ThreadMetadata, best: Best | None
) -> ThreadFinding:
    files = files_of(connection, number)
    if query.files:
        tests = [_build_path_matcher(pattern) for pattern in query.files]
        files.sort(key=lambda path: not any(fits(path) for fits in tests))
    shown = excerpt(_text(connection, best, about), [phrase for phrase, _ in forms(query.terms)]) if best else ""
    return ThreadFinding(about, shown, tuple(files[:_SHOWN_FILES]), max(0, len(files) - _SHOWN_FILES))


def _text(connection: sqlite3.Connection, best: Best, about: ThreadMetadata) -> str:
    if best.item == best.item >> SHIFT << SHIFT:
        return about.title
    row: tuple[str] | None = connection.execute("SELECT text FROM items WHERE number = ?", (best.item,)).fetchone()
    return "" if row is None else row[0]


def list_newest(connection: sqlite3.Connection, wanted: ThreadFilter, limit: int) -> Iterable[ThreadMetadata]:
    """The newest threads, the newest first."""
    rows = connection.execute(f"{SELECT} ORDER BY updated DESC, number DESC")
    found: list[ThreadMetadata] = []
    for row in rows:
        if len(found) >= limit:
            break
        about = about_of(row)
        if wanted.takes(about):
            found.append(about)
    return found
