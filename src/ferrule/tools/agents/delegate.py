"""Delegate work to subagents, in the background too, and ask one for deep reasoning or other repositories.

The subagents read and answer; they change nothing. Only repositories that the user's settings name can be read
beside the workspace.
"""

import asyncio
import os
from collections.abc import Sequence

import msgspec

from ferrule.core.access import Access
from ferrule.core.errors import BadArguments, FerruleError, ToolFailure
from ferrule.core.services import (
    AgentSent,
    AgentsSeen,
    AgentStopped,
    DelegateOutcome,
    Job,
    LeftAgent,
    Subagent,
    SubagentBatchResult,
    Subagents,
    Worked,
    subagents,
)
from ferrule.core.tool import READS, READS_OUTSIDE, REPLACES, RUNS, Args, Context, Tool
from ferrule.files.jail import Jail, LentJail, can_be_lent
from ferrule.settings import Settings
from ferrule.system import Threads
from ferrule.tools.agents import (
    INHERIT,
    MOST_PROMPT_CHARS,
    READING,
    SHORT_MODELS,
    USUAL,
    WEB,
    agents,
    check_names,
    find,
    grant_tools,
    prompt,
    run_job,
    specialist,
    tell_lacking,
    toolset,
)

MOST_TASKS = 5
_NAME_CHARS = 24


class DelegateTask(msgspec.Struct, frozen=True, kw_only=True):
    """One of them."""

    goal: str = ""
    context: str = ""
    toolsets: tuple[str, ...] = ()


def check(tasks: Sequence[DelegateTask] | None, goal: str) -> None:
    """Raise where there is nothing to do, or too much. A list of tasks counts before a single goal."""
    if tasks is None:
        if not goal.strip():
            raise ToolFailure("Provide either 'goal' (single task) or 'tasks' (batch).", code="no-goal")
        return
    if not tasks:
        raise ToolFailure("No tasks provided.", code="no-tasks")
    if len(tasks) > MOST_TASKS:
        raise ToolFailure(
            f"Too many tasks: {len(tasks)} provided, but the per-call limit is {MOST_TASKS}.",
            code="too-many-tasks",
            count=len(tasks),
        )
    for at, task in enumerate(tasks):
        if not task.goal.strip():
            raise ToolFailure(f"Task {at} is missing a non-empty 'goal'.", code="no-goal", count=at)


def worker(task: DelegateTask) -> Subagent:
    """The subagent for a task: named after it, with the tools that the task names and those alone."""
    # It is shown to people, and no sign of it may steer their screens.
    word = "".join(filter(str.isprintable, task.goal.split()[0]))[:_NAME_CHARS]
    return Subagent(
        name=f"delegate-{word}",
        model="",
        tools=toolset(task.toolsets),
        system=prompt("delegate.md"),
        role="delegate",
    )


def build_task_prompt(task: DelegateTask) -> str:
    """What the subagent reads."""
    context = task.context.strip()
    return f"{task.goal.strip()}\n\nContext:\n{context}" if context else task.goal.strip()


async def share(jobs: Sequence[Job], runs: Subagents, ctx: Context) -> tuple[Worked, ...]:
    """What came of each, in their order. One that fails leaves the others alone; cancelling this stops them all."""
    done = 0

    async def work(job: Job) -> Worked:
        nonlocal done
        try:
            worked = await runs.work(job, ctx)
        except FerruleError as error:
            worked = Worked("", job.agent.name, "failed", str(error), reason="error")
        done += 1
        ctx.progress(f"{done} of {len(jobs)} tasks are done.")
        return worked

    async with asyncio.TaskGroup() as group:
        works = [group.create_task(work(job)) for job in jobs]
    return tuple(work.result() for work in works)


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
    tasks: tuple[DelegateTask, ...] | None = None
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


class Delegate(Tool[DelegateArgs, DelegateOutcome | LeftAgent | SubagentBatchResult]):
    """It touches nothing itself: what its subagents do is decided on call by call."""

    name = "delegate"
    args = DelegateArgs
    title = "Give a task to an agent"
    hints = RUNS
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

    async def run(self, args: DelegateArgs, ctx: Context) -> DelegateOutcome | LeftAgent | SubagentBatchResult:
        runs = subagents(ctx)
        if args.history.strip().lower() not in {"", "none", "0", "false"}:
            ctx.note(
                f"An agent sees nothing of this conversation: {ctx.param('history')} has no effect. "
                f"All that it has to know goes into {ctx.param('prompt')}."
            )
        model = _model(args.model, ctx)
        if args.is_shared and not args.background:
            tasks = args.tasks or (DelegateTask(goal=args.prompt, context=args.context, toolsets=args.toolsets),)
            jobs = [await self._job(args, task, model, runs, ctx) for task in tasks]
            return SubagentBatchResult(await share(jobs, runs, ctx))
        task = DelegateTask(goal=args.prompt, context=args.context, toolsets=args.toolsets)
        job = await self._job(args, task, model, runs, ctx)
        return LeftAgent(await runs.leave(job, ctx)) if args.background else DelegateOutcome(await runs.work(job, ctx))

    async def _job(self, args: DelegateArgs, task: DelegateTask, model: str, runs: Subagents, ctx: Context) -> Job:
        agent = _agent(args, task, ctx)
        tell_lacking(task.toolsets, runs, ctx)
        agent = await grant_tools(agent, args.allowed_tools, runs, ctx)
        return Job(
            agent=agent._replace(model=model or agent.model),
            prompt=build_task_prompt(task),
            description=_line(args.description) or _label(task.goal),
            max_turns=_least(args.max_turns, agent.max_turns),
            max_tokens=args.max_tokens,
            resume=args.resume.strip(),
        )


