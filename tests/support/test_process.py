"""Commands: what comes back, and that nothing of a command outlives its call."""

import asyncio
import contextlib
import itertools
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from ferrule.system import command as listener
from ferrule.system import proc, tree
from ferrule.system import stream as tail
from ferrule.system.environment import quiet_environment, shell
from ferrule.system.run import capture, run, stream
from tests.memory import SOURCE

LINUX = sys.platform == "linux"
linux_only = pytest.mark.skipif(not LINUX, reason="elsewhere only the process group can be found")
_numbers = itertools.count()


@pytest.fixture
def mark() -> Iterator[str]:
    """A time to sleep for that no other process has: it tells this test's processes from all others."""
    one = f"300.{os.getpid()}{next(_numbers):04d}"
    yield one
    for pid in living(one):
        os.kill(pid, signal.SIGKILL)


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """No descriptor and no child, running or zombie, is left by any test of this module."""
    before, had = descriptors(), children()
    yield
    assert descriptors() == before
    assert children() <= had


@pytest.fixture(params=["pidfd", "thread", "reaping-thread"])
def every_way_to_wait(request, monkeypatch) -> None:
    """The ways in which the end of a process is noticed; the last two are those of other systems and kernels."""
    if request.param != "pidfd":
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    if request.param == "reaping-thread":
        monkeypatch.delattr(os, "waitid", raising=False)


def children() -> set[int]:
    """Processes whose parent is this one, zombies among them; other tests of the same worker may have some."""
    found = set()
    for pid in filter(str.isdecimal, os.listdir("/proc") if LINUX else ()):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/stat", "rb") as file:
            if int(file.read().rpartition(b")")[2].split()[1]) == os.getpid():
                found.add(int(pid))
    return found


def descriptors() -> list[str]:
    return sorted(os.listdir("/dev/fd"))


def living(mark: str) -> list[int]:
    """Processes with the mark in their arguments, without zombies: those are their parent's, not ours."""
    return [pid for pid, arguments in listed() if mark in arguments]


def listed() -> Iterator[tuple[int, str]]:
    if LINUX:
        for pid in filter(str.isdecimal, os.listdir("/proc")):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/cmdline", "rb") as file:
                yield int(pid), os.fsdecode(file.read())
    else:
        rows = subprocess.run(["ps", "-A", "-o", "pid=,stat=,args="], capture_output=True, check=True, timeout=30)
        for row in os.fsdecode(rows.stdout).splitlines():
            pid, state, arguments = row.split(None, 2)
            if not state.startswith("Z"):
                yield int(pid), arguments


async def sh(command: str, **options):
    options = {"cwd": "/", "env": os.environ, "log": None, "log_limit_bytes": 0, "tail_chars": 1000, **options}
    async with asyncio.timeout(60):
        return await run([shell(), "-c", command], **options)


@pytest.mark.parametrize(
    ("command", "exit_code", "text"),
    [
        pytest.param("echo hi", 0, "hi\n", id="output"),
        pytest.param("echo hi; exit 3", 3, "hi\n", id="exit-code"),
        pytest.param("echo out; echo err >&2; echo out", 0, "out\nerr\nout\n", id="errors-in-order"),
        pytest.param("kill -9 $$", 137, "", id="killed"),
        pytest.param("kill -TERM $$", 143, "", id="terminated"),
        pytest.param("cat; echo $?", 0, "0\n", id="nothing-to-read"),
        pytest.param("read x; echo $?", 0, "1\n", id="read-ends-at-once"),
        pytest.param("(: < /dev/tty) 2> /dev/null || echo none", 0, "none\n", id="no-terminal"),
        pytest.param("exec >&- 2>&-; exit 4", 4, "", id="output-closed-early"),
        pytest.param(r"printf 'a\000\377b\342\202'", 0, "a\ufffdb\ufffd", id="broken-bytes"),
        pytest.param("echo hello > >(cat)", 0, "hello\n", id="late-writer-is-heard"),
    ],
)
async def test_what_a_command_gives(every_way_to_wait, command, exit_code, text):
    finished = await sh(command, grace_seconds=30)

    assert (finished.exit_code, finished.text) == (exit_code, text)
    assert (finished.timed_out, finished.log_error) == (False, None)


