"""What a command has printed, as rows below its own: the end of it, and of a failure the lines that say why."""

from ferrule.cli.talk.line import Line, Whole, line
from ferrule.support.highlights import weight

_MOST_ROWS = 10
_MOST_FAILED_ROWS = 20
_MOST_ERRORS = 10
_ERROR = 3
_LOOKED_CHARS = 200_000
"""So much of the end of an output is looked through for errors."""
_INDENT = "    "


def printed_rows(output: str, *, failed: bool, lines: int | None = None, whole: str = "") -> list[Line]:
    """The last lines of an output; of a failure more of them, and before them the errors that stand above.

    `lines` is how many it has in all, where more were printed than are kept; `whole` says what shows them.
    """
    rows = [row.rstrip() for row in output[-_LOOKED_CHARS:].strip("\n").split("\n")]
    if not any(rows):
        return []
    most = _MOST_FAILED_ROWS if failed else _MOST_ROWS
    above, below = rows[:-most], rows[-most:]
    errors = [row for row in above if weight(row[:1000]) == _ERROR][-_MOST_ERRORS:] if failed else []
    blank = len(output) - len(output.lstrip("\n")) + max(0, len(output) - len(output.rstrip("\n")) - 1)
    more = max(len(rows), (lines or 0) - blank) - len(below) - len(errors)
    out: list[Line] = [_error(row) for row in errors]
    if more > 0:
        out.append(line(("dim", f"{_INDENT}… {more:,} more line{'s' * (more > 1)}{whole}")))
    shown = ((row, failed and weight(row[:1000]) == _ERROR) for row in below)
    return out + [_error(row) if is_error else line(("dim", f"{_INDENT}{row}")) for row, is_error in shown]


def _error(row: str) -> Line:
    """What went wrong often stands at the end of a long line: it is not cut off."""
    return Whole(line(("red", f"{_INDENT}{row}")))
