"""Sums over forms."""

from collections.abc import Iterable

from .forms import Circle, Form, Square


def total(forms: Iterable[Form]) -> float:
    """All areas together."""
    return sum(form.area() for form in forms)


def usual() -> float:
    return total([Circle(1.0), Square(2.0)])
