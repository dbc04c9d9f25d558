"""Keep the plan of a session, enter and leave plan mode, and manage plan files.

In plan mode the session only reads, and writes its plan. It leaves plan mode when the user approves the plan.
"""

import os
import stat
import time
from collections.abc import Callable
from types import MappingProxyType

from ferrule.core.access import MODE, Access, within
from ferrule.core.content import Planned, Step, StepStatus
from ferrule.core.errors import BadArguments, ConfigError, ToolFailure
from ferrule.core.services import PlanApproved, PlanEntered, Planning, Wish
from ferrule.core.tool import ADDS, Args, Context, Tool
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.files.ledger import Ledger
from ferrule.files.transaction import Contents, Writer
from ferrule.system import Threads


class Steps:
    """One plan per session, replaced as a whole."""

    def __init__(self, on_change: Callable[[Planned], object] = lambda _: None) -> None:
        self.plan = Planned(())
        self._on_change = on_change

    def replace(self, plan: Planned) -> Planned:
        self.plan = plan
        self._on_change(plan)
        return plan


MOST_STEPS = 200
MOST_CHARS = 2_000


class StepArgs(Args, frozen=True, kw_only=True):
    text: str
    status: StepStatus = "pending"
    priority: str = ""


class PlanArgs(Args, frozen=True, kw_only=True):
    steps: tuple[StepArgs, ...]
    explanation: str = ""


