"""The wire formats by name, loaded when they are asked for, and the way between the engine's words and theirs."""

from types import ModuleType

from ferrule.core.call import Call, Reply
from ferrule.core.content import Text
from ferrule.core.errors import ConfigError
from ferrule.core.face import Face
from ferrule.wire.turn import Definition, Result, Use

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
    parts = reply.content
    if notes and reply.notes:
        parts = (*parts, Text("\n".join(f"Note: {note}" for note in reply.notes)))
    return Result(reply.id, parts, not reply.ok, reply.name)


def definition_of(face: Face) -> Definition:
    """A tool as a face shows it."""
    return Definition(face.name, face.words, face.schema, face.grammar)
