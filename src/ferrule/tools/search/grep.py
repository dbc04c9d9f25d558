"""Search the contents of files."""

import os

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.outcomes import Hit, Hits
from ferrule.core.tool import Context, Tool
from ferrule.support import ripgrep
from ferrule.support.beneath import describe
from ferrule.support.globs import BadGlob
from ferrule.tools.search.program import rg
from ferrule.workspace.guarded import READABLE, Guard
from ferrule.workspace.paths import Jail


class GrepArgs(Args, frozen=True, kw_only=True):
    pattern: str
    path: str | None = None
    glob: str | None = None
    case_sensitive: bool = False
    literal: bool = False
    per_file: int = 10
    limit: int = 100
    line_chars: int = 200


class Grep(Tool[GrepArgs, Hits]):
    """Lines that match an expression, by path and line, from files that are neither ignored nor secret."""

    name = "grep"
    args = GrepArgs

    def access(self, args: GrepArgs, ctx: Context) -> tuple[Access, ...]:
        return (Access.read(ctx.path(args.path or ".")),)

    async def run(self, args: GrepArgs, ctx: Context) -> Hits:
        if args.path is not None and args.glob is not None:
            raise BadArguments(
                f"{ctx.param('path')}: cannot be used together with {ctx.param('glob')}; give one of them."
            )
        if not args.pattern:
            raise BadArguments("pattern: is empty; give the text or expression to look for.")
        jail, guard = ctx.need(Jail), ctx.need(Guard)
        real = ctx.path(args.path or ".")
        if not os.path.exists(real):
            raise ToolFailure(f"{real} is not there.", code="not-found", path=real)
        if not os.access(real, os.R_OK):
            raise ToolFailure(f"EACCES: permission denied: {real}", path=real)
        jail.check(real)
        root = real if os.path.isdir(real) else os.path.dirname(real)
        try:
            hits = await ripgrep.search(
                rg(ctx),
                root,
                args.pattern,
                path=None if real == root else os.path.basename(real),
                glob=args.glob,
                ignore_case=not args.case_sensitive,
                literal=args.literal,
                per_file=args.per_file,
                limit=args.limit,
                exclude=guard.search_exclusions(),
                spare=READABLE,
            )
        except ripgrep.BadPattern as error:
            raise ToolFailure(f"{error}", code="bad-pattern") from error
        except BadGlob as error:
            raise BadArguments(f"{ctx.param('glob')}: {error}") from error
        except OSError as error:
            raise ToolFailure(f"{describe(error)}: {real}", path=real) from error
        lines = tuple(
            Hit(jail.shown(path), hit.line, _short(hit.text, args.line_chars))
            for hit in hits.lines
            if not guard.secret(path := os.path.join(root, hit.path))
        )
        if hits.total > len(lines) == len(hits.lines):  # what was held back is not counted aloud
            ctx.note(f"Showing {len(lines)} of {hits.total} lines found. Narrow the pattern or the search.")
        if hits.capped:
            ctx.note(
                f"{hits.capped} files have more than {args.per_file} matching lines; only those are shown of each."
            )
        return Hits(lines, hits.total)


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + "..."
