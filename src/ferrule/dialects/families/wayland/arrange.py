"""How Wayland arranges arguments."""

from typing import Any


def from_the_start(values: dict[str, Any]) -> dict[str, Any]:
    """A place before the first line is the first line."""
    if values.get("offset", 1) >= 1:
        return values
    return {key: value for key, value in values.items() if key != "offset"}


def case(values: dict[str, Any]) -> dict[str, Any]:
    """Whether upper and lower case differ, from whether they are the same."""
    if "case_insensitive" not in values:
        return values
    rest = {key: value for key, value in values.items() if key != "case_insensitive"}
    return {**rest, "case_sensitive": not values["case_insensitive"]}


def no_case(values: dict[str, Any]) -> dict[str, Any]:
    """The inverse."""
    if "case_sensitive" not in values:
        return values
    rest = {key: value for key, value in values.items() if key != "case_sensitive"}
    return {**rest, "case_insensitive": not values["case_sensitive"]}
