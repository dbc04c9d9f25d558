"""`ferrule models`: the hosts, the keys that are set and never shown, the model that is chosen, and hosts asked."""

import asyncio
import json
import threading

import pytest
from click.testing import CliRunner
from tests.cli.talk.terminals import Pty
from tests.models.server import Exchange, Server, serving
from tests.models.spoken import ANTHROPIC, events

from ferrule.cli.main import cli, run

KEY = "sk-ant-THE-SECRET-0123456789"


def ran(*args: str):
    return CliRunner().invoke(cli, ["models", *args], standalone_mode=False)


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    for name in ("FERRULE_MODEL", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY", "GEMINI_API_KEY", "OLLAMA_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)


def test_hosts_are_listed_with_their_keys_by_name_only():
    out = ran().output

    assert "anthropic    anthropic         https://api.anthropic.com" in out
    assert "ANTHROPIC_API_KEY is set" in out
    assert "OPENAI_API_KEY is not set" in out
    assert "none needed" in out
    assert KEY not in out


def test_without_a_model_it_says_how_to_choose_one(monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY")

    assert ran().output.startswith("No model is chosen: set a key, keep one with `ferrule login HOST`")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param("opus", "opus, that is anthropic:claude-opus-5-5, is asked, by --model.", id="a short name"),
        pytest.param("anthropic:x", "anthropic:x is asked, by --model.", id="a whole name"),
        pytest.param("nosuch:x", "nosuch:x is chosen, by --model, and cannot be asked: No host", id="no such host"),
    ],
)
def test_it_says_what_the_chosen_name_means(name, words):
    assert ran("--model", name).output.startswith(words)


CHOSEN = [
    pytest.param((), {"FERRULE_MODEL": "opus"}, ("opus", "environment", "anthropic:claude-opus-5-5"), id="environment"),
    pytest.param(("--model", "o:x"), {"FERRULE_MODEL": "opus"}, ("o:x", "flag", None), id="flag"),
    pytest.param((), {}, ("anthropic:claude-opus-5-5", "key", "anthropic:claude-opus-5-5"), id="key"),
    pytest.param((), {"ANTHROPIC_API_KEY": ""}, None, id="none"),
]


@pytest.mark.parametrize(("args", "environment", "wanted"), CHOSEN)
def test_it_says_which_model_is_chosen_and_by_whom(args, environment, wanted, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    value = json.loads(ran(*args, "--json").output)

    model = value["model"]
    assert (model and (model["name"], model["by"], model["means"])) == wanted
    assert bool(model and model["error"]) == (wanted is not None and wanted[2] is None)
    assert value["roles"]["sonnet"].startswith("anthropic:claude-sonnet")
    assert {host["name"]: host["key_set"] for host in value["hosts"]}["anthropic"] is bool(
        environment.get("ANTHROPIC_API_KEY", KEY)
    )
    assert any(row["begins"] == "claude-opus-5-5" and row["prices"]["input"] == 4 for row in value["known"])


class Apart:
    """A server that runs in a thread of its own, as the command has a loop of its own."""

    def __init__(self, *plays) -> None:
        self._plays = plays
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()))

    async def _main(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        async with serving() as self.server:
            self.server.play(*self._plays)
            self._ready.set()
            await self._over.wait()

    def __enter__(self) -> Server:
        self._thread.start()
        assert self._ready.wait(20)
        return self.server

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(20)


async def names(exchange: Exchange) -> None:
    await exchange.whole(200, {"data": [{"id": "claude-b"}, {"id": "claude-a"}, {"id": "evil\x1b[2J"}, {"no": 1}]})


async def streaming(exchange: Exchange) -> None:
    await exchange.stream(ANTHROPIC.stream)


async def refuse(exchange: Exchange) -> None:
    await exchange.whole(401, {"error": {"type": "authentication_error", "message": f"bad key {KEY}"}})


def test_a_host_is_asked_for_its_models(monkeypatch):
    with Apart(names) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)

        assert ran("list", "anthropic").output == "claude-a\nclaude-b\n"
        assert json.loads(ran("list", "anthropic", "--json").output) == ["claude-a", "claude-b"]
        assert [(one.method, one.path) for one in server.asked] == [("GET", "/v1/models?limit=1000")] * 2


def test_a_model_is_asked_for_one_word(monkeypatch):
    with Apart(streaming) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        shown = ran("test", "claude-opus-4-5")
        told = json.loads(ran("test", "claude-opus-4-5", "--json").output)

    assert "anthropic:claude-opus-4-5 said 'Größe" in shown.output
    assert "100 tokens in, 55 out, $0.0" in shown.output
    assert told["usage"]["cache_read"] == 70
    assert told["cost"] > 0