def _agent(args: DelegateArgs, task: DelegateTask, ctx: Context) -> Subagent:
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


class AgentListArgs(Args, frozen=True, kw_only=True):
    id: str = ""
    """One of them; all where nothing is said."""
    begins: str = ""
    """How the id, or what it does, begins."""


class AgentList(Tool[AgentListArgs, AgentsSeen]):
    """Those of whoever asks; it waits for none of them."""

    name = "agent_list"
    args = AgentListArgs
    title = "List the agents"
    hints = READS

    def access(self, args: AgentListArgs, ctx: Context) -> tuple[Access, ...]:
        if args.id:
            find(args.id, ctx)
        return ()

    async def run(self, args: AgentListArgs, ctx: Context) -> AgentsSeen:
        every = (find(args.id, ctx),) if args.id else subagents(ctx).list()
        return AgentsSeen(
            tuple(one for one in every if one.id.startswith(args.begins) or one.description.startswith(args.begins))
        )


class AgentSendArgs(Args, frozen=True, kw_only=True):
    id: str
    message: str
    interrupt: bool = False
    """Is it to leave what it does at once?"""


class AgentSend(Tool[AgentSendArgs, AgentSent]):
    """One that works hears it with its next replies. One that has ended goes on with it, in the background."""

    name = "agent_send"
    args = AgentSendArgs
    title = "Tell an agent more"
    hints = READS
    waits = True

    def access(self, args: AgentSendArgs, ctx: Context) -> tuple[Access, ...]:
        """Nothing by itself: what the agent does then is decided on call by call."""
        if not args.message.strip():
            raise BadArguments(f"{ctx.param('message')}: must say what the agent is to know or to do.")
        if len(args.message) > MOST_PROMPT_CHARS:
            raise BadArguments(
                f"{ctx.param('message')}: must have at most {MOST_PROMPT_CHARS:,} characters. Name files instead."
            )
        find(args.id, ctx)
        return ()

    async def run(self, args: AgentSendArgs, ctx: Context) -> AgentSent:
        agent = find(args.id, ctx)
        sent = await subagents(ctx).send(agent.id, args.message, ctx, interrupt=args.interrupt)
        return AgentSent(sent or agent, ctx.call_id)


class AgentStopArgs(Args, frozen=True, kw_only=True):
    id: str


class AgentStop(Tool[AgentStopArgs, AgentStopped]):
    """With all that it does. One that has ended stays as it is."""

    name = "agent_stop"
    args = AgentStopArgs
    title = "Stop an agent"
    hints = REPLACES
    waits = True

    def access(self, args: AgentStopArgs, ctx: Context) -> tuple[Access, ...]:
        # The session's own: who was let start it may stop it.
        return (Access("process", "write", find(args.id, ctx).id, "own"),)

    async def run(self, args: AgentStopArgs, ctx: Context) -> AgentStopped:
        agent = find(args.id, ctx)
        if agent.status != "running":
            return AgentStopped(agent)
        return AgentStopped(await subagents(ctx).stop(agent.id) or agent)


_MOST_SECONDS = 3600.0
_MOST_AGENTS = 64


class AgentWaitArgs(Args, frozen=True, kw_only=True):
    ids: tuple[str, ...] = ()
    """Whom to wait for; all that work where none is named."""
    seconds: float = 30.0


class AgentWait(Tool[AgentWaitArgs, AgentsSeen]):
    """It waits for no other call, and no other waits for it."""

    name = "agent_wait"
    args = AgentWaitArgs
    title = "Wait for an agent"
    hints = READS
    timed = False
    waits = True

    def access(self, args: AgentWaitArgs, ctx: Context) -> tuple[Access, ...]:
        if not args.seconds >= 0:
            raise BadArguments(f"{ctx.param('seconds')}: must be at least 0.")
        if len(args.ids) > _MOST_AGENTS:
            raise BadArguments(f"{ctx.param('ids')}: at most {_MOST_AGENTS} agents can be waited for at once.")
        for one in args.ids:
            find(one, ctx)
        return ()

    async def run(self, args: AgentWaitArgs, ctx: Context) -> AgentsSeen:
        runs = subagents(ctx)
        named = dict.fromkeys(find(one, ctx).id for one in args.ids)
        ids = list(named) or [worked.id for worked in runs.list() if worked.status == "running"]
        now = await _poll_agents(ids, runs)
        if now and all(worked.status == "running" for worked in now):
            await _first(ids, min(args.seconds, _MOST_SECONDS), runs)
            now = await _poll_agents(ids, runs)
        return AgentsSeen(now, timed_out=bool(now) and all(worked.status == "running" for worked in now))


