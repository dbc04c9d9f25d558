"""Define Amp's tools: ten faces, their aliases, how arguments are arranged, and how outcomes read.

A command line is prepared before it runs. Outcomes include todos, which Amp calls tasks, the project's checks,
complaints of language servers, and earlier threads.
"""

import contextlib
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec

from ferrule.core.access import within
from ferrule.core.content import CommandResult, Created, Deleted, Edited, Formatted, Hits, Matching, PathPage, Restored
from ferrule.core.errors import BadArguments
from ferrule.core.tool import GENERAL_LIMIT_BYTES, Context, Face, Values, copy_json
from ferrule.dialects import Dialect, rows
from ferrule.dialects.shared import (
    about_skill,
    describe_background,
    fence_text,
    file_renderer,
    has_agent_failed,
    link_renderer,
    page_renderer,
    render_delegation,
    render_matching,
    without,
)
from ferrule.tools.checks import Checked, CheckRun, CheckStatus
from ferrule.tools.lsp import Problem, Problems
from ferrule.tools.shell import Left
from ferrule.tools.threads import ThreadFound, ThreadRead, ThreadsFound

if TYPE_CHECKING:
    from ferrule.core.services import SkillLoaded, Worked
    from ferrule.tools.search import Reworked, Spots
    from ferrule.tools.todos import Todo, TodoCreated, TodoDeleted, TodoListed, TodoSeen, TodoUpdated
    from ferrule.tools.web import Fetched, Searched


def span(values: Values) -> Values:
    """`read_range`, first and last line, as where to begin and how many."""
    if "span" not in values:
        return values
    first, last = values["span"]
    start = max(1, first)
    if last < start:
        raise BadArguments(f"read_range: the end {last} lies before the start {first}.")
    return {**without(values, "span"), "offset": start, "limit": last - start + 1}


def as_span(values: Values) -> Values:
    """The inverse."""
    rest = without(values, "offset", "limit")
    if values.get("offset") is None and values.get("limit") is None:
        return rest
    first = values.get("offset") or 1
    return {**rest, "span": [first, first + (values.get("limit") or 500) - 1]}


def one_place(values: Values) -> Values:
    """A search has a path or a glob."""
    if values.get("path") is not None and values.get("glob") is not None:
        raise BadArguments("path: cannot be used together with glob; give one of them.")
    return values


def task(values: Values) -> Values:
    """What the family can say of a task."""
    return {key: values[key] for key in ("prompt", "description") if key in values}


def by_query(face: Face) -> Face:
    """The face of a web search, which accepts the name that all others have for what is looked for."""
    accepts = copy_json(face.schema)
    accepts["properties"]["query"] = {"type": "string"}
    del accepts["required"]
    return msgspec.structs.replace(face, accepts=accepts)


def objective(values: Values) -> Values:
    """What is looked for is the first query."""
    check_report = [values[key] for key in ("objective", "query") if key in values]
    if not check_report:
        raise BadArguments("objective: must say what to search for.")
    rest, queries = without(values, "objective", "queries"), [*check_report[1:], *values.get("queries", ())]
    return {**rest, "query": check_report[0], **({"queries": queries} if queries else {})}


def as_objective(values: Values) -> Values:
    """The inverse, as far as the family has words for it."""
    rest = without(values, "query", "allowed_domains", "blocked_domains")
    return {"objective": values["query"], **rest}


_LIMIT_CHARS = 65_536
"""A longer command runs as it is: reading it would hold up everything else."""


def command(values: Values, ctx: Context) -> Values:
    """A shell call as it will run: no trailing `&`, and a leading `cd folder &&` as the working directory."""
    if len(values["command"]) > _LIMIT_CHARS:
        return values
    from ferrule.dialects.shell_command import split_cd, strip_background  # only commands pay for it

    line = strip_background(values["command"])
    cwd = values.get("cwd") or "."
    moved = split_cd(line)
    if moved is not None:
        folder = os.path.join(ctx.path(cwd), os.path.expanduser(moved[0]))
        if os.path.isdir(folder):
            cwd, line = folder, moved[1]
    return {**values, "command": line, "cwd": cwd}


PAGE_LIMIT_BYTES = 589_824
"""262,144 bytes of text may take twice as many as JSON, and there are titles and addresses."""
NOTHING_FOUND = (
    "No results found.",
    "If you meant to search for a literal string, run Grep again with literal:true.",
)


