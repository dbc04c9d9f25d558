"""What happens to a call, as it happens: one stream drives every front end."""

import asyncio
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from ferrule.core.access import Access
from ferrule.core.call import Reply

EDIT_BYTES = 200_000
"""Of either side of a file: what is longer is not in an event."""


class FileEdit(msgspec.Struct, frozen=True):
    """A file that a call has written: its text before and after; None where there was or is no file."""

    path: str
    old: str | None = None
    new: str | None = None
    left_out: str = ""
    """Why the texts are not here: `binary` or `too-large`; empty where they are."""

    @classmethod
    def of(cls, path: str, before: bytes | None, after: bytes | None) -> "FileEdit":
        """From the bytes of both sides."""
        sides = (before, after)
        if any(raw is not None and len(raw) > EDIT_BYTES for raw in sides):
            return cls(path, left_out="too-large")
        try:
            old, new = (None if raw is None else raw.decode() for raw in sides)
        except UnicodeDecodeError:
            return cls(path, left_out="binary")
        return cls(path, old, new)


class TodoItem(msgspec.Struct, frozen=True):
    """One thing to be done."""

    id: str
    subject: str
    status: Literal["pending", "in_progress", "completed", "cancelled", "blocked"]
    active_form: str = ""
    """What is shown while it is worked on."""
    owner: str = ""


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event"):
    """Something happened to the call `id`, at `at` seconds on the engine's clock."""

    id: str
    name: str
    at: float


class Prepared(Event, frozen=True, kw_only=True, tag="prepared"):
    """The call is understood; `touches` is what it will touch."""

    input: dict[str, Any]
    """The arguments as the model gave them, in the session's words."""
    touches: tuple[Access, ...]
    tool: str = ""
    """The canonical tool, whatever the model calls it: `read`, `edit`, `shell`, …"""
    arguments: dict[str, Any] = msgspec.field(default_factory=dict)
    """The same arguments in the canonical tool's words; nothing that the engine adds."""


class Blocked(Event, frozen=True, kw_only=True, tag="blocked-on-user"):
    """The call waits for a person's answer to `question`."""

    question: str


class Started(Event, frozen=True, kw_only=True, tag="started"):
    """The tool's body runs."""


class Progress(Event, frozen=True, kw_only=True, tag="progress"):
    """The tool says how far it is."""

    message: str
    rows: tuple[str, ...] = ()
    """The last lines that a command has printed so far."""


class Done(Event, frozen=True, kw_only=True, tag="done"):
    """The call has its one answer, whatever it is."""

    reply: Reply
    tool: str = ""
    """The canonical tool; empty where no tool has the name."""
    edits: tuple[FileEdit, ...] = ()
    """The files that it has written through the engine. What a command has changed is in `reply.changes`."""
    exit_code: int | None = None
    """Of a command that has ended."""
    output: str = ""
    """What that command has printed, in no family's words; the middle of a long output is missing."""


class TodosChanged(Event, frozen=True, kw_only=True, tag="todos-changed"):
    """The list of what is to be done has changed: here is all of it. It is about no call; its id and name are empty."""

    todos: tuple[TodoItem, ...]


class ToolsChanged(Event, frozen=True, kw_only=True, tag="tools-changed"):
    """Other tools are advertised from now on. It is about no call: its id and its name are empty."""


class Reported(Event, frozen=True, kw_only=True, tag="reported"):
    """Something for the user, and not for the model: what a hook wants them to know, or what went wrong with one."""

    sentence: str


class HookRun(Event, frozen=True, kw_only=True, tag="hook-run"):
    """A hook that is a program begins, or has ended. It is about no call: its `name` is what it was told of."""

    hook: str
    """The event that the hook is for."""
    ended: bool = False
    exit_code: int = 0
    stdout: str = ""
    stderr: str = ""


class EventStream:
    """Events from the moment it was made, for `async for`; it ends when the engine closes or `close` is called."""

    def __init__(self, leave: Callable[["EventStream"], object]) -> None:
        self._queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self._leave = leave

    def put(self, event: Event | None) -> None:
        """One more event; None ends the stream."""
        self._queue.put_nowait(event)

    def close(self) -> None:
        """Hear nothing more."""
        self._leave(self)
        self.put(None)

    def __aiter__(self) -> "EventStream":
        return self

    async def __anext__(self) -> Event:
        event = await self._queue.get()
        if event is None:
            self.put(None)
            raise StopAsyncIteration
        return event
