"""The file format of a recorded conversation: JSON lines that people can read and write.

The first line says what the file is; every other line is one cue: what the model says when it is asked once more.
Empty lines, and lines that begin with `#`, are passed over.
"""

import json
from typing import Any, Literal, TypeVar

import msgspec

from ferrule.core.errors import ConfigError
from ferrule.models.model import Prices, Trouble
from ferrule.wire.content import json_text
from ferrule.wire.turn import Reason, Usage

_Kind = TypeVar("_Kind")

VERSION = 1
LIMIT_BYTES = 256 << 20


class _Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A line, or a part of one; what is as usual is not written."""


class Header(_Line, frozen=True, kw_only=True):
    """The first line: what is recorded here, and of which model."""

    ferrule: Literal["conversation"] = "conversation"
    version: int = VERSION
    model: str = "scripted"
    """The model's own id; the dialect follows from it."""
    wire: str = "scripted"
    window: int = 200_000
    most_output: int = 32_000
    prices: Prices | None = None
    vision: bool = True
    piece: int | None = None
    """How many characters come at once, where the cue does not say it; None means a word."""
    pause: float = 0.0
    """How many seconds pass before each piece, where the cue does not say it."""


class Spoken(_Line, frozen=True, kw_only=True):
    """A part of an answer: words, thinking, or the use of a tool."""

    text: str | None = None
    thinking: str | None = None
    signature: str = ""
    sealed: str = ""
    wire: str | None = None
    """The wire that the thinking came on, where it is not the header's."""
    use: str | None = None
    """The name of the tool."""
    id: str = ""
    """Counted where it is left out: `c1`, `c2` and so on through the file."""
    input: dict[str, Any] | str = {}
    """An object; text is sent as it is, whether it is JSON or not."""
    free: bool = False
    """Does the tool take free text?"""
    cut: bool = False
    """Did the answer stop in the middle of the input?"""


class Whom(_Line, frozen=True, kw_only=True):
    """The conversation that a cue is for. What is named has to be in it; where several fit, the longest text counts."""

    prompt: str = ""
    """A part of the first words of the user; of those of the call, for a subagent."""
    system: str = ""
    """A part of the system prompt."""


class Failure(_Line, frozen=True, kw_only=True):
    """The model cannot be asked, or breaks off."""

    kind: Trouble
    message: str = "The recording says that this fails."


class Repeat(_Line, frozen=True, kw_only=True):
    """What was said until here is void; the next cue is the answer."""

    why: str = "The recording says that the stream was cut."
    seconds: float = 0.0


class Broken(_Line, frozen=True, kw_only=True):
    """The API reports an error in the middle of the answer, which ends all the same."""

    message: str
    kind: str = ""


class Cue(_Line, frozen=True, kw_only=True):
    """What a model says when it is asked once."""

    whom: Whom | None = msgspec.field(default=None, name="for")
    """None for the conversation that no other cue is for."""
    prompt: str = ""
    """What the user had said; for whoever reads it, nothing is compared with it."""
    expect: dict[str, str | list[str]] | str = {}
    """What has to be in the result of a call, by its id; a text has to be in what the model heard last."""
    text: str = ""
    """Words, before the parts: most answers have no others."""
    parts: tuple[Spoken, ...] = ()
    reason: Reason | None = None
    """`tools` where a tool is used and `end` where none is, if nothing is said."""
    usage: Usage = Usage()
    piece: int | None = None
    pause: float | None = None
    broke: Broken | None = None
    """Comes after all parts."""
    fail: Failure | None = None
    """The same."""
    again: Repeat | None = None
    """The same."""
    hang: bool = False
    """After all parts nothing comes any more, and no end: until whoever asked has had enough."""

    @property
    def stops(self) -> Reason:
        return self.reason or ("tools" if any(part.use is not None for part in self.parts) else "end")


class Recorded(msgspec.Struct, frozen=True):
    """A whole file."""

    header: Header
    cues: tuple[Cue, ...]

    @property
    def prompts(self) -> tuple[str, ...]:
        """What the user said in the main conversation, in order."""
        return tuple(cue.prompt for cue in self.cues if cue.prompt and cue.whom is None)


def line(written: Header | Cue) -> bytes:
    """One line of a file."""
    value = msgspec.to_builtins(written)
    if isinstance(written, Header):
        value = {"ferrule": written.ferrule, "version": written.version, **value}
    elif usage := {name: count for name, count in value.pop("usage", {}).items() if count}:
        value["usage"] = usage
    return json_text(value).encode() + b"\n"


def read(path: str) -> Recorded:
    """Raises: ConfigError, which names the line."""
    try:
        with open(path, "rb") as file:
            raw = file.read(LIMIT_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"The recording {path} cannot be read: {error.strerror}.") from error
    if len(raw) > LIMIT_BYTES:
        raise ConfigError(f"The recording {path} is larger than {LIMIT_BYTES >> 20} MiB and is not read.")
    try:
        lines = raw.decode().split("\n")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is no recording: it is not UTF-8.") from error
    rows = [(at, line) for at, line in enumerate(lines, 1) if line.strip() and not line.lstrip().startswith("#")]
    if not rows:
        raise ConfigError(f"The recording {path} is empty.")
    header = _header(rows[0][1], f"{path}, line {rows[0][0]}")
    return Recorded(header, tuple(_cue(line, f"{path}, line {at}") for at, line in rows[1:]))


def _header(line: str, where: str) -> Header:
    value = _value(line, where)
    if not isinstance(value, dict) or value.get("ferrule") != "conversation":
        raise ConfigError(
            f'{where}: this is no recorded conversation; its first line would say {{"ferrule":"conversation",…}}.'
        )
    if value.get("version") != VERSION:
        raise ConfigError(
            f"{where}: the recording has version {value.get('version')!r}, and this Ferrule knows {VERSION}."
        )
    return _made(value, Header, where)


def _cue(line: str, where: str) -> Cue:
    cue = _made(_value(line, where), Cue, where)
    if sum((cue.fail is not None, cue.again is not None, cue.hang)) > 1:
        raise ConfigError(f"{where}: of `fail`, `again` and `hang` there can be one.")
    for part in cue.parts:
        if sum(kind is not None for kind in (part.text, part.thinking, part.use)) != 1:
            raise ConfigError(f"{where}: each part has one of `text`, `thinking` and `use`.")
    return cue


def _value(line: str, where: str) -> Any:
    try:
        return json.loads(line)  # lone surrogates, which models do write, are read by no other
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where}: this is no JSON: {error}.") from error


def _made(value: Any, kind: type[_Kind], where: str) -> _Kind:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {error}.") from error
