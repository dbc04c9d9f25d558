"""A proxy on a real socket in front of hosts that tests play, and clients that ask it byte by byte."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, NamedTuple

import httpx2

from ferrule.serve.http_server import listen
from ferrule.serve.proxy.exchange import Shop
from ferrule.serve.proxy.records import Record
from ferrule.serve.proxy.server import open_shop, serve_proxy
from ferrule.settings import KnownModel, ModelHost, Models, ProxySettings, Settings
from tests.models.server import Exchange, Play, Server
from tests.models.spoken import ANTHROPIC, CHAT, GEMINI, RESPONSES, Spoken, events

TOKEN = "the-token-of-the-tests-0123456789"
LIMIT_SECONDS = 20
"""No test waits longer than this for anything."""
BY_API = {one.api: one for one in (ANTHROPIC, CHAT, RESPONSES, GEMINI)}
PRICED = {"m": KnownModel(input=1.0, output=2.0, cache_read=0.1, cache_write=1.25, window=200_000, most_output=64_000)}


class Route(NamedTuple):
    """How the clients of one API ask for an answer."""

    path: Callable[[bool], str]
    body: Callable[[str, bool], dict[str, Any]]
    headers: dict[str, str]


def _gemini_path(stream: bool) -> str:
    return f"/v1beta/models/asked:{'streamGenerateContent?alt=sse' if stream else 'generateContent'}"


ROUTES = {
    "anthropic": Route(
        lambda _: "/v1/messages",
        lambda said, stream: {
            "model": "asked",
            "max_tokens": 100,
            "messages": [{"role": "user", "content": said}],
            "stream": stream,
        },
        {"x-api-key": TOKEN, "anthropic-version": "2023-06-01"},
    ),
    "openai-chat": Route(
        lambda _: "/v1/chat/completions",
        lambda said, stream: {"model": "asked", "messages": [{"role": "user", "content": said}], "stream": stream},
        {"authorization": f"Bearer {TOKEN}"},
    ),
    "openai-responses": Route(
        lambda _: "/v1/responses",
        lambda said, stream: {"model": "asked", "input": said, "stream": stream},
        {"authorization": f"Bearer {TOKEN}"},
    ),
    "gemini": Route(
        _gemini_path,
        lambda said, _: {"contents": [{"role": "user", "parts": [{"text": said}]}]},
        {"x-goog-api-key": TOKEN},
    ),
}
APIS = tuple(ROUTES)


class Proxied:
    """A proxy that runs."""

    def __init__(self, shop: Shop, port: int, client: httpx2.AsyncClient, ended: list[Record]) -> None:
        self.shop = shop
        self.port = port
        self.client = client
        self.ended = ended
        """The records of all requests that are over."""
        self.stop: Callable[[], object] = lambda: None

    async def ask(
        self, api: str, said: str = "Hello.", *, stream: bool = False, model: str = "", **more: Any
    ) -> httpx2.Response:
        """A whole answer of the proxy to a client of an API."""
        return await self.send(api, ask(api, said, stream=stream, model=model, **more), stream=stream, model=model)

    async def send(self, api: str, body: Any, *, stream: bool = False, model: str = "") -> httpx2.Response:
        route = ROUTES[api]
        path = route.path(stream)
        if model and api == "gemini":
            path = path.replace("asked", model)
        return await self.post(path, body, route.headers)

    async def post(self, path: str, body: Any, headers: dict[str, str]) -> httpx2.Response:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self.client.post(path, content=data, headers=headers)

    async def get(self, path: str, headers: dict[str, str] | None = None) -> httpx2.Response:
        given = {"authorization": f"Bearer {TOKEN}"} if headers is None else headers
        return await self.client.get(path, headers=given)

    @contextlib.asynccontextmanager
    async def streaming(self, api: str, said: str = "Hello.", **more: Any) -> AsyncIterator["Reading"]:
        """A stream that is read piece by piece; the connection is closed at the end."""
        route = ROUTES[api]
        body = ask(api, said, stream=True, **more)
        request = self.client.stream("POST", route.path(True), content=json.dumps(body), headers=route.headers)
        async with request as response:
            yield Reading(response)

    async def raw(self, data: bytes) -> bytes:
        """Everything that comes back for these bytes until the proxy closes the connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        seen = b""
        try:
            writer.write(data)
            async with asyncio.timeout(LIMIT_SECONDS):
                while more := await reader.read(1 << 16):
                    seen += more
        except ConnectionError:
            pass  # it closes while there is more to be read
        finally:
            writer.close()
        return seen

    async def until(self, holds: Callable[[], object]) -> None:
        """Waits until something holds. It is looked at in every round of the event loop."""
        async with asyncio.timeout(LIMIT_SECONDS):
            while not holds():
                await asyncio.sleep(0.001)


