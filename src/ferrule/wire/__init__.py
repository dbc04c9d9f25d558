"""Define the API-neutral turns of all wire formats, load a wire by name, and check values that came over one."""

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, Literal

import msgspec

from ferrule.core.call import Call, Reply
from ferrule.core.content import Cache, Document, Extra, Image, Text
from ferrule.core.errors import ConfigError, FerruleError
from ferrule.core.tool import Face


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


WIRES = {
    "anthropic": "ferrule.wire.anthropic",
    "openai-chat": "ferrule.wire.openai_chat",
    "openai-responses": "ferrule.wire.openai_responses",
    "gemini": "ferrule.wire.gemini",
    "mcp": "ferrule.wire.mcp",
}
"""A format's name, and the module that speaks it."""


def load_wire(name: str) -> ModuleType:
    """The module of a format. All model formats offer the same functions."""
    if name not in WIRES:
        raise ConfigError(f"No wire format is called {name!r}. There are: {', '.join(WIRES)}.")

    return import_module(WIRES[name])


def call_of(use: Use) -> Call:
    """A call for the engine. Free text is the tool's one argument; other text is left for the engine to read."""
    return Call(use.name, {"input": use.input} if use.is_text else use.input, use.id)


def result_of(reply: Reply, *, notes: bool = True) -> Result:
    """A reply as the model hears it. Notes come last, one a line."""
    parts = reply.content
    if notes and reply.notes:
        parts = (*parts, Text("\n".join(f"Note: {note}" for note in reply.notes)))
    return Result(reply.id, parts, not reply.ok, reply.name)


def definition_of(face: Face) -> Definition:
    """A tool as a face shows it."""
    return Definition(face.name, face.words, face.schema, face.grammar)


class WireError(FerruleError, ValueError):
    """What came over the wire, or is to go over it, does not have the shape of its format."""


def as_object(value: Any, where: str) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise _type_error(value, where, "an object")


def as_list(value: Any, where: str) -> list[Any] | tuple[Any, ...]:
    if isinstance(value, list | tuple):
        return value
    raise _type_error(value, where, "an array")


def as_text(value: Any, where: str) -> str:
    if isinstance(value, str):
        return value
    raise _type_error(value, where, "a string")


def text_of(holder: dict[str, Any], key: str, where: str) -> str:
    """A string that has to be there."""
    return as_text(holder.get(key), f"{where}.{key}")


def text_or(holder: dict[str, Any], key: str, where: str, otherwise: str = "") -> str:
    """A string that may be missing or null."""
    value = holder.get(key)
    return otherwise if value is None else as_text(value, f"{where}.{key}")


def object_or(holder: dict[str, Any], key: str, where: str) -> dict[str, Any]:
    """An object that may be missing or null: an empty one then."""
    value = holder.get(key)
    return {} if value is None else as_object(value, f"{where}.{key}")


def list_or(holder: dict[str, Any], key: str, where: str) -> list[Any] | tuple[Any, ...]:
    """An array that may be missing or null: an empty one then."""
    value = holder.get(key)
    return () if value is None else as_list(value, f"{where}.{key}")


def count_or_none(holder: dict[str, Any], key: str, where: str) -> int | None:
    """A whole number that may be missing or null."""
    value = holder.get(key)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise _type_error(value, f"{where}.{key}", "a whole number")
    return value


def number_or_none(holder: dict[str, Any], key: str, where: str) -> float | None:
    """A number that may be missing or null."""
    value = holder.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _type_error(value, f"{where}.{key}", "a number")
    return value


def flag_or(holder: dict[str, Any], key: str, where: str, *, otherwise: bool | None) -> bool | None:
    """True or false, which may be missing or null."""
    value = holder.get(key)
    if value is None or isinstance(value, bool):
        return otherwise if value is None else value
    raise _type_error(value, f"{where}.{key}", "true or false")


def texts_of(holder: dict[str, Any], key: str, where: str) -> tuple[str, ...]:
    """Strings, of which there may be none, or one that stands alone."""
    value = holder.get(key)
    if isinstance(value, str):
        return (value,)
    return tuple(as_text(member, f"{where}.{key}[{at}]") for at, member in enumerate(list_or(holder, key, where)))


def tokens(holder: dict[str, Any], key: str) -> int:
    """A count of tokens; servers leave out what they did not count."""
    return count_or_none(holder, key, "usage") or 0


def refuse_failure(answer: dict[str, Any]) -> None:
    """An error that an API sends in place of an answer is raised in the API's own words."""
    error = answer.get("error")
    if not error:
        return
    told = error.get("message") if isinstance(error, dict) else error
    raise WireError(f"The API answered with an error: {told or error}")


def _type_error(value: Any, where: str, expected: str) -> WireError:
    return WireError(f"{where} must be {expected}, and is {_KINDS.get(type(value), type(value).__name__)}.")


_KINDS = {
    type(None): "missing or null",
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "an array",
    dict: "an object",
}


_EFFORTS = ((32_000, "high"), (16_000, "medium"), (4_000, "low"), (0, "minimal"))
"""From so many tokens on, this is the effort."""
_TOKENS = {"none": 0, "minimal": 1_024, "low": 4_000, "medium": 16_000, "high": 32_000, "xhigh": 48_000, "max": 64_000}

_MARK = "ferrule:"


def effort(tokens: int) -> str:
    """A budget of thinking in the words of APIs that take no number."""
    return next((word for least, word in _EFFORTS if tokens >= least), "minimal")


def effort_of(asked: ModelRequest) -> str:
    """How hard to think, in the caller's own word where it still holds."""
    if asked.effort and budget(asked.effort) == asked.thinking_tokens:
        return asked.effort
    return "" if asked.thinking_tokens is None else effort(asked.thinking_tokens)


def own_word(word: str) -> str:
    """A word that the budget alone does not give back; empty for the others."""
    tokens = budget(word)
    return "" if tokens is not None and effort(tokens) == word else word


def budget(word: str) -> int | None:
    """The budget that an effort stands for; None for a word that nobody has heard of."""
    return _TOKENS.get(word)


def is_own(thinking: Thinking, wire: str) -> bool:
    """May it go to this API? Another API's signature would be refused there."""
    return thinking.wire in {"", wire}


def pack_thinking(thinking: Thinking) -> str:
    """Signature and seal of another API as one opaque text, for a client that sends back what it was given."""
    packed = msgspec.json.encode((thinking.wire, thinking.signature, thinking.sealed))
    return _MARK + packed.decode()


def unpack_thinking(text: str, signature: str, wire: str) -> Thinking | None:
    """The thinking of another API that a client sends back; None where the signature is not one of `carried`."""
    if not signature.startswith(_MARK):
        return None
    try:
        origin, own, sealed = msgspec.json.decode(signature.removeprefix(_MARK), type=tuple[str, str, str])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    return None if origin in {"", wire} else Thinking(text, own, sealed, origin)


def origin(block: Mapping[str, Any]) -> str:
    """The API whose thinking a block holds in its signature; empty where it holds none."""
    for name in ("signature", "encrypted_content"):
        signature = block.get(name)
        if isinstance(signature, str) and (thinking := unpack_thinking("", signature, "")) is not None:
            return thinking.wire
    return ""
