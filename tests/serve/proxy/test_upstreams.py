"""The models that are asked: each once, whatever it is called, no more than can be kept, and never the proxy itself."""

import pytest

from ferrule.core.errors import ConfigError
from ferrule.models import ModelError
from ferrule.serve.proxy.upstreams import Upstreams
from ferrule.settings import ModelHost, Models, ProxySettings
from tests.models.server import serving
from tests.serve.proxy.proxied import hosts, proxied, talks

MODELS = Models(
    hosts={"up": ModelHost(url="http://127.0.0.1:9/v1"), "here": ModelHost(url="http://127.0.0.1:8790/v1")},
    roles={"quick": "up:m"},
)
KEYS = {"GEMINI_API_KEY": "k" * 20, "ANTHROPIC_API_KEY": "k" * 20}


def upstreams(environment: dict[str, str] | None = None, address: str = "") -> Upstreams:
    return Upstreams(MODELS, ProxySettings(), environment=KEYS | (environment or {}), address=address)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("up:m", "quick"),
        ("opus", "anthropic:claude-opus-5-5"),
        ("google:gemini-3-pro", "gemini-3-pro"),
        (" up:m ", "up:m"),
    ],
)
async def test_a_model_is_one_by_all_of_its_names(first, second):
    made = upstreams()

    assert made.find(first) is made.find(second)
    assert len(made.list_upstreams()) == 1
    assert len(made.limits()) == 1
    await made.close()


async def test_models_of_one_host_share_its_places():
    made = upstreams()

    assert made.find("up:a").limits is made.find("up:b").limits
    assert made.find("up:a").limits is not made.find("anthropic:claude-opus-5-5").limits
    assert made.find("up:a").breaker is not made.find("up:b").breaker
    await made.close()


@pytest.mark.parametrize(
    ("name", "error"), [("nobody:m", ConfigError), ("openai:gpt-6", ModelError), ("up:", ConfigError)]
)
async def test_a_model_that_cannot_be_asked_is_not_kept(name, error):
    made = upstreams()

    assert not made.is_usable(name)
    with pytest.raises(error):
        made.find(name)
    assert made.list_upstreams() == []


async def test_so_many_are_kept_and_those_that_are_being_asked_stay():
    made = upstreams()
    busy = made.find("up:busy")
    busy.busy += 1
    often = made.find("up:often")
    for number in range(1_000):
        made.find(f"up:{number}")
        assert made.find("up:often") is often

    assert len(made.list_upstreams()) == 256
    assert made.find("up:busy") is busy
    await made.close()


@pytest.mark.parametrize(
    ("name", "environment", "address"),
    [
        pytest.param("here:m", {}, "127.0.0.1:8790", id="a-host-of-the-settings"),
        pytest.param("here:m", {}, "0.0.0.0:8790", id="everywhere"),
        pytest.param("here:m", {}, "localhost:8790", id="another-name"),
        pytest.param(
            "anthropic:claude-opus-5-5",
            {"ANTHROPIC_BASE_URL": "http://localhost:8790"},
            "127.0.0.1:8790",
            id="the-variable-for-clients",
        ),
    ],
)
async def test_the_proxy_never_asks_itself(name, environment, address):
    made = upstreams(environment, address)

    with pytest.raises(ConfigError, match="leads back to this proxy") as refused:
        made.find(name)

    assert "Unset it" in str(refused.value)
    assert upstreams(environment, "127.0.0.1:8791").is_usable(name)


async def test_a_model_that_is_forgotten_closes_its_connections():
    async with serving() as server:
        server.play(talks("Hi."))
        async with proxied(hosts(server), models={"alias": "up0:m"}) as proxy:
            assert (await proxy.ask("openai-chat", model="up0:first")).status_code == 200
            for number in range(300):
                proxy.shop.upstreams.find(f"up0:{number}")
            await server.left()

            assert (await proxy.ask("openai-chat", model="up0:first")).status_code == 200
