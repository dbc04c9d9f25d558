"""How codex arranges a program's arguments, a plan and a block of code."""

import shlex

from ferrule.core.errors import BadArguments
from ferrule.core.face import Values
from ferrule.dialects.arrange import members, turned, without

_SHELLS = frozenset({"bash", "sh", "/bin/bash", "/bin/sh", "/usr/bin/bash", "/usr/bin/sh"})
_RUN = frozenset({"-c", "-lc"})
_STEP = {"step": "text", "status": "status"}


def joined(values: Values) -> Values:
    """A program and its arguments as the command line that runs them.

    A shell that is given a command line becomes that line: it runs in a shell anyway, and who is asked about it, or
    decides on it, sees what will run and not a quotation of it. So does a single word with blanks in it: nobody has
    programs of such names.
    """
    words = values["command"]
    if not words:
        raise BadArguments("command: is empty; give a program and its arguments.")
    if words[0] == "apply_patch":
        raise BadArguments("command: apply_patch is a tool and not a program; call it with the patch as its input.")
    if len(words) == 1 and any(character.isspace() for character in words[0]):
        return {**values, "command": words[0]}
    if len(words) == 3 and words[0] in _SHELLS and words[1] in _RUN:
        return {**values, "command": words[2]}
    return {**values, "command": shlex.join(words)}


def split(values: Values) -> Values:
    """The inverse."""
    line = values["command"]
    try:
        words = shlex.split(line)
        plain = joined({"command": words})["command"] == line
    except (ValueError, BadArguments):
        plain = False
    return {**values, "command": words if plain else ["bash", "-lc", line]}


def steps(values: Values) -> Values:
    """Steps in canonical names."""
    return members(values, "steps", _STEP)


def plan(values: Values) -> Values:
    """The inverse."""
    return members(values, "steps", turned(_STEP))


def detail(values: Values) -> Values:
    """`original` is one of the two details."""
    if "detail" not in values:
        return values
    return {**without(values, "detail"), "original": values["detail"] == "original"}


def as_detail(values: Values) -> Values:
    """The inverse."""
    if "original" not in values:
        return values
    return {**without(values, "original"), "detail": "original" if values["original"] else "high"}
