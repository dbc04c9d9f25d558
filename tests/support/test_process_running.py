"""A running command: waited for by many, written to, looked at, left alone and ended."""

import asyncio
import itertools
import os
import re
import signal
import sys
from collections.abc import Iterator

import pytest

from ferrule.system import child
from ferrule.system.command import Launch, Running, start
from tests.fifo import Fifo

from .test_process import children, descriptors, every_way_to_wait, living

__all__ = ["every_way_to_wait"]

_numbers = itertools.count()


@pytest.fixture
def mark() -> Iterator[str]:
    """A time to sleep for that no other process has."""
    one = f"302.{os.getpid()}{next(_numbers):04d}"
    yield one
    for pid in living(one):
        os.kill(pid, signal.SIGKILL)


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    before, had = descriptors(), children()
    yield
    # Of what another test has left, some may be gone by now.
    assert set(descriptors()) <= set(before)
    assert children() <= had
    assert not child.OWN


def begin(command: str, *, on_output=None, **options) -> Running:
    options = {"cwd": "/", "env": os.environ, **options}
    return start(Launch(["/bin/bash", "-c", command], **options), on_output=on_output)


async def outcome(running: Running, *args, **options) -> str:
    async with asyncio.timeout(60):
        return await running.wait(*args, **options)


async def test_many_may_wait_and_giving_up_does_not_stop_it(every_way_to_wait):
    running = begin("read x; echo $x", stdin="pipe")
    waiting = [asyncio.create_task(running.wait()) for _ in range(10)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.wait(waiting[:1])

    assert not running.ended
    await running.write(b"hello\n")
    assert await asyncio.gather(*waiting[1:]) == ["ended"] * 9
    assert (running.result().exit_code, running.result().text) == (0, "hello\n")


async def test_after_its_time_it_still_runs_and_can_be_looked_at(mark):
    running = begin(f"echo here; sleep {mark}")

    assert await outcome(running, until=re.compile("here")) == "found"
    assert await outcome(running, 0) == "time"
    assert (running.result().exit_code, running.result().text, running.ended) == (None, "here\n", False)
    await running.stop()
    assert await outcome(running) == "ended"
    assert running.result().exit_code == 143
    assert living(mark) == []


async def test_its_output_is_taken_though_nobody_waits(tmp_path):
    log, done = tmp_path / "log", Fifo(tmp_path / "done")
    running = begin(
        "yes | head -c 3000000; echo > done; read x",
        cwd=str(tmp_path),
        stdin="pipe",
        log=str(log),
        log_limit_bytes=1 << 20,
        tail_chars=10,
    )
    await done.said()
    running.close_stdin()
    await outcome(running)

    assert running.result().total_bytes == 3_000_000
    assert (log.stat().st_size, running.result().logged_bytes) == (1 << 20, 1 << 20)
    assert running.result().text == "y\n" * 5


async def test_silence_is_noticed(mark):
    running = begin(f"echo hi; exec sleep {mark}")
    await outcome(running, until=re.compile("hi"))

    assert await outcome(running, quiet_seconds=0.01) == "quiet"
    assert not running.ended
    await running.stop()


async def test_a_pattern_is_found_across_pieces_and_only_in_what_is_fresh_if_so_asked():
    running = begin("read x; printf 'lis'; read x; printf 'tening\n'; read x; echo again listening", stdin="pipe")
    await running.write(b"\n")

    assert await outcome(running, until=re.compile("lis")) == "found"
    waiting = asyncio.create_task(outcome(running, until=re.compile("listening")))
    await running.write(b"\n")
    assert await waiting == "found"
    assert await outcome(running, until=re.compile("listening")) == "found"
    fresh = asyncio.create_task(outcome(running, until=re.compile("listening"), fresh=True))
    await asyncio.sleep(0)
    assert not fresh.done()
    await running.write(b"\n")
    assert await fresh == "found"
    assert await outcome(running) == "ended"


async def test_a_pattern_that_never_comes_ends_with_the_command():
    assert await outcome(begin("echo no"), until=re.compile("yes")) == "ended"


async def test_news_are_told_once():
    running = begin("printf 'name? '; read x; echo hello $x; read y", stdin="pipe")
    await outcome(running, until=re.compile("name"))

    assert running.news() == "name? "
    assert running.news() == ""
    await running.write(b"you\n")
    await outcome(running, until=re.compile("you"))
    assert running.news() == "hello you\n"
    running.close_stdin()
    assert await outcome(running) == "ended"
    assert running.result().exit_code == 1


async def test_there_is_nothing_to_read_unless_asked_for():
    running = begin("cat; echo end")

    with pytest.raises(OSError, match="nothing to read"):
        await running.write(b"x")
    await outcome(running)
    assert running.result().text == "end\n"


async def test_what_has_ended_cannot_be_written_to():
    running = begin("true", stdin="pipe")
    await outcome(running)

    with pytest.raises(BrokenPipeError):
        await running.write(b"x")


async def test_what_is_closed_cannot_be_written_to(mark):
    running = begin(f"cat; exec sleep {mark}", stdin="pipe")
    running.close_stdin()

    with pytest.raises(BrokenPipeError):
        await running.write(b"x")
    await running.stop()


async def test_writing_to_what_does_not_read_ends_after_its_time(mark):
    running = begin(f"exec sleep {mark}", stdin="pipe")

    with pytest.raises(TimeoutError, match="did not read"):
        await running.write(b"x" * 1_000_000, seconds=0.05)
    await running.stop()


async def test_more_than_a_pipe_holds_is_written():
    running = begin("wc -c", stdin="pipe")
    await running.write(b"x" * 1_000_000, seconds=60)
    running.close_stdin()
    await outcome(running)

    assert running.result().text.strip() == "1000000"


async def test_stopping_is_done_once_however_often_it_is_asked_for(mark):
    running = begin(f"sleep {mark} & sleep {mark}")
    async with asyncio.timeout(60):
        await asyncio.gather(*(running.stop() for _ in range(5)))
        await running.stop()

    assert (running.ended, living(mark)) == (True, [])


@pytest.mark.parametrize("steps", range(10))
async def test_cancelling_a_stop_kills_at_once(mark, steps):
    running = begin(f"trap '' TERM; echo hi; sleep {mark}; sleep {mark}")
    await outcome(running, until=re.compile("hi"))
    stopping = asyncio.create_task(running.stop(grace_seconds=60))
    for _ in range(steps):
        await asyncio.sleep(0)
    stopping.cancel()
    await asyncio.wait([stopping])
    if steps == 0:  # it never began
        await running.stop()

    assert await outcome(running) == "ended"
    assert living(mark) == []


async def test_closing_kills_without_waiting(mark):
    running = begin(f"trap '' TERM; echo hi; sleep {mark}; sleep {mark}")
    await outcome(running, until=re.compile("hi"))
    running.close()
    running.close()

    assert running.ended
    assert await outcome(running) == "ended"


async def test_what_it_left_running_ends_with_it(mark):
    running = begin(f"sleep {mark} & echo hi")
    await outcome(running)

    assert running.result()[:2] == (0, "hi\n")
    assert (running.result().survivors_killed >= 1, living(mark)) == (True, [])


async def test_two_hundred_run_at_once():
    many = [begin("read x; echo $x", stdin="pipe") for _ in range(200)]
    async with asyncio.timeout(120):
        await asyncio.gather(*(one.write(f"{number}\n".encode()) for number, one in enumerate(many)))
        await asyncio.gather(*(one.wait() for one in many))

    assert [one.result().text for one in many] == [f"{number}\n" for number in range(200)]


async def test_a_listener_hears_the_line_that_is_being_written():
    heard: list[str] = []
    running = begin("printf 'no newline'", on_output=heard.append)
    await outcome(running)

    assert "".join(heard) == "no newline"


async def test_errors_can_be_kept_apart():
    running = begin("echo out; echo err >&2", apart=True)
    await outcome(running)

    assert (running.result().text, running.result().errors) == ("out\n", "err\n")


async def test_descriptors_are_inherited_and_closed():
    reading, writing = os.pipe()
    os.write(writing, b"given\n")
    os.close(writing)
    running = begin(f"cat <&{reading}", descriptors=(reading,))
    await outcome(running)

    assert running.result().text == "given\n"
    with pytest.raises(OSError):
        os.fstat(reading)


async def test_descriptors_are_closed_when_nothing_starts():
    reading, writing = os.pipe()
    with pytest.raises(FileNotFoundError):
        start(Launch(["/no/such/program"], "/", os.environ, descriptors=(reading, writing)))

    with pytest.raises(OSError):
        os.fstat(reading)


class Spawner:
    """A starter that is no more than Python's own."""

    def start(self, argv, *, cwd, env, stdin, stdout, stderr, descriptors=()):
        import subprocess

        return subprocess.Popen(
            ["env", "STARTED=yes", *argv],
            cwd=cwd,
            env=env,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=descriptors,
            start_new_session=True,
        )


@pytest.mark.parametrize("stdin", ["none", "pipe", "terminal"])
async def test_something_else_may_start_it(every_way_to_wait, stdin, mark):
    running = begin(f"sleep {mark} & echo $STARTED; exit 3", starter=Spawner(), stdin=stdin)
    await outcome(running)

    assert (running.result().exit_code, running.result().text) == (3, "yes\n")
    assert living(mark) == []


async def test_a_terminal_is_the_commands_own():
    command = "tty; tty <&1; tty <&2; echo typed > /dev/tty; stty size; ps -o tpgid= -p $$ | tr -d ' '; echo $$"
    running = begin(command, stdin="terminal")
    await outcome(running)
    first, second, third, typed, size, group, pid = running.result().text.splitlines()

    assert first == second == third
    assert first.startswith("/dev/")
    assert (typed, size, group) == ("typed", "40 120", pid)


async def test_a_terminal_echoes_and_takes_signals(mark):
    running = begin(f"echo ready; cat; echo never; sleep {mark}", stdin="terminal")
    await outcome(running, until=re.compile("ready"))
    await running.write(b"hello\n")

    assert await outcome(running, until=re.compile("hello\n.*hello\n", re.DOTALL)) == "found"
    await running.write(b"\x03")
    assert await outcome(running) == "ended"
    assert running.result().exit_code == 130
    assert living(mark) == []


async def test_a_terminal_can_be_told_the_end_of_what_is_typed():
    running = begin("cat; echo over", stdin="terminal")
    await running.write(b"a\n\x04")
    await outcome(running)

    assert running.result().text.endswith("over\n")


async def test_a_terminal_that_says_much_loses_nothing():
    running = begin("yes | head -c 200000", stdin="terminal")
    await outcome(running)

    assert running.result().total_chars == 200_000


@pytest.mark.parametrize("stdin", ["none", "terminal"])
async def test_what_cannot_start_says_so_with_a_terminal_too(stdin):
    with pytest.raises(FileNotFoundError):
        start(Launch(["no-such-program"], "/", os.environ, stdin=stdin))
    with pytest.raises(FileNotFoundError):
        start(Launch(["true"], "/no/such/folder", os.environ, stdin=stdin))
    with pytest.raises(PermissionError):
        start(Launch(["/etc/passwd"], "/", os.environ, stdin=stdin))


def test_what_runs_when_the_host_ends_is_ended(mark):
    import subprocess

    script = (
        "import asyncio, os, re, sys\n"
        "from ferrule.system.command import Launch, start\n"
        "async def main():\n"
        "    running = start(Launch(['/bin/bash', '-c', sys.argv[1]], '/', os.environ))\n"
        "    await running.wait(until=re.compile('hi'))\n"
        "asyncio.run(main())\n"
    )
    command = f"trap '' TERM; (setsid sleep {mark} &); echo hi; sleep {mark}; sleep {mark}"
    subprocess.run([sys.executable, "-c", script, command], check=True, timeout=60)

    assert living(mark) == []
