"""Amp's tools: six faces, their aliases, and how their outcomes read."""

import os

from ferrule.core.face import Face
from ferrule.dialects.dialect import Dialect
from ferrule.dialects.families.amp import preprocess, says
from ferrule.dialects.words import schema, words

_HERE = os.path.dirname(__file__)

ALIASES = {
    "read": "Read",
    "read_file": "Read",
    "Write": "create_file",
    "write": "create_file",
    "write_file": "create_file",
    "Edit": "edit_file",
    "edit": "edit_file",
    "Delete": "delete_file",
    "delete": "delete_file",
}


def amp() -> Dialect:
    """The dialect, read from its files."""
    faces = (
        Face(
            tool="read",
            name="Read",
            schema=schema(_HERE, "read"),
            words=words(_HERE, "read"),
            params={"read_range": "span"},
            fill={"most_bytes": 65_536, "usual_lines": 500, "most_lines": 2_000, "line_bytes": 4_096},
            says=says.read,
            errors={
                "not-found": "ENOENT: no such file or directory '{path}'{hint}",
                "binary": "File appears to be binary and cannot be displayed as text.",
                "too-large": "File content exceeds maximum allowed size (65536 bytes). {message}",
            },
        ),
        Face(
            tool="edit",
            name="edit_file",
            schema=schema(_HERE, "edit_file"),
            words=words(_HERE, "edit_file"),
            params={"old_str": "old", "new_str": "new", "replace_all": "everywhere"},
            says=says.edited,
            errors={
                "not-found": "file not found. Cannot update a file that doesn't exist.",
                "no-match": "Could not find exact match for old_str\n{message}",
                "ambiguous": "found multiple matches for edit ({count} occurrences)."
                " Use replace_all or provide more context.\n{message}",
                "same-text": "old_str and new_str must be different",
                "empty-old": "old_str must not be empty. To write a whole file, use create_file.",
            },
        ),
        Face(
            tool="write",
            name="create_file",
            schema=schema(_HERE, "create_file"),
            words=words(_HERE, "create_file"),
            fill={"final_newline": True},
            says=says.created,
        ),
        Face(
            tool="shell",
            name="Bash",
            schema=schema(_HERE, "bash"),
            words=words(_HERE, "bash"),
            params={"cmd": "command"},
            fill={"tail_chars": 50_000},
            preprocess=preprocess.command,
            says=says.ran,
        ),
        Face(
            tool="shell",
            name="run_terminal_command",
            schema=schema(_HERE, "run_terminal_command"),
            words=words(_HERE, "bash"),
            params={"cmd": "command"},
            fill={"tail_chars": 50_000},
            preprocess=preprocess.command,
            says=says.ran,
            shown=False,
        ),
        Face(
            tool="glob",
            name="glob",
            schema=schema(_HERE, "glob"),
            words=words(_HERE, "glob"),
            params={"filePattern": "pattern"},
            says=says.files_and_remaining,
        ),
        Face(
            tool="grep",
            name="Grep",
            schema=schema(_HERE, "grep"),
            words=words(_HERE, "grep"),
            params={"caseSensitive": "case_sensitive"},
            fill={"per_file": 10, "limit": 100, "line_chars": 200},
            says=says.lines,
            errors={
                "not-found": "ENOENT: no such file or directory '{path}'{hint}",
                "bad-pattern": "{message}\n" + says.NOTHING_FOUND[1],
            },
        ),
    )
    return Dialect(name="amp", faces=faces, notes=".amp", aliases=ALIASES)
