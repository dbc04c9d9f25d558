"""Load a skill: its instructions, and what it brings along."""

from typing import NamedTuple

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.bringing import Bringing
from ferrule.core.elsewhere import SkillLoaded
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.tool import Context, Tool
from ferrule.tools.skills.bring import asks, bring, fingerprint
from ferrule.tools.skills.output import output
from ferrule.workspace.guarded import Guard
from ferrule.workspace.skill import Skill
from ferrule.workspace.skill_catalog import files_beside
from ferrule.workspace.skill_text import MOST_COMMANDS, Composed, Unquotable, compose, prompt_arguments
from ferrule.workspace.skills import Skills

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
        if _pinned(touches) != _pinned(ctx.touches):
            # What was decided on were other commands, or other tools.
            raise ToolFailure(
                f"The skill {skill.name} changed after it was decided on; nothing of it was run. Load it again.",
                code="skill-changed",
            )
        if skill.server:
            return await _prompted(skill, args, ctx)
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
        composed = _composed(skill, args.args, skills.session)
        touches = [Access.command(line, ctx.path(".")) for line in dict.fromkeys(composed.lines)]
        if skill.layer == "project":
            touches.append(Access.read(skill.folder))
        # Nothing of a project runs before the user trusts it, or says yes to it.
        if asks(skill) or (composed.lines and not skill.trusted):
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


def _composed(skill: Skill, arguments: str, session: str) -> Composed:
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


async def _prompted(skill: Skill, args: SkillArgs, ctx: Context) -> SkillLoaded:
    """A server's prompt. Its text is data: nothing is looked for in it."""
    try:
        given = prompt_arguments(args.args, skill.parameters)
    except ValueError as error:
        raise BadArguments(f"{ctx.param('args')}: {skill.name} needs {error}; write name=value.") from error
    if args.args.strip() and not skill.parameters:
        ctx.note(f"{skill.name} takes no arguments; they were left out.")
    text = await ctx.need(Bringing).prompt(skill.server, skill.prompt, given)
    return SkillLoaded(skill.name, "", text)


def _pinned(touches: tuple[Access, ...]) -> list[tuple[str, str, str]]:
    """The accesses without their modes: a command that is found to only read is marked so."""
    return [(access.kind, access.key, access.folder) for access in touches]
