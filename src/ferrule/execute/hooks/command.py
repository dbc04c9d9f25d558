"""Running one hook that is a command line, in the shell and in the workspace.

It gets what it is told as JSON on its standard input, which is a file without a name: whoever does not read it cannot
get stuck. What it started ends with it. It is no tool: it is the user's own program and runs outside the sandbox, so
what it names is not looked for in folders of PATH that a model can write to.
"""

from collections.abc import Mapping
from typing import NamedTuple

from ferrule.execute.hooks.answer import Answer, failure, from_exit
from ferrule.execute.hooks.hook import Hook
from ferrule.support.beneath import describe
from ferrule.support.pipe import pipe
from ferrule.support.programs import shell
from ferrule.support.roster import Roster
from ferrule.workspace.hook_scripts import scripts
from ferrule.workspace.search_path import apart

_OUTPUT_BYTES = 1 << 20
_LABEL_CHARS = 80


class Place(NamedTuple):
    """Where commands run, and what they find there."""

    workspace: str
    environment: Mapping[str, str]
    roster: Roster | None = None


async def run(hook: Hook, given: bytes, place: Place, more: Mapping[str, str]) -> Answer:
    """What the command answers to `given`; `more` is in its environment, too. Only cancelling it raises."""
    who = label(hook)
    if hook.pins is not None and pinned(hook.command, place.workspace) != hook.pins:
        return failure(hook.event, who, "was not run: a script that it names is not the one that the user trusts")
    try:
        piped = await pipe(
            [shell(outside=(place.workspace,)), "-c", hook.command],
            given,
            cwd=place.workspace,
            env={**environment(place), **more},
            seconds=hook.seconds,
            limit_bytes=_OUTPUT_BYTES,
            roster=place.roster,
        )
    except (OSError, ValueError) as error:  # a UnicodeError is a ValueError
        reason = describe(error) if isinstance(error, OSError) else str(error)
        return failure(hook.event, who, f"could not be started ({reason})")
    if piped.stopped == "time":
        return failure(hook.event, who, f"did not end within {hook.seconds:g} seconds")
    if piped.stopped == "size":
        return failure(hook.event, who, f"printed more than {_OUTPUT_BYTES:,} bytes")
    return from_exit(hook.event, who, piped.exit_code, piped.stdout, piped.stderr)


def pinned(command: str, workspace: str) -> tuple[tuple[str, str], ...]:
    """The scripts of the workspace that a command line names, as they are now."""
    return tuple((path, _hash(path)) for path in scripts(command, workspace))


def _hash(path: str) -> str:
    import hashlib  # for hooks of a project

    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def label(hook: Hook) -> str:
    """A hook in words that begin a sentence."""
    text = " ".join(hook.command.split()) if hook.function is None else _called(hook.function)
    text = text if len(text) <= _LABEL_CHARS else text[:_LABEL_CHARS].rstrip() + " …"
    return f"The {hook.event} hook `{text}`" + (f" of {hook.source}" if hook.source else "")


def environment(place: Place) -> dict[str, str]:
    """The given one with the project's folder, and a PATH without what is relative or lies in the workspace."""
    return {
        **apart(place.environment, (place.workspace,)),
        "CLAUDE_PROJECT_DIR": place.workspace,
        "FERRULE_PROJECT_DIR": place.workspace,
    }


def _called(function: object) -> str:
    name = getattr(function, "__qualname__", None)
    return name if isinstance(name, str) else type(function).__name__
