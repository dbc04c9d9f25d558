"""Load a skill: its instructions, command output, rules, toolbox and servers.

Only the user's own skills and those of a project that the user trusts bring rules, tools, servers or access to
their files.
"""

import contextlib
import hashlib
import json
import os
import re
from types import MappingProxyType
from typing import Any, NamedTuple

from ferrule.core.access import Access, within
from ferrule.core.errors import BadArguments, ConfigError, ToolFailure
from ferrule.core.services import Bringing, SkillLoaded
from ferrule.core.tool import ADDS, Args, Context, Tool
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.system.folder import describe
from ferrule.tools.shell.command import begin
from ferrule.tools.skills import Skill, Skills, Unusable, files_beside
from ferrule.tools.skills.text import MOST_COMMANDS, Composed, Unquotable, compose, prompt_arguments

_PLAIN_PATH = r"/[\w./ @+,=~-]+"
"""Paths that a rule can name as they are: no character of them means anything else there."""


class SkillAdditions(NamedTuple):
    """What has come of it."""

    tools: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()


def needs_approval(skill: Skill) -> bool:
    """Must the user be asked before it brings what it brings? The rules of the user's own skills need no question."""
    return skill.trusted and bool(skill.toolbox or skill.servers or (skill.rules and skill.layer == "project"))


def fingerprint(skill: Skill, skills: Skills) -> str:
    """What the user was asked about: it must be the same when it is brought."""
    told = hashlib.sha256(repr(skill.rules).encode())
    with contextlib.suppress(OSError, Unusable):  # one that cannot be read is told as such when it is brought
        told.update(skills.read_servers(skill).encode())
    if skill.toolbox:
        with contextlib.suppress(OSError), os.scandir(skill.toolbox) as entries:
            for entry in sorted(entries, key=lambda one: one.name):
                status = entry.stat(follow_symlinks=False)
                seen = (entry.name, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns)
                told.update(repr(seen).encode())
    return told.hexdigest()


async def bring(skill: Skill, ctx: Context) -> SkillAdditions:
    """Bring it. What cannot be brought is told in a note; the instructions are of use all the same."""
    if not skill.trusted:
        _leave(skill, ctx)
        return SkillAdditions()
    bringing = ctx.need(Bringing)
    tools: list[str] = []
    _let_read(skill, bringing, ctx)
    rules = bringing.allow(skill.rules) if skill.rules else ()
    for rule in skill.rules:
        if rule not in rules:
            ctx.note(f"The skill's rule {rule} was not understood and allows nothing.")
    try:
        if skill.toolbox:
            tools += await bringing.tools(skill.toolbox)
        if skill.servers:
            tools += await bringing.servers(_servers(skill, ctx), skill.servers)
    except (ToolFailure, ConfigError) as error:
        ctx.note(f"Not all that the skill brings could be used: {error}")
    return SkillAdditions(tuple(tools), rules)


def _leave(skill: Skill, ctx: Context) -> None:
    kinds = (("rules", skill.rules), ("tools", skill.toolbox), ("servers", skill.servers))
    left = [kind for kind, there in kinds if there]
    if left:
        ctx.note(
            f"The skill would bring {' and '.join(left)} of its own. They were left out, for the user does not trust "
            "this project (`ferrule permissions trust`)."
        )


def _let_read(skill: Skill, bringing: Bringing, ctx: Context) -> None:
    """Let the files of a skill of the user's be read: they lie outside the workspace."""
    jail, folder = ctx.need(Jail), skill.folder
    if jail.holds(folder) or not re.fullmatch(_PLAIN_PATH, folder):
        return
    above = (os.path.realpath(os.path.expanduser("~")), jail.folder, os.path.realpath(skill.place))
    if not any(within(one, folder) for one in above):  # a link to the home folder must not open all of it
        bringing.allow([f"Read(/{folder}/**)"])


def _servers(skill: Skill, ctx: Context) -> dict[str, Any]:
    """The servers of its `mcp.json`: a map from names, or one under `mcpServers`."""
    try:
        said = json.loads(ctx.need(Skills).read_servers(skill))
    except (OSError, Unusable, ValueError, RecursionError) as error:
        why = describe(error) if isinstance(error, OSError) else str(error)
        raise ToolFailure(f"{skill.servers} cannot be read: {why}.") from error
    servers = said.get("mcpServers", said) if isinstance(said, dict) else None
    if not isinstance(servers, dict):
        raise ToolFailure(f"{skill.servers} is no map from names to servers.")
    return servers


SECONDS = 120.0
HALF_CHARS = 8_000
"""So much is kept of the beginning and of the end of an output."""


async def output(line: str, ctx: Context, *, cwd: str) -> str:
    """Run a command line, confined as any other is. What went wrong is said in the text: the rest is of use."""
    try:
        begun = await begin(line, ctx, cwd=cwd, head_chars=HALF_CHARS, tail_chars=HALF_CHARS)
    except ToolFailure as error:
        return f"[`{line}` was not run: {error.message}]"
    try:
        why = await begun.running.wait(SECONDS)
        if why != "ended":
            await begun.running.stop()
    except BaseException:
        await begun.abandon()
        raise
    finally:
        if begun.log is not None:
            with contextlib.suppress(OSError):  # mostly it was never made
                os.unlink(begun.log)
    begun.close()
    finished = begun.running.result()
    text = finished.text.rstrip("\n")
    if why != "ended":
        return f"{text}\n[`{line}` was stopped after {SECONDS:g} seconds.]".lstrip("\n")
    if finished.exit_code:
        return f"{text}\n[`{line}` ended with exit code {finished.exit_code}.]".lstrip("\n")
    return text


