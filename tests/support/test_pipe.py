"""Filters: what comes back, which limits hold, and that nothing of a filter outlives its call."""

import asyncio
import itertools
import os
import signal
import sys
from collections.abc import Iterator

import pytest

from ferrule.system.run import pipe
from tests.fifo import Fifo

from .test_process import children, descriptors, living

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only the process group can be found")
_numbers = itertools.count()


@pytest.fixture
def mark() -> Iterator[str]:
    """A time to sleep for that no other process has."""
    one = f"301.{os.getpid()}{next(_numbers):04d}"
    yield one
    for pid in living(one):
        os.kill(pid, signal.SIGKILL)


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    before, had = descriptors(), children()
    yield
    assert descriptors() == before
    assert children() <= had


async def sh(command: str, data: bytes = b"", **options):
    options = {"cwd": "/", "env": os.environ, "seconds": 60.0, "limit_bytes": 1 << 20, **options}
    async with asyncio.timeout(90):
        return await pipe(["/bin/sh", "-c", command], data, **options)


@pytest.mark.parametrize(
    ("command", "data", "answer"),
    [
        pytest.param("cat", b"a\0\xffb", (0, b"a\0\xffb", b"", ""), id="bytes-as-they-are"),
        pytest.param("cat", b"", (0, b"", b"", ""), id="nothing"),
        pytest.param("tr a b", b"aaa", (0, b"bbb", b"", ""), id="filtered"),
        pytest.param("echo no >&2; exit 3", b"x", (3, b"", b"no\n", ""), id="errors-apart"),
        pytest.param("echo half; kill -9 $$", b"x", (137, b"half\n", b"", ""), id="killed"),
        pytest.param("exec >&- 2>&-; cat; exit 4", b"x", (4, b"", b"", ""), id="closed-early"),
        pytest.param("echo done", b"x" * 900_000, (0, b"done\n", b"", ""), id="does-not-read"),
        pytest.param("(: < /dev/tty) 2> /dev/null || echo none", b"", (0, b"none\n", b"", ""), id="no-terminal"),
    ],
)
async def test_what_a_filter_gives(command, data, answer):
    assert await sh(command, data) == answer


async def test_more_than_a_pipe_holds_goes_through():
    data = os.urandom(1 << 19) * 2

    assert (await sh("cat", data)).stdout == data


async def test_a_limit_of_bytes_stops_it(mark):
    answer = await sh(f"yes | tee /dev/null & sleep {mark}", limit_bytes=1000)

    assert answer.stopped == "size"
    assert len(answer.stdout) <= 1000
    assert living(mark) == []


async def test_exactly_the_limit_is_not_too_much():
    assert (await sh("cat", b"x" * 1000, limit_bytes=1000)).stopped == ""


async def test_complaints_do_not_fill_the_memory():
    answer = await sh("head -c 3000000 /dev/zero >&2; echo ok")

    assert (answer.stdout, len(answer.stderr)) == (b"ok\n", 1 << 16)


async def test_a_time_limit_stops_it_even_when_it_does_not_want_to(mark):
    answer = await sh(f"trap '' TERM; sleep {mark}; sleep {mark}", seconds=0.05)

    assert answer.stopped == "time"
    assert living(mark) == []


async def test_a_background_process_neither_delays_the_end_nor_outlives_it(mark):
    answer = await sh(f"sleep {mark} & cat", b"hi")

    assert answer == (0, b"hi", b"", "")
    assert living(mark) == []


@linux_only
async def test_a_daemon_does_not_outlive_it(tmp_path, mark):
    daemon = f"setsid sh -c 'echo $$ > pid; exec sleep {mark}' > /dev/null 2>&1 & until [ -s pid ]; do :; done; cat"

    assert (await sh(daemon, b"hi", cwd=str(tmp_path))).stdout == b"hi"
    assert living(mark) == []


async def test_cancelling_ends_it(tmp_path, mark):
    begun = Fifo(tmp_path / "begun")
    task = asyncio.create_task(sh(f"echo here > begun; exec sleep {mark}", cwd=str(tmp_path)))
    await begun.said()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert living(mark) == []


@pytest.mark.parametrize(
    ("argv", "cwd", "error"),
    [
        pytest.param(["no-such-program"], "/", FileNotFoundError, id="unknown-program"),
        pytest.param(["true"], "/no/such/folder", FileNotFoundError, id="unknown-folder"),
        pytest.param(["/etc/passwd"], "/", PermissionError, id="not-executable"),
        pytest.param(["echo", "a\0b"], "/", OSError, id="nul"),
    ],
)
async def test_what_cannot_start_says_why(argv, cwd, error):
    with pytest.raises(error):
        await pipe(argv, b"x", cwd=cwd, env=os.environ, seconds=10, limit_bytes=10)
