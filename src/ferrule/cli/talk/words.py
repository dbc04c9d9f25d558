"""A call in a few words: what it is about, how it went, and what it changed."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from ferrule.cli.talk.line import diff_sign
from ferrule.core.events import Done, FileEdit
from ferrule.core.reply import Reply

_COMMANDS = ("command", "cmd")
_ABOUT = (
    *_COMMANDS, "subject", "path", "file_path", "paths", "pattern", "query", "url", "skill", "description", "name",
    "prompt", "task", "id", "task_id",
)  # fmt: skip
"""What says most about a call, by the names of its arguments, the best first.

What the model says of a call comes after what the call does: a description may be wrong, or a lie.
"""
_SHOWN_WHOLE = frozenset({"plan"})
"""Arguments that the user has read as the question; their beginning, as a row, would say nothing."""
_STOPPED = {"cancelled": "interrupted", "rejected-by-user": "not allowed"}
_REFUSED_UNASKED = frozenset({"denied-by-rule", "not-in-mode", "ask-failed"})
"""Nobody was asked, or not only: the user has not seen yet why it was not allowed."""
_MOST_CHARS = 300
_BREAK = " ↵ "
"""Between the lines of a command, which would be another one if they stood in one line."""
_CHECKS = re.compile(r"\d+ checks? in [\d.]+ s: ([^\n]*)\.")
_WRONG = re.compile(r"\d (failed|stopped|missing)")
_EXIT = r"<exit_code>(-?\d+)</exit_code>|\bexit(?:ed with)? (?:code|status):? (-?\d+)"


class Outcome(NamedTuple):
    """How a call went."""

    ok: bool
    words: str


def about(values: Mapping[str, Any], cwd: str) -> str:
    """The argument that says most; paths in the workspace without the way to it."""
    if not _is_command(values) and isinstance(values.get("pattern"), str):
        where = values.get("path") or values.get("directory")
        inside = f" in {_near(where, cwd)}" if isinstance(where, str) and _near(where, cwd) not in {"", "."} else ""
        return _short(f'"{values["pattern"]}"{inside}')
    chosen = next((values[name] for name in _ABOUT if values.get(name)), None)
    if chosen is None:
        texts = (value for name, value in values.items() if name not in _SHOWN_WHOLE)
        chosen = next((value for value in texts if isinstance(value, str) and value), "")
    if isinstance(chosen, list | tuple):
        return _short(", ".join(_near(str(one), cwd) for one in chosen[:3]) + (", …" if len(chosen) > 3 else ""))
    if _is_command(values):
        chosen = _BREAK.join(filter(None, map(str.strip, str(chosen).split("\n"))))
    return _short(_near(str(chosen), cwd))


def described(values: Mapping[str, Any]) -> str:
    """What the model says that a command is for."""
    said = values.get("description")
    return _short(said) if isinstance(said, str) and _is_command(values) else ""


def _is_command(values: Mapping[str, Any]) -> bool:
    return any(values.get(name) for name in _COMMANDS)


def _near(path: str, cwd: str) -> str:
    if cwd and path.startswith(cwd.rstrip("/") + "/"):
        return path[len(cwd.rstrip("/")) + 1 :]
    return "." if cwd and path == cwd else path


def _short(text: str) -> str:
    words = " ".join(text[: 4 * _MOST_CHARS].split())
    return words if len(words) <= _MOST_CHARS else words[: _MOST_CHARS - 1] + "…"


@cache
def _exit() -> re.Pattern[str]:
    return re.compile(_EXIT, re.IGNORECASE)


def outcome(reply: Reply, exit_code: int | None = None) -> Outcome:
    """How it went; a command is told by its exit code, a failure by all that it says: its end is the advice."""
    if reply.status in _STOPPED and (reply.error is None or reply.error.error_code not in _REFUSED_UNASKED):
        return Outcome(False, _STOPPED[reply.status])
    if exit_code is not None and reply.status in {"done", "error"} and checked(reply) is None:
        return Outcome(exit_code == 0, f"exit {exit_code}")
    if reply.error is not None:
        return Outcome(False, reply.error.message.strip())
    result = reply.result
    if isinstance(result, Mapping):
        return _of_object(result)
    if isinstance(result, list):
        return Outcome(True, _count(len(result), "part"))
    text = result if isinstance(result, str) else ""
    if (checks := checked(reply)) is not None:
        return checks
    # The end of a long output says how it went; the search must not walk through all of it.
    found = _exit().findall(text[-600:] if len(text) > 1200 else text)
    code = "".join(found[-1]) if found else "0"
    if code != "0":
        return Outcome(False, f"exit {code}")
    rows = text.strip().count("\n") + 1 if text.strip() else 0
    if reply.lines is not None and (rows > 1 or not reply.lines):  # of a command
        return Outcome(True, _count(reply.lines, "line") if reply.lines else "")
    if rows == 1 and len(text.strip()) <= 60 and not found and reply.found != (1, "line"):
        return Outcome(True, _short(text))
    return Outcome(True, _count(*(reply.found or (rows, "line"))) if rows else "")


def left_running(reply: Reply) -> str:
    """That a command goes on in the background, where it does: it is not done, however well the call went."""
    text = reply.result if reply.ok and isinstance(reply.result, str) else ""
    found = _left().search(text)
    return f"in the background, as {next(filter(None, found.groups()))}" if found else ""


@cache
def _left() -> re.Pattern[str]:
    return re.compile(
        r"(?:running in|moved to the|goes on in the) background[^.]*(?: ID:|, as task) ([\w-]+)"
        r"|^Background PIDs: .*\bwith the task_id ([\w-]+)|^Process running with (session ID \d+)$",
        re.MULTILINE,
    )


def checked(reply: Reply) -> Outcome | None:
    """How the project's checks went, where it is they that were run: a call that found something wrong did its work."""
    text = reply.result if reply.ok and isinstance(reply.result, str) else ""
    found = _CHECKS.match(text)
    return None if found is None else Outcome(not _WRONG.search(found[1]), found[0].rstrip("."))


