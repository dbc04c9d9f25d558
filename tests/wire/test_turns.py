"""Conversations on every wire: round trips, the order of results, and the table of what a wire cannot hold."""

from typing import Any

import pytest
from hypothesis import given
from msgspec.structs import replace

from ferrule.core.content import Cache, Document, Image, Text
from ferrule.wire import (
    Foreign,
    Part,
    Result,
    Thinking,
    Turn,
    Use,
    WireError,
    anthropic,
    gemini,
    openai_chat,
    openai_responses,
)
from tests.rows import each_row
from tests.wire.strategies import conversations

WIRES = [anthropic, openai_chat, openai_responses, gemini]
PNG = Image("image/png", "aGk=")
CALL = Turn("assistant", (Use("call_1", "read", {"path": "a"}),))


def told(wire: Any, *turns: Turn) -> list[dict[str, Any]]:
    """The list that holds the conversation, whatever the wire calls it."""
    body = wire.turns_out(turns)
    found: list[dict[str, Any]] = next(body[key] for key in ("messages", "input", "contents") if key in body)
    return found


def back(wire: Any, *turns: Turn) -> tuple[Turn, ...]:
    read: tuple[Turn, ...] = wire.turns_in(wire.turns_out(turns))
    return read


@given(turns=conversations(result_images=True, many_texts=True, wire="anthropic"))
def test_a_conversation_comes_back_from_anthropic(turns):
    """All but blank words: the API refuses them."""
    spoken = [turn if turn.role == "system" else Turn(turn.role, _spoken(turn.parts)) for turn in turns]

    assert back(anthropic, *turns) == tuple(turn for turn in spoken if turn.parts)


def _spoken(parts):
    kept = (part for part in parts if not isinstance(part, Text) or part.text.strip())
    return tuple(replace(part, parts=_spoken(part.parts)) if isinstance(part, Result) else part for part in kept)


@given(turns=conversations())
def test_a_conversation_comes_back_from_chat(turns):
    assert back(openai_chat, *turns) == turns


@given(turns=conversations(result_images=True, many_texts=True))
def test_a_conversation_comes_back_from_responses(turns):
    assert back(openai_responses, *turns) == turns


@given(turns=conversations(many_texts=True, names=True, wire="gemini"))
def test_a_conversation_comes_back_from_gemini(turns):
    assert back(gemini, *turns) == turns


RICH = (
    Turn("system", (Text("Be brief."), Text("Be kind."))),
    Turn("user", (Text("Look."), Text(""), PNG)),
    Turn(
        "assistant",
        (
            Thinking("hm", "sig", wire="anthropic"),
            Text("One. "),
            Text("Two."),
            Use("a", "read", {"path": "x"}),
            Use("b", "patch", "free", is_text=True),
            Use("c", "read", "{broken"),
        ),
    ),
    Turn(
        "user",
        (
            Result("a", (Text("1"), Text("2"), PNG)),
            Result("b", (), failed=True),
            Result("c", (Text("no"),), failed=True),
            Text("Go on."),
        ),
    ),
)
SYSTEM = Turn("system", (Text("Be brief.\n\nBe kind."),))
USES = (Use("a", "read", {"path": "x"}), Use("b", "patch", "free", is_text=True), Use("c", "read", "{broken"))
AS_OBJECTS = (USES[0], Use("b", "patch", {"input": "free"}), Use("c", "read", {"input": "{broken"}))
LABELLED = (Text("Image from read (call a):"), PNG)


@pytest.mark.parametrize(
    ("wire", "kept"),
    [
        pytest.param(
            anthropic,
            (
                SYSTEM,
                Turn("user", (Text("Look."), PNG)),
                Turn("assistant", (*RICH[2].parts[:3], *AS_OBJECTS)),
                RICH[3],
            ),
            id="anthropic-loses-empty-text-and-that-input-was-text",
        ),
        pytest.param(
            openai_chat,
            (
                SYSTEM,
                RICH[1],
                Turn("assistant", (Text("One. Two."), *USES[:2], AS_OBJECTS[2])),
                Turn("user", (Result("a", (Text("1\n2"),)), *RICH[3].parts[1:3], *LABELLED)),
                Turn("user", (Text("Go on."),)),
            ),
            id="chat-loses-thinking-and-parts-and-moves-images",
        ),
        pytest.param(
            openai_responses,
            (SYSTEM, RICH[1], Turn("assistant", (*RICH[2].parts[1:3], *USES[:2], AS_OBJECTS[2])), RICH[3]),
            id="responses-loses-foreign-thinking",
        ),
        pytest.param(
            gemini,
            (
                SYSTEM,
                Turn("user", (Text("Look."), PNG)),
                Turn("assistant", (*RICH[2].parts[1:3], *AS_OBJECTS)),
                Turn(
                    "user",
                    (
                        Result("a", (Text("1\n2"),), name="read"),
                        Result("b", (), failed=True, name="patch"),
                        Result("c", (Text("no"),), failed=True, name="read"),
                        *LABELLED,
                        Text("Go on."),
                    ),
                ),
            ),
            id="gemini-loses-empty-text-and-foreign-thinking-and-moves-images",
        ),
    ],
)
def test_what_a_wire_cannot_hold_is_known(wire, kept):
    assert back(wire, *RICH) == kept


