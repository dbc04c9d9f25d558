"""MCP over HTTP: who is let in, and that the server serves and ends as it should."""

import asyncio
import json
import signal
import socket
from contextlib import asynccontextmanager

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from ferrule import ConfigError, Engine
from ferrule.serve.http_server import HttpGuard, check_token, is_loopback, listen
from ferrule.serve.mcp import Serving
from ferrule.serve.mcp.client import Clients
from ferrule.serve.mcp.http import serve_http
from tests.rows import each_row
from tests.serve.offered import TOOLS
from tests.serve.program import FERRULE, HELLO, LIMIT_SECONDS, program
from tests.serve.relay import relay

TOKEN = "a-token-that-nobody-guesses"


async def answer(guard, *headers, kind="http"):
    """The status that a request with these headers gets; 200 from the application behind the guard."""
    said = []

    async def send(message):
        said.append(message)

    await guard(
        {"type": kind, "path": "/mcp", "headers": [(key.encode(), value.encode()) for key, value in headers]},
        None,
        send,
    )
    return said[0]["status"] if said else None


async def application(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})


HERE, RIGHT = ("host", "127.0.0.1:8765"), ("authorization", f"Bearer {TOKEN}")


@each_row(
    ("headers", "status"),
    [
        pytest.param([HERE, RIGHT], 200, id="right"),
        pytest.param([("host", "localhost"), RIGHT], 200, id="localhost"),
        pytest.param([("host", "LOCALHOST:1"), RIGHT], 200, id="capitals"),
        pytest.param([("host", "[::1]:8765"), RIGHT], 200, id="version-six"),
        pytest.param([HERE, RIGHT, ("origin", "http://localhost:3000")], 200, id="origin-here"),
        pytest.param([HERE, ("authorization", f"bearer {TOKEN}")], 200, id="scheme-in-small-letters"),
        pytest.param([HERE], 401, id="no-token"),
        pytest.param([HERE, ("authorization", "Bearer wrong")], 401, id="wrong-token"),
        pytest.param([HERE, ("authorization", f"Bearer {TOKEN} ")], 401, id="nearly-the-token"),
        pytest.param([HERE, ("authorization", f"bearer {TOKEN}x")], 401, id="longer-token"),
        pytest.param([HERE, ("authorization", TOKEN)], 401, id="no-scheme"),
        pytest.param([HERE, ("authorization", f"Basic {TOKEN}")], 401, id="other-scheme"),
        pytest.param([HERE, RIGHT, RIGHT], 401, id="two-tokens"),
        pytest.param([HERE, ("authorization", "Bearer \xff")], 401, id="not-ascii"),
        pytest.param([HERE, ("authorization", "Bearer " + "x" * 10_000)], 401, id="endless-token"),
        pytest.param([("host", "evil.example"), RIGHT], 403, id="foreign-host"),
        pytest.param([("host", "127.0.0.1.evil.example"), RIGHT], 403, id="host-that-begins-right"),
        pytest.param([("host", "evil.example:127"), RIGHT], 403, id="foreign-host-with-a-port"),
        pytest.param([("host", "localhost@evil.example"), RIGHT], 403, id="host-behind-a-user"),
        pytest.param([("host", "evil.example#localhost"), RIGHT], 403, id="fragment"),
        pytest.param([("host", "localhost/../evil"), RIGHT], 403, id="path"),
        pytest.param([("host", "localhost\\@evil.example"), RIGHT], 403, id="backslash"),
        pytest.param([("host", "localhost:x"), RIGHT], 403, id="no-port"),
        pytest.param([("host", "192.168.0.7:8765"), RIGHT], 403, id="another-address"),
        pytest.param([("host", "["), RIGHT], 403, id="half-an-address"),
        pytest.param([("host", ""), RIGHT], 403, id="empty-host"),
        pytest.param([RIGHT], 403, id="no-host"),
        pytest.param([HERE, HERE, RIGHT], 403, id="two-hosts"),
        pytest.param([HERE, RIGHT, ("origin", "http://evil.example")], 403, id="foreign-origin"),
        pytest.param([HERE, RIGHT, ("origin", "null")], 403, id="no-origin-at-all"),
        pytest.param([HERE, RIGHT, ("origin", "http://localhost.evil.example")], 403, id="origin-that-begins-right"),
        pytest.param([HERE, RIGHT, ("origin", "file://localhost")], 403, id="file-origin"),
        pytest.param(
            [HERE, RIGHT, ("origin", "http://localhost"), ("origin", "http://evil.example")], 403, id="two-origins"
        ),
        pytest.param([("host", "evil.example")], 403, id="foreign-host-learns-nothing-of-tokens"),
    ],
)
@pytest.mark.contract("mcp.serve-token")
async def test_who_is_let_in(headers, status):
    assert await answer(HttpGuard(application, token=TOKEN, host="127.0.0.1"), *headers) == status


