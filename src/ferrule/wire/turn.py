"""A conversation in no API's words: what every wire format is read into and written from."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from ferrule.core.content import Document, Image, Text

__all__ = [
    "Asked",
    "Choice",
    "Content",
    "Definition",
    "Document",
    "Foreign",
    "Image",
    "Part",
    "Reason",
    "Result",
    "Said",
    "Text",
    "Thinking",
    "Turn",
    "Usage",
    "Use",
]


class Thinking(msgspec.Struct, frozen=True, tag="thinking"):
    """What a model thought; it goes back to its own API as it came."""

    text: str
    signature: str = ""
    sealed: str = ""
    """Thinking that only the API itself can read."""
    wire: str = ""
    """The wire that it came on; only there a signature means anything. Empty where that is not known."""


class Foreign(msgspec.Struct, frozen=True, tag="foreign"):
    """A block that only one API knows. It goes back there as it came; other wires leave it out and say so."""

    wire: str
    kind: str
    block: dict[str, Any]


class Use(msgspec.Struct, frozen=True, tag="use"):
    """A call as a model wrote it."""

    id: str
    name: str
    input: dict[str, Any] | str
    """An object; text where the tool takes free text, or where the arguments were no JSON object."""
    is_text: bool = False
    """Does the tool take free text? Otherwise text is what a model wrote instead of an object."""


class Result(msgspec.Struct, frozen=True, tag="result"):
    """The answer to a call."""

    id: str
    parts: "tuple[Content, ...]"
    failed: bool = False
    name: str = ""
    """The tool, for APIs that want to hear it again; empty where the wire did not say."""


Content = Text | Image | Document | Foreign
"""What a result may hold."""
Part = Text | Image | Document | Thinking | Use | Result | Foreign


class Turn(msgspec.Struct, frozen=True):
    """What one side said at once."""

    role: Literal["system", "user", "assistant"]
    parts: tuple[Part, ...]


class Definition(msgspec.Struct, frozen=True):
    """A tool as a model is shown it."""

    name: str
    words: str
    schema: Mapping[str, Any]
    grammar: str = ""
    """For a tool that takes free text: the grammar (lark) of it, for APIs that know such tools."""
    annotations: Mapping[str, Any] | None = None
    """What MCP says of a tool besides: a title, and hints of what it does."""


class Choice(msgspec.Struct, frozen=True):
    """Whether the model may, must or must not use a tool."""

    kind: Literal["auto", "any", "none", "tool"] = "auto"
    name: str = ""
    parallel: bool | None = None
    """May it use several at once? None leaves that to the API."""


class Usage(msgspec.Struct, frozen=True):
    """Tokens. `input` counts all of the input, the cached part too."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0


Reason = Literal["end", "tools", "length", "refused", "stopped"]
"""Why a model stopped: done, wants tools run, out of tokens, refused by a filter, met a stop word."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent to a model."""

    model: str
    turns: tuple[Turn, ...]
    definitions: tuple[Definition, ...] = ()
    choice: Choice | None = None
    max_tokens: int | None = None
    thinking_tokens: int | None = None
    effort: str = ""
    """How much work it is to put into its answer, for models that are told so: `low` to `max`."""
    task_tokens: int | None = None
    """How many tokens the whole task may take, for models that are told so."""
    temperature: float | None = None
    stop: tuple[str, ...] = ()
    stream: bool = False


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What a model sent back."""

    id: str
    model: str
    parts: tuple[Part, ...]
    reason: Reason
    usage: Usage = Usage()
