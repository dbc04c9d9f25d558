"""What the loop costs: its start, its time a turn, its memory; beside the barest loop that does the same work."""

from collections.abc import Iterator

from bench.agent import memory, starting, turns
from bench.measure import Row


def rows() -> Iterator[Row]:
    yield from starting.rows()
    yield from turns.rows()
    yield from memory.rows()
