"""How much a host is asked: places and the queue for them, rates, and the rest of models that fail."""

import asyncio
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ferrule.serve.proxy.apis import ProxyError
from ferrule.serve.proxy.upstreams import Breaker, HostLimits
from ferrule.settings import ProxySettings

LIMIT_SECONDS = 20


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def limits(clock: Clock | None = None, **settings: object) -> HostLimits:
    return HostLimits("up", ProxySettings(**settings), clock or Clock())  # type: ignore[arg-type]


class Visitor:
    """Somebody who takes a place and leaves when told."""

    def __init__(self, host: HostLimits) -> None:
        self.is_in = False
        self.leaving = asyncio.Event()
        self.task = asyncio.create_task(self._visit(host))

    async def _visit(self, host: HostLimits) -> None:
        async with host.place():
            self.is_in = True
            try:
                await self.leaving.wait()
            finally:
                self.is_in = False

    async def leave(self) -> None:
        self.leaving.set()
        await asyncio.wait_for(self.task, LIMIT_SECONDS)


async def settle() -> None:
    """Lets everybody do what they can do now."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_so_many_are_let_in_and_the_others_wait_in_their_order():
    host = limits(parallel=2, queue=5)
    visitors = [Visitor(host) for _ in range(4)]
    await settle()
    assert [one.is_in for one in visitors] == [True, True, False, False]
    assert (host.busy, host.queue_length) == (2, 2)

    await visitors[1].leave()
    await settle()
    assert [one.is_in for one in visitors] == [True, False, True, False]

    for one in visitors:
        await one.leave()
    assert (host.busy, host.queue_length) == (0, 0)


async def test_who_finds_the_queue_full_is_refused_at_once():
    host = limits(parallel=1, queue=1)
    visitors = [Visitor(host) for _ in range(2)]
    await settle()

    with pytest.raises(ProxyError, match="1 requests wait for up already") as refused:
        async with host.place():
            pass

    assert refused.value.kind == "limit"
    assert refused.value.seconds is not None
    for one in visitors:
        await one.leave()
    assert (host.busy, host.queue_length) == (0, 0)


async def test_without_a_queue_nobody_waits():
    host = limits(parallel=1, queue=0)
    visitor = Visitor(host)
    await settle()

    with pytest.raises(ProxyError, match="0 requests wait"):
        async with host.place():
            pass

    await visitor.leave()


async def test_who_waits_too_long_is_refused_and_leaves_no_gap():
    host = limits(parallel=1, queue=2, queue_seconds=0.001)
    first = Visitor(host)
    await settle()

    with pytest.raises(ProxyError, match=r"up had no free place for 0\.001 seconds"):
        async with host.place():
            pass

    assert (host.busy, host.queue_length) == (1, 0)
    await first.leave()
    assert (host.busy, host.queue_length) == (0, 0)


async def test_a_place_that_comes_as_its_taker_goes_away_goes_to_the_next():
    host = limits(parallel=1, queue=5)
    first, second, third = (Visitor(host) for _ in range(3))
    await settle()

    first.leaving.set()
    await asyncio.sleep(0)  # the place is handed to the second, which has not taken it yet
    second.task.cancel()
    await settle()

    assert not second.is_in
    assert third.is_in
    await third.leave()
    assert (host.busy, host.queue_length) == (0, 0)


class Places(RuleBasedStateMachine):
    """However clients come, leave and give up, no place is lost and none is given twice."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.host = self.run(self._made())
        self.visitors: list[Visitor] = []

    def run(self, work):
        return self.loop.run_until_complete(work)

    async def _made(self) -> HostLimits:
        return limits(parallel=3, queue=4)

    @rule()
    def come(self) -> None:
        async def come() -> None:
            self.visitors.append(Visitor(self.host))

        self.run(come())

    @rule(turns=st.integers(0, 4))
    def wait(self, turns: int) -> None:
        async def wait() -> None:
            for _ in range(turns):
                await asyncio.sleep(0)

        self.run(wait())

    @precondition(lambda self: self.visitors)
    @rule(at=st.integers(0, 100))
    def leave(self, at: int) -> None:
        self.visitors[at % len(self.visitors)].leaving.set()

    @precondition(lambda self: self.visitors)
    @rule(at=st.integers(0, 100))
    def give_up(self, at: int) -> None:
        self.visitors[at % len(self.visitors)].task.cancel()

    @invariant()
    def no_more_are_in_than_there_are_places(self) -> None:
        assert sum(one.is_in for one in self.visitors) <= 3
        assert 0 <= self.host.busy <= 3

    def teardown(self) -> None:
        for one in self.visitors:
            one.leaving.set()

        async def end() -> None:
            await asyncio.wait_for(
                asyncio.gather(*(one.task for one in self.visitors), return_exceptions=True), LIMIT_SECONDS
            )

        self.run(end())
        try:
            assert (self.host.busy, self.host.queue_length) == (0, 0)
        finally:
            self.loop.close()


TestPlaces = Places.TestCase


