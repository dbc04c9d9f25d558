"""Requests on their way: those for the host's own API pass as they are, others lose what the host has no place for."""

import json
from typing import Any

import msgspec
import pytest

from ferrule.models.catalog import about
from ferrule.models.hosts import find_host
from ferrule.models.http import HttpModel
from ferrule.serve.proxy.body import find_left_out, fit_request
from ferrule.settings import ModelHost, Models
from ferrule.wire import anthropic, openai_chat
from tests.models.server import Exchange, Play, serving
from tests.models.spoken import ANTHROPIC, CHAT, GEMINI, RESPONSES, events
from tests.serve.proxy.proxied import PRICED, ROUTES, ask, hosts, proxied, talks

TOOL = {"name": "Read", "description": "Reads.", "input_schema": {"type": "object", "properties": {}}}
MARK = {"type": "ephemeral"}
OWN = {
    "anthropic": ("anthropic", "claude-opus-4-5", ANTHROPIC),
    "openai-chat": ("openai-chat", "gpt-5", CHAT),
    "openai-responses": ("openai", "gpt-5", RESPONSES),
    "gemini": ("gemini", "gemini-3-pro", GEMINI),
}


def own(url: str, api: str) -> Models:
    """The host whose own API this is."""
    return Models(hosts={OWN[api][0]: ModelHost(url=url, api=api, key_env="PROXY_TEST_KEY")}, known=PRICED)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROXY_TEST_KEY", "sk-the-real-key-of-the-user-0123456789")


def model(host: str, name: str) -> HttpModel:
    """A model of which nothing is asked."""
    keys = dict.fromkeys(("ANTHROPIC_API_KEY", "OPENAI_API_KEY"), "k" * 20)
    return HttpModel(find_host(host, Models(), keys), name, about(name, {}), Models())


def plays(data: bytes) -> Play:
    async def play(exchange: Exchange) -> None:
        await exchange.stream(data)

    return play


async def relay(api: str, body: dict[str, Any], play: Play, *, stream: bool = True) -> tuple[Any, Any]:
    """What a request for the host's own API is there, and what comes back."""
    host, model, _ = OWN[api]
    async with serving() as server:
        server.play(play)
        async with proxied(own(server.url, api), models={"*": f"{host}:{model}"}, retries=0) as proxy:
            response = await proxy.send(
                api, body if api == "gemini" else {**body, "model": model}, model=model, stream=stream
            )
        return (server.asked[0] if server.asked else None), response


@pytest.mark.parametrize("api", OWN)
async def test_an_answer_in_the_hosts_own_api_is_passed_on_as_it_is(api):
    spoken = OWN[api][2]
    body = {**ask(api, "Hello.", stream=True), "stream_options": {"include_usage": True}}

    _, response = await relay(api, body, plays(spoken.stream))

    assert response.status_code == 200
    expected = spoken.stream.replace(b": keep\n\n", b"")
    assert [line for line in response.content.split(b"\n") if line.startswith(b"data")] == [
        line for line in expected.split(b"\n") if line.startswith(b"data")
    ]


@pytest.mark.parametrize("api", OWN)
async def test_fields_that_nobody_here_knows_reach_the_host(api):
    asked, _ = await relay(api, {**ask(api, "Hello.", stream=True), "brand_new": {"a": [1]}}, plays(OWN[api][2].stream))

    assert asked.value["brand_new"] == {"a": [1]}


async def test_the_key_of_the_user_goes_to_the_host_and_the_token_of_the_proxy_does_not():
    asked, response = await relay("anthropic", ask("anthropic", "Hello.", stream=True), plays(ANTHROPIC.stream))

    assert asked.headers["x-api-key"] == "sk-the-real-key-of-the-user-0123456789"
    assert "authorization" not in asked.headers
    assert ROUTES["anthropic"].headers["x-api-key"] not in str(asked.headers)
    assert "sk-the-real" not in response.text + str(response.headers)


def marked(value: Any) -> int:
    return json.dumps(value).count('"cache_control"')


