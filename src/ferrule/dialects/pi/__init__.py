"""Define pi's tools: how edits and searches are arranged, and how outcomes read."""

import os

from ferrule.core.content import CommandResult, Created, Edited, FileText, FolderTree, Hits, Matching, PathPage
from ferrule.core.errors import BadArguments
from ferrule.core.tool import LineLimit, Values
from ferrule.dialects import Dialect, rows
from ferrule.dialects.shared import (
    file_renderer,
    has_failed,
    invert_names,
    members,
    opposite,
    paths,
    plain,
    render_background,
    render_matching,
    without,
)
from ferrule.tools.shell import Left

_EDIT = {"oldText": "old", "newText": "new"}


def lift_edits(values: Values) -> Values:
    """Edits in canonical names. One that says more than the two texts may mean more than is understood."""
    unknown = [f"edits[{at}].{key}" for at, one in enumerate(values["edits"]) for key in one if key not in _EDIT]
    if unknown:
        raise BadArguments("\n".join(f"{where}: unknown; an edit has oldText and newText." for where in unknown[:10]))
    return members(values, "edits", _EDIT)


def lower_edits(values: Values) -> Values:
    """The inverse."""
    if any(one.get("everywhere") for one in values["edits"]):
        raise BadArguments("edits: there are no words for an edit that is made everywhere.")
    return members(values, "edits", invert_names(_EDIT))


def lift_more(values: Values) -> Values:
    """Edits, and one more that is said by itself."""
    return lift_edits({**without(values, *_EDIT), "edits": [*values["edits"], {key: values[key] for key in _EDIT}]})


def lower_more(values: Values) -> Values:
    """The inverse."""
    shown = lower_edits(values)
    return {**shown, "edits": shown["edits"][:-1], **shown["edits"][-1]}


def lift_search(values: Values) -> Values:
    """`ignoreCase` is the opposite of case sensitive, and `context` is both sides."""
    out = opposite(without(values, "context"), "ignoreCase", "case_sensitive")
    return {**out, "before": values["context"], "after": values["context"]} if "context" in values else out


def lower_search(values: Values) -> Values:
    """The inverse; lines before and lines after are one number."""
    out = opposite(without(values, "before", "after"), "case_sensitive", "ignoreCase")
    if "before" in values or "after" in values:
        out["context"] = max(values.get("before", 0), values.get("after", 0))
    return out


def text(outcome: FileText) -> str:
    """The lines as they are, and how to go on where there are more."""
    last = outcome.first + len(outcome.lines) - 1
    if outcome.first > 1 and not outcome.lines:
        return f"Offset {outcome.first} is beyond end of file ({outcome.total} lines total)"
    if outcome.total is not None and last >= outcome.total:
        return plain(outcome)
    of = "" if outcome.total is None else f" of {outcome.total}"
    return f"{plain(outcome)}\n\n[Showing lines {outcome.first}-{last}{of}. Use offset={last + 1} to continue.]"


def render_write(outcome: Created) -> str:
    return f"Successfully wrote {outcome.size_bytes} bytes to {outcome.path}"


def render_edit(outcome: Edited) -> str:
    return f"Successfully replaced {outcome.places} block(s) in {outcome.path}."


def render_command(outcome: CommandResult | Left) -> str:
    if isinstance(outcome, Left):
        return render_background(outcome)
    body = outcome.output.rstrip("\n") or "(no output)"
    if outcome.timed_out_after is not None:
        return f"{body}\n\nCommand timed out after {outcome.timed_out_after:g} seconds"
    if outcome.quiet_after is not None:
        return f"{body}\n\nCommand printed nothing for {outcome.quiet_after:g} seconds and was stopped"
    return f"{body}\n\nCommand exited with code {outcome.exit_code}" if outcome.exit_code else body


def render_grep(outcome: Hits | Matching) -> str:
    if isinstance(outcome, Matching):
        return render_matching(outcome, none="No matches found")
    if not outcome.lines:
        return "No matches found"
    marks = {True: "-", False: ":"}
    rows = [f"{hit.path}{marks[hit.context]}{hit.line}{marks[hit.context]} {hit.text}" for hit in outcome.lines]
    more = outcome.total - sum(not hit.context for hit in outcome.lines)
    rest = f"\n[{more} more matches. Use a larger limit or a narrower pattern.]"
    return "\n".join([*rows, *([rest] if more > 0 else [])])


def render_glob(outcome: PathPage) -> str:
    more = "\n[{remaining} more. Use a larger limit or a narrower pattern.]"
    return paths(outcome, none="No files found matching pattern", more=more)


def render_folder(outcome: FolderTree) -> str:
    if not outcome.entries:
        return "(empty directory)"
    rows = [entry.path + "/" * (entry.kind == "folder") for entry in outcome.entries]
    rest = f"\n[{outcome.remaining} more entries. Use a larger limit.]"
    return "\n".join([*rows, *([rest] if outcome.remaining else [])])


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
            says=file_renderer(text),
            errors={
                "not-found": "ENOENT: no such file or directory, access '{path}'{hint}",
                "is-folder": "EISDIR: illegal operation on a directory, read '{path}'. Use ls to list it.",
            },
        ),
        face("write", "write", fill={"final_newline": False}, says=render_write),
        face(
            "multi_edit",
            "edit",
            lift=lift_edits,
            lower=lower_edits,
            fill={"in_turn": False},
            says=render_edit,
            errors=_EDIT_ERRORS,
        ),
        face(
            "edit",
            "edit_text",
            params={"oldText": "old", "newText": "new"},
            says=render_edit,
            errors=_EDIT_ERRORS,
            aliases=("edit",),
            shown=False,
        ),
        face(
            "multi_edit",
            "edit_more",
            lift=lift_more,
            lower=lower_more,
            fill={"in_turn": False},
            says=render_edit,
            errors=_EDIT_ERRORS,
            aliases=("edit",),
            shown=False,
        ),
        face(
            "shell",
            "bash",
            params={"timeout": "seconds"},
            fill={"head_chars": 120_000, "tail_chars": 120_000},
            says=render_command,
            failed=has_failed,
            bound=LineLimit(2_000, 51_200, last=True),
        ),
        face(
            "grep",
            "grep",
            lift=lift_search,
            lower=lower_search,
            said_as={"case_sensitive": "ignoreCase", "before": "context", "after": "context"},
            usual={"case_sensitive": True, "limit": 100},
            fill={"per_file": 0, "line_chars": 500},
            says=render_grep,
            errors=_NO_PATH,
        ),
        face("glob", "find", usual={"limit": 1_000}, fill={"relative": True}, says=render_glob, errors=_NO_PATH),
        face("list_dir", "ls", usual={"limit": 500}, says=render_folder, errors=_NO_PATH),
    )
    return Dialect(name="pi", faces=faces)
