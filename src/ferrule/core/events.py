"""What happens to a call, as it happens: one stream drives every front end."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from ferrule.core.access import Access
from ferrule.core.reply import Reply


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event"):
    """Something happened to the call `id`, at `at` seconds on the engine's clock."""

    id: str
    name: str
    at: float


class Prepared(Event, frozen=True, kw_only=True, tag="prepared"):
    """The call is understood; `input` is in the canonical tool's words, `touches` is what it will touch."""

    input: dict[str, Any]
    touches: tuple[Access, ...]


class Blocked(Event, frozen=True, kw_only=True, tag="blocked-on-user"):
    """The call waits for a person's answer to `question`."""

    question: str


class Started(Event, frozen=True, kw_only=True, tag="started"):
    """The tool's body runs."""


class Progress(Event, frozen=True, kw_only=True, tag="progress"):
    """The tool says how far it is."""

    message: str


class Done(Event, frozen=True, kw_only=True, tag="done"):
    """The call has its one answer, whatever it is."""

    reply: Reply


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
