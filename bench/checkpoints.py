"""Checkpoints: what a command that writes costs with them, in small and large trees, and what they take of the disk."""

import asyncio
import functools
import os
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from statistics import median

from bench.measure import Row, milliseconds, pairs, ratio
from ferrule import Engine, Settings
from ferrule.checkpoints.checkpoint import Checkpoints as Kept
from ferrule.settings import CheckpointSettings, SandboxSettings

TREES = {200: 40, 5_000: 20, 50_000: 8}
"""How many files a tree has → how often each pair is measured in it."""
FILE_BYTES = 2_000
CHANGES = 40
_BLOCK_BYTES = 4096
"""A file takes whole blocks of the disk, and so does what is kept of it."""
_NO_LIMIT = float("inf")


def rows() -> Iterator[Row]:
    for files, rounds in TREES.items():
        with tempfile.TemporaryDirectory() as folder:
            tree = _planted(Path(folder, "tree"), files)
            yield from asyncio.run(_beside(tree, Path(folder), files, rounds))
    with tempfile.TemporaryDirectory() as folder:
        yield asyncio.run(_disk(Path(folder)))


def _planted(tree: Path, files: int) -> Path:
    """A committed tree of folders with 50 files each, no two of which are the same."""
    for number in range(files):
        folder = tree / f"{number // 2500:02}" / f"{number // 50:04}"
        if number % 50 == 0:
            folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number:05}.txt").write_bytes((f"line {number}\n".encode() * FILE_BYTES)[:FILE_BYTES])
    for words in (("init", "-q", "."), ("add", "-A"), ("commit", "-q", "-m", "Begin")):
        _git(tree, *words)
    return tree


def _git(tree: Path, *words: str, **more: str) -> str:
    who = ("-c", "user.name=bench", "-c", "user.email=bench@example.org", "-c", "gc.auto=0")
    argv = ["git", *who, *words]
    done = subprocess.run(argv, cwd=tree, env={**os.environ, **more}, check=True, capture_output=True, text=True)
    return done.stdout


def _engine(tree: Path, state: Path, *, keep: bool) -> Engine:
    settings = Settings(sandbox=SandboxSettings(use="auto"), checkpoints=CheckpointSettings(keep=keep))
    return Engine(tree, settings=settings, state=state, ask=lambda _: True)


async def _beside(tree: Path, top: Path, files: int, rounds: int) -> list[Row]:
    """One engine that keeps checkpoints and one that does not, on the same tree and in turns."""
    out: list[Row] = []
    size = f"{files:,} files"
    with_them, without = _engine(tree, top / "with", keep=True), _engine(tree, top / "without", keep=False)
    async with with_them, without:
        await without.call("Bash", cmd="touch warm")
        await with_them.call("Bash", cmd="true")
        start = time.perf_counter()
        await _ran(with_them, "touch first")
        first = time.perf_counter() - start
        count = iter(range(1_000_000))

        async def writes(engine: Engine) -> None:
            await _ran(engine, f"echo {next(count)} > x")

        async def reads(engine: Engine) -> None:
            await _ran(engine, "cat x")

        ours, theirs = await pairs(functools.partial(writes, with_them), functools.partial(writes, without), rounds)
        out.append(_row(f"a command that writes, {size}, by the same without checkpoints", ours, theirs, _NO_LIMIT))
        reading, bare = await pairs(functools.partial(reads, with_them), functools.partial(reads, without), rounds)
        out.append(_row(f"a command that reads, {size}, by the same without checkpoints", reading, bare, 1.1))

        shadow = {"GIT_DIR": str(top / "shadow"), "GIT_WORK_TREE": str(tree)}
        _git(tree, "init", "-q", **shadow)
        start = time.perf_counter()
        _snapshot(tree, shadow)
        theirs_first = time.perf_counter() - start
        detail = f"{first * 1000:.0f} and {theirs_first * 1000:.0f} ms"
        out.append(
            Row(f"the first checkpoint, {size}, by a first shadow commit", first / theirs_first, _NO_LIMIT, "×", detail)
        )

        for name, action, limit in (
            ("`git status`", lambda: _git(tree, "status", "--porcelain"), 1.3),
            ("a shadow `git add -A` and `git write-tree`", lambda: _snapshot(tree, shadow), _NO_LIMIT),
        ):
            out.append(await _cost(with_them, without, writes, action, rounds, f"{size}, by {name}", limit))
        kept = with_them.need(Kept)
        looks, statuses = await pairs(
            _awaited(kept.begin), _awaited(lambda: _git(tree, "status", "--porcelain")), rounds
        )
        out.append(_row(f"a checkpoint itself, {size}, by `git status`", looks, statuses, 1.3))
        wholes, statuses = await pairs(
            _awaited(lambda: kept._tree.look(whole=True)), _awaited(lambda: _git(tree, "status", "--porcelain")), rounds
        )
        name = f"a look at everything, as where the kernel tells nothing, {size}, by `git status`"
        out.append(_row(name, wholes, statuses, 1.3))
    return out