SPOKEN = Turn("user", (Text("wait"), Result("call_1", (Text("ok"),))))


@each_row(
    "answer",
    [
        pytest.param((SPOKEN,), id="text-before-the-result"),
        pytest.param((Turn("user", SPOKEN.parts[:1]), Turn("user", SPOKEN.parts[1:])), id="text-in-a-turn-before"),
        pytest.param((Turn("system", SPOKEN.parts[:1]), Turn("user", SPOKEN.parts[1:])), id="a-system-turn-between"),
    ],
)
@each_row("wire", WIRES)
def test_results_come_right_behind_their_calls(wire, answer):
    """CLASP: ExtractToolResults, ReorderMessagesForAzure_*; the user's text never stands between."""
    items = told(wire, Turn("user", (Text("hi"),)), CALL, *answer)
    at = next(at for at, item in enumerate(items) if "call_1" in str(item))
    behind = str(items[at + 1])

    assert "call_1" in behind
    assert "wait" not in behind.partition("ok")[0]


def test_anthropic_puts_results_first_in_one_message():
    assert told(anthropic, CALL, SPOKEN)[1] == {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "call_1", "content": [{"type": "text", "text": "ok"}]},
            {"type": "text", "text": "wait"},
        ],
    }


def test_chat_writes_an_assistant_with_calls():
    """CLASP: TransformAssistantMessage_WithToolUse."""
    turn = Turn("assistant", (Text("I "), Text("look."), Use("toolu_1", "read", {"path": "ä"})))

    assert told(openai_chat, turn) == [
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [
                {"id": "toolu_1", "type": "function", "function": {"name": "read", "arguments": '{"path":"ä"}'}}
            ],
        }
    ]


