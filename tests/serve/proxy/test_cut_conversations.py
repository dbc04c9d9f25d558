"""A conversation through the proxy never gets stuck: wherever an answer is cut, every API takes the next request."""

import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from bench.proxy import speak
from bench.proxy.rules import events as told
from bench.proxy.talk import Answer, Call, Think, Words

from ferrule.settings import ModelHost, Models
from tests.models.server import Exchange, Play, Server, serving
from tests.serve.proxy.proxied import APIS, PRICED, ROUTES, Proxied, proxied
from tests.wire.strict import RefusedError, check_anthropic, check_chat, check_gemini, check_responses

pytestmark = pytest.mark.asyncio(loop_scope="module")
STRICT = {
    "anthropic": check_anthropic,
    "openai-chat": check_chat,
    "openai-responses": check_responses,
    "gemini": check_gemini,
}
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOLS: dict[str, dict[str, Any]] = {
    "anthropic": {"tools": [{"name": "Read", "description": "Reads.", "input_schema": SCHEMA}]},
    "openai-chat": {"tools": [{"type": "function", "function": {"name": "Read", "parameters": SCHEMA}}]},
    "openai-responses": {
        "tools": [{"type": "function", "name": "Read", "parameters": SCHEMA, "strict": False}],
        "store": False,
    },
    "gemini": {"tools": [{"functionDeclarations": [{"name": "Read", "parametersJsonSchema": SCHEMA}]}]},
}
SIGNS = {"anthropic": "zq-anthropic", "openai-chat": "", "openai-responses": "zq-responses", "gemini": "zq-gemini"}
NEXT = "Go on."
Item = dict[str, Any]


def answer(wire: str) -> Answer:
    """All that an answer may hold, with thinking as its API signs it."""
    thought = Think(("I ", "think."), SIGNS[wire])
    calls = Call("call_a", "Read", ('{"pa', 'th":"a"}')), Call("call_b", "Read", ("{}",))
    return Answer((thought, Words(("I ", "look.")), *calls))


def breaks(begun: bytes) -> Play:
    """A host that says this much, and then the connection breaks."""

    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.chunk(begun)
        exchange.cut()

    return play


async def goes_on(exchange: Exchange) -> None:
    await exchange.whole(400, {"error": {"message": "what was asked is all that counts here", "type": "x"}})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place() -> AsyncIterator[tuple[Server, Proxied]]:
    """A proxy with a host behind each API, all of them one server."""
    async with contextlib.AsyncExitStack() as stack:
        server = await stack.enter_async_context(serving())
        known = Models(hosts={f"up-{api}": ModelHost(url=server.url, api=api) for api in APIS}, known=PRICED)  # type: ignore[arg-type]
        rules = {f"to-{api}": f"up-{api}:m" for api in APIS}
        yield server, await stack.enter_async_context(proxied(known, models=rules, retries=0, failures=10_000))


# What a client keeps of the events that it has seen: all of it as it came, finished or not.


def kept_messages(values: list[Item]) -> list[Item]:
    blocks: dict[int, Item] = {}
    inputs: dict[int, str] = {}
    for value in values:
        if value["type"] == "content_block_start":
            blocks[value["index"]] = dict(value["content_block"])
        elif value["type"] == "content_block_delta":
            at, delta = value["index"], value["delta"]
            for name in ("text", "thinking", "signature"):
                if name in delta:
                    blocks[at][name] = blocks[at].get(name, "") + delta[name]
            inputs[at] = inputs.get(at, "") + delta.get("partial_json", "")
    for at, block in blocks.items():
        if block["type"] == "tool_use":
            block["input"] = parsed(inputs.get(at, ""))
    return [{"role": "assistant", "content": [*blocks.values()]}] if blocks else []


def kept_chat(values: list[Item]) -> list[Item]:
    message: Item = {"role": "assistant", "content": None}
    calls: dict[int, Item] = {}
    for value in values:
        for delta in (choice["delta"] for choice in value.get("choices", ())):
            for name in ("content", "reasoning_content"):
                if delta.get(name) is not None:
                    message[name] = (message.get(name) or "") + delta[name]
            for piece in delta.get("tool_calls") or ():
                call = calls.setdefault(piece["index"], {"type": "function", "function": {"name": "", "arguments": ""}})
                call["id"] = piece.get("id") or call["id"]
                for name, text in piece["function"].items():
                    call["function"][name] += text or ""
    return [message | ({"tool_calls": [*calls.values()]} if calls else {})] if values else []


