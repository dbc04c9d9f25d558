"""ah's tools: read, write, edit and bash, and how their outcomes read."""

import os

from ferrule.core.bound import Ends
from ferrule.dialects.dialect import Dialect
from ferrule.dialects.families.ah import arrange, says
from ferrule.dialects.says import failed, reading
from ferrule.dialects.words import rows

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
            lift=arrange.from_the_start,
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
            says=reading(says.numbered),
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
            says=says.written,
            errors=_WRITING,
            bound=Ends(10_000),
        ),
        face(
            "edit",
            "edit",
            params={"old_string": "old", "new_string": "new"},
            says=says.edited,
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
            says=says.ran,
            failed=failed,
            errors=_ERRORS,
            bound=Ends(_BASH_BYTES, 256),
        ),
    )
    return Dialect(name="ah", faces=faces, protects="AH_PROTECT_DIRS", asks_programs=True)