async def test_only_the_end_of_a_long_output_is_kept_and_all_is_counted():
    finished = await sh("printf '%0.sé' $(seq 5000)", tail_chars=7)

    assert finished.text == "é" * 7
    assert (finished.total_chars, finished.total_bytes) == (5000, 10_000)


async def test_the_log_has_the_bytes_up_to_its_limit(tmp_path):
    finished = await sh("yes | head -c 300000", log=str(tmp_path / "log"), log_limit_bytes=200_001, tail_chars=3)

    assert (tmp_path / "log").read_bytes() == (b"y\n" * 150_000)[:200_001]
    assert (finished.logged_bytes, finished.total_bytes, finished.text) == (200_001, 300_000, "\ny\n")


async def test_a_command_goes_on_when_its_log_cannot(tmp_path):
    finished = await sh("echo hi", log=str(tmp_path / "missing" / "log"), log_limit_bytes=100)

    assert (finished.text, finished.logged_bytes) == ("hi\n", 0)
    assert finished.log_error == "No such file or directory"


@pytest.mark.parametrize(
    ("argv", "cwd", "error"),
    [
        pytest.param(["no-such-program"], "/", FileNotFoundError, id="unknown-program"),
        pytest.param(["true"], "/no/such/folder", FileNotFoundError, id="unknown-folder"),
        pytest.param(["true"], os.devnull, NotADirectoryError, id="folder-is-a-file"),
        pytest.param(["/etc/passwd"], "/", PermissionError, id="not-executable"),
        pytest.param(["echo", "a\0b"], "/", OSError, id="nul"),
        pytest.param(["echo", "\ud800"], "/", OSError, id="half-a-character"),
        pytest.param(["echo", "x" * 10_000_000], "/", OSError, id="too-long"),
    ],
)
async def test_what_cannot_start_says_why_and_leaves_no_log(tmp_path, argv, cwd, error):
    log = str(tmp_path / "log")
    with pytest.raises(error):
        await run(argv, cwd=cwd, env=os.environ, log=log, log_limit_bytes=10, tail_chars=10)

    assert list(tmp_path.iterdir()) == []


async def test_a_background_process_neither_delays_the_end_nor_outlives_it(every_way_to_wait, mark):
    finished = await sh(f"sleep {mark} & echo hi")

    assert (finished.text, finished.exit_code, finished.survivors_killed) == ("hi\n", 0, 1)
    assert living(mark) == []


async def test_a_background_process_that_never_stops_writing_is_stopped(mark):
    finished = await sh(f"(exec -a mark-{mark} yes) & echo hi")

    assert finished.exit_code == 0
    assert living(mark) == []


DAEMON = "sh -c 'echo $$ > pid; exec sleep {mark}' > /dev/null 2>&1 & until [ -s pid ]; do :; done"


@linux_only
@pytest.mark.parametrize(
    "command",
    [
        pytest.param("setsid " + DAEMON, id="own-session"),
        pytest.param(
            f"(setsid sh -c '{DAEMON.replace(chr(39), chr(34))}' &); until [ -s pid ]; do :; done", id="double-fork"
        ),
        pytest.param("env -i PATH=$PATH setsid " + DAEMON, id="own-session-without-environment"),
        pytest.param("set -m; " + DAEMON, id="job-control"),
        pytest.param("set -m; env -i PATH=$PATH " + DAEMON, id="job-control-without-environment"),
        pytest.param("trap '' TERM; setsid " + DAEMON, id="ignores-sigterm"),
    ],
)
async def test_a_daemon_does_not_outlive_the_command(tmp_path, mark, command):
    finished = await sh(command.replace("{mark}", mark) + "; echo hi", cwd=str(tmp_path))

    assert (finished.text, finished.survivors_killed >= 1) == ("hi\n", True)
    assert living(mark) == []


