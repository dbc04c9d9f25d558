"""How long the loop may go on by itself: turns, tokens, cost and time."""

import time
from collections.abc import Callable
from typing import NamedTuple

from ferrule.agent.events import Reason, Spent
from ferrule.models.model import Model, Prices
from ferrule.wire.turn import Usage


class Limits(NamedTuple):
    """The most that one prompt may take; None is no limit."""

    turns: int | None = None
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None


class Budget:
    """What one prompt has taken so far."""

    def __init__(
        self,
        limits: Limits,
        clock: Callable[[], float] = time.monotonic,
        outer: "Callable[[], Reason | None] | None" = None,
    ) -> None:
        """`outer` says whether whoever it is taken from has anything left: several may take from one budget at once."""
        self.limits = limits
        self._outer = outer
        self._clock = clock
        self._began = clock()
        self._spent = Spent()

    def count(self, usage: Usage, prices: Prices | None, *, is_answer: bool = True) -> None:
        """The model was asked once more; what was stopped before its first word is no answer."""
        before, usage = self._spent, counted(usage)
        cost = before.cost if prices is None else (before.cost or 0.0) + prices.cost(usage)
        self._spent = Spent(before.turns + is_answer, added(before.usage, usage), cost)

    def share(self, spent: Spent) -> None:
        """What a subagent took counts too, but for its turns and its time."""
        self._spent = together(self._spent, Spent(0, spent.usage, spent.cost, 0.0))

    @property
    def left(self) -> Limits:
        """What is left for a subagent; turns are its own."""
        limits, usage = self.limits, self._spent.usage
        return Limits(
            tokens=None if limits.tokens is None else max(1, limits.tokens - usage.input - usage.output),
            cost=None if limits.cost is None else max(1e-9, limits.cost - (self._spent.cost or 0.0)),
            seconds=self.seconds_left,
        )

    @property
    def seconds_left(self) -> float | None:
        """None where time does not matter."""
        return None if self.limits.seconds is None else max(0.0, self.limits.seconds - self._took)

    @property
    def spent(self) -> Spent:
        return Spent(self._spent.turns, self._spent.usage, self._spent.cost, self._took)

    @property
    def _took(self) -> float:
        return self._clock() - self._began

    def over(self) -> Reason | None:
        """Which limit is met."""
        limits, spent = self.limits, self._spent
        if limits.turns is not None and spent.turns >= limits.turns:
            return "turns"
        return self.overdrawn()

    def overdrawn(self) -> Reason | None:
        """The same without turns: past these, calls that were asked for are not run any more."""
        limits, usage = self.limits, self._spent.usage
        if limits.tokens is not None and usage.input + usage.output >= limits.tokens:
            return "tokens"
        cost = self._spent.cost or 0.0
        if limits.cost is not None and (cost > limits.cost or cost >= limits.cost > 0):
            return "cost"  # with a limit of nothing, what costs nothing may go on
        if limits.seconds is not None and self._took >= limits.seconds:
            return "time"
        return self._outer() if self._outer is not None else None


def counted(usage: Usage) -> Usage:
    """The tokens as they count: what a host counts wrong gives nothing back."""
    return Usage(*(max(0, getattr(usage, name)) for name in Usage.__struct_fields__))


def added(one: Usage, other: Usage) -> Usage:
    """The tokens of both."""
    return Usage(
        one.input + other.input,
        one.output + other.output,
        one.cache_read + other.cache_read,
        one.cache_write + other.cache_write,
    )


def together(one: Spent, other: Spent) -> Spent:
    """What both took."""
    costs = [cost for cost in (one.cost, other.cost) if cost is not None]
    return Spent(
        one.turns + other.turns,
        added(one.usage, other.usage),
        sum(costs) if costs else None,
        one.seconds + other.seconds,
    )


def unpriced(model: Model, limits: Limits) -> str:
    """A limit that nothing counts against is none, and whoever has set it relies on it; empty where it holds."""
    # What runs on this machine costs nothing.
    if limits.cost is None or model.prices is not None or model.name.startswith(("scripted:", "local:")):
        return ""
    return (
        f"The limit of ${limits.cost:g} does not hold for {model.name}: what it costs is not known. Set `input` and "
        f'`output`, in dollars for a million tokens, under [models.known."{model.model}"] in your settings, or use '
        "--max-tokens."
    )
