"""Run the bodies of calls: on threads of their own, under a time limit, and with a count of repeated failures.

Code that Ferrule does not know has a thread with an event loop of its own for each call. Such a body may block,
spin or never return: the engine's loop goes on, and so do the other calls. A thread that does not come back is
given up; Python cannot stop it.

Progress starts the time limit anew, and one call cannot harm another.
"""

import asyncio
import contextlib
import contextvars
import json
import queue
import threading
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Literal, Protocol

from ferrule.core.errors import ToolFailure
from ferrule.core.tool import AnyTool, Args, Context

Body = Callable[[], Coroutine[Any, Any, Any]]
How = Literal["cancel", "set_result", "set_exception"]
"""How a future ends."""

_GRACE_SECONDS = 1.0
_IDLE_MOST = 16


class _Job:
    """One body, where its answer goes, and whether somebody has stopped it before it began."""

    def __init__(self, body: Body, answer: "asyncio.Future[Any]") -> None:
        self.body = body
        self.answer = answer
        self.home = answer.get_loop()
        self.context = contextvars.copy_context()
        self.stopped = False

    def tell(self, how: How, *what: Any) -> None:
        """Settle the answer, on the loop that waits for it."""

        def settle() -> None:
            if not self.answer.done():
                getattr(self.answer, how)(*what)

        with contextlib.suppress(RuntimeError):  # the engine's loop is gone, and with it whoever waited
            self.home.call_soon_threadsafe(settle)


class _Guest:
    """One thread and its loop. It does one job at a time."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._starting = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        """Everything that the body has started on its loop."""
        threading.Thread(target=self._serve, name="ferrule-guest", daemon=True).start()

    def take(self, job: _Job) -> None:
        self._jobs.put(job)

    def leave(self) -> None:
        """End the thread, after the job that it may still have."""
        self._jobs.put(None)

    def stop(self, job: _Job) -> None:
        """Ask the body to stop; one that blocks does not hear it."""
        with self._starting:
            job.stopped = True
            loop, task = self._loop, self._task
        if loop is not None and task is not None:
            with contextlib.suppress(RuntimeError):  # the loop was closed a moment ago
                loop.call_soon_threadsafe(task.cancel)

    def _serve(self) -> None:
        loop = self._loop = self._new_loop()
        while (job := self._jobs.get()) is not None:
            self._do(loop, job)
            if any(not task.done() for task in self._tasks):
                # What ignores being cancelled must not live on in the next call.
                loop.close()
                loop = self._loop = self._new_loop()
            self._tasks.clear()
            del job  # an idle thread holds on to nothing of the call
        try:
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()

    def _new_loop(self) -> asyncio.AbstractEventLoop:
        def start(loop: asyncio.AbstractEventLoop, body: Any, **more: Any) -> "asyncio.Task[Any]":
            task: asyncio.Task[Any] = asyncio.Task(body, loop=loop, **more)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return task

        loop = asyncio.new_event_loop()
        loop.set_task_factory(start)
        return loop

    def _do(self, loop: asyncio.AbstractEventLoop, job: _Job) -> None:
        with self._starting:
            if job.stopped:
                job.tell("cancel")
                return
            task = self._task = job.context.run(loop.create_task, _calmly(job.body))
        end: tuple[How, *tuple[Any, ...]]
        try:
            end = ("set_result", loop.run_until_complete(task))
        except asyncio.CancelledError:
            end = ("cancel",)
        except BaseException as raised:  # noqa: BLE001 - whatever a guest raises ends its call and nothing else
            end = ("set_exception", _calm(raised))
        with self._starting:
            self._task = None
        self._clear(loop)
        job.tell(*end)

    def _clear(self, loop: asyncio.AbstractEventLoop) -> None:
        """End what the body has left running."""
        left = {task for task in self._tasks if not task.done()}
        for task in left:
            task.cancel()
        if left:
            with contextlib.suppress(KeyboardInterrupt, SystemExit):
                loop.run_until_complete(asyncio.wait(left, timeout=_GRACE_SECONDS))


async def _calmly(body: Body) -> Any:
    """The body; what would end the program is raised as an ordinary error, before the loop sees it."""
    try:
        return await body()
    except (KeyboardInterrupt, SystemExit) as error:
        raise _calm(error) from error


def _calm(error: BaseException) -> Exception:
    """An exception that a future may carry and that ends nothing but its call."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    return RuntimeError(f"{type(error).__name__}: {error}")


class Guests:
    """Idle threads are kept for the next call."""

    def __init__(self) -> None:
        self._idle: list[_Guest] = []
        self._closed = False

    async def run(self, body: Body) -> Any:
        """Await `body()` on a thread of its own. Cancelling gives the body a moment to stop, then gives it up."""
        guest = self._idle.pop() if self._idle else _Guest()
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        job = _Job(body, answer)
        guest.take(job)
        try:
            return await asyncio.shield(answer)
        except asyncio.CancelledError:
            guest.stop(job)
            await asyncio.wait([answer], timeout=_GRACE_SECONDS)
            raise
        finally:
            if answer.done():
                if not answer.cancelled():
                    answer.exception()  # seen: nobody else will ask for it
                self._free(guest)
            else:
                answer.cancel()
                guest.leave()

    def _free(self, guest: _Guest) -> None:
        if self._closed or len(self._idle) >= _IDLE_MOST:
            guest.leave()
        else:
            self._idle.append(guest)

    def close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop().leave()


TIMES = 3


class Repeats:
    """Counts how often in a row one call has failed."""

    def __init__(self) -> None:
        self._last = ""
        self._times = 0

    def record_end(self, name: str, given: Mapping[str, Any] | str, *, failed: bool) -> str:
        """Take note of how a call ended; a sentence for the model when it is the third time, or a later one."""
        key = _key(name, given) if failed else ""
        if not key:
            # Another call that works may well be what the failing one needs next.
            self._last, self._times = "", 0
            return ""
        self._times = self._times + 1 if key == self._last else 1
        self._last = key
        if self._times < TIMES:
            return ""
        return (
            f"This very call has now failed {self._times} times in a row. "
            "The same call will fail again: change it, or look at why it fails."
        )


def _key(name: str, given: Mapping[str, Any] | str) -> str:
    try:
        return json.dumps([name, given], sort_keys=True, default=repr)
    except (TypeError, ValueError, RecursionError):  # keys that cannot be ordered, or nested without end
        return ""


class Timed(Context, Protocol):
    """A context that can be told how a call shows that it is alive."""

    alive: Callable[[], None] | None


class ToolRunner:
    """Awaits bodies. Tools that Ferrule does not know get a thread of their own."""

    def __init__(self, *, seconds: float) -> None:
        self._seconds = seconds
        self._guests: Guests | None = None

    async def run(self, tool: AnyTool, args: Args, ctx: Timed) -> Any:
        """What the tool returns. A tool that overruns fails with a sentence; what it raises passes through."""
        if not tool.timed:
            return await self._await_body(tool, args, ctx)
        try:
            async with asyncio.timeout(self._seconds) as limit:
                ctx.alive = lambda: self._extend(limit)
                return await self._await_body(tool, args, ctx)
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

    async def _await_body(self, tool: AnyTool, args: Args, ctx: Context) -> Any:
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
            self._guests = Guests()
        return await self._guests.run(lambda: tool.run(args, ctx))

    def close(self) -> None:
        if self._guests is not None:
            self._guests.close()
