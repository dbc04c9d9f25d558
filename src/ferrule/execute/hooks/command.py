"""Running one hook that is a command line, in the shell and in the workspace.

It gets what it is told as JSON on its standard input, which is a file without a name: whoever does not read it cannot
get stuck. What it started ends with it. It is no tool: it is the user's own program and runs outside the sandbox, so
what it names is not looked for in folders of PATH that a model can write to.
"""

import os
from collections.abc import Mapping
from typing import NamedTuple

from ferrule.core.access import within
from ferrule.execute.hooks.answer import Answer, failure, from_exit
from ferrule.execute.hooks.hook import Hook
from ferrule.support.beneath import describe
from ferrule.support.pipe import pipe
from ferrule.support.programs import shell
from ferrule.support.roster import Roster

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


def label(hook: Hook) -> str:
    """A hook in words that begin a sentence."""
    text = " ".join(hook.command.split()) if hook.function is None else _called(hook.function)
    text = text if len(text) <= _LABEL_CHARS else text[:_LABEL_CHARS].rstrip() + " …"
    return f"The {hook.event} hook `{text}`" + (f" of {hook.source}" if hook.source else "")


def environment(place: Place) -> dict[str, str]:
    """The given one with the project's folder, and a PATH without what is relative or lies in the workspace."""
    roots = {os.path.abspath(place.workspace), os.path.realpath(place.workspace)}
    folders = place.environment.get("PATH", os.defpath).split(os.pathsep)
    kept = [folder for folder in folders if os.path.isabs(folder) and not _inside(folder, roots)]
    return {
        **place.environment,
        "PATH": os.pathsep.join(kept) or os.defpath,
        "CLAUDE_PROJECT_DIR": place.workspace,
        "FERRULE_PROJECT_DIR": place.workspace,
    }


def _inside(folder: str, roots: set[str]) -> bool:
    return any(within(way, root) for way in (os.path.normpath(folder), os.path.realpath(folder)) for root in roots)


def _called(function: object) -> str:
    name = getattr(function, "__qualname__", None)
    return name if isinstance(name, str) else type(function).__name__
