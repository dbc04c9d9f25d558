"""Through proxies: tunnels that nobody on the way can read, names and passwords, refusals, and who is excepted."""

import asyncio
import contextlib
import os
from base64 import b64encode

import pytest

from ferrule.models import ModelError, Unreachable
from ferrule.models.connection import route

from .certificates import certificate
from .conftest import KEY, Asker, asking, heard
from .server import WAIT_SECONDS, Exchange, Server, serving
from .spoken import ALL, ANTHROPIC

APIS = [pytest.param(one, id=one.api) for one in ALL]
HOST = "models.example"
NAME, PASSWORD = "Aladdin", "open:sésame@x"
WRITTEN = f"{NAME}:open%3As%C3%A9same%40x"


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch):
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


def passing_on(target: Server, seen: bytearray | None = None, *, wants: bytes = b""):
    """What a proxy does: it asks who it is, connects, and passes on bytes both ways. It knows all names by heart."""

    async def play(exchange: Exchange) -> None:
        assert exchange.method == "CONNECT"
        if wants and exchange.headers.get("proxy-authorization") != f"Basic {b64encode(wants).decode()}":
            await exchange.whole(407, "Who are you?", kind="text/plain", proxy_authenticate="Basic")
            return
        port = int(target.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await exchange.send(b"HTTP/1.1 200 Connection established\r\nx: y\r\n\r\n")
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await asyncio.gather(
                    _copied(exchange.reader, writer, seen),
                    _copied(reader, exchange.writer, None),
                    return_exceptions=True,
                )
        finally:
            writer.close()

    return play


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seen: bytearray | None) -> None:
    while data := await reader.read(65536):
        if seen is not None:
            seen.extend(data)
        writer.write(data)
        with contextlib.suppress(ConnectionError):
            await writer.drain()
    writer.close()


def answering(stream: bytes):
    async def play(exchange: Exchange) -> None:
        await exchange.stream(stream)

    return play


@pytest.mark.parametrize("secured", [False, True], ids=["plain proxy", "secured proxy"])
@pytest.mark.parametrize("spoken", APIS)
async def test_a_secured_host_is_asked_through_a_tunnel_that_nobody_can_read(spoken, secured, tmp_path, monkeypatch):
    public, context = certificate(tmp_path, HOST)
    monkeypatch.setenv("SSL_CERT_FILE", public)
    seen = bytearray()
    async with serving(ssl=context) as host, serving(ssl=context if secured else None) as proxy, asking(host) as asker:
        host.play(answering(spoken.stream))
        proxy.play(passing_on(host, seen, wants=f"{NAME}:{PASSWORD}".encode()))
        monkeypatch.setenv("HTTPS_PROXY", proxy.url.replace("://", f"://{WRITTEN}@"))
        model = asker.model(spoken, url=f"https://{HOST}/base")

        said = [await asker.said(model) for _ in range(3)]

        assert [one.parts for one in said] == [spoken.parts] * 3
        assert (host.connections, proxy.connections) == (1, 1)
        assert proxy.asked[0].path == proxy.asked[0].headers["host"] == f"{HOST}:443"
        assert host.asked[0].headers["host"] == HOST
        assert host.asked[0].path == f"/base{spoken.path}"
        # What is the proxy's stays with the proxy, and what is the host's with the host.
        assert "proxy-authorization" not in host.asked[0].headers
        assert not any(KEY in value for value in proxy.asked[0].headers.values())
        assert KEY.encode() not in seen
        assert len(seen) > 1000
        await model.close()
        await proxy.left()
        await host.left()


async def test_the_host_behind_a_tunnel_has_to_prove_who_it_is(tmp_path, monkeypatch):
    public, context = certificate(tmp_path, "another.example")
    monkeypatch.setenv("SSL_CERT_FILE", public)
    async with serving(ssl=context) as host, serving() as proxy, asking(host) as asker:
        host.play(answering(ANTHROPIC.stream))
        proxy.play(passing_on(host))
        monkeypatch.setenv("https_proxy", proxy.url)

        with pytest.raises(ModelError, match="certificate cannot be trusted"):
            await asker.said(asker.model(ANTHROPIC, url=f"https://{HOST}"))

        assert host.asked == []
        assert asker.sleeps.seconds == []
        await proxy.left()


