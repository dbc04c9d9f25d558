"""The events of a session: replayed by stream from any point, waited for, and bounded."""

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mcp_types import JSONRPCNotification, JSONRPCResponse

from ferrule.serve.mcp.http import EventLog

SECONDS = 60


def note(number: int) -> JSONRPCNotification:
    return JSONRPCNotification(jsonrpc="2.0", method="notifications/progress", params={"progress": number})


def answered(id_: int) -> JSONRPCResponse:
    return JSONRPCResponse(jsonrpc="2.0", id=id_, result={"done": True})


async def replayed(log: EventLog, event_id: str) -> list[tuple[str | None, Any]]:
    sent: list[tuple[str | None, Any]] = []

    async def send(event: Any) -> None:
        await asyncio.sleep(0)  # others get their turn, as with a real connection
        sent.append((event.event_id, event.message))

    async with asyncio.timeout(SECONDS):
        await log.replay_events_after(event_id, send)
    return sent


@given(streams=st.lists(st.sampled_from("abc"), min_size=1, max_size=30), data=st.data())
def test_what_came_behind_an_event_on_its_stream_is_replayed_in_order(streams: list[str], data: st.DataObject) -> None:
    async def main() -> None:
        log = EventLog()
        stored: list[tuple[str, str, Any]]
        stored = [(await log.store_event(stream, note(at)), stream, note(at)) for at, stream in enumerate(streams)]
        stored += [(await log.store_event(stream, answered(1)), stream, answered(1)) for stream in "abc"]
        at = data.draw(st.integers(0, len(streams) - 1))
        stream = stored[at][1]
        behind = [(id_, message) for id_, one, message in stored[at + 1 :] if one == stream]
        assert await replayed(log, stored[at][0]) == behind

    asyncio.run(main())


async def test_what_comes_while_events_are_sent_is_sent_too() -> None:
    log = EventLog()
    began = await log.store_event("1", None)
    await log.store_event("1", note(0))
    replaying = asyncio.create_task(replayed(log, began))
    for number in range(1, 20):
        await asyncio.sleep(0)
        await log.store_event("1", note(number))
        await log.store_event("2", note(-1))
    await log.store_event("1", answered(1))

    sent = [message for _, message in await replaying]

    assert sent == [*map(note, range(20)), answered(1)]


async def test_an_event_that_is_not_known_replays_nothing() -> None:
    log = EventLog()
    await log.store_event("1", answered(1))

    assert await replayed(log, "5") == []
    assert await replayed(log, "no number") == []


async def test_a_log_is_bounded_and_keeps_the_newest() -> None:
    by_number, by_size = EventLog(most_events=10), EventLog(most_bytes=1_000)
    for log in (by_number, by_size):
        first = await log.store_event("1", note(0))
        for number in range(1, 100):
            last = await log.store_event("1", note(number))
        await log.store_event("1", answered(1))
        assert await replayed(log, first) == []
        assert [message for _, message in await replayed(log, last)] == [answered(1)]
        assert len(log._events) <= 20

    huge = JSONRPCResponse(jsonrpc="2.0", id=1, result={"text": "x" * 5_000})
    began = await by_size.store_event("2", None)
    await by_size.store_event("2", huge)
    assert [message for _, message in await replayed(by_size, began)] in ([huge], [])
    assert by_size._events[-1].message == huge
