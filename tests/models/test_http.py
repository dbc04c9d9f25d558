"""Asking over real HTTP: streams of all four APIs, in pieces of any size, and what is sent for them."""

import asyncio
import json

import pytest

from ferrule.core.content import Text
from ferrule.models import ModelError
from ferrule.wire import AnswerEnd, Result, TextPiece, ToolChoice, Turn

from . import contract
from .conftest import KEY, QUESTION, heard, question
from .server import WAIT_SECONDS, Exchange
from .spoken import ALL, ANTHROPIC, CHAT, GEMINI, RESPONSES, SIGNATURE, events

APIS = [pytest.param(one, id=one.api) for one in ALL]


def plays(stream: bytes):
    async def play(exchange: Exchange) -> None:
        await exchange.stream(stream)

    return play


@pytest.mark.parametrize("spoken", APIS)
async def test_an_answer_comes_with_its_thinking_its_words_its_calls_and_its_usage(server, asker, spoken):
    server.play(plays(spoken.stream))

    said = await asker.said(asker.model(spoken))

    assert said.parts == spoken.parts
    assert said.usage == spoken.usage
    assert said.reason == "tools"


@pytest.mark.parametrize("spoken", APIS)
async def test_the_key_goes_in_the_header_of_the_api_and_nowhere_else(server, asker, spoken):
    server.play(plays(spoken.stream))

    await asker.said(asker.model(spoken))

    asked = server.asked[0]
    version = "/v1beta" if spoken.api == "gemini" else ""
    assert (asked.method, asked.path) == ("POST", version + spoken.path)
    assert [name for name, value in asked.headers.items() if KEY in value] == [
        {"anthropic": "x-api-key", "gemini": "x-goog-api-key"}.get(spoken.api, "authorization")
    ]
    assert KEY not in asked.path
    assert KEY.encode() not in asked.body
    assert "\nHello" not in asked.body.decode()
    assert asked.headers["host"] == server.url.partition("://")[2]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 4096])
@pytest.mark.parametrize("spoken", APIS)
async def test_it_does_not_matter_where_the_pieces_were_cut(server, asker, spoken, size):
    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        # One write for all chunks: the boundaries are HTTP's own and not of the socket.
        data = [spoken.stream[at : at + size] for at in range(0, len(spoken.stream), size)]
        await exchange.send(b"".join(b"%x\r\n%b\r\n" % (len(one), one) for one in data))
        await exchange.end()

    server.play(play)

    assert (await asker.said(asker.model(spoken))).parts == spoken.parts


@pytest.mark.parametrize("spoken", APIS)
async def test_what_was_thought_goes_back_as_it_came(server, asker, spoken):
    server.play(plays(spoken.stream))
    model = asker.model(spoken)
    said = await asker.said(model)
    use = said.parts[-1]
    turns = (*QUESTION, Turn("assistant", said.parts), Turn("user", (Result(use.id, (Text("done"),), name="Read"),)))

    await asker.said(model, question(*turns))

    body = server.asked[1].value
    if spoken is ANTHROPIC:
        assert body["messages"][1]["content"][0] == {
            "type": "thinking",
            "thinking": "Hm, über das.",
            "signature": SIGNATURE,
        }
    elif spoken is RESPONSES:
        assert body["input"][1] == {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "Hm, über das."}],
            "encrypted_content": SIGNATURE,
        }
        assert body["include"] == ["reasoning.encrypted_content"]
        assert body["store"] is False
    elif spoken is GEMINI:
        assert body["contents"][1]["parts"][-1]["thoughtSignature"] == SIGNATURE
    else:
        assert body["messages"][2]["reasoning_content"] == "Hm, über das."
    if spoken is not CHAT:
        assert server.asked[1].body.count(SIGNATURE.encode()) == 1


async def test_a_host_that_refuses_thinking_does_not_get_it(server, asker):
    server.play(plays(CHAT.stream))
    strict = CHAT._replace(host="openai-chat", model="gpt-4o")
    model = asker.model(strict)
    said = await asker.said(model)

    await asker.said(model, question(*QUESTION, Turn("assistant", said.parts)))

    assert b"reasoning" not in server.asked[1].body


@pytest.mark.parametrize("spoken", APIS)
async def test_turns_share_a_connection(server, asker, spoken):
    server.play(plays(spoken.stream))
    model = asker.model(spoken)

    for _ in range(4):
        await asker.said(model)

    assert server.connections == 1
    assert len(server.asked) == 4


