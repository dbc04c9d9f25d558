"""Pi's tools."""

import os

from ferrule.core.bound import Lines
from ferrule.dialects.dialect import Dialect
from ferrule.dialects.families.pi import arrange, says
from ferrule.dialects.says import failed, reading
from ferrule.dialects.words import rows

_HERE = os.path.dirname(__file__)

_EDIT_ERRORS = {
    "not-found": "File not found: {path}",
    "no-match": "Could not find the exact text in {path}.\n{message}",
    "ambiguous": "Found {count} occurrences of the text in {path}. The text must be unique.\n{message}",
    "empty-old": "oldText must not be empty in {path}.",
    "same-text": "No changes made to {path}. {message}",
    "overlap": "Edits overlap in {path}. {message}",
}
_NO_PATH = {"not-found": "Path not found: {path}", "not-a-folder": "Not a directory: {path}"}


def dialect() -> Dialect:
    """The dialect, read from its files."""
    face = rows(_HERE)

    faces = (
        face(
            "read",
            "read",
            fill={
                "usual_lines": 2_000,
                "most_bytes": 51_200,
                "line_bytes": 51_200,
                "decoded": ("image",),
                "folders": False,
                "note_range": False,
            },
            says=reading(says.text),
            errors={
                "not-found": "ENOENT: no such file or directory, access '{path}'{hint}",
                "is-folder": "EISDIR: illegal operation on a directory, read '{path}'. Use ls to list it.",
            },
        ),
        face("write", "write", fill={"final_newline": False}, says=says.written),
        face(
            "multi_edit",
            "edit",
            lift=arrange.edits,
            lower=arrange.edits_shown,
            fill={"in_turn": False},
            says=says.edited,
            errors=_EDIT_ERRORS,
        ),
        face(
            "edit",
            "edit_text",
            params={"oldText": "old", "newText": "new"},
            says=says.edited,
            errors=_EDIT_ERRORS,
            aliases=("edit",),
            shown=False,
        ),
        face(
            "multi_edit",
            "edit_more",
            lift=arrange.more,
            lower=arrange.more_shown,
            fill={"in_turn": False},
            says=says.edited,
            errors=_EDIT_ERRORS,
            aliases=("edit",),
            shown=False,
        ),
        face(
            "shell",
            "bash",
            params={"timeout": "seconds"},
            fill={"head_chars": 120_000, "tail_chars": 120_000},
            says=says.ran,
            failed=failed,
            bound=Lines(2_000, 51_200, last=True),
        ),
        face(
            "grep",
            "grep",
            lift=arrange.search,
            lower=arrange.searched,
            said_as={"case_sensitive": "ignoreCase", "before": "context", "after": "context"},
            usual={"case_sensitive": True, "limit": 100},
            fill={"per_file": 0, "line_chars": 500},
            says=says.matched,
            errors=_NO_PATH,
        ),
        face("glob", "find", usual={"limit": 1_000}, fill={"relative": True}, says=says.found, errors=_NO_PATH),
        face("list_dir", "ls", usual={"limit": 500}, says=says.listed, errors=_NO_PATH),
    )
    return Dialect(name="pi", faces=faces)
