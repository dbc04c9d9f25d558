"""Where a case is played: the upstream, a proxy in front of it, and clients in front of that."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import msgspec

from bench.proxy import ask as asking
from bench.proxy.hear import Clients, Heard
from bench.proxy.seen import Seen, seen
from bench.proxy.talk import APIS, Ask
from bench.proxy.upstream import Got, Play, Upstream, serving
from ferrule.serve.proxy.exchange import Shop
from ferrule.serve.proxy.records import RequestRecords
from ferrule.serve.proxy.server import serve_proxy
from ferrule.serve.proxy.upstreams import Routes, Upstreams
from ferrule.settings import ModelHost, Models, ProxySettings, Settings

TOKEN = "the-token-of-the-table"  # a loopback server of this process
HOSTS = {
    "anthropic": "anthropic",
    "openai-chat": "openai-chat",
    "openai-responses": "openai",
    "gemini": "gemini",
}
"""Each API, and the host that is its maker's."""
KEY = "sk-a-key-of-the-upstream"


_ASK = Ask()


class NotServedError(Exception):
    """The program does not offer this at all."""


class Target(Protocol):
    """A proxy that is judged."""

    label: str

    async def clients(self, variant: str) -> Clients:
        """Clients of it. Raises NotServedError."""

    def model(self, case: "Case", client: str, wire: str) -> str:
        """The name by which a client asks for a model behind a wire. Raises NotServedError."""


@dataclass
class Scene:
    """One case with one client API, one upstream API, as a stream or whole."""

    case: "Case"
    client: str
    wire: str
    stream: bool
    upstream: Upstream
    clients: Clients
    name: str
    is_ours: bool = True
    heard: list[Heard] = field(default_factory=list)

    def play(self, *plays: Play) -> None:
        self.upstream.play(*plays)

    async def ask(self, given: Ask | None = None, *, headers: dict[str, str] | None = None, **own: Any) -> Heard:
        """Ask as a program would; `own` are fields of the client's API."""
        ask = given or self.case.ask
        body = asking.body(replace(ask, own={**ask.own, **own}), self.client, self.name, stream=self.stream)
        return await self.send(body, headers=headers)

    async def send(self, body: dict[str, Any], *, headers: dict[str, str] | None = None) -> Heard:
        heard = await self.clients.ask(self.client, self.name, body, stream=self.stream, headers=headers)
        self.heard.append(heard)
        return heard

    def body(self, ask: Ask | None = None, **own: Any) -> dict[str, Any]:
        """A request in the client's words."""
        made = asking.body(ask or self.case.ask, self.client, self.name, stream=self.stream)
        return {**made, **own}

    @property
    def got(self) -> list[Got]:
        """What the upstream received."""
        return self.upstream.got

    @property
    def last(self) -> dict[str, Any]:
        assert self.got, "the upstream was never asked"
        assert self.got[-1].wire == self.wire, f"{self.got[-1].wire} was asked"
        return self.got[-1].body

    def seen(self) -> Seen:
        return seen(self.last, self.wire)


Act = Callable[[Scene], Awaitable[None]]


@dataclass(frozen=True)
class Case:
    """What is said and asked, and what must be true of what both sides read."""

    group: str
    name: str
    act: Act
    ask: Ask = _ASK
    clients: tuple[str, ...] = APIS
    wires: tuple[str, ...] = APIS
    modes: tuple[bool, ...] = (True, False)
    """As a stream, whole, or both."""
    host: str = ""
    """The host, if it is not the maker's own."""
    model: str = "m"
    variant: str = "plain"
    """The settings of the proxy; all but `plain` are of ours alone."""
    own: bool = False
    """Is it about what only our proxy promises? Others are not asked it."""
    where: Callable[[str, str, bool], bool] = lambda _client, _wire, _stream: True
    """Which of the combinations are meant at all."""

    def combinations(self) -> list[tuple[str, str, bool]]:
        return [
            (client, wire, stream)
            for client in self.clients
            for wire in self.wires
            for stream in self.modes
            if self.where(client, wire, stream)
        ]


