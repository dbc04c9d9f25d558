"""How pi arranges edits and searches."""

from typing import Any

_NAMES = {"oldText": "old", "newText": "new"}
_BACK = {canonical: shown for shown, canonical in _NAMES.items()}


def edits(values: dict[str, Any]) -> dict[str, Any]:
    """Edits in canonical names."""
    return {**values, "edits": [{_NAMES[key]: value for key, value in one.items()} for one in values["edits"]]}


def edits_shown(values: dict[str, Any]) -> dict[str, Any]:
    """The inverse."""
    return {**values, "edits": [{_BACK[key]: value for key, value in one.items()} for one in values["edits"]]}


def search(values: dict[str, Any]) -> dict[str, Any]:
    """`ignoreCase` is the opposite of case sensitive, and `context` is both sides."""
    out = {key: value for key, value in values.items() if key not in ("ignoreCase", "context")}
    if "ignoreCase" in values:
        out["case_sensitive"] = not values["ignoreCase"]
    if "context" in values:
        out["before"] = out["after"] = values["context"]
    return out


def searched(values: dict[str, Any]) -> dict[str, Any]:
    """The inverse."""
    out = {key: value for key, value in values.items() if key not in ("case_sensitive", "before", "after")}
    if "case_sensitive" in values:
        out["ignoreCase"] = not values["case_sensitive"]
    if "before" in values:
        out["context"] = values["before"]
    return out
