"""The one await of a tool's body: its time limit, what extends it, and what passes through."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any

import pytest

from ferrule.core.errors import ToolFailure
from ferrule.core.tool import Args, Context, Tool
from ferrule.execute import ToolRunner
from ferrule.settings import LimitSettings

LIMIT_SECONDS = 10
SHORT = 0.05
"""A time limit that a test waits for."""
LONG = 3600.0


class Clock:
    """The loop's clock, which a test can put forward."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        real = asyncio.get_running_loop().time
        self.ahead_seconds = 0.0
        patch.setattr(asyncio.get_running_loop(), "time", lambda: real() + self.ahead_seconds)

    async def forward(self, seconds: float) -> None:
        """So much later, and everything that was due by then has happened."""
        self.ahead_seconds += seconds
        for _ in range(5):
            await asyncio.sleep(0)


@pytest.fixture
async def clock(monkeypatch):
    return Clock(monkeypatch)


class Told:
    """A call's context, as far as running a body needs one."""

    def __init__(self) -> None:
        self.alive: Callable[[], None] | None = None

    def progress(self, message: str) -> None:
        assert self.alive is not None
        self.alive()


class Own(Tool[Args, Any]):
    """A tool whose body the test writes."""

    name = "own"
    args = Args

    def __init__(self, body: Callable[[Any], Any], *, timed: bool = True, own_thread: bool = False) -> None:
        self.body = body
        self.timed = timed
        self.own_thread = own_thread

    async def run(self, args: Args, ctx: Context) -> Any:
        return await self.body(ctx)


async def ran(runner: ToolRunner, tool: Own, ctx: Any = None) -> Any:
    try:
        async with asyncio.timeout(LIMIT_SECONDS):
            given: Any = ctx or Told()
            return await runner.run(tool, Args(), given)
    finally:
        runner.close()


async def never(_: Any) -> None:
    await asyncio.Event().wait()


async def soon(_: Any) -> str:
    await asyncio.sleep(0)
    return "done"


THREADS = pytest.mark.parametrize("own_thread", [False, True], ids=["on-the-loop", "on-its-own-thread"])


@THREADS
async def test_what_the_body_returns_comes_back(own_thread):
    assert await ran(ToolRunner(seconds=LONG), Own(soon, own_thread=own_thread)) == "done"


@pytest.mark.contract("timeout.default", "timeout.message")
@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        pytest.param(120.0, "120", id="whole"),
        pytest.param(90.5, "90.5", id="half"),
        pytest.param(1_000_000.0, "1000000", id="long"),
        pytest.param(120, "120", id="integer"),
    ],
)
async def test_a_call_that_overruns_fails_with_the_seed_s_sentence(clock, seconds, said):
    call = asyncio.create_task(ToolRunner(seconds=seconds).run(Own(never), Args(), Told()))  # type: ignore[arg-type]
    await clock.forward(0)
    await clock.forward(seconds * 0.9)
    is_over_early = call.done()
    await clock.forward(seconds * 0.2)
    error = call.exception()

    assert not is_over_early
    assert isinstance(error, ToolFailure)
    assert (error.message, error.code) == (f"Tool execution timed out after {said} seconds", "timed-out")


@pytest.mark.contract("timeout.default")
def test_the_limit_is_120_seconds_unless_somebody_says_otherwise():
    assert LimitSettings().seconds == 120.0


@THREADS
async def test_a_body_that_overruns_is_cancelled(own_thread):
    ended: list[str] = []

    async def body(_: Any) -> None:
        try:
            await never(None)
        finally:
            ended.append("cleaned up")

    with pytest.raises(ToolFailure, match=r"timed out after 0\.05 seconds"):
        await ran(ToolRunner(seconds=SHORT), Own(body, own_thread=own_thread))
    assert ended == ["cleaned up"]


@pytest.mark.contract("timeout.progress")
async def test_progress_starts_the_limit_anew(clock):
    ctx = Told()
    call = asyncio.create_task(ToolRunner(seconds=LONG).run(Own(never), Args(), ctx))  # type: ignore[arg-type]
    await clock.forward(0)
    for _ in range(5):
        await clock.forward(LONG * 0.9)
        ctx.progress("still here")
    is_over_early = call.done()
    await clock.forward(LONG * 1.1)

    assert (is_over_early, isinstance(call.exception(), ToolFailure)) == (False, True)