async def test_a_proxy_that_is_to_be_secured_has_to_prove_who_it_is(tmp_path, monkeypatch, server):
    _, context = certificate(tmp_path)
    async with serving(ssl=context) as proxy, asking(server) as asker:
        monkeypatch.setenv("https_proxy", proxy.url.replace("://", f"://{WRITTEN}@"))

        with pytest.raises(ModelError, match=r"the proxy 127\.0\.0\.1:\d+ cannot be used.*certificate") as caught:
            await asker.said(asker.model(ANTHROPIC, url=f"https://{HOST}"))

        assert proxy.asked == []
        assert NAME not in str(caught.value)


def saying(data: bytes):
    async def play(exchange: Exchange) -> None:
        await exchange.send(data)
        await exchange.gone()

    return play


async def _hangs_up(exchange: Exchange) -> None:
    exchange.cut()


REFUSING = [
    pytest.param(saying(b"HTTP/1.1 407 No\r\ncontent-length: 3\r\n\r\nWho"), "NAME:PASSWORD@HOST", False, id="407"),
    pytest.param(saying(b"HTTP/1.1 403 No\r\n\r\n"), "does not let it through (HTTP 403)", False, id="403"),
    pytest.param(saying(b"HTTP/1.1 502 No\r\n\r\n"), "does not let it through (HTTP 502)", True, id="502"),
    pytest.param(saying(b"HTTP/1.1 302 Go\r\nlocation: http://evil/\r\n\r\n"), "(HTTP 302)", False, id="302"),
    pytest.param(saying(b"SSH-2.0-OpenSSH_9.6\r\n\r\n"), "is no HTTP", True, id="another protocol"),
    pytest.param(saying(b"HTTP/1.1 200 ok\r\nx: " + b"y" * 200_000), "is no HTTP", True, id="endless header"),
    pytest.param(
        saying(b"HTTP/1.1 200 ok\r\n\r\nHTTP/1.1 200 OK\r\n\r\nevil"), "said more than", False, id="injected answer"
    ),
    pytest.param(_hangs_up, "", True, id="hangs up"),
]


@pytest.mark.parametrize(("play", "words", "passing"), REFUSING)
async def test_a_proxy_that_refuses_is_named_without_its_password(server, asker, monkeypatch, play, words, passing):
    monkeypatch.setenv("https_proxy", server.url.replace("://", f"://{WRITTEN}@"))
    server.play(play)

    with pytest.raises(ModelError) as caught:
        await asker.said(asker.model(ANTHROPIC, url=f"https://{HOST}", retries=2))

    message = str(caught.value)
    assert caught.value.kind == "network"
    assert words in message
    assert len(server.asked) == (3 if passing else 1)
    for secret in (NAME, PASSWORD, "sésame", WRITTEN, "%3A", KEY):
        assert secret not in message
    await server.left()


async def test_a_proxy_of_a_plain_host_that_wants_a_password_is_told_of(server, asker, monkeypatch):
    async def play(exchange: Exchange) -> None:
        await exchange.whole(407, "no", kind="text/plain")

    monkeypatch.setenv("http_proxy", server.url)
    server.play(play)

    with pytest.raises(ModelError, match="behind a proxy that wants a name and a password") as caught:
        await asker.said(asker.model(ANTHROPIC, url=f"http://{HOST}"))
    assert caught.value.kind == "network"


async def test_a_plain_host_goes_through_the_proxy_of_the_environment(server, asker, monkeypatch):
    monkeypatch.setenv("http_proxy", server.url.replace("://", "://me:p%20w@"))
    server.play(answering(ANTHROPIC.stream))

    await asker.said(asker.model(ANTHROPIC, url=f"http://{HOST}/base"))

    assert server.asked[0].path == f"http://{HOST}/base/v1/messages"
    assert server.asked[0].headers["host"] == HOST
    assert server.asked[0].headers["proxy-authorization"] == f"Basic {b64encode(b'me:p w').decode()}"