def render_edit(outcome: Edited) -> dict[str, Any]:
    return {"diff": outcome.diff, "lineRange": [outcome.first_line, outcome.last_line]}


def render_write(outcome: Created) -> Any:
    message = f"Successfully {'overwrote' if outcome.existed else 'created'} file {outcome.path}"
    if outcome.guidance:
        return {"message": message, "discoveredGuidanceFiles": list(outcome.guidance)}
    return message


def render_command(outcome: CommandResult | Left) -> str:
    about = outcome.task if isinstance(outcome, Left) else outcome
    end = (
        f"<background>{describe_background(outcome)}</background>"
        if isinstance(outcome, Left)
        else f"<exit_code>{outcome.exit_code}</exit_code>"
    )
    return (
        f"<command>{about.command}</command>\n"
        f"<working_directory>{about.cwd}</working_directory>\n"
        f"<output>{about.output}</output>\n"
        f"{end}"
    )


def files_and_remaining(outcome: PathPage) -> dict[str, Any]:
    """A page that would be too long gives up its end, and says so by counting it as remaining."""
    room, files = GENERAL_LIMIT_BYTES - 100, []
    with contextlib.suppress(UnicodeEncodeError):
        if len(msgspec.json.encode(outcome.paths)) < room:
            return {"files": list(outcome.paths), "remaining": outcome.remaining}
    for path in outcome.paths:
        # Bytes that are no text count as more than they become; quotes and backslashes count as they are written.
        room -= len(msgspec.json.encode(path.encode(errors="backslashreplace").decode())) + 1
        if room < 0:
            break
        files.append(path)
    return {"files": files, "remaining": outcome.remaining + len(outcome.paths) - len(files)}


def lines(outcome: Hits | Matching) -> list[str]:
    """Matching lines; or files, for a call in the words of a family that may ask for those."""
    if isinstance(outcome, Matching):
        return render_matching(outcome, none="\n".join(NOTHING_FOUND)).split("\n")
    if not outcome.lines:
        return list(NOTHING_FOUND)
    return [f"{hit.path}:{hit.line}: {hit.text}" for hit in outcome.lines]


def render_delete(outcome: Deleted) -> str:
    return f"Successfully deleted file {outcome.path}"


def render_undo(outcome: Restored) -> str:
    return fence_text(outcome.diff, "diff")


def render_format(outcome: Formatted) -> str | dict[str, str]:
    if not outcome.diff:
        return f"{outcome.path} was formatted already ({outcome.program})"
    return {"diff": outcome.diff}


def render_checks(outcome: "CheckRun") -> str:
    """What came of each check."""
    return check_report(outcome)


def skill(outcome: "SkillLoaded") -> str:
    """The instructions between tags, and where their paths start from."""
    folder = [f"Relative paths in it start from {outcome.folder}."] if outcome.folder else []
    rows = "\n".join([*folder, *about_skill(outcome)])
    return f'<loaded_skill name="{outcome.name}">\n{outcome.text}\n\n{rows}'.rstrip() + "\n</loaded_skill>"


def render_answer(outcome: "Worked") -> str:
    """Of a subagent, only the last message reaches whoever asked."""
    return outcome.text


def places(outcome: "Worked | Spots") -> str:
    """What a subagent found, in its own words; or places by rank."""
    spots = getattr(outcome, "spots", None)
    if spots is None:
        return render_answer(cast("Worked", outcome))
    if not spots:
        return "Nothing has the words of the question. Try others, or Grep for a text that must be there."
    return "\n".join(f"{spot.path}#L{spot.first}-L{spot.last}: {spot.line}" for spot in spots)


def render_rework(outcome: "Reworked") -> str:
    """A line for each file, as git shows them, and what all of it took."""
    sign = {"added": "A", "changed": "M", "unchanged": " "}
    rows = [
        f"{sign[file.kind]} {file.path}"
        + f" (+{file.added} -{file.removed})" * (file.kind != "unchanged")
        + f": {file.summary}" * bool(file.summary)
        for file in outcome.files
    ]
    changed = sum(file.kind != "unchanged" for file in outcome.files)
    end = "Nothing had to be changed; no file was written."
    if changed:
        count = f"{changed} file{'s' * (changed != 1)}"
        end = f"{count} written at once; undo_edit on any of them takes all of it back."
    return "\n".join([*rows, f"{end} {outcome.turns:,} turns, {outcome.tokens:,} tokens."])


def problems(outcome: "Problems") -> str:
    """A line for each problem."""
    return render_problems(outcome)