@pytest.mark.parametrize(
    ("host", "status"),
    [
        pytest.param("192.168.0.7:8765", 200, id="address"),
        pytest.param("box.example", 200, id="a-name-that-was-given"),
        pytest.param("evil.example", 403, id="another-name"),
    ],
)
async def test_a_server_for_other_machines_is_known_by_addresses_and_given_names(host, status):
    guard = HttpGuard(application, token=TOKEN, host="0.0.0.0", names=("Box.example",))

    assert await answer(guard, ("host", host), RIGHT) == status
    assert await answer(guard, ("host", host), RIGHT, ("origin", f"http://{host}")) == status
    assert await answer(guard, ("host", host), RIGHT, ("origin", "http://203.0.113.5")) == 403
    assert await answer(guard, ("host", host)) == (401 if status == 200 else 403)


async def test_an_answer_that_is_ended_in_the_middle_is_ended_properly():
    begun = asyncio.Event()

    async def endless(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        begun.set()
        await asyncio.Event().wait()

    said = []

    async def send(message):
        said.append(message)

    guard = HttpGuard(endless, token=TOKEN, host="127.0.0.1")
    headers = [(key.encode(), value.encode()) for key, value in (HERE, RIGHT)]
    answering = asyncio.create_task(guard({"type": "http", "path": "/mcp", "headers": headers}, None, send))
    await asyncio.wait_for(begun.wait(), LIMIT_SECONDS)
    guard.close()
    await asyncio.wait_for(answering, LIMIT_SECONDS)

    assert said[1:] == [{"type": "http.response.body", "body": b""}]


async def test_what_is_not_http_is_not_answered():
    assert await answer(HttpGuard(application, token=TOKEN, host="127.0.0.1"), HERE, RIGHT, kind="websocket") is None


@pytest.mark.parametrize(
    "token", ["", "short", "with a blank in it", "päßwörter-sind-kein-token", "line\nbreak-in-a-token"]
)
def test_a_weak_token_is_refused(token):
    with pytest.raises(ConfigError, match="too weak"):
        check_token(token)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("a.example", False),
    ],
)
def test_what_only_this_machine_reaches(host, expected):
    assert is_loopback(host) is expected


@pytest.mark.parametrize("address", ["", "nothing", "127.0.0.1:x", "127.0.0.1:99999", ":"])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(ConfigError):
        listen(address)


def test_an_address_in_use_is_refused_in_a_sentence():
    taken, _, port = listen(":0")
    with taken, pytest.raises(ConfigError, match=r"Cannot listen at .* in use\. Port 0 takes any"):
        listen(f"127.0.0.1:{port}")


def test_no_piece_of_an_answer_waits_until_the_client_has_confirmed_the_one_before():
    listening, _, port = listen("127.0.0.1:0")
    with listening, socket.create_connection(("127.0.0.1", port)):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@asynccontextmanager
async def serving(folder, **more):
    """A server in this process, and its address."""
    clients = Clients()
    listening, host, port = listen("127.0.0.1:0")
    async with Engine(folder, ask=clients, tools=TOOLS, **more) as engine, Serving(engine, clients) as made:
        ready = asyncio.Event()
        running = asyncio.create_task(serve_http(made, listening, host=host, token=TOKEN, ready=ready.set))
        try:
            await asyncio.wait_for(ready.wait(), LIMIT_SECONDS)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


@asynccontextmanager
async def client(url, era, **more):
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=LIMIT_SECONDS) as http,
        Client(streamable_http_client(url, http_client=http), mode=era, cache=None, **more) as made,
    ):
        yield made


