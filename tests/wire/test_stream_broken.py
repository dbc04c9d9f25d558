"""Answers that broke: the official packages raise, whatever had been said, and nothing looks like a success."""

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from ferrule.wire import AnswerEnd, AnswerStart, Broke, Delta, TextPiece, ThinkingPiece, UseBegun, UseEnded, UsePiece
from ferrule.wire.stream import failure_of
from tests.rows import each_row
from tests.wire.streams import WRITERS, parsed, raw

pytestmark = pytest.mark.usefixtures("packages")

SAID: list[Any] = [
    pytest.param([], id="nothing-said"),
    pytest.param([TextPiece("Hel"), TextPiece("lo")], id="text"),
    pytest.param([ThinkingPiece("hm")], id="thinking"),
    pytest.param([UseBegun(0, "call_1", "Write"), UsePiece(0, '{"content":"a')], id="half-a-call"),
    pytest.param(
        [UseBegun(0, "call_1", "Write"), UseBegun(1, "call_2", "Read"), UsePiece(1, "{}"), UseEnded(1)],
        id="a-whole-call-behind-half-a-call",
    ),
    pytest.param([UseBegun(0, "call_1", "Read"), UsePiece(0, "{}"), UseEnded(0), TextPiece("a")], id="a-whole-call"),
]


class _Server(ThreadingHTTPServer):
    stream = b""


class _Answer(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, _Server)
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(self.server.stream)))
        self.end_headers()
        self.wfile.write(self.server.stream)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[_Server]:
    with _Server(("127.0.0.1", 0), _Answer) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def _anthropic(url: str) -> None:
    from anthropic import Anthropic, APIStatusError

    client = Anthropic(api_key="k", base_url=url, max_retries=0)
    messages: Any = [{"role": "user", "content": "x"}]
    with (
        client,
        pytest.raises(APIStatusError, match="Boom"),
        client.messages.stream(model="m", max_tokens=9, messages=messages) as stream,
    ):
        stream.get_final_message()


def _chat(url: str) -> None:
    from openai import APIError, OpenAI

    client = OpenAI(api_key="k", base_url=url, max_retries=0)
    messages: Any = [{"role": "user", "content": "x"}]
    with client, pytest.raises(APIError, match="Boom"):
        list(client.chat.completions.create(model="m", messages=messages, stream=True))


def _responses(url: str) -> None:
    from openai import APIError, OpenAI

    client = OpenAI(api_key="k", base_url=url, max_retries=0)
    with client, pytest.raises(APIError, match="Boom"):
        list(client.responses.create(model="m", input="x", stream=True))


def _gemini(url: str) -> None:
    from google import genai
    from google.genai import errors, types

    client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=url))
    with client, pytest.raises(errors.APIError, match="Boom"):
        list(client.models.generate_content_stream(model="m", contents="x"))


CLIENTS: dict[str, Callable[[str], None]] = {
    "anthropic": _anthropic,
    "chat": _chat,
    "responses": _responses,
    "gemini": _gemini,
}


def broken(said: list[Delta], kind: str = "") -> list[Delta]:
    ends: list[Delta] = [UseEnded(0, cut=True), AnswerEnd("end")]
    return [AnswerStart("id_1", "model-1"), *said, Broke("Boom", kind), *ends]


@pytest.mark.parametrize("said", SAID)
@pytest.mark.parametrize("wire", CLIENTS)
def test_the_package_of_each_api_raises(wire, said, server):
    server.stream = raw(WRITERS[wire](), broken(said))

    CLIENTS[wire](f"http://127.0.0.1:{server.server_port}")


@each_row("said", SAID)
@each_row("wire", CLIENTS)
def test_nothing_is_said_behind_the_error_and_no_half_call_is_ended(wire, said):
    stream = raw(WRITERS[wire](), broken(said))

    *before, last = parsed(stream)
    assert "Boom" in str(last)
    assert b"[DONE]" not in stream
    finishes = [choice["finish_reason"] for one in before for choice in one.get("choices", ())]
    assert set(finishes) <= {None}
    assert not [one for one in before if one.get("type") in {"message_delta", "message_stop", "response.completed"}]
    assert not [one for one in before for candidate in one.get("candidates", ()) if "finishReason" in candidate]
    ended = [one for one in before if "call_1" in str(one.get("item")) and one["type"].endswith("item.done")]
    assert bool(ended) is (wire == "responses" and any(isinstance(one, UseEnded) and one.at == 0 for one in said))


@each_row(
    ("kind", "anthropic", "openai", "gemini"),
    [
        ("overloaded_error", "overloaded_error", "server_is_overloaded", ("UNAVAILABLE", 503)),
        ("UNAVAILABLE", "api_error", "server_error", ("UNAVAILABLE", 503)),
        ("rate_limit_exceeded", "rate_limit_error", "rate_limit_exceeded", ("RESOURCE_EXHAUSTED", 429)),
        ("429", "rate_limit_error", "rate_limit_exceeded", ("RESOURCE_EXHAUSTED", 429)),
        ("insufficient_quota", "billing_error", "insufficient_quota", ("RESOURCE_EXHAUSTED", 429)),
        ("too-long", "invalid_request_error", "context_length_exceeded", ("INVALID_ARGUMENT", 400)),
        ("cut", "api_error", "server_error", ("UNAVAILABLE", 503)),
        ("something new", "api_error", "server_error", ("INTERNAL", 500)),
        ("", "api_error", "server_error", ("INTERNAL", 500)),
    ],
)
def test_an_error_of_any_api_has_a_name_in_all_of_them(kind, anthropic, openai, gemini):
    found = failure_of(kind)

    assert (found.anthropic, found.openai, (found.gemini, found.status)) == (anthropic, openai, gemini)


def test_a_call_that_was_cut_is_not_part_of_an_answer_that_seems_whole():
    deltas: list[Delta] = [
        AnswerStart("i", "m"),
        UseBegun(0, "c", "f"),
        UsePiece(0, '{"a"'),
        UseEnded(0, cut=True),
        AnswerEnd("tools"),
    ]

    *_, last, _ = parsed(raw(WRITERS["anthropic"](), deltas))

    assert last["delta"]["stop_reason"] == "max_tokens"
