"""Who may ask the proxy, at which paths, with what bodies; and how it refuses: in the form of the client's own API."""

import asyncio
import gzip
import json
import zlib

import pytest
import pytest_asyncio

from tests.models.server import Server, serving
from tests.rows import each_row
from tests.serve.proxy.proxied import APIS, LIMIT_SECONDS, ROUTES, TOKEN, Proxied, ask, hosts, proxied, talks

BEARER = ("authorization", f"Bearer {TOKEN}")


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def host():
    async with serving() as made:
        made.play(talks("Hi."))
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def proxy(host: Server):
    rules = {"alias": "up0:m", "claude-*": "up0:n", "asked": "up0:m", "m": "up0:m"}
    async with proxied(hosts(host), body_mb=1, models=rules, names=("extra.example",)) as made:
        yield made


@pytest.fixture
def server(host: Server):
    """The host behind the proxy, which has not been asked yet."""
    host.asked.clear()
    return host


def said(api: str, response) -> tuple[str, str]:
    """The kind and the message of an error in the form of an API."""
    value = response.json()
    if api == "anthropic":
        assert value.keys() == {"type", "error"}
        assert value["type"] == "error"
        assert value["error"].keys() == {"type", "message"}
        return value["error"]["type"], value["error"]["message"]
    assert value.keys() == {"error"}
    error = value["error"]
    if api == "gemini":
        assert error.keys() == {"code", "message", "status"}
        assert error["code"] == response.status_code
        return error["status"], error["message"]
    assert error.keys() == {"message", "type", "param", "code"}
    return error["code"] or error["type"], error["message"]


async def post(proxy: Proxied, *headers: tuple[str, str], path: str = "/v1/messages", query: str = ""):
    """A whole request, in which every header is the test's."""
    body = json.dumps(ask("anthropic", "Hello.", stream=False)).encode()
    lines = [f"{name}: {value}" for name, value in headers]
    head = "\r\n".join([f"POST {path}{query} HTTP/1.1", *lines, f"content-length: {len(body)}", "connection: close"])
    answer = await proxy.raw(head.encode("latin-1") + b"\r\n\r\n" + body)
    return int(answer.split(b" ", 2)[1])


@each_row(
    ("headers", "query", "status"),
    [
        pytest.param([BEARER], "", 200, id="bearer"),
        pytest.param([("authorization", f"bearer {TOKEN}")], "", 200, id="scheme-in-small-letters"),
        pytest.param([("x-api-key", TOKEN)], "", 200, id="anthropic"),
        pytest.param([("x-goog-api-key", TOKEN)], "", 200, id="gemini"),
        pytest.param([], f"?key={TOKEN}", 200, id="query"),
        pytest.param([], f"?alt=sse&key={TOKEN}", 200, id="query-behind-another"),
        pytest.param([("x-api-key", "sk-ant-of-the-user"), BEARER], "", 200, id="a-key-of-the-user-beside-it"),
        pytest.param([("authorization", "Bearer sk-user"), ("x-api-key", TOKEN)], "", 200, id="the-other-way-round"),
        pytest.param([("x-goog-api-key", "AIza-user")], f"?key={TOKEN}", 200, id="a-key-of-the-user-and-the-query"),
        pytest.param([], "", 401, id="none"),
        pytest.param([("x-api-key", "")], "", 401, id="empty"),
        pytest.param([("x-api-key", TOKEN + "x")], "", 401, id="longer"),
        pytest.param([("x-api-key", TOKEN[:-1])], "", 401, id="shorter"),
        pytest.param([("x-api-key", TOKEN), ("x-api-key", TOKEN)], "", 401, id="twice"),
        pytest.param([("authorization", TOKEN)], "", 401, id="no-scheme"),
        pytest.param([("authorization", f"Basic {TOKEN}")], "", 401, id="another-scheme"),
        pytest.param([], "?key=wrong", 401, id="wrong-in-the-query"),
        pytest.param([], f"?key=wrong&key={TOKEN}", 401, id="second-in-the-query"),
        pytest.param([("cookie", f"key={TOKEN}")], "", 401, id="a-cookie"),
        pytest.param([("x-api-key", "ü" * 20)], "", 401, id="not-ascii"),
    ],
)
async def test_the_token_is_taken_wherever_a_client_puts_it(proxy, headers, query, status):
    here = ("host", f"127.0.0.1:{proxy.port}")

    assert await post(proxy, here, *headers, query=query) == status


