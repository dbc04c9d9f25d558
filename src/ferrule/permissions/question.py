"""Put questions to a person or a program: what is asked, what it shows, and what an answer means.

Changes to files are shown as numbered lines with a few unchanged lines around them. For a protected file the
question says which program runs or obeys it.

It gets the arguments as JSON on its standard input, and answers with its exit code: 0 allows, 1 asks, everything else
refuses, with what it wrote to its standard error as the reason. A program that cannot be run, does not end in time
or dies decides nothing, and then the call is refused.
"""

import functools
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ferrule.core.tool import Preview, Previewed
from ferrule.files.diff import CONTEXT_LINES, DiffChange, changes
from ferrule.files.journal import find_changed_span
from ferrule.files.text import Binary, parse
from ferrule.permissions import Question, visible
from ferrule.system.environment import apart, is_reachable_in, quiet_environment
from ferrule.system.environment import program_on_path as on_path
from ferrule.system.folder import describe
from ferrule.system.run import Piped, pipe
from ferrule.tools import CHECK

MOST_ROWS = 2000
MOST_ROW_CHARS = 4000
MOST_WHOLE_CHARS = 50_000
"""Of what has to be seen whole; nobody reads more before they say yes."""
_APART = "…"
Row = Callable[[], str]
"""A row that is put into words when it is shown: of a long file most are only counted."""


def rows(preview: Preview, shown: Callable[[str], str], *, most: int = MOST_ROWS) -> tuple[str, ...]:
    """The files one after the other. Nothing in a row steers the screen; a long end is left out and counted."""
    moving = {one.came_from for one in preview}
    files = [one for one in preview if one.path not in moving]
    found: list[str] = []
    left = 0
    for one in files:
        old = next((other for other in preview if other.path == one.came_from), None)
        told = list(_file(one._replace(before=old.before) if old else one, shown, named=len(files) > 1))
        room = max(0, most - len(found))
        found += (row() for row in told[:room])
        left += max(0, len(told) - room)
    return (*found, f"{_APART} {left:,} more line{'s' * (left > 1)}") if left else tuple(found)


class Unshown(Exception):  # noqa: N818 - it says what it is
    """What has to be seen whole cannot be."""


def whole(preview: Preview, shown: Callable[[str], str]) -> tuple[str, ...]:
    """The same to the last character. Raises `Unshown`, with the reason."""
    found = rows(preview, shown, most=MOST_WHOLE_CHARS)
    if sum(map(len, found)) > MOST_WHOLE_CHARS or len(found) > MOST_WHOLE_CHARS:
        raise Unshown("there is more to look at than a question can show")
    if any(row.startswith("(binary:") for row in found):
        raise Unshown("it is no text that could be shown")
    if any(len(line) > MOST_ROW_CHARS for one in preview for line in _text(one.after).splitlines()):
        raise Unshown("its lines are too long to be shown")
    return found


def _file(one: Previewed, shown: Callable[[str], str], *, named: bool) -> Iterator[Row]:
    name = visible(shown(one.path)) + ": " if named else ""
    if one.came_from:
        yield _text_row(f"({name}moved from {visible(shown(one.came_from))})")
    elif one.before == one.after:
        yield _text_row(f"({name}reads like this already: nothing would change)")
    elif one.before is None:
        yield _text_row(f"({name}new file, {_bytes(one.after)})")
    elif one.after is None:
        yield _text_row(f"({name}deletes the file, {_bytes(one.before)})")
    elif named:
        yield _text_row(f"({name}changes)")
    if one.before == one.after:
        return
    try:
        before, after = _text(one.before), _text(one.after)
    except Binary:
        yield _text_row(f"(binary: {_bytes(one.before)} before, {_bytes(one.after)} after)")
        return
    if before == after and None not in (one.before, one.after):
        yield _text_row("(the text stays as it is; its encoding changes)")
    yield from _diff_rows(before, after)


def _text_row(text: str) -> Row:
    return lambda: text


def _bytes(raw: bytes | None) -> str:
    size = len(raw or b"")
    return f"{size:,} byte{'s' * (size != 1)}"


def _text(raw: bytes | None) -> str:
    return "" if raw is None else parse(raw).text


