"""Search the contents of files."""

import asyncio
import functools
import os
import re
from collections.abc import Callable
from typing import Literal, TypeVar

from ferrule.core.access import Access
from ferrule.core.content import Hit, Hits, Matching
from ferrule.core.errors import BadArguments, ToolFailure, near
from ferrule.core.tool import READS, Args, Context, Tool
from ferrule.files import search
from ferrule.files.globs import BadGlob, expand
from ferrule.files.guard import READABLE, Guard
from ferrule.files.jail import Jail
from ferrule.files.search import age, newest_first
from ferrule.system import Threads
from ferrule.system.folder import describe
from ferrule.tools.search import confirm_hits, is_shaky, rg, there

MOST = 20_000
"""Lines or files, where no limit is wanted and where more are."""
_BROAD_BYTES, _WANTED_BYTES = 40_000, 55_000
"""About 10,000 tokens of a search that nobody has limited; of one that somebody has, what every result may hold."""
_LEAD_BYTES = 14
"""What stands around the path and the text of a line, at least: its number, and marks between them."""
_MANY = 2_000
"""So many paths are looked at once more on a thread: it takes a while."""
_ODD = re.compile(r"[^ -~]|:|[. ](?:/|\Z)|\.(?:pem|key|npmrc)\Z|(?:\A|/)credentials(?:\.[^/]*)?\Z", re.IGNORECASE)
"""In paths that a lax file system may take for others, where the globs that ripgrep gets compare only what is written;
and in those whose content, or ending, decides."""


_T = TypeVar("_T")


class GrepArgs(Args, frozen=True, kw_only=True):
    pattern: str
    path: str | None = None
    """A file, or the folder to search in."""
    glob: str | None = None
    exclude: str | None = None
    """A glob of files to leave out."""
    kind: str | None = None
    """One of ripgrep's types of files."""
    mode: Literal["lines", "files", "count"] = "lines"
    case_sensitive: bool = False
    literal: bool = False
    multiline: bool = False
    """May a match reach over line ends? Each of its lines is a hit then."""
    only_matching: bool = False
    """Is each matching part of a line a hit, and not the line? Then it is those that are counted and limited."""
    before: int = 0
    after: int = 0
    per_file: int = 10
    """Matching lines of one file; 0 for all of them."""
    limit: int = 100
    """Matching lines, or files; 0 for as many as there are, within reason."""
    offset: int = 0
    """How many of those are skipped first."""
    numbers: bool = True
    """Are the numbers of the lines wanted?"""
    line_chars: int = 200
    cut_bytes: int = _WANTED_BYTES
    """Of a larger result the family leaves the middle out: nobody can say then how many lines are shown."""
    ignored: bool = False
    """Search also what `.gitignore` hides?"""
    by_time: bool = False
    """Files changed last come first, or their lines."""


class Grep(Tool[GrepArgs, Hits | Matching]):
    """Lines that match an expression, or their files, by path and line; never from a file that is secret."""

    name = "grep"
    args = GrepArgs
    title = "Search in files"
    hints = READS

    def access(self, args: GrepArgs, ctx: Context) -> tuple[Access, ...]:
        return (Access.read(ctx.path(args.path or ".")),)

    async def run(self, args: GrepArgs, ctx: Context) -> Hits | Matching:
        _check(args, ctx)
        jail, guard = ctx.need(Jail), ctx.need(Guard)
        real = ctx.path(args.path or ".")
        if not os.path.exists(real):
            raise ToolFailure(f"{real} is not there.", code="not-found", path=real)
        if not os.access(real, os.R_OK):
            raise ToolFailure(f"EACCES: permission denied: {real}", path=real)
        jail.check(real)
        root = real if os.path.isdir(real) else os.path.dirname(real)
        query = search.ContentQuery(
            args.pattern,
            path=None if real == root else os.path.basename(real),
            glob=args.glob,
            leave_out=args.exclude,
            kind=args.kind,
            ignore_case=not args.case_sensitive,
            literal=args.literal,
            multiline=args.multiline,
            only_matching=args.only_matching,
            ignored=args.ignored,
            exclude=guard.search_exclusions(),
            spare=READABLE,
            allowed=_build_filter(ctx, root),
        )
        try:
            return await _both(args, ctx, root, query)
        except search.BadSearchPattern as error:
            raise ToolFailure(f"{error}", code="bad-pattern") from error
        except search.UnknownKind as error:
            raise BadArguments(await _unknown_kind(args.kind or "", ctx)) from error
        except BadGlob as error:
            raise BadArguments(f"{ctx.param(_bad_glob(args))}: {error}") from error
        except OSError as error:
            raise ToolFailure(f"{describe(error)}: {real}", path=real) from error