@each_row(
    ("headers", "status"),
    [
        pytest.param([("host", "localhost:1")], 200, id="localhost"),
        pytest.param([("host", "[::1]")], 200, id="version-six"),
        pytest.param([("host", "extra.example:99")], 200, id="a-name-that-was-given"),
        pytest.param([("host", "evil.example")], 403, id="another-name"),
        pytest.param([("host", "192.168.0.7")], 403, id="an-address"),
        pytest.param([("host", "127.0.0.1"), ("origin", "http://localhost:3000")], 200, id="a-page-here"),
        pytest.param([("host", "127.0.0.1"), ("origin", "https://evil.example")], 403, id="a-page-elsewhere"),
        pytest.param([("host", "127.0.0.1"), ("origin", "null")], 403, id="a-page-of-nowhere"),
    ],
)
async def test_only_names_of_this_machine_and_its_own_pages_are_served(proxy, headers, status):
    assert await post(proxy, *headers, BEARER) == status


@pytest.mark.parametrize("path", ["/health", "/", "/api/hello"])
async def test_whether_the_proxy_is_there_is_told_without_a_token_but_to_no_other_page(proxy, path):
    open_ = await proxy.get(path, {})
    foreign = await proxy.get(path, {"origin": "http://evil.example"})

    assert (open_.status_code, open_.json()["status"]) == (200, "ok")
    assert foreign.status_code == 403


@pytest.mark.parametrize("path", ["/metrics", "/costs", "/requests", "/hosts", "/v1/models", "/health/x", "/health/"])
async def test_everything_else_needs_the_token(proxy, path):
    assert (await proxy.get(path, {})).status_code == 401


@pytest.mark.parametrize("api", APIS)
async def test_a_wrong_token_is_told_in_the_clients_form_and_asks_no_host(proxy, server, api):
    body = ask(api, "Hello.", stream=True)
    headers = {name: value.replace(TOKEN, "wrong") for name, value in ROUTES[api].headers.items()}

    response = await proxy.post(ROUTES[api].path(True), body, headers)

    kind, message = said(api, response)
    assert response.status_code == 401
    assert kind == {"anthropic": "authentication_error", "gemini": "UNAUTHENTICATED"}.get(api, "invalid_api_key")
    assert "ferrule proxy" in message
    assert server.asked == []


@each_row(
    ("method", "path", "api", "kind", "names"),
    [
        ("GET", "/v1/messages", "anthropic", "not_found_error", "POST"),
        ("DELETE", "/v1/responses", "openai-responses", "not_found", "POST"),
        ("POST", "/v1/complete", "openai-chat", "not_found", "/v1/messages"),
        ("POST", "/v1/embeddings", "openai-chat", "not_found", "/v1/chat/completions"),
        ("POST", "/v1beta/models/m:embedContent", "gemini", "NOT_FOUND", ":generateContent"),
        ("POST", "/v1beta/models/:generateContent", "gemini", "NOT_FOUND", "MODEL"),
        ("POST", "/v1beta/models", "gemini", "NOT_FOUND", ":countTokens"),
        ("PUT", "/v1/models/x", "openai-chat", "not_found", "/v1/models"),
        ("POST", "/metrics", "openai-chat", "not_found", "/metrics"),
        ("GET", "/v1/../etc/passwd", "openai-chat", "not_found", "no GET"),
        ("GET", "/v1/modelsx", "openai-chat", "not_found", "/v1/models"),
        ("OPTIONS", "/v1/messages", "anthropic", "not_found_error", "POST"),
    ],
)
async def test_a_path_that_is_not_there_says_which_ones_are(proxy, method, path, api, kind, names):
    response = await proxy.client.request(method, path, headers=dict([BEARER]))

    assert response.status_code == 404
    found, message = said(api, response)
    assert found == kind
    assert names in message


async def test_another_apis_headers_decide_the_form_where_the_path_does_not(proxy):
    response = await proxy.get("/v1/nothing", {**dict([BEARER]), "anthropic-version": "2023-06-01"})

    assert said("anthropic", response)[0] == "not_found_error"


