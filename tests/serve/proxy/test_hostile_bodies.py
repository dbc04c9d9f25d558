"""Whatever a body has in whatever place: it is a request or an error of the client's, and never a bug."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.models.bodies import Encoder
from ferrule.models.catalog import about
from ferrule.models.hosts import find_host
from ferrule.models.http import HttpModel
from ferrule.serve.proxy.apis import APIS, ProxyError
from ferrule.serve.proxy.app import count_here, read_request, target_of
from ferrule.serve.proxy.body import conversation_key, find_left_out, fit_request, relay_body
from ferrule.serve.proxy.exchange import Request, ResponseTranslator
from ferrule.serve.proxy.records import Record
from ferrule.serve.proxy.upstreams import Breaker, HostLimits, Upstream
from ferrule.settings import Models, ProxySettings
from ferrule.wire import WireError

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
RICH: dict[str, tuple[str, dict[str, Any]]] = {
    "anthropic": (
        "/v1/messages",
        {
            "model": "m",
            "max_tokens": 100,
            "stream": True,
            "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Hi."}]},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
                        {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "a"}},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "t1",
                            "content": [
                                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
                            ],
                            "is_error": False,
                        }
                    ],
                },
            ],
            "tools": [{"name": "Read", "description": "Reads.", "input_schema": SCHEMA}],
            "tool_choice": {"type": "tool", "name": "Read"},
            "thinking": {"type": "enabled", "budget_tokens": 1024},
            "metadata": {"user_id": "u"},
            "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}},
        },
    ),
    "openai-chat": (
        "/v1/chat/completions",
        {
            "model": "m",
            "stream": True,
            "stream_options": {"include_usage": True},
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": [{"type": "text", "text": "Hi."}]},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {"id": "t1", "type": "function", "function": {"name": "Read", "arguments": '{"path": "a"}'}}
                    ],
                },
                {"role": "tool", "tool_call_id": "t1", "content": "text"},
            ],
            "tools": [{"type": "function", "function": {"name": "Read", "parameters": SCHEMA, "strict": True}}],
            "tool_choice": {"type": "function", "function": {"name": "Read"}},
            "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}},
            "max_completion_tokens": 5,
            "stop": ["x"],
        },
    ),
    "openai-responses": (
        "/v1/responses",
        {
            "model": "m",
            "stream": True,
            "instructions": "Be brief.",
            "input": [
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi."}]},
                {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "Hm."}]},
                {"type": "function_call", "call_id": "t1", "name": "Read", "arguments": '{"path": "a"}'},
                {"type": "function_call_output", "call_id": "t1", "output": "text"},
            ],
            "tools": [{"type": "function", "name": "Read", "parameters": SCHEMA}, {"type": "web_search"}],
            "tool_choice": "auto",
            "reasoning": {"effort": "low", "summary": "auto"},
            "text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}},
            "include": ["reasoning.encrypted_content"],
            "max_output_tokens": 5,
        },
    ),
    "gemini": (
        "/v1beta/models/m:streamGenerateContent",
        {
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
            "contents": [
                {"role": "user", "parts": [{"text": "Hi."}, {"inlineData": {"mimeType": "image/png", "data": PNG}}]},
                {"role": "model", "parts": [{"functionCall": {"name": "Read", "args": {"path": "a"}}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "Read", "response": {"output": "text"}}}]},
            ],
            "tools": [
                {"functionDeclarations": [{"name": "Read", "parametersJsonSchema": SCHEMA}]},
                {"googleSearch": {}},
            ],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["Read"]}},
            "generationConfig": {
                "maxOutputTokens": 5,
                "responseMimeType": "application/json",
                "thinkingConfig": {"thinkingBudget": 5},
            },
        },
    ),
}
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(
        [0, -1, 10**30, 1.5, "", "x", [], {}, [[]], [None], [{}], {"type": "x"}, {"type": None}, [5], {"a": {}}]
    ),
    st.sampled_from(
        ["text", "image", "tool_use", "function", "user", "assistant", "tool", "web_search", "auto", "data:"]
    ),
)


def _places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to everything in a value."""
    found = [at] if at else []
    if isinstance(value, dict):
        found += [way for key, member in value.items() for way in _places(member, (*at, key))]
    elif isinstance(value, list):
        found += [way for key, member in enumerate(value) for way in _places(member, (*at, key))]
    return found