def _check(args: GrepArgs, ctx: Context) -> None:
    wrong = [] if args.pattern else [f"{ctx.param('pattern')}: is empty; give the text or expression to look for."]
    least = {"before": 0, "after": 0, "per_file": 0, "limit": 0, "offset": 0, "line_chars": 1}
    wrong += [f"{ctx.param(name)}: must be at least {low}." for name, low in least.items() if getattr(args, name) < low]
    if wrong:
        raise BadArguments("\n".join(wrong))


async def _lines(args: GrepArgs, ctx: Context, root: str, query: search.ContentQuery) -> Hits:
    most = min(args.limit or MOST, MOST)
    found = await search.search(
        rg(ctx),
        root,
        query,
        per_file=min(args.per_file, MOST),
        most=args.offset + most,
        offset=args.offset,
        before=min(args.before, MOST),
        after=min(args.after, MOST),
        # As many bytes as the characters can have, and the line's end.
        line_bytes=4 * min(args.line_chars, MOST) + 8,
        rank=_newest_first(root) if args.by_time else None,
    )
    shown = _build_renderer(ctx, root)
    sure = found.lines
    if is_shaky(ctx):
        sure = await ctx.need(Threads).run(confirm_hits, found.lines, root, ctx, parts=args.only_matching)
    paths = ((shown(hit.path), hit) for hit in sure)
    lines = tuple(
        Hit(path, hit.line, _short(hit.text, args.line_chars), hit.context) for path, hit in paths if path is not None
    )
    lines = _within(lines, args, lambda hit: _size(hit.path) + _size(hit.text))
    things = "matches" if args.only_matching else "lines"
    is_cut = sum(_size(hit.path) + _size(hit.text) + _LEAD_BYTES for hit in lines) > args.cut_bytes
    _tell(args, ctx, sum(not hit.context for hit in lines), found.total, things, is_cut=is_cut)
    if found.capped:
        what = "matches" if args.only_matching else "matching lines"
        ctx.note(f"{found.capped} files have more than {args.per_file} {what}; only those are shown of each.")
    return Hits(lines, found.total, args.numbers)


async def _files(args: GrepArgs, ctx: Context, root: str, query: search.ContentQuery) -> Matching:
    found = await search.find_matching_files(rg(ctx), root, query, counted=args.mode == "count")
    if is_shaky(ctx):
        found = {name: found[name] for name in await ctx.need(Threads).run(there, found, root, ctx)}
    if args.by_time:
        names = await ctx.need(Threads).run(newest_first, root, found)
    else:
        names = sorted(found)
    page = names[args.offset : args.offset + min(args.limit or MOST, MOST)]
    shown = _build_renderer(ctx, root)

    def told() -> tuple[tuple[str, int], ...]:
        paths = ((shown(os.fsencode(name).decode(errors="replace")), found[name]) for name in page)
        return tuple((path, number) for path, number in paths if path is not None)

    files = await ctx.need(Threads).run(told) if len(page) > _MANY else told()
    files = _within(files, args, lambda file: _size(file[0]))
    _tell(args, ctx, len(files), len(found), "files")
    return Matching(files, len(found), sum(found.values()), parts=args.only_matching and args.mode == "count")


