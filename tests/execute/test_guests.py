"""Code that Ferrule does not know: it may block, raise anything, leave things running, or never come back."""

import asyncio
import contextvars
import gc
import logging
import threading
import weakref
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from ferrule import execute
from ferrule.execute import Guests

LIMIT_SECONDS = 10


@pytest.fixture
def guests() -> Iterator[Guests]:
    opened = Guests()
    yield opened
    opened.close()


@pytest.fixture(autouse=True, scope="module")
def only_what_is_new_is_swept_up() -> None:
    """What other tests of this process have left lives on: a collection that looks through all of it takes a second."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def no_thread_or_loop_is_left() -> Iterator[None]:
    """Every thread that a test starts ends, and nothing complains when it is swept up."""
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(LIMIT_SECONDS)
        assert not thread.is_alive(), f"{thread.name} is left"
    gc.collect()


@pytest.fixture(autouse=True)
def nothing_is_complained_about(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """asyncio logs what nobody has asked for: exceptions, pending tasks."""
    caplog.set_level(logging.WARNING, "asyncio")
    yield
    gc.collect()
    assert [record.getMessage() for record in caplog.records] == []


async def within(awaitable: Any) -> Any:
    async with asyncio.timeout(LIMIT_SECONDS):
        return await awaitable


async def test_a_body_that_blocks_does_not_hold_up_the_engine_s_loop(guests):
    release = threading.Event()
    running = threading.Event()

    async def body() -> str:
        running.set()
        assert release.wait(LIMIT_SECONDS)
        return "done"

    call = asyncio.create_task(guests.run(body))
    while not running.is_set():
        await asyncio.sleep(0)
    turns = 0
    for _ in range(100):
        await asyncio.sleep(0)
        turns += 1
    is_done = call.done()
    release.set()

    assert (turns, is_done, await within(call)) == (100, False, "done")


async def test_two_bodies_that_wait_for_each_other_both_end(guests):
    barrier = threading.Barrier(2, timeout=LIMIT_SECONDS)

    async def body() -> str:
        barrier.wait()
        return threading.current_thread().name

    assert await within(asyncio.gather(guests.run(body), guests.run(body))) == ["ferrule-guest"] * 2


async def test_a_body_has_a_running_loop_of_its_own(guests):
    home = asyncio.get_running_loop()

    async def body() -> bool:
        await asyncio.sleep(0)
        return asyncio.get_running_loop() is not home

    assert await within(guests.run(body))


async def test_a_body_sees_the_caller_s_context_and_cannot_change_it(guests):
    variable = contextvars.ContextVar("variable", default="outside")
    variable.set("caller")

    async def body() -> str:
        seen = variable.get()
        variable.set("guest")
        return seen

    assert (await within(guests.run(body)), variable.get()) == ("caller", "caller")


class Odd(BaseException):
    """Neither an error nor an exit."""


@pytest.mark.parametrize(
    ("error", "expected", "message"),
    [
        pytest.param(ValueError("bug"), ValueError, "bug", id="ordinary"),
        pytest.param(TimeoutError("own"), TimeoutError, "own", id="time-out"),
        pytest.param(SystemExit(3), RuntimeError, "SystemExit: 3", id="exit"),
        pytest.param(KeyboardInterrupt(), RuntimeError, "KeyboardInterrupt: ", id="interrupt"),
        pytest.param(StopIteration("x"), RuntimeError, "StopIteration", id="stop-iteration"),
        pytest.param(StopAsyncIteration("x"), StopAsyncIteration, "x", id="stop-async-iteration"),
        pytest.param(GeneratorExit(), RuntimeError, "GeneratorExit: ", id="generator-exit"),
        pytest.param(Odd("odd"), RuntimeError, "Odd: odd", id="base-exception"),
    ],
)
async def test_whatever_a_body_raises_is_an_ordinary_error_of_its_call(guests, error, expected, message):
    async def body() -> None:
        raise error

    async def after() -> str:
        return "still here"

    with pytest.raises(expected, match=message):
        await within(guests.run(body))
    assert await within(guests.run(after)) == "still here"


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
async def test_a_side_task_that_wants_to_end_the_program_ends_its_call(guests, caplog, error):
    async def side() -> None:
        raise error

    async def body() -> None:
        await asyncio.gather(side(), asyncio.Event().wait())

    with pytest.raises(RuntimeError, match=error.__name__):
        await within(guests.run(body))
    assert await within(guests.run(nothing)) is None
    gc.collect()
    caplog.clear()  # nobody has asked for what the side task raised


async def test_what_a_body_leaves_running_ends_with_its_call(guests):
    ended = threading.Event()

    async def left() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def body() -> str:
        body.task = asyncio.create_task(left())  # type: ignore[attr-defined]
        await asyncio.sleep(0)
        return "done"

    assert await within(guests.run(body)) == "done"
    assert ended.is_set()


async def test_what_will_not_end_is_not_carried_into_the_next_call(guests, monkeypatch, caplog):
    monkeypatch.setattr(execute, "_GRACE_SECONDS", 0.05)
    turns: list[str] = []

    async def stubborn() -> None:
        while True:
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                turns.append("refused")

    async def body() -> str:
        body.task = asyncio.create_task(stubborn())  # type: ignore[attr-defined]
        await asyncio.sleep(0)
        return "done"

    async def after() -> int:
        count = len(turns)
        for _ in range(10):
            await asyncio.sleep(0)
        return len(turns) - count

    assert await within(guests.run(body)) == "done"
    assert await within(guests.run(after)) == 0
    del body.task  # type: ignore[attr-defined]
    gc.collect()
    caplog.clear()  # it is allowed to be complained about


async def test_cancelling_a_call_cancels_its_body_and_waits_for_it(guests):
    started, ended = threading.Event(), threading.Event()

    async def body() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    call = asyncio.create_task(guests.run(body))
    while not started.is_set():
        await asyncio.sleep(0)
    call.cancel()
    await asyncio.wait([call], timeout=LIMIT_SECONDS)

    assert (call.cancelled(), ended.is_set(), len(guests._idle)) == (True, True, 1)


async def test_a_call_that_is_cancelled_before_it_begins_never_begins(guests):
    begun: list[int] = []
    hold = threading.Event()

    async def blocker() -> None:
        hold.wait(LIMIT_SECONDS)

    async def body() -> None:
        begun.append(1)

    # A guest that is still busy with an earlier job has the later one in its queue.
    guest = execute._Guest()
    answers = [asyncio.get_running_loop().create_future() for _ in range(2)]
    jobs = [execute._Job(each, answer) for each, answer in zip((blocker, body), answers, strict=True)]
    for job in jobs:
        guest.take(job)
    guest.stop(jobs[1])
    hold.set()
    await asyncio.wait(answers, timeout=LIMIT_SECONDS)
    guest.leave()

    assert (begun, answers[1].cancelled()) == ([], True)


@pytest.mark.parametrize("ending", ["returns", "raises", "exits"])
async def test_a_body_that_never_hears_is_given_up(guests, monkeypatch, ending):
    monkeypatch.setattr(execute, "_GRACE_SECONDS", 0.05)
    started, release = threading.Event(), threading.Event()

    async def body() -> str:
        started.set()
        release.wait(LIMIT_SECONDS)
        if ending == "raises":
            raise ValueError("late")
        if ending == "exits":
            raise SystemExit(1)
        return "late"

    call = asyncio.create_task(guests.run(body))
    while not started.is_set():
        await asyncio.sleep(0)
    call.cancel()
    await asyncio.wait([call], timeout=LIMIT_SECONDS)
    is_over, idle = call.cancelled(), len(guests._idle)
    release.set()

    assert (is_over, idle) == (True, 0)


async def test_a_call_that_is_cancelled_twice_gives_its_body_up_at_once(guests, monkeypatch):
    monkeypatch.setattr(execute, "_GRACE_SECONDS", 3600.0)
    started, release = threading.Event(), threading.Event()

    async def body() -> None:
        started.set()
        release.wait(LIMIT_SECONDS)

    call = asyncio.create_task(guests.run(body))
    while not started.is_set():
        await asyncio.sleep(0)
    call.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    call.cancel()
    await asyncio.wait([call], timeout=LIMIT_SECONDS)
    is_over = call.cancelled()
    release.set()

    assert is_over


async def test_a_body_that_answers_although_it_was_cancelled_is_not_heard(guests):
    started = threading.Event()

    async def body() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ValueError("instead") from None
        return ""

    call = asyncio.create_task(guests.run(body))
    while not started.is_set():
        await asyncio.sleep(0)
    call.cancel()
    await asyncio.wait([call], timeout=LIMIT_SECONDS)

    assert call.cancelled()


async def test_threads_are_reused(guests):
    async def body() -> int:
        return threading.get_ident()

    idents = {await within(guests.run(body)) for _ in range(20)}

    assert len(idents) == 1


async def test_idle_threads_are_not_kept_without_end(guests):
    most = execute._IDLE_MOST
    barrier = threading.Barrier(most + 4, timeout=LIMIT_SECONDS)

    async def body() -> None:
        barrier.wait()

    await within(asyncio.gather(*(guests.run(body) for _ in range(most + 4))))

    assert len(guests._idle) == most


async def test_a_thread_that_comes_back_after_closing_ends():
    guests = Guests()
    started, release = threading.Event(), threading.Event()

    async def body() -> str:
        started.set()
        release.wait(LIMIT_SECONDS)
        return "late"

    call = asyncio.create_task(guests.run(body))
    while not started.is_set():
        await asyncio.sleep(0)
    guests.close()
    release.set()

    assert (await within(call), guests._idle) == ("late", [])


async def test_an_idle_thread_holds_on_to_nothing_of_its_last_call(guests):
    class Large:
        """Something that a call returns."""

    async def body() -> Large:
        return Large()

    seen = weakref.ref(await within(guests.run(body)))
    async with asyncio.timeout(LIMIT_SECONDS):
        while seen() is not None:
            await asyncio.sleep(0)
            gc.collect()

    assert len(guests._idle) == 1


async def nothing() -> None:
    pass


async def test_generators_that_a_body_leaves_open_are_closed_with_the_thread():
    closed = threading.Event()

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            closed.set()

    async def body() -> int:
        body.numbers = numbers()  # type: ignore[attr-defined]
        return await anext(body.numbers)  # type: ignore[attr-defined]

    guests = Guests()
    first = await within(guests.run(body))
    guests.close()

    assert (first, await asyncio.to_thread(closed.wait, LIMIT_SECONDS)) == (1, True)


def test_a_loop_that_is_gone_is_not_told():
    async def main() -> None:
        call = asyncio.create_task(guests.run(body))
        while not started.is_set():
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.wait([call])

    async def body() -> None:
        started.set()
        release.wait(LIMIT_SECONDS)

    guests, started, release = Guests(), threading.Event(), threading.Event()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execute, "_GRACE_SECONDS", 0.05)
        asyncio.run(main())
    threads = [thread for thread in threading.enumerate() if thread.name == "ferrule-guest"]
    release.set()
    guests.close()
    for thread in threads:
        thread.join(LIMIT_SECONDS)

    assert not any(thread.is_alive() for thread in threads)
