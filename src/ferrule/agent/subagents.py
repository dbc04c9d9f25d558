"""Run subagents: conversations of their own on branches of the session's engine.

The rights and budgets of a subagent stay within those of its session.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ferrule.agent import AgentEvent, Budget, ChildBegan, ChildEnded, Ended, Limits, Reason, Spent, TurnEnded
from ferrule.agent.agent import Agent
from ferrule.agent.attachments import words_of_parts
from ferrule.agent.compaction import Compacting
from ferrule.agent.conversation import Conversation, Reads, Setup
from ferrule.agent.prompt import system_prompt
from ferrule.agent.recall import NAME as RECALL
from ferrule.agent.recall import OwnThread
from ferrule.agent.threads import Keeping, below
from ferrule.core.call import Done, Event, Prepared
from ferrule.core.errors import ConfigError, ToolFailure
from ferrule.core.services import AgentStatus, Job, Planning, Subagent, Subagents, Worked
from ferrule.core.tool import Context
from ferrule.engine.build import new_session_id
from ferrule.files.ledger import Ledger
from ferrule.models import Model, ModelError
from ferrule.models.catalog import SHORT
from ferrule.permissions import ModeConfig, includes
from ferrule.permissions.policy import mode_name
from ferrule.tools import ENTER_PLAN, EXIT_PLAN, NEED_MODEL

if TYPE_CHECKING:
    from ferrule.agent.threads import Resumed
    from ferrule.engine import Engine
    from ferrule.engine.build import Branch
    from ferrule.permissions.policy import Policy
    from ferrule.settings import Loop
    from ferrule.tools.threads.store import ThreadStore


WHY: dict[Reason, str] = {
    "undone": "It said what it would do and did not do it, or its last call could not be read.",
    "turns": "It has used all of its turns.",
    "tokens": "It has used all of its tokens.",
    "cost": "It has used all of its money.",
    "time": "It has used all of its time.",
    "loop": "It was stopped because it made the same call again and again.",
    "length": "Its answer was cut off: it was too long.",
    "refused": "Its model refused to answer.",
    "hook": "A hook stopped it.",
    "stopped": "A hook ended its work.",
    "interrupted": "It was stopped.",
}


class Home(NamedTuple):
    """What all subagents of a session share."""

    engine: "Engine"
    model_for: Callable[[Subagent], Model]
    """The model that a kind of subagent is run by. Raises: ModelError, ConfigError."""
    loop: "Loop"
    compacting: Compacting
    store: "Callable[[], ThreadStore | None]"
    tell: Callable[[AgentEvent], object]


class SubagentRun:
    """One subagent at work."""

    agent: Agent

    def __init__(
        self, job: Job, ctx: Context, *, thread: str, home: Home, children: "Children", mode: ModeConfig, aside: bool
    ) -> None:
        self.id = agent_id_of(thread)
        self._job = job
        self._ctx = ctx
        self._thread = thread
        self._home = home
        self._children = children
        self._mode = mode
        self._aside = aside
        self.calls = 0
        self._writes: set[str] = set()
        self._failed_write = ""
        self.is_over = False
        """Has it said its last word? It hears nothing any more."""
        self._began = time.monotonic()
        self._branch: Branch
        self._keeping: Keeping | None = None
        self._about = {"agent_id": self.id, "agent_type": job.agent.name}
        """What hooks are told of it."""
        self._parent: Agent | None = None
        self._purse: Budget | None = None
        self._shared = Spent()
        """So much of what it has taken its parent knows of."""

    async def prepare(
        self, model: Model, earlier: "Resumed | None", parent: Agent | None, held: "Policy | None" = None
    ) -> None:
        """`earlier` is its conversation where that goes on, `held` the policy that holds for its parent."""
        home, job, engine = self._home, self._job, self._home.engine
        self._keeping = self._make_keeping(model, parent)
        planning = Planning.under(engine.need(Planning))
        services = {
            "Subagents": self._children,
            "Planning": planning,
            "OwnThread": OwnThread(self._thread, self._keeping),
            **job.services,
        }
        self._branch = branch = engine.branch(
            job.agent.name,
            self._mode,
            services=services,
            permission_mode=job.agent.mode,
            on_event=self._hear,
            policy=held,
        )
        if job.beside:
            branch.stand_beside()
        self._children.policy = branch.policy
        self._parent = parent
        self._purse = parent.budget if parent is not None else None
        setup = Setup(
            thread=self._thread,
            system=system_prompt(
                workspace=engine.jail.folder,
                own=job.agent.system,
                section=branch.section(),
                guidance=await branch.guidance(),
            ),
            dialect=engine.dialect.name,
            cwd=engine.jail.folder,
            limits=self._limits(parent),
            max_tokens=job.max_tokens or engine.settings.models.max_tokens,
            thinking_tokens=engine.settings.models.thinking_tokens,
            permission_mode=lambda: mode_name(branch.policy),
            reminder=planning.reminder,
            news=self._children.news,
            tell_hooks=engine.tell,
            stop_event="SubagentStop",
            about=self._about,
            overdrawn=parent.budget.overdrawn if parent is not None else None,
            interrupt=None if parent is None else parent.talk.setup.interrupt or parent.interrupt,
        )
        reads = Reads(branch.services[Ledger], is_kept=False)
        talk = Conversation(
            branch, model, setup, earlier=earlier, keeping=self._keeping, reads=reads, on_event=self._tell
        )
        self.agent = self._children.parent = Agent(talk, loop=home.loop, compacting=home.compacting)

    def _make_keeping(self, model: Model, parent: Agent | None) -> Keeping | None:
        store, engine, job = self._home.store(), self._home.engine, self._job
        if store is None:
            return None
        return Keeping(
            store,
            self._thread,
            lambda _: None,  # the session's own says it
            workspace=engine.jail.folder,
            model=model.name,
            dialect=engine.dialect.name,
            parent=parent.thread if parent is not None else engine.session_id,
            title=job.description or job.prompt.strip().split("\n", 1)[0][:200],
        )

    def _limits(self, parent: Agent | None) -> Limits:
        """Its own, and no more than its parent has left."""
        job, loop = self._job, self._home.loop
        left = parent.left() if parent is not None else Limits()
        return left._replace(turns=job.max_turns or job.agent.max_turns or loop.child_turns)

    async def finish(self) -> Worked:
        """Do the work. Whoever stops it stops its calls first."""
        agent, talk = self.agent, self.agent.talk
        about = ChildBegan(
            thread=self._parent.thread if self._parent is not None else self._home.engine.session_id,
            child=self._thread,
            call_id=self._ctx.call_id,
            name=self._job.agent.name,
            description=self._job.description,
            model=talk.model.name,
        )
        self._home.tell(about)
        ended: Ended | None = None
        before = self._shared = agent.spent
        try:
            await self._home.engine.tell("SubagentStart", **self._about)
            ended = await agent.run(self._job.prompt)
        finally:
            self.is_over = True
            await self._close()
            took = ended.spent if ended is not None else _since(agent.spent, before)
            self._share(agent.spent)
            reason: Reason = ended.reason if ended is not None else "interrupted"
            self._home.tell(ChildEnded(thread=about.thread, child=self._thread, reason=reason, spent=took))
        return self.build_result(_status(ended.reason), ended)

    async def _close(self) -> None:
        """All of it, however often it is stopped meanwhile."""
        try:
            await self._branch.close()
        finally:
            try:
                await self._children.close()
            finally:
                if self._keeping is not None:
                    await self._keeping.close()

    def _share(self, now: Spent) -> None:
        """Its parent hears after each turn what it has taken, and not at its end: others take from there too."""
        if self._parent is not None:
            self._parent.share(_since(now, self._shared), self._purse)
        self._shared = now

    def build_result(self, status: AgentStatus, ended: Ended | None = None) -> Worked:
        spent = ended.spent if ended is not None else Spent()
        reason: Reason = ended.reason if ended is not None else "end"
        return Worked(
            id=self.id,
            name=self._job.agent.name,
            status=status,
            text=ended.text if ended is not None else "",
            description=self._job.description,
            model=self.agent.model.name,
            turns=spent.turns,
            calls=self.calls,
            input_tokens=spent.usage.input,
            output_tokens=spent.usage.output,
            cost=spent.cost,
            seconds=time.monotonic() - self._began,
            why=(ended.error if ended is not None else "") or WHY.get(reason, ""),
            reason=reason,
            failed_write=self._failed_write,
        )

    def _hear(self, event: Event) -> None:
        if isinstance(event, Prepared) and any(one.kind == "path" and one.mode == "write" for one in event.touches):
            self._writes.add(event.id)
        if isinstance(event, Done):
            self.calls += 1
            if event.id in self._writes:
                self._failed_write = "" if event.reply.error is None else event.reply.error.message
        self.agent.hear(event)

    def _tell(self, event: AgentEvent) -> None:
        if isinstance(event, TurnEnded) and event.thread == self._thread:
            self._share(event.spent)
        if isinstance(event, TurnEnded) and not self._aside:
            usage = event.spent.usage
            self._ctx.progress(f"turn {event.spent.turns}, {self.calls} calls, {usage.input + usage.output:,} tokens")
        self._home.tell(event)


def of_its_own(model: Model, thread: str) -> Model:
    """The same model for another conversation: over one line, but what it has encoded is this conversation's."""
    beside = getattr(model, "beside", None)
    return model if beside is None else beside(thread)