@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_two_clients_are_served_by_one_engine(tmp_path, era):
    (tmp_path / "a.txt").write_text("one\n")
    heard = []

    async def hear(progress, total, message):
        heard.append(message)

    async def yes(context, params):
        from mcp_types import ElicitResult

        return ElicitResult(action="accept", content={"decision": "allow once"})

    async with (
        asyncio.timeout(LIMIT_SECONDS),
        serving(tmp_path) as url,
        client(url, era) as one,
        client(url, era, elicitation_callback=yes) as two,
    ):
        read = await one.call_tool("Read", {"path": "a.txt"})
        refused = await one.call_tool("create_file", {"path": "b.txt", "content": "x\n"})
        allowed = await two.call_tool("create_file", {"path": "b.txt", "content": "x\n"})
        await two.call_tool("test_tool_with_progress", {}, progress_callback=hear)
        with pytest.raises(MCPError, match="Unknown tool"):
            await one.call_tool("Nothing", {})

    assert (read.is_error, refused.is_error, allowed.is_error) == (False, True, False)
    assert heard == ["0/100", "50/100", "100/100"]


async def test_the_answer_to_a_stranger_is_plain(tmp_path):
    greeting = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    accept = {"Accept": "application/json, text/event-stream"}
    right = {**accept, "Authorization": f"Bearer {TOKEN}"}
    async with asyncio.timeout(LIMIT_SECONDS), serving(tmp_path) as url, httpx2.AsyncClient() as http:
        unknown = await http.post(url, json=greeting, headers=accept)
        page = await http.post(url, json=greeting, headers={**right, "Origin": "https://evil.example"})
        rebound = await http.post(url, json=greeting, headers={**right, "Host": "evil.example"})
        elsewhere = await http.get(url.replace("/mcp", "/other"), headers={"Authorization": "Bearer x"})
        junk = await http.post(url, content=b"{", headers={**right, "Content-Type": "application/json"})
        known = await http.post(url, json=greeting, headers=right)

    assert [one.status_code for one in (unknown, page, rebound, elsewhere)] == [401, 403, 403, 401]
    assert unknown.headers["www-authenticate"].startswith("Bearer")
    assert unknown.headers["content-type"].startswith("text/plain")
    assert "Authorization: Bearer" in unknown.text
    assert "server" not in known.headers
    assert (junk.status_code, known.status_code) == (400, 200)


async def test_the_end_cancels_calls_and_closes_streams(tmp_path):
    waiting = asyncio.Event()

    async def heard(*_):
        waiting.set()

    async def call(url):
        async with client(url, "legacy") as one:
            return await one.call_tool("wait_here", {"path": "x"}, progress_callback=heard)

    async with asyncio.timeout(LIMIT_SECONDS):
        async with serving(tmp_path) as url:
            calling = asyncio.create_task(call(url))
            await waiting.wait()
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)

    assert (tmp_path / "x").read_text() == "cancelled"


def event(lines):
    """A server-sent event as its fields."""
    return dict(line.split(": ", 1) for line in lines if ": " in line)


async def events(response):
    lines = []
    async for line in response.aiter_lines():
        if line:
            lines.append(line)
        elif lines:
            yield event(lines)
            lines = []


class ByHand:
    """A session over HTTP that is spoken to request by request."""

    def __init__(self, http, url):
        self.http, self.url = http, url
        self.headers = {"Accept": "application/json, text/event-stream", "Authorization": f"Bearer {TOKEN}"}

    async def greet(self):
        greeting = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO}
        greeted = await self.http.post(self.url, json=greeting, headers=self.headers)
        self.headers["Mcp-Session-Id"] = greeted.headers["mcp-session-id"]
        self.headers["Mcp-Protocol-Version"] = "2025-11-25"
        joined = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await self.http.post(self.url, json=joined, headers=self.headers)
        return self

    async def begin(self, tool, **arguments):
        """Make a call, and break the connection behind its first event, which is returned."""
        params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": "t"}}
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        async with self.http.stream("POST", self.url, json=call, headers=self.headers) as response:
            return await anext(events(response))

    def resume(self, event_id):
        return self.http.stream("GET", self.url, headers={**self.headers, "Last-Event-ID": event_id})


