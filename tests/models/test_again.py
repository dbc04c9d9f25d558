"""Asking again: after which failures, how long it waits, and when it gives up."""

import asyncio
import json
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.core.content import Text
from ferrule.models import ModelError
from ferrule.models.http import MOST_SECONDS, chance, parse_retry_after, pause, should_retry
from ferrule.wire import Thinking, Turn

from .conftest import QUESTION, heard, question
from .server import WAIT_SECONDS, Exchange, serving
from .spoken import ALL, ANTHROPIC, CHAT, GEMINI, RESPONSES, events

NOW = 1_000_000_000.0
APIS = [pytest.param(one, id=one.api) for one in ALL]


def failing(status: int, **headers: str):
    async def play(exchange: Exchange) -> None:
        await exchange.whole(status, {"error": {"message": "no"}}, **headers)

    return play


def good(stream: bytes):
    async def play(exchange: Exchange) -> None:
        await exchange.stream(stream)

    return play


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 520, 522, 524, 529])
async def test_a_failure_that_may_pass_is_tried_again(server, asker, status):
    server.play(failing(status), failing(status), good(ANTHROPIC.stream))

    again, deltas = await heard(asker.model(ANTHROPIC))

    assert [one.attempt for one in again] == [1, 2]
    assert [one.seconds for one in again] == [0.5, 1.0] == asker.sleeps.seconds
    assert str(status) in again[0].why
    assert deltas[-1].reason == "tools"
    assert server.connections == 1


WAITS = [
    pytest.param({"retry_after": "7"}, 7.0, id="seconds"),
    pytest.param({"retry_after": "1.5"}, 1.5, id="parts of a second"),
    pytest.param({"retry_after": formatdate(NOW + 20, usegmt=True)}, 20.0, id="a date"),
    pytest.param({"retry_after": formatdate(NOW - 20, usegmt=True)}, 0.0, id="a date that is over"),
    pytest.param({"retry_after_ms": "250", "retry_after": "9"}, 0.25, id="milliseconds"),
    pytest.param({"retry_after": "soon"}, 0.5, id="nothing that can be read"),
    pytest.param({"retry_after": "-5"}, 0.5, id="less than nothing"),
]


@pytest.mark.parametrize(("headers", "seconds"), WAITS)
async def test_a_host_that_says_how_long_is_waited_for(server, asker, headers, seconds):
    server.play(failing(429, **headers), good(ANTHROPIC.stream))

    await heard(asker.model(ANTHROPIC))

    assert asker.sleeps.seconds == [seconds]


async def test_gemini_says_in_its_body_how_long(server, asker):
    async def play(exchange: Exchange) -> None:
        details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "23.5s"}]
        body = {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "slow down", "details": details}}
        await exchange.whole(429, body)

    server.play(play, good(GEMINI.stream))

    await heard(asker.model(GEMINI))

    assert asker.sleeps.seconds == [23.5]


async def test_a_host_that_wants_too_long_a_wait_is_not_waited_for(server, asker):
    server.play(failing(429, retry_after="3600"))

    with pytest.raises(ModelError, match=r"left alone for 60 minutes: try again after \d\d:\d\d") as caught:
        await heard(asker.model(ANTHROPIC))

    assert caught.value.kind == "limit"
    assert asker.sleeps.seconds == []


async def test_it_gives_up_after_the_number_of_times_that_is_set(server, asker):
    server.play(failing(500))

    with pytest.raises(ModelError, match="It was asked 3 times") as caught:
        await heard(asker.model(ANTHROPIC, retries=2))

    assert caught.value.kind == "server"
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("status", "says", "times"),
    [
        pytest.param(500, "false", 1, id="no"),
        pytest.param(501, "true", 2, id="yes"),
        pytest.param(400, "true", 1, id="not so"),
    ],
)
async def test_a_host_may_say_itself_whether_to_ask_again(server, asker, status, says, times):
    server.play(failing(status, x_should_retry=says))

    with pytest.raises(ModelError):
        await heard(asker.model(ANTHROPIC, retries=1))

    assert len(server.asked) == times