def model_name(agent: Subagent, roles: Mapping[str, str], own: str) -> str:
    """What a subagent asks for, or what the settings say for its kind; empty for the session's own, called `own`.

    A short name that the settings do not explain is one of the session's host or none: which host prompts are sent to
    is not for a file or a model to say.
    """
    wanted = "" if agent.model == "inherit" else agent.model
    meant = SHORT.get(wanted, "") if wanted not in roles else ""
    if meant and meant.partition(":")[0] != own.partition(":")[0]:
        wanted = ""
    return wanted or roles.get(agent.role or agent.name, "") or roles.get(agent.name, "")


def agent_id_of(thread: str) -> str:
    """What a subagent is called: short, and enough to find its conversation again."""
    return "a" + thread.removeprefix("T-").replace("-", "")[:12]


def _status(reason: Reason) -> AgentStatus:
    if reason == "interrupted":
        return "stopped"
    return "failed" if reason in {"error", "refused", "hook"} else "completed"


def _since(now: Spent, before: Spent) -> Spent:
    """What was taken since; of one that was stopped in the middle."""
    usage, was = now.usage, before.usage
    cost = None if now.cost is None else now.cost - (before.cost or 0.0)
    counts = (getattr(usage, name) - getattr(was, name) for name in usage.__struct_fields__)
    return Spent(now.turns - before.turns, type(usage)(*counts), cost, now.seconds - before.seconds)


