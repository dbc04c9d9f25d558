"""What the proxy adds to an answer, beside a bare relay of `httpcore2` behind the same server, in one run.

The proxy and the relay have one core for themselves, clients and upstream the other. Both are asked in turns. So is
LiteLLM's proxy, where `python -m bench.proxy --peers` has installed it; no limit holds for it.
"""

import asyncio
import contextlib
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import NamedTuple

from bench.measure import Row
from bench.proxy.peers import FOLDER, PEERS, Install, answers
from bench.proxy.programs import HOLD, PIECES, SHORT
from bench.proxy.stage import TOKEN

STREAMS = 300
ROUNDS = 5
FIRSTS = 150
"""Requests of which the time to the first byte is taken."""
_SETTINGS = """
[models.hosts.same]
api = "anthropic"
url = "http://127.0.0.1:{port}"
[models.hosts.other]
api = "openai-chat"
url = "http://127.0.0.1:{port}/v1"
[proxy]
parallel = 1000
[proxy.models]
"same" = "same:m"
"other" = "other:m"
"""


class Place(NamedTuple):
    """Something that answers, and the model that is asked for there."""

    port: int
    model: str


def rows() -> Iterator[Row]:
    with contextlib.ExitStack() as stack:
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[-1]})
        stack.callback(os.sched_setaffinity, 0, set(cores))
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        upstream, _ = _start(stack, [sys.executable, "-m", "bench.proxy.programs", "upstream"], cores[-1])
        relay_port, _ = _start(stack, [sys.executable, "-m", "bench.proxy.programs", "relay", str(upstream)], cores[0])
        settings = os.path.join(folder, "settings.toml")
        with open(settings, "w", encoding="utf-8") as file:
            file.write(_SETTINGS.format(port=upstream))
        relay = Place(relay_port, "same")
        for model, what in (("same", "the same API"), ("other", "Messages on a Chat host")):
            port, process = _start(
                stack,
                [sys.executable, "-m", "ferrule", "proxy", "--listen", "127.0.0.1:0", "--quiet"],
                cores[0],
                {"FERRULE_SETTINGS": settings, "FERRULE_STATE": folder, "FERRULE_PROXY_TOKEN": TOKEN},
            )
            yield from asyncio.run(_compared(relay, Place(port, model), process.pid, ("proxy", what)))
        if (FOLDER / "litellm" / "venv").exists():
            install = PEERS[0]
            port, pid = _start_peer(stack, install, upstream, cores)
            for wire, what in (("anthropic", "the same API"), ("openai-chat", "Messages on a Chat host")):
                row = (f"{install.label} {install.version}", what)
                yield from asyncio.run(_compared(relay, Place(port, f"{wire}-m"), pid, row, rounds=1, limited=False))


