"""Streams as imitators of the APIs send them: calls without index or id, arguments in odd pieces, counts that are
missing. Each must come out as the answer that was meant."""

from typing import Any

from bench.proxy.cases.kit import Table, equal, is_told
from bench.proxy.speak import chat_end, chat_stream, chat_usage, chunk, event, named
from bench.proxy.stage import Scene
from bench.proxy.talk import TOOLS, Answer, Ask, Counted, Words
from bench.proxy.upstream import Play, ends, streams

TABLE = Table("odd streams")
_ASK = Ask(tools=TOOLS)
_CHAT: dict[str, Any] = {"wires": ("openai-chat",), "modes": (True, False), "host": "vllm", "ask": _ASK}
"""An imitator of Chat. It streams to the proxy even if the client wants the answer whole."""
_START = chunk({"role": "assistant", "content": ""})
_TWO: list[tuple[str, Any]] = [("Read", {"path": "a"}), ("Read", {"path": "b"})]


def _function(name: str | None = None, arguments: str | None = None) -> dict[str, Any]:
    return {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}


def _call(index: int | None, id_: str | None, name: str | None, arguments: str | None) -> dict[str, Any]:
    """A piece of a call as a Chat chunk has it; None leaves a field out."""
    given = {"index": index, "id": id_, "type": "function" if name else None, "function": _function(name, arguments)}
    return {key: value for key, value in given.items() if value is not None}


def _calls(*made: dict[str, Any], **more: Any) -> dict[str, Any]:
    return chunk({"tool_calls": list(made), **more})


def _chat(name: str, wanted: list[tuple[str, Any]], *values: Any, finish: str = "tool_calls", text: str = "") -> None:
    """Enter a Chat stream and the calls that it means."""

    async def act(scene: Scene) -> None:
        scene.play(streams(chat_stream(_START, *values, *chat_end(finish))))
        heard = await scene.ask()
        assert heard.failed is None, heard.failed
        equal(heard.calls, wanted, "calls")
        equal(heard.text, text, "text")
        reason = {"anthropic": "tool_use", "openai-chat": "tool_calls", "openai-responses": "completed"}
        equal(heard.reason, reason.get(scene.client, "STOP"), "reason")
        assert all(heard.ids), f"ids: {heard.ids}"
        assert len(set(heard.ids)) == len(wanted), f"ids: {heard.ids}"

    TABLE.case(name, **_CHAT)(act)


