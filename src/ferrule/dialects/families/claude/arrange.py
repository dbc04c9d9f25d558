"""How Claude Code arranges lines, searches, several edits and a list of tasks."""

from ferrule.core.face import Values
from ferrule.dialects.arrange import members, opposite, turned, without

EDIT = {"old_string": "old", "new_string": "new", "replace_all": "everywhere"}

_MODES = {"content": "lines", "files_with_matches": "files", "count": "count"}
_STEP = {"content": "text", "status": "status"}


def from_the_start(values: Values) -> Values:
    """Lines are counted from 1; an offset of 0 means the start as well."""
    return {**values, "offset": 1} if values.get("offset") == 0 else values


def search(values: Values) -> Values:
    """`-i` says the opposite of case sensitive, `-C` both sides of context, and modes have their own names."""
    out = opposite(without(values, "-C"), "-i", "case_sensitive")
    if "-C" in values:
        out = {"before": values["-C"], "after": values["-C"], **out}
    return {**out, "mode": _MODES[values["mode"]]} if "mode" in values else out


def searched(values: Values) -> Values:
    """The inverse."""
    out = opposite(values, "case_sensitive", "-i")
    return {**out, "mode": turned(_MODES)[values["mode"]]} if "mode" in values else out


def edits(values: Values) -> Values:
    """Several edits, each in canonical names."""
    return members(values, "edits", EDIT)


def edits_shown(values: Values) -> Values:
    """The inverse."""
    return members(values, "edits", turned(EDIT))


def steps(values: Values) -> Values:
    """Tasks in canonical names; what one is called while it is worked on is left out."""
    return members(values, "steps", _STEP)


def tasks(values: Values) -> Values:
    """The inverse."""
    shown = members(values, "steps", turned(_STEP))
    return {**shown, "steps": [{**task, "activeForm": task["content"]} for task in shown["steps"]]}
