"""Real client programs through `ferrule proxy`: twenty turns each, onto each wire, and LiteLLM behind it once."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.clients.install import installed, version
from bench.clients.play import MODELS, Outcome, Via, converse
from bench.clients.programs import CLIENTS, FOLDER, Client
from bench.clients.script import turns
from bench.proxy.peers import PEERS, running
from bench.proxy.stage import TOKEN

from trials.trial import Place, Row, Trial, tried

TURNS = 20
_BEHIND = "claude"
"""The client of the conversation with LiteLLM behind the proxy."""


def _rows(place: Place) -> Iterator[Row]:
    place.tool("clients")
    modules = FOLDER / "node_modules"
    if why := installed():
        yield Row("the clients", "installed from npm", why, None)
        return
    good = 0
    for client in CLIENTS:
        for wire in MODELS:
            row = tried(
                f"{client.name} {version(client)} onto {wire}", _expected(client), _measured(client, wire, modules)
            )
            good += bool(row.ok)
            yield row
    wanted = len(CLIENTS) * len(MODELS)
    yield Row("whole conversations", f"{wanted} of {wanted}", f"{good} of {wanted}", good == wanted)
    client = next(one for one in CLIENTS if one.name == _BEHIND)
    what = f"{client.name} onto {PEERS[0].label} {PEERS[0].version}, and from there onto openai-chat"
    yield tried(what, _expected(client), _behind(client, modules))


def _expected(client: Client) -> str:
    lacks = sorted({turn.needs for turn in turns(waits=client.waits) if turn.needs} - client.can)
    without = f" (it has no {' and no '.join(lacks)})" if lacks else ""
    return f"exit 0, {TURNS} turns, files as written, bodies that a host takes, tokens, nobody else asked{without}"


def _measured(client: Client, wire: str, modules: Path) -> Callable[[], tuple[str, bool]]:
    def measure() -> tuple[str, bool]:
        folder = Path(tempfile.mkdtemp(prefix="ferrule-client-"))
        try:
            return said(asyncio.run(converse(client, modules, wire, folder)))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    return measure


def _behind(client: Client, modules: Path) -> Callable[[], tuple[str, bool]]:
    @asynccontextmanager
    async def litellm(url: str) -> AsyncIterator[Via]:
        async with running(PEERS[0], url) as peer:
            yield Via(peer.url, TOKEN, "openai-chat:openai-chat-m")

    async def hold(folder: Path) -> Outcome:
        return await converse(client, modules, "openai-chat", folder, behind=litellm)

    def measure() -> tuple[str, bool]:
        folder = Path(tempfile.mkdtemp(prefix="ferrule-client-"))
        try:
            return said(asyncio.run(hold(folder)))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    return measure


def said(out: Outcome) -> tuple[str, bool]:
    """What came of a conversation in one line, and whether it is as it must be."""
    faults = [*out.faults, *(f"asked {one}" for one in out.outside)]
    counts = f"exit {out.exit}, {out.turns} turns, {out.requests} requests ({out.side} not of the script)"
    measured = f"{counts}, {out.calls} calls, {out.tokens:,} tokens told, {out.input:,} logged"
    ok = out.exit == 0 and out.turns == TURNS and not faults and out.tokens > 0 and out.input > 0
    return "; ".join((measured, *faults)), ok


TRIAL = Trial(
    "proxy",
    "Claude Code, codex, gemini-cli, opencode, pi and qwen-code from npm through `ferrule proxy`, each onto four "
    "wires: 20 turns with text, thinking, tools that run, 20 calls at once, pictures, agents, hooks, 429 and 529, cut "
    "streams, an interrupt. The upstream is a fake on loopback that refuses what a host would refuse.",
    _rows,
)
