"""A served engine and a client of the package that talks to it, in one process."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import mcp_types as types
from mcp import Client
from mcp.client._memory import InMemoryTransport

from ferrule import Engine
from ferrule.serve.mcp import Serving
from ferrule.serve.mcp.client import Clients

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


class User:
    """Answers what is asked at the client, in turn, and remembers the questions.

    An answer may be a function that gives it.
    """

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []

    async def __call__(self, context: Any, params: Any) -> types.ElicitResult:
        self.asked.append(params)
        answer = self.answers.pop(0)
        answer = answer() if callable(answer) else answer
        if answer in ("decline", "cancel"):
            return types.ElicitResult(action=answer)
        return types.ElicitResult(action="accept", content=answer)
