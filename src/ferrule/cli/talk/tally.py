"""What each model has taken in this chat, and whether its prompt cache is hit as it should be."""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from ferrule.agent.budget import added, counted
from ferrule.agent.events import AgentEvent, Began, Called, ChildBegan, Compacted, FellBack, TurnEnded
from ferrule.core.events import ToolsChanged
from ferrule.models.model import Prices
from ferrule.wire.turn import Usage

_MOST_ANSWERS = 10
_FRESH_SECONDS = 240.0
"""Hosts keep a prompt for five minutes at least."""
_LEAST_TOKENS = 5_000
"""No host that is known caches less than a part of this."""
_LEAST_SHARE = 0.5
"""Of the prompt before, which stands at the beginning of this one."""
_MISSES = 3


class Heard(NamedTuple):
    """One answer."""

    usage: Usage
    is_missed: bool = False
    """Should the cache have been hit, and was it not?"""


class Taken(NamedTuple):
    """What one model has taken."""

    answers: int = 0
    usage: Usage = Usage()
    is_child: bool = False
    """Was it asked by subagents alone?"""


class _Before(NamedTuple):
    """The answer before, as far as the next one can expect its prompt in the cache."""

    model: str
    tokens: int
    at: float


class Tally:
    """Hears the events of the chat, whichever session they come from."""

    def __init__(self, clock: Callable[[], float], prices: Callable[[str], Prices | None]) -> None:
        """`prices` gives those of a model by its whole name."""
        self._clock = clock
        self._prices = prices
        self.models: dict[str, Taken] = {}
        self.answers: deque[Heard] = deque(maxlen=_MOST_ANSWERS)
        """The last ones of the conversation itself."""
        self._asked: dict[str, str] = {}
        """The model that is asked, by thread."""
        self._children: set[str] = set()
        self._shape: tuple[object, ...] = ()
        self._before: _Before | None = None
        self._caching: set[str] = set()
        """Models that were seen to use a cache."""
        self._misses = 0

    def feed(self, event: AgentEvent) -> str:
        """Count what happened; a sentence where the user should know that the cache is not hit any more."""
        match event:
            case ChildBegan():
                self._children.add(event.child)
                self._asked[event.child] = event.model
            case Began():
                self._asked[event.thread] = event.model
                self._shaped(event)
            case FellBack():
                self._asked[event.thread] = event.fallback
            case TurnEnded():
                return self._ended(event)
            case Compacted() if event.thread not in self._children:
                self._before = None
            case Called() if event.thread not in self._children and isinstance(event.call, ToolsChanged):
                self._before = None
        return ""

    def switched(self, thread: str, model: str) -> None:
        """Another model is asked from now on."""
        self._asked[thread] = model

    def has_cache(self, model: str) -> bool:
        """Is it known to keep prompts?"""
        prices = self._prices(model)
        return model in self._caching or (prices is not None and prices.cache_read < prices.input)

    def _shaped(self, event: Began) -> None:
        """Other tools, another dialect or another conversation: a prompt that begins otherwise."""
        if event.thread in self._children:
            return
        shape = (event.thread, event.dialect, event.tools)
        if shape != self._shape:
            self._shape, self._before = shape, None

    def _ended(self, event: TurnEnded) -> str:
        is_child = event.thread in self._children
        model, usage = self._asked.get(event.thread, ""), counted(event.said.usage)
        old = self.models.get(model, Taken(is_child=True))
        self.models[model] = Taken(old.answers + 1, added(old.usage, usage), old.is_child and is_child)
        if usage.cache_read:
            self._caching.add(model)
        if is_child:
            return ""
        is_missed = self._is_missed(model, usage)
        self.answers.append(Heard(usage, is_missed))
        self._before = _Before(model, usage.input, self._clock())
        if not is_missed:
            self._misses = 0 if usage.cache_read else self._misses
            return ""
        self._misses += 1
        return _alarm(model) if self._misses == _MISSES else ""

    def _is_missed(self, model: str, usage: Usage) -> bool:
        before = self._before
        if before is None or before.model != model or before.tokens < _LEAST_TOKENS or usage.input < before.tokens:
            return False
        is_fresh = self._clock() - before.at < _FRESH_SECONDS
        return is_fresh and self.has_cache(model) and usage.cache_read < _LEAST_SHARE * before.tokens

    def cost(self, model: str) -> float | None:
        """Dollars; None where its prices are not known."""
        prices, taken = self._prices(model), self.models.get(model)
        return None if prices is None or taken is None else prices.cost(taken.usage)


def _alarm(model: str) -> str:
    return (
        f"The prompt cache was missed {_MISSES} times in a row, though nothing changed: each answer of {model} costs "
        "the full price of its whole prompt. /context shows the hits. The usual cause is a proxy that rewrites "
        "requests, or a host that caches nothing."
    )
