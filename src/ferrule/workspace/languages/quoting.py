"""Values in what a server complains about: a message may quote what stands in files that may not be read.

Names and types are quoted too, each server in its own marks: `Literal["x"]` in backticks, '"x"' in single ones. A
value is what is quoted inside of those, a long number, or what looks like a key more than like a name.
"""

import re

_QUOTED = r"""(["'`])((?>(?:\\.|(?!\1)[^\\])*))\1"""
_NUMBER = r"\d{4,}"
_KEY = r"(?=\S*\d)(?=\S*[A-Za-z])[\w+/=.\-]{12,}"


def without_quoted(message: str, source: str) -> str:
    """The message with the values left out that do not stand in the source which it is about."""

    def inner(value: re.Match[str]) -> str:
        return value[0] if value[2] in source else f"{value[1]}…{value[1]}"

    def outer(part: re.Match[str]) -> str:
        mark, body = part[1], part[2]
        if body in source:
            return part[0]
        if re.fullmatch(_KEY, body):
            return f"{mark}…{mark}"
        return mark + re.sub(_QUOTED, inner, body) + mark

    shown = re.sub(_QUOTED, outer, message)
    # A mark without its partner, as of a message that was cut: nobody knows what it begins.
    shown = re.sub(r"""(\[["']|"'|'"|`["'])[^"'`]*$""", lambda rest: rest[1] + "…", shown)
    return re.sub(_NUMBER, lambda number: number[0] if number[0] in source else "…", shown)
