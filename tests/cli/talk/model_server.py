"""A Messages API on loopback that streams what a test has written down, piece by piece, and can hold in the middle."""

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

USAGE = {"input_tokens": 1200, "output_tokens": 80, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 5000}
_LIMIT_SECONDS = 60.0


class Think(NamedTuple):
    """What the model thinks."""

    text: str


class Use(NamedTuple):
    """A call."""

    name: str
    input: Mapping[str, Any]


class Hold(NamedTuple):
    """The stream stops here until it is released."""


class Fail(NamedTuple):
    """The request fails with a status."""

    status: int
    message: str
    kind: str = "invalid_request_error"


Item = str | Think | Use | Hold | Fail
Answer = Sequence[Item] | Callable[[Mapping[str, Any]], Sequence[Item]]
"""What is said at once; or what makes that of the request."""
Script = Mapping[str, Sequence[Answer]]
"""For the last prompt that has these words in it: what is answered to it, and then to the results of the calls."""


class ModelServer:
    """One scripted model. It is asked at `url` as anything that speaks the Messages API."""

    def __init__(self, script: Script, *, piece: int = 12, pause: float = 0.0) -> None:
        """Text comes in pieces of so many characters, with a pause after each."""
        self.asked: list[dict[str, Any]] = []
        self._script = script
        self._piece = piece
        self._pause = pause
        self._releases = threading.Semaphore(0)
        self._held = threading.Semaphore(0)
        self._over = threading.Event()
        self._ids = itertools.count(1)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def environment(self) -> dict[str, str]:
        """What makes `ferrule` ask here."""
        return {"ANTHROPIC_BASE_URL": self.url, "ANTHROPIC_API_KEY": "none"}

    def release(self) -> None:
        """Let the stream go on that is held, or that will be."""
        self._releases.release()

    def is_held(self, seconds: float = 0.0) -> bool:
        """Has another stream come to a hold?"""
        return self._held.acquire(timeout=seconds) if seconds else self._held.acquire(blocking=False)

    def answer(self, body: Mapping[str, Any]) -> Sequence[Item]:
        """By the last prompt that the script knows, and how often the model has answered since."""
        found = self._found(body)
        return found(body) if callable(found) else found

    def _found(self, body: Mapping[str, Any]) -> Answer:
        turn = 0
        for message in reversed(body["messages"]):
            if message["role"] == "assistant":
                turn += 1
                continue
            said = " ".join(_texts(message["content"]))
            found = next((answers for words, answers in self._script.items() if words in said), None)
            if found is not None:
                return found[turn] if turn < len(found) else ["Done."]
        return ["Done."]

    def events(self, answer: Sequence[Item], model: str) -> Iterator[dict[str, Any] | None]:
        """The stream of an answer; None where it is to hold."""
        yield {"type": "message_start", "message": self._opening(model)}
        at = 0
        for item in answer:
            match item:
                case str():
                    yield from self._block(at, {"type": "text", "text": ""}, "text", item)
                case Think(text):
                    block: dict[str, Any] = {"type": "thinking", "thinking": "", "signature": "none"}
                    yield from self._block(at, block, "thinking", text)
                case Use(name, given):
                    block = {"type": "tool_use", "id": f"toolu_{next(self._ids):06}", "name": name, "input": {}}
                    yield from self._block(at, block, "input_json", json.dumps(given), piece=4096)
                case _:
                    yield None
                    continue
            at += 1
        reason = "tool_use" if any(isinstance(item, Use) for item in answer) else "end_turn"
        delta = {"stop_reason": reason, "stop_sequence": None}
        yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": USAGE["output_tokens"]}}
        yield {"type": "message_stop"}

    def _block(
        self, at: int, block: dict[str, Any], kind: str, text: str, piece: int | None = None
    ) -> Iterator[dict[str, Any] | None]:
        yield {"type": "content_block_start", "index": at, "content_block": block}
        name = {"input_json": "partial_json"}.get(kind, kind)
        # A hold inside of a text, so that a block can be half written.
        for number, part in enumerate(text.split("<HOLD>")):
            if number:
                yield None
            size = piece or self._piece
            for start in range(0, len(part), size):
                delta = {"type": f"{kind}_delta", name: part[start : start + size]}
                yield {"type": "content_block_delta", "index": at, "delta": delta}
        yield {"type": "content_block_stop", "index": at}

    def _opening(self, model: str) -> dict[str, Any]:
        about = {"id": f"msg_{next(self._ids):06}", "type": "message", "role": "assistant", "model": model}
        return {**about, "content": list[Any](), "stop_reason": None, "stop_sequence": None, "usage": USAGE}

    def _hold(self) -> bool:
        """Wait until it is released; False where all is over."""
        self._held.release()
        end = time.monotonic() + _LIMIT_SECONDS
        while not self._over.is_set() and time.monotonic() < end:
            if self._releases.acquire(timeout=0.05):
                return True
        return False

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            disable_nagle_algorithm = True  # otherwise what is said in two writes waits for an acknowledgement, 40 ms

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.asked.append(body)
                answer = server.answer(body)
                if answer and isinstance(fail := answer[0], Fail):
                    error = {"type": "error", "error": {"type": fail.kind, "message": fail.message}}
                    self._send(fail.status, json.dumps(error).encode())
                else:
                    self._stream(answer, body["model"])

            def _send(self, status: int, raw: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(raw)))
                self.send_header("x-should-retry", "false")
                self.end_headers()
                self.wfile.write(raw)

            def _stream(self, answer: Sequence[Item], model: str) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Connection", "close")
                self.end_headers()
                try:
                    for event in server.events(answer, model):
                        if event is None:
                            if not server._hold():
                                return
                            continue
                        self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
                        self.wfile.flush()
                        if server._pause and event["type"] == "content_block_delta":
                            server._over.wait(server._pause)
                except OSError:
                    pass  # whoever asked has stopped the answer

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
                pass

        return Handler


def _texts(content: Any) -> Iterator[str]:
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    yield from (block["text"] for block in blocks if block.get("type") == "text")
