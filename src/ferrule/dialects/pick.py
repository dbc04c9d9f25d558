"""Which dialect a model speaks best, by its id."""

import re
from collections.abc import Iterator, Mapping

USUAL = "claude"
SMALLEST = "ah"
"""The dialect whose tools take the fewest tokens: four of them, with a line or two about each."""
SMALL_WINDOW = 16_000
"""A model that takes fewer tokens has no room for many tools."""
_FILE = re.compile(r"local:.|.\.gguf$")

NAMES: tuple[tuple[str, str], ...] = (
    (r"claude", "claude"),
    (r"codex|gpt|chatgpt|o\d", "codex"),
    (r"gemini", "gemini"),
)
"""How a model's name begins, as an expression → its dialect."""


def is_small(model: str, window: int | None = None) -> bool:
    """True for a model in a GGUF file, and for one with a window under 16,000 tokens."""
    return bool(_FILE.search(model.strip().lower())) or (window is not None and window < SMALL_WINDOW)


def pick(model: str, overrides: Mapping[str, str] | None = None, *, window: int | None = None) -> str:
    """The dialect for a model id such as `claude-opus-4-5`, `openai:gpt-5.2` or `models/gemini-3-pro`.

    A small model, by its id or its `window`, gets the dialect with the fewest tokens.

    What stands around a model's own name does not count, as in `us.anthropic.claude-x-v1:0` or `openai/gpt-5:free`.
    `overrides` maps beginnings of ids, with or without the provider, to dialects; the longest one that fits counts.
    """
    whole = model.strip().lower()
    fitting = [
        (len(start), dialect)
        for start, dialect in (overrides or {}).items()
        if any(name.startswith(start.strip().lower()) for name in (whole, *_names(whole, apart="/:.@")))
    ]
    if fitting:
        return max(fitting)[1]
    if is_small(whole, window):
        return SMALLEST
    own = whole.rpartition("/")[2]
    chosen = (dialect for name in _names(own, apart=":.@") for start, dialect in NAMES if re.match(start, name))
    return next(chosen, USUAL)


def _names(model: str, *, apart: str) -> Iterator[str]:
    """Each part of the id that may begin the model's own name, with all that follows it."""
    return (model[part.start() :] for part in re.finditer(f"[^{apart}]+", model))