async def test_an_offer_of_websockets_is_refused_with_the_status_that_clients_go_on_from(proxy):
    headers = {**dict([BEARER]), "upgrade": "websocket", "connection": "Upgrade", "sec-websocket-key": "x"}
    response = await proxy.client.get("/v1/responses", headers=headers)

    assert response.status_code == 426
    assert "POST" in said("openai-responses", response)[1]


WRONG = [
    pytest.param(b"", "no JSON", id="nothing"),
    pytest.param(b"{", "no JSON", id="half"),
    pytest.param(b'{"model": "\xff"}', "no JSON", id="not-utf8"),
    pytest.param(b"[]", "must be a JSON object", id="a-list"),
    pytest.param(b'"x"', "must be a JSON object", id="a-text"),
    pytest.param(b"[" * 100_000, "no JSON", id="deep"),
    pytest.param(b'{"model":"m","messages":' + b"[" * 5_000 + b"]" * 5_000 + b"}", "", id="deep-inside"),
]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(("body", "words"), WRONG)
async def test_a_body_that_is_none_is_refused_in_the_clients_form(proxy, server, api, body, words):
    if api == "gemini":
        body = body.replace(b"messages", b"contents")

    response = await proxy.send(api, body)

    assert response.status_code == 400
    assert words in said(api, response)[1]
    assert server.asked == []


@pytest.mark.parametrize(
    ("api", "body", "words"),
    [
        ("anthropic", {"messages": []}, "model"),
        ("anthropic", {"model": "m", "max_tokens": "many", "messages": []}, "max_tokens"),
        ("anthropic", {"model": "m", "messages": "Hello"}, "messages must be an array"),
        ("anthropic", {"model": "m", "messages": [{"role": "user", "content": 5}]}, "content"),
        ("openai-chat", {"model": 5, "messages": []}, "model must be a string"),
        ("openai-chat", {"model": "m", "messages": [5]}, "messages[0]"),
        ("openai-chat", {"model": "m", "messages": [], "tools": {}}, "tools must be an array"),
        ("openai-responses", {"model": "m", "input": 5}, "input"),
        ("openai-responses", {"model": "m", "input": [{"type": "message", "role": "user", "content": 5}]}, "content"),
        ("gemini", {"contents": 5}, "contents"),
        ("gemini", {"contents": [{"parts": "x"}]}, "parts"),
    ],
)
async def test_a_wrong_field_is_named(proxy, server, api, body, words):
    response = await proxy.send(api, body)

    assert response.status_code == 400
    assert words in said(api, response)[1]
    assert response.headers["x-should-retry"] == "false"
    assert server.asked == []


@each_row("odd", ["usage please", ["include_usage"], 5, {"include_usage": "yes"}])
@each_row("stream", [False, True])
async def test_odd_options_of_a_stream_are_no_bug(proxy, odd, stream):
    response = await proxy.ask("openai-chat", stream=stream, stream_options=odd)

    assert response.status_code in {200, 400}
    assert "proxy failed" not in response.text


@pytest.mark.parametrize("number", [10**30, -(10**30), 1e300])
async def test_numbers_that_no_machine_has_are_no_bug(proxy, number):
    response = await proxy.ask("anthropic", metadata={"n": number}, max_tokens=5)

    assert response.status_code in {200, 400}
    assert "proxy failed" not in response.text


LONG = json.dumps(ask("anthropic", "x" * (1 << 20), stream=False)).encode()
FITS = json.dumps(ask("anthropic", "x" * 1000, stream=False)).encode()
PACKED = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "GZIP": gzip.compress,
    "identity": lambda data: data,
    "": lambda data: data,
}


@pytest.mark.parametrize("packing", PACKED)
async def test_packed_bodies_are_unpacked(proxy, server, packing):
    response = await proxy.post(
        "/v1/messages", PACKED[packing](FITS), {**ROUTES["anthropic"].headers, "content-encoding": packing}
    )

    assert response.status_code == 200
    assert "x" * 1000 in json.dumps(server.asked[0].value)


