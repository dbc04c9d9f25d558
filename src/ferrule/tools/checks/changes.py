"""What has been changed, for those who review it: told by git, whose commands are declared and confined as any are."""

import os
import re
import shlex
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from ferrule.core.access import Access, within
from ferrule.core.errors import ToolFailure
from ferrule.core.tool import Context
from ferrule.support.threads import Threads
from ferrule.tools.shell.starting import begin
from ferrule.workspace.paths import Jail

UNCOMMITTED = "uncommitted changes"
_DIFF = "git --no-pager diff --no-color --no-ext-diff --no-textconv --relative {} --"
_UNTRACKED = "git ls-files --others --exclude-standard"
_REVISIONS = r"[\w@][\w./~^@{}+-]*(?:\.\.\.?[\w@][\w./~^@{}+-]*)?"
_MOST_CHARS = 2_000_000
_SECONDS = 60.0
_ENVIRONMENT: Mapping[str, str] = MappingProxyType(
    {
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_CONFIG_COUNT": "3",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": "false",
        "GIT_CONFIG_KEY_1": "core.quotePath",
        "GIT_CONFIG_VALUE_1": "false",
        "GIT_CONFIG_KEY_2": "diff.noprefix",
        "GIT_CONFIG_VALUE_2": "false",
    }
)


class Change(NamedTuple):
    """One file that was changed."""

    path: str
    """Absolute."""
    diff: str = ""
    """Empty for a file that git does not know yet."""


class Changes(NamedTuple):
    """All of them; or why they are not known."""

    files: tuple[Change, ...] = ()
    why_unknown: str = ""

    def within(self, folder: str, *without: str) -> tuple[Change, ...]:
        """Those in a folder, but for some folders below it."""
        inside = [one for one in self.files if within(one.path, folder)]
        return tuple(one for one in inside if not any(within(one.path, inner) for inner in without))


def lines(about: str) -> tuple[str, str]:
    """The command lines that tell of the changes, and of the files that are new."""
    revision = about if about != UNCOMMITTED and re.fullmatch(_REVISIONS, about) else "HEAD"
    return _DIFF.format(shlex.quote(revision)), _UNTRACKED


def looks(about: str, ctx: Context) -> list[Access]:
    """The commands as accesses; none where there is no repository."""
    folder = ctx.need(Jail).folder
    return [Access.command(line, folder) for line in lines(about)] if _has_repository(folder) else []


async def changes(about: str, ctx: Context) -> Changes:
    """What was changed in the workspace."""
    folder = ctx.need(Jail).folder
    if not _has_repository(folder):
        return Changes(why_unknown="The folder is in no git repository.")
    let_in = {(access.key, access.folder) for access in ctx.touches if access.kind == "command"}
    diff, untracked = lines(about)
    if not {(diff, folder), (untracked, folder)} <= let_in:
        return Changes(why_unknown="Git was not let look.")
    text, why = await _said(diff, folder, ctx)
    new, _ = await _said(untracked, folder, ctx)
    if why:
        return Changes(why_unknown=why)
    return await ctx.need(Threads).run(_changes, text, new, folder)


def _has_repository(folder: str) -> bool:
    while not os.path.lexists(os.path.join(folder, ".git")):
        if os.path.dirname(folder) == folder:
            return False
        folder = os.path.dirname(folder)
    return True


async def _said(line: str, folder: str, ctx: Context) -> tuple[str, str]:
    """What git answers, and why it does not."""
    try:
        begun = await begin(
            line,
            ctx,
            cwd=folder,
            head_chars=_MOST_CHARS,
            tail_chars=0,
            apart=True,
            env=_ENVIRONMENT,
            tell=lambda _: None,
        )
    except ToolFailure as failure:
        return "", failure.message
    try:
        why = await begun.running.wait(_SECONDS)
        if why != "ended":
            await begun.running.stop()
    except BaseException:
        await begun.abandon()
        raise
    finally:
        if begun.log is not None and os.path.lexists(begun.log):
            os.unlink(begun.log)
    begun.close()
    finished = begun.running.finished()
    if why != "ended":
        return "", f"Git took more than {_SECONDS:g} seconds."
    if finished.exit_code:
        last = finished.errors.strip().splitlines()[-1:] or ["no reason given"]
        return "", f"Git does not tell what was changed: {last[0][:200]}"
    return finished.text, ""


def _changes(text: str, new: str, folder: str) -> Changes:
    found: dict[str, Change] = {}
    for part in re.split(r"(?m)^(?=diff --git )", text):
        if (named := _name(part)) is not None:
            path = os.path.join(folder, named)
            found[path] = Change(path, part)
    for name in new.splitlines():
        if name and not name.startswith('"'):  # a name that git has to quote is nobody's source
            path = os.path.join(folder, name)
            found.setdefault(path, Change(path))
    return Changes(tuple(found.values()))


def _name(part: str) -> str | None:
    """The file that a part of a diff is about."""
    for pattern in (r"(?m)^\+\+\+ b/(.*?)\t?$", r"(?m)^--- a/(.*?)\t?$", r"\Adiff --git a/(.*) b/\1$"):
        found = re.search(pattern, part.partition("\n@@")[0] if "^" in pattern else part.partition("\n")[0])
        if found is not None:
            return found[1]
    return None
