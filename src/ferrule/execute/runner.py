"""One body, one time limit that progress starts anew, and no way to harm another call."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from ferrule.core.args import Args
from ferrule.core.errors import ToolFailure
from ferrule.core.tool import AnyTool, Context

if TYPE_CHECKING:
    from ferrule.execute.guests import Guests


class Timed(Context, Protocol):
    """A context that can be told how a call shows that it is alive."""

    alive: Callable[[], None] | None


class Runner:
    """Awaits bodies. Tools that Ferrule does not know get a thread of their own."""

    def __init__(self, *, seconds: float) -> None:
        self._seconds = seconds
        self._guests: Guests | None = None

    async def run(self, tool: AnyTool, args: Args, ctx: Timed) -> Any:
        """What the tool returns. A tool that overruns fails with a sentence; what it raises passes through."""
        if not tool.timed:
            return await self._awaited(tool, args, ctx)
        try:
            async with asyncio.timeout(self._seconds) as limit:
                ctx.alive = lambda: self._extend(limit)
                return await self._awaited(tool, args, ctx)
        except TimeoutError as error:
            if not limit.expired():
                raise  # the tool's own
            message = f"Tool execution timed out after {self._seconds:.12g} seconds"
            raise ToolFailure(message, code="timed-out") from error
        finally:
            ctx.alive = None

    def _extend(self, limit: asyncio.Timeout) -> None:
        if not limit.expired():
            limit.reschedule(asyncio.get_running_loop().time() + self._seconds)

    async def _awaited(self, tool: AnyTool, args: Args, ctx: Context) -> Any:
        try:
            return await self._body(tool, args, ctx)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Nobody stopped the call: something inside the tool was cancelled, and the tool let it pass.
            raise RuntimeError("the tool cancelled itself") from error
        except SystemExit as error:
            raise RuntimeError(f"the tool wanted to end the program: SystemExit: {error}") from error

    async def _body(self, tool: AnyTool, args: Args, ctx: Context) -> Any:
        if not tool.own_thread:
            return await tool.run(args, ctx)
        if self._guests is None:
            from ferrule.execute.guests import Guests  # only tools from elsewhere need threads

            self._guests = Guests()
        return await self._guests.run(lambda: tool.run(args, ctx))

    def close(self) -> None:
        if self._guests is not None:
            self._guests.close()
