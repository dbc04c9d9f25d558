"""Find files by name."""

import os

from ferrule.core.access import Access, within
from ferrule.core.args import Args
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.outcomes import Found
from ferrule.core.tool import Context, Tool
from ferrule.support.threads import Threads
from ferrule.tools.search.confirm import is_shaky, there
from ferrule.tools.search.patterns import Start, found, start
from ferrule.workspace.guarded import Guard
from ferrule.workspace.paths import Jail


class GlobArgs(Args, frozen=True, kw_only=True):
    pattern: str
    path: str | None = None
    """The folder that the pattern is relative to; the workspace where none is given."""
    limit: int = 1000
    offset: int = 0
    by_time: bool = False
    """Files changed last come first."""
    case_sensitive: bool = True
    ignored: bool = False
    """Find also what `.gitignore` hides?"""
    relative: bool = False
    """Paths from that folder, and not absolute ones."""


class Glob(Tool[GlobArgs, Found]):
    """Paths that match a glob pattern, in alphabetical order, so that pages fit together."""

    name = "glob"
    args = GlobArgs

    def access(self, args: GlobArgs, ctx: Context) -> tuple[Access, ...]:
        return (Access.read(_start(args, ctx).folder),)

    async def run(self, args: GlobArgs, ctx: Context) -> Found:
        least = (("limit", args.limit, 1), ("offset", args.offset, 0))
        wrong = [f"{ctx.param(name)}: must be at least {low}." for name, value, low in least if value < low]
        if wrong:
            raise BadArguments("\n".join(wrong))
        folder = ctx.need(Jail).folder if args.path is None else _folder(args.path, ctx)
        begin = _start(args, ctx)
        root, names = await found(begin, ctx, case_sensitive=args.case_sensitive, ignored=args.ignored)
        if is_shaky(ctx):
            names = await ctx.need(Threads).run(there, names, root, ctx)
        if args.by_time:
            from ferrule.support.newest import newest_first  # only this order needs it

            names = await ctx.need(Threads).run(newest_first, root, names)
        denied = ctx.need(Guard).denied
        if denied is not None:
            told = [name for name in names if not denied(os.path.join(root, name), "read")]
            if left_out := len(names) - len(told):
                ctx.note(
                    f"{left_out} file{' that a rule denies is' if left_out == 1 else 's that rules deny are'} left out."
                )
            names = told
        page = names[args.offset : args.offset + args.limit]
        head = root.rstrip(os.sep) + os.sep
        paths = [head + name for name in page]
        if args.relative:
            paths = [os.path.relpath(path, folder) if within(path, folder) else path for path in paths]
        return Found(tuple(paths), max(0, len(names) - args.offset - len(page)), folder)


def _start(args: GlobArgs, ctx: Context) -> Start:
    return start(args.pattern, ctx, path=args.path, case_sensitive=args.case_sensitive)


def _folder(path: str, ctx: Context) -> str:
    real = ctx.path(path)
    if not os.path.isdir(real):
        if os.path.lexists(real):
            raise ToolFailure(f"{real} is not a folder.", code="not-a-folder", path=real)
        raise ToolFailure(f"{real} is not there.", code="not-found", path=real)
    return real
