"""The output of a command of a skill's, for its instructions."""

import contextlib
import os

from ferrule.core.errors import ToolFailure
from ferrule.core.tool import Context
from ferrule.tools.shell.starting import begin

SECONDS = 120.0
HALF_CHARS = 8_000
"""So much is kept of the beginning and of the end of an output."""


async def output(line: str, ctx: Context, *, cwd: str) -> str:
    """Run a command line, confined as any other is. What went wrong is said in the text: the rest is of use."""
    try:
        begun = await begin(line, ctx, cwd=cwd, head_chars=HALF_CHARS, tail_chars=HALF_CHARS)
    except ToolFailure as error:
        return f"[`{line}` was not run: {error.message}]"
    try:
        why = await begun.running.wait(SECONDS)
        if why != "ended":
            await begun.running.stop()
    except BaseException:
        await begun.abandon()
        raise
    finally:
        if begun.log is not None:
            with contextlib.suppress(OSError):  # mostly it was never made
                os.unlink(begun.log)
    begun.close()
    finished = begun.running.finished()
    text = finished.text.rstrip("\n")
    if why != "ended":
        return f"{text}\n[`{line}` was stopped after {SECONDS:g} seconds.]".lstrip("\n")
    if finished.exit_code:
        return f"{text}\n[`{line}` ended with exit code {finished.exit_code}.]".lstrip("\n")
    return text
