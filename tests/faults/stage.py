"""The test's side of the driver: play a scene, with a fault or under strace, and see what came of it."""

import contextlib
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from tests.faults.driver import BEGIN, END

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 60
_CALL = re.compile(r"(\w+)\(")


class NotTracedError(Exception):
    """strace could not take hold of a process."""


class Stage:
    """A running driver. `within` is put before its command line, for example to give it other mounts."""

    def __init__(self, within: Sequence[str] = ()) -> None:
        self._driver = subprocess.Popen(
            [*within, sys.executable, "-m", "tests.faults.driver"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._driver:
            assert self._driver.stdin is not None
            self._driver.stdin.close()
            self._driver.wait(SECONDS)

    def play(self, *strace: str, **job: Any) -> dict[str, Any]:
        """Do a job; with arguments for strace, under its eyes."""
        self._tell(job)
        child = self._hear()["child"]
        with _traced(child, strace) if strace else contextlib.nullcontext():
            self._tell({})
            return self._hear()

    def calls(self, **job: Any) -> list[tuple[str, int]]:
        """The system calls of a scene, each with how many of its name the process had made by then."""
        with tempfile.NamedTemporaryFile("r", encoding="utf-8", errors="replace") as log:
            assert self.play("-o", log.name, **job) == {"signal": 0}
            lines = log.readlines()
        counts: dict[str, int] = {}
        inside, out = False, []
        for line in lines:
            named = _CALL.match(line)
            if named is None:
                continue
            name = named[1]
            counts[name] = counts.get(name, 0) + 1
            if END in line:
                inside = False
            if inside:
                out.append((name, counts[name]))
            if BEGIN in line:
                inside = True
        assert out, "the markers are not in the list of system calls"
        return out

    def _tell(self, words: dict[str, Any]) -> None:
        assert self._driver.stdin is not None
        self._driver.stdin.write(json.dumps(words) + "\n")
        self._driver.stdin.flush()

    def _hear(self) -> dict[str, Any]:
        assert self._driver.stdout is not None
        heard: dict[str, Any] = json.loads(self._driver.stdout.readline())
        return heard


def _traced(child: int, strace: Sequence[str]) -> subprocess.Popen[str]:
    """strace, holding on to the child by the time this returns."""
    argv = ["strace", *(() if "-o" in strace else ("-o", os.devnull)), *strace, "-p", str(child)]
    tracer = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert tracer.stderr is not None
    said = tracer.stderr.readline()
    if "attached" not in said:
        with tracer:
            raise NotTracedError(said.strip())
    return tracer


@functools.cache
def why_no_strace() -> str:
    """Why system calls cannot be traced here; empty where they can."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, text=True) as idle:
        try:
            with _traced(idle.pid, ["-e", "trace=none"]):
                idle.communicate("\n", SECONDS)
        except NotTracedError as refused:
            idle.communicate("\n", SECONDS)
            return f"strace may not trace here ({refused})"
    return ""


@functools.cache
def why_no_mounts() -> str:
    """Why file systems cannot be mounted here; empty where they can."""
    if shutil.which("unshare") is None:
        return "unshare is not installed"
    with tempfile.TemporaryDirectory() as folder:
        argv = [*mounting(f"mount -t tmpfs -o size=400k none '{folder}'"), "true"]
        ran = subprocess.run(argv, capture_output=True, text=True, timeout=SECONDS, check=False)
    return "" if ran.returncode == 0 else f"mounting is not allowed here ({ran.stderr.strip()})"


def mounting(*commands: str) -> list[str]:
    """The beginning of a command line that runs the rest of it with its own mounts."""
    return ["unshare", "--mount", "--propagation", "private", "sh", "-ec", " && ".join((*commands, 'exec "$0" "$@"'))]