@pytest.mark.parametrize(
    ("parts", "content"),
    [
        pytest.param((Text("hi"),), "hi", id="one-text"),
        pytest.param(
            (Text("a"), Text("b")), [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], id="two-texts"
        ),
        pytest.param(
            (PNG,), [{"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}], id="an-image"
        ),
        pytest.param(
            (Image("", "", "https://x/y.png"),),
            [{"type": "image_url", "image_url": {"url": "https://x/y.png"}}],
            id="an-address",
        ),
    ],
)
def test_chat_writes_what_a_user_says(parts, content):
    """CLASP: TransformUserMessage."""
    assert told(openai_chat, Turn("user", parts)) == [{"role": "user", "content": content}]


@pytest.mark.parametrize(
    ("wire", "marked"),
    [
        pytest.param(anthropic, "'is_error': True", id="anthropic"),
        pytest.param(openai_chat, "'content': '[Error] no'", id="openai-chat"),
        pytest.param(openai_responses, "'output': '[Error] no'", id="openai-responses"),
        pytest.param(gemini, "'response': {'error': 'no'}", id="gemini"),
    ],
)
def test_a_failed_result_says_so(wire, marked):
    """CLASP: ToolResultWithIsError."""
    failed = Result("call_1", (Text("no"),), failed=True, name="read")
    fine = Result("call_1", (Text("no"),), name="read")

    assert marked in str(wire.results_out([failed]))
    assert marked not in str(wire.results_out([fine]))
    assert back(wire, CALL, Turn("user", (failed,)))[1].parts[0].failed  # type: ignore[union-attr]


def test_an_empty_result_is_still_a_result():
    """CLASP: EmptyToolResultOutput."""
    empty = Result("call_1", (), name="read")

    assert openai_responses.results_out([empty]) == [
        {"type": "function_call_output", "call_id": "call_1", "output": ""}
    ]
    assert openai_chat.results_out([empty]) == [{"role": "tool", "tool_call_id": "call_1", "content": ""}]
    assert anthropic.results_out([empty]) == [
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1"}]}
    ]
    assert gemini.results_out([empty])[0]["parts"] == [
        {"functionResponse": {"id": "call_1", "name": "read", "response": {"output": ""}}}
    ]


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.NAME)
def test_no_results_are_no_message(wire):
    assert wire.results_out([]) == []


def test_chat_shows_images_behind_all_results():
    results = [Result("a", (PNG,)), Result("b", (Text("text"), PNG), failed=True)]
    uses = [Use("a", "view", {}), Use("b", "read", {})]

    assert openai_chat.results_out(results, uses) == [
        {"role": "tool", "tool_call_id": "a", "content": "The image follows below."},
        {"role": "tool", "tool_call_id": "b", "content": "[Error] text"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Image from view (call a):"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
                {"type": "text", "text": "Image from read (call b):"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
            ],
        },
    ]


def test_responses_holds_images_in_the_result():
    image = {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "auto"}

    assert openai_responses.results_out([Result("a", (PNG,), failed=True)])[0]["output"] == [
        {"type": "input_text", "text": "[Error] "},
        image,
    ]
    assert openai_responses.results_out([Result("a", (Text("x"), PNG))])[0]["output"] == [
        {"type": "input_text", "text": "x"},
        image,
    ]


def test_the_result_of_a_free_text_call_is_of_its_kind():
    use = Use("a", "apply_patch", "*** Begin", is_text=True)

    assert openai_responses.results_out([Result("a", ())], [use])[0]["type"] == "custom_tool_call_output"
    assert told(openai_responses, Turn("assistant", (use,)), Turn("user", (Result("a", ()),))) == [
        {"type": "custom_tool_call", "call_id": "a", "name": "apply_patch", "input": "*** Begin"},
        {"type": "custom_tool_call_output", "call_id": "a", "output": ""},
    ]


def test_gemini_must_hear_the_name_of_the_tool():
    result = Result("a", (Text("x"),))

    with pytest.raises(WireError, match="name"):
        gemini.results_out([result])
    assert "'name': 'read'" in str(gemini.results_out([result], [Use("a", "read", {})]))


def test_gemini_calls_without_ids_are_told_apart_and_answered_in_order():
    def call(name: str) -> dict[str, Any]:
        return {"functionCall": {"name": name, "args": {}}}

    def answer(name: str, output: str) -> dict[str, Any]:
        return {"functionResponse": {"name": name, "response": {"output": output}}}

    contents = [
        {"role": "model", "parts": [call("read"), call("list"), call("read")]},
        {"role": "user", "parts": [answer("read", "1"), answer("list", "2")]},
        {"role": "user", "parts": [answer("read", "3")]},
        {"role": "model", "parts": [call("read")]},
        {"role": "function", "parts": [answer("read", "4")]},
    ]
    turns = gemini.turns_in({"contents": contents})
    uses = [part.id for turn in turns for part in turn.parts if isinstance(part, Use)]
    results = {part.parts[0].text: part.id for turn in turns for part in turn.parts if isinstance(part, Result)}  # type: ignore[union-attr]

    assert len(set(uses)) == 4
    assert [results[text] for text in ("1", "2", "3", "4")] == uses
    assert gemini.turns_in({"contents": contents}) == turns


def test_gemini_keeps_the_signature_of_a_call():
    content = {
        "role": "model",
        "parts": [
            {"text": "hm", "thought": True},
            {"functionCall": {"id": "a", "name": "read", "args": {}}, "thoughtSignature": "c2ln"},
            {"text": "", "thoughtSignature": "ZW5k"},
        ],
    }

    assert gemini.turns_out(gemini.turns_in({"contents": [content]})) == {"contents": [content]}


def test_gemini_reads_both_spellings_and_both_alphabets():
    part = {"inline_data": {"mime_type": "image/png", "data": "_-8="}}

    assert gemini.turns_in({"contents": [{"parts": [part]}]}) == (Turn("user", (Image("image/png", "/+8="),)),)


@pytest.mark.parametrize(
    ("response", "parts", "failed"),
    [
        pytest.param({"output": "x"}, (Text("x"),), False, id="output"),
        pytest.param({"result": "x"}, (Text("x"),), False, id="result"),
        pytest.param({"output": {"a": 1}}, (Text('{"a":1}'),), False, id="structure"),
        pytest.param({"error": "x"}, (Text("x"),), True, id="error"),
        pytest.param({"a": 1, "b": 2}, (Text('{"a":1,"b":2}'),), False, id="anything"),
        pytest.param({}, (), False, id="nothing"),
        pytest.param(None, (), False, id="null"),
    ],
)
def test_gemini_understands_what_a_function_may_answer(response, parts, failed):
    answer = {"functionResponse": {"name": "read", "id": "a", "response": response}}

    (turn,) = gemini.turns_in({"contents": [{"role": "user", "parts": [answer]}]})

    assert replace(turn.parts[0], extra=None) == Result("a", parts, failed, "read")
    assert gemini.turns_out([turn])["contents"][0]["parts"] == [answer]


THOUGHTS: list[tuple[Any, Part]] = [
    (anthropic, Thinking("hm", "sig", wire="anthropic")),
    (anthropic, Thinking("", sealed="xyz", wire="anthropic")),
    (openai_responses, Thinking("hm", "rs_1", "xyz", "openai-responses")),
    (openai_chat, Thinking("hm", wire="openai-chat")),
    (gemini, Thinking("hm", "c2ln", wire="gemini")),
]


@pytest.mark.parametrize(("wire", "thought"), THOUGHTS, ids=lambda value: getattr(value, "NAME", "")[:9])
def test_thinking_goes_back_to_its_own_api_and_to_no_other(wire, thought):
    turn = Turn("assistant", (thought, Text("So.")))

    assert back(wire, turn) == (turn,)
    for other in WIRES:
        if other is not wire:
            assert back(other, turn) == (Turn("assistant", (Text("So."),)),)


@pytest.mark.parametrize(
    ("wire", "content", "kind"),
    [
        pytest.param(
            anthropic, {"type": "document", "source": {"type": "file", "file_id": "x"}}, "document", id="anthropic"
        ),
        pytest.param(openai_chat, {"type": "input_audio", "input_audio": {}}, "input_audio", id="openai-chat"),
        pytest.param(openai_responses, {"type": "input_file", "file_id": "x"}, "input_file", id="openai-responses"),
        pytest.param(gemini, {"inlineData": {"mimeType": "audio/wav", "data": "x"}}, "inlineData", id="gemini"),
    ],
)
def test_what_only_one_api_knows_goes_back_there_and_is_told_elsewhere(wire, content, kind):
    foreign = Foreign(wire.NAME, kind, content)
    turn = Turn("user", (Text("Read this."), foreign))

    assert back(wire, turn) == (turn,)
    for other in WIRES:
        if other is not wire:
            note = Text(f"[A part of the kind {kind} was left out here.]")
            assert back(other, turn) == (Turn("user", (Text("Read this."), note)),)


def test_marks_for_the_cache_stay_where_they_were():
    cached = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    document = {"type": "document", "source": {}, "cache_control": {"type": "ephemeral"}}
    body = {"system": [cached, cached], "messages": [{"role": "user", "content": [cached, document]}]}
    turns = anthropic.turns_in(body)

    assert anthropic.turns_out(turns) == body
    assert turns[0] == Turn("system", (Text("x", Cache("1h")), Text("x", Cache("1h"))))
    assert openai_chat.turns_out(turns[:1])["messages"] == [{"role": "system", "content": "x\n\nx"}]


@pytest.mark.parametrize(
    ("wire", "marks", "mark"),
    [
        (openai_chat, "breakpoint", {"prompt_cache_breakpoint": {"mode": "explicit"}}),
        (openai_chat, "cache_control", {"cache_control": {"type": "ephemeral", "ttl": "1h"}}),
        (openai_responses, "breakpoint", {"prompt_cache_breakpoint": {"mode": "explicit"}}),
    ],
    ids=["chat", "openrouter", "responses"],
)
def test_marks_for_the_cache_are_written_for_servers_that_know_them(wire, marks, mark):
    """Not for all: some servers that imitate these APIs refuse a field that they do not know."""
    turn = Turn("user", (Text("x", Cache("1h")), PNG))
    key = "messages" if wire is openai_chat else "input"
    (plain,), (marked,) = wire.turns_out([turn])[key], wire.turns_out([turn], marks=marks)[key]

    assert "cache" not in str(plain)
    assert marked["content"][0] == {**plain["content"][0], **mark}
    assert wire.turns_in({key: [marked]})[0].parts[0].cache == Cache(mark.get("cache_control", {}).get("ttl", ""))


PDF = Document("application/pdf", "JVBERi0=", title="a.pdf")
NOTES = Document("text/plain", text="Two lines.", title="notes")
ANYWHERE = Document("application/pdf", url="https://example.com/a.pdf")


@pytest.mark.parametrize(
    ("wire", "kept"),
    [
        pytest.param(anthropic, (PDF, NOTES, ANYWHERE), id="anthropic"),
        pytest.param(
            openai_chat,
            (
                PDF,
                Text("Document notes:\n\nTwo lines."),
                Text("[The document at https://example.com/a.pdf was left out here.]"),
            ),
            id="openai-chat",
        ),
        pytest.param(openai_responses, (PDF, Text("Document notes:\n\nTwo lines."), ANYWHERE), id="openai-responses"),
        pytest.param(
            gemini,
            (replace(PDF, title=""), Document("text/plain", "VHdvIGxpbmVzLg=="), ANYWHERE),
            id="gemini",
        ),
    ],
)
def test_documents_go_where_there_is_a_place_for_them(wire, kept):
    """A PDF everywhere, plain text at least as text, an address only where the API fetches it itself."""
    assert back(wire, Turn("user", (PDF, NOTES, ANYWHERE))) == (Turn("user", kept),)


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.NAME)
def test_a_document_of_plain_text_is_text_for_anthropic_wherever_it_came_from(wire):
    (turn,) = back(wire, Turn("user", (NOTES,)))

    assert "Two lines." in str(anthropic.turns_out([turn]))