class Plan(Tool[PlanArgs, Planned]):
    """The whole plan, each time: what is sent replaces what was."""

    name = "plan"
    args = PlanArgs
    title = "Keep a plan"
    hints = ADDS

    def access(self, args: PlanArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - the plan is in memory
        return ()

    async def run(self, args: PlanArgs, ctx: Context) -> Planned:
        if len(args.steps) > MOST_STEPS:
            raise BadArguments(f"{ctx.param('steps')}: has {len(args.steps)} steps; {MOST_STEPS} is the most.")
        wrong = [
            f"{ctx.param('steps')}[{at}]: {fault}."
            for at, step in enumerate(args.steps)
            if (fault := _fault(step.text))
        ]
        if wrong:
            raise BadArguments("\n".join(wrong))
        running = sum(step.status == "in_progress" for step in args.steps)
        if running > 1:
            ctx.note(f"{running} steps are in progress; a plan is easier to follow with one at a time.")
        steps = tuple(Step(step.text, step.status, step.priority) for step in args.steps)
        planned = ctx.need(Steps).replace(Planned(steps, args.explanation))
        done = sum(step.status == "completed" for step in steps)
        ctx.progress(f"{done} of {len(steps)} steps are done")
        return planned


def _fault(text: str) -> str:
    if not text.strip():
        return "the step is empty"
    return f"the step has {len(text)} characters; {MOST_CHARS} is the most" if len(text) > MOST_CHARS else ""


_REASON_CHARS = 200


class EnterPlanArgs(Args, frozen=True, kw_only=True):
    reason: str = ""
    """What is to be planned, in a few words: the plan's file is called after it."""


class EnterPlan(Tool[EnterPlanArgs, PlanEntered]):
    """It only tightens, so nobody is asked. Calls after it in the same message are decided on anew."""

    name = "enter_plan"
    args = EnterPlanArgs
    title = "Begin to plan"
    hints = ADDS

    def access(self, args: EnterPlanArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - it is about all calls
        return (MODE,)

    async def run(self, args: EnterPlanArgs, ctx: Context) -> PlanEntered:
        planning = ctx.need(Planning)
        try:
            entered = planning.enter(args.reason[:_REASON_CHARS], by="model")
        except ConfigError as error:
            raise ToolFailure(f"{error} Ask the user to change that setting.", code="no-plan-folder") from error
        ctx.note(planning.reminder())
        return entered


OWN_FOLDER = os.path.join(".ferrule", "plans")
"""The one folder among the protected ones that plans may be written to."""
PLAN_CHARS = 50_000
"""A plan is shown whole to whoever approves it."""
_SLUG_CHARS = 40


class PlanFolder:
    """The folder of plans. Nothing is made before the model writes its plan."""

    def __init__(self, jail: Jail, guard: Guard, folder: str) -> None:
        self._jail = jail
        self._guard = guard
        self._folder = folder

    def path(self) -> str:
        """The folder, real. Raises `ConfigError` where it lies outside, behind a link, or is one that is obeyed."""
        workspace = self._jail.folder
        spelled = os.path.normpath(os.path.join(workspace, os.path.expanduser(self._folder)))
        name = self._folder
        if not self._folder or "\0" in self._folder or not within(spelled, workspace):
            raise ConfigError(f"plan.folder is {name!r}, outside the workspace. Give a folder in the workspace.")
        if os.path.realpath(spelled) != spelled:
            raise ConfigError(f"plan.folder is {name!r}, which leads through a link. Give the folder itself.")
        if os.path.lexists(spelled) and not os.path.isdir(spelled):
            raise ConfigError(f"plan.folder is {name!r}, which is a file. Give a folder in the workspace.")
        example = os.path.join(spelled, "plan.md")
        is_own = within(spelled, os.path.join(workspace, OWN_FOLDER))
        if self._guard.secret(example) or (self._guard.is_protected(example) and not is_own):
            raise ConfigError(f"plan.folder is {name!r}, where files are secret or obeyed. Give another folder.")
        return spelled

    def fresh(self, about: str = "") -> str:
        """The path of a plan that is to be written: a name by the day and what it is about, that nobody has yet."""
        folder, day = self.path(), time.strftime("%Y-%m-%d")
        slug = _slug(about)
        path = os.path.join(folder, f"{day}-{slug}.md") if slug else ""
        while not path or os.path.lexists(path):
            extra = os.urandom(3).hex()
            path = os.path.join(folder, "-".join(part for part in (day, slug, extra) if part) + ".md")
        return path

    def resolve_plan(self, file: str) -> str:
        """The real path of a plan in the folder, by its name or path. Raises `ToolFailure` for anything else."""
        folder = self.path()
        tail = os.path.basename(os.path.normpath(file)) if file.strip() else ""
        for spelled in dict.fromkeys((file, os.path.join(folder, file), os.path.join(folder, tail))):
            path = os.path.normpath(os.path.join(self._jail.folder, spelled))
            if os.path.dirname(path) == folder and path.endswith(".md") and "\0" not in path:
                return path
        shown = self._jail.display_path(folder)
        raise ToolFailure(f"{file} is no plan: give the name of a `.md` file in {shown}.", code="no-plan")


def read_plan(jail: Jail, path: str) -> str:
    """The text of a plan, through no link. Raises `ToolFailure` where there is none, or more than can be shown."""
    shown = jail.display_path(path)
    try:
        place = jail.place(path)
        with place.folder() as folder, open(folder.open(place.name), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ToolFailure(f"{shown} is no regular file. Write the plan to it first.", code="no-plan", path=path)
            raw = file.read(4 * PLAN_CHARS + 1)
    except FileNotFoundError:
        why = f"There is no plan yet: write it to {shown}, or give its text as `plan`, then try again."
        raise ToolFailure(why, code="no-plan", path=path) from None
    except OSError as error:
        raise ToolFailure(f"The plan {shown} cannot be read: {error.strerror}.", code="no-plan", path=path) from error
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        long = error.reason == "unexpected end of data" and len(raw) > 4 * PLAN_CHARS
        why = "has too much text" if long else "is not UTF-8 text"
        raise ToolFailure(f"The plan {shown} {why}. Write it again.", code="no-plan", path=path) from None
    if not text.strip():
        raise ToolFailure(f"The plan {shown} is empty. Write the plan to it first.", code="no-plan", path=path)
    if len(text) > PLAN_CHARS:
        raise ToolFailure(
            f"The plan {shown} has more than {PLAN_CHARS:,} characters, too many for somebody to approve. Shorten it.",
            code="plan-too-long",
            path=path,
        )
    return text


def unfit(text: str) -> str:
    """Why a text can be no plan, as the end of a sentence; empty where it can."""
    if not text.strip():
        return "it is empty"
    return f"it has more than {PLAN_CHARS:,} characters" if len(text) > PLAN_CHARS else ""


def _slug(about: str) -> str:
    """Some letters and digits of a text, for a name: in lower case, with hyphens between words."""
    words = "".join(char if char.isascii() and char.isalnum() else " " for char in about.lower()).split()
    slug = ""
    for word in words:
        longer = f"{slug}-{word}" if slug else word[:_SLUG_CHARS]
        if len(longer) > _SLUG_CHARS:
            break
        slug = longer
    return slug


MOST_WISHES = 20
EXIT_PLAN_CHARS = 200


class WishArgs(Args, frozen=True, kw_only=True):
    tool: str
    prompt: str


class ExitPlanArgs(Args, frozen=True, kw_only=True):
    file: str = ""
    """The plan's file, where the family names it; else the one that was announced."""
    plan: str = ""
    """The plan itself, where the caller has not written it to its file."""
    wishes: tuple[WishArgs, ...] = ()
    """What carrying out the plan needs to be allowed."""
    remote: bool = False
    """Does the caller want the plan sent elsewhere?"""


class ExitPlan(Tool[ExitPlanArgs, PlanApproved]):
    """What the user sees is what is approved: a plan that changes meanwhile is not."""

    name = "exit_plan"
    args = ExitPlanArgs
    title = "Have the plan approved"
    hints = MappingProxyType({**ADDS, "idempotentHint": False})
    timed = False

    def access(self, args: ExitPlanArgs, ctx: Context) -> tuple[Access, ...]:
        planning = ctx.need(Planning)
        if not planning.is_on:
            return ()
        path = planning.readable(args.file)
        # It waits for whoever still writes the plan.
        return (Access.write(path) if args.plan.strip() else Access.read(path),)

    async def run(self, args: ExitPlanArgs, ctx: Context) -> PlanApproved:
        if len(args.wishes) > MOST_WISHES:
            raise BadArguments(f"{ctx.param('wishes')}: has {len(args.wishes)} members; {MOST_WISHES} is the most.")
        wrong = [at for at, wish in enumerate(args.wishes) if not 0 < len(wish.prompt.strip()) <= EXIT_PLAN_CHARS]
        if wrong:
            name = ctx.param("wishes")
            said = f"say what it needs, in at most {EXIT_PLAN_CHARS} characters."
            raise BadArguments("\n".join(f"{name}[{at}]: {said}" for at in wrong))
        planning = ctx.need(Planning)
        wishes = tuple(Wish(wish.tool, " ".join(wish.prompt.split())) for wish in args.wishes)
        path = planning.readable(args.file)
        if args.plan.strip():
            await ctx.need(Threads).finish(_write, path, args.plan, ctx)
        ctx.progress("The plan waits for the user to approve it.")
        approved = await planning.propose(path, wishes, ctx)
        if args.remote:
            ctx.note("The plan was sent nowhere: there is no remote session. It stays in the workspace.")
        ledger = ctx.need(Ledger)
        is_known = ledger.knows(path) and not ledger.stale(path, approved.text.encode(errors="surrogatepass"))
        return approved._replace(is_known=is_known)


def _write(path: str, text: str, ctx: Context) -> None:
    """Put the plan into its file, in the place of what the session has seen there. Raises `ToolFailure`."""
    if len(text) > PLAN_CHARS:
        raise ToolFailure(
            f"The plan has {len(text):,} characters; {PLAN_CHARS:,} is the most that somebody can approve. Shorten it.",
            code="plan-too-long",
            path=path,
        )
    raw = text.encode() if text.endswith("\n") else f"{text}\n".encode()
    ledger = ctx.need(Ledger)

    def plan(found: Contents) -> Contents:
        there = found[path]
        if there is not None and there != raw and (not ledger.knows(path) or ledger.stale(path, there)):
            raise ToolFailure(
                f"{path} has a text that you have not seen, perhaps the user's own; nothing was written, and plan mode "
                "stays on. Read it, then give the whole plan again.",
                code="plan-changed",
                path=path,
            )
        return {path: raw}

    written = ctx.need(Writer).apply([path], plan, kind="write", call_id=ctx.call_id)
    ctx.track(path)
    ledger.saw(path, raw)
    for note in written.notes:
        ctx.note(note)