def _diff_rows(before: str, after: str) -> Iterator[Row]:
    """The lines that differ with their numbers: of what goes as it is, of everything else as it will be."""
    above, one, other = _around(before, after)
    plain = all(line.endswith("\r\n") for line in (*one, *other) if line.endswith("\n"))
    found = changes(one, other)
    width = len(str(above + max(len(one), len(other))))
    for at, group in enumerate(_groups(found)):
        if at:
            yield _text_row(f"{' ' * width} {_APART}")
        for number, sign, line in _hunk(group, one, other):
            yield functools.partial(_row, above + number, width, sign, line, plain=plain)
        if lacks := _lacks_newline(group, one, other):
            yield _text_row(f"{' ' * width}  (no newline at the end{lacks})")


def _around(before: str, after: str) -> tuple[int, list[str], list[str]]:
    """How many lines are above, and the lines that differ with those around them: a long file is not compared whole."""
    one, other = (text.encode(errors="surrogatepass") for text in (before, after))
    start, gone, come = find_changed_span(one, other)
    first = start
    for _ in range(CONTEXT_LINES + 1):
        first = one.rfind(b"\n", 0, max(0, first)) if first > 0 else -1
    first += 1
    cut = [_behind(raw, start + size) for raw, size in ((one, gone), (other, come))]
    return one.count(b"\n", 0, first), _lines(one[first : cut[0]]), _lines(other[first : cut[1]])


def _behind(raw: bytes, end: int) -> int:
    for _ in range(CONTEXT_LINES + 1):
        found = raw.find(b"\n", end)
        if found < 0:
            return len(raw)
        end = found + 1
    return end


def _lines(raw: bytes) -> list[str]:
    """At LF alone, as in git."""
    pieces = raw.decode(errors="surrogatepass").split("\n")
    last = pieces.pop()
    return [f"{piece}\n" for piece in pieces] + ([last] if last else [])


