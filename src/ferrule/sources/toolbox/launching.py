"""Starting a toolbox's programs: what they find in their environment, and what they say when they are described.

They get the user's environment without what looks secret, as commands do; `shell.keep_env` names what stays. Amp hands
all of it over, but a program that a model calls can print what it was given.
"""

import os
from collections.abc import Callable, Mapping, Sequence

from ferrule.core.errors import ToolFailure
from ferrule.settings import Settings
from ferrule.sources.program import run_program
from ferrule.support.environment import quiet_environment
from ferrule.support.roster import Roster
from ferrule.support.sandbox.profile import Wrapped
from ferrule.workspace.search_path import apart

DESCRIBE_BYTES = 1 << 20
_TAIL_CHARS = 2_000


class FailedError(Exception):
    """A program did not describe itself; the sentence says why."""


def environment(
    settings: Settings, action: str, *, cwd: str, roots: Sequence[str] = (), more: Mapping[str, str] | None = None
) -> dict[str, str]:
    """What a toolbox's program finds in its environment; nothing in `roots` is looked for by its name."""
    env = apart(quiet_environment(os.environ, keep=settings.shell.keep_env), roots)
    own = {"TOOLBOX_ACTION": action, "AGENT": "amp", "CLAUDECODE": "1", "PWD": cwd}
    return {**env, **own, **(more or {})}


async def said(
    path: str,
    settings: Settings,
    roster: Roster | None,
    roots: Sequence[str] = (),
    confine: Callable[[Sequence[str], str], Wrapped | None] | None = None,
) -> str:
    """What a program says when it is described; `confine` holds it to reading if commands can be confined.

    Raises `FailedError`.
    """
    # Nobody has asked for this run yet: the workspace has no part in it.
    folder, seconds = os.path.dirname(path), settings.tools.describe_seconds
    try:
        wrapped = (confine([path], folder) if confine is not None else None) or Wrapped((path,))
        ran = await run_program(
            wrapped.argv,
            ctx=None,
            cwd=folder,
            env={**environment(settings, "describe", cwd=folder, roots=roots), **wrapped.env},
            seconds=seconds,
            roster=roster,
            apart=True,
            head_chars=DESCRIBE_BYTES,
            tail_chars=_TAIL_CHARS,
            limit_bytes=DESCRIBE_BYTES,
            wrapped=wrapped,
        )
    except ToolFailure as error:
        raise FailedError(
            f"{error.message} Its first line must name what runs it, as `#!/usr/bin/env bash`."
        ) from error
    if ran.flooded or ran.missing_chars:
        raise FailedError(f"It wrote more than {DESCRIBE_BYTES:,} bytes when it was described.")
    if ran.timed_out:
        raise FailedError(f"It did not describe itself within {seconds:g} seconds.")
    if ran.exit_code != 0:
        why = last_line(ran.errors) or last_line(ran.output)
        raise FailedError(f"It ended with exit code {ran.exit_code} when it was described{f': {why}' if why else '.'}")
    return ran.output


def last_line(text: str) -> str:
    """The last line that says something, as far as one reads it."""
    return next((line.strip()[:300] for line in reversed(text.splitlines()) if line.strip()), "")