def _within(found: tuple[_T, ...], args: GrepArgs, size: Callable[[_T], int]) -> tuple[_T, ...]:
    """As many as a result may hold, so that what is said of their number is true."""
    room = _WANTED_BYTES if args.limit else _BROAD_BYTES
    for at, one in enumerate(found):
        room -= size(one) + _LEAD_BYTES
        if room < 0:
            return found[: max(at, 1)]
    return found


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def _newest_first(root: str) -> Callable[[str], int]:
    return lambda name: age(os.path.join(root, name))


def _tell(args: GrepArgs, ctx: Context, shown: int, total: int, things: str, *, is_cut: bool = False) -> None:
    """Say which part of what was found this is."""
    if total and args.offset >= total:
        ctx.note(f"{ctx.param('offset')}: {args.offset} lies past the end; there are {total} {things}.")
    elif is_cut:
        # Its note on the cut tells where all of them are.
        which = f"{args.offset + 1} to {args.offset + shown}" if args.offset else f"the first {shown}"
        ctx.note(f"Of {total} {things} found this is of {which}, without the middle. Narrow the pattern or the search.")
    elif args.offset and shown:
        ctx.note(f"Showing {args.offset + 1} to {args.offset + shown} of {total} {things} found.")
    elif total > shown:
        ctx.note(f"Showing {shown} of {total} {things} found. Narrow the pattern or the search.")


async def _both(args: GrepArgs, ctx: Context, root: str, query: search.ContentQuery) -> Hits | Matching:
    """What is found, with a note on what was not searched; both are looked for at the same time."""
    found: Hits | Matching
    counting = asyncio.create_task(_left_out(ctx, root, query))
    try:
        found = await (_lines if args.mode == "lines" else _files)(args, ctx, root, query)
        left_out = await counting
    finally:
        counting.cancel()
    if left_out:
        ctx.note(f"{left_out} secret file{' was' if left_out == 1 else 's were'} not searched.")
    return found


async def _left_out(ctx: Context, root: str, query: search.ContentQuery) -> int:
    """How many secret files would have been searched. Whether the pattern is in them is nobody's business."""
    if query.path is not None:
        return 0
    guard = ctx.need(Guard)
    try:
        named = await search.among(rg(ctx), root, query, guard.search_names())
    except (BadGlob, OSError):  # the search itself says so
        return 0
    count = functools.partial(sum, (guard.secret(os.path.join(root, name)) for name in named))
    return await ctx.need(Threads).run(count) if len(named) > _MANY else count()


def _build_filter(ctx: Context, root: str) -> Callable[[str], bool]:
    """May a path from the root of the search be told of?"""
    guard, jail = ctx.need(Guard), ctx.need(Jail)
    # From the top, ripgrep has kept out of whatever is secret by name. Asking once more costs as much as reading it.
    kept_out = bool(guard.search_exclusions()) and jail.from_root(root) == "" and not guard.has_home_place(root)
    return lambda path: (kept_out and not _ODD.search(path)) or not guard.secret(os.path.join(root, path))


def _build_renderer(ctx: Context, root: str) -> Callable[[str], str | None]:
    """Paths from the root of the search, as the caller sees them; None for what nobody may see after all."""
    guard, jail = ctx.need(Guard), ctx.need(Jail)

    @functools.lru_cache(maxsize=1)
    def shown(path: str) -> str | None:
        real = os.path.join(root, path)
        return None if guard.secret(real) else jail.display_path(real)

    return shown


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + "..."


def _bad_glob(args: GrepArgs) -> str:
    try:
        expand(args.glob or "")
    except BadGlob:
        return "glob"
    return "exclude"


async def _unknown_kind(kind: str, ctx: Context) -> str:

    known = await search.kinds(rg(ctx))
    ending = "*." + kind.rpartition(".")[2]
    meant = list(dict.fromkeys([name for name, globs in known.items() if ending in globs] + near(kind, known)))[:3]
    hint = f" Did you mean {' or '.join(meant)}?" if meant else " Use a glob of file names instead."
    return f"{ctx.param('kind')}: there is no file type {kind!r}.{hint}"
