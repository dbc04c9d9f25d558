"""What is wrong with a settings file, in words that say what would be right."""

import re
import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from ferrule.support.near import near


def explained(said: str, kind: type[msgspec.Struct]) -> str:
    """The complaint about a value for `kind`, with the values or names that there are; empty where nothing is known."""
    found = re.search(r" - at `(?:key in )?\$\.?([^`]*)`", said)
    here = _at(kind, found[1] if found else "")
    unknown = re.search(r"unknown field `([^`]*)`", said)
    if unknown and isinstance(here, type) and issubclass(here, msgspec.Struct):
        names = [field.name for field in msgspec.structs.fields(here)]
        meant = near(unknown[1], names)
        return f" Did you mean {' or '.join(meant)}?" if meant else f" There are {', '.join(sorted(names))}."
    if get_origin(here) is Literal:
        *values, last = [str(value) or "nothing" for value in get_args(here)]
        return f" It is one of {', '.join(values)} and {last}."
    return ""


def _at(kind: Any, path: str) -> Any:
    """The type of the setting at a path, as `checks.commands[...].kind`; None where there is none."""
    for name, inside in re.findall(r"([^.\[\]]+)|(\[[^\]]*\])", path):
        kind = _plain(kind)
        if inside:
            arguments = get_args(kind)
            kind = (arguments[-1] if get_origin(kind) is dict else arguments[0]) if arguments else None
        elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            kind = next((field.type for field in msgspec.structs.fields(kind) if field.name == name), None)
        else:
            return None
    return _plain(kind)


def _plain(kind: Any) -> Any:
    """A type without its limits, and without the None that may stand in its place."""
    if get_origin(kind) is Annotated:
        return _plain(get_args(kind)[0])
    if get_origin(kind) in {Union, types.UnionType}:
        rest = [each for each in get_args(kind) if each is not type(None)]
        return _plain(rest[0]) if len(rest) == 1 else kind
    return kind
