"""How opencode arranges a list of what is to be done."""

from typing import Any

_NAMES = {"content": "text", "status": "status", "priority": "priority"}
_BACK = {canonical: shown for shown, canonical in _NAMES.items()}


def steps(values: dict[str, Any]) -> dict[str, Any]:
    """Items in canonical names; older ones have an id, which the place in the list makes needless."""
    rows = [{_NAMES[key]: value for key, value in one.items() if key in _NAMES} for one in values["steps"]]
    return {**values, "steps": rows}


def todos(values: dict[str, Any]) -> dict[str, Any]:
    """The inverse."""
    return {**values, "steps": [{_BACK[key]: value for key, value in one.items()} for one in values["steps"]]}
