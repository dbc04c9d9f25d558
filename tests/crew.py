"""Subagents without a model: they note what they are to do, and do what a test says."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from ferrule.core.errors import ToolFailure
from ferrule.core.services import Job, Subagent, Subagents, Worked
from ferrule.core.tool import Context

Plot = Callable[[Job], Worked | ToolFailure]


def done(job: Job) -> Worked:
    """A subagent that finds what it looks for."""
    return Worked(
        "a1f2c3",
        job.agent.name,
        "completed",
        "Found it.",
        description=job.description,
        turns=2,
        calls=3,
        input_tokens=1200,
        output_tokens=30,
        seconds=1.25,
    )


class Crew(Subagents):
    """Runs what `plot` says; one in the background runs until it is told to end."""

    can_run = True

    def __init__(self, plot: Plot = done) -> None:
        self.plot = plot
        self.jobs: list[Job] = []
        self.at_once = 0
        """How many have worked side by side."""
        self.stopped = 0
        """How many were cancelled."""
        self.gate: asyncio.Event | None = None
        """Nobody comes to an end before it is open."""
        self.caller: tuple[str, ...] | None = None
        """The tools of whoever asks, where a test says which."""
        self.waiting = 0
        """How many are waiting for one of the background."""
        self._now = 0
        self._left: dict[str, Worked] = {}
        self._ends: dict[str, asyncio.Event] = {}

    async def work(self, job: Job, ctx: Context) -> Worked:
        self.jobs.append(job)
        self._now += 1
        self.at_once = max(self.at_once, self._now)
        try:
            if self.gate is not None:
                await self.gate.wait()
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        finally:
            self._now -= 1
        return self._outcome(job)

    def _outcome(self, job: Job) -> Worked:
        found = self.plot(job)
        if isinstance(found, ToolFailure):
            raise found
        return found

    async def leave(self, job: Job, ctx: Context) -> Worked:
        self.jobs.append(job)
        name = f"a{len(self._left) + 1:05}"
        self._left[name] = Worked(name, job.agent.name, "running", "", description=job.description)
        self._ends[name] = asyncio.Event()
        return self._left[name]

    def end(self, name: str, **news: Any) -> None:
        """One of the background is done."""
        self._left[name] = self._left[name]._replace(**{"status": "completed", "text": "Found it.", **news})
        self._ends[name].set()

    async def poll(self, agent_id: str, wait_seconds: float = 0.0) -> Worked | None:
        if agent_id not in self._left:
            return None
        if wait_seconds:
            self.waiting += 1
            try:
                async with asyncio.timeout(wait_seconds):
                    await self._ends[agent_id].wait()
            except TimeoutError:
                pass
            finally:
                self.waiting -= 1
        return self._left[agent_id]

    async def stop(self, agent_id: str) -> Worked | None:
        if agent_id not in self._left:
            return None
        self.end(agent_id, status="stopped", text="So far.")
        return self._left[agent_id]

    def list(self) -> tuple[Worked, ...]:
        return tuple(self._left.values())

    def beyond(self, agent: Subagent, names: Sequence[str], ctx: Context) -> tuple[str, ...]:
        known = names if self.caller is None else [name for name in names if name in self.caller]
        return super().beyond(agent, known, ctx)
