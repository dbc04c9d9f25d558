"""The way out: which hosts and addresses pass, that a refusal is clear, and that nothing is smuggled past the check."""

import asyncio
import base64
import contextlib
import socket
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.sandbox import proxy as module
from ferrule.sandbox.proxy import SandboxProxy, resolve
from ferrule.system.hosts import Bad, NetworkEndpoint, entries, leads_inside, target
from tests.rows import each_row

LIMIT_SECONDS = 30


class Site:
    """A host on the loopback device that remembers what it was sent."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.port = 0
        self.over = asyncio.Event()
        """A connection was served to its end."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            head = await reader.readuntil(b"\r\n\r\n")
            length = next((int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:")), 0)
            self.heard.append(head + await reader.readexactly(length))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\nwelcome")
            writer.write_eof()
            self.heard.append(await reader.read(1000))
        writer.close()
        self.over.set()


@pytest.fixture
async def site():
    made = Site()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    yield made
    server.close()


def known(*addresses: str):
    """A resolver that knows these addresses for every name, and counts."""
    asked: list[str] = []

    async def look(host: str, port: int) -> list[str]:
        asked.append(host)
        return list(addresses)

    look.asked = asked  # type: ignore[attr-defined]
    return look


def listener() -> socket.socket:
    """A socket as that of a session's own network would be."""
    made = socket.create_server(("127.0.0.1", 0))
    made.setblocking(False)
    return made


@contextlib.asynccontextmanager
async def running(*hosts: str, port: bool = False, **options):
    options.setdefault("resolver", known("127.0.0.1"))
    made = SandboxProxy(hosts, **options)
    if port:
        await made.start()
    else:
        await made.serve(listener())
    try:
        yield made
    finally:
        await made.close()


async def exchange(proxy: SandboxProxy, *parts: bytes) -> bytes:
    """All that the proxy says to this, until it ends the connection."""
    async with asyncio.timeout(LIMIT_SECONDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        try:
            writer.write(parts[0])
            said = b""
            for part in parts[1:]:
                said += await reader.readuntil(b"\r\n\r\n")
                writer.write(part)
            with contextlib.suppress(ConnectionError):
                said += await reader.read()
            return said
        finally:
            writer.close()


def get(address: str, *lines: str, method: str = "GET") -> bytes:
    return "\r\n".join([f"{method} {address} HTTP/1.1", *lines, "", ""]).encode()


async def test_a_host_of_the_list_is_reached_by_a_tunnel(site):
    async with running(f"named.test:{site.port}", private=True) as proxy:
        said = await exchange(proxy, get(f"named.test:{site.port}", method="CONNECT"), get("/x", "host: any"))

    assert said.startswith(b"HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK\r\n")
    assert said.endswith(b"welcome")
    assert site.heard[0] == get("/x", "host: any")
    assert proxy.refused == []


async def test_a_host_of_the_list_is_reached_by_its_whole_address(site):
    async with running(f"named.test:{site.port}", private=True) as proxy:
        order = get(
            f"http://NAMED.test.:{site.port}/x?y=z",
            "Host: elsewhere.test",
            "X-Mine: 1",
            "Proxy-Authorization: Basic c2VjcmV0",
            "Connection: keep-alive, x-hop, content-length",
            "X-Hop: 1",
            "Content-Length: 3",
            method="POST",
        )
        said = await exchange(proxy, order + b"abc" + get("/smuggled", "Host: elsewhere.test"))
        async with asyncio.timeout(LIMIT_SECONDS):
            await site.over.wait()

    assert said.endswith(b"welcome")
    assert site.heard == [
        get(
            "/x?y=z",
            f"host: named.test:{site.port}",
            "connection: close",
            "x-mine: 1",
            "content-length: 3",
            method="POST",
        )
        + b"abc",
        b"",
    ]


async def test_without_a_list_nothing_passes(site):
    async with running(private=True) as proxy:
        said = await exchange(proxy, get(f"named.test:{site.port}", method="CONNECT"))

    assert said.startswith(b"HTTP/1.1 403 ")
    assert site.heard == []


async def test_a_refusal_names_the_host_and_the_setting(site):
    resolver = known("127.0.0.1")
    async with running("example.org", resolver=resolver) as proxy:
        said = [
            await exchange(proxy, get("example.com:443", method="CONNECT")),
            await exchange(proxy, get("http://example.com/secret-of-mine")),
        ]

    for each in said:
        assert b"403 The sandbox refused example.com:" in each.splitlines()[0]
        assert b"sandbox.hosts" in each.splitlines()[-1]
    assert proxy.refused == ["example.com:443", "example.com:80"]
    assert resolver.asked == []  # a name that is looked up has left the machine


async def test_refusals_are_remembered_once_each_and_not_without_end(monkeypatch):
    monkeypatch.setattr(module, "_REMEMBERED", 2)
    async with running() as proxy:
        for name in ("a", "b", "c", "b"):
            await exchange(proxy, get(f"{name}.test:443", method="CONNECT"))

    assert proxy.take_refused() == ["c.test:443", "b.test:443"]
    assert proxy.take_refused() == []


@pytest.mark.parametrize(
    ("addresses", "private", "passes"),
    [
        pytest.param(["127.0.0.1"], False, False, id="loopback"),
        pytest.param(["127.0.0.1"], True, True, id="loopback-where-allowed"),
        pytest.param(["127.0.0.1", "169.254.169.254"], True, False, id="one-bad-spoils-all"),
        pytest.param(["93.184.215.14", "10.0.0.1"], False, False, id="one-private-spoils-all"),
        pytest.param(["::ffff:127.0.0.1"], False, False, id="mapped"),
        pytest.param([], True, False, id="none"),
        pytest.param(["fe80::1%eth0"], True, False, id="zone"),
        pytest.param(["not an address"], True, False, id="nonsense"),
    ],
)
async def test_where_a_name_leads_decides(site, addresses, private, passes):
    async with running(f"named.test:{site.port}", private=private, resolver=known(*addresses)) as proxy:
        said = await exchange(proxy, get(f"http://named.test:{site.port}/"))

    assert said.startswith(b"HTTP/1.1 200 ") is passes, said
    assert bool(site.heard) is passes


async def test_a_name_is_looked_up_once(site):
    resolver = known("127.0.0.1")
    async with running(f"named.test:{site.port}", private=True, resolver=resolver) as proxy:
        await exchange(proxy, get(f"http://named.test:{site.port}/"))

    assert resolver.asked == ["named.test"]


async def test_an_address_of_the_list_is_reached_though_it_is_private(site):
    resolver = known()
    async with running(f"127.0.0.1:{site.port}", resolver=resolver) as proxy:
        passed = await exchange(proxy, get(f"http://127.0.0.1:{site.port}/"))
        other = await exchange(proxy, get(f"http://127.0.0.2:{site.port}/"))
        mapped = await exchange(proxy, get(f"http://[::ffff:127.0.0.1]:{site.port}/"))

    assert passed.endswith(b"welcome")
    assert other.startswith(b"HTTP/1.1 403 ")
    assert mapped.startswith(b"HTTP/1.1 403 ")
    assert resolver.asked == []


async def test_a_host_that_cannot_be_resolved_or_reached_is_said():
    async def broken(host, port):
        raise OSError(-3, "Temporary failure in name resolution")

    async with running("named.test", resolver=broken) as proxy:
        lost = await exchange(proxy, get("named.test:443", method="CONNECT"))
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    async with running(f"127.0.0.1:{port}") as proxy:
        closed = await exchange(proxy, get(f"127.0.0.1:{port}", method="CONNECT"))

    assert lost.startswith(b"HTTP/1.1 502 ")
    assert b"named.test cannot be resolved" in lost
    assert closed.startswith(b"HTTP/1.1 502 ")


@each_row(
    ("order", "status"),
    [
        pytest.param(get("/relative"), 400, id="no-host"),
        pytest.param(get("https://named.test/"), 400, id="another-scheme"),
        pytest.param(get("ftp://named.test/"), 400, id="ftp"),
        pytest.param(get("http://user@named.test/"), 400, id="user-part"),
        pytest.param(get("http://named.test\\@other.test/"), 400, id="backslash"),
        pytest.param(get("http://named.test%00.other.test/"), 400, id="escaped-nul"),
        pytest.param(b"GET http://named.test\0.other.test/ HTTP/1.1\r\n\r\n", 400, id="nul"),
        pytest.param(b"CONNECT named.test\0.x:443 HTTP/1.1\r\n\r\n", 400, id="nul-in-tunnel"),
        pytest.param(b"CONNECT named.test HTTP/1.1\r\n\r\n", 400, id="tunnel-without-port"),
        pytest.param(b"CONNECT named.test:99999 HTTP/1.1\r\n\r\n", 400, id="no-such-port"),
        pytest.param(b"GET http://named.test/ HTTP/2\r\n\r\n", 400, id="another-version"),
        pytest.param(b"GET http://named.test/ x HTTP/1.1\r\n\r\n", 400, id="blank-in-path"),
        pytest.param(b"G\xffT http://named.test/ HTTP/1.1\r\n\r\n", 400, id="method"),
        pytest.param(b"GET http://\xff.test/ HTTP/1.1\r\n\r\n", 400, id="not-utf-8"),
        pytest.param(get("http://named.test/", " folded: 1"), 400, id="folded-header"),
        pytest.param(get("http://named.test/", "a b: 1"), 400, id="blank-in-header"),
        pytest.param(get("http://named.test/", "a: 1\nb: 2"), 400, id="bare-line-feed"),
        pytest.param(get("http://named.test/", "Content-Length: 1", "Content-Length: 2"), 400, id="two-lengths"),
        pytest.param(get("http://named.test/", "Content-Length: +1"), 400, id="odd-length"),
        pytest.param(get("http://named.test/", "Transfer-Encoding: chunked"), 411, id="chunked"),
        pytest.param(get("http://named.test/", "a: " + "b" * 70_000), 431, id="long-head"),
        pytest.param(get("http://named.test:22/"), 403, id="another-port"),
        pytest.param(get("named.test:22", method="CONNECT"), 403, id="tunnel-to-another-port"),
        pytest.param(get("http://2130706433/"), 400, id="number"),
        pytest.param(get("http://127.1/"), 400, id="short-address"),
        pytest.param(get("http://0x7f.0.0.1/"), 400, id="hexadecimal"),
        pytest.param(get("http://0177.0.0.1/"), 400, id="octal"),
    ],
)
async def test_what_is_not_plain_is_refused(order, status):
    resolver = known("127.0.0.1")
    async with running("named.test", private=True, resolver=resolver) as proxy:
        said = await exchange(proxy, order)

    assert said.startswith(b"HTTP/1.1 %d " % status), said
    assert said.count(b"\r\n\r\n") == 1
    assert resolver.asked == []


async def test_a_silent_connection_is_ended(monkeypatch):
    monkeypatch.setattr(module, "_HEAD_SECONDS", 0.01)
    async with running("named.test") as proxy:
        assert await exchange(proxy, b"GET http://named") == b""


async def test_a_tunnel_in_which_nothing_moves_is_ended(monkeypatch):
    monkeypatch.setattr(module, "_IDLE_SECONDS", 0.01)
    gone = asyncio.Event()

    async def mute(reader, writer):
        await reader.read()
        writer.close()
        gone.set()

    server = await asyncio.start_server(mute, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with running(f"127.0.0.1:{port}") as proxy:
        said = await exchange(proxy, get(f"127.0.0.1:{port}", method="CONNECT"))
        async with asyncio.timeout(LIMIT_SECONDS):
            await gone.wait()
    server.close()

    assert said == b"HTTP/1.1 200 Connection established\r\n\r\n"


async def test_too_many_at_once_are_told_so(monkeypatch):
    monkeypatch.setattr(module, "_AT_ONCE", 0)
    async with running("named.test") as proxy:
        assert (await exchange(proxy, get("named.test:443", method="CONNECT"))).startswith(b"HTTP/1.1 503 ")


async def test_a_host_that_is_allowed_later_is_reached(site):
    async with running("other.test", private=True) as proxy:
        ask = get(f"http://named.test:{site.port}/")
        before = await exchange(proxy, ask)
        proxy.allow(f"named.test:{site.port}")
        after = await exchange(proxy, ask)

    assert (before[9:12], after[9:12]) == (b"403", b"200")


async def test_closing_ends_what_is_under_way():
    async def mute(reader, writer):
        await reader.read()
        writer.close()

    server = await asyncio.start_server(mute, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    proxy = SandboxProxy([f"127.0.0.1:{port}"])
    await proxy.serve(listener())
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    writer.write(get(f"127.0.0.1:{port}", method="CONNECT"))
    async with asyncio.timeout(LIMIT_SECONDS):
        await reader.readuntil(b"\r\n\r\n")
        await proxy.close()

        assert await reader.read() == b""
    writer.close()
    server.close()


async def test_on_a_port_only_those_with_the_password_are_served(site):
    async with running(f"named.test:{site.port}", private=True, port=True) as proxy:
        word = proxy.address.removeprefix("http://").partition("@")[0]
        ask = f"http://named.test:{site.port}/"
        right = "Proxy-Authorization: Basic " + base64.b64encode(word.encode()).decode()
        wrong = "Proxy-Authorization: Basic " + base64.b64encode(word.encode()[:-1]).decode()
        said = [await exchange(proxy, get(ask, *lines)) for lines in ([right], [wrong], [], [right, right])]

    assert [each[9:12] for each in said] == [b"200", b"407", b"407", b"407"]
    assert b"Proxy-Authenticate: Basic" in said[1]
    assert len(word) > 30
    assert b"roxy" not in site.heard[0]


async def test_the_systems_own_resolver_knows_this_machine():
    async with asyncio.timeout(LIMIT_SECONDS):
        found = await resolve("localhost", 80)

    assert {ip_address(each).is_loopback for each in found} == {True}


@each_row(
    ("line", "authority", "covered"),
    [
        ("example.org", "example.org:443", True),
        ("example.org", "EXAMPLE.org.:80", True),
        ("Example.ORG", "example.org:443", True),
        ("example.org", "example.org:8080", False),
        ("example.org:8080", "example.org:8080", True),
        ("example.org:8080", "example.org:443", False),
        ("example.org", "www.example.org:443", False),
        ("example.org", "badexample.org:443", False),
        ("example.org", "example.org.evil.test:443", False),
        ("*.example.org", "www.example.org:443", True),
        ("*.example.org", "a.b.example.org:443", True),
        ("*.example.org", "example.org:443", False),
        ("*.example.org", "badexample.org:443", False),
        ("*.example.org:8443", "a.example.org:8443", True),
        ("bücher.test", "xn--bcher-kva.test:443", True),
        ("xn--bcher-kva.test", "BÜCHER.test:443", True),
        ("example.org", "example。org:443", True),
        ("10.0.0.1", "10.0.0.1:443", True),
        ("10.0.0.1", "10.0.0.2:443", False),
        ("::1", "[::1]:443", True),
        ("[::1]:8080", "[0:0::1]:8080", True),
        ("[::1]:8080", "[::1]:443", False),
        ("::ffff:10.0.0.1", "10.0.0.1:443", False),
    ],
)
def test_hosts_are_compared_by_labels(line, authority, covered):
    (entry,) = entries([line])

    assert entry.covers(target(authority)) is covered


@each_row(
    "line",
    [
        "",
        "*",
        "*.",
        "**.example.org",
        "a.*.org",
        "*example.org",
        "http://example.org",
        "example.org/x",
        "a b",
        "user@a.b",
        "*.10.0.0.1",
        "a..b",
        "-a.b",
        "a-.b",
        "a.b:0",
        "a.b:70000",
        "a.b:x",
        "a\0b",
        "a\\b",
        "1.2.3",
        "a" * 64 + ".b",
        "é" * 300,
    ],
)
def test_a_list_that_nobody_can_mean_is_an_error(line):
    with pytest.raises(Bad):
        SandboxProxy([line])


@each_row(
    "address",
    [
        "127.0.0.1",
        "127.255.255.254",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "198.18.0.1",
        "192.0.0.8",
        "192.88.99.1",
        "240.0.0.1",
        "255.255.255.255",
        "203.0.113.1",
        "::1",
        "fc00::1",
        "fd12::1",
        "2001:db8::1",
        "3fff::1",
        "::ffff:127.0.0.1",
        "::ffff:7f00:1",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::10.0.0.1",
        "64:ff9b:1::808:808",
        "2002:7f00:1::",
        "2002:a00:1::1",
        "2002:808:808::1",
        "2001:0:7f00:1::",
        "2001:0:808:808:0:0:80ff:fffe",
        "2001:10::1",
        "100::1",
        "::ffff:0:127.0.0.1",
        "2606:4700::5efe:7f00:1",
        "2606:4700::200:5efe:10.0.0.1",
        "4000::1",
        "5f00::1",
    ],
)
def test_addresses_that_lead_inside_are_known(address):
    assert leads_inside(ip_address(address))


@each_row(
    "address",
    [
        "169.254.169.254",
        "0.0.0.0",
        "0.1.2.3",
        "224.0.0.1",
        "255.255.255.255",
        "100.100.100.200",
        "168.63.129.16",
        "::",
        "fe80::1",
        "ff02::1",
        "fd00:ec2::254",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::",
    ],
)
def test_some_addresses_are_never_meant(address):
    assert leads_inside(ip_address(address), private=True)


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "93.184.215.14", "2606:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8"]
)
def test_public_addresses_pass(address):
    assert leads_inside(ip_address(address)) == ""


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "192.168.0.1", "::1", "fd12::1", "::ffff:10.0.0.1"])
def test_private_addresses_pass_where_the_user_says_so(address):
    assert leads_inside(ip_address(address), private=True) == ""


@given(st.ip_addresses(v=4))
def test_no_writing_of_an_address_makes_it_more_public(plain: IPv4Address):
    number = int(plain)
    shapes = [0xFFFF << 32 | number, 0x64FF9B << 96 | number, 0x2002 << 112 | number << 80 | 1, number]

    if leads_inside(plain):
        assert [str(IPv6Address(each)) for each in shapes if not leads_inside(IPv6Address(each))] == []


@given(st.text(min_size=1, max_size=40))
def test_a_target_is_plain_or_refused(text):
    try:
        found = target(text, port=443)
    except Bad:
        return
    assert found.host.isascii()
    assert found.host == found.host.lower()
    assert not set(found.host) & set(" \0\\/@?#%*[]")
    assert found == target(str(found))


def test_a_target_is_written_as_it_was_meant():
    assert str(target("[::1]:443")) == "[::1]:443"
    assert target("Example.ORG.", port=80) == NetworkEndpoint("example.org", 80)