def kept_responses(values: list[Item]) -> list[Item]:
    items: dict[int, Item] = {}
    for value in values:
        if value["type"] in {"response.output_item.added", "response.output_item.done"}:
            items[value["output_index"]] = dict(value["item"])
        elif value["type"] == "response.function_call_arguments.delta":
            items[value["output_index"]]["arguments"] += value["delta"]
        elif value["type"] == "response.output_text.delta":
            item = items[value["output_index"]]
            said = item["content"][0]["text"] if item["content"] else ""
            item["content"] = [{"type": "output_text", "text": said + value["delta"], "annotations": []}]
    return [*items.values()]


def kept_gemini(values: list[Item]) -> list[Item]:
    parts = [
        part for value in values for one in value.get("candidates", ()) for part in one["content"].get("parts", ())
    ]
    return [{"role": "model", "parts": parts}] if parts else []


def parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return {}


KEPT: dict[str, Callable[[list[Item]], list[Item]]] = {
    "anthropic": kept_messages,
    "openai-chat": kept_chat,
    "openai-responses": kept_responses,
    "gemini": kept_gemini,
}


def seen(stream: bytes) -> list[Item]:
    values = (json.loads(one.data) for one in told(stream) if one.data != "[DONE]")
    return [value for value in values if isinstance(value, dict) and not value.get("error")]


def results(api: str, turns: list[Item]) -> list[Item]:
    """A result for each call, as a client gives it for what it did not run."""
    if api == "anthropic":
        ids = [block["id"] for turn in turns for block in turn["content"] if block["type"] == "tool_use"]
        blocks = [{"type": "tool_result", "tool_use_id": one, "content": "Cancelled.", "is_error": True} for one in ids]
        return [{"role": "user", "content": blocks}] if blocks else []
    if api == "openai-chat":
        ids = [call["id"] for turn in turns for call in turn.get("tool_calls", ())]
        return [{"role": "tool", "tool_call_id": one, "content": "Cancelled."} for one in ids]
    if api == "openai-responses":
        ids = [item["call_id"] for item in turns if item["type"] == "function_call"]
        return [{"type": "function_call_output", "call_id": one, "output": "Cancelled."} for one in ids]
    calls = [part["functionCall"] for turn in turns for part in turn["parts"] if "functionCall" in part]
    answers = [{"functionResponse": {**call, "response": {"error": "Cancelled."}}} for call in calls]
    for one in answers:
        one["functionResponse"].pop("args", None)
    return [{"role": "user", "parts": answers}] if answers else []


def asks(api: str, words: str) -> Item:
    if api == "gemini":
        return {"role": "user", "parts": [{"text": words}]}
    block = [{"type": "input_text" if api == "openai-responses" else "text", "text": words}]
    return {"role": "user", "content": block, **({"type": "message"} if api == "openai-responses" else {})}


def body(api: str, turns: list[Item]) -> Item:
    name = {"gemini": "contents", "openai-responses": "input"}.get(api, "messages")
    return {**ROUTES[api].body("", True), **TOOLS[api], name: turns}


async def send(proxy: Proxied, api: str, asked: Item, model: str) -> bytes:
    given = asked if api == "gemini" else {**asked, "model": model}
    response = await proxy.send(api, given, stream=True, model=model)
    return response.content if response.status_code == 200 else b""  # an error alone, before the first word


def is_valid(api: str, asked: Item) -> bool:
    try:
        STRICT[api](asked)
    except (RefusedError, KeyError):
        return False
    return True


@pytest.mark.parametrize("first", APIS)
@pytest.mark.parametrize("client", APIS)
async def test_wherever_an_answer_is_cut_every_api_takes_the_next_request(place, client, first):
    server, proxy = place
    pieces = speak.stream(answer(first), first)
    begin = [asks(client, "Look at a.")]
    cut: dict[str, list[Item]] = {}
    for count in range(len(pieces) + 1):
        server.asked.clear()
        server.play(breaks(b"".join(pieces[:count])))
        values = seen(await send(proxy, client, body(client, begin), f"to-{first}"))
        # The host may break off, and so may the client: what it had seen until then is all that it has.
        for end in range(len(values) + 1) if count == len(pieces) else (len(values),):
            kept = KEPT[client](values[:end])
            for turns in (kept, [*kept, *results(client, kept)]):
                cut.setdefault(json.dumps(turns), turns)

    wrong, asked = [], 0
    for turns in cut.values():
        given = body(client, [*begin, *turns, asks(client, NEXT)])
        # A request for the host's own API passes as it is: what is wrong with it is the client's own.
        for host in (one for one in APIS if one != client or is_valid(client, given)):
            server.asked.clear()
            server.play(goes_on)
            said = await send(proxy, client, given, f"to-{host}")
            asked += 1
            try:
                assert len(server.asked) == 1, said
                STRICT[host](server.asked[0].value)
            except (AssertionError, KeyError) as error:
                wrong.append((host, repr(error)[:300], turns))

    assert wrong == []
    assert asked >= 3 * len(cut) >= 15