_chat(
    "parallel calls in one chunk",
    _TWO,
    _calls(_call(0, "c1", "Read", '{"path":"a"}'), _call(1, "c2", "Read", '{"path":"b"}')),
)
_chat(
    "parallel calls in one chunk, then their arguments",
    _TWO,
    _calls(_call(0, "c1", "Read", ""), _call(1, "c2", "Read", "")),
    _calls(_call(0, None, None, '{"path":'), _call(1, None, None, '{"path":')),
    _calls(_call(0, None, None, '"a"}'), _call(1, None, None, '"b"}')),
)
_chat(
    "interleaved calls",
    _TWO,
    _calls(_call(0, "c1", "Read", '{"pa')),
    _calls(_call(1, "c2", "Read", '{"path')),
    _calls(_call(0, None, None, 'th":"')),
    _calls(_call(1, None, None, '":"b"')),
    _calls(_call(0, None, None, 'a"}')),
    _calls(_call(1, None, None, "}")),
)
_chat(
    "interleaved calls, the later one done first",
    _TWO,
    _calls(_call(0, "c1", "Read", '{"path"')),
    _calls(_call(1, "c2", "Read", '{"path":"b"}')),
    _calls(_call(0, None, None, ':"a"}')),
)
_chat(
    "calls without an index",
    _TWO,
    _calls(_call(None, "c1", "Read", '{"path":"a"}')),
    _calls(_call(None, "c2", "Read", '{"path":"b"}')),
)
_chat(
    "calls without an index, in pieces",
    _TWO,
    _calls(_call(None, "c1", "Read", '{"path"')),
    _calls(_call(None, None, None, ':"a"}')),
    _calls(_call(None, "c2", "Read", '{"path"')),
    _calls(_call(None, None, None, ':"b"}')),
)
_chat(
    "the same index for every call",
    _TWO,
    _calls(_call(0, "c1", "Read", '{"path":"a"}')),
    _calls(_call(0, "c2", "Read", '{"path":"b"}')),
)
_chat(
    "calls without an id",
    _TWO,
    _calls(_call(0, None, "Read", '{"path":"a"}')),
    _calls(_call(1, None, "Read", '{"path":"b"}')),
)
_chat(
    "calls with an empty id",
    _TWO,
    _calls(_call(0, "", "Read", '{"path":"a"}')),
    _calls(_call(1, "", "Read", '{"path":"b"}')),
)
_chat(
    "two calls with the same id",
    _TWO,
    _calls(_call(0, "same", "Read", '{"path":"a"}')),
    _calls(_call(1, "same", "Read", '{"path":"b"}')),
)
_chat(
    "the id again with every piece",
    _TWO[:1],
    _calls(_call(0, "c1", "Read", '{"path"')),
    _calls(_call(0, "c1", None, ":")),
    _calls(_call(0, "c1", None, '"a"}')),
)
_chat(
    "the name again with every piece",
    _TWO[:1],
    _calls(_call(0, "c1", "Read", '{"path"')),
    _calls(_call(0, "c1", "Read", ':"a"}')),
)
_chat(
    "the index begins at one",
    _TWO,
    _calls(_call(1, "c1", "Read", '{"path":"a"}')),
    _calls(_call(2, "c2", "Read", '{"path":"b"}')),
)
_chat("a call without arguments", [("Now", {})], _calls(_call(0, "c1", "Now", None)))
_chat("a call with empty arguments", [("Now", {})], _calls(_call(0, "c1", "Now", "")), _calls(_call(0, None, None, "")))
_chat(
    "null for what is not there",
    _TWO[:1],
    chunk({"role": "assistant", "content": None, "tool_calls": None}),
    {**_calls({"index": 0, "id": "c1", "type": "function", "function": {"name": "Read", "arguments": None}})},
    _calls({"index": 0, "id": None, "type": None, "function": {"name": None, "arguments": '{"path":"a"}'}}),
)
_chat(
    "a call that ends with stop",
    _TWO[:1],
    _calls(_call(0, "c1", "Read", '{"path":"a"}')),
    finish="stop",
)
_chat(
    "a call in the last chunk, with the reason",
    _TWO[:1],
    {
        **_calls(_call(0, "c1", "Read", '{"path":"a"}')),
        "choices": [
            {"index": 0, "delta": {"tool_calls": [_call(0, "c1", "Read", '{"path":"a"}')]}, "finish_reason": None}
        ],
    },
)
_chat(
    "arguments as an object",
    _TWO[:1],
    _calls({"index": 0, "id": "c1", "type": "function", "function": {"name": "Read", "arguments": {"path": "a"}}}),
)
_chat(
    "words and a call in one chunk",
    _TWO[:1],
    _calls(_call(0, "c1", "Read", '{"path":"a"}'), content="I look."),
    text="I look.",
)
_chat(
    "words between the pieces of a call",
    _TWO[:1],
    _calls(_call(0, "c1", "Read", '{"path"')),
    chunk({"content": "Still "}),
    _calls(_call(0, None, None, ':"a"}')),
    text="Still ",
)


def _words(name: str, *values: Any, thinking: str = "", counted: Counted | None = None, **options: Any) -> None:
    """Enter a Chat stream that says "Hello"."""

    async def act(scene: Scene) -> None:
        scene.play(streams(chat_stream(*values)))
        heard = await scene.ask()
        assert heard.failed is None, heard.failed
        equal((heard.text, heard.thinking), ("Hello", thinking), "said")
        assert heard.input > 0, "no tokens of the input"
        assert heard.output > 0, "no tokens of the output"
        if scene.client == "anthropic" and scene.stream:
            assert heard.first > 0 or not scene.is_ours, "message_start counts nothing"
        if counted is not None:
            is_told(heard, Answer((Words(("Hello",)),), counted=counted), scene)

    TABLE.case(name, **_CHAT, **options)(act)


