"""How Wayland arranges arguments."""

import msgspec

from ferrule.core.face import Face, Values, copied
from ferrule.dialects.arrange import opposite, without

_TURNS = 50
_ANSWER_TOKENS = 4096
_SHARED = ("prompt", "context", "toolsets", "tasks", "max_turns")


def from_the_start(values: Values) -> Values:
    """A place before the first line is the first line."""
    return values if values.get("offset", 1) >= 1 else without(values, "offset")


def case(values: Values) -> Values:
    """Whether upper and lower case differ, from whether they are the same."""
    return opposite(values, "case_insensitive", "case_sensitive")


def no_case(values: Values) -> Values:
    """The inverse."""
    return opposite(values, "case_sensitive", "case_insensitive")


def shared(values: Values) -> Values:
    """One goal or several, each for a subagent that is named after it and writes short answers."""
    return {"max_turns": _TURNS, **values, "shared": True, "max_tokens": _ANSWER_TOKENS}


def goals(values: Values) -> Values:
    """The inverse, as far as the family has words for it."""
    return {key: values[key] for key in _SHARED if key in values}


def lenient(face: Face) -> Face:
    """The face of several goals, which accepts a task without one: what is missing is said by its number."""
    accepts = copied(face.schema)
    del accepts["properties"]["tasks"]["items"]["required"]
    return msgspec.structs.replace(face, accepts=accepts)
