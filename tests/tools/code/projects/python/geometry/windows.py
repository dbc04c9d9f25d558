"""Written on another system."""

from .sums import total


def nothing() -> float:
    return total([])
