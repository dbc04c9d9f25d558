"""Find files by name."""

import os

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.errors import BadArguments
from ferrule.core.outcomes import Found
from ferrule.core.tool import Context, Tool
from ferrule.support import ripgrep
from ferrule.support.globs import BadGlob, escape, expand, literal_prefix, names_hidden, select
from ferrule.support.threads import Threads
from ferrule.tools.search.program import rg
from ferrule.workspace.paths import Jail

_MANY = 20_000
"""So many names are matched away from the event loop."""


class GlobArgs(Args, frozen=True, kw_only=True):
    pattern: str
    limit: int = 1000
    offset: int = 0


class Glob(Tool[GlobArgs, Found]):
    """Paths that match a glob pattern, in alphabetical order, so that pages fit together."""

    name = "glob"
    args = GlobArgs

    def access(self, args: GlobArgs, ctx: Context) -> tuple[Access, ...]:
        return (Access.read(_start(args.pattern, ctx)[0]),)

    async def run(self, args: GlobArgs, ctx: Context) -> Found:
        least = (("limit", args.limit, 1), ("offset", args.offset, 0))
        wrong = [f"{ctx.param(name)}: must be at least {low}." for name, value, low in least if value < low]
        if wrong:
            raise BadArguments("\n".join(wrong))
        folder, rests = _start(args.pattern, ctx)
        root = ctx.need(Jail).place(folder).root.path
        below = "" if folder == root else os.path.relpath(folder, root)
        above = escape(below) + "/" if below else ""
        patterns = [above + rest for rest in rests]
        hidden = any(map(names_hidden, patterns))
        ctx.need(Jail).check(root)
        listed = await ripgrep.files(rg(ctx), root, hidden=hidden, below=below)
        if len(listed) < _MANY:
            names = _matching(patterns, listed, hidden=hidden)
        else:
            names = await ctx.need(Threads).run(_matching, patterns, listed, hidden=hidden)
        page = names[args.offset : args.offset + args.limit]
        start = root.rstrip(os.sep) + os.sep
        return Found(tuple([start + name for name in page]), max(0, len(names) - args.offset - len(page)))


def _matching(patterns: list[str], listed: list[str], *, hidden: bool) -> list[str]:
    names = select(patterns[0], listed, hidden=hidden)
    for pattern in patterns[1:]:
        names = list({*names, *select(pattern, listed, hidden=hidden)})
    return sorted(names)


def _start(pattern: str, ctx: Context) -> tuple[str, list[str]]:
    """The real folder below which all matches lie, and the patterns, without braces around them, from there on."""
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
    skip = len(prefix.split("/")) if prefix else 0
    if absolute and not prefix.startswith("/"):
        prefix, skip = "/" + prefix, skip + 1
    return ctx.path(prefix or "."), ["/".join(names[skip:]) for names in whole]