@pytest.mark.parametrize(
    ("body", "packing", "status", "words"),
    [
        pytest.param(LONG, "", 413, "longer than 1 MB; proxy.body_mb allows more", id="long"),
        pytest.param(gzip.compress(LONG), "gzip", 413, "unpacks to more than 1 MB", id="long-when-unpacked"),
        pytest.param(gzip.compress(b" " * (64 << 20)), "gzip", 413, "unpacks to more", id="a-bomb"),
        pytest.param(gzip.compress(FITS)[:-9], "gzip", 400, "breaks off", id="half-a-package"),
        pytest.param(FITS, "gzip", 400, "cannot be unpacked", id="not-packed"),
        pytest.param(FITS, "br", 400, "'br'", id="unknown"),
        pytest.param(FITS, "gzip, gzip", 400, "send it plain", id="twice"),
    ],
)
async def test_bodies_that_are_too_long_or_oddly_packed_are_refused(proxy, server, body, packing, status, words):
    response = await proxy.post("/v1/messages", body, {**ROUTES["anthropic"].headers, "content-encoding": packing})

    assert response.status_code == status
    kind, message = said("anthropic", response)
    assert kind == ("request_too_large" if status == 413 else "invalid_request_error")
    assert words in message
    assert server.asked == []


async def test_a_body_without_a_length_is_measured_as_it_comes(proxy, server):
    head = f"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: {TOKEN}\r\ntransfer-encoding: chunked\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    writer.write(head.encode())
    piece = b"x" * (1 << 16)
    for _ in range(17):
        writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))

    line = await asyncio.wait_for(reader.readline(), LIMIT_SECONDS)
    writer.close()

    assert line.startswith(b"HTTP/1.1 413")
    assert server.asked == []


async def test_a_client_that_goes_away_within_its_body_leaves_nothing_open(proxy, server):
    head = f"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: {TOKEN}\r\ncontent-length: 1000\r\n\r\n{{"
    _, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    writer.write(head.encode())
    await writer.drain()
    writer.close()
    await writer.wait_closed()

    assert (await proxy.ask("anthropic")).status_code == 200
    assert len(server.asked) == 1
    await proxy.until(lambda: proxy.shop.records.open == {})


@pytest.mark.parametrize(
    "head",
    [
        pytest.param("content-length: 5\r\ncontent-length: 500", id="two-lengths"),
        pytest.param("content-length: 5\r\ntransfer-encoding: chunked, identity", id="odd-encoding"),
        pytest.param("content-length: -1", id="negative"),
        pytest.param("content-length: 5\r\nx-odd\x00name: y", id="nul"),
        pytest.param("content-length: 5\r\nx: " + "y" * 200_000, id="endless"),
    ],
)
async def test_requests_that_two_readers_could_understand_differently_are_refused(proxy, server, head):
    request = f"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: {TOKEN}\r\n{head}\r\n\r\n{{}}xxx"

    answer = await proxy.raw(request.encode("latin-1"))

    assert answer.split(b" ", 2)[1] == b"400"
    assert answer.count(b"HTTP/1.1 ") == 1
    assert server.asked == []


@pytest.mark.parametrize(
    ("path", "headers", "find"),
    [
        ("/v1/models", dict([BEARER]), lambda value: [row["id"] for row in value["data"]]),
        ("/v1/models", ROUTES["anthropic"].headers, lambda value: [row["id"] for row in value["data"]]),
        ("/v1beta/models", ROUTES["gemini"].headers, lambda value: [row["name"] for row in value["models"]]),
    ],
)
async def test_the_models_are_listed_in_the_form_of_the_api_that_asks(proxy, path, headers, find):
    value = (await proxy.get(path, headers)).json()

    prefix = "models/" if "beta" in path else ""
    assert find(value) == [f"{prefix}{name}" for name in ("alias", "asked", "m", "up0:m", "up0:n")]


async def test_one_model_is_found_by_its_name(proxy):
    openai = await proxy.get("/v1/models/alias")
    gemini = await proxy.get("/v1beta/models/alias", ROUTES["gemini"].headers)
    nobody = await proxy.get("/v1/models/nobody")
    percent = await proxy.get("/v1/models/%61lia%2573", ROUTES["anthropic"].headers)

    assert openai.json()["id"] == "alias"
    assert gemini.json()["name"] == "models/alias"
    assert nobody.status_code == percent.status_code == 404
    assert said("openai-chat", nobody)[0] == "model_not_found"


async def test_pages_for_watchers_have_a_head_too(proxy):
    head = await proxy.client.head("/metrics", headers=dict([BEARER]))

    assert head.status_code == 200
    assert int(head.headers["content-length"]) > 0
    assert head.content == b""