async def test_the_end_is_told_before_the_last_bytes_of_http_have_come(server, asker):
    told = asyncio.Event()

    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.chunk(ANTHROPIC.stream)
        await asyncio.wait_for(told.wait(), WAIT_SECONDS)
        await exchange.end()

    server.play(play)
    async with asyncio.timeout(WAIT_SECONDS):
        async for delta in asker.model(ANTHROPIC).ask(question()):
            if isinstance(delta, AnswerEnd):
                told.set()

    assert told.is_set()


async def test_a_connection_that_the_host_has_closed_meanwhile_is_replaced_without_a_word(server, asker):
    async def play(exchange: Exchange) -> None:
        await exchange.stream(ANTHROPIC.stream)
        exchange.writer.close()

    server.play(play)
    model = asker.model(ANTHROPIC)

    assert [again for again, _ in [await heard(model) for _ in range(3)]] == [[], [], []]
    assert server.connections == 3


async def test_several_may_ask_at_once(server, asker):
    server.play(plays(ANTHROPIC.stream))
    model = asker.model(ANTHROPIC)

    said = await asyncio.gather(*(asker.said(model) for _ in range(5)))

    assert [one.parts for one in said] == [ANTHROPIC.parts] * 5


async def test_words_come_out_when_they_arrive_and_not_later(server, asker):
    letters = [
        events({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": letter}}, named=True)
        for letter in "drip"
    ]
    heard_of: asyncio.Queue[str] = asyncio.Queue()

    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        for event, letter in zip(letters, "drip", strict=True):
            await exchange.chunk(event)
            # Nothing more is sent before this one has come out on the other side.
            assert await asyncio.wait_for(heard_of.get(), WAIT_SECONDS) == letter
        await exchange.chunk(events({"type": "message_stop"}, named=True))
        await exchange.end()

    server.play(play)
    async with asyncio.timeout(WAIT_SECONDS):
        async for delta in asker.model(ANTHROPIC).ask(question()):
            if isinstance(delta, TextPiece):
                heard_of.put_nowait(delta.text)


@pytest.mark.parametrize("how", ["cancel", "close"])
async def test_whoever_stops_listening_hangs_up_at_once(server, asker, how):
    gone, begun = asyncio.Event(), asyncio.Event()

    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.chunk(ANTHROPIC.stream[:700])
        await exchange.gone()
        gone.set()

    server.play(play)
    model = asker.model(ANTHROPIC)
    answer = model.ask(question())

    async def listen() -> None:
        async for _ in answer:
            begun.set()

    if how == "cancel":
        task = asyncio.create_task(listen())
        await asyncio.wait_for(begun.wait(), WAIT_SECONDS)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    else:
        await anext(answer)
        await answer.aclose()
    await asyncio.wait_for(gone.wait(), WAIT_SECONDS)
    server.play(plays(ANTHROPIC.stream))
    assert (await asker.said(model)).parts == ANTHROPIC.parts


async def test_a_slow_listener_slows_the_host_down(server, asker):
    piece = events(
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "x" * 60_000}}, named=True
    )
    sent = 0

    async def play(exchange: Exchange) -> None:
        nonlocal sent
        await exchange.begin()
        await exchange.chunk(ANTHROPIC.stream[:700])
        for _ in range(2000):
            await exchange.chunk(piece)
            sent += len(piece)

    server.play(play)
    answer = asker.model(ANTHROPIC).ask(question())
    await anext(answer)
    before = -1
    async with asyncio.timeout(WAIT_SECONDS):
        # Until nothing moves any more: the rounds of the loop in which the sockets fill up are not counted in seconds.
        quiet = 0
        while quiet < 200:
            await asyncio.sleep(0)
            quiet, before = (quiet + 1, before) if sent == before else (0, sent)

    assert sent < len(piece) * 1000
    await answer.aclose()


