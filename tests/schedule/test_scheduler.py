"""The scheduler beside a slow model of it: who runs when, who is served first, and that nothing is left."""

import asyncio
import os
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.rows import each_row

from ferrule.core.access import EVERYTHING, Access, conflicts
from ferrule.core.errors import Cancelled
from ferrule.schedule import Scheduler

Touched = Sequence[Access]


def path(*components: str) -> str:
    return os.sep + os.sep.join(components)


SRC, FILE, OTHER = path("src"), path("src", "a.py"), path("src", "b.py")
modes = st.sampled_from(["read", "read", "write"])
tree = [("a",), ("a",), ("a", "b"), ("a", "b", "c"), ("a", "bc"), ("e",), ()]
on_path = st.builds(Access, st.just("path"), modes, st.sampled_from([path(*names) for names in tree]))
elsewhere = st.builds(Access, st.sampled_from(["host", "process", "everything"]), modes, st.sampled_from("xy"))
one_path = st.tuples(on_path)
touches = one_path | one_path | st.just(()) | st.lists(on_path | elsewhere, max_size=3).map(tuple)
odd_keys = st.lists(st.sampled_from([os.sep, os.sep, "a", "b"]), max_size=6).map("".join)
odd_touches = st.tuples(st.builds(Access, st.just("path"), modes, odd_keys))
picks = st.integers(0, 999)

ACTIONS = {
    "asks for its turn": ("new",),
    "ends": ("running",),
    "is cancelled": ("waiting", "running"),
    "steps back": ("waiting",),
    "is given up": ("new", "waiting"),
    "is released again": ("over",),
}
"""What can happen to a call, and in which states."""
actions = st.sampled_from(["asks for its turn", "asks for its turn", *ACTIONS])


class Model:
    """Looks at every pair. A call is finished when it is over and all before it are finished."""

    def __init__(self) -> None:
        self.touched: list[Touched] = []
        self.before: list[list[int]] = []
        self.over: list[bool] = []

    def add(self, touched: Touched) -> None:
        self.before.append([n for n, other in enumerate(self.touched) if conflicts(other, touched)])
        self.touched.append(touched)
        self.over.append(False)

    def clear(self) -> list[bool]:
        """Of each call: is every earlier one that it conflicts with finished?"""
        clear: list[bool] = []
        for before in self.before:
            clear.append(all(clear[n] and self.over[n] for n in before))
        return clear


def assert_empty(scheduler: Scheduler) -> None:
    top = scheduler._places._everything
    left = (top.children, top.readers, top.writer, top.below or set(), scheduler._places._paths)

    assert left == ({}, set(), None, set(), {})
    assert (scheduler._free, len(scheduler._queue)) == (scheduler.parallel, 0)


async def rounds(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


class Crowd:
    """Calls on one scheduler: tasks that run until they are told to end."""

    def __init__(self, parallel: int) -> None:
        self.scheduler = Scheduler(parallel)
        self.loop = asyncio.new_event_loop()
        self.model = Model()
        self.calls: list[Any] = []
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.state: list[str] = []
        self.wrong: list[int] = []

    def add(self, touched: Touched) -> None:
        self.model.add(touched)
        self.calls.append((self.scheduler.ticket(touched), asyncio.Event()))
        self.state.append("new")

    def act(self, action: str, pick: int) -> int | None:
        """Let it happen to one of the calls to which it can."""
        numbers = self.those(*ACTIONS[action])
        if not numbers:
            return None
        number = numbers[pick % len(numbers)]
        if action == "asks for its turn":
            self.state[number] = "waiting"
            self.tasks[number] = self.loop.create_task(self.call(number))
            # A task that is cancelled before its first step never gets to a `finally` of its own.
            self.tasks[number].add_done_callback(lambda _: self.done(number))
        elif action == "ends":
            self.calls[number][1].set()
        elif action in {"is given up", "is released again"}:
            self.release(number)
        else:
            self.state[number] = action if action == "steps back" else self.state[number]
            self.tasks[number].cancel()
        return number

    async def call(self, number: int) -> None:
        ticket, end = self.calls[number]
        try:
            await self.scheduler.turn(ticket)
        except Cancelled:
            return
        self.state[number] = "running"
        if not self.model.clear()[number] or len(self.those("running")) > self.scheduler.parallel:
            self.wrong.append(number)
        await end.wait()

    def done(self, number: int) -> None:
        if self.state[number] == "steps back":
            self.state[number] = "new"
        else:
            self.release(number)

    def release(self, number: int) -> None:
        self.model.over[number] = True
        self.state[number] = "over"
        self.scheduler.release(self.calls[number][0])

    def those(self, *states: str) -> list[int]:
        return [number for number, state in enumerate(self.state) if state in states]

    def settle(self) -> None:
        self.loop.run_until_complete(rounds(12))

        assert self.wrong == []

    def close(self) -> None:
        while self.act("ends", 0) is not None or self.act("is given up", 0) is not None:
            self.settle()
        self.loop.close()

        assert all(task.done() for task in self.tasks.values())
        assert_empty(self.scheduler)


class SchedulerBesideItsModel(RuleBasedStateMachine):
    """After every step exactly those calls run that the model names."""

    @initialize(parallel=st.integers(1, 4))
    def begin(self, parallel: int) -> None:
        self.crowd = Crowd(parallel)
        self.queue: list[int] = []
        self.running: list[int] = []

    @rule(touched=touches)
    def a_call_arrives(self, touched: Touched) -> None:
        self.crowd.add(touched)

    @rule(action=actions, pick=picks)
    def something_happens_to_a_call(self, action: str, pick: int) -> None:
        changed = self.crowd.act(action, pick)
        self.crowd.settle()
        self.queue = [number for number in self.queue if number != changed]
        self.running = [number for number in self.running if number != changed]
        clear = self.crowd.model.clear()
        asking = [number for number in self.crowd.those("waiting", "running") if clear[number]]
        self.queue += [number for number in asking if number not in self.queue + self.running]
        while self.queue and len(self.running) < self.crowd.scheduler.parallel:
            self.running.append(self.queue.pop(0))

    @invariant()
    def exactly_the_right_calls_run(self) -> None:
        if hasattr(self, "crowd"):
            touched = [self.crowd.model.touched[number] for number in self.running]

            assert self.crowd.those("running") == sorted(self.running)
            assert not any(conflicts(one, two) for n, one in enumerate(touched) for two in touched[:n])

    def teardown(self) -> None:
        if hasattr(self, "crowd"):
            self.crowd.close()


TestSchedulerBesideItsModel = SchedulerBesideItsModel.TestCase
TestSchedulerBesideItsModel.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)


