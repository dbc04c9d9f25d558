"""Plays scenes in child processes, so that they can be killed: jobs come as lines of JSON, and outcomes go back.

Run as `python -m tests.faults.driver`. Everything is imported before the first fork: a child is ready in milliseconds.
"""

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import sys
import traceback
from typing import Any

from ferrule.core.errors import ToolFailure
from tests.faults.desk import Desk
from tests.faults.errands import ERRANDS
from tests.faults.scenes import SCENES
from tests.faults.shim import Fault, Shim

BEGIN, END = "/ferrule-begins-here", "/ferrule-ends-here"
"""Files that do not exist; asking for them marks a place in the list of system calls."""
_LIMIT_SECONDS = 60
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def main() -> None:
    for line in sys.stdin:
        play(json.loads(line))


def play(job: dict[str, Any]) -> None:
    """Fork, say who the child is, let it begin when told to, and say what came of it."""
    start, outcome = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        _perform(job, start, outcome)
    os.close(start[0])
    os.close(outcome[1])
    os.read(outcome[0], 1)
    _say({"child": child})
    sys.stdin.readline()
    os.write(start[1], b"go")
    os.close(start[1])
    with open(outcome[0], "rb") as end:
        said = end.read()
    _, status = os.waitpid(child, 0)
    ended = {"signal": os.WTERMSIG(status)} if os.WIFSIGNALED(status) else {"signal": 0}
    _say({**ended, **(json.loads(said) if said else {})})


def _say(words: dict[str, Any]) -> None:
    print(json.dumps(words), flush=True)


def _perform(job: dict[str, Any], start: tuple[int, int], outcome: tuple[int, int]) -> None:
    """The child's whole life."""
    os.close(start[1])
    os.close(outcome[0])
    signal.alarm(_LIMIT_SECONDS)
    end: dict[str, Any] = {}
    try:
        _let_be_traced()
        waiting = select.poll()
        waiting.register(start[0])
        os.write(outcome[1], b"!")
        waiting.poll()  # a call that is made nowhere else: whether it is counted or not, the others are
        if job.get("user"):
            os.setgroups([])
            os.setgid(job["user"])
            os.setuid(job["user"])
        for name, most in job.get("limits", {}).items():
            resource.setrlimit(getattr(resource, name), (most, resource.getrlimit(getattr(resource, name))[1]))
        end = _errand(job) if "errand" in job else _scene(job)
    except ToolFailure as failure:
        end = {"failure": failure.message, "code": failure.code}
    except BaseException:  # noqa: BLE001 - whatever it is, the test shall see it
        end = {"bug": traceback.format_exc()}
    finally:
        with contextlib.suppress(OSError):
            os.write(outcome[1], json.dumps(end).encode())
        os._exit(0)


def _errand(job: dict[str, Any]) -> dict[str, Any]:
    return {"report": ERRANDS[job["errand"]](job["home"])}


def _scene(job: dict[str, Any]) -> dict[str, Any]:
    desk = Desk(job["home"])
    if "watch" not in job:
        _mark(BEGIN)
        SCENES[job["scene"]].act(desk)
        _mark(END)
        return {}
    with Shim(Fault(*job["watch"]) if job["watch"] else None) as shim:
        SCENES[job["scene"]].act(desk)
    return {"calls": list(shim.calls)}


def _mark(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.stat(path)


def _let_be_traced() -> None:
    """Where the kernel lets only parents trace (Yama), a process can say that others may."""
    if _LIBC is not None:
        set_ptracer, anybody = 0x59616D61, -1
        _LIBC.prctl(set_ptracer, ctypes.c_long(anybody), 0, 0, 0)


if __name__ == "__main__":
    main()
