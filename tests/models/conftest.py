"""What the tests of models share: a server, and models that are asked there without ever sleeping."""

import contextlib
import importlib
import warnings
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from ferrule.core.content import Text
from ferrule.models import RetryNotice
from ferrule.models.catalog import about
from ferrule.models.hosts import find_host
from ferrule.models.http import HttpModel
from ferrule.settings import ModelHost, Models
from ferrule.wire import Definition, ModelRequest, ModelResponse, Turn
from ferrule.wire.stream import assemble

from .server import Server, serving
from .spoken import Spoken

KEY = "sk-ant-api03-THE-SECRET-KEY-0123456789"
QUESTION = (Turn("system", (Text("Be brief."),)), Turn("user", (Text("Hello, ü."),)))
READ = Definition("Read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}})


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as made:
        yield made


class Sleeps:
    """Instead of sleeping: what was to be slept."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


class Asker:
    """Makes models that are asked at the server, and closes them."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.sleeps = Sleeps()
        self.made: list[HttpModel] = []

    def model(self, spoken: Spoken, url: str = "", model: str = "", **settings: Any) -> HttpModel:
        hosts = {spoken.host: ModelHost(url=url or self.server.url)}
        models = msgspec.structs.replace(Models(hosts=hosts), **settings)
        variables = ("ANTHROPIC", "OPENAI", "GEMINI", "DEEPSEEK", "OPENROUTER")
        host = find_host(spoken.host, models, {f"{name}_API_KEY": KEY for name in variables})
        made = HttpModel(
            host,
            model or spoken.model,
            about(model or spoken.model, models.known),
            models,
            sleep=self.sleeps,
            draw=lambda: 0.5,
            now=lambda: 1_000_000_000.0,
        )
        self.made.append(made)
        return made

    async def said(self, model: HttpModel, asked: ModelRequest | None = None) -> ModelResponse:
        """The answer, without what was void."""
        return assemble((await heard(model, asked))[1])


async def heard(model: HttpModel, asked: ModelRequest | None = None) -> tuple[list[RetryNotice], list[Any]]:
    """Why it was asked again, and the deltas of the last try."""
    again: list[RetryNotice] = []
    deltas: list[Any] = []
    async for one in model.ask(asked or question()):
        if isinstance(one, RetryNotice):
            again.append(one)
            deltas = []
        else:
            deltas.append(one)
    return again, deltas


def question(*turns: Turn, **more: Any) -> ModelRequest:
    return ModelRequest(model="", turns=turns or QUESTION, definitions=(READ,), **more)


@contextlib.asynccontextmanager
async def asking(server: Server) -> AsyncIterator[Asker]:
    made = Asker(server)
    try:
        yield made
    finally:
        for model in made.made:
            await model.close()


@pytest.fixture
async def asker(server: Server) -> AsyncIterator[Asker]:
    async with asking(server) as made:
        yield made


@pytest.fixture(scope="session")
def packages() -> None:
    """The official libraries are loaded whatever their compilation warns of: that is not ours to mend."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("anthropic", "google.genai", "google.genai.types", "openai"):
            importlib.import_module(name)