@THREADS
async def test_a_call_that_is_over_can_no_longer_be_extended(own_thread):
    ctx = Told()
    await ran(ToolRunner(seconds=LONG), Own(soon, own_thread=own_thread), ctx)

    assert ctx.alive is None


async def test_progress_while_the_limit_ends_the_call_is_harmless():
    async def body(ctx: Told) -> None:
        try:
            await never(None)
        finally:
            ctx.progress("too late")

    with pytest.raises(ToolFailure, match="timed out"):
        await ran(ToolRunner(seconds=SHORT), Own(body))


@pytest.mark.contract("timeout.disabled")
async def test_a_tool_without_a_limit_is_never_stopped():
    gate = asyncio.Event()

    async def body(ctx: Told) -> str:
        assert ctx.alive is None
        await gate.wait()
        return "done"

    asyncio.get_running_loop().call_later(SHORT * 2, gate.set)

    assert await ran(ToolRunner(seconds=SHORT / 10), Own(body, timed=False)) == "done"


@THREADS
async def test_a_tool_s_own_time_out_passes_as_its_own_error(own_thread):
    async def body(_: Any) -> None:
        raise TimeoutError("the server did not answer")

    with pytest.raises(TimeoutError, match="the server did not answer"):
        await ran(ToolRunner(seconds=LONG), Own(body, own_thread=own_thread))


@THREADS
@pytest.mark.parametrize(
    "error", [ToolFailure("Give a path."), ValueError("bug"), OSError(5, "EIO")], ids=["failure", "bug", "system"]
)
async def test_what_the_body_raises_passes_through(own_thread, error):
    async def body(_: Any) -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        await ran(ToolRunner(seconds=LONG), Own(body, own_thread=own_thread))
    assert caught.value is error


@THREADS
@pytest.mark.parametrize("timed", [True, False], ids=["timed", "untimed"])
async def test_cancellation_passes_through(own_thread, timed):
    started = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def body(_: Any) -> None:
        loop.call_soon_threadsafe(started.set)
        await never(None)

    task = asyncio.create_task(ran(ToolRunner(seconds=LONG), Own(body, own_thread=own_thread, timed=timed)))
    async with asyncio.timeout(LIMIT_SECONDS):
        await started.wait()
    task.cancel()
    await asyncio.wait([task], timeout=LIMIT_SECONDS)

    assert task.cancelled()


@THREADS
async def test_a_tool_that_cancels_itself_fails_instead_of_looking_stopped(own_thread):
    async def body(_: Any) -> None:
        raise asyncio.CancelledError

    with pytest.raises(RuntimeError, match="the tool cancelled itself"):
        await ran(ToolRunner(seconds=LONG), Own(body, own_thread=own_thread))


@THREADS
async def test_a_tool_that_wants_to_end_the_program_ends_its_call(own_thread):
    async def body(_: Any) -> None:
        raise SystemExit(3)

    with pytest.raises(RuntimeError, match="SystemExit: 3"):
        await ran(ToolRunner(seconds=LONG), Own(body, own_thread=own_thread))


async def test_a_tool_that_catches_its_time_out_and_answers_is_heard():
    async def body(_: Any) -> str:
        with contextlib.suppress(asyncio.CancelledError):
            await never(None)
        return "what I have so far"

    assert await ran(ToolRunner(seconds=SHORT), Own(body)) == "what I have so far"


@THREADS
async def test_a_body_that_is_no_coroutine_fails_alone(own_thread):
    class Rubbish(Own):
        def run(self, args: Args, ctx: Context) -> Any:
            return 5

    with pytest.raises(TypeError):
        await ran(ToolRunner(seconds=LONG), Rubbish(soon, own_thread=own_thread))


async def test_a_runner_that_never_had_a_guest_closes_and_has_started_no_thread():
    before = threading.active_count()
    ToolRunner(seconds=LONG).close()

    assert threading.active_count() == before
