"""Which dialect a model speaks best, by its id."""

import re
from collections.abc import Iterator, Mapping

USUAL = "claude"

NAMES: tuple[tuple[str, str], ...] = (
    (r"claude", "claude"),
    (r"codex|gpt|chatgpt|o\d", "codex"),
    (r"gemini", "gemini"),
)
"""How a model's name begins, as an expression → its dialect."""


def pick(model: str, overrides: Mapping[str, str] | None = None) -> str:
    """The dialect for a model id such as `claude-opus-4-5`, `openai:gpt-5.2` or `models/gemini-3-pro`.

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
    own = whole.rpartition("/")[2]
    chosen = (dialect for name in _names(own, apart=":.@") for start, dialect in NAMES if re.match(start, name))
    return next(chosen, USUAL)


def _names(model: str, *, apart: str) -> Iterator[str]:
    """Each part of the id that may begin the model's own name, with all that follows it."""
    return (model[part.start() :] for part in re.finditer(f"[^{apart}]+", model))
