"""Running one hook that is a command line, in the shell and in the workspace.

It gets what it is told as JSON on its standard input, which is a file without a name: whoever does not read it cannot
get stuck. What it started ends with it. It is no tool: it is the user's own program and runs outside the sandbox, so
what it names is not looked for in folders of PATH that a model can write to. A hook that could run code of the
workspace which nobody has approved is more than the user's own program, and runs where commands run.
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from ferrule.core.errors import ToolFailure
from ferrule.execute.hooks.answer import Answer, failure, from_exit
from ferrule.execute.hooks.hook import Hook
from ferrule.support.beneath import describe
from ferrule.support.pipe import Piped, pipe
from ferrule.support.programs import shell
from ferrule.support.roster import Roster
from ferrule.support.sandbox.profile import Wrapped, nothing
from ferrule.workspace.hook_scripts import Look, Looked, rough
from ferrule.workspace.search_path import apart

if TYPE_CHECKING:
    from ferrule.support.starter import Starter
    from ferrule.workspace.confinement import Confinement

_OUTPUT_BYTES = 1 << 20
_LABEL_CHARS = 80
_UNTRUSTED = "was not run: a script that it names is not the one that the user trusts"
_HOW = "A hook that names its script literally, in a trusted project, runs with the user's rights"


class Place(NamedTuple):
    """Where commands run, and what they find there."""

    workspace: str
    environment: Mapping[str, str]
    roster: Roster | None = None
    look: Look | None = None
    """What a command line starts; None for a rough look."""
    walls: "Callable[[], Confinement] | None" = None
    """What confines the session's commands."""
    others: Sequence[str] = ()
    """More folders that commands can write."""


class Start(NamedTuple):
    """How a hook is to be started."""

    confinement: "Confinement | None" = None
    """What confines it; None where it has the user's rights."""
    why: str = ""
    """Why it is confined, as a sentence for the user."""


def prepare(hook: Hook, place: Place) -> Start | Answer:
    """How to start it, or what counts as its answer where it may not be started."""
    looked = Looked(tuple(rough(hook.command, place.workspace))) if place.look is None else place.look(hook.command)
    if hook.pins is not None and _pinned(looked.files) != hook.pins:
        return failure(hook.event, label(hook), _UNTRUSTED)
    why = looked.unclear or (_unapproved(looked, place.workspace) if hook.pins is None else "")
    if not why or place.walls is None:
        return Start()
    confinement = place.walls()
    try:
        if confinement.sandbox is None:
            return Start()
    except ToolFailure as error:
        return failure(hook.event, label(hook), f"was not run, for it has to be confined. {error}".rstrip("."))
    return Start(confinement, f"{label(hook)} runs in the sandbox, as commands do: {why}. {_HOW}.")


def _unapproved(looked: Looked, workspace: str) -> str:
    for path in (*looked.run, *looked.handed):
        return f"{os.path.relpath(path, os.path.realpath(workspace))} is a file of the workspace that nobody approved"
    return ""


async def run(hook: Hook, given: bytes, place: Place, start: Start, more: Mapping[str, str]) -> Answer:
    """What the command answers to `given`; `more` is in its environment, too. Only cancelling it raises."""
    who = label(hook)
    argv = [shell(outside=(place.workspace, *place.others)), "-c", hook.command]
    try:
        if start.confinement is None:
            piped = await _piped(hook, given, place, Wrapped(tuple(argv)), more)
        else:
            piped = await _confined(hook, given, place, await start.confinement.wrap(argv, cwd=place.workspace), more)
    except (OSError, ValueError) as error:  # a UnicodeError is a ValueError
        reason = describe(error) if isinstance(error, OSError) else str(error)
        return failure(hook.event, who, f"could not be started ({reason})")
    except ToolFailure as error:
        return failure(hook.event, who, f"was not run. {error}".rstrip("."))
    if piped.stopped == "time":
        return failure(hook.event, who, f"did not end within {hook.seconds:g} seconds")
    if piped.stopped == "size":
        return failure(hook.event, who, f"printed more than {_OUTPUT_BYTES:,} bytes")
    answer = from_exit(hook.event, who, piped.exit_code, piped.stdout, piped.stderr)
    answer = answer._replace(printed=(piped.exit_code, piped.stdout, piped.stderr))
    if start.confinement is not None and answer.verdict == "allow":
        # Whoever writes what it runs would spare themselves the question.
        return answer._replace(verdict="", reason="")
    return answer


async def _confined(hook: Hook, given: bytes, place: Place, wrapped: Wrapped, more: Mapping[str, str]) -> Piped:
    try:
        return await _piped(hook, given, place, wrapped, more)
    finally:
        for descriptor in wrapped.descriptors:
            os.close(descriptor)
        if wrapped.done is not nothing:
            await asyncio.shield(asyncio.to_thread(wrapped.done))


async def _piped(hook: Hook, given: bytes, place: Place, wrapped: Wrapped, more: Mapping[str, str]) -> Piped:
    return await pipe(
        wrapped.argv,
        given,
        cwd=place.workspace,
        env={**environment(place), **more, **wrapped.env},
        seconds=hook.seconds,
        limit_bytes=_OUTPUT_BYTES,
        roster=place.roster,
        starter=cast("Starter | None", wrapped.starter),
        descriptors=wrapped.descriptors,
    )


def _pinned(files: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Files of the workspace as they are now."""
    return tuple((path, _hash(path)) for path in files)


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
        **apart(place.environment, (place.workspace, *place.others)),
        "CLAUDE_PROJECT_DIR": place.workspace,
        "FERRULE_PROJECT_DIR": place.workspace,
    }


def _called(function: object) -> str:
    name = getattr(function, "__qualname__", None)
    return name if isinstance(name, str) else type(function).__name__
