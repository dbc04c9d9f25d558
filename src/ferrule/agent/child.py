"""One subagent at work: a conversation of its own on a branch of the session's engine."""

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ferrule.agent.agent import Agent
from ferrule.agent.budget import Budget, Limits
from ferrule.agent.compacting import Compacting
from ferrule.agent.conversation import Conversation, Setup
from ferrule.agent.events import AgentEvent, ChildBegan, ChildEnded, Ended, Reason, Spent, TurnEnded
from ferrule.agent.keeping import Keeping
from ferrule.agent.prompt import system_prompt
from ferrule.agent.reads import Reads
from ferrule.agent.recall import OwnThread
from ferrule.core.events import Done, Event, Prepared
from ferrule.core.planning import Planning
from ferrule.core.subagents import AgentStatus, Job, Subagent, Worked
from ferrule.core.tool import Context
from ferrule.models.catalog import SHORT
from ferrule.models.model import Model
from ferrule.permissions.modes import ModeConfig
from ferrule.permissions.policy import mode_name
from ferrule.workspace.ledger import Ledger

if TYPE_CHECKING:
    from ferrule.agent.children import Children
    from ferrule.agent.stored import Resumed
    from ferrule.agent_settings import Loop
    from ferrule.branch import Branch
    from ferrule.engine import Engine
    from ferrule.permissions.policy import Policy
    from ferrule.workspace.thread_store import ThreadStore

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


class Child:
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
        return self.seen(_status(ended.reason), ended)

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

    def seen(self, status: AgentStatus, ended: Ended | None = None) -> Worked:
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