@pytest.mark.parametrize(
    ("parts", "chat", "said"),
    [
        pytest.param((PNG,), "image", "The image follows below.", id="picture"),
        pytest.param((PDF,), "document", "The document follows below.", id="file"),
    ],
)
def test_a_result_that_only_holds_a_file_points_at_it(parts, chat, said):
    """A model that reads an empty result believes that the tool has given nothing."""
    turns = [CALL, Turn("user", (Result("call_1", parts, name="read"),))]
    answer = told(gemini, *turns)[1]["parts"]

    assert answer[0]["functionResponse"]["response"] == {"output": said}
    assert answer[1] == {"text": f"{chat.capitalize()} from read (call call_1):"}
    assert told(openai_chat, *turns)[1]["content"] == said
    assert "follows below" not in str(told(openai_responses, *turns))
    assert "follows below" not in str(told(anthropic, *turns))


@each_row(
    "turn",
    [
        pytest.param(Turn("user", (Use("a", "b", {}),)), id="a-call-of-the-user"),
        pytest.param(Turn("assistant", (Result("a", ()),)), id="a-result-of-the-model"),
        pytest.param(Turn("system", (PNG,)), id="an-image-of-the-system"),
    ],
)
@each_row("wire", WIRES)
def test_a_turn_that_no_api_takes_is_refused_in_words(wire, turn):
    with pytest.raises(WireError, match=f"turn of the {turn.role} cannot hold"):
        wire.turns_out([Turn("user", (Text("hi"),)), turn])


