"""Read arguments as they arrive, and quote their names and values in messages.

JSON text is decoded, and values that no tool could carry are refused. Quotations are short, on one line, and never
show a secret.
"""

import math
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from ferrule.core.errors import BadArguments

Path = tuple[str | int, ...]
"""Where a value stands inside the arguments: names of members and positions of items."""

LIMIT_CHARACTERS = 60
LIMIT_NAMES = 30

_PLAIN_NAME = re.compile(r"[\w$.@/-]+")
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_SECRET = re.compile(
    r"(^|_)(passwords?|passwd|passphrase|secrets?|token|credentials?|authorization|cookies?"
    r"|(api|access|private)_?keys?)(_|$)"
)


def describe_value(value: Any, path: Path = ()) -> str:
    """The value in a few words; containers are described, and a value under a secret's name is hidden."""
    if isinstance(value, dict):
        return f"an object of {_count(len(value), 'member')}"
    if isinstance(value, list | tuple):
        return f"an array of {_count(len(value), 'item')}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if any(isinstance(part, str) and _names_secret(part) for part in path):
        return "(hidden)"
    return quote_text(value) if isinstance(value, str) else _cut(str(value))


def quote_text(text: str) -> str:
    """The text in double quotes, cut to its first characters, with what is not printable escaped."""
    # Cut first: the text may be a whole file.
    body = "".join(_visible(character) for character in text[:LIMIT_CHARACTERS])
    return f'"{body}{"…" if len(text) > LIMIT_CHARACTERS else ""}"'


def format_path(path: Path) -> str:
    """The parameter as its caller would write it, for example `edits[2].old`."""
    parts: list[str] = []
    for part in path:
        if isinstance(part, int):
            parts.append(f"[{part}]")
        else:
            parts.append(("." if parts else "") + quote_name(part))
    return "".join(parts) or "The arguments"


def quote_name(name: str) -> str:
    """A parameter's name: as it is where it is plain and short, quoted otherwise."""
    plain = len(name) <= LIMIT_CHARACTERS and _PLAIN_NAME.fullmatch(name) and name.isprintable()
    return name if plain else quote_text(name)


def format_names(names: Iterable[str]) -> str:
    """The names with commas between them; a long list is cut."""
    names = list(names)
    more = len(names) - LIMIT_NAMES
    return ", ".join(names[:LIMIT_NAMES]) + (f" and {more} more" if more > 0 else "")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _cut(text: str) -> str:
    return text if len(text) <= LIMIT_CHARACTERS else text[:LIMIT_CHARACTERS] + "…"


def _visible(character: str) -> str:
    if character in '"\\\n\r\t':
        return msgspec.json.encode(character).decode()[1:-1]
    return character if character.isprintable() else f"\\u{ord(character):04x}"


def _names_secret(name: str) -> bool:
    # Whole words, so that `max_tokens` and `author` stay readable.
    words = _WORDS.findall(name[:LIMIT_CHARACTERS])
    return _SECRET.search("_".join(word.lower() for word in words)) is not None


DEPTH_LIMIT = 64
"""How deep arguments may nest; far more than any tool needs, far less than any recursion bears."""
INTEGER_LIMIT_BITS = 1024
NAMES_LIMIT = 2_000
VALUES_LIMIT = 100_000
"""At all depths together. No model writes so many, and whoever fits them to a schema would hold up the event loop."""

_FENCE = "```"
_BLANKS = " \t\r\n"
_SCALARS = frozenset({str, int, float, bool, type(None)})
_CONTAINERS = frozenset({dict, list, tuple})


class ArgumentObject(NamedTuple):
    """The arguments as a fresh object, what was forgiven in them, and whether it holds 3.0 or its like."""

    values: dict[str, Any]
    notes: tuple[str, ...]
    has_whole_floats: bool


def receive(raw: dict[str, Any] | str) -> ArgumentObject:
    """The arguments as an object. The caller's own dictionary is left alone."""
    notes: list[str] = []
    values: Any = _parse_arguments(raw, notes) if isinstance(raw, str) else raw
    if not isinstance(values, dict):
        raise BadArguments(f"The arguments must be a JSON object, not {_kind(values)}.")
    if len(values) > NAMES_LIMIT:
        raise BadArguments(f"There are {len(values):,} arguments; {NAMES_LIMIT:,} is the most that is looked at.")
    return ArgumentObject(dict(values), tuple(notes), examine(values))


