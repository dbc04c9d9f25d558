"""Whoever starts this program may have it ignore signals; the commands that it runs do not."""

import os
import signal
import subprocess
import sys

import pytest

SCRIPT = """
import asyncio, sys
from ferrule import Engine, Settings
from ferrule.settings import SandboxSettings

async def main():
    settings = Settings(sandbox=SandboxSettings(use=sys.argv[2]))
    async with Engine(sys.argv[1], settings=settings, state=sys.argv[1] + "/.state", ask=lambda _: True) as engine:
        print((await engine.call("shell", command="grep -E 'SigIgn|SigBlk' /proc/self/status")).text)

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells it in /proc")
@pytest.mark.parametrize("use", ["none", "auto"])
def test_a_command_heeds_the_signals_that_this_program_was_told_to_ignore(tmp_path, use):
    shell = f"trap '' INT QUIT HUP USR1 ALRM; exec {sys.executable} -c \"$0\" {tmp_path} {use}"
    done = subprocess.run(["sh", "-c", shell, SCRIPT], capture_output=True, text=True, check=True)
    ignored = int(done.stdout.split("SigIgn:")[1].split()[0], 16)

    for one in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGUSR1, signal.SIGALRM):
        assert not ignored >> (one - 1) & 1, one


BLOCKED = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1})
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells it in /proc")
@pytest.mark.parametrize("use", ["none", "auto"])
def test_a_command_is_not_started_with_signals_held_back(tmp_path, use):
    config = tmp_path / "config" / "ferrule"
    config.mkdir(parents=True)
    (config / "settings.toml").write_text(f'[sandbox]\nuse = "{use}"\n')
    (tmp_path / "work").mkdir()
    words = ["call", "shell", '{"command": "grep SigBlk /proc/self/status"}', "--yes"]
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED, sys.executable, "-m", "ferrule", *words],
        cwd=tmp_path / "work",
        env={**os.environ, "XDG_CONFIG_HOME": str(config.parent), "XDG_STATE_HOME": str(tmp_path / "state")},
        capture_output=True,
        text=True,
        check=True,
    )

    assert int(done.stdout.split("SigBlk:")[1].split()[0], 16) == 0


NOHUP = """
import asyncio, os, signal
from ferrule.cli.options import finish

async def main():
    os.kill(os.getpid(), signal.SIGHUP)
    for _ in range(100):
        await asyncio.sleep(0)
    return "went on"

print(finish(main()))
"""


def test_a_program_that_is_to_outlive_its_terminal_does():
    done = subprocess.run(
        ["nohup", sys.executable, "-c", NOHUP], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
    )

    assert done.stdout == "went on\n"
