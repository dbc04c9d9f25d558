"""A long conversation as the official libraries send it, and as we do: the same, but for what we add on purpose.

Each conversation has words of the system, a picture, thinking, two calls at once, an answer and a failure, and limits.
What is different is named in `ON_PURPOSE`, and nothing else is.
"""

import re
from base64 import b64decode
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ferrule.core.content import Image, Text
from ferrule.wire import Definition, ModelRequest, Result, Thinking, ToolChoice, Turn, Use

from .conftest import KEY, Asker
from .server import Exchange, Server
from .spoken import ANTHROPIC, CHAT, GEMINI, RESPONSES, SIGNATURE, Spoken

pytestmark = pytest.mark.usefixtures("packages")

PNG = "iVBORw0KGgo="
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
EMPTY = {"type": "object", "properties": {}}
TOOLS = (("Read", "Read a file.", SCHEMA), ("Stop", "Stop.", EMPTY))

ON_PURPOSE = {
    "anthropic": "marks for the cache",
    "openai-chat": "tools are not strict, and a failure is marked in its text: the API has no field for it",
    "openai-responses": "tools are not strict, a failure is marked in its text, and nothing is stored",
    "gemini": "names are in one spelling, of which the library writes both; nobody said the system's words; "
    "a call that is not signed says so",
}


def conversation(thought: Thinking) -> ModelRequest:
    uses = (Use("call_1", "Read", {"path": "a"}), Use("call_2", "Read", {"path": "ü"}))
    results = (
        Result("call_1", (Text("one"),), name="Read"),
        Result("call_2", (Text("no such file"),), failed=True, name="Read"),
    )
    return ModelRequest(
        model="",
        turns=(
            Turn("system", (Text("Be brief."),)),
            Turn("user", (Text("Look."), Image("image/png", PNG))),
            Turn("assistant", (thought, Text("Two files."), *uses)),
            Turn("user", (*results, Text("Go on."))),
        ),
        definitions=tuple(Definition(*tool) for tool in TOOLS),
        choice=ToolChoice("auto"),
        max_tokens=5000,
        thinking_tokens=2048,
    )


async def anthropic(url: str) -> None:
    from anthropic import AsyncAnthropic

    calls = [{"type": "tool_use", "id": f"call_{at}", "name": "Read", "input": {"path": path}} for at, path in PATHS]
    content: Any = [{"type": "thinking", "thinking": "Hm.", "signature": SIGNATURE}, text("Two files."), *calls]
    messages: Any = [
        {"role": "user", "content": [text("Look."), {"type": "image", "source": SOURCE}]},
        {"role": "assistant", "content": content},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "call_1", "content": [text("one")]},
                {
                    "type": "tool_result",
                    "tool_use_id": "call_2",
                    "content": [text("no such file")],
                    "is_error": True,
                },
                text("Go on."),
            ],
        },
    ]
    tools: Any = [{"name": name, "description": words, "input_schema": schema} for name, words, schema in TOOLS]
    async with (
        AsyncAnthropic(api_key=KEY, base_url=url, max_retries=0) as theirs,
        theirs.messages.stream(
            model=ANTHROPIC.model,
            max_tokens=5000,
            system=[{"type": "text", "text": "Be brief."}],
            messages=messages,
            tools=tools,
            tool_choice={"type": "auto"},
            thinking={"type": "enabled", "budget_tokens": 2048},
        ) as stream,
    ):
        await stream.get_final_message()


async def chat(url: str) -> None:
    from openai import AsyncOpenAI

    calls = [
        {"id": f"call_{at}", "type": "function", "function": {"name": "Read", "arguments": f'{{"path":"{path}"}}'}}
        for at, path in PATHS
    ]
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    messages: Any = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [text("Look."), picture]},
        {"role": "assistant", "content": "Two files.", "reasoning_content": "Hm.", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "call_1", "content": "one"},
        {"role": "tool", "tool_call_id": "call_2", "content": "no such file"},
        {"role": "user", "content": "Go on."},
    ]
    tools: Any = [
        {"type": "function", "function": {"name": name, "description": words, "parameters": schema}}
        for name, words, schema in TOOLS
    ]
    async with AsyncOpenAI(api_key=KEY, base_url=url, max_retries=0) as theirs:
        stream = await theirs.chat.completions.create(
            model=CHAT.model,
            messages=messages,
            tools=tools,
            tool_choice="auto",
            max_tokens=5000,
            reasoning_effort="low",
            stream=True,
            stream_options={"include_usage": True},
        )
        async for _ in stream:
            pass


async def responses(url: str) -> None:
    from openai import AsyncOpenAI

    thought = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "Hm."}],
        "encrypted_content": SIGNATURE,
    }
    calls = [
        {"type": "function_call", "call_id": f"call_{at}", "name": "Read", "arguments": f'{{"path":"{path}"}}'}
        for at, path in PATHS
    ]
    picture = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "auto"}
    given: Any = [
        {"role": "user", "content": [{"type": "input_text", "text": "Look."}, picture]},
        thought,
        {"role": "assistant", "content": "Two files."},
        *calls,
        {"type": "function_call_output", "call_id": "call_1", "output": "one"},
        {"type": "function_call_output", "call_id": "call_2", "output": "no such file"},
        {"role": "user", "content": "Go on."},
    ]
    tools: Any = [
        {"type": "function", "name": name, "description": words, "parameters": schema} for name, words, schema in TOOLS
    ]
    async with AsyncOpenAI(api_key=KEY, base_url=url, max_retries=0) as theirs:
        stream = await theirs.responses.create(
            model=RESPONSES.model,
            instructions="Be brief.",
            input=given,
            tools=tools,
            tool_choice="auto",
            max_output_tokens=5000,
            reasoning={"effort": "low", "summary": "auto"},
            include=["reasoning.encrypted_content"],
            stream=True,
        )
        async for _ in stream:
            pass


