"""The four APIs as servers speak them: errors, keep-alives, streams, whole answers, lists of models."""

import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple

import msgspec

from ferrule.serve.proxy.errors import ANTHROPIC, GEMINI, OPENAI, Form, Kind, ProxyError, wording
from ferrule.wire import anthropic, gemini, openai_chat, openai_responses
from ferrule.wire.anthropic.writer import AnthropicWriter
from ferrule.wire.gemini.writer import GeminiWriter
from ferrule.wire.openai_chat.writer import ChatWriter
from ferrule.wire.openai_responses.writer import ResponsesWriter
from ferrule.wire.sse import DONE, Event, EventReader
from ferrule.wire.stream import StreamWriter, made_id
from ferrule.wire.turn import Said

_encode = msgspec.json.Encoder().encode
_COMMENT = b": keep-alive\n\n"
_BLANK = b"\n\n"
"""Packages of the API whose pings they are take a comment for a broken event, and pass over an empty line."""
_LAST_NUMBER = 1_000_000
"""Behind the number of every event."""


class Api(NamedTuple):
    """One API on the side of the clients."""

    name: str
    wire: ModuleType
    writer: Callable[[], StreamWriter]
    forms: Mapping[Kind, Form]
    error: Callable[[Form, str], dict[str, Any]]
    """An error as a body."""
    broken: Callable[[Form, str, bytes], bytes]
    """An error as an event of a stream that has begun, with what was sent first of the answer, if anything was."""
    ping: bytes
    """What keeps a silent stream alive."""
    said: Callable[[Said], dict[str, Any]]
    models: Callable[[Sequence[str]], dict[str, Any]]
    counted: Callable[[int], dict[str, Any]]
    """A number of tokens as a body."""
    prefix: str = ""
    """How the ids of its answers begin."""
    closing: Event | None = None
    """The event that says nothing but that the stream is at its end, for an API that has one."""
    ends_lines: bool = False
    """Do its packages take the line ends of other scripts for the end of a line?"""

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


def _anthropic_error(form: Form, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": form.word, "message": message}}


def _openai_error(form: Form, message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": form.word, "param": None, "code": form.code or None}}


def _gemini_error(form: Form, message: str) -> dict[str, Any]:
    return {"error": {"code": form.status, "message": message, "status": form.word}}


def _named_event(name: str, value: dict[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), _encode(value))


def _data_event(value: dict[str, Any]) -> bytes:
    return b"data: %b\n\n" % _encode(value)


def _failed_response(form: Form, message: str, begun: bytes) -> bytes:
    """The failure of the response that has begun; of a new one, which begins first, if none has."""
    response = _created(begun)
    first = b""
    if response is None:
        response = {
            "id": made_id("resp_"),
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


def _created(begun: bytes) -> dict[str, Any] | None:
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


APIS: Mapping[str, Api] = MappingProxyType(
    {
        "anthropic": Api(
            "anthropic",
            anthropic,
            AnthropicWriter,
            ANTHROPIC,
            _anthropic_error,
            lambda form, message, _: _named_event("error", _anthropic_error(form, message)),
            _named_event("ping", {"type": "ping"}),
            anthropic.said_out,
            _anthropic_models,
            lambda count: {"input_tokens": count},
            "msg_",
            Event("message_stop", b'{"type":"message_stop"}'),
        ),
        "openai-chat": Api(
            "openai-chat",
            openai_chat,
            ChatWriter,
            OPENAI,
            _openai_error,
            lambda form, message, _: _data_event(_openai_error(form, message)),
            _COMMENT,
            lambda said: dict(openai_chat.said_out(said, created=int(time.time()))),
            _openai_models,
            lambda count: {"input_tokens": count},
            "chatcmpl-",
            DONE,
        ),
        "openai-responses": Api(
            "openai-responses",
            openai_responses,
            ResponsesWriter,
            OPENAI,
            _openai_error,
            _failed_response,
            _COMMENT,
            lambda said: dict(openai_responses.said_out(said, created=int(time.time()))),
            _openai_models,
            lambda count: {"object": "response.input_tokens", "input_tokens": count},
            "resp_",
        ),
        "gemini": Api(
            "gemini",
            gemini,
            GeminiWriter,
            GEMINI,
            _gemini_error,
            lambda form, message, _: _data_event(_gemini_error(form, message)),
            _BLANK,
            gemini.said_out,
            _gemini_models,
            lambda count: {"totalTokens": count},
            ends_lines=True,
        ),
    }
)
"""The APIs by the names of their wires."""
