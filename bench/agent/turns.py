"""Harness time a turn: from the last byte of the model to the first byte of the next body, beside the floor's."""

import statistics
from collections.abc import Iterator

from bench.agent.place import Place, place
from bench.measure import Row, ratio

_ROUNDS = 5


def rows() -> Iterator[Row]:
    with place() as here:
        yield _row(here, "one small Read", "read*1*40", 4)
        yield _row(here, "8 parallel reads and greps", "mixed*8*12", 1.5)
        yield _row(here, "`Bash true` without a sandbox", "bash*1*20", 3)
        yield _row(here, "an edit of a 2,000-line file", "edit_read*1*40", 5)
        yield from _many(here)
    with place(sandbox="landlock") as here:
        yield _row(here, "`Bash true` with landlock", "bash*1*20", float("inf"))
    with place(sandbox="auto") as here:
        yield _row(here, "`Bash true` with the best sandbox here", "bash*1*20", 3.5)


def _row(here: Place, name: str, model: str, limit: float) -> Row:
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(_ROUNDS):
        # The first turns load what later ones have; each turn is beside the floor's of the same number.
        for argv, times in ((here.ours(model), ours), (here.floor(model), theirs)):
            here.lay_out()
            times.extend(here.run(argv)[2:])
    detail = f"{_ms(ours)} and {_ms(theirs)}"
    return Row(f"harness time a turn: {name}, against the floor", ratio(ours, theirs), limit, "×", detail)


def _many(here: Place) -> Iterator[Row]:
    """100 turns in one conversation: is the last as fast as the first?"""
    ours = [here.run(here.ours("read*1*102"))[2:] for _ in range(3)]
    early = [time for times in ours for time in times[:25]]
    late = [time for times in ours for time in times[-25:]]
    detail = f"{_ms(early)} and {_ms(late)}"
    value = statistics.median(late) / statistics.median(early)
    yield Row("100 turns: the last 25 against the first 25", value, 1.5, "×", detail)


def _ms(times: list[float]) -> str:
    return f"{statistics.median(times) * 1000:.2f} ms"
