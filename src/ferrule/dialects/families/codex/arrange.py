"""How codex arranges a program's arguments, the permissions that it wants, a plan, a picture's detail and agents."""

import shlex

from ferrule.core.errors import BadArguments
from ferrule.core.face import Values
from ferrule.dialects.arrange import members, turned, without

_SHELLS = frozenset({"bash", "sh", "/bin/bash", "/bin/sh", "/usr/bin/bash", "/usr/bin/sh"})
_RUN = frozenset({"-c", "-lc"})
_ABOVE = "require_escalated"
_STEP = {"step": "text", "status": "status"}
_SPAWN = ("prompt", "description", "kind", "history", "model")


def outside(values: Values) -> Values:
    """Who wants to be above the sandbox wants to be outside of it; all else stays inside, and may be denied there."""
    out = without(values, "sandbox_permissions")
    return {**out, "outside": True} if values.get("sandbox_permissions") == _ABOVE else out


def permissions(values: Values) -> Values:
    """The inverse."""
    out = without(values, "outside")
    return {**out, "sandbox_permissions": _ABOVE} if values.get("outside") else out


def wanted(values: Values) -> Values:
    """What is asked for, without the boxes around it."""
    asked = values["permissions"]
    files = asked.get("file_system", {})
    out = {**without(values, "permissions"), **{key: files[key] for key in ("read", "write") if key in files}}
    network = asked.get("network", {})
    return {**out, "network": network["enabled"]} if "enabled" in network else out


def wants(values: Values) -> Values:
    """The inverse."""
    files = {key: values[key] for key in ("read", "write") if key in values}
    asked = {
        **({"network": {"enabled": values["network"]}} if "network" in values else {}),
        **({"file_system": files} if files else {}),
    }
    return {**without(values, "network", "read", "write"), "permissions": asked}


def joined(values: Values) -> Values:
    """A program and its arguments as the command line that runs them.

    A shell that is given a command line becomes that line: it runs in a shell anyway, and who is asked about it, or
    decides on it, sees what will run and not a quotation of it. So does a single word with blanks in it: nobody has
    programs of such names.
    """
    values = outside(values)
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
    values = permissions(values)
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


def spawned(values: Values) -> Values:
    """An agent is spawned and left to itself."""
    return {**values, "background": True}


def spawn(values: Values) -> Values:
    """The inverse, as far as the family has words for it."""
    return {key: values[key] for key in _SPAWN if key in values}


def spawned_of_items(values: Values) -> Values:
    """The older arrangement: the task as text, as items of text, or as both."""
    out = without(_of_items(values, "prompt"), "history")
    return spawned({**out, "history": "all"} if values.get("history") else out)


def spawn_of_items(values: Values) -> Values:
    """The inverse."""
    out = without(spawn(values), "description", "history")
    return {**out, "history": values["history"] == "all"} if "history" in values else out


def sent_of_items(values: Values) -> Values:
    """A message as text, as items of text, or as both."""
    return _of_items(values, "message")


def _of_items(values: Values, name: str) -> Values:
    items = values.get("items") or []
    if any(item.get("type", "text") != "text" for item in items):
        raise BadArguments("items: only text can be given to an agent; name files by their paths.")
    texts = [values.get(name) or "", *(item.get("text") or "" for item in items)]
    return {**without(values, "items"), name: "\n\n".join(filter(None, texts))}
