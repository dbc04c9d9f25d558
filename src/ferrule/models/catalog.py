"""What is known of well-known models: how much they take, how they think, and what they cost.

The figures were taken from the public price lists on 16 November 2026, for the plain tier: no batches, no priority, and
nothing added for very long conversations. They age. `models.known` in the settings comes before them, and a model that
is in neither has cautious limits and no prices.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeVar

from ferrule.agent_settings import KnownModel
from ferrule.models.model import Prices

_T = TypeVar("_T")

Thinks = Literal["", "budget", "adaptive", "always", "bound", "effort", "level"]
"""How thinking is asked for: not at all; by a number of tokens; adaptive where it is asked for; adaptive in any case;
the same, and what was thought is tied to the words before it; by an effort; by a level."""

WINDOW = 128_000
MOST_OUTPUT = 8_192
DEFAULT_OUTPUT = 32_000
"""An answer may have so many tokens where nothing is said, and fewer where its model gives fewer."""


class About(NamedTuple):
    """One model, or all whose ids begin alike."""

    begins: str
    window: int = WINDOW
    most_output: int = MOST_OUTPUT
    prices: Prices | None = None
    thinks: Thinks = ""
    vision: bool = True
    """Does it take pictures? A model of which nothing is known is given them: its host says where that is wrong."""


def _row(begins: str, window: int, most_output: int, prices: tuple[float, ...], thinks: Thinks = "") -> About:
    """Prices: input, output, what is read from the cache; what is written there costs as input unless it is said."""
    plain, output, read, *written = prices
    return About(begins, window, most_output, Prices(plain, output, read, written[0] if written else plain), thinks)


_M = 1_000_000
CATALOG = (
    _row("claude-fable-5", _M, 128_000, (10, 50, 1, 12.5), "bound"),
    _row("claude-opus-5-5", _M, 128_000, (4, 20, 0.2, 5), "bound"),
    _row("claude-opus-5", _M, 128_000, (5, 25, 0.5, 6.25), "always"),
    _row("claude-opus-4-8", _M, 128_000, (5, 25, 0.5, 6.25), "adaptive"),
    _row("claude-opus-4-7", _M, 128_000, (5, 25, 0.5, 6.25), "adaptive"),
    _row("claude-opus-4-6", _M, 128_000, (5, 25, 0.5, 6.25), "adaptive"),
    _row("claude-opus-4-5", 200_000, 64_000, (5, 25, 0.5, 6.25), "budget"),
    _row("claude-opus-4", 200_000, 32_000, (15, 75, 1.5, 18.75), "budget"),
    _row("claude-sonnet-5-5", _M, 128_000, (2, 10, 0.1, 2.5), "bound"),
    _row("claude-sonnet-5", _M, 128_000, (2, 10, 0.2, 2.5), "always"),
    _row("claude-sonnet-4-6", _M, 128_000, (3, 15, 0.3, 3.75), "adaptive"),
    _row("claude-sonnet-4", 200_000, 64_000, (3, 15, 0.3, 3.75), "budget"),
    _row("claude-haiku-5-5", _M, 128_000, (0.1, 0.5, 0.01, 0.125), "bound"),
    _row("claude-haiku-4-5", 200_000, 64_000, (1, 5, 0.1, 1.25), "budget"),
    About("claude-3", 200_000, MOST_OUTPUT, None, "budget"),
    About("claude-", 200_000, 32_000, None, "adaptive"),
    _row("gpt-6.1-sol", 1_050_000, 128_000, (2, 10, 0.1, 2.5), "effort"),
    _row("gpt-6.1-terra", 1_050_000, 128_000, (1, 5, 0.05, 1.25), "effort"),
    _row("gpt-6-astra", 1_050_000, 128_000, (10, 50, 1, 12.5), "effort"),
    _row("gpt-6-sol", 1_050_000, 128_000, (2, 10, 0.2, 2.5), "effort"),
    _row("gpt-6-luna", 1_050_000, 128_000, (0.1, 0.5, 0.01, 0.125), "effort"),
    About("gpt-6", 1_050_000, 128_000, None, "effort"),
    _row("gpt-5.6-luna", 1_050_000, 128_000, (0.2, 1.2, 0.02), "effort"),
    _row("gpt-5.6-terra", 1_050_000, 128_000, (2, 12, 0.2), "effort"),
    _row("gpt-5.6", 1_050_000, 128_000, (4, 20, 0.4), "effort"),
    _row("gpt-5.5-pro", 1_050_000, 128_000, (30, 180, 3), "effort"),
    _row("gpt-5.5", 1_050_000, 128_000, (5, 30, 0.5), "effort"),
    _row("gpt-5.4-mini", 400_000, 128_000, (0.75, 4.5, 0.075), "effort"),
    _row("gpt-5.4-pro", 1_050_000, 128_000, (30, 180, 3), "effort"),
    _row("gpt-5.4", 1_050_000, 128_000, (2.5, 15, 0.25), "effort"),
    _row("gpt-5.3", 400_000, 128_000, (1.75, 14, 0.175), "effort"),
    _row("gpt-5.2-pro", 400_000, 128_000, (21, 168, 21), "effort"),
    _row("gpt-5.2", 400_000, 128_000, (1.75, 14, 0.175), "effort"),
    _row("gpt-5-chat", 128_000, 16_384, (1.25, 10, 0.125)),
    _row("gpt-5-mini", 400_000, 128_000, (0.25, 2, 0.025), "effort"),
    _row("gpt-5-nano", 400_000, 128_000, (0.05, 0.4, 0.005), "effort"),
    _row("gpt-5-pro", 400_000, 128_000, (15, 120, 15), "effort"),
    _row("gpt-5", 400_000, 128_000, (1.25, 10, 0.125), "effort"),
    _row("gpt-4.1-mini", 1_047_576, 32_768, (0.4, 1.6, 0.1)),
    _row("gpt-4.1", 1_047_576, 32_768, (2, 8, 0.5)),
    _row("gpt-4o-mini", 128_000, 16_384, (0.15, 0.6, 0.075)),
    _row("gpt-4o", 128_000, 16_384, (2.5, 10, 1.25)),
    _row("o3-mini", 200_000, 100_000, (1.1, 4.4, 0.55), "effort"),
    _row("o3", 200_000, 100_000, (2, 8, 0.5), "effort"),
    _row("o4-mini", 200_000, 100_000, (1.1, 4.4, 0.275), "effort"),
    _row("gemini-3.8-flash", 1_048_576, 65_536, (0.75, 3.75, 0.075), "level"),
    _row("gemini-3.7-flash", 1_048_576, 65_536, (0.75, 3.75, 0.075), "level"),
    _row("gemini-3.6-flash", 1_048_576, 65_536, (0.75, 3.75, 0.075), "level"),
    _row("gemini-3.5-flash", 1_048_576, 65_536, (1.5, 9, 0.15), "level"),
    _row("gemini-3.1-pro", 1_048_576, 65_536, (2, 12, 0.2), "level"),
    _row("gemini-3-pro", 1_048_576, 65_536, (2, 12, 0.2), "level"),
    _row("gemini-3-flash", 1_048_576, 65_536, (0.5, 3, 0.05), "level"),
    About("gemini-3", 1_048_576, 65_536, None, "level"),
    _row("gemini-2.5-pro", 1_048_576, 65_536, (1.25, 10, 0.125), "budget"),
    _row("gemini-2.5-flash-lite", 1_048_576, 65_536, (0.1, 0.4, 0.01), "budget"),
    _row("gemini-2.5-flash", 1_048_576, 65_536, (0.3, 2.5, 0.03), "budget"),
)
"""The longest beginning that fits holds."""

BLIND = ("gpt-3.5", "gpt-oss", "o3-mini", "qwen3-coder", "qwen2.5-coder", "deepseek-r1", "deepseek-v3", "codestral")
"""How the ids of models begin that take no pictures."""

SHORT = {
    "fable": "anthropic:claude-fable-5-1",
    "opus": "anthropic:claude-opus-5-5",
    "sonnet": "anthropic:claude-sonnet-5-5",
    "haiku": "anthropic:claude-haiku-5-5",
}
"""The short names of a family's models, where the settings say nothing else about them."""


