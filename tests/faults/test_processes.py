"""Faults 10 to 16: what commands do to an engine, and that it, its memory and the other commands come through."""

import asyncio
import itertools
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ferrule.system.command import Finished, Launch, start
from ferrule.system.environment import ProcessLimits, describe_limit, describe_unenforced, quiet_environment
from ferrule.system.run import run
from tests.memory import SOURCE
from tests.support.test_process import living

_numbers = itertools.count()
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only the process group can be found")
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


@pytest.fixture
def mark() -> Iterator[str]:
    """A time to sleep for that no other process has."""
    one = f"303.{os.getpid()}{next(_numbers):04d}"
    yield one
    for pid in living(one):
        os.kill(pid, signal.SIGKILL)


async def sh(command: str, **options) -> Finished:
    options = {
        "cwd": "/",
        "env": quiet_environment(os.environ),
        "log": None,
        "log_limit_bytes": 0,
        "tail_chars": 1000,
        **options,
    }
    async with asyncio.timeout(120):
        return await run(["/bin/bash", "-c", command], **options)


FLOOD = SOURCE + (
    "import asyncio, os, sys\n"
    "from ferrule.system.run import run\n"
    "async def flood(size):\n"
    "    options = dict(cwd='/', env=os.environ, log=f'{sys.argv[1]}/{size}', log_limit_bytes=2_000_000)\n"
    "    argv = ['/bin/sh', '-c', f'echo first; yes | head -c {size}; echo last']\n"
    "    return await run(argv, head_chars=8, tail_chars=8, **options)\n"
    "async def main():\n"
    "    await flood(10_000_000)\n"
    "    before = peak_bytes()\n"
    "    done = await flood(300_000_000)\n"
    "    print(repr(done.text), done.total_bytes, done.logged_bytes, peak_bytes() - before, sep='|')\n"
    "asyncio.run(main())\n"
)


def test_10_a_flood_of_output_leaves_both_ends_a_count_a_bounded_log_and_the_memory_alone(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FLOOD, str(tmp_path)], capture_output=True, text=True, check=True, timeout=300
    )
    text, total, logged, grown = done.stdout.strip().split("|")

    assert text == repr("first\ny\n\n\n[299,999,995 characters are not shown here]\n\n\ny\nlast\n")
    assert (int(total), int(logged)) == (300_000_011, 2_000_000)
    assert (tmp_path / "300000000").stat().st_size == 2_000_000
    assert int(grown) < 10 << 20


async def test_11_what_ignores_a_polite_end_is_killed_and_what_it_said_is_kept(mark):
    done = await sh(f"trap '' TERM; echo said; sleep {mark}; sleep {mark}", seconds=1)

    assert (done.text, done.timed_out, done.exit_code) == ("said\n", True, 137)
    assert living(mark) == []


@linux_only
@pytest.mark.parametrize("before", ["", "env -i "], ids=["with-its-environment", "without-its-environment"])
async def test_12_a_daemon_in_a_session_of_its_own_does_not_outlive_the_call(tmp_path, mark, before):
    daemon = f"({before}setsid sh -c 'echo > began; (sleep {mark} &) ; exec sleep {mark}' >/dev/null 2>&1 &)"
    done = await sh(f"{daemon}; until [ -e began ]; do :; done; echo hi", cwd=str(tmp_path))

    assert (done.text, done.survivors_killed >= 1) == ("hi\n", True)
    assert living(mark) == []


async def test_13_the_result_comes_with_the_exit_and_not_with_the_end_of_the_pipe(mark):
    done = await sh(f"sleep {mark} & echo hi")

    assert (done.text, done.exit_code) == ("hi\n", 0)
    assert living(mark) == []


