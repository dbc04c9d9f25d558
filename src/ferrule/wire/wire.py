"""The wire formats by name, loaded when they are asked for, and the way between the engine's words and theirs."""

from types import ModuleType
from typing import Any

from ferrule.core.call import Call
from ferrule.core.errors import ConfigError
from ferrule.core.face import Face
from ferrule.core.reply import Reply, spoken
from ferrule.wire.turn import Definition, Image, Result, Text, Use

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
    from importlib import import_module  # only who speaks to a model pays for it

    return import_module(WIRES[name])


def call_of(use: Use) -> Call:
    """A call for the engine. Free text is the tool's one argument; other text is left for the engine to read."""
    return Call(use.name, {"input": use.input} if use.is_text else use.input, use.id)


def result_of(reply: Reply, *, notes: bool = True) -> Result:
    """A reply as the model hears it. Notes come last, one a line."""
    parts = _parts(reply.result) if reply.ok else (Text(_failure(reply)),)
    if notes and reply.notes:
        parts = (*parts, Text("\n".join(f"Note: {note}" for note in reply.notes)))
    return Result(reply.id, parts, not reply.ok, reply.name)


def _failure(reply: Reply) -> str:
    return reply.error.message if reply.error is not None else f"The call did not end: its status is {reply.status}."


def _parts(result: Any) -> tuple[Text | Image, ...]:
    if image := _image(result):
        return (image,)
    if isinstance(result, list | tuple) and result:
        members = [_image(member) or _text(member) for member in result]
        if all(members):
            return tuple(member for member in members if member is not None)
    return (Text(spoken(result)),)


def _image(value: Any) -> Image | None:
    if not isinstance(value, dict) or value.get("type") != "image":
        return None
    media_type, data = value.get("media_type"), value.get("data")
    return Image(media_type, data) if isinstance(media_type, str) and isinstance(data, str) else None


def _text(value: Any) -> Text | None:
    if not isinstance(value, dict) or value.get("type") != "text":
        return None
    return Text(value["text"]) if isinstance(value.get("text"), str) else None


def definition_of(face: Face) -> Definition:
    """A tool as a face shows it."""
    return Definition(face.name, face.words, face.schema, face.grammar)
