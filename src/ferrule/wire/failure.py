"""What goes wrong in the middle of a stream, in the words of the four APIs."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Failure(NamedTuple):
    """One thing that goes wrong, as each API calls it."""

    anthropic: str
    openai: str
    """Its type in Chat, and its code in Responses."""
    gemini: str
    status: int
    """The number that Gemini puts beside its word."""
    others: tuple[str, ...] = ()
    """What else it is called: by models of ours, by servers that imitate an API, and by statuses of HTTP."""


_SERVER = Failure("api_error", "server_error", "INTERNAL", 500, ("server", "500", "502"))
_FAILURES = (
    _SERVER,
    Failure("api_error", "server_error", "UNAVAILABLE", 503, ("cut", "network", "none")),
    Failure("overloaded_error", "server_is_overloaded", "UNAVAILABLE", 503, ("overloaded", "503", "529")),
    Failure("rate_limit_error", "rate_limit_exceeded", "RESOURCE_EXHAUSTED", 429, ("limit", "rate_limit", "429")),
    Failure("billing_error", "insufficient_quota", "RESOURCE_EXHAUSTED", 429, ("402",)),
    Failure("timeout_error", "timeout", "DEADLINE_EXCEEDED", 504, ("408", "504")),
    Failure(
        "invalid_request_error",
        "invalid_prompt",
        "INVALID_ARGUMENT",
        400,
        ("bad", "invalid_request", "FAILED_PRECONDITION", "400", "422"),
    ),
    Failure("invalid_request_error", "context_length_exceeded", "INVALID_ARGUMENT", 400, ("too-long",)),
    Failure("request_too_large", "string_above_max_length", "INVALID_ARGUMENT", 400, ("413",)),
    Failure("authentication_error", "invalid_api_key", "UNAUTHENTICATED", 401, ("no-key", "wrong-key", "401")),
    Failure("permission_error", "permission_denied", "PERMISSION_DENIED", 403, ("403",)),
    Failure("not_found_error", "model_not_found", "NOT_FOUND", 404, ("no-model", "404")),
)
_NAMED: Mapping[str, Failure] = MappingProxyType(
    {
        word: failure
        for failure in reversed(_FAILURES)
        for word in (failure.anthropic, failure.openai, failure.gemini, *failure.others)
    }
)
"""By each of its names; of two that share one, the first."""


def failure_of(kind: str) -> Failure:
    """What an error of this kind is; what nobody has heard of is a fault of the server's."""
    return _NAMED.get(kind, _SERVER)
