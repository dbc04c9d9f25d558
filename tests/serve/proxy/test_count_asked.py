"""Tokens are counted by the host that answers if it can, and here if it cannot, fails, or rests."""

import asyncio

import pytest

from tests.models.server import Exchange, Play, serving
from tests.serve.proxy.proxied import Holding, ask, fails, happened, hosts, proxied

PATHS = {
    "anthropic": ("/v1/messages/count_tokens", "input_tokens"),
    "openai-responses": ("/v1/responses/input_tokens", "input_tokens"),
    "gemini": ("/v1beta/models/asked:countTokens", "totalTokens"),
}
AT_HOST = {
    "anthropic": "/v1/messages/count_tokens",
    "openai-responses": "/responses/input_tokens",
    "gemini": "/models/m:countTokens",
}


def counts(value: object) -> Play:
    async def play(exchange: Exchange) -> None:
        await exchange.whole(200, {"input_tokens": value, "totalTokens": value})

    return play


async def counted(proxy, api: str = "anthropic") -> int:
    path, field = PATHS[api]
    headers = {"authorization": "Bearer the-token-of-the-tests-0123456789"}
    response = await proxy.post(path, ask(api, "Hello, count me.", stream=False), headers)
    assert response.status_code == 200
    return int(response.json()[field])


@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize("host", PATHS)
async def test_the_host_counts_for_every_client(api, host):
    async with serving() as server:
        server.play(counts(4321))
        async with proxied(hosts(server, api=host)) as proxy:
            assert await counted(proxy, api) == 4321

    (asked,) = server.asked
    assert asked.path == AT_HOST[host]
    assert "Hello, count me." in str(asked.value)


@pytest.mark.parametrize(
    ("plays", "times"),
    [
        pytest.param([fails(404, "No such page.")], 1, id="it-cannot"),
        pytest.param([counts("many")], 1, id="nonsense"),
        pytest.param([counts(True)], 1, id="no-number"),
        pytest.param([fails(401)], 2, id="it-may-be-allowed-later"),
        pytest.param([fails(500)], 6, id="it-may-work-later"),
    ],
)
async def test_a_host_that_cannot_count_is_not_asked_again_and_one_that_fails_is(plays, times):
    async with serving() as server:
        server.play(*plays)
        async with proxied(hosts(server, api="anthropic")) as proxy:
            found = [await counted(proxy) for _ in range(2)]

    assert found[0] == found[1]
    assert 5 < found[0] < 30
    assert len(server.asked) == times


async def test_the_settings_keep_counts_here():
    async with serving() as server:
        async with proxied(hosts(server, api="anthropic"), count_upstream=False) as proxy:
            assert 5 < await counted(proxy) < 30
        assert server.asked == []


async def test_a_model_that_rests_is_not_asked_to_count():
    async with serving() as server:
        server.play(fails(500))
        async with proxied(hosts(server, api="anthropic"), failures=1, retries=0) as proxy:
            await proxy.ask("anthropic")
            assert 5 < await counted(proxy) < 30

    assert len(server.asked) == 1


async def test_a_client_that_goes_away_is_not_counted_for():
    play = Holding()
    async with serving() as server:
        server.play(play)
        async with proxied(hosts(server, api="anthropic")) as proxy:
            asking = asyncio.create_task(counted(proxy))
            await happened(play.held)
            asking.cancel()
            await happened(play.gone)
