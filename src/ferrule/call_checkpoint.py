"""Checkpoints around calls: which calls need one, and what each has changed."""

import asyncio
from collections.abc import Iterable

from ferrule.context import CallContext
from ferrule.core.access import MODE, UNKNOWN, Access
from ferrule.core.errors import ToolFailure
from ferrule.core.reply import Changes
from ferrule.services import Services
from ferrule.support.threads import Threads

_PATIENCE_SECONDS = 1.0


class CallCheckpoints:
    """Keeps the workspace before calls that may change it otherwise than through the writer."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._background = ""
        """Commands that may have changed something since the last look."""

    def is_needed(self, touches: Iterable[Access], *, hooked: bool) -> bool:
        """May a call with these accesses change files that nothing else keeps? `hooked`: hooks are told of it."""
        if not self._services.keeps_checkpoints():
            return False
        return any(
            access.mode == "write" and access != MODE and (hooked or access.kind in UNKNOWN) for access in touches
        )

    async def begin(self, ctx: CallContext) -> None:
        """Keep the state of the workspace. Raises `ToolFailure`: then nothing runs."""
        background, self._background = self._background, ""
        look = asyncio.ensure_future(self._run(ctx, background))
        try:
            done, _ = await asyncio.wait((look,), timeout=_PATIENCE_SECONDS)
            if not done:
                ctx.progress("Keeping the state of the workspace, so that it can be brought back.")
            await look
            ctx.checkpointed = True
        except OSError as error:
            self._services.give_up_checkpoints(f"{error.strerror or error}")
            raise ToolFailure(
                f"It was not run: the state of the workspace could not be kept ({error}), so what it changes could not "
                "be taken back. Make the call again to run it without that.",
                code="no-checkpoint",
            ) from error

    async def end(self, ctx: CallContext) -> Changes | None:
        """What the call has changed, now in the journal."""
        if tasks := self._services.running_commands():
            self._background = "in the background: " + "; ".join(tasks)
        about = next((access.key for access in ctx.touches if access.kind == "command"), ctx.name)
        try:
            return await self._services[Threads].finish(
                self._services.checkpoints().end, about, ctx.call_id, self._hidden(ctx)
            )
        except OSError as error:
            ctx.note(f"What this call has changed could not be kept, so it cannot be undone: {error}.")
            return None

    async def settle(self) -> None:
        """Write down what commands in the background have changed since the last look."""
        background, self._background = self._background, ""
        if background or self._services.running_commands():
            await self._services[Threads].finish(self._services.checkpoints().begin, frozenset(), background=background)

    async def _run(self, ctx: CallContext, background: str) -> None:
        checkpoints = self._services.checkpoints()
        hidden = await self._services[Threads].run(self._hidden, ctx)
        await self._services[Threads].finish(checkpoints.begin, hidden, background=background)

    def _hidden(self, ctx: CallContext) -> frozenset[str]:
        """The secret files that the call cannot change: none of them is kept."""
        is_command = any(access.kind == "command" for access in ctx.touches)
        if not is_command or ctx.input.get("outside"):
            return frozenset()
        return self._services.confinement().hidden_files()
