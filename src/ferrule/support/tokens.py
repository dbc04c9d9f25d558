"""How many tokens a text is: by a tokenizer that works offline where one is installed, else by an estimate."""

from collections.abc import Callable
from functools import cache

BYTES_A_TOKEN = 4
"""About as many for English and code; for code it counts too many rather than too few."""


def count(text: str) -> int:
    """The tokens of a text. Special tokens that are spelled out in it are text like any other."""
    return _counter()[1](text)


def name() -> str:
    """By what they are counted, for whoever reads the numbers."""
    return _counter()[0]


def estimate(text: str | bytes) -> int:
    """The tokens of a text, more or less, without loading anything."""
    raw = text.encode(errors="replace") if isinstance(text, str) else text
    return -(-len(raw) // BYTES_A_TOKEN)


@cache
def _counter() -> tuple[str, Callable[[str], int]]:
    try:
        from splintr import Tokenizer  # an extra; 90 ms that only who counts tokens pays
    except ImportError:
        return f"estimate (bytes / {BYTES_A_TOKEN})", estimate
    tokenizer = Tokenizer.from_pretrained("o200k_base")
    # Half a character cannot be handed over; it counts as a question mark.
    return "o200k_base", lambda text: len(tokenizer.encode_ordinary(text.encode(errors="replace").decode()))
