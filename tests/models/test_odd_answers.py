"""Answers as real hosts give them that speak an API in their own way: how they end, count, number and seal."""

from typing import Any

import pytest

from ferrule.core.content import Text
from ferrule.models import ModelError
from ferrule.wire import Result, Thinking, Turn, Usage, Use
from ferrule.wire.openai_chat import said_in, turns_out

from .conftest import QUESTION, heard, question
from .server import Exchange
from .spoken import CHAT, GEMINI, events


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"id": "x", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


def use(arguments: str, **more: Any) -> dict[str, Any]:
    return {"tool_calls": [{"index": 0, "function": {"name": "Read", "arguments": arguments}, **more}]}


def plays(*values: Any):
    async def play(exchange: Exchange) -> None:
        await exchange.stream(events(*values))

    return play


WORD = chunk({"content": "a"})
REASONS = [
    pytest.param("model_length", "length", id="no room in the window"),
    pytest.param("sensitive", "refused", id="another word for a filter"),
    pytest.param("eos", "end", id="a word that nobody knows"),
]


@pytest.mark.parametrize(("finish", "reason"), REASONS)
async def test_a_host_may_have_its_own_word_for_how_an_answer_ends(server, asker, finish, reason):
    server.play(plays(WORD, chunk({}, finish), "[DONE]"))

    said = await asker.said(asker.model(CHAT))

    assert (said.reason, said.parts) == (reason, (Text("a"),))


FAILED = [
    pytest.param(chunk({}, "error"), "not finished (error)", id="error"),
    pytest.param(chunk({}, "insufficient_system_resource"), "insufficient_system_resource", id="no resources"),
    pytest.param(chunk({}, "abort"), "not finished (abort)", id="aborted"),
    pytest.param(
        chunk({"content": ""}, "error", error={"code": 502, "message": "Provider left"}),
        "(HTTP 502). It said: Provider left.",
        id="with a reason",
    ),
    pytest.param(
        {"object": "error", "message": "The engine died", "type": "InternalServerError", "code": 503},
        "(HTTP 503). It said: The engine died.",
        id="an error that is a chunk",
    ),
]


@pytest.mark.parametrize(("last", "words"), FAILED)
async def test_an_answer_that_the_host_could_not_finish_is_none_and_is_asked_for_again(server, asker, last, words):
    server.play(plays(WORD, last, "[DONE]"), plays(WORD, chunk({}, "stop"), "[DONE]"))
    again, _ = await heard(asker.model(CHAT))
    assert len(again) == 1

    server.play(plays(WORD, last, "[DONE]"))
    with pytest.raises(ModelError) as caught:
        await heard(asker.model(CHAT, retries=0))
    assert words in str(caught.value)


COUNTS = [
    pytest.param(
        chunk({}, "stop", usage={"prompt_tokens": 5, "completion_tokens": 2, "prompt_cache_hit_tokens": 3}), id="hits"
    ),
    pytest.param(
        {
            "choices": [
                {
                    "index": 0,
                    "delta": {},
                    "finish_reason": "stop",
                    "usage": {"prompt_tokens": 5, "completion_tokens": 2, "cached_tokens": 3},
                }
            ]
        },
        id="inside the choice",
    ),
]


@pytest.mark.parametrize("last", COUNTS)
async def test_tokens_are_counted_wherever_a_host_says_them(server, asker, last):
    server.play(plays(WORD, last, "[DONE]"))

    assert (await asker.said(asker.model(CHAT))).usage == Usage(5, 2, 3)


@pytest.mark.parametrize("own", [pytest.param({}, id="no ids"), pytest.param({"id": ""}, id="empty ids")])
async def test_calls_that_share_an_index_and_have_no_ids_are_several(server, asker, own):
    server.play(
        plays(
            chunk(use('{"path":', **own)),
            chunk({"tool_calls": [{"index": 0, "function": {"arguments": '"a"}'}}]}),
            chunk(use('{"path":"b"}', **own)),
            chunk({}, "stop"),
            "[DONE]",
        )
    )

    said = await asker.said(asker.model(CHAT))

    assert [part.input for part in said.parts if isinstance(part, Use)] == [{"path": "a"}, {"path": "b"}]
    assert len({part.id for part in said.parts if isinstance(part, Use)}) == 2
    assert said.reason == "tools"