class Reading:
    """An answer that is being read."""

    def __init__(self, response: httpx2.Response) -> None:
        self.response = response
        self.seen = b""
        self._pieces = response.aiter_raw()

    async def until(self, *words: bytes) -> bytes:
        """Reads until all of these have come."""
        async with asyncio.timeout(LIMIT_SECONDS):
            while not all(word in self.seen for word in words):
                self.seen += await anext(self._pieces)
        return self.seen

    async def rest(self) -> bytes:
        async with asyncio.timeout(LIMIT_SECONDS):
            async for piece in self._pieces:
                self.seen += piece
        return self.seen


def ask(api: str, said: str, *, stream: bool, model: str = "", **more: Any) -> dict[str, Any]:
    """The body of a client."""
    body = {**ROUTES[api].body(said, stream), **more}
    return {**body, "model": model} if model and api != "gemini" else body


def hosts(*servers: Server, api: str = "openai-chat") -> Models:
    """Settings with a host for each server: `up0`, `up1` and so on."""
    made = {f"up{number}": ModelHost(url=server.url, api=api) for number, server in enumerate(servers)}  # type: ignore[arg-type]
    return Models(hosts=made, known=PRICED)


@contextlib.asynccontextmanager
async def proxied(
    known: Models,
    /,
    *,
    told: Iterable[Callable[[Record], object]] = (),
    tape: str = "",
    names: Sequence[str] = (),
    host: str = "127.0.0.1",
    **settings: Any,
) -> AsyncIterator[Proxied]:
    """A proxy with these settings; what is asked for goes to `up0:m` if they say nothing else."""
    settings.setdefault("models", {"*": "up0:m"})
    made = ProxySettings(**settings)
    listening, _, port = listen("127.0.0.1:0")
    ended: list[Record] = []
    ready = asyncio.Event()
    client = httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=LIMIT_SECONDS, trust_env=False)
    everything = Settings(models=known, proxy=made)
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(listening.close)
        await stack.enter_async_context(client)
        opening = open_shop(everything, made, token=TOKEN, told=[*told, ended.append], tape=tape)
        shop = await stack.enter_async_context(opening)
        serving = asyncio.create_task(
            serve_proxy(shop, listening, host=host, token=TOKEN, names=names, ready=ready.set)
        )
        proxy = Proxied(shop, port, client, ended)
        proxy.stop = serving.cancel
        try:
            await asyncio.wait_for(ready.wait(), LIMIT_SECONDS)
            yield proxy
        finally:
            serving.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await serving


def says(spoken: Spoken) -> Play:
    """A host that gives a whole answer, as a stream or in one piece, whichever is asked for."""

    async def play(exchange: Exchange) -> None:
        await exchange.stream(spoken.stream)

    return play


def words(*pieces: str, usage: dict[str, int] | None = None) -> bytes:
    """A stream of Chat that says some words."""
    counted = usage or {"prompt_tokens": 10, "completion_tokens": 5}
    return events(
        *(_chunk({"content": piece}) for piece in pieces),
        {**_chunk({}), "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": counted},
        "[DONE]",
    )


def piece(said: str) -> bytes:
    return events(_chunk({"content": said}))


def call_piece(arguments: str, *, name: str | None = None) -> bytes:
    """A piece of a call in a stream of Chat; the first one has the name."""
    function = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    more = {} if name is None else {"id": "call_1", "type": "function"}
    return events(_chunk({"tool_calls": [{"index": 0, "function": function, **more}]}))


def _chunk(delta: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": None}],
    }


def talks(*pieces: str, usage: dict[str, int] | None = None) -> Play:
    """A host that says some words and ends."""

    async def play(exchange: Exchange) -> None:
        await exchange.stream(words(*pieces, usage=usage))

    return play


def fails(status: int, said: str = "It failed.", **headers: str) -> Play:
    """A host that refuses; it may be asked again at once if it says nothing else."""

    async def play(exchange: Exchange) -> None:
        given = headers if "retry_after" in headers else {"retry_after_ms": "1", **headers}
        await exchange.whole(status, {"error": {"message": said}}, **given)

    return play


class Holding:
    """A host that begins and says no more until it is let go."""

    def __init__(self, begun: bytes = b"") -> None:
        self.begun = begun
        self.held = asyncio.Event()
        """It says no more."""
        self.let_go = asyncio.Event()
        self.gone = asyncio.Event()
        """The connection was closed before it was let go."""

    async def __call__(self, exchange: Exchange) -> None:
        await exchange.begin()
        if self.begun:
            await exchange.chunk(self.begun)
        self.held.set()
        gone = asyncio.ensure_future(exchange.gone())
        freed = asyncio.ensure_future(self.let_go.wait())
        await asyncio.wait((gone, freed), timeout=LIMIT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        is_gone = gone.done()
        for one in (gone, freed):
            one.cancel()
        await asyncio.gather(gone, freed, return_exceptions=True)
        if is_gone:
            self.gone.set()
            raise ConnectionError
        await exchange.chunk(words("done"))
        await exchange.end()


async def happened(event: asyncio.Event) -> None:
    await asyncio.wait_for(event.wait(), LIMIT_SECONDS)
