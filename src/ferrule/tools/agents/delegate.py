"""Give work to a subagent, or to several side by side."""

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.delegated import Delegated, LeftAgent, Shared, subagents
from ferrule.core.errors import BadArguments
from ferrule.core.subagents import Job, Subagent, Subagents
from ferrule.core.tool import Context, Tool
from ferrule.settings import Settings
from ferrule.tools.agents.batch import Task, check, share, told, worker
from ferrule.tools.agents.kinds import MOST_PROMPT_CHARS, USUAL, agents
from ferrule.tools.agents.toolsets import check_names, granted, tell_lacking
from ferrule.workspace.agent_file import INHERIT, SHORT_MODELS

_LABEL_CHARS = 60


class DelegateArgs(Args, frozen=True, kw_only=True):
    prompt: str = ""
    description: str = ""
    """The task in a few words, for people."""
    kind: str = USUAL
    """Which kind of agent. There is no other way to say the usual one: rules are about what is said."""
    model: str = ""
    resume: str = ""
    """The id of an earlier agent whose conversation goes on."""
    background: bool = False
    allowed_tools: tuple[str, ...] = ()
    """Tools that it is to have though its kind does not; the user is asked."""
    max_turns: int | None = None
    history: str = ""
    """How much of the caller's conversation it is to see, which is never any."""
    tasks: tuple[Task, ...] | None = None
    """Several at once, instead of the prompt."""
    context: str = ""
    toolsets: tuple[str, ...] = ()
    """The tools that it has, by their names or by names of groups."""
    shared: bool = False
    """Are tasks named after their goals and answered as a list, a single one too?"""
    max_tokens: int | None = None

    @property
    def is_shared(self) -> bool:
        return self.shared or self.tasks is not None or bool(self.toolsets)


class Delegate(Tool[DelegateArgs, Delegated | LeftAgent | Shared]):
    """It touches nothing itself: what its subagents do is decided on call by call."""

    name = "delegate"
    args = DelegateArgs
    timed = False
    waits = True
    words = "Give a task to an agent of its own, which works by itself and sends back one answer."

    def access(self, args: DelegateArgs, ctx: Context) -> tuple[Access, ...]:
        if args.is_shared:
            check(args.tasks, args.prompt)
        elif not args.prompt.strip():
            raise BadArguments(f"{ctx.param('prompt')}: must say what is to be done.")
        if args.tasks is not None and (args.background or args.resume):
            raise BadArguments(f"{ctx.param('tasks')}: several at once neither go on by themselves nor are resumed.")
        texts = [args.prompt + args.context, *(task.goal + task.context for task in args.tasks or ())]
        if any(len(text) > MOST_PROMPT_CHARS for text in texts):
            raise BadArguments(
                f"{ctx.param('prompt')}: must have at most {MOST_PROMPT_CHARS:,} characters. Name files instead."
            )
        if args.max_turns is not None and args.max_turns < 1:
            raise BadArguments(f"{ctx.param('max_turns')}: must be at least 1.")
        check_names(args.allowed_tools, ctx)
        agents(ctx).get(args.kind)  # before anybody is asked about it
        return ()

    async def run(self, args: DelegateArgs, ctx: Context) -> Delegated | LeftAgent | Shared:
        runs = subagents(ctx)
        if args.history.strip().lower() not in {"", "none", "0", "false"}:
            ctx.note(
                f"An agent sees nothing of this conversation: {ctx.param('history')} has no effect. "
                f"All that it has to know goes into {ctx.param('prompt')}."
            )
        model = _model(args.model, ctx)
        if args.is_shared and not args.background:
            tasks = args.tasks or (Task(goal=args.prompt, context=args.context, toolsets=args.toolsets),)
            jobs = [await self._job(args, task, model, runs, ctx) for task in tasks]
            return Shared(await share(jobs, runs, ctx))
        task = Task(goal=args.prompt, context=args.context, toolsets=args.toolsets)
        job = await self._job(args, task, model, runs, ctx)
        return LeftAgent(await runs.leave(job, ctx)) if args.background else Delegated(await runs.work(job, ctx))

    async def _job(self, args: DelegateArgs, task: Task, model: str, runs: Subagents, ctx: Context) -> Job:
        agent = _agent(args, task, ctx)
        tell_lacking(task.toolsets, runs, ctx)
        agent = await granted(agent, args.allowed_tools, runs, ctx)
        return Job(
            agent=agent._replace(model=model or agent.model),
            prompt=told(task),
            description=_line(args.description) or _label(task.goal),
            max_turns=_least(args.max_turns, agent.max_turns),
            max_tokens=args.max_tokens,
            resume=args.resume.strip(),
        )


def _agent(args: DelegateArgs, task: Task, ctx: Context) -> Subagent:
    """Who does it: one named after its task, or one of a kind."""
    if args.is_shared and args.kind == USUAL:
        return worker(task)
    return agents(ctx).get(args.kind)


def _label(goal: str) -> str:
    """A task in a few words, where its caller has given none."""
    words = _line(goal)
    return words if len(words) <= _LABEL_CHARS else words[: _LABEL_CHARS - 1] + "…"


def _line(text: str) -> str:
    """In one line, and nothing in it that steers a screen."""
    return "".join(filter(str.isprintable, " ".join(text.split())))


def _least(wanted: int | None, most: int | None) -> int | None:
    """A kind's own limit is the most that a caller can ask for."""
    return min((limit for limit in (wanted, most) if limit is not None), default=None)


def _model(name: str, ctx: Context) -> str:
    """The model that the caller wants: one in short, or one that the user's settings name, and no other."""
    wanted = name.strip()
    if wanted.lower() in {"", INHERIT}:
        return ""
    if wanted.lower() in SHORT_MODELS:
        return wanted.lower()
    roles = ctx.need(Settings).models.roles
    if wanted in roles or wanted in roles.values():
        return wanted
    ctx.note(
        f"The model {wanted[:80]!r} is not used: the settings do not name it (models.roles). "
        "The agent has the one that is usual for its kind."
    )
    return ""