def _decode_json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        # The standard parser says where and why in better words, and takes NaN and lone surrogates,
        # which are then refused by the name of their parameter.
        import json  # 2 ms that only a broken text costs

        return json.loads(text)


def _parse_arguments(raw: str, notes: list[str]) -> Any:
    text = raw.strip(_BLANKS)
    if not text:
        return {}
    if text.startswith(_FENCE) and text.endswith(_FENCE) and len(text) >= 2 * len(_FENCE):
        # Blanks in the fence's place keep the columns of a complaint true.
        opening = _FENCE + ("json" if text[3:7].lower() == "json" else "")
        text = " " * len(opening) + text[len(opening) : -len(_FENCE)]
        notes.append("The arguments came inside a code fence, which was removed.")
    try:
        values = _decode_json(text)
        if isinstance(values, str) and values.lstrip(_BLANKS).startswith("{"):
            values = _decode_json(values)
            notes.append("The arguments came as JSON inside a JSON string, which was unpacked.")
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        raise BadArguments(_complaint(error)) from error
    return values


def _complaint(error: ValueError) -> str:
    line, column = getattr(error, "lineno", None), getattr(error, "colno", None)
    if line is None:
        return "The arguments are not valid JSON: they hold a number that is too long to read."
    reason = str(getattr(error, "msg", "")).removesuffix(" at")
    return f"The arguments are not valid JSON: {reason} (line {line}, column {column})."


def _too_deep() -> BadArguments:
    return BadArguments(f"The arguments are nested more than {DEPTH_LIMIT} levels deep; send them flatter.")


def examine(values: dict[str, Any] | list[Any]) -> bool:
    """Refuse what is not JSON or cannot be written as UTF-8; true where 3.0 or its like is among the values.

    It goes level by level, so that neither depth nor a cycle can exhaust the stack.
    """
    whole = False
    level: list[tuple[Path, Any]] = [((), values)]
    left = VALUES_LIMIT
    for _ in range(DEPTH_LIMIT):
        deeper: list[tuple[Path, Any]] = []
        for path, holder in level:
            in_object = isinstance(holder, dict)
            left -= len(holder)
            if left < 0:
                raise BadArguments(f"The arguments hold more than {VALUES_LIMIT:,} values; send fewer at once.")
            for key, value in holder.items() if in_object else enumerate(holder):
                if in_object:
                    _examine_name(key, path)
                if type(value) in _CONTAINERS:
                    deeper.append(((*path, key), value))
                elif fault := _fault(value):
                    raise BadArguments(f"{format_path((*path, key))}: {fault}.")
                elif isinstance(value, float):
                    whole = whole or value.is_integer()
        if not deeper:
            return whole
        level = deeper
    raise _too_deep()


def _examine_name(name: object, path: Path) -> None:
    if type(name) is not str:
        raise BadArguments(f"{format_path(path)}: the names of members must be strings, not {type(name).__name__}.")
    if _has_lone_surrogate(name):
        raise BadArguments(
            f"{format_path((*path, name))}: this name holds half a character and cannot be written as UTF-8."
        )


def _fault(value: object) -> str | None:
    """Why this value, which is no container, cannot be an argument."""
    # Exact types: the validator knows no others, and a subclass may mean more than JSON can say.
    kind = type(value)
    if kind not in _SCALARS:
        return f"a value of type {kind.__name__} is not JSON"
    if isinstance(value, str) and _has_lone_surrogate(value):
        return "the text holds half a character (a lone surrogate), which cannot be written as UTF-8"
    if isinstance(value, int) and value.bit_length() > INTEGER_LIMIT_BITS:
        return "the number is too large"
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN and Infinity are not JSON; send a finite number"
    return None


def _has_lone_surrogate(text: str) -> bool:
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _kind(value: object) -> str:
    kinds = {dict: "an object", list: "an array", str: "a string", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number" if isinstance(value, int | float) else type(value).__name__)
