"""A tool of this project's own: any coding agent that works here can call it."""

import runpy
from pathlib import Path

from ferrule import Access, tool

PRICES = Path(__file__).parents[2] / "shop" / "prices.py"


@tool(touches=[Access.read("shop/prices.py")])
def price_of(item: str) -> str:
    """Look up what something costs in this shop."""
    prices = runpy.run_path(str(PRICES))["PRICES"]
    if item not in prices:
        return f"There is no {item}. There are {', '.join(sorted(prices))}."
    return f"{item}: {prices[item]} cents"
