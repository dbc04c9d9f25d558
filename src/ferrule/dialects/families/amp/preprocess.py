"""How Amp arranges arguments, and what it does to a command line before it runs."""

import os
from typing import Any

from ferrule.core.errors import BadArguments
from ferrule.core.tool import Context

_LIMIT_CHARS = 65_536
"""A longer command runs as it is: reading it would hold up everything else."""


def command(values: dict[str, Any], ctx: Context) -> dict[str, Any]:
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


def span(values: dict[str, Any]) -> dict[str, Any]:
    """`read_range`, first and last line, as where to begin and how many."""
    if "span" not in values:
        return values
    first, last = values["span"]
    rest = {key: value for key, value in values.items() if key != "span"}
    start = max(1, first)
    if last < start:
        raise BadArguments(f"read_range: the end {last} lies before the start {first}.")
    return {**rest, "offset": start, "limit": last - start + 1}


def as_span(values: dict[str, Any]) -> dict[str, Any]:
    """The inverse."""
    rest = {key: value for key, value in values.items() if key not in ("offset", "limit")}
    if values.get("offset") is None and values.get("limit") is None:
        return rest
    first = values.get("offset") or 1
    return {**rest, "span": [first, first + (values.get("limit") or 500) - 1]}


def one_place(values: dict[str, Any]) -> dict[str, Any]:
    """A search has a path or a glob."""
    if values.get("path") is not None and values.get("glob") is not None:
        raise BadArguments("path: cannot be used together with glob; give one of them.")
    return values
