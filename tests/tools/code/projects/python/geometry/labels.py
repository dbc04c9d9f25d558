"""Labels with more than ASCII in them."""

from .sums import usual


def label() -> str:
    return "🎈 café " + str(usual())
