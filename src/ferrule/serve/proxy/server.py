"""Serve the proxy on a socket, and start client programs that use it."""

import os
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from ferrule.core.errors import ConfigError
from ferrule.models import ModelError
from ferrule.models.catalog import choose
from ferrule.serve.http_server import HttpGuard, serve_app
from ferrule.serve.proxy.app import OPEN_PATHS, App, credentials, refusal
from ferrule.serve.proxy.exchange import Shop
from ferrule.serve.proxy.records import Record, RequestRecords, TrafficTape
from ferrule.serve.proxy.upstreams import Routes, Upstreams, targets
from ferrule.settings import Routing, Settings


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


_BASE = MappingProxyType(
    {
        "ANTHROPIC_BASE_URL": "{url}",
        "ANTHROPIC_API_KEY": "{token}",
        "OPENAI_BASE_URL": "{url}/v1",
        "OPENAI_API_BASE": "{url}/v1",
        "OPENAI_API_KEY": "{token}",
        "GOOGLE_GEMINI_BASE_URL": "{url}",
        "GEMINI_API_KEY": "{token}",
    }
)
"""What most programs read."""
_UNSET = ("GOOGLE_API_KEY",)
"""What would come before that: Google's package takes this key and leaves the other one."""
_WAYS = ("http_proxy", "all_proxy")
_DIRECT = ("no_proxy", "NO_PROXY")


class Program(NamedTuple):
    """What one program needs besides."""

    environment: Mapping[str, str] = MappingProxyType({})
    unset: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    """Stand before the user's own."""


_CODEX = "model_providers.ferrule"
PROGRAMS: Mapping[str, Program] = MappingProxyType(
    {
        # With a key as well it would ask which one to use.
        "claude": Program({"ANTHROPIC_AUTH_TOKEN": "{token}"}, unset=("ANTHROPIC_API_KEY",)),
        "codex": Program(
            arguments=(
                *("-c", 'model_provider="ferrule"', "-c", f'{_CODEX}.name="Ferrule"'),
                *("-c", f'{_CODEX}.base_url="{{url}}/v1"', "-c", f'{_CODEX}.env_key="OPENAI_API_KEY"'),
                *("-c", f'{_CODEX}.wire_api="responses"'),
            )
        ),
        "gemini": Program({"GEMINI_DEFAULT_AUTH_TYPE": "gemini-api-key"}),
        "qwen": Program(arguments=("--auth-type", "openai")),
    }
)


class ProgramLaunch(NamedTuple):
    """How a program is started."""

    command: list[str]
    environment: dict[str, str]


def start_of(
    command: Sequence[str], url: str, token: str, environment: Mapping[str, str] = os.environ
) -> ProgramLaunch:
    """The command line and the environment of a program that is to ask the proxy."""
    name = os.path.basename(command[0]).removesuffix(".cmd").removesuffix(".exe")
    program = PROGRAMS.get(name, Program())
    filled = {key: text.format(url=url, token=token) for key, text in {**_BASE, **program.environment}.items()}
    filled |= _direct(url, environment)
    unset = {*program.unset, *_UNSET}
    kept = {key: text for key, text in {**environment, **filled}.items() if key not in unset}
    first = [word.format(url=url, token=token) for word in program.arguments]
    return ProgramLaunch([command[0], *first, *command[1:]], kept)


def _direct(url: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The machines that a program asks without a proxy on the way: this one too, where there is such a proxy."""
    if not any(environment.get(spelling) for way in _WAYS for spelling in (way, way.upper())):
        return {}
    host = urlsplit(url).hostname or ""
    there = next((text for name in _DIRECT if (text := environment.get(name, ""))), "")
    return dict.fromkeys(_DIRECT, f"{there},{host}" if there else host)
