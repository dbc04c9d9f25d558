"""The models that the proxy asks: each made once, with its connections, its limits and its rest."""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing

import msgspec

from ferrule.agent_settings import Models
from ferrule.core.errors import ConfigError
from ferrule.models.api import HttpModel
from ferrule.models.catalog import CATALOG, DEFAULT_OUTPUT
from ferrule.models.hearing import Tap
from ferrule.models.load import load_model
from ferrule.models.model import Again, Model, ModelError
from ferrule.models.names import ELSEWHERE, named
from ferrule.proxy_settings import Proxy
from ferrule.serve.proxy.limits import Breaker, HostLimits
from ferrule.wire.delta import Delta
from ferrule.wire.turn import Asked

_IDLE = 512
"""Connections to one model that stay open for the next requests."""
_EXACT_CHAT = frozenset(("openai-chat", "openrouter"))
"""Hosts whose Chat streams are passed on as they are. Others imitate the API, and what they send is put in order."""


class Upstream:
    """One model that answers."""

    def __init__(self, name: str, model: Model, limits: HostLimits, breaker: Breaker) -> None:
        self.name = name
        self.model = model
        self.limits = limits
        self.breaker = breaker

    @property
    def http(self) -> HttpModel | None:
        """The model, if it is behind an address."""
        return self.model if isinstance(self.model, HttpModel) else None

    def is_exact(self, api: str) -> bool:
        """Can what the host sends go to clients of this API as it is?"""
        http = self.http
        if http is None or http.host.api != api:
            return False
        return api != "openai-chat" or http.host.name in _EXACT_CHAT

    async def answer(
        self,
        asked: Asked,
        *,
        body: bytes | None = None,
        tap: Tap | None = None,
        switched_on: tuple[str, ...] = (),
        conversation: str = "",
    ) -> AsyncGenerator[list[Delta] | Again, None]:
        """The answer in lists of deltas, as they arrive; see `HttpModel.batches`."""
        http = self.http
        if http is not None:
            one = http.beside(conversation, switched_on=switched_on, marks=not has_marks(asked))
            async with aclosing(one.batches(asked, body=body, tap=tap)) as batches:
                async for batch in batches:
                    yield batch
            return
        async for delta in self.model.ask(asked):
            yield delta if isinstance(delta, Again) else [delta]


def has_marks(asked: Asked) -> bool:
    """Has the client said what is to be cached?"""
    return any(one.cache is not None for one in asked.definitions) or any(
        getattr(part, "cache", None) is not None for turn in asked.turns for part in turn.parts
    )


class Upstreams:
    """All of them, by their names."""

    def __init__(
        self,
        models: Models,
        settings: Proxy,
        *,
        environment: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        # How much a model thinks and says is the client's to choose.
        self._models = msgspec.structs.replace(
            models, retries=settings.retries, max_tokens=None, thinking_tokens=None, effort="", task_tokens=None
        )
        self._settings = settings
        self._environment = environment
        self._clock = clock
        self._made: dict[str, Upstream] = {}
        self._limits: dict[str, HostLimits] = {}

    def find(self, name: str) -> Upstream:
        """The model of a name as HOST:MODEL or an alias. Raises ConfigError, ModelError."""
        found = self._made.get(name)
        if found is None:
            found = self._made[name] = self._make(name)
        return found

    def is_usable(self, name: str) -> bool:
        """Can this model be asked, as keys and settings are?"""
        try:
            self.find(name)
        except (ConfigError, ModelError):
            return False
        return True

    def made(self) -> list[Upstream]:
        return list(self._made.values())

    def limits(self) -> dict[str, HostLimits]:
        return dict(self._limits)

    def secrets(self) -> tuple[str, ...]:
        """What no log and no recording may hold."""
        return tuple(secret for one in self._made.values() if one.http is not None for secret in one.http.secrets)

    async def close(self) -> None:
        await asyncio.gather(*(one.model.close() for one in self._made.values()))

    def _make(self, name: str) -> Upstream:
        host, _ = named(name, self._models)
        model = load_model(name, self._models, environment=self._environment)
        if isinstance(model, HttpModel):
            model = self._trusted(model)
            model.line.most_idle = _IDLE
        shared = name if host in ELSEWHERE else host
        limits = self._limits.get(shared)
        if limits is None:
            limits = self._limits[shared] = HostLimits(shared, self._settings, self._clock)
        return Upstream(model.name, model, limits, Breaker(self._settings, self._clock))

    def _trusted(self, model: HttpModel) -> HttpModel:
        """The same model; one of which nothing is known may say as much as the client wants, up to a usual bound."""
        if is_known(model):
            return model
        about = model.about._replace(most_output=max(DEFAULT_OUTPUT, model.most_output))
        return HttpModel(model.host, model.model, about, self._models)


def is_known(model: HttpModel) -> bool:
    """Is it known how long the model's answers may be?"""
    return any(row.begins == model.about.begins for row in CATALOG)