async def test_the_result_of_a_call_whose_connection_broke_is_fetched_with_the_last_event(tmp_path):
    async with asyncio.timeout(LIMIT_SECONDS), serving(tmp_path) as url, httpx2.AsyncClient(timeout=None) as http:
        one, other = await ByHand(http, url).greet(), await ByHand(http, url).greet()
        began, foreign = await one.begin("test_simple_text"), await other.begin("weather")
        again = []
        for _ in range(2):  # the second connection may break as well
            async with one.resume(began["id"]) as response:
                again.append([json.loads(one["data"]) async for one in events(response)])
        async with other.resume(foreign["id"]) as response:
            theirs = [json.loads(one["data"]) async for one in events(response)]
        async with one.resume("999") as response:
            unknown = [one async for one in events(response)]

    assert (began.get("data", ""), began["retry"]) == ("", "1000")
    assert [message["result"]["content"][0]["text"] for message in again[0]] == [
        "This is a simple text response for testing."
    ]
    assert again[0] == again[1]
    assert [message["result"]["structuredContent"] for message in theirs] == [{"degrees": 12}]
    assert unknown == []


async def test_a_call_that_still_runs_is_heard_to_its_end_on_the_new_connection(tmp_path):
    async with asyncio.timeout(LIMIT_SECONDS), serving(tmp_path) as url, httpx2.AsyncClient(timeout=None) as http:
        one = await ByHand(http, url).greet()
        began = await one.begin("wait_here", path="left.txt")
        heard = []
        async with one.resume(began["id"]) as response:
            async for came in events(response):
                message = json.loads(came["data"])
                heard.append(message.get("method", message.get("id")))
                if len(heard) == 1:
                    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
                    assert not (tmp_path / "left.txt").exists()  # the break has cancelled nothing
                    await http.post(url, json=cancel, headers=one.headers)
                    break

    assert heard == ["notifications/progress"]
    assert (tmp_path / "left.txt").read_text() == "cancelled"


async def test_a_client_of_the_package_gets_its_result_through_a_proxy_that_breaks_connections(tmp_path):
    async with asyncio.timeout(LIMIT_SECONDS), serving(tmp_path) as url:
        port = int(url.rpartition(":")[2].removesuffix("/mcp"))
        async with (
            relay(port, TOKEN, breaks=b"weather") as relayed,
            Client(f"http://127.0.0.1:{relayed}/mcp", mode="legacy", cache=None) as one,
        ):
            result = await one.call_tool("weather", {})

    assert result.structured_content == {"degrees": 12}


async def configuration(server):
    """What the server prints for its clients."""
    lines: list[bytes] = []
    while not lines or lines[-1] != b"}\n":
        lines.append(await asyncio.wait_for(server.process.stderr.readline(), LIMIT_SECONDS))
        assert lines[-1], b"".join(lines)
    text = b"".join(lines).decode()
    return text[: text.index("{")], json.loads(text[text.index("{") :])["mcpServers"]["ferrule"]


async def test_the_command_makes_a_token_and_shows_a_configuration_that_works(tmp_path, monkeypatch):
    monkeypatch.delenv("FERRULE_MCP_TOKEN", raising=False)
    async with program(*FERRULE, "--http", "127.0.0.1:0", folder=tmp_path) as server:
        said, entry = await configuration(server)
        headers = entry["headers"]
        async with (
            httpx2.AsyncClient(headers=headers, timeout=LIMIT_SECONDS) as http,
            Client(streamable_http_client(entry["url"], http_client=http), mode="legacy") as one,
        ):
            listed = await one.list_tools()
            server.process.send_signal(signal.SIGTERM)  # while its stream of events is open
            code = await server.ended()
        out, rest = await server.process.stdout.read(), await server.process.stderr.read()

    assert listed.tools
    assert len(headers["Authorization"]) > 40
    assert "warning" not in said
    assert (code, out, rest) == (128 + signal.SIGTERM, b"", b"")


async def test_a_token_that_was_given_is_not_shown_and_other_machines_are_warned_of(tmp_path, monkeypatch):
    monkeypatch.setenv("FERRULE_MCP_TOKEN", TOKEN)
    async with program(*FERRULE, "--http", "0.0.0.0:0", folder=tmp_path) as server:
        said, entry = await configuration(server)
        port = int(entry["url"].rpartition(":")[2].removesuffix("/mcp"))
        with socket.create_connection(("127.0.0.1", port), timeout=LIMIT_SECONDS):
            server.process.send_signal(signal.SIGINT)
            code = await server.ended()

    assert "can be reached from other machines" in said
    assert TOKEN not in said + json.dumps(entry)
    assert code == 130
