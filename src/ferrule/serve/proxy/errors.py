"""What goes wrong in the proxy, and how each API tells it."""

import math
from typing import Literal, NamedTuple

from ferrule.models.model import ModelError, Trouble

Kind = Literal[
    "bad",
    "token",
    "forbidden",
    "missing",
    "no-model",
    "large",
    "upgrade",
    "too-long",
    "limit",
    "overloaded",
    "server",
    "timeout",
]
"""A body that is wrong, a missing token, a refusal, a path or a model that is not there, a body that is too long, a
protocol that is not spoken, a conversation that is too long, too many requests, a host that has no room, that fails, or
that is silent."""

KINDS: dict[Trouble, Kind] = {
    "no-key": "forbidden",
    "wrong-key": "forbidden",
    "no-model": "no-model",
    "none": "no-model",
    "too-long": "too-long",
    "limit": "limit",
    "overloaded": "overloaded",
    "server": "server",
    "network": "server",
    "cut": "server",
    "bad": "bad",
}
"""What a model's trouble is to a client."""


class ProxyError(Exception):
    """A request that cannot be answered, in no API's words."""

    def __init__(self, kind: Kind, message: str, *, seconds: float | None = None) -> None:
        super().__init__(message)
        self.kind: Kind = kind
        self.message = message
        self.seconds = seconds
        """How long the client should wait before it asks again; None if that is not known."""

    @property
    def is_passing(self) -> bool:
        """Does it tell of the host, so that it may fail less later, or elsewhere?"""
        return self.kind in {"limit", "overloaded", "server", "timeout"}


def from_model(error: ModelError) -> ProxyError:
    """What a model's failure is to the client."""
    kind = "server" if error.is_nonsense else KINDS[error.kind]
    return ProxyError(kind, str(error), seconds=error.seconds)


class Form(NamedTuple):
    """How an API calls a kind of error."""

    status: int
    word: str
    code: str = ""


ANTHROPIC: dict[Kind, Form] = {
    "bad": Form(400, "invalid_request_error"),
    "token": Form(401, "authentication_error"),
    "forbidden": Form(403, "permission_error"),
    "missing": Form(404, "not_found_error"),
    "no-model": Form(404, "not_found_error"),
    "large": Form(413, "request_too_large"),
    "upgrade": Form(426, "invalid_request_error"),
    "too-long": Form(400, "invalid_request_error"),
    "limit": Form(429, "rate_limit_error"),
    "overloaded": Form(529, "overloaded_error"),
    "server": Form(502, "api_error"),
    "timeout": Form(504, "timeout_error"),
}
OPENAI: dict[Kind, Form] = {
    "bad": Form(400, "invalid_request_error"),
    "token": Form(401, "invalid_request_error", "invalid_api_key"),
    "forbidden": Form(403, "invalid_request_error", "permission_denied"),
    "missing": Form(404, "invalid_request_error", "not_found"),
    "no-model": Form(404, "invalid_request_error", "model_not_found"),
    "large": Form(413, "invalid_request_error", "request_too_large"),
    "upgrade": Form(426, "invalid_request_error", "upgrade_required"),
    "too-long": Form(400, "invalid_request_error", "context_length_exceeded"),
    "limit": Form(429, "requests", "rate_limit_exceeded"),
    "overloaded": Form(503, "server_error", "server_is_overloaded"),
    "server": Form(502, "server_error", "server_error"),
    "timeout": Form(504, "server_error", "timeout"),
}
GEMINI: dict[Kind, Form] = {
    "bad": Form(400, "INVALID_ARGUMENT"),
    "token": Form(401, "UNAUTHENTICATED"),
    "forbidden": Form(403, "PERMISSION_DENIED"),
    "missing": Form(404, "NOT_FOUND"),
    "no-model": Form(404, "NOT_FOUND"),
    "large": Form(413, "INVALID_ARGUMENT"),
    "upgrade": Form(426, "FAILED_PRECONDITION"),
    "too-long": Form(400, "INVALID_ARGUMENT"),
    "limit": Form(429, "RESOURCE_EXHAUSTED"),
    "overloaded": Form(503, "UNAVAILABLE"),
    "server": Form(502, "INTERNAL"),
    "timeout": Form(504, "DEADLINE_EXCEEDED"),
}
TOO_LONG = {
    "anthropic": "prompt is too long",
    "openai-chat": "This model's maximum context length is exceeded",
    "openai-responses": "Your input exceeds the context window of this model",
    "gemini": "The input token count exceeds the maximum number of tokens allowed",
}
"""How each API begins when a conversation is too long: client programs make it smaller when they read that."""


def wording(error: ProxyError, api: str) -> str:
    """The message as the clients of an API expect it."""
    return f"{TOO_LONG[api]}: {error.message}" if error.kind == "too-long" else error.message


def retry_headers(error: ProxyError) -> list[tuple[bytes, bytes]]:
    """When to ask again, and whether at all."""
    if not error.is_passing:
        return [(b"x-should-retry", b"false")]
    if error.seconds is None:
        return []
    return [(b"retry-after", str(max(1, math.ceil(error.seconds))).encode())]