_REMEMBERED = 64


class SubagentSlots:
    """How many subagents of a session run at once: so many at each depth, for those above wait for those below."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._turns: dict[tuple[int, bool], asyncio.Semaphore] = {}
        self.in_background = 0
        """How many were left in the background and have not ended."""

    def at(self, depth: int, *, beside: bool = False) -> asyncio.Semaphore:
        """Those whom a call waits for that the others may wait for are counted by themselves: they wait for none."""
        return self._turns.setdefault((depth, beside), asyncio.Semaphore(self._most))

    def on_end(self, _: object) -> None:
        self.in_background -= 1


class _Left:
    """One that works in the background, or has."""

    def __init__(self, job: Job, run: SubagentRun, task: "asyncio.Task[Worked]") -> None:
        self.job = job
        self.run = run
        self.began = run.build_result("running")
        self.task = task
        self.told = False


class Children(Subagents):
    """The subagents of one conversation; each of them has its own."""

    def __init__(self, home: Home, mode: ModeConfig, *, depth: int = 0, slots: SubagentSlots | None = None) -> None:
        """`mode` has the tools that their parent has, `depth` is how deep it is itself, `slots` are the session's."""
        self._home = home
        self._depth = depth
        self._mode = mode
        self.can_run = depth < home.loop.depth
        self._slots = slots or SubagentSlots(home.loop.children)
        self._left: dict[str, _Left] = {}
        self._sending = asyncio.Lock()
        self._at_work: set[str] = set()
        """The ids of those that work now: no two go on with one conversation."""
        self.parent: Agent | None = None
        """Whose they are: what they take is taken from its budget."""
        self.policy: Policy | None = None
        """What holds for their parent; None for the session's own."""

    async def work(self, job: Job, ctx: Context) -> Worked:
        async with self._slots.at(self._depth, beside=job.beside):
            run = await self._begin(job, ctx)
            try:
                return await run.finish()
            finally:
                self._at_work.discard(run.id)

    async def leave(self, job: Job, ctx: Context) -> Worked:
        if self._slots.in_background >= _REMEMBERED:
            raise ToolFailure(
                f"{_REMEMBERED} agents work in the background already: wait for some of them first.", code="too-many"
            )
        self._slots.in_background += 1  # before anything is waited for: others are begun at the same time
        try:
            run = await self._begin(job, ctx, aside=True)
        except BaseException:
            self._slots.in_background -= 1
            raise
        task = asyncio.create_task(self._aside(run))
        task.add_done_callback(lambda _: self._at_work.discard(run.id))
        task.add_done_callback(self._slots.on_end)
        self._forget()
        self._left[run.id] = _Left(job, run, task)
        return run.build_result("running")

    async def _aside(self, run: SubagentRun) -> Worked:
        async with self._slots.at(self._depth):
            return await run.finish()

    def beyond(self, agent: Subagent, names: Sequence[str], ctx: Context) -> tuple[str, ...]:  # noqa: ARG002 - its parent's
        registry, own = self._home.engine.registry, self._mode_of(agent)
        known = (name for name in names if registry.knows(name))
        mine = (name for name in known if includes(self._mode, name, canonical=registry.canonical))
        return tuple(name for name in mine if not includes(own, name, canonical=registry.canonical))

    async def poll(self, agent_id: str, wait_seconds: float = 0.0) -> Worked | None:
        left = self._left.get(agent_id)
        if left is None:
            return None
        if wait_seconds > 0 and not left.task.done():
            await asyncio.wait([left.task], timeout=wait_seconds)
        left.told = left.told or left.task.done()
        return self._result_of(left)

    async def send(self, agent_id: str, message: str, ctx: Context, *, interrupt: bool = False) -> Worked | None:
        async with self._sending:  # of two messages to one that has ended, the second is heard by the same agent
            left = self._left.get(agent_id)
            if left is None:
                return None
            if interrupt:
                await _cancel_and_wait(left)
            elif left.run.is_over:
                await asyncio.wait([left.task])  # it hears no more, and is still putting its things away
            agent = left.run.agent
            if not left.task.done():
                agent.steer(message)
                return self._result_of(left)
            left.told = True
            prompt = "\n\n".join((*map(words_of_parts, agent.talk.steering), message))  # with what it did not hear
            return await self.leave(left.job._replace(prompt=prompt, resume=agent_id), ctx)

    def expects(self, agent: Subagent, prompt: str) -> bool:
        asks = getattr(self._home.model_for(agent), "expects", None)
        return asks is None or bool(asks(agent.system, prompt))

    async def stop(self, agent_id: str) -> Worked | None:
        left = self._left.get(agent_id)
        if left is None:
            return None
        left.told = True
        await _cancel_and_wait(left)
        return self._result_of(left)

    def list(self) -> tuple[Worked, ...]:
        return tuple(map(self._result_of, self._left.values()))

    def news(self) -> tuple[str, ...]:
        """What is to be told of those that have ended in the background; each is told once."""
        fresh = [left for left in self._left.values() if left.task.done() and not left.told]
        for left in fresh:
            left.told = True
        return tuple(_render_end(self._result_of(left)) for left in fresh)

    async def close(self) -> None:
        """Stop those that are still at work."""
        await asyncio.gather(*(_cancel_and_wait(left) for left in self._left.values()))

    def _result_of(self, left: _Left) -> Worked:
        if left.task.done() and not left.task.cancelled():
            return left.task.result()
        agent = left.run.agent
        spent = agent.budget.spent
        so_far = left.began._replace(
            text=agent.talk.last_words() if spent.turns else "",
            calls=left.run.calls,
            turns=spent.turns,
            input_tokens=spent.usage.input,
            output_tokens=spent.usage.output,
            cost=spent.cost,
            seconds=agent.spent.seconds,
        )
        if not left.task.done():
            return so_far
        return so_far._replace(status="stopped", why=WHY["interrupted"], reason="interrupted")

    def _forget(self) -> None:
        over = [name for name, left in self._left.items() if left.task.done() and left.told]
        for name in over[: max(0, len(self._left) - _REMEMBERED + 1)]:
            del self._left[name]

    async def _begin(self, job: Job, ctx: Context, *, aside: bool = False) -> SubagentRun:
        """A conversation for the job, ready to be run."""
        home, agent = self._home, job.agent
        if not self.can_run:
            raise ToolFailure("Subagents may not have subagents any deeper. Do the work yourself.", code="too-deep")
        try:
            model = home.model_for(agent)
        except (ModelError, ConfigError) as error:
            raise ToolFailure(f"The subagent {agent.name} cannot be run: {error}", code="no-model") from error
        thread, earlier = await self._thread(job.resume)
        model = of_its_own(model, thread)
        mode = self._mode_of(agent)
        children = Children(home, mode, depth=self._depth + 1, slots=self._slots)
        run = SubagentRun(job, ctx, thread=thread, home=home, children=children, mode=mode, aside=aside)
        self._check_idle(run.id)  # by its whole id, and with nothing to wait for in between
        self._at_work.add(run.id)
        try:
            await run.prepare(model, earlier, self.parent, self.policy)
        except BaseException:
            self._at_work.discard(run.id)
            raise
        return run

    def _mode_of(self, agent: Subagent) -> ModeConfig:
        """Its tools: those that it is given, of those that its parent has."""
        deepest = self._depth + 1 >= self._home.loop.depth
        return ModeConfig(
            allow_mcp=True,
            allow_toolbox=True,
            # What was left out of its conversation it can read back, whatever else it is given.
            only=(*agent.tools, RECALL) if agent.tools else agent.tools,
            without=(*agent.denied, ENTER_PLAN, EXIT_PLAN, *(NEED_MODEL if deepest else ())),
            subagent_type=agent.name,
            within=self._mode,
        )

    def _check_idle(self, agent_id: str) -> None:
        if agent_id in self._at_work:
            raise ToolFailure(f"The agent {agent_id} is still at work: wait for it, or stop it.", code="agent-running")

    async def _thread(self, agent_id: str) -> "tuple[str, Resumed | None]":
        """A new conversation, or an earlier one that goes on: one of its own, and nobody else's."""
        if not agent_id:
            return new_session_id(), None
        self._check_idle(agent_id_of(_thread_of(agent_id)))
        own = self.parent.thread if self.parent is not None else self._home.engine.session_id
        store = self._home.store()
        found = None
        if store is not None:
            try:
                found = await asyncio.to_thread(below, store, own, _thread_of(agent_id))
            except ConfigError as error:
                raise ToolFailure(str(error), code="store-unusable") from error
        if found is None:
            raise ToolFailure(f"There is no earlier agent {agent_id!r} to go on with.", code="no-agent")
        return found


