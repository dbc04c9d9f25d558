"""Checkpoints around calls: which calls need one, and what each has changed."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

from ferrule.context import CallContext
from ferrule.core.access import MODE, UNKNOWN, Access
from ferrule.core.call import Changes
from ferrule.core.errors import ToolFailure
from ferrule.services import Services
from ferrule.system import Threads

_PATIENCE_SECONDS = 1.0
_BEAT_SECONDS = 1.0
_LATER_SECONDS = 0.05
"""The model is asked first: whoever looks at files meanwhile would only hold that up."""


class CallCheckpoints:
    """Keeps the workspace before calls that may change it otherwise than through the writer."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._background = ""
        """Commands that may have changed something since the last look."""
        self._timer: asyncio.TimerHandle | None = None
        self._pulse: asyncio.TimerHandle | None = None
        self._looks: set[asyncio.Task[None]] = set()
        """Those that go on: a call that is cancelled does not wait for its look."""
        self.tell: Callable[[Mapping[str, str]], None] | None = None
        """Told once what checkpoints leave out, as paths, each with the reason."""

    def is_needed(self, touches: Iterable[Access], *, hooked: bool) -> bool:
        """May a call with these accesses change files that nothing else keeps? `hooked`: hooks are told of it."""
        if not self._services.keeps_checkpoints():
            return False
        return any(
            access.mode == "write" and access != MODE and (hooked or access.kind in UNKNOWN) for access in touches
        )

    async def begin(self, ctx: CallContext) -> bool:
        """Keep the state of the workspace; no where that could not be done, and will not be tried again."""
        background = self._take_background()
        look = self._start_task(self._run(ctx, background))
        try:
            done, _ = await asyncio.wait((look,), timeout=_PATIENCE_SECONDS)
            if not done:
                ctx.progress("Keeping the state of the workspace, so that it can be brought back.")
            await asyncio.shield(look)
        except asyncio.CancelledError:
            self._start_task(self._abandon(look, ctx))
            raise
        except OSError as error:
            why = error.strerror or str(error)
            self._services.give_up_checkpoints(why)
            ctx.note(f"What commands change cannot be undone in this session: the workspace could not be kept ({why}).")
        else:
            ctx.checkpointed = True
            self._beat()
            self._tell_left_out()
        return ctx.checkpointed

    def _start_task(self, look: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Begin a look. Nobody needs to wait for it: its error is taken note of."""
        task = asyncio.get_running_loop().create_task(look)
        self._looks.add(task)
        task.add_done_callback(self._on_task_done)
        return task

    def _on_task_done(self, look: "asyncio.Task[None]") -> None:
        self._looks.discard(look)
        if not look.cancelled():
            look.exception()

    async def _abandon(self, look: "asyncio.Task[None]", ctx: CallContext) -> None:
        """Take back that a command runs: the call was cancelled before it did."""
        await asyncio.wait((look,))
        if not look.cancelled() and look.exception() is None:
            await self.end(ctx)

    async def end(self, ctx: CallContext) -> Changes | None:
        """What the call has changed, now in the journal."""
        self._take_background()
        try:
            return await self._services[Threads].finish(
                self._services.checkpoints().end, _about(ctx), ctx.call_id, self._files_hidden_from(ctx)
            )
        except OSError as error:
            ctx.note(f"What this call has changed could not be kept, so it cannot be undone: {error}.")
            return None

    def _tell_left_out(self) -> None:
        if self.tell is not None:
            tell, self.tell = self.tell, None
            tell(self._services.checkpoints().left_out)

    def _take_background(self) -> str:
        """The commands that may have changed something since the last look; those that still run may do so again."""
        background = self._background
        tasks = self._services.running_commands()
        self._background = "in the background: " + "; ".join(tasks) if tasks else ""
        return background

    def _beat(self) -> None:
        """Have it on disk, as long as calls run, that they do."""
        if self._pulse is not None:
            self._pulse.cancel()
            self._pulse = None
        if self._services.has_checkpoints() and self._services.checkpoints().beat():
            self._pulse = asyncio.get_running_loop().call_later(_BEAT_SECONDS, self._beat)

    def prepare(self) -> None:
        """Have the state of the workspace kept in a moment, once: the first command then need not wait for it.

        Not where every file would be copied for a session that may never run a command.
        """
        if self._timer is None and self._services.keeps_checkpoints() and self._services.has_much_kept():
            self._timer = asyncio.get_running_loop().call_later(_LATER_SECONDS, self._begin_to_prepare)

    def _begin_to_prepare(self) -> None:
        self._start_task(self._prepare())

    async def _prepare(self) -> None:
        try:
            await self._look("")
        except OSError as error:
            self._services.give_up_checkpoints(error.strerror or str(error))
        else:
            self._tell_left_out()

    async def close(self) -> None:
        """Stop what was begun, and wait for that."""
        for timer in (self._timer, self._pulse):
            if timer is not None:
                timer.cancel()
        while self._looks:
            self._services.checkpoints().stop()
            await asyncio.wait(tuple(self._looks))

    async def settle(self, *, is_looked: bool = False) -> None:
        """Write down what commands have changed since the last look, in the background or when a process died.

        `is_looked`: have a look in any case, so that it is known what is left out.
        """
        background = self._take_background()
        died = await self._services[Threads].run(self._services.journal().find_interrupted)
        try:
            is_new = is_looked and not self._services.has_checkpoints()
            if background or died or self._services.running_commands() or is_new:
                await self._look(background)
            if self._services.has_checkpoints():
                hidden = await self._services[Threads].run(self._hidden_files)
                await self._services[Threads].finish(self._services.checkpoints().make_sure, hidden)
        except OSError as error:
            raise ToolFailure(
                f"The workspace cannot be kept as it is now ({error.strerror or error}), so nothing is put back. "
                "Make room or rights for it, and try again.",
                code="not-kept",
            ) from error

    async def _look(self, background: str) -> None:
        """Look at the workspace while no call needs it. Secret files are kept only when a call may change them."""
        hidden = await self._services[Threads].run(self._hidden_files)
        await self._services[Threads].finish(self._services.checkpoints().begin, hidden, background=background)

    async def _run(self, ctx: CallContext, background: str) -> None:
        checkpoints = self._services.checkpoints()
        hidden = await self._services[Threads].run(self._files_hidden_from, ctx)
        about = {"about": _about(ctx), "call_id": ctx.call_id}
        await self._services[Threads].finish(checkpoints.begin, hidden, background=background, **about)

    def _files_hidden_from(self, ctx: CallContext) -> frozenset[str]:
        """The secret files that the call cannot change: none of them is kept."""
        is_command = any(access.kind == "command" for access in ctx.touches)
        if not is_command or ctx.input.get("outside"):
            return frozenset()
        return self._hidden_files()

    def _hidden_files(self) -> frozenset[str]:
        try:
            return self._services.confinement().hidden_files()
        except ToolFailure:  # nothing can confine commands, so none will run
            return frozenset()


def _about(ctx: CallContext) -> str:
    """What a call is named by: its command line, or its tool."""
    return next((access.key for access in ctx.touches if access.kind == "command"), ctx.name)