MOST_ARGUMENTS_CHARS = 32_768


class SkillArgs(Args, frozen=True, kw_only=True):
    skill: str
    """Its name; a slash before it is dropped."""
    args: str = ""
    """What it is to work on, as one would type it behind its name."""


class _Ready(NamedTuple):
    """A skill, its instructions, and what loading it touches."""

    skill: Skill
    composed: Composed
    touches: tuple[Access, ...]


class UseSkill(Tool[SkillArgs, SkillLoaded]):
    """Its commands are declared one by one and judged like any others, in the form in which they run."""

    name = "skill"
    args = SkillArgs
    title = "Load a skill"
    hints = MappingProxyType({**ADDS, "openWorldHint": True})
    timed = False
    """Each of its commands has a limit of its own."""
    words = "Load the instructions of a skill by its name, with arguments for it."

    def __init__(self, *, by_user: bool = False) -> None:
        """`by_user`: a person asks for the skill, and not a model."""
        self._by_user = by_user

    def access(self, args: SkillArgs, ctx: Context) -> tuple[Access, ...]:
        return self._ready(args, ctx).touches

    async def run(self, args: SkillArgs, ctx: Context) -> SkillLoaded:
        skill, composed, touches = self._ready(args, ctx)
        if _access_keys(touches) != _access_keys(ctx.touches):
            # What was decided on were other commands, or other tools.
            raise ToolFailure(
                f"The skill {skill.name} changed after it was decided on; nothing of it was run. Load it again.",
                code="skill-changed",
            )
        if skill.server:
            return await _load_prompt(skill, args, ctx)
        outputs = [await output(line, ctx, cwd=ctx.path(".")) for line in composed.lines]
        brought = await bring(skill, ctx)
        if skill.unobeyed:
            ctx.note(f"What the skill says about {', '.join(skill.unobeyed)} is not obeyed here.")
        return SkillLoaded(
            skill.name,
            skill.folder,
            composed.text(outputs),
            brought.tools,
            brought.rules,
            files_beside(skill),
        )

    def _ready(self, args: SkillArgs, ctx: Context) -> _Ready:
        if len(args.args) > MOST_ARGUMENTS_CHARS or "\0" in args.args:
            raise BadArguments(
                f"{ctx.param('args')}: must be a text of at most {MOST_ARGUMENTS_CHARS:,} characters without NUL."
            )
        skills = ctx.need(Skills)
        skill = skills.get(args.skill)
        self._check(skill)
        if skill.server:
            return _Ready(skill, Composed(()), (Access.server(skill.server, mode="read"),))
        ctx.need(Guard).check_read(skill.file)
        composed = _compose_skill(skill, args.args, skills.session)
        touches = [Access.command(line, ctx.path(".")) for line in dict.fromkeys(composed.lines)]
        if skill.layer == "project":
            touches.append(Access.read(skill.folder))
        # Nothing of a project runs before the user trusts it, or says yes to it.
        if needs_approval(skill) or (composed.lines and not skill.trusted):
            pinned = fingerprint(skill, skills)
            touches.append(Access.server(f"skill:{skill.name}")._replace(folder=pinned))
        return _Ready(skill, composed, tuple(touches))

    def _check(self, skill: Skill) -> None:
        """Raise where this skill is not for whoever asks for it."""
        if self._by_user and not skill.for_user:
            raise ToolFailure(f"The skill {skill.name} is only for the model to load.", code="not-invocable")
        if not self._by_user and not skill.for_model:
            raise ToolFailure(
                f"The skill {skill.name} is only for the user to start (disable-model-invocation). Ask the user to.",
                code="not-invocable",
            )


def _compose_skill(skill: Skill, arguments: str, session: str) -> Composed:
    try:
        composed = compose(skill.body, arguments=arguments, session=session, folder=skill.folder)
    except Unquotable as error:
        raise ToolFailure(
            f"The skill {skill.name} puts its arguments into `{error}`, where they cannot be quoted with certainty. "
            "Load it without arguments, or ask the user to simplify that command.",
            code="unquotable",
        ) from error
    if len(composed.lines) > MOST_COMMANDS:
        raise ToolFailure(
            f"The skill {skill.name} has {len(composed.lines)} commands; {MOST_COMMANDS} is the most.", code="bad-skill"
        )
    return composed


async def _load_prompt(skill: Skill, args: SkillArgs, ctx: Context) -> SkillLoaded:
    """A server's prompt. Its text is data: nothing is looked for in it."""
    try:
        given = prompt_arguments(args.args, skill.parameters)
    except ValueError as error:
        raise BadArguments(f"{ctx.param('args')}: {skill.name} needs {error}; write name=value.") from error
    if args.args.strip() and not skill.parameters:
        ctx.note(f"{skill.name} takes no arguments; they were left out.")
    text = await ctx.need(Bringing).prompt(skill.server, skill.prompt, given)
    return SkillLoaded(skill.name, "", text)


def _access_keys(touches: tuple[Access, ...]) -> list[tuple[str, str, str]]:
    """The accesses without their modes: a command that is found to only read is marked so."""
    return [(access.kind, access.key, access.folder) for access in touches]