@pytest.mark.parametrize(
    ("more", "count"),
    [
        pytest.param({}, 0, id="no-tools"),
        pytest.param({"tools": [TOOL]}, 2, id="none-of-the-clients"),
        pytest.param({"tools": [TOOL], "system": "Be brief."}, 3, id="with-a-system-prompt"),
        pytest.param({"tools": [{**TOOL, "cache_control": MARK}], "system": "Be brief."}, 1, id="on-a-tool"),
        pytest.param(
            {"tools": [TOOL], "system": [{"type": "text", "text": "x", "cache_control": MARK}]}, 1, id="system"
        ),
        pytest.param({"tools": [TOOL], "cache_control": MARK}, 1, id="on-the-body"),
        pytest.param(
            {
                "tools": [TOOL],
                "messages": [
                    {"role": "user", "content": "Hello."},
                    {
                        "role": "assistant",
                        "content": [
                            {"type": "server_tool_use", "id": "s", "name": "x", "input": {}, "cache_control": MARK}
                        ],
                    },
                    {"role": "user", "content": "Go on."},
                ],
            },
            1,
            id="on-a-block-of-its-own",
        ),
        pytest.param({"tools": [TOOL], "messages": []}, 1, id="nothing-said"),
        pytest.param({"tools": [TOOL], "messages": [{"role": "user", "content": []}]}, 1, id="nothing-in-it"),
        pytest.param({"tools": [TOOL], "messages": [{"role": "user", "content": ""}]}, 1, id="empty-words"),
    ],
)
async def test_marks_for_the_cache_are_the_clients_or_set_where_it_sets_none(more, count):
    asked, _ = await relay("anthropic", {**ask("anthropic", "Hello.", stream=True), **more}, plays(ANTHROPIC.stream))

    assert marked(asked.value) == count


@pytest.mark.parametrize(
    ("api", "field", "given", "sent"),
    [
        ("anthropic", "max_tokens", 10**9, 64_000),
        ("anthropic", "max_tokens", 50, 50),
        ("openai-chat", "max_completion_tokens", 10**9, 128_000),
        ("openai-responses", "max_output_tokens", 10**9, 128_000),
    ],
)
async def test_the_length_of_the_answer_is_held_to_what_the_model_gives(api, field, given, sent):
    asked, _ = await relay(api, {**ask(api, "Hello.", stream=True), field: given}, plays(OWN[api][2].stream))

    assert asked.value[field] == sent


async def test_an_event_in_several_lines_is_one_event_for_the_client():
    pretty = b"".join(
        b"data: " + json.dumps(json.loads(line[6:]), indent=1).encode().replace(b"\n", b"\ndata: ") + b"\n\n"
        for line in GEMINI.stream.split(b"\n")
        if line.startswith(b"data: ")
    )
    _, response = await relay("gemini", ask("gemini", "Hello.", stream=True), plays(pretty))

    lines = [line for line in response.content.split(b"\n") if line]
    assert all(line.startswith(b"data: ") for line in lines)
    assert [json.loads(line[6:]) for line in lines] == [
        json.loads(line[6:]) for line in GEMINI.stream.split(b"\n") if line.startswith(b"data: ")
    ]


@pytest.mark.parametrize(("api", "last"), [("anthropic", b"message_stop"), ("openai-chat", b"[DONE]")])
async def test_an_end_that_the_host_forgets_is_written_for_it(api, last):
    *blocks, _ = OWN[api][2].stream.strip().split(b"\n\n")
    cut = b"\n\n".join(blocks) + b"\n\n"
    assert last not in cut

    _, response = await relay(api, ask(api, "Hello.", stream=True), plays(cut))

    assert response.content.count(last) == OWN[api][2].stream.count(last)
    assert response.content.rstrip().split(b"\n\n")[-1] == OWN[api][2].stream.rstrip().split(b"\n\n")[-1]


@pytest.mark.parametrize("api", ["anthropic", "openai-chat", "gemini"])
async def test_an_event_that_is_no_json_is_no_hole_in_the_answer(api):
    first, *rest = OWN[api][2].stream.strip().split(b"\n\n")
    broken = b"\n\n".join([first, b'data: {"type":"content_block_delta","ind', *rest]) + b"\n\n"

    _, response = await relay(api, ask(api, "Hello.", stream=True), plays(broken))

    is_error = response.status_code == 502 or b"error" in response.content
    assert is_error
    assert b"message_stop" not in response.content