async def test_a_rate_that_is_used_up_refuses_with_the_time_until_it_is_not():
    clock = Clock()
    host = limits(clock, requests_a_minute=2, queue_seconds=10.0)
    for _ in range(2):
        async with host.place():
            clock.now += 5

    with pytest.raises(ProxyError, match="The rate that is set for up is used up") as refused:
        async with host.place():
            pass

    assert refused.value.seconds == pytest.approx(50)
    assert host.busy == 0
    clock.now += 50
    async with host.place():
        assert host.busy == 1


async def test_a_repetition_is_a_request_of_the_rate():
    host = limits(requests_a_minute=2, queue_seconds=1.0)
    async with host.place():
        host.repeat()

    with pytest.raises(ProxyError, match="rate"):
        async with host.place():
            pass


async def test_tokens_count_for_a_minute():
    clock = Clock()
    host = limits(clock, tokens_a_minute=100, queue_seconds=1.0)
    host.count(60)
    clock.now += 30
    host.count(40)

    with pytest.raises(ProxyError) as refused:
        async with host.place():
            pass
    assert refused.value.seconds == pytest.approx(30)

    clock.now += 30
    async with host.place():
        pass


async def test_without_rates_nothing_is_kept_of_the_past():
    host = limits()
    host.count(10**9)
    for _ in range(1_000):
        async with host.place():
            host.repeat()

    assert host.busy == 0


@given(steps=st.lists(st.tuples(st.sampled_from(["ask", "pass"]), st.floats(0, 40)), max_size=40))
def test_no_minute_has_more_requests_than_the_rate(steps):
    async def run() -> None:
        clock = Clock()
        host = limits(clock, requests_a_minute=3, queue_seconds=1e-6)
        sent: list[float] = []
        for what, seconds in steps:
            if what == "pass":
                clock.now += seconds
                continue
            before = [at for at in sent if at > clock.now - 60]
            try:
                async with host.place():
                    sent.append(clock.now)
            except ProxyError as error:
                refused = error.seconds
            else:
                refused = None
            assert refused == (None if len(before) < 3 else pytest.approx(before[-3] + 60 - clock.now))

    asyncio.run(run())


def breaker(clock: Clock, failures: int = 3, rest: float = 30.0) -> Breaker:
    return Breaker(ProxySettings(failures=failures, rest_seconds=rest), clock)


def rests(one: Breaker) -> bool:
    return one.is_open


def fail(one: Breaker, times: int = 1) -> None:
    for _ in range(times):
        one.fail(one.begin())


def test_a_model_rests_after_so_many_failures_in_a_row():
    clock = Clock()
    one = breaker(clock)

    fail(one, 2)
    assert not rests(one)
    fail(one)
    assert rests(one)
    assert one.seconds == 30


def test_a_success_between_failures_lets_the_count_begin_anew():
    one = breaker(Clock())

    fail(one, 2)
    one.succeed(one.begin())
    fail(one, 2)

    assert not rests(one)


def test_after_the_rest_one_request_at_a_time_finds_out():
    clock = Clock()
    one = breaker(clock)
    fail(one, 3)
    clock.now += 30
    assert not rests(one)

    trial = one.begin()
    assert rests(one)
    assert one.seconds == 0
    one.succeed(trial)

    assert not rests(one)
    fail(one, 2)
    assert not rests(one)


def test_a_trial_that_fails_begins_the_rest_anew():
    clock = Clock()
    one = breaker(clock)
    fail(one, 3)
    clock.now += 31

    fail(one)

    assert one.seconds == 30


def test_a_trial_that_tells_nothing_lets_the_next_one_try():
    clock = Clock()
    one = breaker(clock)
    fail(one, 3)
    clock.now += 30

    one.leave(one.begin())

    assert not rests(one)


@pytest.mark.parametrize("end", ["leave", "fail"])
def test_an_old_request_that_ends_during_the_trial_decides_nothing(end):
    clock = Clock()
    one = breaker(clock)
    old = one.begin()
    fail(one, 3)
    clock.now += 30
    trial = one.begin()

    getattr(one, end)(old)

    assert rests(one), "a second trial would be let in beside the first"
    assert one.seconds == 0
    one.succeed(trial)
    assert not rests(one)


def test_failures_of_requests_that_were_under_way_do_not_lengthen_the_rest():
    clock = Clock()
    one = breaker(clock)
    old = [one.begin() for _ in range(10)]
    fail(one, 3)
    clock.now += 20

    for ticket in old:
        one.fail(ticket)

    assert one.seconds == 10


@given(steps=st.lists(st.tuples(st.sampled_from(["begin", "succeed", "fail", "leave", "pass"]), st.integers(0, 20))))
def test_a_model_that_rests_is_always_asked_again_some_time(steps):
    clock = Clock()
    one = breaker(clock)
    open_: list[int] = []
    for what, number in steps:
        if what == "pass":
            clock.now += number
        elif what == "begin":
            if not one.is_open:
                open_.append(one.begin())
        elif open_:
            getattr(one, what)(open_.pop(number % len(open_)))
        assert one.seconds <= 30
    for ticket in open_:
        one.leave(ticket)
    clock.now += 30
    assert not rests(one)
    assert math.isfinite(one.seconds)
