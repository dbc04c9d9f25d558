"""The terminal: until the prompt is drawn, from a key to its echo while an answer streams, and what it takes of memory.

FERRULE_BEFORE=FOLDER python -m bench terminal     also against an older checkout, by the same Python
"""

import contextlib
import fcntl
import os
import pty
import select
import signal
import statistics
import struct
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from pathlib import Path

from tests.cli.talk.model_server import ModelServer, Script, Think, Use

from bench.measure import Row, ratio

ROUNDS = 15
KEYS = 200
LIBRARIES = (
    "import asyncio, msgspec, click, sqlite3, prompt_toolkit, prompt_toolkit.application, prompt_toolkit.layout, "
    "prompt_toolkit.key_binding, prompt_toolkit.output.vt100, prompt_toolkit.widgets"
)
"""Those that the chat draws its prompt with."""
_WORDS = " ".join(f"word{number}" for number in range(400))
_ANSWER = f"{_WORDS}\n\n```python\n" + "".join(f"value_{number} = {number}\n" for number in range(200)) + "```\n\n"
_LIMIT_SECONDS = 60.0
_STATUS = b"claude-opus"
_SCRIPT: Script = {
    "begin": [[Think("I think. " * 50), _ANSWER * 40]],
    "talk": [
        [Think("I look."), Use("Bash", {"command": "seq 1 2000"})],
        [_ANSWER, Use("Read", {"file_path": "a.py"})],
        [_ANSWER],
    ],
}


class Typist:
    """The chat in a pseudo-terminal, and somebody who types into it."""

    def __init__(self, source: str, cwd: str, environment: dict[str, str]) -> None:
        self.began = time.perf_counter()
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.environ.update({**environment, "TERM": "xterm-256color", "PYTHONPATH": source})
            os.execv(sys.executable, [sys.executable, "-m", "ferrule", "chat"])
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))

    def read(self, seconds: float = 0.0) -> bytes:
        """What comes within that time, all that is there."""
        if not select.select([self.terminal], [], [], seconds)[0]:
            return b""
        try:
            return os.read(self.terminal, 65536)
        except OSError:
            return b""

    def until(self, words: bytes) -> float:
        """When it has written that; the rest is read by whoever comes next."""
        seen, end = b"", time.perf_counter() + _LIMIT_SECONDS
        while words not in seen:
            if time.perf_counter() > end:
                raise TimeoutError(f"no {words!r} in {seen[-300:]!r}")
            seen = seen[-200:] + self.read(0.05)
        return time.perf_counter()

    def write(self, text: str) -> None:
        os.write(self.terminal, text.encode())

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.terminal)


def rows() -> Iterator[Row]:
    before = os.environ.get("FERRULE_BEFORE")
    with tempfile.TemporaryDirectory() as folder, ModelServer(_SCRIPT, piece=16, pause=0.004) as server:
        project = os.path.join(folder, "project")
        os.mkdir(project)
        Path(project, "a.py").write_text("x = 1\n", encoding="utf-8")
        Path(folder, "settings.toml").touch()
        state = {"FERRULE_STATE": f"{folder}/state", "FERRULE_SETTINGS": f"{folder}/settings.toml", "HOME": folder}
        environment = {**state, **server.environment}
        yield from _paint(project, environment, before)
        yield from _latency(project, environment)
        yield _memory(project, environment)


def _paint(project: str, environment: dict[str, str], before: str | None) -> Iterator[Row]:
    ours, theirs, older = list[float](), list[float](), list[float]()
    for _ in range(ROUNDS + 2):
        ours.append(_painted("src", project, environment))
        theirs.append(_imported())
        if before is not None:
            older.append(_painted(os.path.join(before, "src"), project, environment))
    detail = f"{_ms(ours[2:])} and {_ms(theirs[2:])}"
    yield Row(
        "first paint of ferrule chat, against importing its libraries",
        ratio(ours[2:], theirs[2:]),
        float("inf"),
        detail=detail,
    )
    if before is not None:
        detail = f"{_ms(ours[2:])} and {_ms(older[2:])}"
        yield Row(
            "first paint of ferrule chat, against the commit before this work",
            ratio(ours[2:], older[2:]),
            1.3,
            detail=detail,
        )


def _painted(source: str, project: str, environment: dict[str, str]) -> float:
    typist = Typist(os.path.abspath(source), project, environment)
    try:
        return typist.until(_STATUS) - typist.began
    finally:
        typist.close()


def _imported() -> float:
    import subprocess

    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", LIBRARIES], check=True)
    return time.perf_counter() - start


def _latency(project: str, environment: dict[str, str]) -> Iterator[Row]:
    """Each key is one that stands nowhere else on the screen, so that its echo is known."""
    typist = Typist(os.path.abspath("src"), project, environment)
    times = []
    try:
        typist.until(_STATUS)
        typist.write("begin\r")
        typist.until(b"word20")
        letters = "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖØÙÚÛÜÝÞ"
        for number in range(KEYS):
            letter = letters[number % len(letters)]
            while typist.read():
                pass
            time.sleep(0.01 * (number % 7))
            start = time.perf_counter()
            typist.write(letter)
            times.append(typist.until(letter.encode()) - start)
    finally:
        typist.close()
    at95 = sorted(times)[int(len(times) * 0.95)]
    detail = f"p95 {at95 * 1000:.1f} ms, most {max(times) * 1000:.1f} ms, {len(times)} keys"
    yield Row("from a key to its echo while an answer streams", statistics.median(times) * 1000, 16, "ms", detail)


def _memory(project: str, environment: dict[str, str]) -> Row:
    typist = Typist(os.path.abspath("src"), project, environment)
    try:
        typist.until(_STATUS)
        at_start = _pss(typist.pid)
        typist.write("talk\r")
        typist.until(b"value_199")
        typist.until(b"value_199")
        for _ in range(20):
            typist.read(0.1)
        after = _pss(typist.pid)
    finally:
        typist.close()
    detail = f"RSS {after[0]:.1f} MB; at the prompt {at_start[1]:.1f} MB PSS"
    return Row("memory of ferrule chat after a conversation, PSS", after[1], 60, "MB", detail)


def _pss(pid: int) -> tuple[float, float]:
    """Resident and proportional megabytes of a process."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    found = dict(row.split()[:2] for row in text.splitlines()[1:])
    return int(found["Rss:"]) / 1024, int(found["Pss:"]) / 1024


def _ms(times: list[float]) -> str:
    return f"{statistics.median(times) * 1000:.0f} ms"
