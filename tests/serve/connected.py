"""A served engine and a client of the package that talks to it, in one process."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from mcp import Client
from mcp.client._memory import InMemoryTransport

from ferrule import Engine
from ferrule.serve.asking import Clients
from ferrule.serve.server import Serving

ERAS = ("legacy", "2026-07-28")
"""How the package's client is told to speak: up to 2025-11-25 with a handshake, from 2026-07-28 on without."""


class Connected(NamedTuple):
    engine: Engine
    serving: Serving
    client: Any


@asynccontextmanager
async def connected(
    folder: Any, era: str = "legacy", *, tools: Iterable[Any] = (), ask: Any = None, on_message: Any = None, **more: Any
) -> AsyncIterator[Connected]:
    """`ask` answers the server's questions at the client, `on_message` hears what it says; `more` is the engine's."""
    clients = Clients()
    async with Engine(folder, ask=clients, tools=tools, **more) as engine, Serving(engine, clients) as serving:
        transport = InMemoryTransport(serving.server)
        async with Client(
            transport, mode=era, elicitation_callback=ask, message_handler=on_message, cache=None
        ) as client:
            yield Connected(engine, serving, client)
