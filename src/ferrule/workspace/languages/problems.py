"""What language servers complain about, as problems: cleaned, in order, and no more than anyone reads."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, get_args

from ferrule.core.problems import Problem, Severity
from ferrule.support.screen import stripped
from ferrule.workspace.languages.positions import Encoding, Layout
from ferrule.workspace.languages.quoting import without_quoted

MOST = 5_000
"""More complaints about one file are not even looked at."""
MOST_MESSAGE_CHARS = 600
_MOST_NAME_CHARS = 80
_LARGEST = (1 << 31) - 1
"""The protocol knows no larger number."""
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""The worst first; the protocol counts them from 1."""
_ASIDES = ("info:", "note:", "help:", "hint:")
"""What ty and compilers say behind the message: where they looked, and what to read."""
_ESCAPES = r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]?|\x1b[PX\]^_k][^\x07\x1b\x9c\n]*+(?:\x07|\x1b\\|\x9c)?"


def problems(
    path: str, text: str, raw: Sequence[object], encoding: Encoding, *, source: str = "", hides: bool = False
) -> tuple[Problem, ...]:
    """A server's diagnostics of a document with that text, the worst first. What makes no sense is left out.

    `source` is who says so where a diagnostic does not. `hides`: values that the text does not have are left out.
    """
    every = [one for one in raw if isinstance(one, Mapping)]
    if len(every) > MOST:
        every = sorted(every, key=lambda one: SEVERITIES.index(_severity(one)))[:MOST]
    where = _places(text, encoding)
    found = [one for one in (_problem(path, one, where, source) for one in every) if one is not None]
    if hides:
        found = [one._replace(message=without_quoted(one.message, text)) for one in found]
    return ordered(found)


def ordered(found: Iterable[Problem]) -> tuple[Problem, ...]:
    """Errors first, then warnings and the rest; those of one kind by their place."""
    return tuple(
        sorted(found, key=lambda one: (SEVERITIES.index(one.severity), one.path, one.line, one.character, one.message))
    )


def _problem(
    path: str, one: Mapping[str, Any], where: Callable[[dict[str, int]], tuple[int, int]], source: str
) -> Problem | None:
    message = _one_line(_without_asides(_text(one.get("message"))), MOST_MESSAGE_CHARS)
    if not message:
        return None
    position = _position(one.get("range"))
    line, character = where(position) if position is not None else (0, 0)
    return Problem(
        path=path,
        line=line,
        message=message,
        character=character,
        severity=_severity(one),
        source=_one_line(_text(one.get("source")), _MOST_NAME_CHARS) or source,
        code=_one_line(_text(one.get("code")), _MOST_NAME_CHARS),
    )


def _severity(one: Mapping[str, Any]) -> Severity:
    """The protocol leaves it to us what one without a severity is."""
    severity = one.get("severity")
    return SEVERITIES[severity - 1] if type(severity) is int and 1 <= severity <= len(SEVERITIES) else "error"


def _places(text: str, encoding: Encoding) -> Callable[[dict[str, int]], tuple[int, int]]:
    """Positions as people count them, for many of one text: its lines are looked for once."""
    layout: list[Layout] = []

    def place(position: dict[str, int]) -> tuple[int, int]:
        if not layout:  # most files have no problem
            layout.append(Layout(text, encoding))
        return layout[0].place(position)

    return place


def _text(value: object) -> str:
    """A word as servers write them: a text, a number, or an object around one."""
    if isinstance(value, Mapping):
        value = value.get("value")
    if isinstance(value, str):
        return value[: 4 * MOST_MESSAGE_CHARS]
    return str(value) if type(value) is int and abs(value) <= _LARGEST else ""


def _without_asides(text: str) -> str:
    lines = text.strip().split("\n")
    end = next((at for at, line in enumerate(lines) if at and line.lstrip().startswith(_ASIDES)), len(lines))
    return "\n".join(lines[:end])


def _one_line(text: str, most: int) -> str:
    line = " ".join(stripped(re.sub(_ESCAPES, "", text).replace("\r", "\n")).split())
    # Half of a surrogate pair cannot be written down.
    line = line.encode(errors="replace").decode()
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def _position(span: object) -> dict[str, int] | None:
    """Where it begins; None where nobody said."""
    start = span.get("start") if isinstance(span, Mapping) else None
    if not isinstance(start, Mapping):
        return None
    line, character = start.get("line"), start.get("character")
    if type(line) is not int or type(character) is not int:
        return None
    return {"line": min(max(line, 0), _LARGEST), "character": min(max(character, 0), _LARGEST)}
