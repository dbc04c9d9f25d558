"""Thinking on wires: how much of it is asked for, and how one API's thinking passes through the client of another."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ferrule.wire.turn import Asked, Thinking

_EFFORTS = ((32_000, "high"), (16_000, "medium"), (4_000, "low"), (0, "minimal"))
"""From so many tokens on, this is the effort."""
_TOKENS = {"none": 0, "minimal": 1_024, "low": 4_000, "medium": 16_000, "high": 32_000, "xhigh": 48_000, "max": 64_000}

_MARK = "ferrule:"


def effort(tokens: int) -> str:
    """A budget of thinking in the words of APIs that take no number."""
    return next((word for least, word in _EFFORTS if tokens >= least), "minimal")


def effort_of(asked: Asked) -> str:
    """How hard to think, in the caller's own word where it still holds."""
    if asked.effort and budget(asked.effort) == asked.thinking_tokens:
        return asked.effort
    return "" if asked.thinking_tokens is None else effort(asked.thinking_tokens)


def own_word(word: str) -> str:
    """A word that the budget alone does not give back; empty for the others."""
    tokens = budget(word)
    return "" if tokens is not None and effort(tokens) == word else word


def budget(word: str) -> int | None:
    """The budget that an effort stands for; None for a word that nobody has heard of."""
    return _TOKENS.get(word)


def is_own(thinking: Thinking, wire: str) -> bool:
    """May it go to this API? Another API's signature would be refused there."""
    return thinking.wire in {"", wire}


def carried(thinking: Thinking) -> str:
    """Signature and seal of another API as one opaque text, for a client that sends back what it was given."""
    packed = msgspec.json.encode((thinking.wire, thinking.signature, thinking.sealed))
    return _MARK + packed.decode()


def uncarried(text: str, signature: str, wire: str) -> Thinking | None:
    """The thinking of another API that a client sends back; None where the signature is not one of `carried`."""
    if not signature.startswith(_MARK):
        return None
    try:
        origin, own, sealed = msgspec.json.decode(signature.removeprefix(_MARK), type=tuple[str, str, str])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    return None if origin in {"", wire} else Thinking(text, own, sealed, origin)


def origin(block: Mapping[str, Any]) -> str:
    """The API whose thinking a block holds in its signature; empty where it holds none."""
    for name in ("signature", "encrypted_content"):
        signature = block.get(name)
        if isinstance(signature, str) and (thinking := uncarried("", signature, "")) is not None:
            return thinking.wire
    return ""