bursts = st.lists(touches | st.tuples(actions, picks) | st.tuples(actions, picks), min_size=4, max_size=12)


@given(st.integers(1, 3), st.lists(bursts, min_size=2, max_size=6))
@settings(max_examples=200, deadline=None)
def test_no_turn_is_early_or_lost_when_many_things_happen_at_once(parallel: int, bursts: list[list[Any]]) -> None:
    crowd = Crowd(parallel)
    for burst in bursts:
        for step in burst:
            if step and isinstance(step[0], str):
                crowd.act(*step)
            else:
                crowd.add(step)
        crowd.settle()
        clear = crowd.model.clear()

        assert len(crowd.those("running")) == parallel or not any(clear[n] for n in crowd.those("waiting"))
    crowd.close()


def messages(touches: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    # Long and rarely released: what one ticket hides from the next shows only among many.
    return st.lists(touches | touches | touches | picks, min_size=8, max_size=24)


@given(messages(touches) | messages(odd_touches), st.booleans())
@example([[Access.read(FILE)], [Access.read(SRC)], [Access.write(OTHER)], [Access.read(SRC)]], True)
@example([[Access.write(path("a", "", "b"))], [Access.write(path("a"))], [Access.read(path("b"))]], True)
@settings(max_examples=400, deadline=None)
def test_a_call_waits_exactly_as_long_as_the_rule_for_pairs_says(steps: list[Any], nobody_gives_up: bool) -> None:
    scheduler, model, tickets = Scheduler(1000), Model(), []
    for step in steps:
        if not isinstance(step, int):
            tickets.append(scheduler.ticket(step))
            model.add(step)
        elif tickets and (model.clear()[step % len(tickets)] or not nobody_gives_up):
            model.over[step % len(tickets)] = True
            scheduler.release(tickets[step % len(tickets)])

        assert [not ticket.waits_for for ticket in tickets] == model.clear()
    for ticket in tickets:
        scheduler.release(ticket)

    assert_empty(scheduler)


@each_row(
    ("calls", "running"),
    [
        pytest.param([[Access.read(FILE)], [Access.read(FILE)]], [0, 1], id="readers-of-one-file-together"),
        pytest.param([[Access.write(FILE)], [Access.write(FILE)]], [0], id="writers-of-one-file-in-turn"),
        pytest.param([[Access.write(FILE)], [Access.write(OTHER)]], [0, 1], id="writers-of-two-files-together"),
        pytest.param([[Access.read(SRC)], [Access.write(FILE)]], [0], id="a-write-below-a-folder-that-is-read"),
        pytest.param([[Access.read(FILE)], [Access.write(FILE)], [Access.read(OTHER)]], [0, 2], id="no-batches"),
        pytest.param([[EVERYTHING], [EVERYTHING], [Access.host("x")]], [0], id="everything-is-alone"),
        pytest.param([[EVERYTHING], []], [0, 1], id="who-touches-nothing-waits-for-nobody"),
        pytest.param([[Access.read(FILE)]] * 9, [0, 1, 2, 3], id="no-more-than-there-are-slots"),
    ],
)
def test_of_calls_that_arrive_together_these_run_at_once(calls: list[Touched], running: list[int]) -> None:
    crowd = Crowd(4)
    for touched in calls:
        crowd.add(touched)
        crowd.act("asks for its turn", 0)
    crowd.settle()

    assert crowd.those("running") == running
    crowd.close()


def test_a_call_that_steps_back_and_asks_again_stands_last() -> None:
    crowd = Crowd(1)
    for step in ("asks for its turn",) * 3 + ("steps back", "asks for its turn", "ends"):
        crowd.add(())
        crowd.act(step, 0)
        crowd.settle()

    assert crowd.state[:3] == ["over", "waiting", "running"]
    crowd.close()


async def test_a_turn_is_taken_once_and_never_after_the_release() -> None:
    scheduler = Scheduler(1)
    running, waiting = scheduler.ticket(()), scheduler.ticket(())
    with pytest.raises(StopIteration):  # it is free, so it comes without a pause
        scheduler.turn(running).send(None)
    with pytest.raises(RuntimeError, match="already"):
        await scheduler.turn(running)
    turn = asyncio.create_task(scheduler.turn(waiting))
    await rounds(2)
    scheduler.release(waiting)
    assert not scheduler._queue
    scheduler.release(running)

    for late in (turn, scheduler.turn(running), scheduler.turn(waiting)):
        with pytest.raises(Cancelled):
            await asyncio.wait_for(late, 10)
    assert_empty(scheduler)