def threads(outcome: "ThreadsFound") -> str:
    """A block for each thread that was found."""
    return render_threads(outcome)


def thread(outcome: "ThreadRead") -> str:
    """The messages of a thread."""
    return render_thread(outcome)


def page(outcome: "Fetched") -> Any:
    """A page of the web, under its title and address."""
    return page_renderer("To read it, call read_web_page again with that address.")(outcome)


def links(outcome: "Searched") -> str:
    """The results of a search of the web, numbered."""
    return link_renderer(none='No results found for "{query}".')(outcome)


_MOST = 1e6


def lift_todos(values: Values) -> Values:
    """What is open is pending, and a limit is a whole number."""
    out = {**values, "status": "pending"} if values.get("status") == "open" else values
    return {**out, "limit": int(min(_MOST, out["limit"]))} if isinstance(out.get("limit"), float) else out


def lower_todos(values: Values) -> Values:
    """The inverse."""
    return {**values, "status": "open"} if values.get("status") == "pending" else values


def render_todos(outcome: "TodoCreated | TodoSeen | TodoUpdated | TodoDeleted | TodoListed") -> dict[str, Any]:
    """One task, or several without their descriptions."""
    from ferrule.tools.todos import TodoDeleted, TodoListed  # for sessions that keep a list

    if isinstance(outcome, TodoListed):
        rows = [{key: value for key, value in _task(todo).items() if key != "description"} for todo in outcome.todos]
        return {"tasks": rows, **({"remaining": outcome.remaining} if outcome.remaining else {})}
    if isinstance(outcome, TodoDeleted):
        return {"deleted": outcome.todo.id}
    return {"task": None if outcome.todo is None else _task(outcome.todo)}


def _task(todo: "Todo") -> dict[str, Any]:
    more = {
        "description": todo.description,
        "repoURL": todo.repository,
        "parentID": todo.parent,
        "dependsOn": list(todo.blocked_by),
        "owner": todo.owner,
    }
    return {
        "id": todo.id,
        "title": todo.subject,
        "status": "open" if todo.status == "pending" else todo.status,
        **{key: value for key, value in more.items() if value},
        **({"ready": todo.is_ready} if todo.status != "completed" else {}),
    }


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

_SHELL: dict[str, Any] = {
    "params": {"cmd": "command"},
    "fill": {"tail_chars": 50_000, "tail_bytes": 100_000},
    "preprocess": command,
    "says": render_command,
}
_MISSING = "ENOENT: no such file or directory '{path}'{hint}"


