"""Work on threads: bounded, and a write that has begun is waited for however often somebody cancels."""

import asyncio
import threading

import pytest

from ferrule.system import Threads

LIMIT_SECONDS = 30


@pytest.fixture
def threads():
    pool = Threads(2)
    yield pool
    pool.close()


class Work:
    """Something that begins, waits to be let go, and ends."""

    def __init__(self, error: Exception | None = None) -> None:
        self.began = threading.Event()
        self.go = threading.Event()
        self.ended = threading.Event()
        self._error = error

    def __call__(self, answer: str = "done") -> str:
        self.began.set()
        assert self.go.wait(LIMIT_SECONDS)
        self.ended.set()
        if self._error is not None:
            raise self._error
        return answer

    async def begun(self) -> None:
        assert await asyncio.to_thread(self.began.wait, LIMIT_SECONDS)


async def test_work_runs_on_another_thread_and_its_outcome_comes_back(threads):
    assert await threads.run(threading.get_ident) != threading.get_ident()
    assert await threads.finish(max, 3, 5) == 5
    assert await threads.finish(sorted, [2, 1], reverse=True) == [2, 1]


@pytest.mark.parametrize("way", ["run", "finish"])
async def test_an_error_comes_back_as_it_is(threads, way):
    with pytest.raises(ZeroDivisionError):
        await getattr(threads, way)(divmod, 1, 0)


async def test_no_more_run_at_the_same_time_than_agreed(threads):
    works = [Work() for _ in range(3)]
    tasks = [asyncio.create_task(threads.run(work)) for work in works]
    await works[0].begun()
    await works[1].begun()
    third_waits = not works[2].began.is_set()
    for work in works:
        work.go.set()
    await asyncio.gather(*tasks)

    assert third_waits


async def test_cancelling_a_read_does_not_wait_for_it(threads):
    work = Work()
    task = asyncio.create_task(threads.run(work))
    await work.begun()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert not work.ended.is_set()
    work.go.set()


@pytest.mark.parametrize("error", [None, ValueError("wrong")], ids=["good", "bad"])
@pytest.mark.parametrize("times", [1, 5])
async def test_cancelling_a_write_that_has_begun_waits_for_its_end(threads, times, error):
    work = Work(error)
    task = asyncio.create_task(threads.finish(work))
    await work.begun()
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    still_there = not task.done()
    work.go.set()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert still_there
    assert work.ended.is_set()


async def test_a_write_that_is_cancelled_before_it_begins_never_begins(threads):
    busy = [Work(), Work()]
    running = [asyncio.create_task(threads.run(work)) for work in busy]
    for work in busy:
        await work.begun()
    late = Work()
    waiting = asyncio.create_task(threads.finish(late))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    for work in busy:
        work.go.set()
    await asyncio.gather(*running)
    await threads.run(int)
    await threads.run(int)

    assert not late.began.is_set()


async def test_closing_twice_is_fine_and_closing_unused_too():
    pool = Threads(1)
    pool.close()
    assert await pool.run(int) == 0
    pool.close()
    pool.close()