def _put(body: dict[str, Any], way: tuple[Any, ...], value: Any) -> None:
    holder: Any = body
    for step in way[:-1]:
        holder = holder[step]
    holder[way[-1]] = value


HOSTS = {"anthropic": "anthropic", "openai-chat": "openai-chat", "openai-responses": "openai", "gemini": "gemini"}
KEYS = dict.fromkeys(("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"), "k" * 20)


def upstream(api: str) -> Upstream:
    """A host of an API, of which nothing is asked."""
    model = HttpModel(find_host(HOSTS[api], Models(), KEYS), "m", about("m", {}), Models())
    limits = HostLimits(api, ProxySettings(), float)
    return Upstream(model.name, model, limits, Breaker(ProxySettings(), float), has_bound=True)


UPSTREAMS = {api: upstream(api) for api in RICH}


def goes_through(request: Request) -> None:
    """Everything that is done with a request before it is sent, to every kind of host."""
    assert count_here(request.asked) > 0
    assert conversation_key(request.asked)
    for target, to in UPSTREAMS.items():
        http = to.http
        assert http is not None
        asked = fit_request(request.asked, request.api.name, http)
        names = find_left_out(request.body, request.asked, asked, request.api.name, http)
        assert all(name.isprintable() for name in names)
        passage = ResponseTranslator(request, asked, to, _record())
        if target == request.api.name:
            for stream in (True, False):
                assert isinstance(json.loads(relay_body(request.body, request.asked, to, stream=stream)), dict)
        try:
            body = Encoder(http.host, http.about).body(http._apply_settings(passage.asked))
        except WireError:
            continue  # told to the client as a wrong request
        assert isinstance(json.loads(body), dict)


def _record() -> Record:
    return Record(number=1, at=0.0, api="")


@pytest.mark.parametrize("api", RICH)
def test_a_rich_body_goes_through_as_it_is(api):
    path, body = RICH[api]

    goes_through(read_request(target_of("POST", path, {}), json.dumps(body).encode(), {}, is_list=False))


@settings(max_examples=150)
@given(data=st.data(), api=st.sampled_from(sorted(RICH)))
def test_a_body_with_anything_anywhere_is_a_request_or_an_error_of_the_clients(data, api):
    path, rich = RICH[api]
    body = copy.deepcopy(rich)
    for _ in range(data.draw(st.integers(1, 2))):
        way = data.draw(st.sampled_from(_places(body)))
        _put(body, way, copy.deepcopy(data.draw(JUNK)))

    found = _read(path, json.dumps(body).encode())
    if isinstance(found, Request):
        goes_through(found)
        return
    assert found.kind == "bad"
    assert found.message
    assert json.loads(APIS[api].error_body(found))


def _read(path: str, raw: bytes) -> Request | ProxyError:
    try:
        return read_request(target_of("POST", path, {}), raw, {}, is_list=False)
    except ProxyError as error:
        return error


@pytest.mark.parametrize(
    ("api", "name"),
    [("anthropic", "messages"), ("openai-chat", "messages"), ("openai-responses", "input"), ("gemini", "contents")],
)
def test_a_conversation_that_is_null_is_a_request_or_an_error_of_the_clients(api, name):
    path, rich = RICH[api]

    found = _read(path, json.dumps({**rich, name: None}).encode())

    if isinstance(found, Request):
        goes_through(found)
    else:
        assert found.kind == "bad"
