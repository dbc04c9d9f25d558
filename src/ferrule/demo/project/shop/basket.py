"""A basket of goods."""

from shop.discount import discount
from shop.prices import price


class Basket:
    def __init__(self):
        self.items = {}

    def add(self, name, count=1):
        self.items[name] = self.items.get(name, 0) + count

    def total(self):
        """What the customer pays, in cents."""
        full = sum(price(name) * count for name, count in self.items.items())
        return full - discount(full)