@pytest.mark.parametrize(
    ("command", "says"),
    [
        pytest.param("cat; echo $?", "0", id="cat"),
        pytest.param("read -rp 'Password: ' x; echo $?", "1", id="prompt"),
        pytest.param("read x < /dev/tty; echo $?", "1", id="terminal-of-the-user"),
        pytest.param("seq 10000 | ${PAGER:?} | tail -n 1", "10000", id="pager"),
        pytest.param("seq 10000 | $MANPAGER | tail -n 1", "10000", id="pager-of-manuals"),
        pytest.param("$EDITOR file && echo left", "left", id="editor"),
        pytest.param("git -c core.editor= var GIT_EDITOR", "true", id="editor-of-git"),
        pytest.param("git ls-remote https://127.0.0.1:1/x.git 2>&1 | grep -c fatal", "1", id="password-of-git"),
        pytest.param("python3 -c 'input()' 2>&1 | tail -n 1", "EOFError", id="python-input"),
    ],
)
async def test_14_what_asks_pages_or_edits_ends_at_once(tmp_path, command, says):
    done = await sh(command, cwd=str(tmp_path), env=quiet_environment({**os.environ, "EDITOR": "cat /dev/tty"}))

    assert done.text.splitlines()[-1].startswith(says)


@pytest.mark.parametrize(
    ("command", "limits", "says"),
    [
        pytest.param(
            f"exec '{sys.executable}' -c 'open_ = [open(\"/dev/null\") for _ in range(9999)]'",
            ProcessLimits(open_files=40),
            "It opened more than 40 files at once.",
            id="descriptors",
        ),
        pytest.param(
            f"exec '{sys.executable}' -c 'x = [bytearray(1 << 26) for _ in range(99)]'",
            ProcessLimits(memory_mb=600),
            "It needed more than 600 MB of memory.",
            id="memory",
        ),
        pytest.param(
            "for i in $(seq 60); do sleep 5 & done 2>&1; exit 1",
            ProcessLimits(processes=20),
            "It started more than 20 processes.",
            id="processes",
        ),
    ],
)
async def test_15_a_bomb_reaches_its_limit_and_the_other_commands_do_not_notice(cannot, command, limits, says):
    if describe_unenforced(limits):
        cannot(" ".join(describe_unenforced(limits)))
    other = start(Launch(["/bin/bash", "-c", "read x; echo $x"], "/", os.environ, stdin="pipe"))
    bomb = start(Launch(["/bin/bash", "-c", command], "/", os.environ, limits=limits))
    async with asyncio.timeout(120):
        await bomb.wait()
        await other.write(b"well\n")
        await other.wait()
    done = bomb.result()

    assert done.exit_code is not None
    assert describe_limit(limits, done.exit_code, done.text) == says
    assert other.result()[:2] == (0, "well\n")


@pytest.mark.parametrize(
    ("command", "text"),
    [
        pytest.param(r"printf 'a\377\300b'", "a\ufffd\ufffdb", id="no-utf-8"),
        pytest.param(r"printf '\342\202'", "\ufffd", id="half-a-character"),
        pytest.param(r"printf 'a\000b\007c'", "abc", id="nul-and-bell"),
        pytest.param(r"printf '\033[31mred\033[0m \033]0;title\007text'", "red text", id="escape-sequences"),
        pytest.param(r"for i in 1 50 100; do printf '\r%d%%' $i; done; echo", "100%\n", id="progress-bar"),
        pytest.param(r"printf 'one\r\ntwo\r\n'", "one\ntwo\n", id="windows-lines"),
        pytest.param(r"printf '\342\200\256evil'", "evil", id="turned-around"),
    ],
)
async def test_16_text_is_valid_and_clean_and_the_log_has_the_bytes(tmp_path, command, text):
    raw = subprocess.run(["/bin/bash", "-c", command], capture_output=True, check=True, timeout=60).stdout
    done = await sh(command, log=str(tmp_path / "log"), log_limit_bytes=1000)

    assert done.text == text
    assert CONTROL.search(done.text) is None
    assert (tmp_path / "log").read_bytes() == raw


async def test_16_a_line_of_thirty_megabytes_is_cut_between_characters(tmp_path):
    script = "import sys; sys.stdout.buffer.write('é€😀'.encode() * 3_400_000)"
    argv = [sys.executable, "-c", script]
    async with asyncio.timeout(120):
        done = await run(
            argv,
            cwd="/",
            env=os.environ,
            log=str(tmp_path / "log"),
            log_limit_bytes=1000,
            head_chars=7,
            tail_chars=7,
        )

    assert done.text == "é€😀é€😀é\n\n[10,199,986 characters are not shown here]\n\n😀é€😀é€😀"
    assert (done.total_bytes, done.total_chars) == (30_600_000, 10_200_000)
