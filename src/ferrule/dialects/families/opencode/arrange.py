"""How opencode arranges a list of what is to be done."""

from typing import Any

_NAMES = {"content": "text", "status": "status", "priority": "priority"}
_BACK = {canonical: shown for shown, canonical in _NAMES.items()}


def steps(values: dict[str, Any]) -> dict[str, Any]:
    """Items in canonical names."""
    return {**values, "steps": [{_NAMES[key]: value for key, value in one.items()} for one in values["steps"]]}


def todos(values: dict[str, Any]) -> dict[str, Any]:
    """The inverse."""
    return {**values, "steps": [{_BACK[key]: value for key, value in one.items()} for one in values["steps"]]}
