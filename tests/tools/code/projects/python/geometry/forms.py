"""Forms that have an area."""

from abc import ABC, abstractmethod


class Form(ABC):
    """Something flat."""

    @abstractmethod
    def area(self) -> float:
        """How large it is."""


class Circle(Form):
    def __init__(self, radius: float) -> None:
        self.radius = radius

    def area(self) -> float:
        return 3.0 * self.radius * self.radius


class Square(Form):
    def __init__(self, side: float) -> None:
        self.side = side

    def area(self) -> float:
        return self.side * self.side