def dialect() -> Dialect:
    """The dialect, read from its files."""
    face = rows(_HERE)
    faces = (
        face(
            "read",
            "Read",
            params={"read_range": "span"},
            lift=span,
            lower=as_span,
            said_as={"offset": "read_range", "limit": "read_range"},
            fill={
                "refuse_bytes": 65_536,
                "most_bytes": 65_536,
                "usual_lines": 500,
                "most_lines": 2_000,
                "line_bytes": 4_096,
                "decoded": ("image", "document"),
            },
            says=file_renderer("{}: {}"),
            errors={
                "not-found": _MISSING,
                "binary": "File appears to be binary and cannot be displayed as text.",
                "too-large": "File content exceeds maximum allowed size (65536 bytes). {message}",
            },
        ),
        face(
            "edit",
            "edit_file",
            params={"old_str": "old", "new_str": "new", "replace_all": "everywhere"},
            says=render_edit,
            errors={
                "not-found": "file not found. Cannot update a file that doesn't exist.",
                "no-match": "Could not find exact match for old_str\n{message}",
                "ambiguous": "found multiple matches for edit ({count} occurrences)."
                " Use replace_all or provide more context.\n{message}",
                "same-text": "old_str and new_str must be different",
                "empty-old": "old_str must not be empty. To write a whole file, use create_file.",
            },
        ),
        face(
            "write",
            "create_file",
            fill={"final_newline": True, "name_guidance": True},
            says=render_write,
        ),
        face("shell", "Bash", **_SHELL),
        face("shell", "run_terminal_command", like="Bash", **_SHELL, shown=False),
        face(
            "glob",
            "glob",
            params={"filePattern": "pattern"},
            says=files_and_remaining,
        ),
        face(
            "grep",
            "Grep",
            params={"caseSensitive": "case_sensitive"},
            lift=one_place,
            fill={"per_file": 10, "limit": 100, "line_chars": 200},
            says=lines,
            errors={"not-found": _MISSING, "bad-pattern": "{message}\n" + NOTHING_FOUND[1]},
        ),
        face(
            "delete",
            "delete_file",
            says=render_delete,
            errors={"not-found": _MISSING},
        ),
        face(
            "undo",
            "undo_edit",
            says=render_undo,
        ),
        face(
            "format",
            "format_file",
            says=render_format,
            errors={"not-found": _MISSING},
        ),
        face("check", "Check", params={"checks": "only"}, says=render_checks),
        face("skill", "skill", params={"name": "skill", "arguments": "args"}, says=skill),
        face(
            "todos",
            "task_list",
            params={
                "taskID": "todo_id",
                "title": "subject",
                "repoURL": "repository",
                "dependsOn": "blocked_by",
                "parentID": "parent",
            },
            lift=lift_todos,
            lower=lower_todos,
            says=render_todos,
        ),
        face(
            "delegate",
            "Task",
            usual={"kind": "general-purpose"},
            lower=task,
            says=render_delegation,
            failed=has_agent_failed,
        ),
        face("finder", "finder", says=places),
        face("oracle", "oracle", says=render_answer),
        face("librarian", "librarian", says=render_answer),
        face("kraken", "kraken", says=render_rework),
        by_query(
            face(
                "web_search",
                "web_search",
                params={"search_queries": "queries", "max_results": "results"},
                lift=objective,
                lower=as_objective,
                said_as={"query": "objective"},
                says=links,
            )
        ),
        face(
            "web_fetch",
            "read_web_page",
            params={"objective": "prompt", "forceRefetch": "fresh"},
            fill={"across": True},
            says=page,
            limit_bytes=PAGE_LIMIT_BYTES,
        ),
        face("read_thread", "read_thread", params={"threadID": "thread"}, says=thread),
        face("find_thread", "find_thread", says=threads),
        face("diagnostics", "get_diagnostics", says=problems, errors={"not-found": _MISSING}),
    )
    return Dialect(name="amp", faces=faces, notes=".amp", aliases=ALIASES)


_SIGNS: dict[CheckStatus, str] = {"passed": "✓", "failed": "✗", "stopped": "!", "missing": "?", "skipped": "-"}
_NAMED = 60


def check_report(run: CheckRun) -> str:
    """A line that sums up, a row for each check, and below what those say that did not pass."""
    if not run.checks:
        return explain_no_checks(run)
    return "\n".join([summarize_run(run), *map(row, run.checks), *(f"\n{block}" for block in blocks(run))])


def blocks(run: CheckRun) -> list[str]:
    """What the checks say beside their rows."""
    return [block for block in (_format_check(one, run.root) for one in run.checks) if block]


def summarize_run(run: CheckRun) -> str:
    """`5 checks in 15.2 s: 3 passed, 1 failed, 1 missing.`"""
    counts = [(status, sum(one.status == status for one in run.checks)) for status in _SIGNS]
    said = ", ".join(f"{count} {status}" for status, count in counts if count)
    return f"{len(run.checks)} check{'s' * (len(run.checks) != 1)} in {run.seconds:.1f} s: {said}."


def row(one: Checked) -> str:
    """`✗ pytest  12.0 s  3 problems`"""
    parts = [f"{_SIGNS[one.status]} {one.check.name}"]
    if one.status not in {"missing", "skipped"}:
        parts.append(f"{one.seconds:.1f} s")
    if one.status == "failed":
        count = one.total_problems
        parts.append(f"{count} problem{'s' * (count != 1)}" if count else f"exit code {one.exit_code}")
    if one.why:
        parts.append(one.why if one.status in {"passed", "failed"} else f"{one.status}: {one.why}")
    return "  ".join(parts)


def format_problem(problem: Problem, root: str) -> str:
    """`path:line: message`, with the path from the workspace."""
    path = problem.path
    if root and path.startswith(root.rstrip(os.sep) + os.sep):
        path = os.path.relpath(path, root)
    place = f"{path}:{problem.line}: " if problem.line else f"{path}: " if path else ""
    code = f" [{problem.code}]" if problem.code and problem.code not in problem.message else ""
    return f"{place}{problem.message}{code}"


def _format_check(one: Checked, root: str) -> str:
    """What a check says beside its row; nothing where that is all."""
    if not one.problems and not one.output:
        return ""
    ran = f" (`{one.check.command}`)" if one.check.command else ""
    lines = [f"{one.check.name}{ran}:", *(format_problem(problem, root) for problem in one.problems)]
    if one.total_problems > len(one.problems):
        lines.append(f"… and {one.total_problems - len(one.problems)} more")
    if one.output:
        lines.append(one.output)
    return "\n".join(lines)


