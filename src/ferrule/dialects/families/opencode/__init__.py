"""Opencode's tools."""

import os

from ferrule.core.bound import Lines
from ferrule.dialects.asking import answered, asking
from ferrule.dialects.dialect import Dialect
from ferrule.dialects.families.opencode import arrange, says
from ferrule.dialects.page_says import LIMIT_BYTES, pages
from ferrule.dialects.says import about_code, patched, reading, undone
from ferrule.dialects.words import rows

_HERE = os.path.dirname(__file__)

_PATH = {"filePath": "path"}
_UNREAD = {
    "not-read": "You must read file {path} before overwriting it. Use the read tool first{hint}",
    "stale": "File {path} has been modified since it was last read. Read it again before modifying it.",
}
_UNPATCHED = dict.fromkeys(
    ("not-found", "exists", "no-match", "ambiguous", "binary", "unencodable"),
    "apply_patch verification failed: {message}",
)
_NO_PATH = {"not-found": "No such file or directory: '{path}'", "not-a-folder": "Not a directory: '{path}'"}


def dialect() -> Dialect:
    """The dialect, read from its files."""
    face = rows(_HERE)

    faces = (
        face(
            "read",
            "read",
            params=_PATH,
            fill={
                "usual_lines": 2_000,
                "most_bytes": 51_200,
                "line_bytes": 8_000,
                "line_chars": 2_000,
                "decoded": ("image", "document"),
            },
            says=reading("{}: {}"),
            errors={"not-found": "File not found: {path}{hint}", "binary": "Cannot read binary file: {path}"},
        ),
        face(
            "write",
            "write",
            params=_PATH,
            fill={"final_newline": False, "read_first": True},
            says=says.written,
            errors=_UNREAD,
        ),
        face(
            "edit",
            "edit",
            params={**_PATH, "oldString": "old", "newString": "new", "replaceAll": "everywhere"},
            fill={"read_first": True, "may_create": True},
            says=says.edited,
            errors={
                **_UNREAD,
                "not-found": "File {path} not found",
                "no-match": "oldString not found in content\n{message}",
                "ambiguous": "Found multiple matches for oldString. Provide more surrounding lines in oldString to"
                " identify the correct match.\n{message}",
                "same-text": "No changes to apply: oldString and newString are identical.",
                "empty-old": "oldString is empty, but the file exists. Use write to replace all of it.",
            },
        ),
        face(
            "patch",
            "apply_patch",
            params={"patchText": "patch"},
            text_param="patchText",
            says=patched,
            errors=_UNPATCHED,
        ),
        face(
            "shell",
            "bash",
            params={"timeout": "seconds", "workdir": "cwd"},
            per={"seconds": 1000},
            usual={"seconds": 120.0},
            fill={"head_chars": 120_000, "tail_chars": 120_000},
            says=says.ran,
            bound=Lines(2_000, 51_200, last=True),
        ),
        face("glob", "glob", fill={"limit": 100, "by_time": True}, says=says.found, errors=_NO_PATH),
        face(
            "grep",
            "grep",
            params={"include": "glob"},
            fill={"per_file": 0, "limit": 100, "line_chars": 2_000, "case_sensitive": True, "by_time": True},
            says=says.matched,
            errors=_NO_PATH,
        ),
        face(
            "plan",
            "todowrite",
            params={"todos": "steps"},
            lift=arrange.steps,
            lower=arrange.todos,
            says=says.planned,
        ),
        face("skill", "skill", params={"name": "skill"}, says=says.skill),
        face("ask_user", "question", **asking(multiple="multiple"), fill={"header_chars": 30}, says=answered),
        face(
            "delegate",
            "task",
            params={"subagent_type": "kind", "task_id": "resume"},
            unused=("command",),
            says=says.task,
            failed=undone,
        ),
        face(
            "web_fetch",
            "webfetch",
            params={"format": "form", "timeout": "seconds"},
            fill={"across": True},
            says=pages("To read it, call webfetch again with that address.", is_headed=False),
            limit_bytes=LIMIT_BYTES,
        ),
        face("lsp", "lsp", params=_PATH, says=about_code, errors={"not-found": "File not found: {path}{hint}"}),
    )
    return Dialect(name="opencode", faces=faces)