async def test_an_answer_in_one_piece_is_asked_for_again_and_the_next_model_takes_over():
    whole = {"id": "c", "object": "chat.completion", "model": "gpt-5", "choices": []}

    async def good(exchange: Exchange) -> None:
        choice = {"index": 0, "message": {"role": "assistant", "content": "Hi."}, "finish_reason": "stop"}
        await exchange.whole(200, {**whole, "choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": 1}})

    async def busy(exchange: Exchange) -> None:
        await exchange.whole(503, {"error": {"message": "No."}}, retry_after_ms="1")

    async def later(exchange: Exchange) -> None:
        await exchange.whole(429, {"error": {"message": "No."}}, retry_after="40")

    async with serving() as first, serving() as second:
        models = msgspec.structs.replace(
            own(first.url, "openai-chat"),
            hosts={**own(first.url, "openai-chat").hosts, "up1": ModelHost(url=second.url)},
        )
        rules = {"gpt-5": ("openai-chat:gpt-5", "up1:m")}
        async with proxied(models, models=rules) as proxy:
            first.play(busy, good)
            again = await proxy.ask("openai-chat", model="gpt-5")
            first.asked.clear()
            first.play(later)
            second.play(talks("from the second"))
            other = await proxy.ask("openai-chat", model="gpt-5")
            await proxy.until(lambda: len(proxy.ended) == 2)

    assert again.json()["choices"][0]["message"]["content"] == "Hi."
    assert "from the second" in other.text
    assert [(one.retries, one.tried) for one in proxy.ended] == [(1, ()), (0, ("openai-chat:gpt-5",))]


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"5",
        b'{"error": {"message": "No."}}',
        b'{"choices": 5}',
        b'{"choices": [5]}',
        b"<html>",
        b"\xff",
        b"",
    ],
)
async def test_an_answer_in_one_piece_that_is_none_is_the_hosts_failure(body):
    async def play(exchange: Exchange) -> None:
        await exchange.whole(200, body)

    _, response = await relay("openai-chat", ask("openai-chat", "Hello.", stream=False), play, stream=False)

    assert response.status_code == 502
    assert "openai-chat:gpt-5" in response.json()["error"]["message"]


async def test_the_model_of_a_request_is_no_way_to_other_addresses_of_a_host():
    async with serving() as server:
        server.play(plays(GEMINI.stream))
        async with proxied(own(server.url + "/v1beta", "gemini"), models={"kept": "gemini:kept"}) as proxy:
            for name in ("gemini:..%2f..%2fsecret", "gemini:m%3Fkey=x%23", "gemini:a%0d%0ax: y", "gemini:m"):
                path = f"/v1beta/models/{name}:generateContent"
                await proxy.post(path, ask("gemini", "Hello.", stream=False), ROUTES["gemini"].headers)

    default = "/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse"
    assert [one.path for one in server.asked] == [default, default, default, "/v1beta/models/m:generateContent"]


DROPPED = [
    pytest.param("anthropic", {"top_k": 5, "metadata": {"user_id": "u"}}, "openai-chat", ("top_k",), id="a-field"),
    pytest.param(
        "anthropic",
        {"container": None, "context_management": {"edits": []}},
        "gemini",
        ("context_management",),
        id="of-one-api",
    ),
    pytest.param("openai-chat", {"logit_bias": {"5": 1}}, "anthropic", ("logit_bias",), id="chat"),
    pytest.param("anthropic", {}, "openai-chat", (), id="nothing"),
]


@pytest.mark.parametrize(("api", "more", "target", "names"), DROPPED)
async def test_what_the_host_has_no_place_for_is_named_in_a_header_and_kept_in_the_record(api, more, target, names):
    async with serving() as server:
        server.play(talks("Hi."))
        if target != "openai-chat":
            spoken = OWN[target][2]
            server.play(plays(spoken.stream))
        async with proxied(hosts(server, api=target)) as proxy:
            response = await proxy.ask(api, stream=True, **more)
            await proxy.until(lambda: proxy.ended)

    assert response.status_code == 200
    assert response.headers.get("x-ferrule-dropped") == (", ".join(names) or None)
    assert proxy.ended[0].dropped == names


WEB = {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}


