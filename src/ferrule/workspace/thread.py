"""A thread: a conversation that was kept, what is known of it, and what a search says about it."""

import re
import time
from typing import NamedTuple

TITLE = "title"
"""The kind of an item that gives its thread another title: `{"title": …, "by": "user" or "model"}`."""
PROMPT = "prompt"
"""The kind of an item that is the number of a prompt; the turn behind it is the prompt."""
WRITTEN = "written"
"""The kind of an item that is what the user wrote: a prompt may hold more, from a program or a hook."""
SAID_CHARS = 300
"""So much of the last words is kept for lists."""
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
    said: str = ""
    """The beginning of what the user or the model said with it, for lists; it is not kept with the item."""


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
    branch: str = ""
    """The git branch of its last prompt; empty for a thread of before this was kept."""
    prompts: int = 0
    """What the user has said; also what was rewound since."""
    answers: int = 0
    """Of the model: one for each time that it was asked."""
    titled_by: str = ""
    """`user`, `model`, or nothing for the first words of the thread."""
    last_prompt: str = ""
    last_answer: str = ""

    @property
    def size(self) -> str:
        """How long it is, in words."""
        return f"{counted_words(self.prompts, 'prompt')}, {counted_words(self.answers, 'answer')}"

    def facts(self) -> dict[str, object]:
        """All of it by name, as JSON has it. What a turn is elsewhere is an answer, so turns are `messages` here."""
        return {("messages" if name == "turns" else name): value for name, value in self._asdict().items()}


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


def counted_words(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


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
