"""Define Wayland Core's tools: eight built-ins and two for plans, with their arguments and outcomes."""

import functools
import os
from typing import TYPE_CHECKING

import msgspec

from ferrule.core.content import CommandResult, Created, Edited
from ferrule.core.tool import Face, Middle, Values, copy_json
from ferrule.dialects import Dialect, rows
from ferrule.dialects.shared import (
    accept_plan,
    explain_stop,
    file_renderer,
    has_agent_failed,
    has_failed,
    hits,
    opposite,
    paths,
    render_approval,
    render_background,
    render_delegation,
    render_plan_entry,
    tools_found,
    without,
)
from ferrule.tools.shell import Left

if TYPE_CHECKING:
    from ferrule.core.services import ToolsFound


_TURNS = 50
_ANSWER_TOKENS = 4096
_SHARED = ("prompt", "context", "toolsets", "tasks", "max_turns")


def from_the_start(values: Values) -> Values:
    """A place before the first line is the first line."""
    return values if values.get("offset", 1) >= 1 else without(values, "offset")


def case(values: Values) -> Values:
    """Whether upper and lower case differ, from whether they are the same."""
    return opposite(values, "case_insensitive", "case_sensitive")


def no_case(values: Values) -> Values:
    """The inverse."""
    return opposite(values, "case_sensitive", "case_insensitive")


def lift_goals(values: Values) -> Values:
    """One goal or several, each for a subagent that is named after it and writes short answers."""
    return {"max_turns": _TURNS, **values, "shared": True, "max_tokens": _ANSWER_TOKENS}


def lower_goals(values: Values) -> Values:
    """The inverse, as far as the family has words for it."""
    return {key: values[key] for key in _SHARED if key in values}


def lenient(face: Face) -> Face:
    """The face of several goals, which accepts a task without one: what is missing is said by its number."""
    accepts = copy_json(face.schema)
    del accepts["properties"]["tasks"]["items"]["required"]
    return msgspec.structs.replace(face, accepts=accepts)


UNCHANGED = (
    "File unchanged since last read. The content from the earlier Read is what the file still holds;"
    " use that instead of reading it again."
)


def render_write(outcome: Created) -> str:
    return f"{'Updated' if outcome.existed else 'Created'} {outcome.path} ({outcome.lines} lines)"


def render_edit(outcome: Edited) -> str:
    return f"Edited {outcome.path}: replaced {outcome.places} occurrence(s)"


def render_command(outcome: CommandResult | Left) -> str:
    """Both streams under the exit code, or under a sentence about the time; without output that sentence is all."""
    if isinstance(outcome, Left):
        return render_background(outcome)
    streams = f"STDOUT:\n{outcome.output}\nSTDERR:\n{outcome.errors}"
    why = explain_stop(outcome)
    if why is None:
        return f"Exit code: {outcome.exit_code}\n{streams}"
    if outcome.timed_out_after is not None:
        why = f"Command timed out after {round(outcome.timed_out_after * 1000)}ms"
    return f"{why}\n{streams}" if outcome.output or outcome.errors else why


def tools(outcome: "ToolsFound") -> str:
    """The tools as JSON; to find none is no error."""
    if not outcome.tools:
        return f'No deferred tools matching "{outcome.query}" found.'
    return msgspec.json.format(msgspec.json.encode(tools_found(outcome)), indent=2).decode()


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


def _refusal_errors(deed: str) -> dict[str, str]:
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
            lift=from_the_start,
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
            says=file_renderer("{:>6}\t{}", unchanged=UNCHANGED, binary="(binary file, {size} bytes)"),
            errors={
                **_refusal_errors("read"),
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
            says=render_write,
            errors=_refusal_errors("write"),
            bound=Middle(_WRITE_CHARS),
        ),
        face(
            "edit",
            "Edit",
            params={**_FILE, "old_string": "old", "new_string": "new", "replace_all": "everywhere"},
            fill={"read_first": True},
            says=render_edit,
            errors={
                **_refusal_errors("edit"),
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
            says=render_command,
            failed=has_failed,
            bound=Middle(_CHARS),
        ),
        face(
            "grep",
            "Grep",
            lift=case,
            lower=no_case,
            said_as={"case_sensitive": "case_insensitive"},
            usual={"case_sensitive": True},
            fill={"per_file": 0, "limit": 250, "line_chars": _GREP_CHARS, "cut_bytes": _GREP_CHARS},
            says=functools.partial(hits, none="No matches found"),
            errors={
                **_refusal_errors("search"),
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
            errors={**_refusal_errors("search"), "not-found": "{path}: No such file or directory{hint}"},
            bound=Middle(_CHARS),
        ),
        lenient(
            face(
                "delegate",
                "Delegate",
                params={"goal": "prompt", "max_iterations": "max_turns"},
                lift=lift_goals,
                lower=lower_goals,
                says=render_delegation,
                failed=has_agent_failed,
                bound=Middle(_CHARS),
            )
        ),
        face(
            "tool_search",
            "ToolSearch",
            fill={"how": "substring"},
            says=tools,
            errors=dict.fromkeys(("empty-query", "bad-arguments"), "Error: query is required"),
            bound=Middle(_CHARS),
        ),
        face("enter_plan", "EnterPlanMode", says=render_plan_entry, bound=Middle(_CHARS)),
        accept_plan(face("exit_plan", "ExitPlanMode", says=render_approval, bound=Middle(_CHARS))),
    )
    return Dialect(name="wayland", faces=faces, short_names=True, defers=True, deferred=_DEFERRED)