def about(model: str, known: Mapping[str, KnownModel]) -> About:
    """What is known of a model, by its id; what the settings say about it comes first."""
    row = _longest(model, {one.begins: one for one in CATALOG}) or About(model)
    if _longest(model, dict.fromkeys(BLIND, True)):
        row = row._replace(vision=False)
    own = said(model, known)
    if own is None:
        return row
    prices = row.prices
    if own.input is not None or own.output is not None or prices is not None:
        old = prices or Prices(0.0, 0.0, own.input or 0.0, own.input or 0.0)
        prices = Prices(
            old.input if own.input is None else own.input,
            old.output if own.output is None else own.output,
            old.cache_read if own.cache_read is None else own.cache_read,
            old.cache_write if own.cache_write is None else own.cache_write,
        )
    return row._replace(
        window=own.window or row.window,
        most_output=own.most_output or row.most_output,
        prices=prices,
        vision=row.vision if own.vision is None else own.vision,
    )


def has_bound(model: str, known: Mapping[str, KnownModel]) -> bool:
    """Is it known how long the model's answers may be, or is that only a usual bound?"""
    own = said(model, known)
    return (own is not None and own.most_output is not None) or _longest(
        model, {one.begins: one for one in CATALOG}
    ) is not None


def said(model: str, known: Mapping[str, KnownModel]) -> KnownModel | None:
    """What the settings say about a model, by how its id begins."""
    return _longest(model, known)


def _longest(model: str, rows: Mapping[str, _T]) -> _T | None:
    # Some hosts put the maker before a model's id, and dots where the maker has dashes.
    bare = model.rpartition("/")[2]
    spellings = (model, bare, bare.replace(".", "-"))
    fitting = [begins for begins in rows if any(one.startswith(begins) for one in spellings)]
    return rows[max(fitting, key=len)] if fitting else None