DETAILS = [
    {"type": "reasoning.text", "text": "Hm, so.", "signature": "SIG", "format": "anthropic-claude-v1", "index": 0},
    {"type": "reasoning.encrypted", "data": "AAA", "id": "t1", "format": "google-gemini-v1", "index": 1},
    {"type": "reasoning.encrypted", "data": "BBB", "id": "t2", "format": "google-gemini-v1", "index": 1},
]
THOUGHT = (
    chunk({"reasoning": "Hm,", "reasoning_details": [{**DETAILS[0], "text": "Hm,", "signature": None}]}),
    chunk({"reasoning": " so.", "reasoning_details": [{**DETAILS[0], "text": " so.", "signature": None}]}),
    chunk({"reasoning_details": [{"type": "reasoning.text", "signature": "SIG", "index": 0}]}),
    chunk({**use('{"path":"a"}', id="c1"), "reasoning_details": [DETAILS[1], "no detail"]}),
    chunk({"reasoning_details": [DETAILS[2]]}),
)


async def test_what_a_host_passes_on_of_thinking_goes_back_as_it_came(server, asker):
    """Claude and Gemini behind OpenRouter refuse a conversation that lacks it."""
    server.play(plays(*THOUGHT, chunk({}, "tool_calls"), "[DONE]"))
    model = asker.model(CHAT)
    said = await asker.said(model)
    assert (said.parts[0], said.parts[1]) == (Thinking("Hm, so.", wire="openai-chat"), Use("c1", "Read", {"path": "a"}))

    turns = (*QUESTION, Turn("assistant", said.parts), Turn("user", (Result("c1", (Text("x"),)),)))
    await asker.said(model, question(*turns))

    assert server.asked[1].value["messages"][2] == {
        "role": "assistant",
        "content": None,
        "reasoning_details": DETAILS,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "Read", "arguments": '{"path":"a"}'}}],
    }


def test_what_a_host_passes_on_of_thinking_is_read_of_a_whole_answer_too():
    message = {"role": "assistant", "content": "Yes.", "reasoning": "Hm, so.", "reasoning_details": DETAILS}

    said = said_in({"choices": [{"message": message, "finish_reason": "stop"}]})

    (sent,) = turns_out([Turn("assistant", said.parts)])["messages"]
    assert sent == {"role": "assistant", "content": "Yes.", "reasoning_details": DETAILS}


def test_a_seal_that_is_no_list_of_details_is_not_sent():
    thinking = Thinking("Hm.", sealed="{no json", wire="openai-chat")

    (sent,) = turns_out([Turn("assistant", (thinking, Text("Yes.")))])["messages"]
    assert sent == {"role": "assistant", "content": "Yes.", "reasoning_content": "Hm."}


async def test_what_was_thought_of_an_answer_that_was_cut_is_not_sealed(server, asker):
    server.play(plays(*THOUGHT, chunk({}, "length"), "[DONE]"))

    said = await asker.said(asker.model(CHAT))

    assert isinstance(said.parts[-1], Use)


async def test_gemini_that_misses_a_signature_is_asked_again_and_told_that_there_is_none(server, asker):
    def candidate(**more: Any) -> dict[str, Any]:
        return {"candidates": [{"content": {"parts": [{"text": "a"}]}, **more}]}

    missing = candidate(finishReason="MISSING_THOUGHT_SIGNATURE", finishMessage="A call is not signed.")
    server.play(plays(missing), plays(candidate(finishReason="STOP")))
    turns = (
        *QUESTION,
        Turn("assistant", (Thinking("", "AAAA", wire="gemini"), Use("c1", "Read", {}))),
        Turn("user", (Result("c1", (Text("x"),), name="Read"),)),
    )

    again, _ = await heard(asker.model(GEMINI), question(*turns))

    assert [one.seconds for one in again] == [0.0]
    calls = [one.value["contents"][1]["parts"][0]["thoughtSignature"] for one in server.asked]
    assert calls == ["AAAA", "skip_thought_signature_validator"]


async def test_gemini_that_says_nothing_at_all_is_asked_again(server, asker):
    nothing = {"candidates": [{"finishReason": "STOP", "index": 0}], "usageMetadata": {"promptTokenCount": 4}}
    word = {"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"}]}
    server.play(plays(nothing), plays(word))

    again, _ = await heard(asker.model(GEMINI))
    assert [one.why for one in again] == ["the answer was empty"]

    server.play(plays(nothing))
    with pytest.raises(ModelError, match="an answer with nothing in it") as caught:
        await heard(asker.model(GEMINI, retries=1))
    assert caught.value.kind == "server"


@pytest.mark.parametrize(
    "chunk_",
    [
        pytest.param({"candidates": [{"finishReason": "SAFETY"}]}, id="a filter"),
        pytest.param({"promptFeedback": {"blockReason": "SAFETY"}}, id="a filter before it begins"),
        pytest.param({"candidates": [{"finishReason": "MAX_TOKENS"}]}, id="no room"),
    ],
)
async def test_gemini_that_says_why_it_says_nothing_is_heard(server, asker, chunk_):
    server.play(plays(chunk_))

    said = await asker.said(asker.model(GEMINI))

    assert said.reason in {"refused", "length"}
    assert len(server.asked) == 1
