"""Thinking on wires: how much of it is asked for, and how one API's thinking passes through the client of another."""

import msgspec

from ferrule.wire.turn import Thinking

_EFFORTS = ((32_000, "high"), (16_000, "medium"), (4_000, "low"), (0, "minimal"))
"""From so many tokens on, this is the effort."""
_TOKENS = {"none": 0, "minimal": 1_024, "low": 4_000, "medium": 16_000, "high": 32_000, "xhigh": 48_000, "max": 64_000}

_MARK = "ferrule:"


def effort(tokens: int) -> str:
    """A budget of thinking in the words of APIs that take no number."""
    return next((word for least, word in _EFFORTS if tokens >= least), "minimal")


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
