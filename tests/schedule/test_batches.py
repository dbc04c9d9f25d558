"""Whole messages: the seed's batches, long messages in every shape, and messages that end badly."""

import asyncio
import os
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from ferrule.core.access import EVERYTHING, Access, conflicts
from ferrule.core.errors import ConfigError
from ferrule.schedule import Scheduler, batches

Touched = Sequence[Access]


def path(*components: str) -> str:
    return os.sep + os.sep.join(components)


A, B, C = path("a"), path("b"), path("c")


def as_the_seed_writes_it(calls: list[tuple[int, Touched | None]]) -> list[list[int]]:
    """Its pseudocode line by line; two calls are compared as its conflict rules say."""
    out: list[list[int]] = []
    batch: list[tuple[int, Touched | None]] = []
    for call, touched in calls:
        if any(touched is None or other is None or conflicts(touched, other) for _, other in batch):
            out.append([number for number, _ in batch])
            batch = []
        batch.append((call, touched))
    if batch:
        out.append([number for number, _ in batch])
    return out


@each_row(
    ("calls", "expected"),
    [
        pytest.param([], [], id="no-calls"),
        pytest.param(
            [
                ("Read A", [Access.read(A)]),
                ("Read B", [Access.read(B)]),
                ("Edit A", [Access.write(A)]),
                ("Read C", [Access.read(C)]),
            ],
            [["Read A", "Read B"], ["Edit A", "Read C"]],
            id="the-example-by-the-algorithm",
        ),
        pytest.param([("x", None), ("y", None)], [["x"], ["y"]], id="rule-1-no-profile-conflicts"),
        pytest.param([("x", []), ("y", None), ("z", [])], [["x"], ["y"], ["z"]], id="rule-1-with-any-other"),
        pytest.param(
            [("x", [EVERYTHING]), ("y", [EVERYTHING]), ("z", [Access.read(A)])],
            [["x"], ["y"], ["z"]],
            id="rule-2-serial-always-conflicts",
        ),
        pytest.param([("x", [Access.read(A)]), ("y", [Access.write(A)])], [["x"], ["y"]], id="rule-3-read-write"),
        pytest.param([("x", [Access.write(A)]), ("y", [Access.write(A)])], [["x"], ["y"]], id="rule-3-two-writes"),
        pytest.param([("x", [Access.read(A)]), ("y", [Access.read(A)])], [["x", "y"]], id="rule-4-two-reads"),
        pytest.param([("x", [Access.write(A)]), ("y", [Access.write(B)])], [["x", "y"]], id="two-files"),
        pytest.param(
            [("grep", [Access.read(A)]), ("edit", [Access.write(path("a", "f"))])],
            [["grep"], ["edit"]],
            id="a-file-below-a-folder",
        ),
        pytest.param(
            [
                ("x", [Access.write(A)]),
                ("y", [Access.read(A)]),
                ("z", [Access.write(B)]),
                ("w", [Access.write(A)]),
            ],
            [["x"], ["y", "z"], ["w"]],
            id="only-the-current-batch-counts",
        ),
        pytest.param(
            [("x", [Access.read(A), Access.write(path("a", "f"))]), ("y", [])],
            [["x", "y"]],
            id="a-call-never-conflicts-with-itself",
        ),
    ],
)
def test_a_message_is_cut_as_the_seed_says(calls: list[tuple[str, Touched | None]], expected: list[list[str]]) -> None:
    assert batches(calls) == expected


keys = st.sampled_from([os.sep, A, path("a", "b"), path("a", "b", "c"), path("a", "bc"), B])
modes = st.sampled_from(["read", "write"])
accesses = st.builds(Access, st.sampled_from(["path", "path", "path", "host"]), modes, keys)
reads = st.builds(lambda key: [Access.read(key)], keys)
commands = st.builds(
    lambda mode, shell: Access("command", mode, "line", shell=shell),
    st.sampled_from(["read", "write"]),
    st.sampled_from(["", "follows", "moves"]),
)
profiles = st.lists(reads | st.none() | st.lists(accesses | commands | st.just(EVERYTHING), max_size=2), max_size=12)