async def play(case: Case, combination: tuple[str, str, bool], upstream: Upstream, target: Target) -> None:
    """Play a case once. Raises AssertionError, or whatever a package raises, if it is not as it must be."""
    client, wire, stream = combination
    name = target.model(case, client, wire)
    clients = await target.clients(case.variant)
    scene = Scene(case, client, wire, stream, upstream, clients, name, isinstance(target, Ours))
    try:
        async with asyncio.timeout(60):
            await case.act(scene)
    finally:
        if not scene.is_ours and any(got.is_unasked for got in upstream.got):
            raise NotServedError  # it asked for a whole answer, and the case is about a stream


_VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {"proxy": {"retries": 0}},
    "again": {"proxy": {"retries": 2}},
    "pings": {"proxy": {"retries": 0, "ping_seconds": 0.04}},
    "quiet": {"proxy": {"retries": 0}, "quiet_seconds": 0.2},
    "chain": {
        "proxy": {
            "retries": 0,
            "models": {"chain": ("anthropic:first", "vllm:second", "gemini:third")},
        }
    },
    # Its hosts count: one that once could not is not asked again.
    "counts": {"proxy": {"retries": 0}},
    "web-off": {"proxy": {"retries": 0, "web": False}},
}
_ALIASES = {f"as-{wire}": f"{host}:renamed" for wire, host in HOSTS.items()}
"""Names of rules: what a client asks for is not what the host calls it."""


class Ours:
    """`ferrule proxy` in this process, once for each variant of its settings."""

    label = "ferrule"

    def __init__(self, url: str) -> None:
        self._url = url
        self._made: dict[str, Clients] = {}
        self._stack = contextlib.AsyncExitStack()

    def model(self, case: Case, client: str, wire: str) -> str:  # noqa: ARG002 - others look
        if case.model in {"alias", "chain"}:
            return f"as-{wire}" if case.model == "alias" else "chain"
        return f"{case.host or HOSTS[wire]}:{case.model}"

    async def clients(self, variant: str) -> Clients:
        if variant not in self._made:
            port = await self._stack.enter_async_context(_app(self._url, **_VARIANTS[variant]))
            made = Clients(f"http://127.0.0.1:{port}", TOKEN)
            self._stack.push_async_callback(made.close)
            self._made[variant] = made
        return self._made[variant]

    async def close(self) -> None:
        await self._stack.aclose()


@contextlib.asynccontextmanager
async def _app(url: str, *, proxy: dict[str, Any], quiet_seconds: float = 20.0) -> AsyncIterator[int]:
    hosts = {
        "anthropic": ModelHost(url=url),
        "openai": ModelHost(url=f"{url}/v1"),
        "openai-chat": ModelHost(url=f"{url}/v1"),
        "gemini": ModelHost(url=f"{url}/v1beta"),
        "openrouter": ModelHost(url=f"{url}/v1"),
        "vllm": ModelHost(url=f"{url}/v1"),
        "mistral": ModelHost(url=f"{url}/v1"),
        "compatible": ModelHost(url=url, api="anthropic"),
    }
    keys = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY", "MISTRAL_API_KEY")
    # A model that failed often is asked all the same: every case stands for itself.
    routing = ProxySettings(**{"failures": 1_000_000, **proxy, "models": {**_ALIASES, **proxy.get("models", {})}})
    settings = msgspec.structs.replace(
        Settings(), models=Models(hosts=hosts, quiet_seconds=quiet_seconds), proxy=routing
    )
    upstreams = Upstreams(settings.models, settings.proxy, environment=dict.fromkeys(keys, KEY))
    routes = Routes(routing, settings.models, lambda: "vllm:m", upstreams.is_usable)
    listening = socket.create_server(("127.0.0.1", 0))
    # As the command does: otherwise every other piece of an answer waits for the kernel's acknowledgement, 40 ms.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    started = asyncio.Event()
    shop = Shop(settings.proxy, routes, upstreams, RequestRecords())
    serve = serve_proxy(shop, listening, host="127.0.0.1", token=TOKEN, ready=started.set)
    running = asyncio.create_task(serve)
    try:
        async with asyncio.timeout(20):
            await started.wait()
        yield listening.getsockname()[1]
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        await upstreams.close()


@contextlib.asynccontextmanager
async def ours() -> AsyncIterator[tuple[Upstream, Ours]]:
    """The upstream, and our proxy in front of it."""
    async with serving() as upstream:
        target = Ours(upstream.url)
        try:
            yield upstream, target
        finally:
            await target.close()