def _start_peer(stack: contextlib.ExitStack, install: Install, upstream: int, cores: list[int]) -> tuple[int, int]:
    """Another proxy on the core of ours, and its port and process."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = stack.enter_context((FOLDER / "load.log").open("wb"))
    # What it is started with is inherited.
    os.sched_setaffinity(0, {cores[0]})
    try:
        process = install.start(f"http://127.0.0.1:{upstream}", port, log)
    finally:
        os.sched_setaffinity(0, {cores[-1]})
    stack.callback(process.wait)
    stack.callback(process.terminate)
    asyncio.run(answers(f"http://127.0.0.1:{port}", process))
    return port, process.pid


def _start(
    stack: contextlib.ExitStack, command: list[str], core: int, more: dict[str, str] | None = None
) -> tuple[int, "subprocess.Popen[str]"]:
    """A program on one core, and the port that it prints first."""
    process = subprocess.Popen(
        ["taskset", "-c", str(core), *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **(more or {})},
    )
    stack.callback(process.wait)
    stack.callback(process.terminate)
    assert process.stdout is not None
    line = process.stdout.readline()
    return int(line.strip().removesuffix(". Ctrl-C ends it.").rpartition(":")[2]), process


async def _compared(
    relay: Place, proxy: Place, pid: int, named: tuple[str, str], *, rounds: int = ROUNDS, limited: bool = True
) -> list[Row]:
    # Before anything else: memory that was free again would hide what streams take.
    await _read(proxy)
    held = await _memory(proxy, pid)
    firsts: dict[Place, list[float]] = {relay: [], proxy: []}
    async with contextlib.AsyncExitStack() as stack:
        lines = {place: await _line(stack, place.port) for place in (relay, proxy)}
        for number in range(FIRSTS + 20):
            for place in (relay, proxy) if number % 2 else (proxy, relay):
                seconds = await _first(*lines[place], place)
                if number >= 20:
                    firsts[place].append(seconds)
    added = statistics.median(b - a for a, b in zip(firsts[relay], firsts[proxy], strict=True)) * 1000
    shown = ", ".join(f"{statistics.median(times) * 1000:.2f}" for times in (firsts[proxy], firsts[relay]))
    whole: dict[Place, list[float]] = {relay: [], proxy: []}
    for number in range(rounds + 1):
        for place in (relay, proxy) if number % 2 else (proxy, relay):
            start = time.perf_counter()
            await asyncio.gather(*(_read(place) for _ in range(STREAMS)))
            if number:
                whole[place].append(time.perf_counter() - start)
    share = statistics.median(a / b for a, b in zip(whole[relay], whole[proxy], strict=True))
    rate = STREAMS * PIECES / statistics.median(whole[proxy])
    limits = (1.5, 2.0, 200.0) if limited else (float("inf"),) * 3
    name = ", ".join(named)
    return [
        Row(f"{name}: time to the first byte, more than a relay's", added, limits[0], "ms", f"{shown} ms, 1 stream"),
        Row(
            f"{name}: {STREAMS} streams at once, time by a relay's",
            1 / share,
            limits[1],
            "×",
            f"{share:.2f} of its throughput, {rate:,.0f} events a second",
        ),
        Row(f"{name}: memory of an open stream", held, limits[2], "KB", f"{STREAMS} streams"),
    ]


def _request(place: Place, prompt: str) -> bytes:
    body = (
        f'{{"model":"{place.model}","max_tokens":100,"stream":true,'
        f'"messages":[{{"role":"user","content":"{prompt}"}}]}}'
    ).encode()
    head = (
        f"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: {TOKEN}\r\nanthropic-version: 2023-06-01\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def _line(stack: contextlib.AsyncExitStack, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    stack.callback(writer.close)
    return reader, writer


async def _first(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, place: Place) -> float:
    """Seconds from the request to the first byte of the body."""
    start = time.perf_counter()
    writer.write(_request(place, SHORT))
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    await reader.readline()
    seconds = time.perf_counter() - start
    while await reader.readuntil(b"\r\n") != b"0\r\n":
        pass
    await reader.readuntil(b"\r\n")
    return seconds


async def _read(place: Place) -> None:
    """One long answer to its end."""
    async with contextlib.AsyncExitStack() as stack:
        reader, writer = await _line(stack, place.port)
        writer.write(_request(place, "long"))
        data = b""
        while (piece := await reader.read(1 << 16)) and not (data := (data[-8:] + piece)).endswith(b"\r\n0\r\n\r\n"):
            pass
        assert data.endswith(b"0\r\n\r\n")


async def _memory(place: Place, pid: int) -> float:
    """KB that each of many open streams takes."""
    before = _pss(pid)
    async with contextlib.AsyncExitStack() as stack:
        lines = [await _line(stack, place.port) for _ in range(STREAMS)]
        for reader, writer in lines:
            writer.write(_request(place, HOLD))
            await reader.readuntil(b"\r\n\r\n")
            await reader.readline()
        return max(0.0, _pss(pid) - before) / STREAMS


def _pss(pid: int) -> float:
    """KB of memory, by the kernel's proportional count."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return float(next(line.split()[1] for line in file if line.startswith("Pss:")))
