"""`/model`: the models that can be asked now, chosen from a list."""

import http.server
import json
import threading

import pytest
from tests.cli.talk.typing_front import talk

from ferrule.cli.talk.inventory import list_model_names, usable
from ferrule.models.hosts import ROWS
from ferrule.models.recorder import Scripted
from ferrule.settings import ModelHost, Models


@pytest.fixture
def bare(monkeypatch):
    """No key at all, and no model server that could answer."""
    for row in ROWS.values():
        for name in row.keys:
            monkeypatch.delenv(name, raising=False)
    for name in ("OLLAMA_HOST", "VLLM_BASE_URL", "LLAMACPP_BASE_URL", "LMSTUDIO_BASE_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")


@pytest.fixture
def ollama(bare, monkeypatch):
    """A model server on this machine."""

    class Handler(http.server.BaseHTTPRequestHandler):
        disable_nagle_algorithm = True  # otherwise what is said in two writes waits for an acknowledgement, 40 ms

        def do_GET(self):
            raw = json.dumps({"data": [{"id": "qwen3:8b"}, {"id": "llama4"}, {"id": "\x1b[2J"}, 7]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_): ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("OLLAMA_HOST", f"http://127.0.0.1:{server.server_port}")
    yield
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.usefixtures("bare")
def test_only_models_of_hosts_with_keys_are_listed(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "x")
    settings = Models(hosts={"mine": ModelHost(url="http://127.0.0.1:1/v1")}, roles={"finder": "mine:tiny"})
    hosts = usable(settings)
    names = list_model_names(settings, hosts, {"ollama": ["qwen3"]})

    assert [host.name for host in hosts] == ["mine", "anthropic"]
    assert names[:3] == ["mine:tiny", "ollama:qwen3", "anthropic:claude-fable-5-1"]
    assert all(name.startswith("anthropic:claude-") for name in names[2:])
    assert len(names) == len(set(names))
    assert "anthropic:claude-opus-5" in names


@pytest.mark.usefixtures("bare")
async def test_a_model_is_chosen_by_search_with_its_window_and_prices(tmp_path, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "x")
    front = await talk(tmp_path, Scripted(), "/model", "/model", answers=["haiku 5-5", "1", ""])

    first, second = (part.split("\n> ", 1)[0] for part in front.shown.split("\n> /model\n")[1:])
    assert "anthropic:claude-haiku-5-5    haiku   1.0M  $0.1 / $0.5" in first
    assert "The model is anthropic:claude-haiku-5-5 from now on." in first
    assert "anthropic:claude-haiku-5-5      now" in second
    assert "The model is anthropic:claude-haiku-5-5." in second


@pytest.mark.usefixtures("ollama")
async def test_models_of_a_server_on_this_machine_are_listed(tmp_path):
    front = await talk(tmp_path, Scripted(), "/model", answers=[""])

    shown = front.after("/model")
    assert "ollama:qwen3:8b" in shown
    assert "ollama:llama4" in shown
    assert "\x1b" not in shown


@pytest.mark.usefixtures("bare")
async def test_without_any_host_it_says_what_to_do(tmp_path):
    front = await talk(tmp_path, Scripted(), "/model")

    assert "The model is scripted" in front.after("/model")
    assert "ferrule login HOST" in front.after("/model")
