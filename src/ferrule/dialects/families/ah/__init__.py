"""ah's tools: read, write, edit and bash, and how their outcomes read."""

import os

from ferrule.core.bound import Ends
from ferrule.core.face import Face
from ferrule.dialects.dialect import Dialect
from ferrule.dialects.families.ah import arrange, says
from ferrule.dialects.says import reading
from ferrule.dialects.words import schemas, words

_HERE = os.path.dirname(__file__)

_WHOLE_BYTES = 8 << 20
"""More than this of a file is not held: what is shown of it is far less."""
_BASH_BYTES = 30_000

_ERRORS = {"*": "error: {message}", "bad-arguments": "validation error: {message}"}
_UNREADABLE = "error: failed to read file: {path}"
_WRITING = {**_ERRORS, "protected-folder": "error: path is in a protected directory: {path}"}


def dialect() -> Dialect:
    """The dialect, read from its files."""
    schema, word = schemas(_HERE), words(_HERE)
    faces = (
        Face(
            tool="read",
            name="read",
            schema=schema["read"],
            words=word["read"],
            lift=arrange.from_the_start,
            fill={
                "usual_lines": None,
                "most_bytes": _WHOLE_BYTES,
                "line_bytes": _WHOLE_BYTES,
                "folders": False,
            },
            says=reading(says.numbered),
            errors={
                **_ERRORS,
                "not-found": _UNREADABLE + "{hint}",
                "is-folder": _UNREADABLE + "\nIt is a folder: list it with bash.",
                "binary": "error: {path} appears to be a binary file ({count} bytes)",
            },
            bound=Ends(50_000),
        ),
        Face(
            tool="write",
            name="write",
            schema=schema["write"],
            words=word["write"],
            fill={"final_newline": False},
            preprocess=arrange.unprotected,
            says=says.written,
            errors=_WRITING,
            bound=Ends(10_000),
        ),
        Face(
            tool="edit",
            name="edit",
            schema=schema["edit"],
            words=word["edit"],
            params={"old_string": "old", "new_string": "new"},
            preprocess=arrange.unprotected,
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
        Face(
            tool="shell",
            name="bash",
            schema=schema["bash"],
            words=word["bash"],
            params={"timeout": "seconds"},
            per={"seconds": 1000},
            usual={"seconds": 120.0},
            fill={
                "flags": ("-o", "pipefail", "-e"),
                "head_chars": 2 * _BASH_BYTES,
                "tail_chars": 2 * _BASH_BYTES,
                "tail_bytes": None,
            },
            says=says.ran,
            failed=says.ended_badly,
            errors=_ERRORS,
            bound=Ends(_BASH_BYTES, 256),
        ),
    )
    return Dialect(name="ah", faces=faces)
