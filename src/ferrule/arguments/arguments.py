"""From what the model wrote to what the tool takes: schema, canonical names, final form, struct."""

import re
from typing import Any, Protocol

import msgspec

from ferrule.arguments.schema import Schema
from ferrule.core.args import Args
from ferrule.core.errors import BadArguments
from ferrule.core.face import Face
from ferrule.core.tool import AnyTool, Context

_WHERE = re.compile(r" - at `\$\.?([^`]*)`$")

_KINDS = {"int": "a whole number", "float": "a number with a fraction", "str": "text", "bool": "true or false"}


class Understood(Context, Protocol):
    """A context that remembers the arguments in their final form."""

    input: dict[str, Any]


class Arguments:
    """The schemas of the faces, compiled when they are first used."""

    def __init__(self) -> None:
        self._schemas: dict[str, Schema] = {}

    def understand(self, face: Face, tool: AnyTool, raw: dict[str, Any] | str, ctx: Understood) -> Args:
        """The tool's arguments; every repair is a note. Raises `BadArguments`, one line per bad parameter."""
        schema = self._schemas.get(face.name)
        if schema is None:
            schema = self._schemas[face.name] = Schema(face.schema)
        fitted = schema.fit(raw)
        for note in fitted.notes:
            ctx.note(note)
        values = face.preprocess(face.canonical(fitted.values), ctx)
        ctx.input = values
        try:
            return msgspec.convert(values, tool.args, strict=False)
        except msgspec.ValidationError as error:
            raise BadArguments(_line(face, str(error))) from error


def _line(face: Face, message: str) -> str:
    """A conversion error as one line that speaks the caller's parameter names."""
    where = _WHERE.search(message)
    path = where.group(1) if where else ""
    what = message[: where.start()] if where else message
    head = re.split(r"[.\[]", path, maxsplit=1)[0]
    shown = face.shown_param(head)
    for kind, words in _KINDS.items():
        what = what.replace(f"`{kind}`", words)
    return f"{shown}{path[len(head) :]}: {what[:1].lower()}{what[1:]}."
