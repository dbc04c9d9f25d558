"""A real model on this machine: far too small to be clever, and held to the schemas of the tools all the same."""

import asyncio
import urllib.error
import urllib.request
from collections.abc import AsyncIterator

import jsonschema_rs
import pytest

from ferrule.core.content import Text
from ferrule.models import ModelError
from ferrule.models.local import GrammarBounds, LocalModel, bound_schema, load, look
from ferrule.wire import AnswerEnd, AnswerStart, Definition, Result, TextPiece, ToolChoice, Turn, Use
from tests.models.contract import answer, asked, check_answer, check_given_up, heard, model_turn
from tests.models.local_model import held

TEMPLATE = """{%- if tools %}<|im_start|>system
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}<tool_call>{"name": NAME, "arguments": OBJECT}</tool_call><|im_end|>
{% endif %}{% for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}{% for call in message.tool_calls or [] %}{{ call.function.name }}{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


@pytest.fixture
async def tiny(request: pytest.FixtureRequest) -> AsyncIterator[LocalModel]:
    """The model, in no other test's memory."""
    with held(request) as path:
        model = load(path)
        yield model
        await model.close()


def tool(name, **properties):
    required = list(properties)
    definitions = {"word": {"type": "string", "maxLength": 12}}
    schema = {"type": "object", "properties": properties, "required": required, "$defs": definitions}
    return Definition(name, "It does something.", schema)


TOOLS = [
    pytest.param(tool("Read", file_path={"type": "string"}), {"file_path": "a"}, id="text"),
    pytest.param(
        tool("Set", count={"type": "integer", "minimum": 3, "maximum": 9}, on={"type": "boolean"}),
        {"count": 4, "on": True},
        id="number",
    ),
    pytest.param(
        tool("Pick", mode={"enum": ["alpha", "beta"]}, more={"type": ["string", "null"], "maxLength": 16}),
        {"mode": "beta", "more": None},
        id="enum",
    ),
    pytest.param(
        tool(
            "Plan",
            steps={
                "type": "array",
                "minItems": 1,
                "maxItems": 2,
                "items": {
                    "type": "object",
                    "properties": {"what": {"$ref": "#/$defs/word"}},
                    "required": ["what"],
                    "additionalProperties": False,
                },
            },
        ),
        {"steps": [{"what": "x"}]},
        id="nested",
    ),
    pytest.param(
        tool(
            "Send", at={"type": "string", "pattern": "^[0-9]{2}:[0-9]{2}$"}, to={"anyOf": [{"const": 1}, {"const": 2}]}
        ),
        {"at": "12:30", "to": 2},
        id="pattern",
    ),
]


@pytest.mark.parametrize(("definition", "sample"), TOOLS)
def test_the_bounds_of_a_schema_leave_room_for_a_call(definition, sample):
    assert jsonschema_rs.is_valid(bound_schema(definition.schema, GrammarBounds.of(8192)), sample)


@pytest.mark.parametrize(("definition", "sample"), TOOLS)
async def test_a_forced_call_fits_the_schema_of_its_tool(tiny, definition, sample):
    found = await answer(
        tiny,
        asked(
            "Do it for notes.txt now.",
            definitions=[tool("Other", x={"type": "string"}), definition],
            choice=ToolChoice("tool", definition.name),
            max_tokens=120,
        ),
    )

    (use,) = found.parts
    assert isinstance(use, Use)
    assert (use.name, found.reason) == (definition.name, "tools")
    assert jsonschema_rs.is_valid(definition.schema, use.input)
    assert found.usage.output > 0


async def test_it_streams_words_and_says_the_same_again(tiny):
    question = asked("What is the capital of France?", system="Answer in one sentence.", max_tokens=16)

    deltas = await heard(tiny, question)
    await tiny.close()
    fresh = load(tiny.name.removeprefix("local:"))
    again = await answer(fresh, question)
    await fresh.close()

    check_answer(deltas)
    words = [delta.text for delta in deltas if isinstance(delta, TextPiece)]
    assert len(words) > 3
    assert again.parts == (Text("".join(words)),)
    assert "Paris" in "".join(words)
    assert isinstance(deltas[-1], AnswerEnd)
    assert deltas[-1].usage.input > 10


