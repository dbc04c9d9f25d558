"""Streams in the forms of real servers: text once, each call once, why it stopped, and what it took.

The first line of each file in `recorded` says where it is from. Those of LiteLLM and the texts of llama.cpp were
recorded; vLLM, Ollama and OpenRouter could not be run, and theirs are written after their sources and documentation, as
are the calls of llama.cpp: the model that tests have makes none.
"""

from pathlib import Path
from typing import Any, NamedTuple

from ferrule.core.content import Text
from ferrule.wire import ModelResponse, Reason, Thinking, Usage, Use
from ferrule.wire.stream import Assembler, EventReader
from ferrule.wire.translate import Translator
from tests.rows import each_row
from tests.wire.streams import READERS, WRITERS

FOLDER = Path(__file__).parent / "recorded"
APIS = {"chat": "chat", "messages": "anthropic", "responses": "responses"}
WORDS = "Ich schaue nach: “größe”."
FIRST, SECOND = {"path": "a.txt"}, {"path": 'b "ü".txt'}
TOOK = Usage(21, 17)


class Heard(NamedTuple):
    """What a stream says."""

    text: str
    calls: tuple[tuple[str, dict[str, Any]], ...]
    reason: Reason
    usage: Usage
    thought: str = ""


BOTH = (("toolu_01", FIRST), ("toolu_02", SECOND))
OTHERS = (("call_01", FIRST), ("call_02", SECOND))
LOCAL = (("call_y9wzw3f8", FIRST), ("call_k2m4n6p8", SECOND))
EXPECTED = {
    "litellm-chat-text": Heard(WORDS, (), "end", TOOK),
    "litellm-chat-calls": Heard(WORDS, BOTH, "tools", TOOK),
    "litellm-chat-calls-from-chat": Heard(WORDS, OTHERS, "tools", TOOK),
    "litellm-messages-text": Heard(WORDS, (), "end", TOOK),
    "litellm-messages-calls": Heard(WORDS, BOTH, "tools", TOOK),
    "litellm-messages-calls-from-chat": Heard(WORDS, OTHERS, "tools", TOOK),
    "litellm-responses-text": Heard(WORDS, (), "end", TOOK),
    "litellm-responses-calls": Heard(WORDS, BOTH, "tools", TOOK),
    "litellm-responses-calls-from-chat": Heard(WORDS, OTHERS, "tools", TOOK),
    "llamacpp-chat-text": Heard("I'm sorry to inform you, but", (), "length", Usage(15, 8)),
    "llamacpp-messages-text": Heard(
        "I'm sorry to inform you, but as a language model, I don't have the ability to translate languages. I",
        (),
        "length",
        Usage(15, 24, 14),
    ),
    "llamacpp-responses-text": Heard("Hello, welcome to my little corner of the world.", (), "end", Usage(36, 12, 24)),
    "llamacpp-chat-calls": Heard("", (("Ab1", FIRST), ("Cd2", SECOND)), "tools", TOOK),
    "llamacpp-responses-calls": Heard(WORDS, (("call_Ab1", FIRST), ("call_Cd2", SECOND)), "tools", TOOK),
    "llamacpp-responses-calls-without-ids": Heard(WORDS, (("fc_Ab1", FIRST), ("fc_Cd2", SECOND)), "tools", TOOK),
    "ollama-chat-text": Heard(WORDS, (), "end", TOOK, "Hm, so."),
    "ollama-chat-calls": Heard("", LOCAL, "tools", Usage(21, 40)),
    "ollama-chat-same-index": Heard("I look.", LOCAL, "tools", Usage(21, 40)),
    "openrouter-chat-text": Heard(WORDS, (), "end", Usage(21, 17, 14), "Hm, so."),
    "openrouter-chat-calls": Heard("", BOTH, "tools", Usage(21, 40)),
    "openrouter-chat-error": Heard("Ich schaue ", (), "end", Usage()),
    "vllm-chat-text": Heard(WORDS, (), "end", TOOK, "Hm, so."),
    "vllm-chat-calls": Heard(
        "\n\n", (("chatcmpl-tool-0a1b", FIRST), ("chatcmpl-tool-2c3d", SECOND)), "tools", Usage(21, 40), "Hm."
    ),
    "vllm-chat-forced": Heard("", (("call_9f", FIRST),), "tools", Usage(9, 8)),
}


def _said(stream: bytes, api: str) -> ModelResponse:
    events, reader, whole = EventReader(), READERS[api](), Assembler()
    deltas = [delta for event in events.feed(stream) + events.end() for delta in reader.read(event)]
    for delta in [*deltas, *reader.end()]:
        whole.put(delta)
    return whole.said()


def _heard(said: ModelResponse) -> Heard:
    words = "".join(part.text for part in said.parts if isinstance(part, Text))
    thought = "".join(part.text for part in said.parts if isinstance(part, Thinking))
    calls = [(part.id, part.input) for part in said.parts if isinstance(part, Use) and isinstance(part.input, dict)]
    return Heard(words, tuple(calls), said.reason, said.usage, thought)


def test_every_stream_that_is_kept_is_expected_to_say_something_and_says_where_it_is_from():
    kept = {path.stem: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}

    assert kept.keys() == EXPECTED.keys()
    assert all(text.startswith((": recorded from ", ": after the ")) for text in kept.values())


@each_row("name", EXPECTED)
def test_a_server_is_understood(name):
    said = _said((FOLDER / f"{name}.sse").read_bytes(), APIS[name.split("-")[1]])

    assert _heard(said) == EXPECTED[name]
    assert {part.name for part in said.parts if isinstance(part, Use)} <= {"read"}


@each_row("writer", WRITERS)
@each_row("name", [name for name in EXPECTED if not name.endswith("-error")])
def test_a_server_is_understood_through_any_other_api(name, writer):
    """The same, byte by byte, as a client of another API gets it; what was thought is not asked for here."""
    translator = Translator(READERS[APIS[name.split("-")[1]]](), WRITERS[writer]())
    stream = (FOLDER / f"{name}.sse").read_bytes()
    out = b"".join(translator.feed(stream[at : at + 1]) for at in range(len(stream))) + translator.end()
    heard, expected = _heard(_said(out, writer)), EXPECTED[name]

    assert (heard.text, [one for _, one in heard.calls]) == (expected.text, [one for _, one in expected.calls])
    assert (heard.reason, heard.usage.input, heard.usage.output) == (
        expected.reason,
        expected.usage.input,
        expected.usage.output,
    )
