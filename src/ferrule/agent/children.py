"""Subagents: conversations of their own on branches of the session's engine, with rights and budgets within hers."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ferrule.agent.attachments import words_of_parts
from ferrule.agent.child import WHY, Child, Home, agent_id_of, of_its_own
from ferrule.agent.recall import NAME as RECALL
from ferrule.core.errors import ConfigError, ToolFailure
from ferrule.core.subagents import Job, Subagent, Subagents, Worked
from ferrule.core.tool import Context
from ferrule.given import NEED_MODEL, new_session_id
from ferrule.models.model import ModelError
from ferrule.permissions.modes import ModeConfig, includes

if TYPE_CHECKING:
    from ferrule.agent.agent import Agent
    from ferrule.agent.stored import Resumed
    from ferrule.permissions.policy import Policy

_NEVER = ("enter_plan", "exit_plan")
_REMEMBERED = 64


class Slots:
    """How many subagents of a session run at once: so many at each depth, for those above wait for those below."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._turns: dict[tuple[int, bool], asyncio.Semaphore] = {}
        self.in_background = 0
        """How many were left in the background and have not ended."""

    def at(self, depth: int, *, beside: bool = False) -> asyncio.Semaphore:
        """Those whom a call waits for that the others may wait for are counted by themselves: they wait for none."""
        return self._turns.setdefault((depth, beside), asyncio.Semaphore(self._most))

    def ended(self, _: object) -> None:
        self.in_background -= 1


class _Left:
    """One that works in the background, or has."""

    def __init__(self, job: Job, run: Child, task: "asyncio.Task[Worked]") -> None:
        self.job = job
        self.run = run
        self.began = run.seen("running")
        self.task = task
        self.told = False


class Children(Subagents):
    """The subagents of one conversation; each of them has its own."""

    def __init__(self, home: Home, mode: ModeConfig, *, depth: int = 0, slots: Slots | None = None) -> None:
        """`mode` has the tools that their parent has, `depth` is how deep it is itself, `slots` are the session's."""
        self._home = home
        self._depth = depth
        self._mode = mode
        self.can_run = depth < home.loop.depth
        self._slots = slots or Slots(home.loop.children)
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
        task.add_done_callback(self._slots.ended)
        self._forget()
        self._left[run.id] = _Left(job, run, task)
        return run.seen("running")

    async def _aside(self, run: Child) -> Worked:
        async with self._slots.at(self._depth):
            return await run.finish()

    def beyond(self, agent: Subagent, names: Sequence[str], ctx: Context) -> tuple[str, ...]:  # noqa: ARG002 - its parent's
        registry, own = self._home.engine.registry, self._mode_of(agent)
        known = (name for name in names if registry.knows(name))
        mine = (name for name in known if includes(self._mode, name, canonical=registry.canonical))
        return tuple(name for name in mine if not includes(own, name, canonical=registry.canonical))

    async def seen(self, agent_id: str, wait_seconds: float = 0.0) -> Worked | None:
        left = self._left.get(agent_id)
        if left is None:
            return None
        if wait_seconds > 0 and not left.task.done():
            await asyncio.wait([left.task], timeout=wait_seconds)
        left.told = left.told or left.task.done()
        return self._worked(left)

    async def send(self, agent_id: str, message: str, ctx: Context, *, interrupt: bool = False) -> Worked | None:
        async with self._sending:  # of two messages to one that has ended, the second is heard by the same agent
            left = self._left.get(agent_id)
            if left is None:
                return None
            if interrupt:
                await _cancelled(left)
            elif left.run.is_over:
                await asyncio.wait([left.task])  # it hears no more, and is still putting its things away
            agent = left.run.agent
            if not left.task.done():
                agent.steer(message)
                return self._worked(left)
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
        await _cancelled(left)
        return self._worked(left)

    def list(self) -> tuple[Worked, ...]:
        return tuple(map(self._worked, self._left.values()))

    def news(self) -> tuple[str, ...]:
        """What is to be told of those that have ended in the background; each is told once."""
        fresh = [left for left in self._left.values() if left.task.done() and not left.told]
        for left in fresh:
            left.told = True
        return tuple(_ending(self._worked(left)) for left in fresh)

    async def close(self) -> None:
        """Stop those that are still at work."""
        await asyncio.gather(*(_cancelled(left) for left in self._left.values()))

    def _worked(self, left: _Left) -> Worked:
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

    async def _begin(self, job: Job, ctx: Context, *, aside: bool = False) -> Child:
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
        run = Child(job, ctx, thread=thread, home=home, children=children, mode=mode, aside=aside)
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
            without=(*agent.denied, *_NEVER, *(NEED_MODEL if deepest else ())),
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
            from ferrule.agent.stored import below  # for agents that go on

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


async def _cancelled(left: _Left) -> None:
    if not left.task.done():
        left.task.cancel()
        await asyncio.wait([left.task])


def _ending(worked: Worked) -> str:
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

    async def seen(self, agent_id: str, wait_seconds: float = 0.0) -> Worked | None:
        return await self.children.seen(agent_id, wait_seconds)

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
