"""Choose the upstream models of a request, and reach their hosts.

Each model is made once, with its connections and limits. A host has places, a queue and rates, and a model that
fails repeatedly is not asked for a while.
"""

import asyncio
import os
import re
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from fnmatch import fnmatchcase
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from ferrule.core.errors import ConfigError
from ferrule.models import Model, ModelError, RetryNotice
from ferrule.models.catalog import CATALOG, DEFAULT_OUTPUT, ELSEWHERE, has_bound, load_model, resolve_name
from ferrule.models.hosts import ALIASES
from ferrule.models.http import HttpModel, Tap
from ferrule.serve.http_server import LOOPBACK
from ferrule.serve.proxy.apis import ProxyError
from ferrule.settings import Models, ProxySettings, Routing
from ferrule.wire import Delta, ModelRequest

_MINUTE = 60.0


class HostLimits:
    """The requests that one host is working on, and those that wait for it."""

    def __init__(self, host: str, settings: ProxySettings, clock: Callable[[], float]) -> None:
        self._host = host
        self._settings = settings
        self._clock = clock
        self._free = settings.parallel
        self._queue: deque[asyncio.Future[None]] = deque()
        self._sent: deque[float] = deque()
        """When requests were sent during the last minute."""
        self._tokens: deque[tuple[float, int]] = deque()

    @property
    def busy(self) -> int:
        return self._settings.parallel - self._free

    @property
    def queue_length(self) -> int:
        return len(self._queue)

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Hold one of the host's places. Raises ProxyError if none gets free in time."""
        deadline = self._clock() + self._settings.queue_seconds
        await self._take()
        try:
            await self._rate(deadline)
            yield
        finally:
            self._give()

    def repeat(self) -> None:
        """Count a repetition, which is a request of its own to the host."""
        if self._settings.requests_a_minute is not None:
            self._sent.append(self._clock())

    def count(self, tokens: int) -> None:
        """Count tokens that were sent or received."""
        if self._settings.tokens_a_minute is not None:
            self._tokens.append((self._clock(), tokens))

    async def _take(self) -> None:
        if self._free:
            self._free -= 1
            return
        if len(self._queue) >= self._settings.queue:
            raise self._refusal(f"{len(self._queue)} requests wait for {self._host} already")
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            async with asyncio.timeout(self._settings.queue_seconds):
                await turn
        except TimeoutError:
            self._leave(turn)
            seconds = self._settings.queue_seconds
            raise self._refusal(f"{self._host} had no free place for {seconds:g} seconds") from None
        except BaseException:
            self._leave(turn)
            raise

    def _leave(self, turn: "asyncio.Future[None]") -> None:
        if turn in self._queue:
            self._queue.remove(turn)
        elif turn.done() and not turn.cancelled():
            self._give()  # the place came at the same moment

    def _give(self) -> None:
        while self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    async def _rate(self, deadline: float) -> None:
        """Wait until the rates allow one more request."""
        while (seconds := self._wait()) > 0:
            if self._clock() + seconds > deadline:
                raise self._refusal(f"The rate that is set for {self._host} is used up", seconds)
            await asyncio.sleep(seconds)
        self.repeat()

    def _wait(self) -> float:
        """Seconds until the oldest of too many requests or tokens is a minute old; 0 if there are not too many."""
        now, settings = self._clock(), self._settings
        while self._sent and self._sent[0] <= now - _MINUTE:
            self._sent.popleft()
        while self._tokens and self._tokens[0][0] <= now - _MINUTE:
            self._tokens.popleft()
        most, tokens = settings.requests_a_minute, settings.tokens_a_minute
        waits = [0.0]
        if most is not None and len(self._sent) >= most:
            waits.append(self._sent[0] + _MINUTE - now)
        if tokens is not None and sum(count for _, count in self._tokens) >= tokens:
            waits.append(self._tokens[0][0] + _MINUTE - now)
        return max(waits)

    def _refusal(self, why: str, seconds: float = 1.0) -> ProxyError:
        return ProxyError("limit", f"{why}. Try again later, or raise the limits under [proxy].", seconds=seconds)


