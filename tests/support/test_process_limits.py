"""Limits: what a command may use, what cannot be enforced here, and how it is told which one ended it."""

import os
import subprocess
import sys

import pytest

from ferrule.system.command import Finished, Launch, start
from ferrule.system.environment import ProcessLimits, apply_limits, describe_limit, describe_unenforced

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere address space is not limited")


async def ran(command: str, limits: ProcessLimits | None, **options) -> Finished:
    launch = Launch(["/bin/bash", "-c", command], cwd="/", env=os.environ, limits=limits, **options)
    running = start(launch)
    await running.wait(60)
    await running.stop()
    return running.result()


@pytest.mark.parametrize("limits", [None, ProcessLimits()], ids=["none", "all-as-they-are"])
def test_without_limits_the_command_is_started_as_it_is(limits):
    argv = ["/bin/bash", "-c", "true"]

    assert apply_limits(argv, limits) is argv
    assert describe_unenforced(limits) == ()


async def test_each_process_has_the_limits():
    limits = ProcessLimits(open_files=64, file_mb=3, memory_mb=2000 if sys.platform == "linux" else None)
    said = (await ran("ulimit -n; ulimit -f; ulimit -v; bash -c 'ulimit -n'", limits)).text.split()

    assert (said[0], said[1], said[3]) == ("64", str(3 << 10), "64")
    assert said[2] == (str(2000 << 10) if sys.platform == "linux" else "unlimited")


async def test_words_reach_the_command_as_they_were_given():
    launch = Launch(["printf", "[%s]", "a b", "", "$x", "*"], "/", os.environ, limits=ProcessLimits(open_files=64))
    running = start(launch)
    await running.wait(60)

    assert running.result().text == "[a b][][$x][*]"


async def test_a_file_does_not_become_larger(tmp_path):
    limits = ProcessLimits(file_mb=1)
    launch = Launch(["/bin/bash", "-c", "head -c 3000000 /dev/zero > file"], str(tmp_path), os.environ, limits=limits)
    running = start(launch)
    await running.wait(60)
    done = running.result()

    assert (tmp_path / "file").stat().st_size == 1 << 20
    assert done.exit_code is not None
    assert describe_limit(limits, done.exit_code, done.text) == (
        "It wrote a file that would have become larger than 1 MB."
    )


async def test_no_more_files_are_opened():
    limits = ProcessLimits(open_files=32)
    command = f"exec '{sys.executable}' -c 'files = [open(\"/dev/null\") for _ in range(100)]'"
    done = await ran(command, limits)

    assert done.exit_code == 1
    assert describe_limit(limits, done.exit_code, done.text) == "It opened more than 32 files at once."


@linux_only
async def test_no_more_memory_is_had():
    limits = ProcessLimits(memory_mb=500)
    done = await ran(f"exec '{sys.executable}' -c 'bytearray(1 << 30)'", limits)

    assert done.exit_code == 1
    assert describe_limit(limits, done.exit_code, done.text) == "It needed more than 500 MB of memory."


async def test_the_number_of_processes_is_limited_or_it_is_said_that_it_is_not():
    limits = ProcessLimits(processes=20)
    if describe_unenforced(limits):
        assert os.geteuid() == 0 or sys.platform != "linux"
        assert describe_unenforced(limits) == (
            "The number of processes is not limited: the system counts them for other users than root, and on Linux.",
        )
        assert apply_limits(["true"], limits) == ["true"]
        return
    done = await ran("for i in $(seq 60); do sleep 5 & done 2>&1; exit 1", limits)

    assert done.exit_code is not None
    assert describe_limit(limits, done.exit_code, done.text) == "It started more than 20 processes."


async def test_nothing_runs_where_a_limit_cannot_be_set(tmp_path):
    script = (
        "import resource, subprocess, sys\n"
        "from ferrule.system.environment import ProcessLimits, apply_limits\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "argv = apply_limits(['touch', sys.argv[1]], ProcessLimits(open_files=1 << 40))\n"
        "print(subprocess.run(argv, stderr=subprocess.DEVNULL).returncode)\n"
    )
    argv = [sys.executable, "-c", script, str(tmp_path / "made")]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout.strip() not in {"", "0"}
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("exit_code", "text"),
    [
        pytest.param(0, "Too many open files", id="it-went-well"),
        pytest.param(1, "no such thing", id="another-failure"),
        pytest.param(143, "", id="stopped"),
    ],
)
def test_no_limit_is_blamed_for_what_it_did_not_do(exit_code, text):
    assert describe_limit(ProcessLimits(1, 1, 1, 1), exit_code, text) == ""
    assert describe_limit(None, 1, "Too many open files") == ""
