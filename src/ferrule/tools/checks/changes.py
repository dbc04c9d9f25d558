"""What has been changed, for those who review it: told by git, whose commands are declared and confined as any are."""

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ferrule.core.access import Access, within
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.tool import Context
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.git.environment import calm_git_environment, top_of
from ferrule.system.environment import quiet_environment
from ferrule.system.folder import is_regular, read_all
from ferrule.system.threads import Threads
from ferrule.tools.shell.command import begin

UNCOMMITTED = "uncommitted changes"
_DIFF = "git --no-pager diff --no-color --no-ext-diff --no-textconv --ignore-submodules=dirty --relative {} --"
_UNTRACKED = "git ls-files --others --exclude-standard"
_REVISION = r"[\w@](?:[\w./~^@!+#=%,-]|[@^]\{[^{}\n]{0,200}\})*"
_REVISIONS = rf"{_REVISION}(?:\.\.\.?(?:{_REVISION})?)?|\.\.\.?{_REVISION}"
_SETTINGS = (("core.quotePath", "false"), ("diff.noprefix", "false"), ("diff.mnemonicPrefix", "false"))
"""What it says is read, whatever the user likes to see."""
_UNKNOWN = (
    "bad revision",
    "unknown revision",
    "ambiguous argument",
    "Invalid symmetric",
    "no merge base",
    "bad object",
)
"""What git says of a revision that it does not know."""
_BEFORE = (r"(?m)^--- a/(.*?)\t?$", r"(?m)^(?:rename|copy) from (.*)$")
_NOW = (
    r"(?m)^\+\+\+ b/(.*?)\t?$",
    r"(?m)^--- a/(.*?)\t?$",
    r"(?m)^rename to (.*)$",
    r"\Adiff --git a/(.*) b/\1$",
)
_MOST_CHARS = 2_000_000
_SECONDS = 60.0
_MOST_LOOKED_BYTES = 1 << 20
"""Of a changed file, when it is looked at for what a diff does not show."""


class ChangedFile(NamedTuple):
    """One file that was changed."""

    path: str
    """Absolute."""
    diff: str = ""
    """Empty for a file that git does not know yet, and for one that would not be seen whole in it."""


class ChangedFiles(NamedTuple):
    """All of them; or why they are not known."""

    files: tuple[ChangedFile, ...] = ()
    why_unknown: str = ""

    def within(self, folder: str, *without: str) -> tuple[ChangedFile, ...]:
        """Those in a folder, but for some folders below it."""
        inside = [one for one in self.files if within(one.path, folder)]
        return tuple(one for one in inside if not any(within(one.path, inner) for inner in without))


def lines(about: str) -> tuple[str, ...]:
    """The command lines that tell of the changes, and of the files that are new where all that is uncommitted counts.

    Raises `BadArguments` for what can be no revision.
    """
    if about == UNCOMMITTED:
        return _DIFF.format("HEAD"), _UNTRACKED
    if not re.fullmatch(_REVISIONS, about):
        raise _unknown(about)
    return (_DIFF.format(shlex.quote(about)),)


def _unknown(about: str) -> BadArguments:
    return BadArguments(
        f"git knows no revision {about[:100]!r}. Name one, or a range such as main...HEAD; without it the uncommitted "
        "changes are reviewed."
    )


def command_accesses(about: str, ctx: Context) -> list[Access]:
    """The commands as accesses; none where there is no repository."""
    folder = ctx.need(Jail).folder
    asked = lines(about)
    if not top_of(folder) and about != UNCOMMITTED:
        raise BadArguments(f"{folder} is in no git repository, so there is no {about[:100]!r} to review.")
    return [Access.command(line, folder) for line in asked] if top_of(folder) else []


async def changes(about: str, ctx: Context) -> ChangedFiles:
    """What was changed in the workspace. Raises `BadArguments` where git does not know the revisions."""
    folder = ctx.need(Jail).folder
    if not top_of(folder):
        return ChangedFiles(why_unknown="The folder is in no git repository.")
    let_in = {(access.key, access.folder) for access in ctx.touches if access.kind == "command"}
    diff, *untracked = lines(about)
    if not {(line, folder) for line in (diff, *untracked)} <= let_in:
        return ChangedFiles(why_unknown="Git was not let look.")
    try:
        env = {"LC_ALL": "C", **await calm_git_environment([folder], ctx, quiet_environment(os.environ), _SETTINGS)}
    except ToolFailure as failure:
        return ChangedFiles(why_unknown=failure.message)
    text, why = await _run_git(diff, folder, env, ctx)
    new = "".join([(await _run_git(line, folder, env, ctx))[0] for line in untracked])
    if why and about != UNCOMMITTED and any(word in why for word in _UNKNOWN):
        raise _unknown(about)
    if why:
        return ChangedFiles(why_unknown=why)
    return await ctx.need(Threads).run(_changes, text, new, ctx.need(Jail), ctx.need(Guard))


async def _run_git(line: str, folder: str, env: Mapping[str, str], ctx: Context) -> tuple[str, str]:
    """What git answers, and why it does not."""
    try:
        begun = await begin(
            line,
            ctx,
            cwd=folder,
            head_chars=_MOST_CHARS,
            tail_chars=0,
            apart=True,
            env=env,
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
    finished = begun.running.result()
    if why != "ended":
        return "", f"Git took more than {_SECONDS:g} seconds."
    if finished.exit_code:
        last = finished.errors.strip().splitlines()[-1:] or ["no reason given"]
        return "", f"Git does not tell what was changed: {last[0][:200]}"
    return finished.text, ""


def _changes(text: str, new: str, jail: Jail, guard: Guard) -> ChangedFiles:
    found: dict[str, ChangedFile] = {}
    folder = jail.folder
    for part in re.split(r"(?m)^(?=diff --git )", text):
        if (named := _name(part)) is not None:
            path = os.path.join(folder, named)
            # What it was called before counts as well: lines of it are shown.
            before = os.path.join(folder, _name(part, _BEFORE) or named)
            if _may_be_seen(before, guard):
                found[path] = ChangedFile(path, "" if _hides(path, jail) else part)
    for name in new.splitlines():
        if name and not name.startswith('"'):  # a name that git has to quote is nobody's source
            path = os.path.join(folder, name)
            found.setdefault(path, ChangedFile(path))
    return ChangedFiles(tuple(one for one in found.values() if _may_be_seen(one.path, guard)))


def _may_be_seen(path: str, guard: Guard) -> bool:
    """Is it no secret? What no tool reads to a model is not shown to a reviewer either, as it is now or as it was."""
    try:
        guard.check_read(path)
    except ToolFailure:
        return False
    return True


def _hides(path: str, jail: Jail) -> bool:
    """Has the file returns within its lines? To many languages they end a line, and on a screen they draw over it."""
    try:
        with jail.place(jail.real(path)).folder() as folder:
            descriptor = folder.open(os.path.basename(path))
            try:
                raw = read_all(descriptor, _MOST_LOOKED_BYTES) if is_regular(descriptor) else b""
            finally:
                os.close(descriptor)
    except (OSError, ToolFailure):  # it is gone, which is a change as well
        return False
    return re.search(rb"\r(?!\n|\Z)", raw) is not None


def _name(part: str, patterns: Sequence[str] = _NOW) -> str | None:
    """The file that a part of a diff is about."""
    for pattern in patterns:
        found = re.search(pattern, part.partition("\n@@")[0] if "^" in pattern else part.partition("\n")[0])
        if found is not None:
            return found[1]
    return None