@linux_only
async def test_the_command_of_a_command_is_found_through_both(tmp_path, mark):
    script = (
        "import asyncio, os, sys\n"
        "from ferrule.system.run import run\n"
        "argv = ['sh', '-c', sys.argv[1]]\n"
        "asyncio.run(run(argv, cwd='.', env=os.environ, log=None, log_limit_bytes=0, tail_chars=9))\n"
    )
    inner = f"echo $$ > pid; exec sleep {mark}"
    # The inner engine is killed without a chance to clean up.
    command = f"'{sys.executable}' -c \"{script}\" '{inner}' & until [ -s pid ]; do :; done; kill -9 $!; echo hi"
    finished = await sh(
        command, cwd=str(tmp_path), env={**os.environ, "PYTHONPATH": "src:" + os.pathsep.join(sys.path)}
    )

    assert finished.text.endswith("hi\n")
    assert living(mark) == []


async def test_a_time_limit_ends_the_command(every_way_to_wait, mark):
    finished = await sh(f"exec sleep {mark}", seconds=0.05)

    assert (finished.timed_out, finished.exit_code) == (True, 143)
    assert living(mark) == []


async def test_a_time_limit_keeps_what_the_command_said_and_lets_it_clean_up(mark):
    command = f"trap 'echo bye; exit 7' TERM; echo hi; sleep {mark} & wait"
    finished = await sh(command, seconds=2, grace_seconds=30)

    assert (finished.text, finished.timed_out, finished.exit_code) == ("hi\nbye\n", True, 7)
    assert living(mark) == []


async def test_a_time_limit_kills_a_command_that_ignores_sigterm(mark):
    finished = await sh(f"trap '' TERM; sleep {mark}; sleep {mark}", seconds=2)

    assert (finished.timed_out, finished.exit_code) == (True, 137)
    assert living(mark) == []


async def test_processes_that_are_not_of_the_command_are_left_alone(mark):
    bystander = subprocess.Popen(["sleep", mark])
    try:
        later: list[subprocess.Popen[bytes]] = []

        def start(_: str) -> None:
            later.append(subprocess.Popen(["sleep", mark], start_new_session=True))

        await sh("echo hi; sleep 0.01 & sleep 0.01", on_output=start)

        assert [one.poll() for one in (bystander, *later)] == [None, None]
    finally:
        for one in (bystander, *later):
            one.kill()
            one.wait(30)


@linux_only
async def test_what_another_thread_starts_at_the_same_moment_is_left_alone(mark):
    family = tree.ProcessTree()
    with family.number_children():
        bystander = subprocess.Popen(["sh", "-c", f"sleep {mark} & wait"])
    leader = subprocess.Popen(["sleep", mark], start_new_session=True)
    try:
        family.lead(leader.pid)

        assert family.find() == []
    finally:
        for one in (bystander, leader):
            one.kill()
            one.wait(30)


@linux_only
async def test_the_limit_of_this_process_is_as_before():
    before = resource.prlimit(0, tree._LOCKS)
    await sh("true")
    with pytest.raises(FileNotFoundError):
        await sh("true", cwd="/no/such/folder")

    assert resource.prlimit(0, tree._LOCKS) == before


async def settle(task: asyncio.Task) -> None:
    async with asyncio.timeout(60):
        await asyncio.wait([task])


@pytest.mark.parametrize("steps", range(12))
async def test_cancelling_after_any_step_leaves_nothing(every_way_to_wait, mark, steps):
    task = asyncio.create_task(sh(f"sleep {mark} & echo hi; sleep {mark}"))
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    await settle(task)

    assert task.cancelled()
    assert living(mark) == []


async def test_cancelling_kills_a_command_that_ignores_sigterm(every_way_to_wait, mark):
    started = asyncio.Event()
    command = f"trap '' TERM; sleep {mark} & echo hi; sleep {mark}; sleep {mark}"
    task = asyncio.create_task(sh(command, on_output=lambda _: started.set()))
    async with asyncio.timeout(60):
        await started.wait()
    task.cancel()
    await settle(task)

    assert task.cancelled()
    assert living(mark) == []


@pytest.mark.parametrize("steps", range(1, 12))
async def test_cancelling_again_while_it_ends_leaves_nothing(mark, steps):
    started = asyncio.Event()
    command = f"trap '' TERM; sleep {mark} & echo hi; sleep {mark}; sleep {mark}"
    task = asyncio.create_task(sh(command, on_output=lambda _: started.set(), grace_seconds=30))
    async with asyncio.timeout(60):
        await started.wait()
    task.cancel()
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    await settle(task)

    assert task.cancelled()
    await_gone(mark)


