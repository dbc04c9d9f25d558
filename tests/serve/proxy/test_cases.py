"""The table of `bench/proxy`: every case, with every client API in front of every upstream API that it is about."""

import contextlib
import warnings
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio
from bench.proxy import rules, speak
from bench.proxy.cases import table
from bench.proxy.stage import Case, Ours, ours, play
from bench.proxy.talk import APIS, Answer, Call, Words
from bench.proxy.upstream import Upstream

from tests.rows import each_row

_TABLE = table()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def stage() -> AsyncIterator[tuple[Upstream, Ours]]:
    """One proxy for all cases of a worker."""
    async with contextlib.AsyncExitStack() as stack:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what the makers' packages warn of is not ours to mend
            upstream, target = await stack.enter_async_context(ours())
            await target.clients("plain")
        yield upstream, target


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("case", _TABLE, ids=[f"{case.group}: {case.name}" for case in _TABLE])
async def test_every_client_reads_what_was_said_and_every_host_what_was_asked(
    case: Case, stage: tuple[Upstream, Ours]
) -> None:
    upstream, target = stage
    failed = {}
    for combination in case.combinations():
        try:
            await play(case, combination, upstream, target)
        except Exception as error:  # noqa: BLE001 - whatever a package raises is a failure of what it read
            failed[combination] = f"{type(error).__name__}: {str(error)[:500]}"

    assert failed == {}


def test_the_table_is_as_large_as_it_is_said_to_be() -> None:
    names = [(case.group, case.name) for case in _TABLE]

    assert len(set(names)) == len(names) >= 80
    assert all(case.combinations() for case in _TABLE)


_ANSWER = Answer((Words(("I ", "look.")), Call("call_a", "Read", ('{"path"', ':"a"}'))))
_SPOILED = {
    "without its end": lambda events: events[:-1],
    "with its end twice": lambda events: [*events, events[-1]],
    "torn within an event": lambda events: [*events[:-1], events[-1][:-7]],
    "with an error behind its end": lambda events: [*events, b'data: {"type":"error","error":{"message":"x"}}\n\n'],
}


@each_row("spoil", _SPOILED.values())
@each_row("api", APIS)
def test_the_judge_refuses_a_stream_that_breaks_the_laws_of_its_api(
    api: str, spoil: Callable[[list[bytes]], list[bytes]]
) -> None:
    events = speak.stream(_ANSWER, api)
    rules.check(b"".join(events), api)

    with pytest.raises((AssertionError, ValueError)):
        rules.check(b"".join(spoil(events)), api)


_BLOCKS = {
    "two beginnings": lambda events: [events[0], *events],
    "a block that does not end": lambda events: [one for one in events if b"content_block_stop" not in one],
    "a piece behind the end of its block": lambda events: [*events[:-2], events[2], *events[-2:]],
    "a block in another one": lambda events: [*events[:2], events[1], *events[2:]],
    "half a call": lambda events: [one for one in events if b':\\"a\\"}' not in one],
}


@pytest.mark.parametrize("spoil", _BLOCKS.values(), ids=_BLOCKS)
def test_the_judge_refuses_blocks_out_of_order(spoil: Callable[[list[bytes]], list[bytes]]) -> None:
    with pytest.raises((AssertionError, ValueError)):
        rules.check(b"".join(spoil(speak.stream(_ANSWER, "anthropic"))), "anthropic")
