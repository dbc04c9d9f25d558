"""A thread: a conversation that was kept, what is known of it, and what a search says about it."""

import re
import time
from typing import NamedTuple

_ADDRESSED = r"[Tt]-([0-9a-fA-F-]+)|([0-9a-fA-F][0-9a-fA-F-]*)"


class Item(NamedTuple):
    """One thing of a conversation, in its place."""

    kind: str
    """`turn`, or whatever else the loop keeps; the store looks into none of them."""
    role: str
    """`user`, `assistant`, `system` or nothing."""
    body: bytes
    """JSON."""
    text: str = ""
    """What searches find."""
    files: tuple[str, ...] = ()
    """Paths that it touched; a thread that is loaded has them together."""
    at: float = 0.0
    """When it was kept."""


class About(NamedTuple):
    """What is known of a thread without its items."""

    id: str
    workspace: str
    repo: str = ""
    model: str = ""
    dialect: str = ""
    parent: str = ""
    """The thread whose subagent had this one."""
    title: str = ""
    created: float = 0.0
    updated: float = 0.0
    turns: int = 0
    """Messages of either side."""
    items: int = 0


class Thread(NamedTuple):
    """A whole thread."""

    about: About
    items: tuple[Item, ...] = ()
    files: tuple[str, ...] = ()
    skipped: int = 0
    """Items at its end that could not be read and are left out."""


class Finding(NamedTuple):
    """A thread that a search has found."""

    about: About
    excerpt: str = ""
    """One line of it, with what was looked for."""
    files: tuple[str, ...] = ()
    """Some of the paths that it touched, those that were looked for first."""
    more_files: int = 0


class Findings(NamedTuple):
    """What a search has found, the best first."""

    found: tuple[Finding, ...] = ()
    total: int = 0
    """How many there are; more than were asked for are counted only."""
    notes: tuple[str, ...] = ()
    """Sentences about what of the query was left out."""


def named(name: str) -> str:
    """The id, or the beginning of one, in `T-…`, `@T-…`, an address that ends with it, or without its T; else empty."""
    text = name.strip().removeprefix("@")
    if "/" in text:
        text = re.split("[?#]", text, maxsplit=1)[0].rstrip("/").rpartition("/")[2]
    found = re.fullmatch(_ADDRESSED, text)
    return f"T-{(found[1] or found[2]).lower()}" if found is not None else ""


def bindable(text: str) -> str:
    """SQLite takes no half of a surrogate pair in its texts."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def when(at: float) -> str:
    """A moment of a thread, to the minute."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