def noticed(reply: Reply) -> list[str]:
    """The errors that a language server sees since the call, as rows."""
    told = [note for note in reply.notes if note.startswith("New errors")]
    return [row for note in told for row in note.splitlines() if row.strip()]


def _of_object(result: Mapping[str, Any]) -> Outcome:
    if isinstance(result.get("diff"), str):
        return Outcome(True, "")
    if isinstance(result.get("files"), list):
        return Outcome(True, _count(len(result["files"]) + int(result.get("remaining") or 0), "file"))
    for name in ("exitCode", "exit_code"):
        if isinstance(result.get(name), int) and result[name]:
            return Outcome(False, f"exit {result[name]}")
    return Outcome(True, "")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def changed(values: Mapping[str, Any], done: Done, cwd: str) -> list[str]:
    """What a call has changed, as the rows of a diff; nothing where it changed no text, or not that one can see.

    With line numbers where the files are known as they were and as they are.
    """
    reply = done.reply
    if not reply.ok or not reply.track_files:
        return []
    if done.edits and not any(edit.left_out for edit in done.edits):
        return _numbered(done.edits, cwd)
    if isinstance(reply.result, Mapping) and isinstance(reply.result.get("diff"), str):
        rows = reply.result["diff"].rstrip("\n").split("\n")
        return [row for row in rows if not row.startswith(("diff ", "index ", "--- ", "+++ ", "```"))]
    return wished(values)


def _numbered(edits: Sequence[FileEdit], cwd: str) -> list[str]:
    from ferrule.core.preview import Previewed  # for edits
    from ferrule.permissions.changes import rows

    files = tuple(Previewed(edit.path, _raw(edit.old), _raw(edit.new)) for edit in edits)
    return list(rows(files, lambda path: _near(path, cwd)))


def _raw(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def wished(values: Mapping[str, Any]) -> list[str]:
    """What the arguments of an edit say that shall become of a text."""
    old, new, content, patch, edits = (values.get(name) for name in ("old", "new", "content", "patch", "edits"))
    if isinstance(content, str):
        return [f"+{row}" for row in content.splitlines()]
    if isinstance(patch, str):
        return [row for row in patch.splitlines() if not row.startswith("*** ") or row[4:].startswith(_SECTIONS)]
    pairs = [(old, new)] if isinstance(old, str) and isinstance(new, str) else []
    several = edits if isinstance(edits, list | tuple) else ()
    pairs += [(str(one.get("old", "")), str(one.get("new", ""))) for one in several if isinstance(one, Mapping)]
    return [row for before, after in pairs for row in _side_by_side(before, after)]


_SECTIONS = ("Add File", "Update File", "Delete File", "Move to")


def _side_by_side(before: str, after: str) -> list[str]:
    """Only the rows that differ, with one around them: an old text often repeats much to be found."""
    from ferrule.support.diff import diff  # for edits

    rows = diff("x", before + "\n", after + "\n").split("\n")
    return [row for row in rows[3:] if row and not row.startswith("@@")]


def tally(rows: list[str]) -> str:
    """How many rows came and went, as `+3 -1`."""
    signs = list(map(diff_sign, rows))
    more, less = (signs.count(sign) for sign in "+-")
    return " ".join(([f"+{more}"] if more else []) + ([f"-{less}"] if less else []))


def tokens(number: int) -> str:
    return f"{number / 1e6:.1f}M" if number >= 1_000_000 else f"{number / 1000:.1f}k" if number >= 1000 else str(number)


def seconds(number: float) -> str:
    if number < 10:
        return f"{number:.1f}s"
    whole = int(number)
    return f"{whole}s" if whole < 60 else f"{whole // 60}m {whole % 60:02}s" if whole < 3600 else f"{whole // 3600}h"


def dollars(cost: float | None) -> str:
    return "" if cost is None else f"${cost:.2f}" if cost >= 0.1 or cost == 0 else f"${cost:.4f}"
