"""A reply: the one answer that every call gets."""

from typing import Any, Literal

import msgspec

Status = Literal["in-progress", "done", "error", "cancelled", "rejected-by-user", "blocked-on-user"]


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
    """Text, or the JSON value that the family reads."""
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
    def text(self) -> str:
        """The reply as the model reads it, without the notes."""
        if self.error is not None:
            return self.error.message
        return spoken(self.result)

    @property
    def ok(self) -> bool:
        return self.status == "done"


def spoken(result: Any) -> str:
    """A result as text: strings as they are, anything else as JSON."""
    if isinstance(result, str):
        return result
    return msgspec.json.encode(result).decode()