@given(profiles)
def test_batches_are_those_of_the_algorithm_and_keep_every_call_in_order(message: list[Touched | None]) -> None:
    calls = list(enumerate(message))
    cut = batches(calls)

    assert cut == as_the_seed_writes_it(calls)
    assert [call for batch in cut for call in batch] == list(range(len(message)))


def shapes(count: int) -> dict[str, list[Touched]]:
    """Messages of that many calls."""
    half = count // 2
    deep = path(*(f"folder{n}" for n in range(60)))
    read = [[Access.read(path("src", f"{n}.py"))] for n in range(count)]
    write = [[Access.write(path("src", f"{n}.py"))] for n in range(count)]
    write_deep = [[Access.write(os.path.join(deep, f"{n}"))] for n in range(count)]
    read_folder, write_folder = [Access.read(path("src"))], [Access.write(path("src"))]
    return {
        "reads-of-different-files": [*read],
        "writes-of-one-file": [write[0]] * count,
        "everything": [[EVERYTHING]] * count,
        "nothing": [()] * count,
        "one-host": [[Access.host("x", mode="write" if n % 3 else "read")] for n in range(count)],
        "writes-below-then-reads-of-the-folder": [*write[:half], *[read_folder] * half],
        "reads-of-the-folder-then-writes-below": [*[read_folder] * half, *write[:half]],
        "reads-of-the-folder-between-reads-below": _between(read_folder, read[:half]),
        "reads-of-the-folder-between-writes-below": _between(read_folder, write[:half]),
        "writes-of-the-folder-between-reads-below": _between(write_folder, read[:half]),
        "everything-between-reads": _between([EVERYTHING], read[:half]),
        "deep-files-of-one-folder": [*write_deep],
        "deep-files-far-apart": [[Access.write(path(f"{n}") + deep)] for n in range(count)],
        "reads-of-the-root-between-deep-writes": _between([Access.read(os.sep)], write_deep[:half]),
    }


def _between(one: Touched, others: Sequence[Touched]) -> list[Touched]:
    return [touched for other in others for touched in (one, other)]


def work(message: Sequence[Touched]) -> tuple[int, int]:
    """How many lines run from the first ticket to the last release, and how many waits are written down."""
    lines = 0

    def count(*_: object) -> Any:
        nonlocal lines
        lines += 1
        return count

    scheduler, before = Scheduler(1), sys.gettrace()
    sys.settrace(count)
    try:
        tickets = [scheduler.ticket(touched) for touched in message]
    finally:
        sys.settrace(before)
    reached = {id(ticket): ticket for ticket in tickets}
    for ticket in (unseen := [*tickets]):
        fresh = {id(follower): follower for follower in ticket.followers if id(follower) not in reached}
        reached |= fresh
        unseen += fresh.values()
    waits = sum(len(ticket.followers) for ticket in reached.values())
    sys.settrace(count)
    try:
        for ticket in tickets:
            scheduler.release(ticket)
    finally:
        sys.settrace(before)
    return lines, waits


@pytest.mark.parametrize("name", shapes(2))
def test_work_grows_no_faster_than_the_message(name: str) -> None:
    short, long = shapes(500)[name], shapes(1000)[name]
    lines_of_short, _ = work(short)
    lines_of_long, waits = work(long)

    assert lines_of_long < 2.1 * lines_of_short + 500
    assert waits <= 3 * len(long)


@pytest.mark.parametrize("name", shapes(2))
async def test_a_thousand_calls_are_all_served_and_conflicting_ones_in_order(name: str) -> None:
    message = shapes(1000)[name]
    scheduler = Scheduler(8)
    running: set[int] = set()
    served: list[int] = []

    async def call(number: int) -> None:
        await scheduler.turn(tickets[number])
        running.add(number)
        served.append(number)

        assert len(running) <= 8
        assert not any(conflicts(message[number], message[other]) for other in running - {number})
        await asyncio.sleep(0)
        running.remove(number)
        scheduler.release(tickets[number])

    tickets = [scheduler.ticket(touched) for touched in message]
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        for number in range(len(message)):
            group.create_task(call(number))

    assert served == list(range(1000))
    assert (scheduler._free, scheduler._places._paths) == (8, {})