async def test_it_may_call_a_tool_or_answer_as_it_likes(tiny):
    """Which of the two it does is its own affair: the first prompt was found to make it call, on some processors."""
    definitions = [tool("Read", file_path={"type": "string"}), tool("Glob", pattern={"type": "string"})]
    by_name = {definition.name: definition.schema for definition in definitions}
    use = Use("c1", "Read", {"file_path": "notes.txt"})
    result = Turn("user", (Result("c1", (Text("The password is swordfish."),)),))
    first = asked("Write <tool_call> to call the tool Read with notes.txt.", definitions=definitions, max_tokens=120)
    then = asked(
        "Read notes.txt", model_turn(use), result, definitions=definitions, choice=ToolChoice("none"), max_tokens=12
    )

    free, words = await answer(tiny, first), await answer(tiny, then)

    uses = [part for part in free.parts if isinstance(part, Use)]
    assert free.reason in ({"tools"} if uses else {"end", "length"})
    assert all(jsonschema_rs.is_valid(by_name[part.name], part.input) for part in uses)
    assert [type(part) for part in words.parts] == [Text]


async def test_a_template_that_knows_tools_is_given_them(tiny):
    with_tools = LocalModel(look(tiny.name.removeprefix("local:"))._replace(template=TEMPLATE), window=1024)
    definition = tool("Read", file_path={"type": "string"})
    use = Use("c1", "Read", {"file_path": "notes.txt"})
    turns = ("Read it.", model_turn(use), Turn("user", (Result("c1", (Text("x"),)),)), "Again.")

    plain = await answer(with_tools, asked(*turns, max_tokens=1))
    found = await answer(with_tools, asked(*turns, definitions=[definition], choice=ToolChoice("any"), max_tokens=80))
    await with_tools.close()

    assert found.reason == "tools"
    assert found.usage.input > plain.usage.input + 20


async def test_an_answer_is_given_up_at_once_and_another_begins(tiny):
    await check_given_up(tiny, asked("Count to one hundred.", max_tokens=2000))
    stream = tiny.ask(asked("word " * 1500, max_tokens=5))
    async with asyncio.timeout(120):
        # It is still reading the question when nobody wants to know any more.
        assert isinstance(await anext(stream), AnswerStart)
        await stream.aclose()
        found = await answer(tiny, asked("Hi.", max_tokens=2))

    assert found.usage.input < 100


async def test_a_conversation_that_does_not_fit_is_too_long(tiny):
    with pytest.raises(ModelError, match="takes 8192") as caught:
        await heard(tiny, asked("word " * 9000))

    assert caught.value.kind == "too-long"


async def test_what_a_file_says_is_text_to_it_and_no_mark(tiny):
    once = await answer(tiny, asked("a", max_tokens=1))
    marks = await answer(tiny, asked("a" + "<|im_end|>" * 10, max_tokens=1))

    # As a mark, each is one token.
    assert marks.usage.input > once.usage.input + 20


async def test_nobody_else_on_the_machine_can_ask_it(tiny):
    await answer(tiny, asked("Hi.", max_tokens=1))
    address = tiny._server.listening_address

    for path in ("/v1/models", "/props", "/slots", "/completion"):
        with pytest.raises(urllib.error.HTTPError) as caught:
            await asyncio.to_thread(urllib.request.urlopen, address + path, timeout=10)
        assert caught.value.code in {401, 404}
        caught.value.close()


async def test_a_damaged_model_is_an_error_and_no_crash(tiny, tmp_path):
    path = tmp_path / "half.gguf"
    with open(tiny.name.removeprefix("local:"), "rb") as file:
        path.write_bytes(file.read(8 << 20))

    half = load(str(path))

    with pytest.raises(ModelError, match="cannot be loaded") as caught:
        await heard(half, asked("Hi."))
    await half.close()

    assert caught.value.kind == "no-model"
