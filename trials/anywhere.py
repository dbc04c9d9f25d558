"""The whole suite, where it is hard to pass: in random orders, on a busy machine, and in the background."""

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from tests.ordinary.person import ROOT, Person

from trials.suite import told
from trials.trial import Place, Row, Trial, tried

SEEDS = (1, 20_261, 4_000_000_007)
"""Of the random orders."""
_LOOPS = 2
_LIMIT_SECONDS = 3 * 3600
_ALONE = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
os.setsid()
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Starts a program as a shell starts one in the background, and without a terminal."""
_ELSEWHERE = "SIGINT ignored, no terminal, a checkout below the temporary folder"


def _rows(place: Place) -> Iterator[Row]:
    for seed in SEEDS:
        yield tried(f"in the random order {seed}", "all pass", partial(_here, (f"--randomly-seed={seed}",)))
    yield tried(f"with nice 19 beside {_LOOPS} busy loops", "all pass", _loaded)
    yield from place.missing_user(_ELSEWHERE)
    person = place.people[-1]
    yield tried(f"{_ELSEWHERE}, {person.title}", "all pass", partial(_elsewhere, place, person))


def _here(options: Sequence[str] = (), before: Sequence[str] = ()) -> tuple[str, bool]:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [*before, sys.executable, "-m", "pytest", "--tb=line", *options],
        cwd=ROOT,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_LIMIT_SECONDS,
        check=False,
    )
    return told(done)


def _loaded() -> tuple[str, bool]:
    with contextlib.ExitStack() as stack:
        for _ in range(_LOOPS):
            loop = stack.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            stack.callback(loop.kill)
        return _here(before=("nice", "-n", "19"))


def _elsewhere(place: Place, person: Person) -> tuple[str, bool]:
    """What is committed, with an environment of its own."""
    with tempfile.TemporaryDirectory(prefix="ferrule-anywhere-", ignore_cleanup_errors=True) as above:
        os.chmod(above, 0o755)
        top = Path(above) / "deep" / "checkout"
        python = top / ".venv" / "bin" / "python"
        for argv in (
            ["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(top)],
            ["make", "-C", str(top), f"PYTHON={sys.executable}", ".venv/.dev"],
            [str(python), str(top / "scripts" / "provide.py")],
        ):
            if failed := place.fetch(argv):
                return failed, False
        person.give(top)
        env = {"PATH": os.pathsep.join([str(python.parent), "/usr/local/bin", "/usr/bin", "/bin"]), "TERM": "dumb"}
        argv = [str(python), "-c", _ALONE, str(python), "-m", "pytest", "--tb=line"]
        return told(person.run(argv, cwd=top, env=env, seconds=_LIMIT_SECONDS))


TRIAL = Trial(
    "anywhere",
    "The whole suite in three random orders, on a machine that has no time for it, and as an ordinary user in the "
    "background, without a terminal, in a checkout below the temporary folder.",
    _rows,
)
