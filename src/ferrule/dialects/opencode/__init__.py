"""Define opencode's tools: how its list of todos is arranged, and how outcomes read."""

import os
from typing import TYPE_CHECKING

from ferrule.core.content import CommandResult, Created, Edited, Hits, Matching, PathPage, Planned
from ferrule.core.services import DelegateOutcome
from ferrule.core.tool import LineLimit, Values
from ferrule.dialects import Dialect, rows
from ferrule.dialects.outcome_words import message
from ferrule.dialects.shared import (
    LIMIT_BYTES,
    about_code,
    about_skill,
    file_renderer,
    has_agent_failed,
    invert_names,
    members,
    page_renderer,
    paths,
    question_arrangement,
    render_answers,
    render_background,
    render_matching,
    render_patch,
)
from ferrule.tools.shell import Left

if TYPE_CHECKING:
    from ferrule.core.services import SkillLoaded
    from ferrule.dialects.outcome_words import Outcome


_STEP = {"content": "text", "status": "status", "priority": "priority"}


def steps(values: Values) -> Values:
    """Items in canonical names; older ones have an id, which the place in the list makes needless."""
    return members(values, "steps", _STEP)


def todos(values: Values) -> Values:
    """The inverse."""
    return members(values, "steps", invert_names(_STEP))


def render_write(_: Created) -> str:
    return "Wrote file successfully."


def render_edit(outcome: Edited | Created) -> str:
    return render_write(outcome) if isinstance(outcome, Created) else "Edit applied successfully."


def render_command(outcome: CommandResult | Left) -> str:
    if isinstance(outcome, Left):
        return render_background(outcome)
    stopped, quiet = outcome.timed_out_after, outcome.quiet_after
    about = [f"Command was stopped after {stopped * 1000:.0f} ms"] if stopped is not None else []
    about += [f"Command was stopped after {quiet * 1000:.0f} ms without output"] if quiet is not None else []
    about += [f"Exit code: {outcome.exit_code}"] if outcome.exit_code else []
    body = outcome.output or "(no output)"
    return f"{body}\n\n<metadata>\n{chr(10).join(about)}\n</metadata>" if about else body


def render_glob(outcome: PathPage) -> str:
    return paths(
        outcome, none="No files found", more="(Results are truncated: {remaining} more. Use a narrower pattern.)"
    )


def render_grep(outcome: Hits | Matching) -> str:
    if isinstance(outcome, Matching):
        return render_matching(outcome, none="No files found")
    if not outcome.lines:
        return "No files found"
    rows = [f"Found {outcome.total} matches"]
    path = None
    for hit in outcome.lines:
        if hit.path != path:
            rows += ["", f"{hit.path}:"] if path else [f"{hit.path}:"]
            path = hit.path
        rows.append(f"  Line {hit.line}: {hit.text}")
    more = outcome.total - sum(not hit.context for hit in outcome.lines)
    rest = ["", f"(Results are truncated: {more} more matches. Use a narrower path or pattern.)"] if more > 0 else []
    return "\n".join([*rows, *rest])


def render_plan(outcome: Planned) -> str:
    rows = (f"[{step.status}] {step.text}" + (f" ({step.priority})" if step.priority else "") for step in outcome.steps)
    return "\n".join(rows) or "(nothing is planned)"


def skill(outcome: "SkillLoaded") -> str:
    """The instructions under the skill's name, and below them where their paths start from."""
    folder = [f"Base directory for this skill: {outcome.folder}"] if outcome.folder else []
    rows = [f'<skill_content name="{outcome.name}">', f"# Skill: {outcome.name}", "", outcome.text]
    about = [*folder, *about_skill(outcome)]
    return "\n".join([*rows, *(["", *about] if about else []), "</skill_content>"])


def task(outcome: "Outcome") -> str:
    """The id, and the last message between tags."""
    if not isinstance(outcome, DelegateOutcome):
        return message(outcome)
    head = f"task_id: {outcome.worked.id} (for resuming to continue this task if needed)"
    return "\n".join([head, "", "<task_result>", message(outcome), "</task_result>"])


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
            says=file_renderer("{}: {}"),
            errors={"not-found": "File not found: {path}{hint}", "binary": "Cannot read binary file: {path}"},
        ),
        face(
            "write",
            "write",
            params=_PATH,
            fill={"final_newline": False, "read_first": True},
            says=render_write,
            errors=_UNREAD,
        ),
        face(
            "edit",
            "edit",
            params={**_PATH, "oldString": "old", "newString": "new", "replaceAll": "everywhere"},
            fill={"read_first": True, "may_create": True},
            says=render_edit,
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
            says=render_patch,
            errors=_UNPATCHED,
        ),
        face(
            "shell",
            "bash",
            params={"timeout": "seconds", "workdir": "cwd"},
            per={"seconds": 1000},
            usual={"seconds": 120.0},
            fill={"head_chars": 120_000, "tail_chars": 120_000},
            says=render_command,
            bound=LineLimit(2_000, 51_200, last=True),
        ),
        face("glob", "glob", fill={"limit": 100, "by_time": True}, says=render_glob, errors=_NO_PATH),
        face(
            "grep",
            "grep",
            params={"include": "glob"},
            fill={"per_file": 0, "limit": 100, "line_chars": 2_000, "case_sensitive": True, "by_time": True},
            says=render_grep,
            errors=_NO_PATH,
        ),
        face(
            "plan",
            "todowrite",
            params={"todos": "steps"},
            lift=steps,
            lower=todos,
            says=render_plan,
        ),
        face("skill", "skill", params={"name": "skill"}, says=skill),
        face(
            "ask_user",
            "question",
            **question_arrangement(multiple="multiple"),
            fill={"header_chars": 30},
            says=render_answers,
        ),
        face(
            "delegate",
            "task",
            params={"subagent_type": "kind", "task_id": "resume"},
            unused=("command",),
            says=task,
            failed=has_agent_failed,
        ),
        face(
            "web_fetch",
            "webfetch",
            params={"format": "form", "timeout": "seconds"},
            fill={"across": True},
            says=page_renderer("To read it, call webfetch again with that address.", is_headed=False),
            limit_bytes=LIMIT_BYTES,
        ),
        face("lsp", "lsp", params=_PATH, says=about_code, errors={"not-found": "File not found: {path}{hint}"}),
    )
    return Dialect(name="opencode", faces=faces)
