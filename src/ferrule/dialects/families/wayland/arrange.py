"""How Wayland arranges arguments."""

from ferrule.core.face import Values
from ferrule.dialects.arrange import opposite, without


def from_the_start(values: Values) -> Values:
    """A place before the first line is the first line."""
    return values if values.get("offset", 1) >= 1 else without(values, "offset")


def case(values: Values) -> Values:
    """Whether upper and lower case differ, from whether they are the same."""
    return opposite(values, "case_insensitive", "case_sensitive")


def no_case(values: Values) -> Values:
    """The inverse."""
    return opposite(values, "case_sensitive", "case_insensitive")