async def _poll_agents(ids: Sequence[str], runs: Subagents) -> tuple[Worked, ...]:
    found = [await runs.poll(one) for one in ids]
    return tuple(worked for worked in found if worked is not None)


async def _first(ids: Sequence[str], seconds: float, runs: Subagents) -> None:
    """Wait for the first of them; none of them is stopped by that."""
    waits = [asyncio.create_task(runs.poll(one, seconds)) for one in ids]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)


_MOST_FILES = 100


class OracleArgs(Args, frozen=True, kw_only=True):
    task: str
    context: str = ""
    """What is known already."""
    files: tuple[str, ...] = ()
    """Where to begin to read."""


class Oracle(Tool[OracleArgs, Worked]):
    """The answer of a model that is given time to think; it has tools to look with and no others."""

    name = "oracle"
    args = OracleArgs
    title = "Ask for deep reasoning"
    hints = READS_OUTSIDE
    timed = False
    waits = True

    def access(self, args: OracleArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - it is the same for all
        """Nothing by itself: whoever it asks has calls of their own."""
        return ()

    async def run(self, args: OracleArgs, ctx: Context) -> Worked:
        if not args.task.strip():
            raise BadArguments(f"{ctx.param('task')}: is empty; say what is to be thought about.")
        if len(args.files) > _MOST_FILES:
            raise BadArguments(f"{ctx.param('files')}: {len(args.files)} are too many; {_MOST_FILES} is the most.")
        prompt = build_oracle_prompt(args.task, args.context, args.files)
        return await run_job(
            Job(specialist("oracle", (*READING, *WEB)), prompt, description=args.task.strip()[:80]), ctx
        )


def build_oracle_prompt(task: str, context: str, files: tuple[str, ...] = ()) -> str:
    """The prompt. Files are named and not quoted: whoever is asked reads them as they are now, as far as it may."""
    parts = [task.strip()]
    if context.strip():
        parts.append(f"What is known already:\n\n{context.strip()}")
    if files:
        rows = "\n".join(f"- {' '.join(path.split())}" for path in files if path.strip())
        parts.append(f"Files to begin with; read them yourself:\n\n{rows}")
    return "\n\n".join(parts)


_HOW = '[repositories.NAME] with path = "/where/it/is" and about = "what it is"'


class LibrarianArgs(Args, frozen=True, kw_only=True):
    query: str
    context: str = ""
    """What it is needed for."""


class Librarian(Tool[LibrarianArgs, Worked]):
    """An answer from several repositories. They are lent to be read; nothing in them can be written."""

    name = "librarian"
    args = LibrarianArgs
    title = "Ask about other repositories"
    hints = READS
    timed = False
    waits = True

    def access(self, args: LibrarianArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - the same for all
        """Nothing by itself: whoever it asks has calls of their own."""
        return ()

    async def run(self, args: LibrarianArgs, ctx: Context) -> Worked:
        if not args.query.strip():
            raise BadArguments(f"{ctx.param('query')}: is empty; say what you want to know.")
        folders, rows = await ctx.need(Threads).run(_repositories, ctx)
        jail = LentJail(ctx.need(Jail), folders)
        parts = [args.query.strip()]
        if args.context.strip():
            parts.append(f"What it is needed for:\n\n{args.context.strip()}")
        parts.append("The repositories, by the folders that they are in:\n\n" + "\n".join(rows))
        agent = specialist("librarian", READING)
        job = Job(agent, "\n\n".join(parts), description=args.query.strip()[:80], services={"Jail": jail})
        try:
            return await run_job(job, ctx)
        finally:
            jail.close()


def _repositories(ctx: Context) -> tuple[list[str], list[str]]:
    """The folders that can be lent, and what the subagent is told of each."""
    named = ctx.need(Settings).repositories
    if not named:
        raise ToolFailure(
            f"No repositories are set, so there is nothing to look in. Ask the user to add {_HOW} to the user's own "
            "settings; a project's settings cannot.",
            code="no-repositories",
        )
    folders, rows, missing = [], [], []
    for name, repository in named.items():
        if not os.path.isabs(os.path.expanduser(repository.path)) or not can_be_lent(repository.path):
            missing.append(f"{name} ({repository.path})")
            continue
        folder = os.path.realpath(os.path.expanduser(repository.path))
        folders.append(folder)
        rows.append(f"- {name}: {folder}" + f" ({repository.about})" * bool(repository.about))
    if missing:
        said = f"These repositories of the settings are no folders with absolute paths: {', '.join(missing)}."
        if not folders:
            raise ToolFailure(f"{said} Ask the user to mend them.", code="no-repositories")
        ctx.note(said)
    rows.append(f"- the workspace itself: {ctx.need(Jail).folder}")
    return folders, rows
