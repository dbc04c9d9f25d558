"""Addresses as people write them, and what is said where nobody answers there: what to look at, by its name."""

import asyncio
import socket

import pytest

from ferrule.core.errors import ConfigError
from ferrule.models import ModelError, RetryNotice
from ferrule.models.hosts import find_host
from ferrule.settings import ModelHost, Models
from tests.rows import each_row

from .conftest import heard, question
from .server import Exchange, serving
from .spoken import ANTHROPIC, CHAT

WRITTEN = [
    pytest.param("openai-chat", "OPENAI_BASE_URL", "https://p.example/v1/chat/completions", "/v1", id="chat's path"),
    pytest.param("openai", "OPENAI_BASE_URL", "https://p.example/v1/responses/", "/v1", id="responses' path"),
    pytest.param("openai", "OPENAI_BASE_URL", "https://p.example", "", id="others may be at the root"),
    pytest.param("anthropic", "ANTHROPIC_BASE_URL", "https://p.example/v1/messages", "", id="messages' path"),
    pytest.param("anthropic", "ANTHROPIC_BASE_URL", "https://p.example/a/v1", "/a", id="behind a path"),
    pytest.param("gemini", "GOOGLE_GEMINI_BASE_URL", "https://p.example", "/v1beta", id="gemini without its version"),
    pytest.param("gemini", "GEMINI_BASE_URL", "https://p.example/v1", "/v1", id="gemini with another version"),
    pytest.param("vllm", "VLLM_BASE_URL", "https://p.example/", "/v1", id="vllm without its version"),
    pytest.param("llamacpp", "LLAMACPP_BASE_URL", "https://p.example/v1/", "/v1", id="llama.cpp with its version"),
    pytest.param("lmstudio", "LMSTUDIO_BASE_URL", "https://p.example", "/v1", id="lm studio without its version"),
]


@each_row(("name", "variable", "url", "path"), WRITTEN)
def test_an_address_is_understood_however_much_of_the_path_it_has(name, variable, url, path):
    by_variable = find_host(name, Models(), {variable: url})
    by_setting = find_host(name, Models(hosts={name: ModelHost(url=url)}), {variable: "https://other.example"})

    assert by_variable.url == by_setting.url == f"https://p.example{path}"
    assert (by_variable.where, by_setting.where) == (variable, f"models.hosts.{name}.url in the settings")


def test_an_address_of_a_host_that_nobody_knows_stays_as_it_is():
    settings = Models(hosts={"mine": ModelHost(url="https://p.example")})

    assert find_host("mine", settings, {}).url == "https://p.example"


def test_what_is_wrong_with_an_address_names_the_variable_that_has_it():
    with pytest.raises(ConfigError, match=r"\(set by OPENAI_BASE_URL\) must begin with https"):
        find_host("openai", Models(), {"OPENAI_BASE_URL": "ftp://x"})


@pytest.mark.parametrize("quote", ['"', "'"])
def test_a_key_that_stands_in_quotes_is_told_of_before_a_host_refuses_it(quote):
    with pytest.raises(ConfigError, match="OPENAI_API_KEY stands in quotes") as caught:
        find_host("openai", Models(), {"OPENAI_API_KEY": f"{quote}sk-the-secret{quote}"})

    assert "secret" not in str(caught.value)


async def _nowhere(exchange: Exchange) -> None:
    await exchange.whole(404, "404 page not found", kind="text/plain")


async def test_a_wrong_address_is_told_with_what_most_addresses_have(server, asker):
    server.play(_nowhere)

    with pytest.raises(ModelError) as caught:
        await heard(asker.model(CHAT))
    assert "look at models.hosts.deepseek.url in the settings; most such addresses end in /v1" in str(caught.value)

    with pytest.raises(ModelError) as caught:
        await heard(asker.model(CHAT, url=f"{server.url}/v2"))
    assert "/v1" not in str(caught.value)


async def test_what_a_host_said_ends_like_a_sentence(server, asker):
    async def fail(exchange: Exchange) -> None:
        await exchange.whole(500, {"error": {"message": "It broke"}})

    server.play(fail)

    with pytest.raises(ModelError, match=r"It said: It broke\. It was asked 2 times\.$"):
        await heard(asker.model(CHAT, retries=1))


async def test_a_name_that_nobody_has_is_not_asked_for_again(asker, monkeypatch):
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    # What a name server says is not the same everywhere.
    monkeypatch.setattr("socket.getaddrinfo", unknown)

    with pytest.raises(ModelError, match=r"the name nosuch\.invalid is not known.*look at the network, and at models"):
        await heard(asker.model(ANTHROPIC, url="https://nosuch.invalid"))

    assert asker.sleeps.seconds == []


async def test_a_host_that_is_asked_again_is_told_with_what_went_wrong(asker):
    async with serving() as brief:
        brief.play(_streams)
        model = asker.model(CHAT, url=brief.url, retries=1)
        await heard(model)

    again = await anext(model.ask(question()))

    assert again == RetryNotice("the host could not be reached: connection refused", 0.5, 1, "network")


async def _streams(exchange: Exchange) -> None:
    await exchange.stream(CHAT.stream)


async def _plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
    writer.close()


async def test_a_plain_server_that_is_asked_for_a_secured_line_says_how_to_write_its_address(asker):
    async with await asyncio.start_server(_plain, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]

        with pytest.raises(ModelError, match=r"does not speak HTTPS there.*begins with http://"):
            await heard(asker.model(ANTHROPIC, url=f"https://127.0.0.1:{port}"))

    assert asker.sleeps.seconds == []


@pytest.mark.parametrize(
    "content", [pytest.param(None, id="no file"), pytest.param("no certificate", id="no certificate")]
)
async def test_certificates_that_cannot_be_read_are_named_by_their_variable(asker, tmp_path, monkeypatch, content):
    path = tmp_path / "authority.pem"
    if content is not None:
        path.write_text(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))

    with pytest.raises(ModelError, match="that SSL_CERT_FILE or SSL_CERT_DIR name cannot be read") as caught:
        await heard(asker.model(ANTHROPIC, url="https://127.0.0.1:9"))

    assert caught.value.kind == "network"
    assert asker.sleeps.seconds == []


async def test_a_proxy_that_is_not_there_names_the_variables(asker, monkeypatch):
    monkeypatch.setenv("https_proxy", "http://me:secretpw@127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)

    with pytest.raises(ModelError, match="look at HTTPS_PROXY and NO_PROXY") as caught:
        await heard(asker.model(ANTHROPIC, url="https://models.example", retries=0))

    assert "secretpw" not in str(caught.value)