_words("no count of tokens at all", _START, chunk({"content": "Hello"}), *chat_end("stop", None))
_words("a count of zero", _START, chunk({"content": "Hello"}), *chat_end("stop", Counted(0, 0)))
_words(
    "the count in the chunk with the reason",
    _START,
    chunk({"content": "Hello"}),
    chunk({}, "stop", usage=chat_usage(Counted(77, 5))),
    "[DONE]",
    counted=Counted(77, 5),
)
_words(
    "the count in every chunk",
    chunk({"role": "assistant", "content": "Hel"}, usage=chat_usage(Counted(77, 1))),
    chunk({"content": "lo"}, usage=chat_usage(Counted(77, 2))),
    chunk({}, "stop", usage=chat_usage(Counted(77, 5))),
    "[DONE]",
    counted=Counted(77, 5),
)
_words("no [DONE] at the end", _START, chunk({"content": "Hello"}), chunk({}, "stop"))
_words(
    "thinking in a field called reasoning",
    _START,
    chunk({"reasoning": "Hm."}),
    chunk({"content": "Hello"}),
    *chat_end("stop"),
    thinking="Hm.",
)
_words(
    "the same thinking in both fields",
    _START,
    chunk({"reasoning_content": "Hm.", "reasoning": "Hm."}),
    chunk({"content": "Hel"}),
    chunk({"content": "lo"}),
    *chat_end("stop"),
    thinking="Hm.",
)
_words(
    "chunks without choices at the beginning",
    {**chunk({}), "choices": []},
    {**chunk({}), "choices": [], "prompt_filter_results": []},
    chunk({"content": "Hello"}),
    *chat_end("stop"),
)
_words(
    "the role in every chunk",
    chunk({"role": "assistant", "content": "Hel"}),
    chunk({"role": "assistant", "content": "lo"}),
    *chat_end("stop"),
)
_words(
    "a chunk behind the reason",
    _START,
    chunk({"content": "Hello"}),
    chunk({}, "stop"),
    chunk({"content": ""}),
    {**chunk({}), "choices": [], "usage": chat_usage(Counted(77, 5))},
    "[DONE]",
    counted=Counted(77, 5),
)


def _other(name: str, wire: str, wanted: list[tuple[str, Any]], play: Play, text: str = "") -> None:
    """Enter a stream of another API. Clients of that API get it as it came."""

    async def act(scene: Scene) -> None:
        scene.play(play)
        heard = await scene.ask()
        assert heard.failed is None, heard.failed
        equal((heard.text, heard.calls), (text, wanted), "said")

    TABLE.case(name, wires=(wire,), modes=(True,), ask=_ASK)(act)


def _message(*values: dict[str, Any], stop: str = "tool_use") -> list[bytes]:
    start: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
    }
    usage = {"input_tokens": 9, "output_tokens": 1}
    return named(
        {"type": "message_start", "message": {**start, "stop_sequence": None, "usage": usage}},
        *values,
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    )


_other(
    "Messages: the input whole at the start of its block",
    "anthropic",
    _TWO[:1],
    streams(
        _message(
            {
                "type": "content_block_start",
                "index": 0,
                "content_block": {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "a"}},
            },
            {"type": "content_block_stop", "index": 0},
        )
    ),
)
_other(
    "Messages: pings and unknown events between",
    "anthropic",
    [],
    streams(
        _message(
            {"type": "ping"},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "ping"},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}},
            {"type": "content_block_stop", "index": 0},
            stop="end_turn",
        )
    ),
    text="Hello",
)


def _candidate(*parts: dict[str, Any], finish: str = "") -> dict[str, Any]:
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 7, "totalTokenCount": 16}
    candidate = {"index": 0, "content": {"role": "model", "parts": list(parts)}}
    ended = {"finishReason": finish} if finish else {}
    return {"candidates": [{**candidate, **ended}], "usageMetadata": usage, "modelVersion": "m", "responseId": "r"}


_other(
    "Gemini: two calls in one chunk, without ids",
    "gemini",
    _TWO,
    streams(
        [
            event(
                _candidate(
                    {"functionCall": {"name": "Read", "args": {"path": "a"}}},
                    {"functionCall": {"name": "Read", "args": {"path": "b"}}},
                )
            ),
            event(_candidate({"text": ""}, finish="STOP")),
        ]
    ),
)
_other(
    "Gemini: a call without arguments",
    "gemini",
    [("Now", {})],
    streams([event(_candidate({"functionCall": {"id": "c1", "name": "Now"}}, finish="STOP"))]),
)


@TABLE.case("two calls whose pieces are given to the wrong place break no other", **_CHAT)
async def _whole_answer(scene: Scene) -> None:
    # A piece for a call that never began has nowhere to go; the others are untouched.
    values = (_calls(_call(0, "c1", "Read", '{"path":"a"}')), _calls(_call(7, None, None, '"lost"')))
    scene.play(ends(chat_stream(_START, *values, *chat_end("tool_calls"))))
    heard = await scene.ask()
    if heard.failed is None:
        equal(heard.calls[0], _TWO[0], "the call that was whole")