def test_a_refusal_is_one_line_and_a_failure(monkeypatch, capsys):
    with Apart(refuse) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)

        assert run(["models", "test", "claude-opus-4-5"]) == 1
        shown = capsys.readouterr()
        assert run(["models", "test", "claude-opus-4-5", "--json"]) == 1
        told = json.loads(capsys.readouterr().out)

    assert "refuses the key of ANTHROPIC_API_KEY" in shown.err
    assert KEY not in shown.err + shown.out + json.dumps(told)
    assert told["error"]["kind"] == "wrong-key"


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        pytest.param(["list"], 2, "Write `ferrule models list HOST`", id="no host"),
        pytest.param(["list", "antropic"], 2, "Did you mean 'anthropic'", id="no such host"),
        pytest.param(["list", "anthropic:x"], 2, "Did you mean 'anthropic'", id="a model for a host"),
        pytest.param(["list", "scripted"], 2, "write scripted:FILE", id="a kind of file"),
        pytest.param(["test", "anthropic"], 2, "names no model: write anthropic:MODEL", id="a host for a model"),
        pytest.param(["test", "openai:gpt-5.2"], 2, "OPENAI_API_KEY is not set", id="no key"),
        pytest.param(["list", "openai"], 2, "OPENAI_API_KEY is not set", id="no key for a list"),
        pytest.param(["test", "local:nosuch.gguf"], 2, "There is no file", id="no file"),
        pytest.param(["test", "scripted:nosuch"], 2, "cannot be read", id="no recording"),
        pytest.param(["show", "x"], 2, "Write `ferrule models`", id="too much"),
    ],
)
def test_a_mistake_says_what_to_do(args, code, words, capsys):
    assert run(["models", *args]) == code
    assert words in capsys.readouterr().err


def test_without_a_model_there_is_none_to_test(capsys, monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY")

    assert run(["models", "test"]) == 2
    assert "No model is chosen" in capsys.readouterr().err


async def chatting(exchange: Exchange) -> None:
    await exchange.stream(events(*WORDS, "[DONE]"))


WORDS = (
    {"id": "x", "choices": [{"index": 0, "delta": {"content": "Hi."}}]},
    {"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
)
UNKNOWN = "warning: The limit of $0.5 does not hold for ollama:qwen3: what it costs is not known."


@pytest.mark.parametrize(
    ("more", "settings", "is_told"),
    [
        pytest.param(["--max-cost", "0.5"], "", True, id="by a flag"),
        pytest.param([], "[loop]\ncost = 0.5\n", True, id="by a setting"),
        pytest.param([], "", False, id="no limit"),
        pytest.param(["--max-cost", "0.5"], '[models.known."qwen3"]\ninput = 1.0\noutput = 2.0\n', False, id="known"),
    ],
)
def test_a_limit_of_money_that_cannot_hold_is_told_once(more, settings, is_told, monkeypatch, capsys, tmp_path):
    (tmp_path / "settings.toml").write_text(settings)
    monkeypatch.setenv("FERRULE_SETTINGS", str(tmp_path / "settings.toml"))
    monkeypatch.setenv("FERRULE_STATE", str(tmp_path / "state"))
    (tmp_path / "it").mkdir()
    monkeypatch.chdir(tmp_path / "it")
    with Apart(chatting) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        assert run(["run", "Hello?", "--model", "ollama:qwen3", *more]) == 0

    out, err = capsys.readouterr()
    assert out == "Hi.\n"
    assert err.count(UNKNOWN) == is_told
    if is_told:
        assert '[models.known."qwen3"]' in err


async def busy(exchange: Exchange) -> None:
    await exchange.whole(529, {"error": {"type": "overloaded_error", "message": "Overloaded"}}, retry_after="0")


@pytest.mark.parametrize("output", ["text", "stream-json"])
def test_that_a_host_is_asked_again_is_seen_in_a_pipe(output, monkeypatch, capfdbinary, tmp_path):
    monkeypatch.setenv("FERRULE_STATE", str(tmp_path / "state"))
    (tmp_path / "it").mkdir()
    monkeypatch.chdir(tmp_path / "it")
    with Apart(busy, chatting) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        assert run(["run", "Hello?", "--model", "ollama:qwen3", "--output", output]) == 0

    out, err = (text.decode() for text in capfdbinary.readouterr())
    if output == "text":
        assert (out, err) == ("Hi.\n", "  … The host is overloaded (HTTP 529). Asked again.\n")
        return
    again = [line for line in map(json.loads, out.splitlines()) if line.get("subtype") == "api_retry"]
    assert [(line["attempt"], line["error"]) for line in again] == [(1, "the host is overloaded (HTTP 529)")]


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_on_a_narrow_terminal_no_cell_of_a_table_is_broken(tmp_path, monkeypatch, columns):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    one = Pty(columns, 200)
    try:
        one.start(["models"], tmp_path, COLUMNS=str(columns))
        assert one.ended() == 0
        rows = one.screen().split("\n")
    finally:
        one.close()
    keys = [row for row in rows if "MISTRAL_API_KEY is not set" in row]

    assert len(keys) == 1
    assert keys[0].startswith("mistral") == (columns == 120)
    assert [row for row in rows if len(row.rstrip()) > columns and ("_KEY" in row or "http" in row)] == []
