"""A Messages API on loopback that says what a test has written down, and keeps what it was asked."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USAGE = {"input_tokens": 100, "output_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
Cue = str | list[tuple[str, Mapping[str, Any]]] | int | None | Callable[[Mapping[str, Any]], "Cue"]
"""Words; calls as name and input; a status that is no success; None, an answer that never ends; or what is to be asked
for one of these with the request."""


class Talk:
    """What one test has the model say: to each conversation, known by words of its first prompt, its cues in turn."""

    def __init__(self, cues: Mapping[str, Sequence[Cue]]) -> None:
        self._cues = cues
        self.asked: list[dict[str, Any]] = []
        """The bodies of the requests that belong to a conversation, with their headers as `headers`."""
        self.released = threading.Event()

    def cue(self, body: Mapping[str, Any]) -> Cue:
        """The answers so far say how far the conversation is; what a program asks beside it is answered too."""
        text = " ".join(texts(body["messages"]))
        found = next((cues for words, cues in self._cues.items() if words in text), ())
        turn = sum(message["role"] == "assistant" for message in body["messages"])
        cue = found[turn] if turn < len(found) else "Done."
        return cue(body) if callable(cue) else cue


def texts(messages: Any) -> Iterator[str]:
    """The words of all user messages."""
    for message in messages:
        if message["role"] == "user":
            content = message["content"]
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            yield from (block["text"] for block in blocks if block.get("type") == "text")


class MessagesApi:
    """One server for all tests; each has an address of its own on it."""

    def __init__(self) -> None:
        self._talks: dict[str, Talk] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self._talks))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def talk(self, cues: Mapping[str, Sequence[Cue]]) -> tuple[str, Talk]:
        """An address, and what is said there."""
        name = f"t{len(self._talks)}"
        talk = self._talks[name] = Talk(cues)
        return f"http://127.0.0.1:{self._server.server_address[1]}/{name}", talk

    def close(self) -> None:
        for talk in self._talks.values():
            talk.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(talks: Mapping[str, Talk]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        disable_nagle_algorithm = True  # otherwise what is said in two writes waits for an acknowledgement, 40 ms

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            _, name, *rest = self.path.partition("?")[0].split("/")
            if rest[-1] != "messages":
                self._send(404, b'{"type":"error","error":{"type":"not_found_error","message":"no"}}')
                return
            talk = talks[name]
            talk.asked.append({**body, "headers": {key.lower(): value for key, value in self.headers.items()}})
            cue = talk.cue(body)
            if isinstance(cue, int):
                kind = {529: "overloaded_error", 404: "not_found_error"}.get(cue, "invalid_request_error")
                error = {"type": "error", "error": {"type": kind, "message": f"status {cue}"}}
                self._send(cue, json.dumps(error).encode())
            elif body.get("stream"):
                self._stream(talk, cue, body["model"])
            else:
                self._send(200, json.dumps({**_opening(body["model"]), "content": _blocks(cue)}).encode())

        def do_GET(self) -> None:
            self._send(404, b"{}")

        def do_HEAD(self) -> None:
            self.do_GET()

        def _send(self, status: int, raw: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.send_header("x-should-retry", "false")
            self.end_headers()
            self.wfile.write(raw)

        def _stream(self, talk: Talk, cue: Cue, model: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            for event in _events(cue, model):
                if event is None:
                    talk.released.wait(60)
                    return
                self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
                self.wfile.flush()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
            pass

    return Handler


_COUNT = iter(range(1, 1 << 30))


def _opening(model: str) -> dict[str, Any]:
    about = {"id": f"msg_{next(_COUNT):08}", "type": "message", "role": "assistant", "model": model, "content": []}
    return {**about, "stop_reason": None, "stop_sequence": None, "usage": USAGE}


def _blocks(cue: Cue) -> list[dict[str, Any]]:
    if isinstance(cue, str):
        return [{"type": "text", "text": cue}]
    assert isinstance(cue, list)
    return [{"type": "tool_use", "id": f"toolu_{next(_COUNT):08}", "name": name, "input": given} for name, given in cue]


def _events(cue: Cue, model: str) -> Iterator[dict[str, Any] | None]:
    yield {"type": "message_start", "message": _opening(model)}
    for at, block in enumerate(_blocks("I think" if cue is None else cue)):
        if block["type"] == "text":
            yield {"type": "content_block_start", "index": at, "content_block": {"type": "text", "text": ""}}
            yield {"type": "content_block_delta", "index": at, "delta": {"type": "text_delta", "text": block["text"]}}
        else:
            yield {"type": "content_block_start", "index": at, "content_block": {**block, "input": {}}}
            piece = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            yield {"type": "content_block_delta", "index": at, "delta": piece}
        if cue is None:
            yield None
        yield {"type": "content_block_stop", "index": at}
    reason = "tool_use" if isinstance(cue, list) else "end_turn"
    delta = {"stop_reason": reason, "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 10}}
    yield {"type": "message_stop"}
