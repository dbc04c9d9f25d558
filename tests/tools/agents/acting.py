"""Subagents without a model: what each does is a function that makes real calls, on a branch of a real engine."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from ferrule import Call, Engine, ModeConfig
from ferrule.core.call import Reply
from ferrule.core.services import Job, Subagents, Worked
from ferrule.core.tool import Context

if TYPE_CHECKING:
    from ferrule.engine.build import Branch

Use = Callable[..., Awaitable[Reply]]
Act = Callable[[Job, Use], Awaitable[str | Worked]]


def done(text: str, **more: Any) -> Worked:
    return Worked("a1", "x", "completed", text, **{"turns": 2, "input_tokens": 100, "output_tokens": 10, **more})


class Acting(Subagents):
    """Runs `act` for every job; it has the tools that the job gives and the services that the job brings."""

    can_run = True

    def __init__(self, act: Act) -> None:
        self.act = act
        self.jobs: list[Job] = []
        self.running = self.most = 0
        self.engine: Engine | None = None

    async def work(self, job: Job, ctx: Context) -> Worked:
        assert self.engine is not None
        self.jobs.append(job)
        mode = ModeConfig(allow_mcp=True, allow_toolbox=True, only=job.agent.tools)
        branch = self.engine.branch(
            job.agent.name,
            mode,
            services=job.services,
            permission_mode=job.agent.mode,
            on_event=lambda _: None,
        )
        _lend(branch)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            said = await self.act(job, _use(branch))
        finally:
            self.running -= 1
            await branch.close()
        return said if isinstance(said, Worked) else done(said)


def _use(branch: "Branch") -> Use:
    async def use(name: str, /, **values: Any) -> Reply:
        return (await branch.run([Call(name, values)]))[0]

    return use


def _lend(branch: "Branch") -> None:
    """What the jail of a branch lends is part of its cases."""
    flow: Any = branch._flow
    case = flow.case
    flow.case = lambda ready: case(ready)._replace(lent=branch.jail.lent)


def opened(folder: Any, act: Act, **more: Any) -> tuple[Any, Any]:
    """An engine whose subagents act like this; everybody says yes to its calls."""
    acting = Acting(act)
    given = {"ask": lambda question: question.kind == "call", **more}
    engine = acting.engine = Engine(folder, subagents=acting, **given)
    return engine, acting


def alone(folder: Any, **more: Any) -> Any:
    """An engine without a model for subagents."""
    return Engine(folder, **more)


async def nobody(job: Job, use: Use) -> str:
    raise AssertionError(f"nobody was to be asked: {job}")


async def steps(count: int) -> None:
    """So many turns of the event loop."""
    for _ in range(count):
        await asyncio.sleep(0)
