"""Recordings for tests of the command line: cues as files, and a real `ferrule run` that plays them."""

import json
import os
import subprocess
import sys
import time

import msgspec

from ferrule.models.cues import VERSION

FERRULE = [sys.executable, "-m", "ferrule"]
LIMIT_SECONDS = 60


def recording(path, *cues, **header):
    """Write cues as a recording; what is returned is what --replay takes."""
    first = {"ferrule": "conversation", "version": VERSION, "model": "claude-test", **header}
    lines = [msgspec.json.encode(line) for line in (first, *cues)]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return str(path)


def start(arguments, cwd, **more):
    """A process of its own, all of whose ends are pipes."""
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [*FERRULE, *arguments], cwd=cwd, **{"stdin": subprocess.DEVNULL, "stdout": pipe, "stderr": pipe, **more}
    )


def until(is_so, process=None):
    """Wait for something, and not for ever."""
    limit = time.monotonic() + LIMIT_SECONDS
    while not is_so():
        assert time.monotonic() < limit
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.01)


def written(path):
    return os.path.exists(path) and os.path.getsize(path) > 0


def lines_of(raw):
    return [json.loads(line) for line in raw.splitlines()]


def lives(words):
    """Does a process with these words run?"""
    shown = subprocess.run(["ps", "-e", "-o", "args="], capture_output=True, text=True, check=True).stdout
    return words in shown
