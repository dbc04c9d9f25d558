"""The settings of `ferrule proxy`, with their defaults."""

from typing import Annotated

import msgspec

_Count = Annotated[int, msgspec.Meta(ge=1)]
_Seconds = Annotated[float, msgspec.Meta(gt=0, le=1e9)]


class Routing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which model answers a request, and for whom."""

    models: dict[str, str | tuple[str, ...]] = {}
    """A model that clients ask for, or a pattern such as `claude-haiku-*`, → the model that answers, as HOST:MODEL, or
    several that are tried in their order. `*` stands for every model that nothing else fits."""
    small: str = ""
    """The model for requests to small models, such as `claude-haiku-…` or `gpt-…-mini`."""
    medium: str = ""
    """The model for requests to medium models, such as `claude-sonnet-…`, and to models of no known size."""
    big: str = ""
    """The model for requests to big models, such as `claude-opus-…`."""
    fallback: tuple[str, ...] = ()
    """Models that are tried after every other one has failed."""


class Proxy(Routing, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The proxy."""

    profiles: dict[str, Routing] = {}
    """A name → routing that holds in place of this one with `--profile NAME`."""
    parallel: _Count = 64
    """How many requests each host is asked at the same moment; more of them wait."""
    queue: Annotated[int, msgspec.Meta(ge=0)] = 256
    """How many requests wait for a host at most; more are refused with status 429."""
    queue_seconds: _Seconds = 120.0
    """How long a request waits for its turn before it is refused."""
    requests_a_minute: _Count | None = None
    """How many requests each host is sent in a minute; no limit by default."""
    tokens_a_minute: _Count | None = None
    """How many tokens each host is sent and sends in a minute; no limit by default."""
    failures: _Count = 5
    """After so many failures in a row a model is not asked for a while, and the next one in the chain answers."""
    rest_seconds: _Seconds = 30.0
    """How long a model that failed too often is not asked."""
    retries: Annotated[int, msgspec.Meta(ge=0)] = 2
    """How often a model is asked again before its answer has begun; after that it never is."""
    ping_seconds: _Seconds = 10.0
    """A stream that was silent for so long is kept alive with a ping."""
    body_mb: _Count = 64
    """The longest request."""
    web: bool = True
    """Does Ferrule search and fetch for clients whose own API would, if the host cannot?"""
    count_upstream: bool = True
    """Are tokens counted by the host that answers, if it can?"""