def _thread_of(agent_id: str) -> str:
    raw = agent_id.removeprefix("a")
    return f"T-{raw[:8]}-{raw[8:12]}"


async def _cancel_and_wait(left: _Left) -> None:
    if not left.task.done():
        left.task.cancel()
        await asyncio.wait([left.task])


def _render_end(worked: Worked) -> str:
    about = f" ({worked.description})" if worked.description else ""
    how = {"completed": "is done", "failed": "has failed", "stopped": "was stopped"}.get(worked.status, worked.status)
    said = f": {worked.why}" if worked.why else ""
    return f"[The background agent {worked.id}{about} {how}{said}. Its answer can be read under this id.]"


class Promised(Subagents):
    """The subagents of a session, as its engine is given them before there is anybody to run them."""

    can_run = True
    children: Children

    async def work(self, job: Job, ctx: Context) -> Worked:
        return await self.children.work(job, ctx)

    async def leave(self, job: Job, ctx: Context) -> Worked:
        return await self.children.leave(job, ctx)

    async def poll(self, agent_id: str, wait_seconds: float = 0.0) -> Worked | None:
        return await self.children.poll(agent_id, wait_seconds)

    async def send(self, agent_id: str, message: str, ctx: Context, *, interrupt: bool = False) -> Worked | None:
        return await self.children.send(agent_id, message, ctx, interrupt=interrupt)

    async def stop(self, agent_id: str) -> Worked | None:
        return await self.children.stop(agent_id)

    def expects(self, agent: Subagent, prompt: str) -> bool:
        return self.children.expects(agent, prompt)

    def list(self) -> tuple[Worked, ...]:
        return self.children.list()

    def beyond(self, agent: Subagent, names: Sequence[str], ctx: Context) -> tuple[str, ...]:
        return self.children.beyond(agent, names, ctx)