class Breaker:
    """Keeps a model from being asked for a while after it has failed several times in a row.

    Every request that begins gets a ticket, and comes back with it: one that began before the model was left alone, and
    ends while another one is finding out whether it is back, decides nothing.
    """

    def __init__(self, settings: ProxySettings, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        self._failures = 0
        self._until = 0.0
        self._tickets = 0
        self._trial = 0
        """The ticket of the request that finds out whether the model is back; 0 if none does."""

    @property
    def seconds(self) -> float:
        """How long the model rests from now; 0 if it may be asked."""
        return max(0.0, self._until - self._clock())

    @property
    def is_open(self) -> bool:
        """Must the model be left alone? After its rest one request at a time finds out whether it is back."""
        return self.seconds > 0 or self._trial > 0

    def begin(self) -> int:
        """A request begins. Returns its ticket."""
        self._tickets += 1
        if self._has_failed:
            self._trial = self._tickets
        return self._tickets

    def succeed(self, ticket: int) -> None:  # noqa: ARG002 - whichever request it was, the model answers
        self._failures, self._until, self._trial = 0, 0.0, 0

    def fail(self, ticket: int) -> None:
        if self._has_failed and ticket != self._trial:
            return  # it was asked before the others failed, and tells nothing new
        self._failures += 1
        self.leave(ticket)
        if self._has_failed:
            self._until = self._clock() + self._settings.rest_seconds

    def leave(self, ticket: int) -> None:
        """The request ended without telling anything of the model."""
        if ticket == self._trial:
            self._trial = 0

    @property
    def _has_failed(self) -> bool:
        return self._failures >= self._settings.failures


_IDLE = 512
"""Connections to one model that stay open for the next requests."""
_MOST = 256
"""So many models are kept at once; clients may name any model of a host whose key is there."""
_EXACT_CHAT = frozenset(("openai-chat", "openrouter"))
"""Hosts whose Chat streams are passed on as they are. Others imitate the API, and what they send is put in order."""


class Upstream:
    """One model that answers."""

    def __init__(self, name: str, model: Model, limits: HostLimits, breaker: Breaker, *, has_bound: bool) -> None:
        self.name = name
        self.has_bound = has_bound
        """Is it known how long the model's answers may be?"""
        self.model = model
        self.limits = limits
        self.breaker = breaker
        self.busy = 0
        """Requests that it is being asked."""

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
        asked: ModelRequest,
        *,
        body: bytes | None = None,
        tap: Tap | None = None,
        switched_on: tuple[str, ...] = (),
        conversation: str = "",
    ) -> AsyncGenerator[list[Delta] | RetryNotice, None]:
        """The answer in lists of deltas, as they arrive; see `HttpModel.batches`."""
        http = self.http
        if http is not None:
            one = http.beside(conversation, switched_on=switched_on, marks=not has_marks(asked))
            async with aclosing(one.batches(asked, body=body, tap=tap)) as batches:
                async for batch in batches:
                    yield batch
            return
        answer = self.model.ask(asked)
        try:
            async for delta in answer:
                yield delta if isinstance(delta, RetryNotice) else [delta]
        finally:
            if (close := getattr(answer, "aclose", None)) is not None:
                await close()


def has_marks(asked: ModelRequest) -> bool:
    """Has the client said what is to be cached?"""
    return any(one.cache is not None for one in asked.definitions) or any(
        getattr(part, "cache", None) is not None for turn in asked.turns for part in turn.parts
    )