async def gemini(url: str) -> None:
    from google.genai import Client, types

    def call(at: int, path: str) -> types.Part:
        return types.Part(function_call=types.FunctionCall(id=f"call_{at}", name="Read", args={"path": path}))

    def answer(at: int, **said: str) -> types.Part:
        return types.Part(function_response=types.FunctionResponse(id=f"call_{at}", name="Read", response=dict(said)))

    thought = types.Part(text="Hm.", thought=True, thought_signature=b64decode(SIGNATURE))
    contents: Any = [
        types.Content(
            role="user",
            parts=[
                types.Part.from_text(text="Look."),
                types.Part.from_bytes(data=b64decode(PNG), mime_type="image/png"),
            ],
        ),
        types.Content(
            role="model",
            parts=[thought, types.Part.from_text(text="Two files."), *(call(at, path) for at, path in PATHS)],
        ),
        types.Content(
            role="user",
            parts=[answer(1, output="one"), answer(2, error="no such file"), types.Part.from_text(text="Go on.")],
        ),
    ]
    declared = [
        types.FunctionDeclaration(name=name, description=words, parameters_json_schema=schema)
        for name, words, schema in TOOLS
    ]
    calling = types.FunctionCallingConfig(mode=types.FunctionCallingConfigMode.AUTO)
    config = types.GenerateContentConfig(
        system_instruction=[types.Part.from_text(text="Be brief.")],
        tools=[types.Tool(function_declarations=declared)],
        tool_config=types.ToolConfig(function_calling_config=calling),
        max_output_tokens=5000,
        thinking_config=types.ThinkingConfig(thinking_level=types.ThinkingLevel.LOW, include_thoughts=True),
    )
    theirs = Client(api_key=KEY, http_options=types.HttpOptions(base_url=url, api_version="v1beta")).aio
    stream = await theirs.models.generate_content_stream(model=GEMINI.model, contents=contents, config=config)
    async for _ in stream:
        pass
    await theirs.aclose()


PATHS = ((1, "a"), (2, "ü"))
SOURCE = {"type": "base64", "media_type": "image/png", "data": PNG}


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def plain(value: Any, api: str) -> Any:
    """Without what is there on purpose."""
    if isinstance(value, list):
        return [plain(one, api) for one in value]
    if isinstance(value, str):
        # Signatures are bytes: both alphabets of base64 stand for the same.
        return value.removeprefix("[Error] ").replace("-", "+").replace("_", "/")
    if not isinstance(value, dict):
        return value
    out = {key: plain(one, api) for key, one in value.items() if key != "cache_control"}
    if api != "anthropic" and out.get("strict") is False:
        del out["strict"]
    if api == "gemini":
        out = {re.sub("_([a-z])", lambda found: found[1].upper(), key): one for key, one in out.items()}
        out.get("systemInstruction", {}).pop("role", None)
        if str(out.get("thoughtSignature")).replace("/", "_") == "skip_thought_signature_validator":
            del out["thoughtSignature"]
    if api == "openai-responses":
        out.pop("store", None)
        if out.get("additionalProperties") is False:
            del out["additionalProperties"]
        if out.get("type") == "message":
            del out["type"]
    return out


ROWS = [
    pytest.param(ANTHROPIC, anthropic, Thinking("Hm.", SIGNATURE, wire="anthropic"), "", id="anthropic"),
    pytest.param(CHAT, chat, Thinking("Hm.", wire="openai-chat"), "", id="chat"),
    pytest.param(
        RESPONSES, responses, Thinking("Hm.", "rs_1", sealed=SIGNATURE, wire="openai-responses"), "", id="responses"
    ),
    pytest.param(GEMINI, gemini, Thinking("Hm.", SIGNATURE, wire="gemini"), "/v1beta", id="gemini"),
]


@pytest.mark.parametrize(("spoken", "theirs", "thought", "base"), ROWS)
async def test_the_library_sends_the_same_for_the_same_conversation(
    server: Server,
    asker: Asker,
    spoken: Spoken,
    theirs: Callable[[str], Awaitable[None]],
    thought: Thinking,
    base: str,
):
    async def play(exchange: Exchange) -> None:
        await exchange.stream(spoken.stream)

    server.play(play)
    await theirs(server.url)
    await asker.said(asker.model(spoken, url=f"{server.url}{base}"), conversation(thought))

    sent, ours = server.asked
    assert plain(ours.value, spoken.api) == plain(sent.value, spoken.api)
    assert ours.path == sent.path
    assert ours.headers["content-type"].partition(";")[0] == sent.headers["content-type"].partition(";")[0]
    assert ours.headers["accept-encoding"] == "identity"
    assert spoken.api in ON_PURPOSE
