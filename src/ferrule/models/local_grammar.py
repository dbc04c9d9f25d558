"""The grammar that a local model's answer is held to: words, or calls that fit the schemas of the tools.

It is in the language of llguidance, which `xllamacpp` is built with.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

from ferrule.models.model import ModelError
from ferrule.wire.turn import Choice, Definition

OPEN, CLOSE = "<tool_call>", "</tool_call>"
"""What stands around a call. Most small models that know tools at all were taught this."""
_SMALL_WINDOW = 8192
_MOST_CALLS = 8
_FORM = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": ", "lenient": True}
"""White space would be a place to go astray in. Of a keyword that the grammar does not know only the engine hears."""
_CLOSED = ("enum", "const", "pattern")
"""What says enough about a value."""
_ABOUT = {"description", "title", "default", "examples", "$comment"}
_LARGEST = 10**9
_MAPS = ("properties", "$defs", "definitions", "patternProperties")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")


class Bounds(NamedTuple):
    """How long a value may become whose schema does not say it."""

    characters: int
    members: int
    is_small: bool

    @classmethod
    def of(cls, window: int) -> Self:
        """A model with a small window is a small model, and does not find an end by itself."""
        return cls(window // 64, 4, True) if window <= _SMALL_WINDOW else cls(window // 2, 64, False)


def head(name: str) -> str:
    """What stands before the arguments of a call, to the letter."""
    return f'{OPEN}\n{{"name": {json.dumps(name, ensure_ascii=False)}, "arguments": '


TAIL = "}\n" + CLOSE


def grammar(definitions: Sequence[Definition], choice: Choice | None, bounds: Bounds) -> str:
    """Empty where anything may be said. What has no limit of its own in a schema has that of `bounds`.

    Raises: ModelError.
    """
    chosen = choice or Choice()
    if chosen.kind == "tool":
        definitions = [one for one in definitions if one.name == chosen.name]
        if not definitions:
            raise ModelError(f"The model is to call {chosen.name}, and there is no such tool.", "bad")
    if not definitions or chosen.kind == "none":
        return ""
    lines = [
        "%llguidance {}",
        f"start: {_start(chosen, bounds)}",
        "call: " + " | ".join(map(_rule, range(len(definitions)))),
    ]
    for at, one in enumerate(definitions):
        schema = {**bounded(one.schema, bounds), "x-guidance": _FORM}
        lines.append(f"{_rule(at)}: {_literal(head(one.name))} arguments_{at} {_literal(TAIL)}")
        lines.append(f"arguments_{at}: %json {json.dumps(schema)}")
    if chosen.kind == "auto":
        lines.append(rf"WORDS: /(.|\n)+/ & ~/(.|\n)*{OPEN}(.|\n)*/")
    return "\n".join(lines)


def _start(choice: Choice, bounds: Bounds) -> str:
    # Who must call and cannot stop would call until the end of its tokens.
    is_several = choice.parallel or (choice.parallel is None and choice.kind == "auto" and not bounds.is_small)
    calls = f'call ("\\n" call){{0,{_MOST_CALLS - 1}}}' if is_several else "call"
    return f"WORDS | WORDS? {calls}" if choice.kind == "auto" else calls


def _rule(at: int) -> str:
    return f"call_{at}"


def _literal(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def bounded(schema: Mapping[str, Any], bounds: Bounds) -> dict[str, Any]:
    """The schema, such that whatever fits it comes to an end, and with no member that it does not name."""
    out: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _MAPS and isinstance(value, Mapping):
            out[key] = {name: _inner(member, bounds) for name, member in value.items()}
        elif key in _LISTS and isinstance(value, Sequence):
            out[key] = [_inner(member, bounds) for member in value]
        elif key == "items" or (key == "additionalProperties" and value is not False):
            out[key] = _inner(value, bounds)
        else:
            out[key] = value
    kinds = out.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if "string" in kinds and not any(key in out for key in _CLOSED):
        out.setdefault("maxLength", bounds.characters)
    if "integer" in kinds and not any(key in out for key in _CLOSED):
        out.setdefault("minimum", out.get("exclusiveMinimum", -_LARGEST))
        out.setdefault("maximum", out.get("exclusiveMaximum", _LARGEST))
    if "array" in kinds:
        out.setdefault("maxItems", max(bounds.members, out.get("minItems", 0)))
    if "object" in kinds and out.get("properties") and schema.get("additionalProperties", True) is True:
        out["additionalProperties"] = False
    return out


def _inner(value: Any, bounds: Bounds) -> Any:
    if isinstance(value, Mapping) and (value.keys() - _ABOUT or not bounds.is_small):
        return bounded(value, bounds)
    # Anything at all has no end that a small model would find.
    if bounds.is_small and (value is True or isinstance(value, Mapping)):
        return bounded({"type": ["string", "integer", "boolean", "null"]}, bounds)
    return value
