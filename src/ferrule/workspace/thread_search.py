"""Searching the threads: a query, the filters in it, and the order of what is found."""

import math
import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ferrule.core.access import within
from ferrule.support.globs import BadGlob, matcher
from ferrule.workspace.thread import About, Finding, Findings
from ferrule.workspace.thread_index import SHIFT, Best, Index, forms
from ferrule.workspace.thread_query import Query, parse
from ferrule.workspace.thread_rows import SELECT, files_of
from ferrule.workspace.thread_rows import about as about_row
from ferrule.workspace.thread_text import excerpt

if TYPE_CHECKING:
    from ferrule.support.sqlite import Database

_SHOWN_FILES = 8
_HALF_LIFE_SECONDS = 30 * 86_400.0
"""What is so much older gets half as much for being new."""


class Wanted(NamedTuple):
    """Which threads are looked at."""

    workspaces: Sequence[str] | None = None
    """Those of these folders and of what is below them; None means all."""
    children: bool = False
    """Those of subagents too?"""
    without: Collection[str] = ()

    def takes(self, about: About) -> bool:
        return (
            (self.children or not about.parent)
            and about.id not in self.without
            and (self.workspaces is None or any(within(about.workspace, folder) for folder in self.workspaces))
        )


def find(database: "Database", index: Index, text: str, wanted: Wanted, *, limit: int, now: float) -> Findings:
    """The threads that fit a query: by how well and how new they are, or by age where it has no words."""
    query = parse(text, now=now)
    if query.is_empty:
        return Findings(notes=query.notes)
    known = database.read(lambda connection: _filtered(connection, query, wanted))
    if query.terms:
        best = index.search(database, query.terms, known.keys()) if known else {}
        order = sorted(best, key=lambda number: (-_worth(best[number], known[number], now), -known[number].updated))
    else:
        best = {}
        order = sorted(known, key=lambda number: -known[number].updated)
    shown = order[: max(0, limit)]
    found = database.read(
        lambda connection: [_finding(connection, query, number, known[number], best.get(number)) for number in shown]
    )
    return Findings(tuple(found), len(order), query.notes)


def _worth(best: Best, about: About, now: float) -> float:
    age = max(0.0, now - about.updated)
    return best.score * (1.0 + math.exp2(-age / _HALF_LIFE_SECONDS))


def _filtered(connection: sqlite3.Connection, query: Query, wanted: Wanted) -> dict[int, About]:
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
        about = about_row(row)
        if wanted.takes(about) and all(name in _repo(about) for name in repos):
            known[row[0]] = about
    for pattern in query.files:
        fits = _fitting(pattern)
        touching = {thread for thread, path in connection.execute("SELECT thread, path FROM files") if fits(path)}
        known = {number: about for number, about in known.items() if number in touching}
    return known


def _repo(about: About) -> str:
    """What `repo:` looks in; a workspace that is no repository goes by its folder's name."""
    return (about.repo or os.path.basename(about.workspace)).casefold()


def _fitting(pattern: str) -> Callable[[str], bool]:
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


def _finding(connection: sqlite3.Connection, query: Query, number: int, about: About, best: Best | None) -> Finding:
    files = files_of(connection, number)
    if query.files:
        tests = [_fitting(pattern) for pattern in query.files]
        files.sort(key=lambda path: not any(fits(path) for fits in tests))
    shown = excerpt(_text(connection, best, about), [phrase for phrase, _ in forms(query.terms)]) if best else ""
    return Finding(about, shown, tuple(files[:_SHOWN_FILES]), max(0, len(files) - _SHOWN_FILES))


def _text(connection: sqlite3.Connection, best: Best, about: About) -> str:
    if best.item == best.item >> SHIFT << SHIFT:
        return about.title
    row: tuple[str] | None = connection.execute("SELECT text FROM items WHERE number = ?", (best.item,)).fetchone()
    return "" if row is None else row[0]


def listed(connection: sqlite3.Connection, wanted: Wanted, limit: int) -> Iterable[About]:
    """The newest threads, the newest first."""
    rows = connection.execute(f"{SELECT} ORDER BY updated DESC, number DESC")
    found: list[About] = []
    for row in rows:
        if len(found) >= limit:
            break
        about = about_row(row)
        if wanted.takes(about):
            found.append(about)
    return found
