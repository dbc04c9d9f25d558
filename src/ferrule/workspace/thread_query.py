"""What somebody looks for among the threads: words, phrases and filters. Every text means something."""

import re
import time
from typing import Literal, NamedTuple

from ferrule.workspace.thread_text import Phrase, phrases

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


class Query(NamedTuple):
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


def parse(text: str, *, now: float) -> Query:
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
    query = Query(
        tuple(terms)[:_TERMS],
        tuple(kept["file"]),
        tuple(kept["repo"]),
        moments.get("after"),
        moments.get("before"),
        tuple(notes),
    )
    if text.strip() and not is_anybody and query._replace(notes=()) == Query():
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
    from datetime import UTC, datetime, timedelta  # for whoever names a zone

    sign, hours, minutes = (zone[0], int(zone[1:3]), int(zone[-2:])) if zone != "Z" else ("+", 0, 0)
    try:
        at = datetime(*numbers, tzinfo=UTC).timestamp()  # type: ignore[arg-type,misc] # year to second
        ahead = timedelta(hours=hours, minutes=minutes).total_seconds()
    except (OverflowError, ValueError, OSError):
        return None
    return at - ahead if sign == "+" else at + ahead