class Upstreams:
    """All of them, by their names."""

    def __init__(
        self,
        models: Models,
        settings: ProxySettings,
        *,
        environment: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time.monotonic,
        address: str = "",
    ) -> None:
        """`address` is where the proxy itself listens, as `HOST:PORT`: it never asks itself."""
        # How much a model thinks and says is the client's to choose.
        self._models = msgspec.structs.replace(
            models, retries=settings.retries, max_tokens=None, thinking_tokens=None, effort="", task_tokens=None
        )
        self._settings = settings
        self._environment = environment
        self._clock = clock
        self._address = address
        self._made: dict[str, Upstream] = {}
        """By their whole names, the one that was asked last at the end."""
        self._limits: dict[str, HostLimits] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def find(self, name: str) -> Upstream:
        """The model of a name as HOST:MODEL or an alias. Raises ConfigError, ModelError."""
        host, model = resolve_name(name, self._models)
        if host not in self._models.hosts:
            host = ALIASES.get(host, host)
        whole = f"{host}:{model}"
        found = self._made.pop(whole, None)
        if found is None:
            found = self._make(whole)
            self._forget_one()
        self._made[whole] = found
        return found

    def is_usable(self, name: str) -> bool:
        """Can this model be asked, as keys and settings are?"""
        try:
            self.find(name)
        except (ConfigError, ModelError):
            return False
        return True

    def list_upstreams(self) -> list[Upstream]:
        return list(self._made.values())

    def limits(self) -> dict[str, HostLimits]:
        return dict(self._limits)

    def secrets(self) -> tuple[str, ...]:
        """What no log and no recording may hold."""
        return tuple(secret for one in self._made.values() if one.http is not None for secret in one.http.secrets)

    async def close(self) -> None:
        await asyncio.gather(*(one.model.close() for one in self._made.values()), *self._closing)

    def _forget_one(self) -> None:
        """Make room for one more: whoever was not asked for the longest time goes, unless it is being asked."""
        if len(self._made) < _MOST:
            return
        oldest = next((name for name, one in self._made.items() if not one.busy), None)
        if oldest is not None:
            task = asyncio.ensure_future(self._made.pop(oldest).model.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    def _make(self, name: str) -> Upstream:
        host, _, _ = name.partition(":")
        model = load_model(name, self._models, environment=self._environment)
        if isinstance(model, HttpModel):
            self._check(model)
            model = self._raise_output_limit(model)
            model.line.most_idle = _IDLE
        shared = name if host in ELSEWHERE else host
        limits = self._limits.get(shared)
        if limits is None:
            limits = self._limits[shared] = HostLimits(shared, self._settings, self._clock)
        is_bound = has_bound(model.model, self._models.known)
        return Upstream(model.name, model, limits, Breaker(self._settings, self._clock), has_bound=is_bound)

    def _check(self, model: HttpModel) -> None:
        """Raises ConfigError for a host that is this proxy: it would ask itself for ever."""
        at = urlsplit(model.host.url)
        host, _, port = self._address.rpartition(":")
        if self._address and str(at.port or 80) == port and at.hostname in {host, *LOOPBACK}:
            raise ConfigError(
                f"{model.name} leads back to this proxy: {model.host.where} is {model.host.url}. Unset it where the "
                "proxy is started; only clients need it."
            )

    def _raise_output_limit(self, model: HttpModel) -> HttpModel:
        """The same model; one of which nothing is known may say as much as the client wants, up to a usual bound."""
        if has_bound(model.model, self._models.known):
            return model
        about = model.about._replace(most_output=max(DEFAULT_OUTPUT, model.most_output))
        return HttpModel(model.host, model.model, about, self._models)


Size = Literal["small", "medium", "big"]

_SMALL = frozenset(("haiku", "mini", "nano", "flash", "lite", "luna", "small", "micro", "tiny"))
_BIG = frozenset(("opus", "fable", "pro", "sol", "astra", "ultra", "large", "max"))
_NEXT_SIZES: dict[Size, tuple[Size, ...]] = {
    "small": ("small", "medium", "big"),
    "medium": ("medium", "big", "small"),
    "big": ("big", "medium", "small"),
}
_WORD = re.compile(r"[a-z]+")
_GLOB = frozenset("*?[")
_NAME = re.compile(r"[A-Za-z0-9@][A-Za-z0-9._:/@+~=,-]{0,199}")
"""A name of a model that a request may bring to a host: it may stand in an address there."""


def size(model: str) -> Size:
    """How big a model is, by the words in its id; medium if none of them tells."""
    words = set(_WORD.findall(model.lower()))
    if words & _SMALL:
        return "small"
    return "big" if words & _BIG else "medium"


class Routes:
    """The models that may answer, by the model that a client asks for."""

    def __init__(
        self, routing: Routing, models: Models, default: Callable[[], str], usable: Callable[[str], bool]
    ) -> None:
        """`default` names the model for requests that no rule is about; it may raise ModelError.

        `usable` says whether a host can be asked at all: a model is taken by its own name only there.
        """
        self._routing = routing
        self._models = models
        self._default = default
        self._usable = usable
        self._sizes: dict[Size, str] = {"small": routing.small, "medium": routing.medium, "big": routing.big}
        check_targets(routing, models)

    def chain(self, requested: str) -> tuple[str, ...]:
        """The models to try for a request, in their order. Raises ModelError if there is none."""
        asked = requested.removeprefix("models/")
        found = self._rule(asked) or self._by_size(asked) or self._direct(asked) or (self._default(),)
        return tuple(dict.fromkeys((*found, *self._routing.fallback)))

    def names(self) -> list[str]:
        """The model names that clients can ask for: aliases, targets, and what is known of a host that is used."""
        listed = [name for name in self._routing.models if not _GLOB.intersection(name)]
        listed += targets(self._routing)
        with suppress(ModelError):  # there may be rules only
            listed.append(self._default())
        return list(dict.fromkeys(listed))

    def _rule(self, asked: str) -> tuple[str, ...]:
        rules = self._routing.models
        if asked in rules:
            return _several(rules[asked])
        # The rule that says most wins: the one with the most letters that are not wild.
        fitting = [rule for rule in rules if rule != "*" and fnmatchcase(asked.lower(), rule.lower())]
        if fitting:
            return _several(rules[max(fitting, key=lambda rule: len(rule) - rule.count("*"))])
        return _several(rules["*"]) if "*" in rules and not self._by_size(asked) else ()

    def _by_size(self, asked: str) -> tuple[str, ...]:
        """The model of the wanted size, else of the next one that is set."""
        found = next((self._sizes[one] for one in _NEXT_SIZES[size(asked)] if self._sizes[one]), "")
        return (found,) if found else ()

    def _direct(self, asked: str) -> tuple[str, ...]:
        """The model itself, if its name says at which host it is. A file is never named by a request."""
        if _NAME.fullmatch(asked) is None or ".." in asked or (":" not in asked and not _is_known(asked)):
            return ()
        try:
            host, model = resolve_name(asked, self._models)
        except ConfigError:
            return ()
        name = f"{host}:{model}"
        return (name,) if host not in ELSEWHERE and self._usable(name) else ()


def check_targets(routing: Routing, models: Models) -> None:
    """Raises ConfigError for a rule whose target names no model."""
    for name in targets(routing):
        try:
            resolve_name(name, models)
        except ConfigError as error:
            raise ConfigError(f"The proxy cannot use {name!r}: {error}") from None


def targets(routing: Routing) -> Iterator[str]:
    """The models that rules name."""
    for target in routing.models.values():
        yield from _several(target)
    yield from filter(None, (routing.small, routing.medium, routing.big))
    yield from routing.fallback


def _several(target: str | tuple[str, ...]) -> tuple[str, ...]:
    return (target,) if isinstance(target, str) else target


def _is_known(model: str) -> bool:
    return any(model.startswith(row.begins) for row in CATALOG)