async def test_marks_say_what_anthropic_is_to_keep(server, asker):
    server.play(plays(ANTHROPIC.stream))
    model = asker.model(ANTHROPIC)
    said = await asker.said(model)
    use = said.parts[-1]
    answered = Turn("user", (Result(use.id, (Text("done"),)),))
    turns = (*QUESTION, Turn("assistant", said.parts), answered, Turn("assistant", (Text("Ok."),)))
    await asker.said(model, question(*turns, Turn("user", (Text("one"), Text("two")))))

    body = server.asked[1].value
    mark = {"type": "ephemeral"}
    assert body["system"] == [{"type": "text", "text": "Be brief.", "cache_control": mark}]
    assert body["tools"][-1]["cache_control"] == mark
    assert [message["content"][-1].get("cache_control") for message in body["messages"]] == [
        None,
        None,
        mark,
        None,
        mark,
    ]
    assert json.dumps(body).count("cache_control") == 4


async def test_openai_is_told_which_conversation_it_is(server, asker):
    server.play(plays(RESPONSES.stream))
    model = asker.model(RESPONSES)
    await asker.said(model)
    model.conversation = "T-1"
    await asker.said(model)

    assert ["prompt_cache_key" in one.value for one in server.asked] == [False, True]
    assert server.asked[1].value["prompt_cache_key"] == "T-1"


async def test_openrouter_is_told_to_keep_what_a_claude_has_read(server, asker):
    server.play(plays(CHAT.stream))
    router = CHAT._replace(host="openrouter")
    for name in ("anthropic/claude-opus-5.5", "qwen/qwen3"):
        await asker.said(asker.model(router, model=name))

    assert [one.value.get("cache_control") for one in server.asked] == [{"type": "ephemeral"}, None]


THINKING = [
    pytest.param(
        ANTHROPIC, "claude-opus-4-5", 2048, {"thinking": {"type": "enabled", "budget_tokens": 2048}}, id="budget"
    ),
    pytest.param(ANTHROPIC, "claude-opus-4-5", None, {"thinking": None}, id="the API's own way"),
    pytest.param(
        ANTHROPIC,
        "claude-opus-4-8",
        20_000,
        {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "medium"}},
        id="adaptive",
    ),
    pytest.param(ANTHROPIC, "claude-opus-5", 0, {"thinking": {"type": "disabled"}, "output_config": None}, id="off"),
    pytest.param(
        ANTHROPIC,
        "claude-opus-5-5",
        None,
        {
            "thinking": {
                "type": "adaptive",
                "display": "summarized",
                "block_binding": {"prefix_mismatch_behavior": "drop_block"},
            },
            "temperature": None,
            "tool_choice": {"type": "auto"},
        },
        id="bound",
    ),
    pytest.param(RESPONSES, "gpt-5.2", 100, {"reasoning": {"effort": "low", "summary": "auto"}}, id="effort"),
    pytest.param(RESPONSES, "gpt-4.1", None, {"include": None, "temperature": 0.5}, id="no thinker"),
    pytest.param(CHAT, "deepseek-reasoner", 40_000, {"reasoning_effort": "high"}, id="chat"),
    pytest.param(
        GEMINI,
        "gemini-3-pro",
        40_000,
        {
            "generationConfig": {
                "maxOutputTokens": 32_000,
                "temperature": 0.5,
                "thinkingConfig": {"thinkingLevel": "HIGH", "includeThoughts": True},
            }
        },
        id="level",
    ),
]


@pytest.mark.parametrize(("spoken", "name", "tokens", "wanted"), THINKING)
async def test_thinking_is_asked_for_as_the_model_takes_it(server, asker, spoken, name, tokens, wanted):
    server.play(plays(spoken.stream))
    model = asker.model(spoken, model=name, thinking_tokens=tokens)

    await asker.said(model, question(choice=ToolChoice("any"), temperature=0.5))

    body = server.asked[0].value
    assert {key: body.get(key) for key in wanted} == wanted
    assert ("anthropic-beta" in server.asked[0].headers) == (name == "claude-opus-5-5")


MOST = [
    pytest.param(ANTHROPIC, {}, "max_tokens", 32_000, id="as many as are sensible"),
    pytest.param(ANTHROPIC, {"max_tokens": 77}, "max_tokens", 77, id="as the settings say"),
    pytest.param(CHAT, {}, "max_tokens", 8_192, id="as many as an unknown model gives"),
    pytest.param(RESPONSES, {"max_tokens": 400_000}, "max_output_tokens", 128_000, id="no more than it gives"),
]


@pytest.mark.parametrize(("spoken", "settings", "key", "most"), MOST)
async def test_an_answer_has_a_limit(server, asker, spoken, settings, key, most):
    server.play(plays(spoken.stream))

    await asker.said(asker.model(spoken, **settings))

    assert server.asked[0].value[key] == most