@pytest.mark.parametrize("spoken", APIS)
@pytest.mark.parametrize("part", [0, 1, 3, 5, 8])
async def test_a_stream_that_breaks_off_is_void_and_asked_for_again(server, asker, spoken, part):
    async def cut(exchange: Exchange) -> None:
        await exchange.begin()
        if part:
            await exchange.chunk(spoken.stream[: len(spoken.stream) * part // 10])
        exchange.writer.close()

    server.play(cut, good(spoken.stream))
    model = asker.model(spoken)

    again, deltas = await heard(model)

    assert [one.why for one in again] == ["the answer broke off"]
    assert deltas[-1].usage == spoken.usage


@pytest.mark.parametrize("spoken", APIS)
async def test_a_body_that_ends_too_early_in_good_order_is_a_cut_too(server, asker, spoken):
    server.play(good(spoken.stream[: len(spoken.stream) // 2]), good(spoken.stream))

    again, _ = await heard(asker.model(spoken))

    assert [one.why for one in again] == ["the answer broke off"]


@pytest.mark.parametrize("spoken", APIS)
async def test_a_line_that_breaks_behind_the_last_word_breaks_nothing(server, asker, spoken):
    async def cut(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.chunk(spoken.stream)
        exchange.writer.close()

    server.play(cut)

    again, deltas = await heard(asker.model(spoken))

    assert again == []
    assert deltas[-1].usage == spoken.usage


async def test_a_host_that_falls_silent_has_broken_off(server, asker):
    async def quiet(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.chunk(ANTHROPIC.stream[:900])
        await exchange.gone()

    server.play(quiet, quiet, good(ANTHROPIC.stream))

    again, _ = await heard(asker.model(ANTHROPIC, quiet_seconds=0.05))

    assert [one.why for one in again] == ["the host fell silent"] * 2


async def test_a_host_that_never_begins_has_broken_off(server, asker):
    async def quiet(exchange: Exchange) -> None:
        await exchange.gone()

    server.play(quiet)

    with pytest.raises(ModelError, match=r"said nothing for 0\.05 seconds") as caught:
        await heard(asker.model(ANTHROPIC, quiet_seconds=0.05, retries=0))

    assert caught.value.kind == "cut"


BROKEN = [
    pytest.param(
        ANTHROPIC, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, id="anthropic"
    ),
    pytest.param(CHAT, {"error": {"message": "Provider returned error", "code": 502}}, id="openrouter"),
    pytest.param(CHAT, {"error": "out of memory"}, id="ollama"),
    pytest.param(
        RESPONSES,
        {"type": "response.failed", "response": {"id": "r", "error": {"code": "server_error", "message": "oops"}}},
        id="responses",
    ),
    pytest.param(
        GEMINI, {"error": {"code": 503, "status": "UNAVAILABLE", "message": "The model is overloaded."}}, id="gemini"
    ),
    pytest.param(
        GEMINI,
        {"candidates": [{"content": {"parts": []}, "finishReason": "MALFORMED_FUNCTION_CALL"}]},
        id="a call that the host could not read",
    ),
]


@pytest.mark.parametrize(("spoken", "error"), BROKEN)
async def test_a_failure_in_the_middle_of_a_stream_is_tried_again(server, asker, spoken, error):
    begun = b"\n\n".join(spoken.stream.split(b"\n\n")[:3]) + b"\n\n"
    server.play(good(begun + events(error)), good(spoken.stream))

    again, deltas = await heard(asker.model(spoken))

    assert len(again) == 1
    assert deltas[-1].usage == spoken.usage


LASTING = [
    pytest.param(
        ANTHROPIC,
        {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 3 > 2"}},
        "too-long",
        id="anthropic",
    ),
    pytest.param(
        RESPONSES,
        {"type": "error", "code": "context_length_exceeded", "message": "Your input exceeds the context window"},
        "too-long",
        id="responses",
    ),
    pytest.param(
        RESPONSES,
        {"type": "error", "error": {"type": "insufficient_quota", "code": "insufficient_quota", "message": "quota"}},
        "limit",
        id="quota",
    ),
    pytest.param(CHAT, {"error": {"message": "bad", "type": "invalid_request_error"}}, "bad", id="chat"),
]


@pytest.mark.parametrize(("spoken", "error", "kind"), LASTING)
async def test_a_refusal_in_the_middle_of_a_stream_is_not(server, asker, spoken, error, kind):
    server.play(good(events(error)))

    with pytest.raises(ModelError) as caught:
        await heard(asker.model(spoken))

    assert caught.value.kind == kind
    assert len(server.asked) == 1


async def test_thinking_that_a_host_does_not_take_back_is_left_out_from_then_on(server, asker):
    async def refuse(exchange: Exchange) -> None:
        words = (
            "messages.1.content.0: Invalid `signature` in `thinking` block. It is bound to a different conversation."
        )
        await exchange.whole(400, {"error": {"type": "invalid_request_error", "message": words}})

    server.play(refuse, good(ANTHROPIC.stream))
    model = asker.model(ANTHROPIC)
    thought = Turn("assistant", (Thinking("hm", "sig", wire="anthropic"), Text("Yes.")))
    turns = (*QUESTION, thought, Turn("user", (Text("And?"),)))

    again, _ = await heard(model, question(*turns))
    await heard(model, question(*turns))

    assert [(one.seconds, "thought" in one.why) for one in again] == [(0.0, True)]
    assert [b'"signature":"sig"' in one.body for one in server.asked] == [True, False, False]


async def test_a_wait_can_be_given_up(server, asker):
    waiting = asyncio.Event()

    async def forever(seconds: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    server.play(failing(500))
    model = asker.model(ANTHROPIC)
    model._sleep = forever
    task = asyncio.create_task(heard(model))
    await asyncio.wait_for(waiting.wait(), WAIT_SECONDS)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


@given(st.integers(1, 50), st.floats(0, 1, exclude_max=True))
def test_a_pause_grows_up_to_a_bound_and_is_never_the_same_for_all(attempt, drawn):
    seconds = pause(attempt, lambda: drawn)

    assert 0 <= seconds <= min(30.0, 2.0 ** (attempt - 1))
    assert seconds < MOST_SECONDS
    assert 0 <= chance() < 1


@given(st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms", "x-should-retry"]), st.text(max_size=30)))
def test_no_header_of_a_host_is_too_strange(headers):
    seconds = parse_retry_after(headers, lambda: NOW)

    assert seconds is None or seconds >= 0
    assert should_retry(headers) in {None, True, False}
    assert json.dumps(seconds)


async def test_a_program_on_this_machine_that_never_ran_is_not_waited_for(asker):
    async with serving() as gone:
        pass

    with pytest.raises(ModelError, match="connection refused") as caught:
        await heard(asker.model(CHAT, url=gone.url))

    assert caught.value.kind == "network"
    assert "was asked" not in str(caught.value)
    assert asker.sleeps.seconds == []


async def test_one_that_ran_before_is_waited_for(asker):
    async with serving() as brief:
        brief.play(good(CHAT.stream))
        model = asker.model(CHAT, url=brief.url)
        await heard(model)

    with pytest.raises(ModelError, match="It was asked 7 times") as caught:
        await heard(model)

    assert caught.value.kind == "network"
