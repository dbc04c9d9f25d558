"""How ah arranges arguments."""

from ferrule.core.face import Values


def from_the_start(values: Values) -> Values:
    """A place before the first line is the first line, and a limit of 0 is none."""
    return {key: value for key, value in values.items() if key not in ("offset", "limit") or value >= 1}
