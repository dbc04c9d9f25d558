"""Turn the arguments that a model wrote into the struct that a tool takes.

The steps are: the advertised schema, canonical names, final form, struct. Building a validator and importing its
library wait for the first call, so that neither slows down the start.
"""

import re
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from ferrule.arguments.input import ArgumentObject, receive
from ferrule.arguments.schema import Schema
from ferrule.core.errors import BadArguments
from ferrule.core.face import Face, as_it_came
from ferrule.core.tool import AnyTool, Args, Context

_WHERE = re.compile(r" - at `\$\.?([^`]*)`$")

_KINDS = {"int": "a whole number", "float": "a number with a fraction", "str": "text", "bool": "true or false"}


class Understood(Context, Protocol):
    """A context that remembers the arguments in their final form."""

    input: dict[str, Any]


class Arguments:
    """The schemas of the faces, compiled when they are first used."""

    def __init__(self) -> None:
        self._schemas: dict[int, tuple[Face, Schema]] = {}
        """By the face's identity; the face is kept, so that no other can come to have it."""

    def receive(self, face: Face, raw: dict[str, Any] | str) -> ArgumentObject:
        """The arguments as an object. A face that takes free text has all of a text that is no JSON."""
        if face.text_param and isinstance(raw, str) and not raw.lstrip().startswith(("{", '"', "```json")):
            raw = {face.text_param: raw}
        return receive(raw)

    def understand(self, face: Face, spoken: Face, tool: AnyTool, came: ArgumentObject, ctx: Understood) -> Args:
        """The tool's arguments, said in the words of `spoken` and answered in those of `face`.

        Every repair is a note. Raises `BadArguments`, one line per bad parameter.
        """
        known = self._schemas.get(id(spoken))
        if known is None:
            is_foreign = _is_raw(tool) or not hasattr(tool.args, "__struct_fields__")
            schema = spoken.taken
            known = self._schemas[id(spoken)] = (spoken, Schema(_open(schema) if is_foreign else schema))
        fitted = known[1].fit(came)
        for note in fitted.notes:
            ctx.note(note)
        for name in spoken.unused:
            if name in fitted.values and name not in spoken.schema.get("properties", ()):
                ctx.note(f"{name}: has no effect in this session.")
        values = face.completed(spoken.heard(fitted.values))
        args = _convert_args(values, tool, spoken)
        if face.preprocess is not as_it_came:  # it may look at values, so they are the tool's before and after
            values = face.preprocess(values, ctx)
            args = _convert_args(values, tool, spoken)
        # Rules speak of the arguments themselves, not of what they are handed on in.
        ctx.input = values["values"] if _is_raw(tool) else values
        return args


def _is_raw(tool: AnyTool) -> bool:
    return getattr(tool.args, "raw", False)


def _open(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema that is not ours: what it does not forbid is let through, as it says of itself."""
    return schema if "unevaluatedProperties" in schema else {"additionalProperties": True, **schema}


def _convert_args(values: dict[str, Any], tool: AnyTool, spoken: Face) -> Args:
    try:
        return msgspec.convert(values, tool.args, strict=False)
    except msgspec.ValidationError as error:
        raise BadArguments(_line(spoken, str(error))) from error


def _line(face: Face, message: str) -> str:
    """A conversion error as one line that speaks the caller's parameter names."""
    where = _WHERE.search(message)
    path = where.group(1) if where else ""
    what = message[: where.start()] if where else message
    head = re.split(r"[.\[]", path, maxsplit=1)[0]
    shown = face.shown_param(head)
    for kind, words in _KINDS.items():
        what = what.replace(f"`{kind} | null`", words).replace(f"`{kind}`", words)
    return f"{shown}{path[len(head) :]}: {what[:1].lower()}{what[1:]}."
