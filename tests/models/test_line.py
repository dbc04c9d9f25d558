"""The line itself: secured and verified, through proxies, and closed when it is no longer needed."""

import asyncio
import contextlib
import datetime as dt
import ipaddress
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from ferrule.models.model import ModelError
from ferrule.wire.delta import Ended

from .conftest import KEY, Asker, heard, question
from .server import WAIT_SECONDS, Exchange, serving
from .spoken import ALL, ANTHROPIC

APIS = [pytest.param(one, id=one.api) for one in ALL]


def certificate(folder) -> tuple[str, ssl.SSLContext]:
    """A certificate for this machine that signs itself, as a file, and a server's end of it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ferrule tests")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    public, private = folder / "cert.pem", folder / "key.pem"
    public.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    no_password = serialization.NoEncryption()
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, no_password),
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(public, private)
    return str(public), context


async def streaming(exchange: Exchange) -> None:
    await exchange.stream(ANTHROPIC.stream)


@contextlib.asynccontextmanager
async def asking(server):
    asker = Asker(server)
    try:
        yield asker
    finally:
        for model in asker.made:
            await model.close()


@pytest.mark.parametrize("spoken", APIS)
async def test_a_secured_line_carries_turns_over_one_connection(spoken, tmp_path, monkeypatch):
    public, context = certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", public)

    async def play(exchange: Exchange) -> None:
        await exchange.stream(spoken.stream)

    async with serving(ssl=context) as server, asking(server) as asker:
        server.play(play)
        model = asker.model(spoken)
        said = [await asker.said(model) for _ in range(3)]
        assert [one.parts for one in said] == [spoken.parts] * 3
        assert server.connections == 1


async def test_a_large_body_goes_over_a_secured_line(tmp_path, monkeypatch):
    from ferrule.wire.turn import Text, Turn

    public, context = certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", public)
    async with serving(ssl=context) as server, asking(server) as asker:
        server.play(streaming)
        await asker.said(asker.model(ANTHROPIC), question(Turn("user", (Text("x" * 3_000_000),))))
        assert len(server.asked[0].body) > 3_000_000


async def test_a_certificate_that_nobody_vouches_for_ends_it_at_once(tmp_path):
    _, context = certificate(tmp_path)
    async with serving(ssl=context) as server, asking(server) as asker:
        server.play(streaming)
        with pytest.raises(ModelError, match="certificate cannot be trusted") as caught:
            await asker.said(asker.model(ANTHROPIC))
        assert caught.value.kind == "network"
        assert asker.sleeps.seconds == []
        assert server.asked == []


async def test_a_plain_host_goes_through_the_proxy_of_the_environment(server, asker, monkeypatch):
    monkeypatch.setenv("http_proxy", server.url.replace("://", "://me:p%20w@"))
    monkeypatch.setenv("no_proxy", "")
    server.play(streaming)

    await asker.said(asker.model(ANTHROPIC, url="http://models.example/base"))

    assert server.asked[0].path == "http://models.example/base/v1/messages"
    assert server.asked[0].headers["host"] == "models.example"
    assert server.asked[0].headers["proxy-authorization"].startswith("Basic ")


async def test_a_secured_host_is_tunnelled_to_and_the_proxy_sees_no_key(tmp_path, monkeypatch, server):
    """The tunnel is asked for by the host's name and its port; nothing of what goes through it is in the clear."""
    seen = bytearray()

    async def tunnel(exchange: Exchange) -> None:
        seen.extend(f"{exchange.method} {exchange.path} {exchange.headers}".encode())
        await exchange.send(b"HTTP/1.1 200 ok\r\n\r\n")
        seen.extend(await asyncio.wait_for(exchange.reader.read(2000), WAIT_SECONDS))
        exchange.cut()

    monkeypatch.setenv("https_proxy", server.url)
    monkeypatch.setenv("no_proxy", "")
    server.play(tunnel)
    async with asking(server) as asker:
        with pytest.raises(ModelError) as caught:
            await asker.said(asker.model(ANTHROPIC, url="https://models.example", retries=0))

    assert caught.value.kind == "network"
    assert seen.startswith(b"CONNECT models.example:443")
    assert KEY.encode() not in seen


async def test_this_machine_is_never_asked_through_a_proxy(server, asker, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    server.play(streaming)

    assert (await heard(asker.model(ANTHROPIC)))[0] == []


async def test_a_model_that_is_closed_leaves_no_connection(server, asker):
    gone = asyncio.Event()

    async def play(exchange: Exchange) -> None:
        await exchange.stream(ANTHROPIC.stream)
        await exchange.gone()
        gone.set()

    server.play(play)
    model = asker.model(ANTHROPIC)
    await asker.said(model)
    await model.close()

    await asyncio.wait_for(gone.wait(), WAIT_SECONDS)


BROKEN = [
    pytest.param(b"", id="nothing"),
    pytest.param(b"SSH-2.0-OpenSSH_9.6\r\n", id="another protocol"),
    pytest.param(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", id="no chunk"),
    pytest.param(b"HTTP/1.1 200 OK\r\n" + b"x: " + b"y" * 300_000, id="endless header"),
    pytest.param(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 10\r\n\r\ndata", id="short body"
    ),
]


@pytest.mark.parametrize("data", BROKEN)
async def test_what_is_no_http_is_a_failure_that_may_pass(server, asker, data):
    async def play(exchange: Exchange) -> None:
        await exchange.send(data)
        exchange.writer.close()

    server.play(play, streaming)

    again, deltas = await heard(asker.model(ANTHROPIC))

    assert len(again) == 1
    assert deltas[-1].reason == "tools"


@pytest.mark.parametrize("at", range(8))
async def test_an_end_that_comes_in_two_parts_keeps_nobody_waiting_and_the_connection_open(server, asker, at):
    told = asyncio.Event()
    end = b"\r\n0\r\n\r\n"

    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        data = b"%x\r\n%b" % (len(ANTHROPIC.stream), ANTHROPIC.stream)
        await exchange.send(data + end[:at])
        await asyncio.wait_for(told.wait(), WAIT_SECONDS)
        await exchange.send(end[at:])

    server.play(play)
    model = asker.model(ANTHROPIC)
    async with asyncio.timeout(WAIT_SECONDS):
        for _ in range(2):
            told.clear()
            async for delta in model.ask(question()):
                if isinstance(delta, Ended):
                    told.set()
            # The rest is read in the background, which gets its turn while a tool would run.
            while model._line._finishing:
                await asyncio.sleep(0)

    assert server.connections == 1