def explain_no_checks(run: CheckRun) -> str:
    """Why there was nothing to run, to a model."""
    if run.known:
        return explain_none_run(run)
    if run.covering:
        return f"{explain_covering_checks(run.covering)} Leave `path` out to run them."
    return (
        f"No checks were found{describe_places(run.looked_in)}. Run them with Bash, if you know how; the user can name "
        "them in the setting checks.commands."
    )


def explain_none_run(run: CheckRun) -> str:
    """Why none of the checks that there are was run."""
    there = ", ".join(run.known[:_NAMED]) + f" and {len(run.known) - _NAMED} more" * (len(run.known) > _NAMED)
    if run.why_unreviewed:
        return f"Nothing was run. There are reviews, and they were not done: {run.why_unreviewed}."
    return f"Nothing was run: there is no such check that runs by default. The checks here are: {there}."


def explain_covering_checks(names: Sequence[str]) -> str:
    """Why a folder has no checks of its own, though there are some."""
    there = ", ".join(names[:_NAMED]) + f" and {len(names) - _NAMED} more" * (len(names) > _NAMED)
    return f"No checks were found in this folder; those of the folder above are about it too: {there}."


def describe_places(files: Sequence[str]) -> str:
    """Where was looked, as a part of a sentence."""
    some = ", ".join(files[:_NAMED]) + f" and {len(files) - _NAMED} more" * (len(files) > _NAMED)
    return f" in {some}" if some else ": nothing here speaks of any (pyproject.toml, package.json, Makefile, …)"


def render_problems(outcome: Problems) -> str:
    """A line for each, errors first; hints only where there is nothing else."""
    worse = [problem for problem in outcome.problems if problem.severity != "hint"]
    shown = worse or list(outcome.problems)
    if not shown:
        files = "" if outcome.files == 1 else f" ({outcome.files} files)"
        return f"No problems were found in {outcome.path}{files}."
    rows = [_row(problem, outcome.folder) for problem in shown]
    hints = len(outcome.problems) - len(shown)
    more = outcome.total - len(outcome.problems)
    if more > 0:
        rows.append(f"... and {more} more")
    elif hints:
        rows.append(f"({hints} hint{'s' * (hints != 1)} left out)")
    return "\n".join(rows)


def _row(problem: Problem, folder: str) -> str:
    path = problem.path
    if folder and path != folder and within(path, folder):
        path = path[len(folder) :].lstrip("/\\")
    place = ":".join(str(part) for part in (path, problem.line, problem.character) if part)
    who = " ".join(part for part in (problem.source, problem.code) if part)
    return f"{place}: {problem.severity}: {problem.message}" + f" [{who}]" * bool(who)


_NONE = "No threads found. Use fewer or other words; only threads of this workspace are looked at."


def render_threads(outcome: ThreadsFound) -> str:
    """A block for each thread."""
    if not outcome.found:
        return _NONE
    left = outcome.total - len(outcome.found)
    more = [f"{left} more; give a larger limit, or more words."] if left else []
    return "\n\n".join([*map(_block, outcome.found), *more])


def _block(one: ThreadFound) -> str:
    rows = [f"{one.id}: {one.title}" if one.title else one.id]
    rows.append(f"{one.when}, {_count_noun(one.turns, 'turn')}" + (f", in {one.workspace}" if one.workspace else ""))
    if one.excerpt:
        rows.append(one.excerpt)
    if one.files:
        rows.append(f"files: {', '.join(one.files)}" + (f" and {one.more_files} more" if one.more_files else ""))
    return "\n".join(rows)


def render_thread(outcome: ThreadRead) -> str:
    """The messages below a line about them; at the end, how to get what was left out."""
    about = [outcome.when, _count_noun(outcome.messages, "message"), outcome.workspace, outcome.model]
    head = f"{outcome.id}: {outcome.title}\n{', '.join(filter(None, about))}"
    blocks = [head, outcome.text or "It has no messages."]
    if outcome.left_out:
        first = outcome.left_out.partition(",")[0]
        blocks.append(
            f"Left out as less relevant: messages {outcome.left_out}. To read some of them, name them in the goal, "
            f'for example "messages {first}".'
        )
    return "\n\n".join(blocks)


def _count_noun(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