def _awaited(action: Callable[[], object]) -> Callable[[], Awaitable[None]]:
    async def run() -> None:
        action()

    return run


async def _cost(
    with_them: Engine,
    without: Engine,
    writes: Callable[[Engine], object],
    action: Callable[[], object],
    rounds: int,
    name: str,
    limit: float,
) -> Row:
    """What checkpoints add to one command, beside something else that looks through the same tree, in one round."""
    ratios, added, others = [], [], []
    for _ in range(rounds):
        seconds = []
        for engine in (with_them, without):
            start = time.perf_counter()
            await writes(engine)  # type: ignore[misc]  # a coroutine function
            seconds.append(time.perf_counter() - start)
        start = time.perf_counter()
        action()
        others.append(time.perf_counter() - start)
        added.append(seconds[0] - seconds[1])
        ratios.append(added[-1] / others[-1])
    detail = f"{median(added) * 1000:.1f} and {milliseconds(others)}"
    return Row(f"what the looks before and after add to a command, {name}", median(ratios), limit, "×", detail)


def _row(name: str, ours: list[float], theirs: list[float], limit: float) -> Row:
    return Row(name, ratio(ours, theirs), limit, "×", f"{milliseconds(ours)} and {milliseconds(theirs)}")


def _snapshot(tree: Path, shadow: dict[str, str]) -> None:
    _git(tree, "add", "-A", **shadow)
    _git(tree, "write-tree", **shadow)


async def _ran(engine: Engine, command: str) -> None:
    reply = await engine.call("Bash", cmd=command)
    assert reply.ok, reply


async def _disk(top: Path) -> Row:
    """A session of commands that each write some files anew: what the state takes of the disk, beside those files."""
    tree = _planted(top / "tree", 2_000)
    written = 0
    async with _engine(tree, top / "state", keep=True) as engine:
        await _ran(engine, "touch first")
        before = _bytes(top / "state")
        for number in range(CHANGES):
            size = 50_000 + number
            await _ran(
                engine,
                f"for f in one two three; do head -c {size} /dev/urandom > $f; done; rm -f 00/0000/*{number:02}.txt",
            )
            written += 3 * -(-size // _BLOCK_BYTES) * _BLOCK_BYTES
    used = _bytes(top / "state")
    detail = f"{(used - before) / 1e6:.1f} and {written / 1e6:.1f} MB; {before / 1e6:.1f} MB for the first checkpoint"
    return Row(f"disk after {CHANGES} commands, by what they wrote takes", (used - before) / written, 1.1, "×", detail)


def _bytes(folder: Path) -> int:
    """What a folder takes of the disk."""
    found = (os.path.join(above, name) for above, _, names in os.walk(folder) for name in names)
    return sum(os.lstat(path).st_blocks * 512 for path in found if os.path.lexists(path))
