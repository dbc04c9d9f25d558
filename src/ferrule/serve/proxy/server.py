"""The proxy as a whole: built from the settings, served on a socket, closed at the end."""

import socket
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager

import msgspec

from ferrule.core.errors import ConfigError
from ferrule.models.catalog import choose
from ferrule.models.model import ModelError
from ferrule.serve.mcp.http import HttpGuard, serve_app
from ferrule.serve.proxy.app import OPEN_PATHS, App, credentials, refusal
from ferrule.serve.proxy.exchange import Shop
from ferrule.serve.proxy.records import Record, RequestRecords, TrafficTape
from ferrule.serve.proxy.routes import Routes, targets
from ferrule.serve.proxy.upstreams import Upstreams
from ferrule.settings.schema import Routing, Settings


@asynccontextmanager
async def open_shop(
    settings: Settings,
    routing: Routing,
    *,
    token: str,
    told: Iterable[Callable[[Record], object]] = (),
    tape: str = "",
    address: str = "",
) -> AsyncIterator[Shop]:
    """Everything that exchanges share; `address` is where clients are served, as `HOST:PORT`.

    Raises ConfigError for a rule that names no model, or a tape that is there.
    """
    upstreams = Upstreams(settings.models, settings.proxy, address=address)
    default: list[str] = []

    def chosen() -> str:
        if not default:
            default.append(choose(None, settings.models).name)
        return default[0]

    routes = Routes(routing, settings.models, chosen, upstreams.is_usable)
    traffic = TrafficTape(tape, (token,)) if tape else None
    try:
        yield Shop(settings.proxy, routes, upstreams, RequestRecords(told), traffic)
    finally:
        await upstreams.close()
        if traffic is not None:
            await traffic.close()


async def serve_proxy(
    shop: Shop,
    listening: socket.socket,
    *,
    host: str,
    token: str,
    names: Sequence[str] = (),
    ready: Callable[[], object] = lambda: None,
) -> None:
    """Serve every client that has the token until this task is cancelled. `ready` is called when it listens."""
    guard = HttpGuard(
        App(shop), token=token, host=host, names=names, credentials=credentials, refusal=refusal, open_paths=OPEN_PATHS
    )
    await serve_app(guard, listening, ready=ready)


def complaints(settings: Settings, routing: Routing) -> dict[str, str]:
    """The models that rules name and that cannot be asked, and why; nothing is sent."""
    upstreams = Upstreams(settings.models, settings.proxy)
    found: dict[str, str] = {}
    for name in dict.fromkeys(targets(routing)):
        try:
            upstreams.find(name)
        except (ConfigError, ModelError) as error:
            found[name] = str(error)
    return found


def routing_of(
    settings: Settings, profile: str | None, model: str | None, rules: dict[str, tuple[str, ...]]
) -> Routing:
    """The rules that hold: those of the settings or of a profile; a model that is named takes all that rules leave.

    Raises ConfigError for a profile that there is not.
    """
    routing: Routing = settings.proxy
    if profile is not None:
        found = settings.proxy.profiles.get(profile)
        if found is None:
            there = ", ".join(settings.proxy.profiles) or "none"
            raise ConfigError(f"There is no profile {profile!r} under proxy.profiles; there are: {there}.")
        routing = found
    routing = Routing(
        models=dict(routing.models),
        small=routing.small,
        medium=routing.medium,
        big=routing.big,
        fallback=routing.fallback,
    )
    if model:
        routing = Routing(models={"*": model}, fallback=routing.fallback)
    return msgspec.structs.replace(routing, models={**routing.models, **rules})