def test_tools_that_run_in_the_clients_api_are_left_out_and_named():
    choice = {"type": "tool", "name": "web_search"}
    body = {**ask("anthropic", "Hello.", stream=True), "tools": [TOOL, WEB], "tool_choice": choice}
    asked = anthropic.asked_in(body)

    for http in (model("openai", "gpt-5"), None):
        sent = fit_request(asked, "anthropic", http)
        assert [one.name for one in sent.definitions] == ["Read"]
        assert sent.choice is None or sent.choice.kind == "auto"
        assert find_left_out(body, asked, sent, "anthropic", http) == ("web_search_20250305",)
    own = model("anthropic", "claude-opus-4-5")
    assert fit_request(asked, "anthropic", own) is asked
    assert find_left_out(body, asked, asked, "anthropic", own) == ()


async def test_a_client_whose_tools_run_elsewhere_is_answered_without_them():
    async with serving() as server:
        server.play(talks("Hi."))
        async with proxied(hosts(server)) as proxy:
            response = await proxy.ask("anthropic", stream=True, tools=[WEB], tool_choice={"type": "any"})

    assert response.status_code == 200
    assert response.headers["x-ferrule-dropped"] == "web_search_20250305"
    assert "tools" not in server.asked[0].value


def test_names_that_a_client_made_up_steer_nothing():
    body = {**ask("openai-chat", "Hello.", stream=True), "x\r\nset-cookie: a": 1, "y" * 500: 1}
    asked, http = openai_chat.asked_in(body), model("anthropic", "claude-opus-4-5")
    names = find_left_out(body, asked, fit_request(asked, "openai-chat", http), "openai-chat", http)

    assert len(names) == 2
    assert all(name.isprintable() and len(name) <= 200 for name in names)


async def test_a_request_that_depends_on_its_own_api_is_refused_and_not_answered_otherwise():
    async with serving() as server:
        server.play(plays(ANTHROPIC.stream))
        async with proxied(hosts(server, api="anthropic")) as proxy:
            response = await proxy.ask("openai-responses", stream=True, previous_response_id="resp_1")

    assert response.status_code == 400
    assert "previous_response_id" in response.json()["error"]["message"]
    assert server.asked == []


async def test_a_stream_of_chat_tells_its_tokens_only_who_asks_for_them():
    usage = events({"id": "c", "object": "chat.completion.chunk", "choices": [], "usage": {"prompt_tokens": 3}})
    head, done = CHAT.stream.rsplit(b"data: [DONE]", 1)
    stream = head + usage + b"data: [DONE]" + done

    asked, without = await relay("openai-chat", ask("openai-chat", "Hello.", stream=True), plays(stream))
    body = {**ask("openai-chat", "Hello.", stream=True), "stream_options": {"include_usage": True}}
    _, with_them = await relay("openai-chat", body, plays(stream))

    assert asked.value["stream_options"] == {"include_usage": True}
    assert b'"choices":[]' not in without.content
    assert b'"choices":[]' in with_them.content


@pytest.mark.parametrize("client", ["anthropic", "openai-chat", "openai-responses", "gemini"])
@pytest.mark.parametrize("host", ["openai-chat", "openai-responses", "gemini"])
async def test_a_conversation_that_goes_on_is_the_same_up_to_what_is_new(client, host):
    turns: list[tuple[str, str]] = [("user", "First question."), ("assistant", "An answer."), ("user", "And now?")]
    bodies = {
        "anthropic": lambda said: {"messages": [{"role": role, "content": text} for role, text in said]},
        "openai-chat": lambda said: {"messages": [{"role": role, "content": text} for role, text in said]},
        "openai-responses": lambda said: {
            "input": [{"type": "message", "role": role, "content": text} for role, text in said]
        },
        "gemini": lambda said: {
            "contents": [
                {"role": {"assistant": "model"}.get(role, role), "parts": [{"text": text}]} for role, text in said
            ]
        },
    }
    async with serving() as server:
        server.play(plays(OWN[host][2].stream))
        async with proxied(hosts(server, api=host)) as proxy:
            for count in (1, 3):
                await proxy.send(client, {**ask(client, "", stream=True), **bodies[client](turns[:count])}, stream=True)

    first, second = (one.body for one in server.asked)
    same = next(at for at, (one, other) in enumerate(zip(first, second, strict=False)) if one != other)
    assert b"First question." in first[:same]
    assert b"An answer." not in first[:same]
