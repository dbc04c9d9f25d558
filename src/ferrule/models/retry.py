"""How long to wait before a model is asked again."""

import os
from collections.abc import Callable, Mapping

MOST_SECONDS = 60.0
"""A host that wants a longer wait is not waited for."""
_FIRST_SECONDS = 1.0
_CAP_SECONDS = 30.0


def chance() -> float:
    """A number from 0 up to 1."""
    return int.from_bytes(os.urandom(4), "big") / 2**32


def pause(attempt: int, draw: Callable[[], float]) -> float:
    """Seconds before the `attempt`th repetition, counted from 1: anything up to a bound that doubles, so that many who
    failed at the same time do not come back at the same time."""
    return draw() * min(_CAP_SECONDS, _FIRST_SECONDS * 2.0 ** (attempt - 1))


def wanted(headers: Mapping[str, str], now: Callable[[], float]) -> float | None:
    """Seconds that a host asks us to wait; None where it does not say, or nobody can read it."""
    if (text := headers.get("retry-after-ms")) is not None and (seconds := _number(text)) is not None:
        return seconds / 1000
    text = headers.get("retry-after")
    if text is None:
        return None
    if (seconds := _number(text)) is not None:
        return seconds
    from email.utils import parsedate_to_datetime  # only for hosts that write a date

    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now())
    except (ValueError, TypeError, OverflowError):
        return None


def _number(text: str) -> float | None:
    text = text.strip()
    if len(text) > 12 or not text.isascii() or not text.replace(".", "", 1).isdigit():
        return None
    return float(text)


def should(headers: Mapping[str, str]) -> bool | None:
    """What a host says itself about asking again; None where it says nothing."""
    return {"true": True, "false": False}.get(headers.get("x-should-retry", "").strip().lower())
