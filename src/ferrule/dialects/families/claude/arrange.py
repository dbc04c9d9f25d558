"""How Claude Code arranges lines, searches, several edits and a list of tasks."""

from typing import Any

EDIT = {"old_string": "old", "new_string": "new", "replace_all": "everywhere"}

_MODES = {"content": "lines", "files_with_matches": "files", "count": "count"}
_BACK = {mode: shown for shown, mode in _MODES.items()}


def from_the_start(values: dict[str, Any]) -> dict[str, Any]:
    """Lines are counted from 1; an offset of 0 means the start as well."""
    return {**values, "offset": 1} if values.get("offset") == 0 else values


def search(values: dict[str, Any]) -> dict[str, Any]:
    """`-i` says the opposite of case sensitive, `-C` both sides of context, and modes have their own names."""
    out = {key: value for key, value in values.items() if key not in ("-i", "-C", "mode")}
    if "-i" in values:
        out["case_sensitive"] = not values["-i"]
    if "-C" in values:
        out = {"before": values["-C"], "after": values["-C"], **out}
    if "mode" in values:
        out["mode"] = _MODES[values["mode"]]
    return out


def searched(values: dict[str, Any]) -> dict[str, Any]:
    """The inverse."""
    out = {key: value for key, value in values.items() if key not in ("case_sensitive", "mode")}
    if "case_sensitive" in values:
        out["-i"] = not values["case_sensitive"]
    if "mode" in values:
        out["mode"] = _BACK[values["mode"]]
    return out


def edits(values: dict[str, Any]) -> dict[str, Any]:
    """Several edits, each in canonical names."""
    return {**values, "edits": [{EDIT[key]: value for key, value in edit.items()} for edit in values["edits"]]}


def edits_shown(values: dict[str, Any]) -> dict[str, Any]:
    """The inverse."""
    names = {canonical: shown for shown, canonical in EDIT.items()}
    return {**values, "edits": [{names[key]: value for key, value in edit.items()} for edit in values["edits"]]}


def steps(values: dict[str, Any]) -> dict[str, Any]:
    """Tasks in canonical names; what one is called while it is worked on is left out."""
    return {**values, "steps": [{"text": one["content"], "status": one["status"]} for one in values["steps"]]}


def tasks(values: dict[str, Any]) -> dict[str, Any]:
    """The inverse."""
    shown = [
        {"content": step["text"], "status": step["status"], "activeForm": step["text"]} for step in values["steps"]
    ]
    return {**values, "steps": shown}
