"""How opencode arranges a list of what is to be done."""

from ferrule.core.face import Values
from ferrule.dialects.arrange import members, turned

_STEP = {"content": "text", "status": "status", "priority": "priority"}


def steps(values: Values) -> Values:
    """Items in canonical names; older ones have an id, which the place in the list makes needless."""
    return members(values, "steps", _STEP)


def todos(values: Values) -> Values:
    """The inverse."""
    return members(values, "steps", turned(_STEP))