def await_gone(mark: str) -> None:
    """A killed process may need a moment to be gone; its end is certain, so the wait is bounded."""
    until = time.monotonic() + 30
    while living(mark) and time.monotonic() < until:
        pass
    assert living(mark) == []


async def test_cancelling_while_survivors_are_ended_leaves_nothing(mark):
    said = asyncio.Event()
    # The command is over at once; its survivor ignores SIGTERM and keeps the call in its grace.
    command = f"(trap '' TERM; sleep {mark}) > /dev/null 2>&1 & echo hi"
    task = asyncio.create_task(sh(command, on_output=lambda _: said.set(), grace_seconds=30))
    async with asyncio.timeout(60):
        await said.wait()
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    await settle(task)

    assert task.cancelled()
    await_gone(mark)


async def test_a_command_that_never_stops_writing_is_cancelled_promptly(mark):
    said = asyncio.Event()
    task = asyncio.create_task(sh(f"exec -a mark-{mark} yes", on_output=lambda _: said.set()))
    async with asyncio.timeout(60):
        await said.wait()
    task.cancel()
    await settle(task)

    assert task.cancelled()
    assert living(mark) == []


async def test_endless_output_leaves_the_loop_to_others(monkeypatch):
    reads = itertools.count(1)
    # There is always more to read, but not for ever: who takes all of it in one turn is seen, not waited for.
    monkeypatch.setattr(tail.Pipe, "_pull", lambda _: b"y\n" * 1000 * (next(reads) < 100_000))
    task = asyncio.create_task(sh("yes"))
    async with asyncio.timeout(60):
        while next(reads) < 50:
            await asyncio.sleep(0)
    read = next(reads)
    task.cancel()
    await settle(task)

    assert 1 < read < 100_000


async def test_an_error_of_the_listener_ends_the_command_and_is_the_callers(mark):
    def refuse(_: str) -> None:
        raise LookupError("stop")

    with pytest.raises(LookupError, match="stop"):
        await sh(f"echo hi; sleep {mark}", on_output=refuse)
    assert living(mark) == []


async def test_the_listener_hears_everything_of_a_small_output():
    heard: list[str] = []
    finished = await sh("for i in $(seq 100); do echo line $i; done", on_output=heard.append)

    assert "".join(heard) == finished.text


async def test_the_listener_has_a_pause_of_a_tenth_of_a_second_after_each_call(tmp_path, monkeypatch):
    assert listener.SAY_SECONDS == 0.1

    # With a pause that never ends there is one call at the first output and one at the end of the command.
    monkeypatch.setattr(listener, "SAY_SECONDS", 3600.0)
    # Each number waits until the one before it has been read.
    command = "for i in $(seq 20); do echo $i; until grep -qsx $i log; do :; done; done"
    heard: list[str] = []
    log = str(tmp_path / "log")
    finished = await sh(command, cwd=str(tmp_path), log=log, log_limit_bytes=100, on_output=heard.append)

    assert (len(heard), "".join(heard)) == (2, finished.text)


async def test_what_is_said_during_the_pause_is_heard_before_the_end(tmp_path):
    def hear(text: str) -> None:
        if "2" in text:
            (tmp_path / "told").touch()

    command = "echo 1; until grep -qsx 1 log; do :; done; echo 2; until [ -e told ]; do :; done"
    finished = await sh(command, cwd=str(tmp_path), log=str(tmp_path / "log"), log_limit_bytes=100, on_output=hear)

    assert (finished.text, finished.exit_code) == ("1\n2\n", 0)


async def test_what_the_listener_hears_is_bounded():
    heard: list[str] = []
    await sh("yes | head -c 3000000", on_output=heard.append)

    assert max(map(len, heard)) <= 8192


async def test_a_hundred_commands_at_once_keep_apart():
    finished = await asyncio.gather(*(sh(f"echo {number}; exit {number}") for number in range(100)))

    assert [(one.exit_code, one.text) for one in finished] == [(number, f"{number}\n") for number in range(100)]


