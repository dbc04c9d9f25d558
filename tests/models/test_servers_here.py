"""A model server on this machine: found by a short look, and never waited for."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ferrule.models.catalog import choose
from ferrule.models.hosts import model_here
from ferrule.settings import Models

NOBODY = {"OLLAMA_HOST": "http://127.0.0.1:9", "LLAMACPP_BASE_URL": "http://127.0.0.1:9/v1"}


@contextmanager
def serving(body: bytes, status: int = 200) -> Iterator[str]:
    """A server that answers the one question about its models."""

    class Handler(BaseHTTPRequestHandler):
        disable_nagle_algorithm = True  # otherwise what is said in two writes waits for an acknowledgement, 40 ms

        def do_GET(self):
            self.send_response(status if self.path == "/v1/models" else 404)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def models(*names: object) -> bytes:
    return json.dumps({"object": "list", "data": [{"id": name} for name in names]}).encode()


def test_the_first_model_of_ollama_is_asked_before_that_of_llama_cpp():
    with serving(models("qwen3:8b", "llama3")) as ollama, serving(models("a.gguf")) as llama:
        both = model_here(Models(), {"OLLAMA_HOST": ollama, "LLAMACPP_BASE_URL": f"{llama}/v1"})
        one = model_here(Models(), {**NOBODY, "LLAMACPP_BASE_URL": f"{llama}/v1"})

    assert (both, one) == ("ollama:qwen3:8b", "llamacpp:a.gguf")


def test_a_key_comes_before_a_server_and_the_reason_is_told():
    with serving(models("qwen3")) as url:
        here = {**NOBODY, "OLLAMA_HOST": url}
        found = [choose(None, Models(), {**here, **key}) for key in ({}, {"GROQ_API_KEY": "k"})]

    assert [(one.name, one.why) for one in found] == [
        ("ollama:qwen3", "because ollama runs on this machine"),
        ("groq:openai/gpt-oss-120b", "because GROQ_API_KEY is set"),
    ]


@pytest.mark.parametrize(
    ("body", "status", "wanted"),
    [
        pytest.param(models("nomic-embed-text:latest", "qwen3"), 200, "ollama:qwen3", id="one that makes vectors"),
        pytest.param(models("nomic-embed-text"), 200, "", id="only such"),
        pytest.param(models(), 200, "", id="no models"),
        pytest.param(models(3, "\x1b[2J", ""), 200, "", id="names that are none"),
        pytest.param(b"<html>", 200, "", id="a page"),
        pytest.param(b"[1]", 200, "", id="a list"),
        pytest.param(models("qwen3"), 500, "", id="a failure"),
    ],
)
def test_what_is_no_list_of_models_is_no_model(body, status, wanted):
    with serving(body, status) as url:
        assert model_here(Models(), {**NOBODY, "OLLAMA_HOST": url}) == wanted


def test_a_server_that_does_not_answer_is_not_waited_for():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"

        assert model_here(Models(), {**NOBODY, "OLLAMA_HOST": url}) == ""


def test_no_other_machine_is_looked_at():
    assert (
        model_here(Models(), {"OLLAMA_HOST": "http://192.0.2.1:11434", "LLAMACPP_BASE_URL": "http://[::2]:1/v1"}) == ""
    )
