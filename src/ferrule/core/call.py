"""Define calls and replies.

A call is a tool's name and its input, in the words of the model family that wrote it. Every call gets exactly one
reply.
"""

from typing import Any, Literal

import msgspec

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
