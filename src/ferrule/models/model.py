"""What a model is to the loop: something that is asked and answers in pieces."""

from collections.abc import AsyncIterator
from typing import Literal, NamedTuple, Protocol

import msgspec

from ferrule.core.errors import FerruleError
from ferrule.wire.delta import Delta
from ferrule.wire.turn import Asked, Usage

Trouble = Literal[
    "no-key", "wrong-key", "no-model", "too-long", "limit", "overloaded", "server", "network", "cut", "bad", "none"
]
"""What went wrong with a model: no key, a key that is refused, a model that is not there, a conversation that is too
long for it, too many tokens or too little money, too many others, a fault of its own, a line that does not stand, a
stream that broke off, a body that it does not take, or no model at all."""


class ModelError(FerruleError):
    """A model could not be asked, or did not answer to its end. The message says what to do next."""

    def __init__(self, message: str, kind: Trouble, seconds: float | None = None, *, is_nonsense: bool = False) -> None:
        super().__init__(message)
        self.kind = kind
        self.seconds = seconds
        """How long the host wants to be left alone; None if it does not say."""
        self.is_nonsense = is_nonsense
        """Is what came back no answer of such a host, whatever it was asked?"""


class Again(msgspec.Struct, frozen=True):
    """It is asked again after so many seconds: all that came of the answer until here is void."""

    why: str
    seconds: float
    attempt: int
    """1 for the first repetition."""
    kind: Trouble = "server"
    """What went wrong."""


class Prices(NamedTuple):
    """Dollars for a million tokens."""

    input: float
    output: float
    cache_read: float
    cache_write: float

    def cost(self, usage: Usage) -> float:
        """Dollars."""
        plain = usage.input - usage.cache_read - usage.cache_write
        return (
            max(0, plain) * self.input
            + usage.output * self.output
            + usage.cache_read * self.cache_read
            + usage.cache_write * self.cache_write
        ) / 1e6


class Model(Protocol):
    """One model at one host. Whoever made it closes it."""

    name: str
    """`host:model`, as the user names it."""
    model: str
    """The model's own id: it says which dialect the model knows best."""
    wire: str
    """The wire that it speaks; thinking that came on it may go back on it."""
    window: int
    """How many tokens of conversation and answer it takes together."""
    most_output: int
    """How many tokens an answer may have."""
    prices: Prices | None
    """None where they are not known; then nothing is said about cost."""

    def ask(self, asked: Asked) -> AsyncIterator[Delta | Again]:
        """The answer as it arrives; `Ended` is its last delta. `asked.model` is filled in by the model itself.

        Raises: ModelError.
        """
        ...

    async def close(self) -> None: ...


def has_vision(model: Model) -> bool:
    """Does it take pictures and PDF files? False only for one that says `vision = False`."""
    return bool(getattr(model, "vision", True))
