"""What a tool says of itself when it is described: as JSON or as text, and what is understood of either."""

import re
from typing import Any, Literal, NamedTuple

import msgspec

from ferrule.output.clean import clean, clean_value
from ferrule.sources.schema import usable

Format = Literal["json", "text"]

GENERIC = "generic argument - use a sensible value"
"""What a parameter is described as about which nothing is said."""
MOST_WORDS_CHARS = 20_000
_TYPES = frozenset({"string", "boolean", "number", "integer"})
_JSON_TYPES = _TYPES | {"array", "object"}
_KEY = r"[A-Za-z0-9_.-]{1,64}"


class Description(NamedTuple):
    """A tool as it describes itself."""

    name: str
    """As it says it; empty where it says nothing."""
    words: str
    schema: dict[str, Any]
    format: Format
    """In which it described itself, and is given its parameters."""
    subagent_types: tuple[str, ...] | None = None


def understood(text: str) -> Description:
    """What was written: JSON, or else `key: value` lines. Raises ValueError with a sentence."""
    text = text.removeprefix("\ufeff").strip()
    if not text:
        raise ValueError("It did not describe itself: it wrote nothing.")
    try:
        said = msgspec.json.decode(text)
    except RecursionError:
        raise ValueError("Its description nests too deep.") from None
    except (msgspec.DecodeError, UnicodeEncodeError):
        name, words, schema = _from_text(text)
        return Description(name.strip(), _worded(words), usable(schema), "text")
    if not isinstance(said, dict):
        raise ValueError("Its description is JSON, but not an object with name and description.")  # noqa: TRY004 - ours
    return _from_json(clean_value(said))


def _from_json(said: dict[str, Any]) -> Description:
    name, words = said.get("name", ""), said.get("description")
    if not isinstance(name, str):
        raise ValueError("Its name is not a text.")  # noqa: TRY004 - it is about what a program wrote
    if not isinstance(words, str):
        raise ValueError("It has no description: a model would not know what it is for.")  # noqa: TRY004 - as above
    schema, spec = said.get("inputSchema"), said.get("args")
    if schema is None:
        if not isinstance(spec, dict | None):
            raise ValueError('Its "args" are not a JSON object.')
        schema = {"type": "object", "properties": {key: _parameter(key, value) for key, value in (spec or {}).items()}}
        if not spec:
            schema["required"] = []
    return Description(name.strip(), _worded(words), usable(schema), "json", _subagent_types(said.get("meta")))


def _parameter(key: str, spec: Any) -> dict[str, Any]:
    """A parameter in the compact form: nothing, a description, a type and a description, or an object of both."""
    kind: object = "string"
    words: object = GENERIC
    match spec:
        case None | True | []:
            pass
        case [words] | str(words):
            pass
        case [kind, words, *_]:
            pass
        case dict():
            kind, words = spec.get("type", kind), spec.get("description", words)
        case _:
            raise ValueError(f"Its argument {key[:80]!r} is not understood: write [type, description].")
    if not isinstance(words, str):
        raise ValueError(f"The description of its argument {key[:80]!r} is not a text.")  # noqa: TRY004 - as above
    kind = kind if isinstance(kind, str) and kind in _JSON_TYPES else "string"
    about: dict[str, Any] = {"type": kind, "description": words}
    # Some model APIs refuse a list that says nothing of what it holds.
    return {**about, "items": {}} if kind == "array" else about


def _subagent_types(meta: Any) -> tuple[str, ...] | None:
    types = meta.get("subagentTypes") if isinstance(meta, dict) else None
    if types is None:
        return None
    types = [types] if isinstance(types, str) else types
    if not isinstance(types, list) or not all(isinstance(one, str) for one in types):
        # A restriction that cannot be read must not become none.
        raise ValueError("Its meta.subagentTypes are not a list of texts.")
    return tuple(types)


def _from_text(text: str) -> tuple[str, str, dict[str, Any]]:
    """Name, description and schema of `key: value` lines."""
    name = ""
    words: list[str] = []
    properties: dict[str, Any] = {}
    required: list[str] = []
    for number, line in enumerate(clean(text).split("\n"), 1):
        if not line.strip():
            continue
        key, colon, value = (part.strip() for part in line.partition(":"))
        if not colon or not re.fullmatch(_KEY, key):
            raise ValueError(f"Its description is neither JSON nor `key: value` lines: see line {number}.")
        if key == "description":
            words.append(value)
        elif key in properties or (key == "name" and name):
            raise ValueError(f"It says {key!r} twice, the second time in line {number}.")
        elif key == "name":
            name = value
        else:
            properties[key], is_optional = _typed(value)
            required += [] if is_optional else [key]
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return name, "\n".join(words), schema


def _typed(value: str) -> tuple[dict[str, str], bool]:
    """A parameter as `[type] description`, and whether it is optional."""
    head, *rest = value.split(None, 1) or [""]
    kind = head.removesuffix("?")
    words = "".join(rest) if kind in _TYPES else value
    has_mark = kind in _TYPES and head.endswith("?")
    lowered = words.casefold()
    is_optional = has_mark or "(optional)" in lowered or lowered.startswith("optional")
    return {"type": kind if kind in _TYPES else "string", "description": words or GENERIC}, is_optional


def _worded(words: str) -> str:
    words = words.strip()
    if not words:
        raise ValueError("It has no description: a model would not know what it is for.")
    if len(words) > MOST_WORDS_CHARS:
        raise ValueError(f"Its description has {len(words):,} characters; {MOST_WORDS_CHARS:,} is the most.")
    return words
