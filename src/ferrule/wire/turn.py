"""Define the API-neutral conversation, requests, answers and stream deltas of all wire formats."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from ferrule.core.content import Cache, Document, Extra, Image, Text


class Thinking(msgspec.Struct, frozen=True, tag="thinking"):
    """What a model thought; it goes back to its own API as it came."""

    text: str
    signature: str = ""
    sealed: str = ""
    """Thinking that only the API itself can read."""
    wire: str = ""
    """The wire that it came on; only there a signature means anything. Empty where that is not known."""
    extra: Extra | None = None


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
    cache: Cache | None = None
    extra: Extra | None = None
    namespace: str = ""
    """The bundle of tools that the name is of, for APIs that have bundles."""


class Result(msgspec.Struct, frozen=True, tag="result"):
    """The answer to a call."""

    id: str
    parts: "tuple[Content, ...]"
    failed: bool = False
    name: str = ""
    """The tool, for APIs that want to hear it again; empty where the wire did not say."""
    cache: Cache | None = None
    extra: Extra | None = None


Content = Text | Image | Document | Foreign
"""What a result may hold."""
Part = Text | Image | Document | Thinking | Use | Result | Foreign


class Turn(msgspec.Struct, frozen=True):
    """What one side said at once."""

    role: Literal["system", "user", "assistant"]
    parts: tuple[Part, ...]
    extra: Extra | None = None


class Definition(msgspec.Struct, frozen=True):
    """A tool as a model is shown it."""

    name: str
    words: str
    schema: Mapping[str, Any]
    grammar: str = ""
    """For a tool that takes free text: the grammar (lark) of it, for APIs that know such tools."""
    annotations: Mapping[str, Any] | None = None
    """What MCP says of a tool besides: a title, and hints of what it does."""
    strict: bool | None = None
    """Must calls fit the schema? None leaves that to whoever writes the body."""
    cache: Cache | None = None
    extra: Extra | None = None
    hosted: bool = False
    """Does it run inside of the API that `extra` names? It cannot be offered to any other."""


class ToolChoice(msgspec.Struct, frozen=True):
    """Whether the model may, must or must not use a tool."""

    kind: Literal["auto", "any", "none", "tool"] = "auto"
    name: str = ""
    parallel: bool | None = None
    """May it use several at once? None leaves that to the API."""
    extra: Extra | None = None


class ResponseFormat(msgspec.Struct, frozen=True):
    """What form the answer must have: any text, any JSON, or JSON of a schema."""

    kind: Literal["text", "json", "schema"]
    schema: Mapping[str, Any] | None = None
    name: str = ""
    words: str = ""
    """What the schema is for, for APIs that tell the model."""
    strict: bool | None = None


class Usage(msgspec.Struct, frozen=True):
    """Tokens. `input` counts all of the input, the cached part too."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0


Reason = Literal["end", "tools", "length", "refused", "stopped"]
"""Why a model stopped: done, wants tools run, out of tokens, refused by a filter, met a stop word."""


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent to a model."""

    model: str
    turns: tuple[Turn, ...]
    definitions: tuple[Definition, ...] = ()
    choice: ToolChoice | None = None
    max_tokens: int | None = None
    thinking_tokens: int | None = None
    effort: str = ""
    """How hard to think and work, in the caller's own word, such as `high`; between wires it counts where
    `thinking_tokens` is still what it stands for."""
    task_tokens: int | None = None
    """How many tokens the whole task may take, for models that are told so."""
    temperature: float | None = None
    stop: tuple[str, ...] = ()
    stream: bool = False
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    n: int | None = None
    """How many answers are wanted."""
    logprobs: bool | None = None
    top_logprobs: int | None = None
    format: ResponseFormat | None = None
    verbosity: str = ""
    user: str = ""
    """Who the request is made for, by a name that tells the API nothing else."""
    metadata: Mapping[str, Any] | None = None
    service_tier: str = ""
    """auto, standard, flex or priority."""
    cache_key: str = ""
    store: bool | None = None
    """May the API keep the answer? None where nobody said so."""
    extra: Extra | None = None


class ModelResponse(msgspec.Struct, frozen=True, kw_only=True):
    """What a model sent back."""

    id: str
    model: str
    parts: tuple[Part, ...]
    reason: Reason
    usage: Usage = Usage()


class AnswerStart(msgspec.Struct, frozen=True):
    """The answer begins."""

    id: str
    model: str
    usage: Usage = Usage()
    """What is counted already, for APIs that say so at once; `Ended` counts all of it."""


class TextPiece(msgspec.Struct, frozen=True):
    """More words."""

    text: str


class ThinkingPiece(msgspec.Struct, frozen=True):
    """More thinking; a signature comes with or after its last words."""

    text: str
    signature: str = ""
    sealed: str = ""
    wire: str = ""
    """The wire that it came on; only there a signature means anything."""


class UseBegun(msgspec.Struct, frozen=True):
    """A call whose id and name are known. `at` numbers the calls of the answer from 0, in the order of their begin."""

    at: int
    id: str
    name: str
    is_text: bool = False
    """Is the input free text and not JSON?"""
    namespace: str = ""
    """The bundle of tools that the name is of, for APIs that have bundles."""


class UsePiece(msgspec.Struct, frozen=True):
    """More of a call's input, as text; the pieces together are its JSON."""

    at: int
    text: str


class UseEnded(msgspec.Struct, frozen=True):
    """A call's input is complete."""

    at: int
    cut: bool = False
    """Did the answer stop in the middle of the input? Then the call must not be run."""


class ForeignBlock(msgspec.Struct, frozen=True):
    """A whole block or item that only one API knows. Other APIs are not told of it."""

    wire: str
    block: dict[str, Any]


class AnswerEnd(msgspec.Struct, frozen=True):
    """The answer is complete. It is the last delta, and there is always one."""

    reason: Reason
    usage: Usage = Usage()
    skipped: int = 0
    """Events that nobody could read. All others were; nothing else is missing."""


class Broke(msgspec.Struct, frozen=True):
    """The answer broke off. `Ended` still follows; a writer says the error, and nothing behind it."""

    message: str
    kind: str = ""


Delta = AnswerStart | TextPiece | ThinkingPiece | UseBegun | UsePiece | UseEnded | ForeignBlock | AnswerEnd | Broke
