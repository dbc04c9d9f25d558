"""Check values that came over a wire, and translate thinking budgets and signatures between APIs.

A value of the wrong kind raises an error that says what was expected and at which place.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from ferrule.core.errors import FerruleError
from ferrule.wire.turn import ModelRequest, Thinking


class WireError(FerruleError, ValueError):
    """What came over the wire, or is to go over it, does not have the shape of its format."""


def as_object(value: Any, where: str) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise _type_error(value, where, "an object")


def as_list(value: Any, where: str) -> list[Any] | tuple[Any, ...]:
    if isinstance(value, list | tuple):
        return value
    raise _type_error(value, where, "an array")


def as_text(value: Any, where: str) -> str:
    if isinstance(value, str):
        return value
    raise _type_error(value, where, "a string")


def text_of(holder: dict[str, Any], key: str, where: str) -> str:
    """A string that has to be there."""
    return as_text(holder.get(key), f"{where}.{key}")


def text_or(holder: dict[str, Any], key: str, where: str, otherwise: str = "") -> str:
    """A string that may be missing or null."""
    value = holder.get(key)
    return otherwise if value is None else as_text(value, f"{where}.{key}")


def object_or(holder: dict[str, Any], key: str, where: str) -> dict[str, Any]:
    """An object that may be missing or null: an empty one then."""
    value = holder.get(key)
    return {} if value is None else as_object(value, f"{where}.{key}")


def list_or(holder: dict[str, Any], key: str, where: str) -> list[Any] | tuple[Any, ...]:
    """An array that may be missing or null: an empty one then."""
    value = holder.get(key)
    return () if value is None else as_list(value, f"{where}.{key}")


def count_or_none(holder: dict[str, Any], key: str, where: str) -> int | None:
    """A whole number that may be missing or null."""
    value = holder.get(key)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise _type_error(value, f"{where}.{key}", "a whole number")
    return value


def number_or_none(holder: dict[str, Any], key: str, where: str) -> float | None:
    """A number that may be missing or null."""
    value = holder.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _type_error(value, f"{where}.{key}", "a number")
    return value


def flag_or(holder: dict[str, Any], key: str, where: str, *, otherwise: bool | None) -> bool | None:
    """True or false, which may be missing or null."""
    value = holder.get(key)
    if value is None or isinstance(value, bool):
        return otherwise if value is None else value
    raise _type_error(value, f"{where}.{key}", "true or false")


def texts_of(holder: dict[str, Any], key: str, where: str) -> tuple[str, ...]:
    """Strings, of which there may be none, or one that stands alone."""
    value = holder.get(key)
    if isinstance(value, str):
        return (value,)
    return tuple(as_text(member, f"{where}.{key}[{at}]") for at, member in enumerate(list_or(holder, key, where)))


def tokens(holder: dict[str, Any], key: str) -> int:
    """A count of tokens; servers leave out what they did not count."""
    return count_or_none(holder, key, "usage") or 0


def refuse_failure(answer: dict[str, Any]) -> None:
    """An error that an API sends in place of an answer is raised in the API's own words."""
    error = answer.get("error")
    if not error:
        return
    told = error.get("message") if isinstance(error, dict) else error
    raise WireError(f"The API answered with an error: {told or error}")


def _type_error(value: Any, where: str, expected: str) -> WireError:
    return WireError(f"{where} must be {expected}, and is {_KINDS.get(type(value), type(value).__name__)}.")


_KINDS = {
    type(None): "missing or null",
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "an array",
    dict: "an object",
}


_EFFORTS = ((32_000, "high"), (16_000, "medium"), (4_000, "low"), (0, "minimal"))
"""From so many tokens on, this is the effort."""
_TOKENS = {"none": 0, "minimal": 1_024, "low": 4_000, "medium": 16_000, "high": 32_000, "xhigh": 48_000, "max": 64_000}

_MARK = "ferrule:"


def effort(tokens: int) -> str:
    """A budget of thinking in the words of APIs that take no number."""
    return next((word for least, word in _EFFORTS if tokens >= least), "minimal")


def effort_of(asked: ModelRequest) -> str:
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


def pack_thinking(thinking: Thinking) -> str:
    """Signature and seal of another API as one opaque text, for a client that sends back what it was given."""
    packed = msgspec.json.encode((thinking.wire, thinking.signature, thinking.sealed))
    return _MARK + packed.decode()


def unpack_thinking(text: str, signature: str, wire: str) -> Thinking | None:
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
        if isinstance(signature, str) and (thinking := unpack_thinking("", signature, "")) is not None:
            return thinking.wire
    return ""
