"""Starting a toolbox's programs: what they find in their environment, and how long they may take to describe themselves.

They get the user's environment without what looks secret, as commands do; `shell.keep_env` names what stays. Amp hands
all of it over, but a program that a model calls can print what it was given.
"""

import asyncio
import os
from collections.abc import Mapping

from ferrule.settings import Settings
from ferrule.support.beneath import describe
from ferrule.support.environment import quiet_environment
from ferrule.support.roster import Roster
from ferrule.support.running import Finished, Launch, start

DESCRIBE_BYTES = 1 << 20
_TAIL_CHARS = 2_000
_GRACE_SECONDS = 0.2


class FailedError(Exception):
    """A program did not describe itself; the sentence says why."""


def environment(settings: Settings, action: str, *, cwd: str, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """What a toolbox's program finds in its environment."""
    env = quiet_environment(os.environ, keep=settings.shell.keep_env)
    # Where PATH names no full path, it names something in the workspace.
    paths = [path for path in env.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(path)]
    own = {"TOOLBOX_ACTION": action, "AGENT": "amp", "CLAUDECODE": "1", "PATH": os.pathsep.join(paths), "PWD": cwd}
    return {**env, **own, **(more or {})}


async def said(path: str, settings: Settings, roster: Roster | None) -> str:
    """What a program says when it is described. Raises `FailedError`."""
    folder = os.path.dirname(path)
    launch = Launch(
        argv=[path],
        # Nobody has asked for this run yet: the workspace has no part in it.
        cwd=folder,
        env=environment(settings, "describe", cwd=folder),
        apart=True,
        head_chars=DESCRIBE_BYTES,
        tail_chars=_TAIL_CHARS,
        roster=roster,
        command=path,
        grace_seconds=_GRACE_SECONDS,
    )
    flooded = False

    def look(_: str) -> None:
        nonlocal flooded
        if running.finished().total_bytes > DESCRIBE_BYTES:
            flooded = True
            raise FailedError(f"It wrote more than {DESCRIBE_BYTES:,} bytes when it was described.")

    try:
        running = start(launch, on_output=look)
    except OSError as error:
        raise FailedError(cannot_start(error)) from error
    seconds = settings.tools.describe_seconds
    try:
        if await running.wait(seconds) == "time":
            await running.stop(0, timed_out=True)
            raise FailedError(f"It did not describe itself within {seconds:g} seconds.")
    except BaseException:
        running.abandon()
        await running.stop(0)
        raise
    finally:
        running.close()
    return _text(running.finished())


def cannot_start(error: OSError) -> str:
    """Why a program cannot be started, and what to do."""
    import errno  # only for what does not start

    if error.errno == errno.ENOEXEC:
        return "It cannot be started: its first line must name what runs it, such as `#!/usr/bin/env bash`."
    if error.errno == errno.ENOENT:
        return "It cannot be started: it, or the program that its first line names, is not there."
    return f"It cannot be started: {describe(error)}."


def _text(finished: Finished) -> str:
    if finished.exit_code != 0:
        why = last_line(finished.errors) or last_line(finished.text)
        said = f": {why}" if why else "."
        raise FailedError(f"It ended with exit code {finished.exit_code} when it was described{said}")
    if finished.total_bytes > DESCRIBE_BYTES:
        raise FailedError(f"It wrote more than {DESCRIBE_BYTES:,} bytes when it was described.")
    return finished.text


def last_line(text: str) -> str:
    """The last line that says something, as far as one reads it."""
    return next((line.strip()[:300] for line in reversed(text.splitlines()) if line.strip()), "")
