"""Define ah's tools, read, write, edit and bash: how arguments are arranged and how outcomes read."""

import math
import os

from ferrule.core.content import CommandResult, Created, Edited, FileText
from ferrule.core.tool import Ends, Values
from ferrule.dialects import Dialect, rows, shared
from ferrule.dialects.shared import file_renderer, has_failed
from ferrule.tools.shell import Left


def from_the_start(values: Values) -> Values:
    """A place before the first line is the first line, and a limit of 0 is none."""
    return {key: value for key, value in values.items() if key not in ("offset", "limit") or value >= 1}


def number_lines(outcome: FileText) -> str:
    """Lines as what stands between newlines: there is an empty one behind the last newline, and in an empty file."""
    lines = outcome.lines
    if (outcome.final_newline and not outcome.limited) or (outcome.total == 0 and outcome.first == 1):
        lines = (*lines, "")
    return shared.number_lines(outcome._replace(lines=lines), "{}\t{}")


def render_write(outcome: Created) -> str:
    """Lines counted as above."""
    return f"{outcome.lines + (outcome.final_newline or not outcome.lines)} lines"


def render_edit(outcome: Edited) -> str:
    lines = [
        mark + line for old, new in outcome.pieces for mark, text in (("- ", old), ("+ ", new)) for line in _lines(text)
    ]
    return "\n".join(lines) or f"edited {outcome.path}"


def render_command(outcome: CommandResult | Left) -> str:
    if isinstance(outcome, Left):
        return shared.render_background(outcome)
    parts = [outcome.output] if outcome.output else []
    if outcome.timed_out_after is not None:
        parts.append(f"error: command timed out after {math.ceil(outcome.timed_out_after)}s")
    elif outcome.quiet_after is not None:
        parts.append(f"error: command printed nothing for {math.ceil(outcome.quiet_after)}s and was stopped")
    elif outcome.exit_code:
        parts.append(f"exit code: {outcome.exit_code}")
    return "\n".join(parts) or "(no output)"


def _lines(text: str) -> list[str]:
    """Each line without its end; a newline at the end begins no further one."""
    return text.removesuffix("\n").split("\n") if text else []


_HERE = os.path.dirname(__file__)

_WHOLE_BYTES = 8 << 20
_READ_BYTES = 50_000
"""More than this of a file is not held: what is shown of it is far less."""
_BASH_BYTES = 30_000

_ERRORS = {"*": "error: {message}", "bad-arguments": "validation error: {message}"}
_UNREADABLE = "error: failed to read file: {path}"
_WRITING = {**_ERRORS, "protected-folder": "error: path is in a protected directory: {path}"}


def dialect() -> Dialect:
    """The dialect, read from its files."""
    face = rows(_HERE)
    faces = (
        face(
            "read",
            "read",
            lift=from_the_start,
            fill={
                "usual_lines": None,
                "most_bytes": _WHOLE_BYTES,
                "ranged_bytes": _READ_BYTES,
                "broad_bytes": _WHOLE_BYTES,
                "number_bytes": 10,
                "line_bytes": _WHOLE_BYTES,
                "decoded": ("image",),
                "folders": False,
            },
            says=file_renderer(number_lines),
            errors={
                **_ERRORS,
                "not-found": _UNREADABLE + "{hint}",
                "is-folder": _UNREADABLE + "\nIt is a folder: list it with bash.",
                "binary": "error: {path} appears to be a binary file ({count} bytes)",
            },
            bound=Ends(_READ_BYTES),
        ),
        face(
            "write",
            "write",
            fill={"final_newline": False},
            says=render_write,
            errors=_WRITING,
            bound=Ends(10_000),
        ),
        face(
            "edit",
            "edit",
            params={"old_string": "old", "new_string": "new"},
            says=render_edit,
            errors={
                **_WRITING,
                "not-found": _UNREADABLE,
                "no-match": "error: old_string not found in file\n{message}",
                "ambiguous": "error: old_string is not unique (found {count} times)\n{message}",
                "same-text": "error: old_string and new_string are the same",
                "empty-old": "error: old_string is empty; use write to write a whole file",
            },
            bound=Ends(10_000),
        ),
        face(
            "shell",
            "bash",
            params={"timeout": "seconds"},
            per={"seconds": 1000},
            usual={"seconds": 120.0},
            fill={
                "flags": ("-o", "pipefail", "-e"),
                "head_chars": 2 * _BASH_BYTES,
                "tail_chars": 2 * _BASH_BYTES,
            },
            says=render_command,
            failed=has_failed,
            errors=_ERRORS,
            bound=Ends(_BASH_BYTES, 256),
        ),
    )
    return Dialect(name="ah", faces=faces, protects="AH_PROTECT_DIRS", asks_programs=True)
