"""Waiters: all of them are woken at once, and the clock wakes each at its moment."""

import asyncio

from ferrule.system.child import Waiters


async def begun(*waits):
    """Tasks that wait already."""
    tasks = [asyncio.create_task(one) for one in waits]
    await asyncio.sleep(0)
    return tasks


async def test_all_that_wait_go_on_when_it_happens():
    waiters = Waiters()
    tasks = await begun(waiters.wait(None), waiters.wait(asyncio.get_running_loop().time() + 1e6))
    assert not any(task.done() for task in tasks)
    waiters.wake()
    waiters.wake()  # twice before anybody could go on
    done, waiting = await asyncio.wait(tasks, timeout=30)

    assert (done, waiting) == (set(tasks), set())


async def test_what_has_happened_before_does_not_count():
    waiters = Waiters()
    waiters.wake()
    (task,) = await begun(waiters.wait(None))

    assert not task.done()
    waiters.wake()
    await asyncio.wait_for(task, 30)


async def test_the_clock_wakes_only_whom_it_is_time_for():
    waiters, now = Waiters(), asyncio.get_running_loop().time()
    soon, late = await begun(waiters.wait(now), waiters.wait(now + 1e6))
    await asyncio.wait_for(soon, 30)

    assert not late.done()
    late.cancel()
    await asyncio.wait([late])
    waiters.wake()  # nobody is left