def _groups(found: Sequence[DiffChange]) -> Iterator[list[DiffChange]]:
    group: list[DiffChange] = []
    for change in found:
        if group and change.start - group[-1].end > 2 * CONTEXT_LINES:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _hunk(group: Sequence[DiffChange], one: Sequence[str], other: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """Number, sign and line; what stays has the number that it will have."""
    moved = group[0].new_start - group[0].start
    at = max(0, group[0].start - CONTEXT_LINES)
    for change in group:
        yield from ((number + moved + 1, " ", one[number]) for number in range(at, change.start))
        yield from ((number + 1, "-", one[number]) for number in range(change.start, change.end))
        yield from ((number + 1, "+", other[number]) for number in range(change.new_start, change.new_end))
        at, moved = change.end, change.new_end - change.end
    end = min(len(one), at + CONTEXT_LINES)
    yield from ((number + moved + 1, " ", one[number]) for number in range(at, end))


def _lacks_newline(group: Sequence[DiffChange], one: Sequence[str], other: Sequence[str]) -> str:
    """Which of the two ends without a newline, where the end of the file is among the changes."""
    is_last = group[-1].end == len(one) and group[-1].new_end == len(other)
    lacks = [bool(side) and not side[-1].endswith("\n") for side in (one, other)]
    if not is_last or not any(lacks):
        return ""
    return ", now and then" if all(lacks) else " now" if lacks[0] else " then"


def _row(number: int, width: int, sign: str, line: str, *, plain: bool) -> str:
    text = line.removesuffix("\n")
    text = text.removesuffix("\r") if plain else text
    more = len(text) - MOST_ROW_CHARS
    cut = visible(text[:MOST_ROW_CHARS].replace("\t", "    "))
    end = f" {_APART} {more:,} more characters" if more > 0 else ""
    return f"{number:>{width}} {sign} {cut}{end}".rstrip()


_NAMED = ("path", "paths", "url", "more")
"""Canonical arguments that the summary has already."""


def question_rows(question: Question) -> list[str]:
    """What is shown between what would happen and why it is asked. None of the rows steers a screen."""
    if question.kind == "plan":
        return [visible(line) for line in question.input["plan"].splitlines()]
    if question.kind == "server":
        return list(map(_question_row, question.effects))
    if question.changes:
        return list(question.changes)
    typed = question.input.get("chars")
    if isinstance(typed, str):
        return [_question_row(f"types: {line}") for line in typed.splitlines()]
    if lines := script(question) or _host_command_rows(question):
        return lines
    if (
        question.kind == "folder"
        or question.tool == CHECK
        or any(access.kind == "command" for access in question.touches)
    ):
        return []
    return list(map(_question_row, _arguments(_question_said(question))))


def headline(question: Question) -> str:
    """The summary; of a command of several lines, which are shown below it, only where and how it runs."""
    lines = script(question)
    if not lines:
        return question.summary
    command = next(access.key for access in question.touches if access.kind == "command")
    return question.summary.replace(f"`{visible(command)}`", f"{len(lines)} lines of shell", 1)


def script(question: Question) -> list[str]:
    """The lines of the one command that the question is about, where it has several and the summary has it whole."""
    commands = [access.key for access in question.touches if access.kind == "command"]
    if len(commands) != 1 or "\n" not in commands[0].strip() or f"`{visible(commands[0])}`" not in question.summary:
        return []
    return [_question_row(line) for line in commands[0].strip("\n").split("\n")]


def _host_command_rows(question: Question) -> list[str]:
    """The command that wants to reach a host: the summary says what it wants, and not which one it is."""
    commands = [access.key for access in question.touches if access.kind == "command"]
    named = question.kind != "host" or any(f"`{visible(one)}`" in question.summary for one in commands)
    return [] if named else [_question_row(line) for one in commands for line in one.strip("\n").split("\n")]


def _question_said(question: Question) -> Mapping[str, Any]:
    """The arguments in the words of whoever made the call, but for those that say where it goes."""
    known = {str(question.input[name]) for name in _NAMED if isinstance(question.input.get(name), str)}
    given = question.input if question.given is None else question.given
    return {name: value for name, value in given.items() if value not in (None, "", [], {}) and value not in known}


def _arguments(values: Mapping[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        first, *rest = text.split("\n")
        yield f"{name}: {first}"
        yield from (f"  {line}" for line in rest)


def _question_row(line: str) -> str:
    """A row to its end, or as much of it as can be read; whoever allows it is told where it goes on."""
    more = len(line) - MOST_ROW_CHARS
    shown = visible(line[:MOST_ROW_CHARS].replace("\t", "    "))
    return f"{shown} … {more:,} more characters" if more > 0 else shown


def covers(question: Question, *, host: str, like: str) -> str:
    """What "always" would do: `host` is said of a host, and `like` of the like of the call, where no rule is saved."""
    if question.kind == "host":
        return host
    if question.proposals:
        return "saves the rule " + " and ".join(map(visible, question.proposals))
    commands = sum(access.kind == "command" for access in question.touches)
    what = ("this command" if commands == 1 else "these commands") if commands else f"every {visible(question.name)}"
    return like.format(what)


_FOLDERS = {
    ".vscode": "VS Code runs its tasks and obeys its settings",
    ".idea": "the editors of JetBrains run and obey it",
    ".zed": "Zed runs its tasks and obeys its settings",
    ".devcontainer": "editors build and start containers by it",
    ".claude": "Claude Code and Ferrule take settings, hooks, commands, agents and skills from there",
    ".codex": "Codex obeys it",
    ".gemini": "the Gemini CLI obeys it",
    ".cursor": "Cursor obeys it",
    ".opencode": "opencode obeys it",
    ".amp": "Amp and Ferrule take settings and tools from there",
    ".agents": "agents, Ferrule among them, run what is there",
    ".ah": "agents, Ferrule among them, run what is there",
    ".husky": "git runs it at commits and pushes",
    ".githooks": "git runs it at commits and pushes",
    ".config": "shells and git obey it",
}
_FILES = {
    ".mcp.json": "Claude Code and Ferrule start MCP servers by it",
    ".pre-commit-config.yaml": "pre-commit runs programs by it at every commit",
    "lefthook.yml": "lefthook runs programs by it at commits and pushes",
    "lefthook.yaml": "lefthook runs programs by it at commits and pushes",
    ".gitconfig": "git obeys it, and runs programs that it names",
    ".gitmodules": "git obeys it, and fetches from where it says",
    "sitecustomize.py": "Python runs it whenever it starts",
    "usercustomize.py": "Python runs it whenever it starts",
    ".yarnrc": "Yarn obeys it, and runs programs that it names",
    ".yarnrc.yml": "Yarn obeys it, and runs programs that it names",
    ".pnpmfile.cjs": "pnpm runs it at every installation",
}
_SHELL = ("rc", "profile", "aliases", "env", "login", "logout")


def explain_protection(path: str) -> str:
    """The end of a sentence; the nearest name in the path decides."""
    name = os.path.basename(path).lower()
    if name in _FILES:
        return _FILES[name]
    if name.endswith(".pth"):
        return "Python runs it whenever it starts"
    for part in reversed(path.lower().split(os.sep)[:-1]):
        if part in _FOLDERS:
            return _FOLDERS[part]
    if name.startswith(".") and name.endswith(_SHELL):
        return "shells run it when they start"
    return "programs run or obey it by themselves"


_SECONDS = 30.0
_OUTPUT_BYTES = 1 << 20
_MESSAGE_CHARS = 2000
_LOADED = (
    *("PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "NODE_OPTIONS", "NODE_PATH", "PERL5LIB", "PERL5OPT", "PERLLIB"),
    *("RUBYLIB", "RUBYOPT", "JAVA_TOOL_OPTIONS", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FRAMEWORK_PATH"),
)
"""Variables that make interpreters load code: a project's environment may have set them to its own."""
_STEERING = r"\x1b\[[0-?]*+[ -/]*+[@-~]|\x1b[\]PX^_][^\x07\x1b]*+(?:\x07|\x1b\\)?|\x1b[ -/]*+[0-~]?"


class DelegateDecision(NamedTuple):
    """What the program decided."""

    action: Literal["allow", "ask", "deny"]
    message: str
    """For the model where it denies, for the person where it asks."""


async def delegate(
    program: str,
    tool: str,
    arguments: Mapping[str, Any],
    *,
    thread_id: str,
    workspace_roots: Sequence[str],
    seconds: float = _SECONDS,
) -> DelegateDecision:
    """Ask the program about a call of `tool`. It is looked for on PATH, but never inside of `workspace_roots`."""
    path = _place(program, workspace_roots)
    if path is None:
        return _deny(program, "it is no program on PATH, nor an absolute path, outside of the workspace")
    if "\0" in tool + thread_id:
        return _deny(program, "the call has a NUL in its name")
    try:
        given = json.dumps(arguments, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):
        return _deny(program, "the arguments cannot be written as JSON")
    env = _environment(workspace_roots)
    env |= {"AGENT": "amp", "AGENT_TOOL_NAME": tool, "AMP_THREAD_ID": thread_id}
    cwd = next((root for root in workspace_roots if os.path.isdir(root)), os.path.abspath(os.sep))
    try:
        piped = await pipe([path], given, cwd=cwd, env=env, seconds=seconds, limit_bytes=_OUTPUT_BYTES)
    except (OSError, UnicodeError, ValueError) as error:
        reason = describe(error) if isinstance(error, OSError) else str(error)
        return _deny(program, f"it cannot be started ({reason})")
    return _read_decision(program, piped, seconds)


def _read_decision(program: str, piped: Piped, seconds: float) -> DelegateDecision:
    said = _clean(piped.stderr)
    if piped.stopped == "time":
        return _deny(program, f"it did not decide within {seconds:g} seconds")
    if piped.stopped == "size":
        return _deny(program, f"it wrote more than {_OUTPUT_BYTES:,} bytes")
    match piped.exit_code:
        case 0:
            return DelegateDecision("allow", "")
        case 1:
            return DelegateDecision("ask", said)
        case code if code > 128 and not said:
            return _deny(program, f"it ended by signal {code - 128}")
        case code:
            return DelegateDecision(
                "deny", said or f"{os.path.basename(program)} refused this call (exit code {code})."
            )


def _deny(program: str, why: str) -> DelegateDecision:
    """No decision is a refusal: a broken policy must not let anything in."""
    return DelegateDecision("deny", f"{_clean(os.fsencode(program))} was to decide about this call, but {why}.")


def _place(program: str, roots: Sequence[str]) -> str | None:
    if not program or "\0" in program:
        return None
    if not os.path.dirname(program):
        return None if program in {os.curdir, os.pardir} else on_path(program, outside=roots)
    if not os.path.isabs(program) or not os.path.isfile(program) or not os.access(program, os.X_OK):
        return None
    return None if is_reachable_in(program, roots) else program


def _environment(roots: Sequence[str]) -> dict[str, str]:
    env = {name: value for name, value in quiet_environment(os.environ).items() if name not in _LOADED}
    # What the program starts by name, its own interpreter for one, must not come from the workspace either.
    return apart(env, roots)


def _clean(raw: bytes) -> str:
    """What it wrote, without what would steer a screen or hide there, and not too much of it."""
    text = re.sub(_STEERING, "", raw.decode(errors="replace"))
    kept = "".join(char for char in text if char.isprintable() or char in "\n\t").strip()
    return kept if len(kept) <= _MESSAGE_CHARS else kept[:_MESSAGE_CHARS].rstrip() + " …"
