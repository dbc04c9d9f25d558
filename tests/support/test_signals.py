"""Whoever starts this program may have it ignore signals; the commands that it runs do not."""

import signal
import subprocess
import sys

import pytest

SCRIPT = """
import asyncio, sys
from ferrule import Engine, Settings
from ferrule.settings import Sandbox

async def main():
    settings = Settings(sandbox=Sandbox(use=sys.argv[2]))
    async with Engine(sys.argv[1], settings=settings, state=sys.argv[1] + "/.state", ask=lambda _: True) as engine:
        print((await engine.call("shell", command="grep SigIgn /proc/self/status")).text)

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells it in /proc")
@pytest.mark.parametrize("use", ["none", "auto"])
def test_a_command_heeds_the_signals_that_this_program_was_told_to_ignore(tmp_path, use):
    shell = f"trap '' INT QUIT HUP; exec {sys.executable} -c \"$0\" {tmp_path} {use}"
    done = subprocess.run(["sh", "-c", shell, SCRIPT], capture_output=True, text=True, check=True)
    ignored = int(done.stdout.split("SigIgn:")[1].split()[0], 16)

    for one in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        assert not ignored >> (one - 1) & 1, one
