"""Whether a hook is told of a call: its matcher is a regular expression that covers the whole name of a tool."""

import math
import re
from collections.abc import Collection
from functools import lru_cache
from typing import Any

_CHARS = 2000
_REPEATED = 1000
"""Counts such as `{9}{99}` may multiply to so much: compiling writes them all out."""
_SECONDS = 0.05
"""A name is short: whoever needs longer to tell has an expression that does not end."""


class BadMatcher(ValueError):  # noqa: N818 - the reader is a person who wrote one
    """It is no regular expression; the message says why."""


def check(matcher: str) -> None:
    """Raises BadMatcher where it cannot be understood."""
    if len(matcher) > _CHARS:
        raise BadMatcher(f"it has more than {_CHARS:,} characters")
    if math.prod(max(1, int(count)) for count in re.findall(r"[{,](\d{1,9})", matcher)) > _REPEATED:
        raise BadMatcher(f"it repeats something more than {_REPEATED:,} times")
    if not _names(matcher):
        _compiled(matcher)


def covers(matcher: str, names: Collection[str]) -> bool:
    """Does it cover one of the names? Also yes where that takes too long to tell: the hook may have a word on it."""
    if matcher in {"", "*"}:
        return True
    if known := _names(matcher):
        return not known.isdisjoint(names)
    try:
        return any(_compiled(matcher).fullmatch(name, timeout=_SECONDS) is not None for name in names)
    except (TimeoutError, MemoryError, BadMatcher):
        return True


@lru_cache(maxsize=256)
def _names(matcher: str) -> frozenset[str]:
    """The names that a matcher such as `Edit|Write` lists; none where it is more than a list."""
    if matcher in {"", "*"}:
        return frozenset({matcher})
    return frozenset(matcher.split("|")) if re.fullmatch(r"[A-Za-z0-9_|-]+", matcher) else frozenset()


@lru_cache(maxsize=256)
def _compiled(matcher: str) -> Any:
    import importlib  # only matchers that are more than names need it, and the package has no types

    regex: Any = importlib.import_module("regex")
    try:
        return regex.compile(matcher, regex.V0)
    except (regex.error, OverflowError, RecursionError, MemoryError, ValueError) as error:
        raise BadMatcher(f"it is no regular expression ({error})") from error
