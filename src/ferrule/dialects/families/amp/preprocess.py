"""What Amp does to a command line before it runs."""

import os

from ferrule.core.face import Values
from ferrule.core.tool import Context

_LIMIT_CHARS = 65_536
"""A longer command runs as it is: reading it would hold up everything else."""


def command(values: Values, ctx: Context) -> Values:
    """A shell call as it will run: no trailing `&`, and a leading `cd folder &&` as the working directory."""
    if len(values["command"]) > _LIMIT_CHARS:
        return values
    from ferrule.support.command import split_cd, strip_background  # only commands pay for it

    line = strip_background(values["command"])
    cwd = values.get("cwd") or "."
    moved = split_cd(line)
    if moved is not None:
        folder = os.path.join(ctx.path(cwd), os.path.expanduser(moved[0]))
        if os.path.isdir(folder):
            cwd, line = folder, moved[1]
    return {**values, "command": line, "cwd": cwd}