async def test_a_stream_of_another_shape_is_a_fault_and_no_answer(server, asker):
    async def page(exchange: Exchange) -> None:
        await exchange.whole(200, "<html><title>Welcome to the hotel</title></html>", "text/html")

    server.play(page)
    with pytest.raises(ModelError, match="web page") as caught:
        await asker.said(asker.model(ANTHROPIC))

    assert caught.value.kind == "bad"
    assert len(server.asked) == 1


async def test_an_event_without_end_is_not_waited_for(server, asker, monkeypatch):
    monkeypatch.setattr("ferrule.wire.stream.EventReader.__init__.__defaults__", (1000,))

    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.chunk(b"data: " + b"x" * 5000)
        await exchange.gone()

    server.play(play)
    with pytest.raises(ModelError, match="longer than"):
        await asker.said(asker.model(ANTHROPIC))


async def test_a_redirection_is_not_followed(server, asker):
    async def away(exchange: Exchange) -> None:
        await exchange.whole(307, b"", location=f"{server.url}/elsewhere")

    server.play(away)
    with pytest.raises(ModelError, match="leads elsewhere"):
        await asker.said(asker.model(ANTHROPIC))

    assert [one.path for one in server.asked] == ["/v1/messages"]


async def test_a_packed_answer_is_refused(server, asker):
    async def packed(exchange: Exchange) -> None:
        await exchange.whole(200, b"\x1f\x8b" + b"x" * 50, "text/event-stream", content_encoding="gzip")

    server.play(packed)
    with pytest.raises(ModelError, match="packed its answer"):
        await asker.said(asker.model(ANTHROPIC))


async def test_conversations_side_by_side_share_a_line_and_keep_their_bodies_apart(server, asker):
    server.play(plays(RESPONSES.stream))
    model = asker.model(RESPONSES)
    other = model.beside("T-2")

    for one in (model, other, model, other):
        await asker.said(one)
    await other.close()
    await asker.said(model)

    assert server.connections == 1
    assert [one.value.get("prompt_cache_key") for one in server.asked] == [None, "T-2", None, "T-2", None]
    assert (other.name, other.window, other.prices) == (model.name, model.window, model.prices)


@pytest.mark.parametrize("spoken", APIS)
async def test_it_keeps_what_every_model_keeps(server, asker, spoken):
    server.play(plays(spoken.stream))
    model = asker.model(spoken)

    contract.check_answer(await contract.heard(model, question()))
    await contract.check_given_up(model, question())
    contract.check_answer(await contract.heard(model, question()))
    await contract.check_closing(model)


TOLD = [
    pytest.param(ANTHROPIC, "claude-opus-4-5", {"output_config": {"effort": "low"}}, "effort-2025-11-24", id="beside"),
    pytest.param(ANTHROPIC, "claude-sonnet-4-5", {"output_config": None}, "", id="unknown to an older one"),
    pytest.param(ANTHROPIC, "claude-opus-5", {"output_config": {"effort": "low"}}, "", id="newer"),
    pytest.param(CHAT, "m", {"reasoning_effort": "low"}, "", id="chat"),
    pytest.param(RESPONSES, "gpt-5", {"reasoning": {"effort": "low"}}, "", id="responses"),
]


@pytest.mark.parametrize(("spoken", "name", "wanted", "beta"), TOLD)
async def test_an_effort_is_told_as_the_model_takes_it(server, asker, spoken, name, wanted, beta):
    server.play(plays(spoken.stream))
    await asker.said(asker.model(spoken, model=name, effort="low"), question())

    body = server.asked[0].value
    told = {key: body.get(key) for key in wanted}
    if told.get("reasoning"):
        told["reasoning"] = {"effort": told["reasoning"]["effort"]}
    assert told == wanted
    assert server.asked[0].headers.get("anthropic-beta", "") == beta


async def test_a_task_s_tokens_and_betas_are_told_to_anthropic(server, asker):
    server.play(plays(ANTHROPIC.stream))
    model = asker.model(ANTHROPIC, model="claude-opus-4-5", task_tokens=500, betas=("some-beta",))
    await asker.said(model, question())

    assert server.asked[0].value["output_config"] == {"task_budget": {"type": "tokens", "total": 500}}
    assert server.asked[0].headers["anthropic-beta"] == "task-budgets-2026-03-13,some-beta"
