"""What came over a wire, piece by piece: the right kind of value, or an error that says what was expected where."""

from typing import Any

from ferrule.core.errors import FerruleError


class WireError(FerruleError, ValueError):
    """What came over the wire, or is to go over it, does not have the shape of its format."""


def as_object(value: Any, where: str) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise _unexpected(value, where, "an object")


def as_list(value: Any, where: str) -> list[Any] | tuple[Any, ...]:
    if isinstance(value, list | tuple):
        return value
    raise _unexpected(value, where, "an array")


def as_text(value: Any, where: str) -> str:
    if isinstance(value, str):
        return value
    raise _unexpected(value, where, "a string")


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
        raise _unexpected(value, f"{where}.{key}", "a whole number")
    return value


def number_or_none(holder: dict[str, Any], key: str, where: str) -> float | None:
    """A number that may be missing or null."""
    value = holder.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _unexpected(value, f"{where}.{key}", "a number")
    return value


def flag_or(holder: dict[str, Any], key: str, where: str, *, otherwise: bool | None) -> bool | None:
    """True or false, which may be missing or null."""
    value = holder.get(key)
    if value is None or isinstance(value, bool):
        return otherwise if value is None else value
    raise _unexpected(value, f"{where}.{key}", "true or false")


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


def _unexpected(value: Any, where: str, expected: str) -> WireError:
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
