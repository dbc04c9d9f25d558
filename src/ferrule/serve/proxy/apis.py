"""Answer clients in the four model APIs: errors, keep-alives, streams, whole answers and lists of models."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType, ModuleType
from typing import Any, Literal, NamedTuple

import msgspec

from ferrule.models import ModelError, Trouble
from ferrule.wire import ModelResponse, load_wire
from ferrule.wire.stream import DONE, EventReader, ServerSentEvent, StreamWriter, load_writer, make_id

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


class ErrorForm(NamedTuple):
    """How an API calls a kind of error."""

    status: int
    word: str
    code: str = ""


ANTHROPIC: dict[Kind, ErrorForm] = {
    "bad": ErrorForm(400, "invalid_request_error"),
    "token": ErrorForm(401, "authentication_error"),
    "forbidden": ErrorForm(403, "permission_error"),
    "missing": ErrorForm(404, "not_found_error"),
    "no-model": ErrorForm(404, "not_found_error"),
    "large": ErrorForm(413, "request_too_large"),
    "upgrade": ErrorForm(426, "invalid_request_error"),
    "too-long": ErrorForm(400, "invalid_request_error"),
    "limit": ErrorForm(429, "rate_limit_error"),
    "overloaded": ErrorForm(529, "overloaded_error"),
    "server": ErrorForm(502, "api_error"),
    "timeout": ErrorForm(504, "timeout_error"),
}
OPENAI: dict[Kind, ErrorForm] = {
    "bad": ErrorForm(400, "invalid_request_error"),
    "token": ErrorForm(401, "invalid_request_error", "invalid_api_key"),
    "forbidden": ErrorForm(403, "invalid_request_error", "permission_denied"),
    "missing": ErrorForm(404, "invalid_request_error", "not_found"),
    "no-model": ErrorForm(404, "invalid_request_error", "model_not_found"),
    "large": ErrorForm(413, "invalid_request_error", "request_too_large"),
    "upgrade": ErrorForm(426, "invalid_request_error", "upgrade_required"),
    "too-long": ErrorForm(400, "invalid_request_error", "context_length_exceeded"),
    "limit": ErrorForm(429, "requests", "rate_limit_exceeded"),
    "overloaded": ErrorForm(503, "server_error", "server_is_overloaded"),
    "server": ErrorForm(502, "server_error", "server_error"),
    "timeout": ErrorForm(504, "server_error", "timeout"),
}
GEMINI: dict[Kind, ErrorForm] = {
    "bad": ErrorForm(400, "INVALID_ARGUMENT"),
    "token": ErrorForm(401, "UNAUTHENTICATED"),
    "forbidden": ErrorForm(403, "PERMISSION_DENIED"),
    "missing": ErrorForm(404, "NOT_FOUND"),
    "no-model": ErrorForm(404, "NOT_FOUND"),
    "large": ErrorForm(413, "INVALID_ARGUMENT"),
    "upgrade": ErrorForm(426, "FAILED_PRECONDITION"),
    "too-long": ErrorForm(400, "INVALID_ARGUMENT"),
    "limit": ErrorForm(429, "RESOURCE_EXHAUSTED"),
    "overloaded": ErrorForm(503, "UNAVAILABLE"),
    "server": ErrorForm(502, "INTERNAL"),
    "timeout": ErrorForm(504, "DEADLINE_EXCEEDED"),
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


_encode = msgspec.json.Encoder().encode
_COMMENT = b": keep-alive\n\n"
_BLANK = b"\n\n"
"""Packages of the API whose pings they are take a comment for a broken event, and pass over an empty line."""
_LAST_NUMBER = 1_000_000
"""Behind the number of every event."""


class ClientApi(NamedTuple):
    """One API on the side of the clients."""

    name: str
    forms: Mapping[Kind, ErrorForm]
    error: Callable[[ErrorForm, str], dict[str, Any]]
    """An error as a body."""
    broken: Callable[[ErrorForm, str, bytes], bytes]
    """An error as an event of a stream that has begun, with what was sent first of the answer, if anything was."""
    ping: bytes
    """What keeps a silent stream alive."""
    models: Callable[[Sequence[str]], dict[str, Any]]
    counted: Callable[[int], dict[str, Any]]
    """A number of tokens as a body."""
    prefix: str = ""
    """How the ids of its answers begin."""
    closing: ServerSentEvent | None = None
    """The event that says nothing but that the stream is at its end, for an API that has one."""
    ends_lines: bool = False
    """Do its packages take the line ends of other scripts for the end of a line?"""
    is_dated: bool = False
    """Do its answers say when they were made?"""

    @property
    def wire(self) -> ModuleType:
        """The module that reads and writes its bodies."""
        return load_wire(self.name)

    def writer(self) -> StreamWriter:
        """Return a writer for one stream."""
        return load_writer(self.name)

    def said(self, response: ModelResponse) -> dict[str, Any]:
        """Return a whole answer as a body."""
        dated = {"created": int(time.time())} if self.is_dated else {}
        return dict(self.wire.said_out(response, **dated))

    def status(self, error: ProxyError) -> int:
        return self.forms[error.kind].status

    def error_body(self, error: ProxyError) -> bytes:
        return _encode(self.error(self.forms[error.kind], wording(error, self.name)))

    def error_event(self, error: ProxyError, begun: bytes = b"") -> bytes:
        """An error in a stream; `begun` is what the stream began with, apart from what keeps it alive."""
        return self.broken(self.forms[error.kind], wording(error, self.name), begun)

    def error_kind(self, error: ProxyError) -> str:
        """What the error is called in a stream."""
        return self.forms[error.kind].code or self.forms[error.kind].word


def _anthropic_error(form: ErrorForm, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": form.word, "message": message}}


def _openai_error(form: ErrorForm, message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": form.word, "param": None, "code": form.code or None}}


def _gemini_error(form: ErrorForm, message: str) -> dict[str, Any]:
    return {"error": {"code": form.status, "message": message, "status": form.word}}


def _named_event(name: str, value: dict[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), _encode(value))


def _data_event(value: dict[str, Any]) -> bytes:
    return b"data: %b\n\n" % _encode(value)


def _failed_response(form: ErrorForm, message: str, begun: bytes) -> bytes:
    """The failure of the response that has begun; of a new one, which begins first, if none has."""
    response = _first_response(begun)
    first = b""
    if response is None:
        response = {
            "id": make_id("resp_"),
            "object": "response",
            "created_at": int(time.time()),
            "status": "in_progress",
            "error": None,
            "incomplete_details": None,
            "model": "",
            "output": [],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        }
        start = {"type": "response.created", "sequence_number": 0, "response": response}
        first = _named_event("response.created", start)
    failed = {**response, "status": "failed", "error": {"code": form.code or form.word, "message": message}}
    value = {"type": "response.failed", "sequence_number": _LAST_NUMBER, "response": failed}
    return first + _named_event("response.failed", value)


def _first_response(begun: bytes) -> dict[str, Any] | None:
    """The response as its first event tells it."""
    for event in EventReader().feed(begun):
        try:
            value = msgspec.json.decode(event.data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        response = value.get("response") if isinstance(value, dict) else None
        return response if isinstance(response, dict) and response.get("id") else None
    return None


def _anthropic_models(names: Sequence[str]) -> dict[str, Any]:
    rows = [{"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"} for name in names]
    first, last = (names[0], names[-1]) if names else (None, None)
    return {"data": rows, "has_more": False, "first_id": first, "last_id": last}


def _openai_models(names: Sequence[str]) -> dict[str, Any]:
    rows = [{"id": name, "object": "model", "created": 1_767_225_600, "owned_by": "ferrule"} for name in names]
    # codex looks for `models`, and takes an empty list for "nothing beside what I know myself".
    return {"object": "list", "data": rows, "models": []}


def _gemini_models(names: Sequence[str]) -> dict[str, Any]:
    methods = ["generateContent", "streamGenerateContent", "countTokens"]
    return {
        "models": [
            {"name": f"models/{name}", "displayName": name, "supportedGenerationMethods": methods} for name in names
        ]
    }


APIS: Mapping[str, ClientApi] = MappingProxyType(
    {
        "anthropic": ClientApi(
            "anthropic",
            ANTHROPIC,
            _anthropic_error,
            lambda form, message, _: _named_event("error", _anthropic_error(form, message)),
            _named_event("ping", {"type": "ping"}),
            _anthropic_models,
            lambda count: {"input_tokens": count},
            "msg_",
            ServerSentEvent("message_stop", b'{"type":"message_stop"}'),
        ),
        "openai-chat": ClientApi(
            "openai-chat",
            OPENAI,
            _openai_error,
            lambda form, message, _: _data_event(_openai_error(form, message)),
            _COMMENT,
            _openai_models,
            lambda count: {"input_tokens": count},
            "chatcmpl-",
            DONE,
            is_dated=True,
        ),
        "openai-responses": ClientApi(
            "openai-responses",
            OPENAI,
            _openai_error,
            _failed_response,
            _COMMENT,
            _openai_models,
            lambda count: {"object": "response.input_tokens", "input_tokens": count},
            "resp_",
            is_dated=True,
        ),
        "gemini": ClientApi(
            "gemini",
            GEMINI,
            _gemini_error,
            lambda form, message, _: _data_event(_gemini_error(form, message)),
            _BLANK,
            _gemini_models,
            lambda count: {"totalTokens": count},
            ends_lines=True,
        ),
    }
)
"""The APIs by the names of their wires."""
