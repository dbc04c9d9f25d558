"""Wayland Core's tools: eight built-ins and two for plans, and how their outcomes read."""

import functools
import os

from ferrule.core.bound import Middle
from ferrule.dialects.dialect import Dialect
from ferrule.dialects.families.wayland import arrange, says
from ferrule.dialects.plan_says import also_given, approved, entered
from ferrule.dialects.says import delegated, failed, hits, paths, reading, undone
from ferrule.dialects.words import rows

_HERE = os.path.dirname(__file__)

_DEFERRED = ("EnterPlanMode", "ExitPlanMode")
_FILE = {"file_path": "path"}
_WHOLE_BYTES = 8 << 20
"""More than this of a file is not held: what is shown of it is far less."""
_CHARS = 50_000
_READ_CHARS = 100_000
_WRITE_CHARS = 10_000
_GREP_CHARS = 20_000
_LIMIT_BYTES = 4 * _READ_CHARS + 1024
"""The family counts characters, of up to four bytes each; the general limit would take the end that it keeps."""

_UNREADABLE = "Failed to read file {path}: "
_MISSING = _UNREADABLE + "No such file or directory{hint}"


def _refused(deed: str) -> dict[str, str]:
    sentence = f"Refused to {deed} {{path}}: {{message}}"
    codes = ("reading-secret-file", "writing-secret-file", "writing-protected-file", "outside-workspace")
    return dict.fromkeys(codes, sentence)


def dialect() -> Dialect:
    """The dialect, read from its files."""
    face = functools.partial(rows(_HERE), limit_bytes=_LIMIT_BYTES)
    faces = (
        face(
            "read",
            "Read",
            params=_FILE,
            shift={"offset": 1},
            lift=arrange.from_the_start,
            fill={
                "usual_lines": None,
                "most_bytes": _WHOLE_BYTES,
                "ranged_bytes": _READ_CHARS,
                "number_bytes": 10,
                "line_bytes": _WHOLE_BYTES,
                "decoded": (),
                "folders": False,
                "mention_binary": True,
                "mention_unchanged": True,
            },
            says=reading("{:>6}\t{}", unchanged=says.UNCHANGED, binary="(binary file, {size} bytes)"),
            errors={
                **_refused("read"),
                "not-found": _MISSING,
                "is-folder": _UNREADABLE + "it is a folder. List it with Bash, or find files in it with Glob.",
            },
            bound=Middle(_READ_CHARS),
        ),
        face(
            "write",
            "Write",
            params=_FILE,
            fill={"final_newline": False},
            says=says.written,
            errors=_refused("write"),
            bound=Middle(_WRITE_CHARS),
        ),
        face(
            "edit",
            "Edit",
            params={**_FILE, "old_string": "old", "new_string": "new", "replace_all": "everywhere"},
            fill={"read_first": True},
            says=says.edited,
            errors={
                **_refused("edit"),
                "not-found": _MISSING,
                "not-read": "You must Read {path} before editing. Use the Read tool first, then edit what it shows."
                "{hint}",
                "stale": "File {path} has been modified externally since last read. Read it again, then edit it.",
                "no-match": "old_string not found in file\n{message}",
                "ambiguous": "Multiple matches found ({count}). Use replace_all or provide more context.\n{message}",
                "same-text": "old_string and new_string are the same; there is nothing to edit.",
                "empty-old": "old_string is empty. Use Write to write a whole file.",
            },
            bound=Middle(_WRITE_CHARS),
        ),
        face(
            "shell",
            "Bash",
            params={"timeout": "seconds"},
            per={"seconds": 1000},
            usual={"seconds": 120.0},
            fill={
                "most_seconds": 600.0,
                "apart": True,
                "head_chars": 2 * _CHARS,
                "tail_chars": 2 * _CHARS,
            },
            says=says.ran,
            failed=failed,
            bound=Middle(_CHARS),
        ),
        face(
            "grep",
            "Grep",
            lift=arrange.case,
            lower=arrange.no_case,
            said_as={"case_sensitive": "case_insensitive"},
            usual={"case_sensitive": True},
            fill={"per_file": 0, "limit": 250, "line_chars": _GREP_CHARS, "cut_bytes": _GREP_CHARS},
            says=functools.partial(hits, none="No matches found"),
            errors={
                **_refused("search"),
                "not-found": "{path}: No such file or directory{hint}",
                "bad-pattern": "rg error: {message}",
            },
            bound=Middle(_GREP_CHARS),
        ),
        face(
            "glob",
            "Glob",
            fill={"limit": 100, "by_time": True, "relative": True},
            says=functools.partial(paths, none="No files matched the pattern"),
            errors={**_refused("search"), "not-found": "{path}: No such file or directory{hint}"},
            bound=Middle(_CHARS),
        ),
        arrange.lenient(
            face(
                "delegate",
                "Delegate",
                params={"goal": "prompt", "max_iterations": "max_turns"},
                lift=arrange.shared,
                lower=arrange.goals,
                says=delegated,
                failed=undone,
                bound=Middle(_CHARS),
            )
        ),
        face(
            "tool_search",
            "ToolSearch",
            fill={"how": "substring"},
            says=says.tools,
            errors=dict.fromkeys(("empty-query", "bad-arguments"), "Error: query is required"),
            bound=Middle(_CHARS),
        ),
        face("enter_plan", "EnterPlanMode", says=entered, bound=Middle(_CHARS)),
        also_given(face("exit_plan", "ExitPlanMode", says=approved, bound=Middle(_CHARS))),
    )
    return Dialect(name="wayland", faces=faces, short_names=True, defers=True, deferred=_DEFERRED)
