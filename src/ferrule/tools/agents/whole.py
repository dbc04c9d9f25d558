"""The set of files of a change of many: what a caller names, or what a planner answers, read strictly."""

import os
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.tool import Context
from ferrule.tools.search.patterns import found, start
from ferrule.workspace.guarded import Guard
from ferrule.workspace.paths import Jail

MOST_FILES = 50
_MOST_MATCHES = 1_000
_WILD = frozenset("*?[{")
_FENCE = re.compile(r"^```json[ \t]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)
_ROW = re.compile(r"(?:[-*] )?`?([^`:\n]+?)`?: (\S.*)")
_SHOWN_CHARS = 400


class Share(NamedTuple):
    """One file of the set: its real path, and what is to become of it."""

    path: str
    change: str


class _Row(msgspec.Struct, forbid_unknown_fields=True):
    path: str
    change: str


async def named(files: Sequence[str], ctx: Context) -> list[Share]:
    """The files that a caller names, by path or by glob; a path may be that of a file that is still to be made."""
    shares = []
    guard = ctx.need(Guard)
    for name in files:
        if not _WILD.intersection(name) or os.path.lexists(ctx.path(name)):
            shares.append(Share(_checked(name, ctx), ""))
            continue
        begin = start(name, ctx)
        ctx.need(Jail).place(begin.folder)
        root, names = await found(begin, ctx)
        if len(names) > _MOST_MATCHES:
            raise _too_many(len(names))
        every = [ctx.path(os.path.join(root, one)) for one in names]
        open_ones = [path for path in every if not guard.secret(path) and not guard.protected(path)]
        if not every:
            raise BadArguments(f"{ctx.param('files')}: no file matches {name}.")
        if len(open_ones) < len(every):
            ctx.note(f"{len(every) - len(open_ones)} files that match {name} are secret or protected; they stay out.")
        shares += (Share(_checked(path, ctx), "") for path in open_ones)
    return _united(shares)


def planned(answer: str, ctx: Context) -> list[Share]:
    """The set that a planner has answered with: a JSON block, or else a `path: what to change` on every line."""
    blocks = _FENCE.findall(answer)
    text = blocks[-1] if blocks else answer.strip()
    if blocks or text.startswith("["):
        try:
            rows = msgspec.json.decode(text, type=list[_Row])
        except msgspec.DecodeError as error:
            raise _unread(f"its JSON is wrong ({error})", answer) from error
    else:
        rows = []
        for line in filter(None, map(str.strip, text.split("\n"))):
            match = _ROW.fullmatch(line)
            if match is None:
                raise _unread(f"this line names no file: {line[:100]}", answer)
            rows.append(_Row(*match.groups()))
    for row in rows:
        if not row.path.strip() or not row.change.strip():
            raise _unread("a file has no path, or nothing to change", answer)
    return _united(Share(_checked(row.path.strip(), ctx), row.change.strip()) for row in rows)


def _united(shares: Iterable[Share]) -> list[Share]:
    """Each file once, with all that is to become of it."""
    changes: dict[str, list[str]] = {}
    for share in shares:
        changes.setdefault(share.path, []).append(share.change)
    if len(changes) > MOST_FILES:
        raise _too_many(len(changes))
    return [Share(path, "\n".join(dict.fromkeys(filter(None, said)))) for path, said in changes.items()]


def _checked(name: str, ctx: Context) -> str:
    """The real path of a file that may be changed. What the rules say is decided when it is edited."""
    path = ctx.path(name)
    ctx.need(Jail).place(path)
    guard = ctx.need(Guard)
    for one in {path, ctx.need(Jail).spelled(name)}:
        guard.check_write(one)
    if os.path.isdir(path):
        raise ToolFailure(
            f"{path} is a folder. Name files, or a pattern such as {name}/**.", code="is-folder", path=path
        )
    return path


def _too_many(count: int) -> ToolFailure:
    return ToolFailure(
        f"These are {count:,} files, and {MOST_FILES} is the most at once; nothing was changed. Name fewer, and do the "
        "rest afterwards.",
        code="too-many-files",
        count=count,
    )


def _unread(why: str, answer: str) -> ToolFailure:
    said = " ".join(answer.split())[:_SHOWN_CHARS]
    return ToolFailure(
        f"The plan could not be read: {why}. Nothing was changed. Name the files yourself, or try again. "
        f"It said: {said}",
        code="bad-plan",
    )