def test_a_hundred_megabytes_of_output_do_not_grow_the_memory():
    script = SOURCE + (
        "import asyncio, os\n"
        "from ferrule.system.run import run\n"
        "async def main():\n"
        "    options = dict(cwd='/', env=os.environ, log=None, log_limit_bytes=0, tail_chars=50_000)\n"
        "    await run(['head', '-c', '1000000', '/dev/zero'], **options)\n"
        "    before = peak_bytes()\n"
        "    done = await run(['head', '-c', '100000000', '/dev/zero'], **options)\n"
        "    print(done.total_bytes, peak_bytes() - before)\n"
        "asyncio.run(main())\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    ).stdout
    total, grown = map(int, said.split())

    assert total == 100_000_000
    assert grown < 10 << 20


async def test_helpers_give_both_outputs_and_their_exit_code(every_way_to_wait):
    async with asyncio.timeout(60):
        captured = await capture(["sh", "-c", "echo out; echo err >&2; exit 3"], cwd="/", limit_bytes=100)

    assert captured == (3, b"out\n", b"err\n", False)


@pytest.mark.parametrize("size", [0, 1, 65_536, 1_000_000])
async def test_all_of_a_helpers_output_comes(size):
    async with asyncio.timeout(60):
        captured = await capture(["head", "-c", str(size), "/dev/zero"], cwd="/", limit_bytes=size)

    assert (len(captured.stdout), captured.truncated, captured.exit_code) == (size, False, 0)


async def test_a_helper_that_says_too_much_is_stopped():
    async with asyncio.timeout(60):
        captured = await capture(["yes"], cwd="/", limit_bytes=100_001)

    assert (len(captured.stdout), captured.truncated) == (100_001, True)


async def test_a_helpers_errors_are_bounded():
    async with asyncio.timeout(60):
        captured = await capture(["sh", "-c", "yes | head -c 1000000 >&2"], cwd="/", limit_bytes=10)

    assert (len(captured.stderr), captured.exit_code) == (65_536, 0)


async def test_a_stream_ends_when_the_reader_has_enough():
    got: list[bytes] = []

    def enough(data: bytes) -> bool:
        got.append(data)
        return sum(map(len, got)) < 200_000

    async with asyncio.timeout(60):
        streamed = await stream(["yes"], cwd="/", on_chunk=enough)

    assert (streamed.truncated, 200_000 <= sum(map(len, got)) < 600_000) == (True, True)


async def test_an_error_of_the_reader_ends_the_helper():
    def refuse(_: bytes) -> bool:
        raise LookupError("stop")

    with pytest.raises(LookupError, match="stop"):
        async with asyncio.timeout(60):
            await stream(["yes"], cwd="/", on_chunk=refuse)


@pytest.mark.parametrize("steps", range(8))
async def test_cancelling_a_helper_after_any_step_leaves_nothing(every_way_to_wait, mark, steps):
    task = asyncio.create_task(capture(["sleep", mark], cwd="/", limit_bytes=10))
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    await settle(task)

    assert task.cancelled()
    assert living(mark) == []


async def test_a_helper_that_cannot_start_says_why():
    with pytest.raises(FileNotFoundError):
        await capture(["no-such-program"], cwd="/", limit_bytes=10)


def test_an_unstarted_tree_signals_nobody():
    # A group of 0 would be the group of the test run itself.
    nobody = tree.ProcessTree()
    nobody.signal(signal.SIGKILL, ())

    assert proc.signal_group(0, signal.SIGKILL) is False


def test_marks_of_outer_calls_stay():
    outer = tree.ProcessTree().environment({"A": "b"})
    inner = tree.ProcessTree().environment(outer)

    assert inner[tree.MARK].startswith(outer[tree.MARK] + ",")
    assert inner["A"] == "b"


async def test_nothing_waits_for_an_editor_or_a_pager(tmp_path):
    env = quiet_environment({**os.environ, "HOME": str(tmp_path), "EDITOR": "sleep 300", "PAGER": "sleep 300"})
    commit = "git init -q . && git -c user.name=a -c user.email=a@b commit --allow-empty"
    command = f"{commit}; git --paginate help > /dev/null; $PAGER < /dev/null"
    finished = await sh(command, cwd=str(tmp_path), env=env)

    assert "empty commit message" in finished.text