JUNK: list[Any] = [
    None,
    3,
    [],
    "x",
    {"messages": 3, "input": 3, "contents": 3},
    {"messages": [3], "input": [3], "contents": [3]},
    {"messages": [{}], "input": [{}], "contents": [{"role": 3}]},
    {"messages": [{"role": "nobody"}], "input": [{"role": "nobody"}], "contents": [{"role": "nobody"}]},
    {
        "messages": [{"role": "user", "content": 3}],
        "input": [{"role": "user", "content": 3}],
        "contents": [{"role": "user", "parts": 3}],
    },
    {
        "messages": [{"role": "user", "content": [{"type": "text"}]}],
        "input": [{"role": "user", "content": [{"type": "input_text"}]}],
        "contents": [{"role": "user", "parts": [{"text": 3}]}],
    },
    {
        "messages": [{"role": "assistant", "content": [{"type": "tool_use"}], "tool_calls": [{}]}],
        "input": [{"type": "function_call"}],
        "contents": [{"role": "model", "parts": [{"functionCall": {"id": 3}}]}],
    },
    {
        "messages": [{"role": "tool", "content": [{"type": "tool_result"}]}],
        "input": [{"type": "function_call_output"}],
        "contents": [{"role": "user", "parts": [{"functionResponse": {"response": 3}}]}],
    },
]


@each_row("body", JUNK)
@each_row("wire", WIRES)
def test_what_is_no_conversation_is_refused_in_words(wire, body):
    with pytest.raises(WireError, match="must be"):
        wire.turns_in(body)


def test_a_conversation_that_only_the_api_has_is_refused_in_words():
    with pytest.raises(WireError, match="previous_response_id"):
        openai_responses.turns_in({"input": "hi", "previous_response_id": "resp_1"})
