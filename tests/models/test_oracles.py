"""The official libraries, pointed at the same server: what our server says is what their APIs say, and what we send is
what they send for the same conversation."""

from typing import Any

import pytest

from ferrule.core.content import Text
from ferrule.wire import Result, Turn

from .conftest import KEY, question
from .server import Exchange
from .spoken import ANTHROPIC, CHAT, GEMINI, RESPONSES, WORDS

pytestmark = pytest.mark.usefixtures("packages")

SAID: Any = ({"role": "user", "content": "Hello, ü."},)


def plays(stream: bytes):
    async def play(exchange: Exchange) -> None:
        await exchange.stream(stream)

    return play


async def test_the_library_of_anthropic_hears_the_same_and_sends_the_same(server, asker):
    from anthropic import AsyncAnthropic

    server.play(plays(ANTHROPIC.stream))
    tool: Any = {
        "name": "Read",
        "description": "Read a file.",
        "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
    }
    async with AsyncAnthropic(api_key=KEY, base_url=server.url, max_retries=0) as theirs:
        async with theirs.messages.stream(
            model=ANTHROPIC.model, max_tokens=32_000, system="Be brief.", messages=list(SAID), tools=[tool]
        ) as stream:
            whole: Any = await stream.get_final_message()
        said = await asker.said(asker.model(ANTHROPIC))

        assert [block.type for block in whole.content] == ["thinking", "text", "tool_use"]
        assert whole.content[1].text == WORDS == said.parts[1].text
        assert whole.content[0].signature == said.parts[0].signature
        assert whole.content[2].input == said.parts[2].input
        theirs_sent, ours = (unmarked(one.value) for one in server.asked)
        assert ours == theirs_sent
        assert server.asked[0].path == server.asked[1].path


def unmarked(body: Any) -> Any:
    """Without the marks for the cache, and texts as texts: the API takes both."""
    if isinstance(body, dict):
        body = {key: unmarked(value) for key, value in body.items() if key != "cache_control"}
        if isinstance(body.get("system"), list):
            body["system"] = body["system"][0]["text"]
        return body
    if isinstance(body, list):
        body = [unmarked(one) for one in body]
        if len(body) == 1 and isinstance(body[0], dict) and body[0].get("type") == "text":
            return body[0]["text"]
    return body


async def test_the_library_of_openai_hears_the_same_in_a_chat(server, asker):
    from openai import AsyncOpenAI

    server.play(plays(CHAT.stream))
    async with AsyncOpenAI(api_key=KEY, base_url=server.url, max_retries=0) as theirs:
        stream = await theirs.chat.completions.create(
            model=CHAT.model, messages=[{"role": "user", "content": "Hello, ü."}], stream=True
        )
        chunks: list[Any] = [chunk async for chunk in stream]
    await asker.said(asker.model(CHAT))

    words = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert words == WORDS
    assert chunks[-1].usage.prompt_tokens == 100
    assert server.asked[0].path == server.asked[1].path
    assert server.asked[0].headers["authorization"] == server.asked[1].headers["authorization"]
    assert server.asked[0].value["messages"] == server.asked[1].value["messages"][1:]


async def test_the_library_of_openai_hears_the_same_as_responses(server, asker):
    from openai import AsyncOpenAI

    server.play(plays(RESPONSES.stream))
    async with AsyncOpenAI(api_key=KEY, base_url=server.url, max_retries=0) as theirs:
        stream = await theirs.responses.create(model=RESPONSES.model, input="Hello, ü.", stream=True)
        kinds = [event.type async for event in stream]
    said = await asker.said(asker.model(RESPONSES))

    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"
    assert said.parts == RESPONSES.parts
    assert server.asked[0].path == server.asked[1].path


async def test_the_library_of_google_hears_the_same(server, asker):
    from google.genai import Client
    from google.genai.types import HttpOptions

    server.play(plays(GEMINI.stream))
    options = HttpOptions(base_url=server.url, api_version="v1beta")
    theirs = Client(api_key=KEY, http_options=options).aio
    stream = await theirs.models.generate_content_stream(model=GEMINI.model, contents="Hello, ü.")
    chunks: list[Any] = [chunk async for chunk in stream]
    await theirs.aclose()
    await asker.said(asker.model(GEMINI, url=f"{server.url}/v1beta"))

    parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts or ()]
    assert "".join(part.text for part in parts if part.text and not part.thought) == WORDS
    assert next(part.function_call.name for part in parts if part.function_call) == "Read"
    assert server.asked[0].path == server.asked[1].path
    assert server.asked[0].headers["x-goog-api-key"] == server.asked[1].headers["x-goog-api-key"]
    assert server.asked[0].value["contents"] == server.asked[1].value["contents"]


@pytest.mark.parametrize("spoken", [pytest.param(ANTHROPIC, id="anthropic")])
async def test_a_second_turn_is_taken_by_the_library_as_its_own(server, asker, spoken):
    """What we send back of an answer is what the library itself would send."""
    from anthropic import AsyncAnthropic

    server.play(plays(spoken.stream))
    model = asker.model(spoken)
    said = await asker.said(model)
    answered = Turn("user", (Result("toolu_1", (Text("done"),)),))
    await asker.said(model, question(Turn("user", (Text("Hello, ü."),)), Turn("assistant", said.parts), answered))
    async with AsyncAnthropic(api_key=KEY, base_url=server.url, max_retries=0) as theirs:
        async with theirs.messages.stream(model=spoken.model, max_tokens=9, messages=list(SAID)) as stream:
            content: Any = (await stream.get_final_message()).content
        answer: Any = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "done"}
        messages: Any = [*SAID, {"role": "assistant", "content": content}, {"role": "user", "content": [answer]}]
        async with theirs.messages.stream(model=spoken.model, max_tokens=9, messages=messages) as stream:
            await stream.get_final_message()

    ours, sent = unmarked(server.asked[1].value)["messages"], unmarked(server.asked[3].value)["messages"]
    assert [bare(one) for one in ours] == [bare(one) for one in sent]


def bare(message: Any) -> Any:
    """The library writes out fields that hold nothing."""
    if isinstance(message["content"], str):
        return message
    content = [{key: value for key, value in block.items() if value is not None} for block in message["content"]]
    return {**message, "content": content}
