"""Files by a glob pattern: where the search for them begins, and which they are."""

import os
from typing import NamedTuple

from ferrule.core.errors import BadArguments
from ferrule.core.tool import Context
from ferrule.support import ripgrep
from ferrule.support.globs import BadGlob, escape, expand, literal_prefix, matcher, names_hidden, only_end, select
from ferrule.support.threads import Threads
from ferrule.tools.search.program import rg
from ferrule.workspace.paths import Jail

_MANY = 20_000
"""So many names are matched away from the event loop."""


class Start(NamedTuple):
    """Where the matches of a pattern lie."""

    folder: str
    """The real folder that all of them are below."""
    rests: list[str]
    """The patterns, without braces around them, from there on."""


def start(pattern: str, ctx: Context, *, path: str | None = None, case_sensitive: bool = True) -> Start:
    """The pattern is relative to `path`, or else to the workspace. Raises `BadArguments`."""
    try:
        prefix = literal_prefix(os.path.expanduser(pattern))
        whole = [alternative.split("/") for alternative in expand(os.path.expanduser(pattern))]
    except BadGlob as error:
        raise BadArguments(f"{error}") from error
    if any(not any(names) for names in whole):
        raise BadArguments("The pattern is empty. Give one like **/*.py.")
    if any(os.pardir in names for names in whole):
        raise BadArguments(f"The pattern {pattern} leads out of the workspace by `..`.")
    absolute = pattern.startswith(("/", "~"))
    if not absolute and not case_sensitive:
        prefix = ""  # the folders on disk may be written otherwise
    skip = len(prefix.split("/")) if prefix else 0
    if absolute and not prefix.startswith("/"):
        prefix, skip = "/" + prefix, skip + 1
    folder = prefix if path is None else os.path.join(path, prefix)
    return Start(ctx.path(folder or "."), ["/".join(names[skip:]) for names in whole])


async def found(
    begin: Start, ctx: Context, *, case_sensitive: bool = True, ignored: bool = False
) -> tuple[str, list[str]]:
    """The root of the jail that the search began in, and the names of the files that match from there, in order."""
    jail = ctx.need(Jail)
    root = jail.place(begin.folder).root.path
    below = "" if begin.folder == root else os.path.relpath(begin.folder, root)
    above = escape(below) + "/" if below else ""
    patterns = [above + rest for rest in begin.rests]
    hidden = any(map(names_hidden, patterns))
    jail.check(root)
    ends = [] if hidden or not case_sensitive else [only_end(pattern) for pattern in patterns]
    if ends and all(ends):
        return root, sorted(await ripgrep.files(rg(ctx), root, hidden=False, ignored=ignored, ends=ends))
    listed = await ripgrep.files(rg(ctx), root, hidden=hidden, below=below, ignored=ignored)
    choose = _matching if case_sensitive else _matching_in_any_case
    if len(listed) < _MANY:
        return root, choose(patterns, listed)
    return root, await ctx.need(Threads).run(choose, patterns, listed)


def _matching(patterns: list[str], listed: list[str]) -> list[str]:
    names = select(patterns[0], listed)
    for pattern in patterns[1:]:
        names = list({*names, *select(pattern, listed)})
    return sorted(names)


def _matching_in_any_case(patterns: list[str], listed: list[str]) -> list[str]:
    fits = [matcher(pattern, ignore_case=True) for pattern in patterns]
    return sorted(name for name in listed if any(fit(name) for fit in fits))
