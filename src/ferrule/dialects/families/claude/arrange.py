"""How Claude Code arranges lines, searches, several edits, a list of tasks and the name of a running one."""

from ferrule.core.errors import BadArguments
from ferrule.core.face import Values
from ferrule.dialects.arrange import members, opposite, turned, without

EDIT = {"old_string": "old", "new_string": "new", "replace_all": "everywhere"}

_MODES = {"content": "lines", "files_with_matches": "files", "count": "count"}
_STEP = {"content": "text", "status": "status"}


def from_the_start(values: Values) -> Values:
    """Lines are counted from 1; an offset of 0 means the start as well."""
    return {**values, "offset": 1} if values.get("offset") == 0 else values


def search(values: Values) -> Values:
    """`-i` says the opposite of case sensitive, `-C` both sides of context, and modes have their own names.

    Later versions call `-C` also `context`.
    """
    out = opposite(without(values, "-C", "context"), "-i", "case_sensitive")
    around = values.get("context", values.get("-C"))
    if around is not None:
        out = {"before": around, "after": around, **out}
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


def shell(values: Values) -> Values:
    """`shell_id` is what `task_id` was called."""
    named = {key: values[key] for key in ("task_id", "shell_id") if values.get(key)}
    if len(set(named.values())) != 1:
        raise BadArguments("task_id: required, but missing." if not named else "shell_id: is another than task_id.")
    return {**without(values, "shell_id"), "task_id": next(iter(named.values()))}


def task(values: Values) -> Values:
    """`bash_id` is what `task_id` was called; who calls it that gets what is new and does not wait."""
    if values.get("bash_id"):
        asked = {"block": False, **without(values, "bash_id"), "news": True}
        return shell({**asked, "shell_id": values["bash_id"]})
    return shell(without(values, "bash_id"))


def named(values: Values) -> Values:
    """The inverse; `news` is part of the older name."""
    if not values.get("news"):
        return values
    return {**without(values, "news", "task_id"), "bash_id": values["task_id"]}