async def test_this_machine_is_never_asked_through_a_proxy(server, asker, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    server.play(answering(ANTHROPIC.stream))

    assert (await heard(asker.model(ANTHROPIC)))[0] == []


async def test_a_proxy_that_is_not_there_is_named_and_not_the_host_blamed(server, monkeypatch):
    listening = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    listening.close()
    await listening.wait_closed()
    monkeypatch.setenv("https_proxy", f"http://{WRITTEN}@127.0.0.1:{port}")
    async with asking(server) as asker:
        with pytest.raises(ModelError, match=rf"the proxy 127\.0\.0\.1:{port} cannot be reached") as caught:
            await asker.said(asker.model(ANTHROPIC, url=f"https://{HOST}", retries=0))
    assert NAME not in str(caught.value)


UNUSABLE = [
    pytest.param("socks5://me:secretpw@10.0.0.1:1080", "kind socks5 cannot be used", id="socks5"),
    pytest.param("socks5h://me:secretpw@10.0.0.1", "kind socks5h cannot be used", id="socks5h"),
    pytest.param("ftp://me:secretpw@10.0.0.1", "kind ftp cannot be used", id="ftp"),
    pytest.param("http://me:secretpw@10.0.0.1:99999", "cannot be read", id="no such port"),
    pytest.param("http://me:secretpw@10.0.0.1:port", "cannot be read", id="a word for a port"),
    pytest.param("http://me:secretpw@[::1", "cannot be read", id="half an address"),
    pytest.param("http://me:secretpw@", "names no machine", id="no machine"),
]


@pytest.mark.parametrize("variable", ["https_proxy", "ALL_PROXY"])
@pytest.mark.parametrize(("url", "words"), UNUSABLE)
async def test_a_proxy_that_cannot_be_used_is_refused_at_once_and_not_gone_around(
    asker: Asker, monkeypatch, variable, url, words
):
    monkeypatch.setenv(variable, url)

    with pytest.raises(ModelError) as caught:
        await asker.said(asker.model(ANTHROPIC, url=f"https://{HOST}"))

    assert words in str(caught.value)
    assert "secretpw" not in str(caught.value)
    assert caught.value.kind == "network"
    assert asker.sleeps.seconds == []


EXCEPTED = [
    pytest.param("*", "https://api.models.example", True, id="all"),
    pytest.param("models.example", "https://models.example", True, id="the name"),
    pytest.param("MODELS.Example", "https://models.example", True, id="the name in capitals"),
    pytest.param("models.example", "https://api.models.example", True, id="a name below"),
    pytest.param(".models.example", "https://api.models.example", True, id="a name below, with a dot"),
    pytest.param("*.models.example", "https://api.models.example", True, id="a name below, with a star"),
    pytest.param("other, models.example ,x", "https://models.example", True, id="among others"),
    pytest.param("models.example", "https://evilmodels.example", False, id="another name that ends so"),
    pytest.param("models.example", "https://models.example.evil", False, id="another name that begins so"),
    pytest.param("models.example:8443", "https://models.example:8443", True, id="a port"),
    pytest.param("models.example:8443", "https://models.example", False, id="another port"),
    pytest.param("models.example:443", "https://models.example", True, id="the port that is meant"),
    pytest.param("10.1.2.3", "https://10.1.2.3", True, id="an address"),
    pytest.param("10.0.0.0/8", "https://10.1.2.3:9", True, id="a network"),
    pytest.param("10.0.0.0/8", "https://11.1.2.3", False, id="another network"),
    pytest.param("fd00::/8", "https://[fd00::1]", True, id="a network of the sixth version"),
    pytest.param("[fd00::1]:9", "https://[fd00::1]:9", True, id="an address with brackets and a port"),
    pytest.param("fd00::1", "https://[fd00::1]", True, id="an address of the sixth version"),
    pytest.param("", "https://models.example", False, id="nobody"),
    pytest.param(",, ,.", "https://models.example", False, id="nobody in many words"),
]


@pytest.mark.parametrize(("listed", "url", "straight"), EXCEPTED)
def test_who_is_excepted_is_asked_without_the_proxy(monkeypatch, listed, url, straight):
    """A proxy that cannot be used tells whether it would have been."""
    monkeypatch.setenv("https_proxy", "socks5://10.0.0.1")
    monkeypatch.setenv("no_proxy", listed)

    if straight:
        assert route(url).headers == ()
    else:
        with pytest.raises(Unreachable, match="socks5"):
            route(url)
