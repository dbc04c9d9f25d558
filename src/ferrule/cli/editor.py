"""What a person changes in a question before they say yes, a command or a plan, and the editor they do it in."""

import contextlib
import os
import shlex
import subprocess
import tempfile
from typing import NamedTuple

from ferrule.permissions.asker import Answer, Question

_EXCHANGED = ("call", "outside", "folder")
"""Questions about a call that has not begun: it may be made with another command."""


class Draft(NamedTuple):
    """What can be changed."""

    text: str
    suffix: str
    """What an editor knows it by."""
    param: str = ""
    """Under which name the call has the command; empty for a plan."""


def draft(question: Question) -> Draft | None:
    """The command or the plan that the question is about; None where it is about something else."""
    if question.kind == "plan":
        return Draft(str(question.input.get("plan", "")), ".md")
    command = question.input.get("command")
    if question.kind not in _EXCHANGED or not isinstance(command, str) or not command.strip():
        return None
    if question.kind == "outside" and not question.input.get("outside"):
        return None  # it came up while the command ran
    if [access.key for access in question.touches if access.kind == "command"] != [command]:
        return None
    given = question.input if question.given is None else question.given
    param = next((name for name, value in given.items() if _command_of(value) == command), "")
    return Draft(command, ".sh", param) if param else None


def approved(question: Question, made: Draft, text: str) -> Answer:
    """A yes to what was made of it."""
    if not made.param:
        return Answer(allow=True, input={"plan": text})
    given = dict(question.input if question.given is None else question.given)
    before = given[made.param]
    given[made.param] = text if isinstance(before, str) else [*before[:-1], text]
    return Answer(allow=True, input=given)


def _command_of(value: object) -> str | None:
    """A command line as a call may have it: as a text, or as the last word of a shell's own."""
    if isinstance(value, list | tuple) and len(value) == 3 and value[1] in {"-c", "-lc"}:
        return value[2] if isinstance(value[2], str) else None
    return value if isinstance(value, str) else None


def editor() -> list[str]:
    """The command that opens the user's editor; empty where none is set."""
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    with contextlib.suppress(ValueError):
        return shlex.split(chosen)
    return []


def edit(text: str, suffix: str, command: list[str]) -> str | None:
    """The text as the user left it in the editor; None where the editor failed. It waits for the editor.

    Raises: OSError.
    """
    with tempfile.TemporaryDirectory(prefix="ferrule-edit-") as folder:
        path = os.path.join(folder, f"text{suffix}")
        with open(path, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        if subprocess.run([*command, path], check=False).returncode != 0:
            return None
        with open(path, encoding="utf-8", errors="replace") as file:
            edited = file.read()
    return edited if text.endswith("\n") else edited.removesuffix("\n")
