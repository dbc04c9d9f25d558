"""Define calls and replies, and the events of a call.

A call is a tool's name and its input, in the words of the model family that wrote it. Every call gets exactly one
reply.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from ferrule.core.access import Access
from ferrule.core.content import Document, Image, Text


class Call(msgspec.Struct, frozen=True):
    """One tool call of a message."""

    name: str
    input: dict[str, Any] | str = msgspec.field(default_factory=dict)
    """The arguments; a string is read as JSON, as some model APIs send them."""
    id: str = ""
    """The caller's name for this call; the engine gives one where it is empty."""


Status = Literal["in-progress", "done", "error", "cancelled", "rejected-by-user", "blocked-on-user"]


_FILES: dict[str, type[Image | Document]] = {"image": Image, "document": Document}


class Stop(msgspec.Struct, frozen=True):
    """Somebody wants the work to end with a call."""

    by: Literal["user", "hook"]
    why: str = ""


def sayable(path: str) -> str:
    """A path as JSON can hold it: bytes that are no text become question marks."""
    return path.encode(errors="replace").decode()


class Failure(msgspec.Struct, frozen=True):
    """Why a call did not end well."""

    message: str
    error_code: str | None = None
    absolute_path: str | None = None

    def as_dict(self) -> dict[str, str]:
        pairs = (
            ("message", self.message),
            ("errorCode", self.error_code),
            ("absolutePath", self.absolute_path and sayable(self.absolute_path)),
        )
        return {key: value for key, value in pairs if value is not None}


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What a call has changed otherwise than by the writer, as a command does."""

    files: tuple[str, ...] = ()
    added: int = 0
    """Lines, where the files are few and not large."""
    removed: int = 0
    entry: str = ""
    """The entry of the journal, by which it can be taken back."""

    def __str__(self) -> str:
        lines = f", +{self.added} \u2212{self.removed}" if self.added or self.removed else ""
        return f"changed {len(self.files):,} file{'s' * (len(self.files) != 1)}{lines}"


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one call."""

    id: str
    name: str
    status: Status
    result: Any = None
    """What the family's tool answers: text, or a JSON value. A picture is an object with `type`, `media_type` and
    `data` (base64), and what is text and pictures is a list of such objects. `content` has the same in parts."""
    error: Failure | None = None
    track_files: tuple[str, ...] = ()
    """Files that the call changed."""
    notes: tuple[str, ...] = ()
    """What the engine mended, cut or wants known; one sentence each."""
    output_id: str | None = None
    """Where the full output is kept when the result was cut."""
    started: float = 0.0
    """Seconds on the engine's clock; 0 for a call that never started."""
    ended: float = 0.0
    changes: Changes | None = None
    """What a command has changed, or another call that does not write through the engine."""
    lines: int | None = None
    """How many lines a command has printed, shown or not; None where it is no command, or they were not counted."""
    found: tuple[int, str] | None = None
    """How many a search has found, shown or not, and what: 12, `file`; of a file that was read, the lines given."""
    structured: Any = None
    """The result as the JSON value that the tool's output schema describes, where the tool gave one."""
    stop: Stop | None = None
    """Is the work to end with this call? The user may refuse one so, and a hook may say so."""
    parts: tuple[dict[str, Any], ...] = ()
    """The whole result in the blocks of MCP, where some of it is neither text nor a picture; the text is cleaned."""

    def as_dict(self) -> dict[str, Any]:
        """`status`, `result` or `error`, and `trackFiles`, `notes` and `outputId` where there are any."""
        out: dict[str, Any] = {"status": self.status}
        if self.error is not None:
            out["error"] = self.error.as_dict()
        elif self.status == "done":
            out["result"] = self.result
        if self.track_files:
            out["trackFiles"] = [sayable(path) for path in self.track_files]
        if self.notes:
            out["notes"] = list(self.notes)
        if self.output_id:
            out["outputId"] = self.output_id
        return out

    @property
    def content(self) -> tuple[Text | Image | Document, ...]:
        """The reply as the model reads it, part by part and without the notes: words, pictures, files.

        A failure is its sentence. A result that is some other JSON value is its JSON text.
        """
        if self.error is not None:
            return (Text(self.error.message),)
        if not self.ok:
            return (Text(f"The call did not end: its status is {self.status}."),)
        return content_of(self.result)

    @property
    def text(self) -> str:
        """The words of the content. A picture or a file is named in a few words: nobody prints its data."""
        return "\n".join(part.text if isinstance(part, Text) else f"[{part}]" for part in self.content)

    @property
    def ok(self) -> bool:
        return self.status == "done"


def content_of(result: Any) -> tuple[Text | Image | Document, ...]:
    """A result in parts: pictures, files and texts where it is made of such, else one text."""
    if (part := _part(result)) is not None and not isinstance(part, Text):
        return (part,)
    if isinstance(result, list | tuple) and result:
        members = [_part(member) for member in result]
        if all(member is not None for member in members):
            return tuple(member for member in members if member is not None)
    return (Text(result_text(result)),)


def _part(value: Any) -> Text | Image | Document | None:
    """A text, a picture or a file, as families write them; None for any other JSON value."""
    if not isinstance(value, dict):
        return None
    kind, text, media_type, data = (value.get(key) for key in ("type", "text", "media_type", "data"))
    if kind == "text":
        return Text(text) if isinstance(text, str) else None
    if kind not in _FILES or not isinstance(media_type, str) or not isinstance(data, str):
        return None
    return _FILES[kind](media_type, data)


def result_text(result: Any) -> str:
    """A result as text: strings as they are, anything else as JSON."""
    if isinstance(result, str):
        return result
    return msgspec.json.encode(result).decode()


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