async def test_a_message_that_is_cancelled_at_any_step_leaves_nothing() -> None:
    message = [[Access.read(A)], [Access.write(A)], [EVERYTHING], [Access.read(B)], [Access.write(B)], []] * 2
    for steps in range(40):
        scheduler = Scheduler(2)
        tickets = [scheduler.ticket(touched) for touched in message]

        async def call(scheduler: Scheduler, ticket: Any) -> None:
            await scheduler.turn(ticket)
            await asyncio.sleep(0)
            scheduler.release(ticket)

        tasks = [asyncio.create_task(call(scheduler, ticket)) for ticket in tickets]
        for _ in range(steps):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=10)
        for ticket in tickets:
            scheduler.release(ticket)

        assert (scheduler._free, scheduler._queue, scheduler._places._everything.children) == (2, {}, {})


async def test_a_slot_given_to_a_call_that_is_cancelled_in_that_moment_goes_to_the_next() -> None:
    scheduler = Scheduler(1)
    first, second, third = (scheduler.ticket(()) for _ in range(3))
    await scheduler.turn(first)
    waiting = [asyncio.create_task(scheduler.turn(ticket)) for ticket in (second, third)]
    await asyncio.sleep(0)
    scheduler.release(first)
    given_to = (second.running, third.running)
    waiting[0].cancel()
    await asyncio.wait(waiting, timeout=10)

    assert (given_to, second.running, third.running) == ((True, False), False, True)


async def test_a_call_that_is_cancelled_and_released_in_one_moment_is_no_error() -> None:
    scheduler = Scheduler(1)
    first, second = scheduler.ticket(()), scheduler.ticket(())
    await scheduler.turn(first)
    waiting = asyncio.create_task(scheduler.turn(second))
    await asyncio.sleep(0)
    waiting.cancel()
    scheduler.release(second)
    scheduler.release(first)
    await asyncio.wait([waiting], timeout=10)

    assert waiting.cancelled()
    assert (scheduler._free, scheduler._queue) == (1, {})


def test_a_long_chain_of_calls_that_are_given_up_lets_go_at_its_head() -> None:
    scheduler = Scheduler(1)
    tickets = [scheduler.ticket([EVERYTHING]) for _ in range(5000)]
    for ticket in reversed(tickets):
        scheduler.release(ticket)

    assert all(not ticket.waits_for for ticket in tickets)
    assert scheduler.ticket([EVERYTHING]).waits_for == 0


def test_what_is_no_access_changes_nobody_s_stand() -> None:
    scheduler = Scheduler(1)
    scheduler.ticket([Access.write(path("a", "f"))])
    broken: Any = [Access.write(A), ("path", "write", A)]
    with pytest.raises(AttributeError):
        scheduler.ticket(broken)

    assert scheduler.ticket([Access.read(path("a", "f"))]).waits_for == 1
    assert scheduler.ticket([Access.write(path("a", "g"))]).waits_for == 0


def test_an_event_loop_that_is_gone_takes_no_slot_with_it() -> None:
    scheduler = Scheduler(1)
    first, second = scheduler.ticket(()), scheduler.ticket(())
    loop = asyncio.new_event_loop()
    loop.run_until_complete(scheduler.turn(first))
    turn = scheduler.turn(second)
    loop.call_soon(turn.send, None)
    loop.run_until_complete(asyncio.sleep(0))
    assert second.waiter is not None
    second.waiter.add_done_callback(lambda _: None)  # as a task does; it cannot be told any more
    loop.close()
    scheduler.release(first)
    turn.close()
    scheduler.release(second)

    assert (scheduler._free, scheduler._queue) == (1, {})


def test_a_scheduler_without_slots_is_refused() -> None:
    with pytest.raises(ConfigError, match="1 or more"):
        Scheduler(0)
