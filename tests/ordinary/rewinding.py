"""Any work in any number of prompts, then back to one of them: the tree is what it was, and so after the way back.

Also a program that does such work until it is killed: `python -m tests.ordinary.rewinding`.
"""

import asyncio
import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec
from hypothesis import strategies as st

from ferrule import Engine, Settings
from ferrule.core.errors import ToolFailure
from tests.faults.shim import Fault, Shim
from tests.faults.stage import _traced
from tests.ordinary.picture import Picture, differences, picture, removed, told
from tests.ordinary.restoring import Wanting

NAMES = ("a", "b.txt", "d/a", "d/e/b", "d", "odd name", "-x", "ü\nü", "link", "new/deep/file")
WORDS = ("word\n", "a longer line with a word\n", "", "\r\nword\r\n", "x" * 5000 + "word\n", "no newline at the end")
MODES = ("755", "700", "500", "4755", "555", "2711", "000", "300")
LIMIT_SECONDS = 120
PHASES = ("during", "after", "rewind")
"""When the process is killed: while the last command is run and recorded, right after it, or while it is rewound."""
TRACED = ("openat", "write", "renameat", "renameat2", "rename", "fsync", "unlinkat", "unlink", "mkdirat", "linkat")
"""System calls of which one is the last."""


class Step(NamedTuple):
    """One call."""

    tool: str
    input: dict[str, Any]


Prompts = list[list[Step]]


class Rewinds(Protocol):
    """What an engine can, or whoever stands in for it."""

    def begin_prompt(self, number: int) -> object: ...
    async def rewind(self, number: int, over: bool = False) -> object: ...
    async def undo(self) -> object: ...


class ByCopies:
    """Stands in for the engine's own way back: the folder as it was, copied. It shows what the comparison is worth."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._kept = folder, folder.parent / "copies"

    def begin_prompt(self, number: int) -> None:
        self._copy(self._folder, self._kept / str(number))

    async def rewind(self, number: int, over: bool = False) -> None:
        self._copy(self._folder, self._kept / "last")
        self._copy(self._kept / str(number), self._folder)

    async def undo(self) -> None:
        self._copy(self._kept / "last", self._folder)

    def _copy(self, source: Path, target: Path) -> None:
        self._kept.mkdir(exist_ok=True)
        removed(target)
        shutil.copytree(source, target, symlinks=True)


def _command(script: str) -> Step:
    return Step("Bash", {"cmd": script})


def _operations() -> "st.SearchStrategy[str]":
    """One small thing that a shell does to files."""
    name = st.sampled_from(NAMES).map(lambda one: shlex.quote(f"./{one}"))
    text = st.sampled_from(WORDS).map(shlex.quote)
    forms = (
        st.builds('mkdir -p "$(dirname {0})" && printf %s {1} > {0}'.format, name, text),
        st.builds("printf %s {1} >> {0}".format, name, text),
        st.builds("rm -f {0}".format, name),
        st.builds("rm -rf {0}".format, name),
        st.builds("mv -f {0} {1}".format, name, name),
        st.builds("cp -a {0} {1}".format, name, name),
        st.builds("mkdir -p {0}".format, name),
        st.builds("chmod {1} {0}".format, name, st.sampled_from(MODES)),
        st.builds("ln -sfn {1} {0}".format, name, st.sampled_from(("a", "d", "nowhere", "../up"))),
        st.builds("ln -f {0} {1}".format, name, name),
        st.builds("truncate -s {1} {0}".format, name, st.sampled_from((0, 3, 100_000))),
        st.builds("rm -rf {0} && mkdir {0}".format, name),
        st.builds("rm -rf {0} && ln -s {1} {0}".format, name, st.sampled_from(("a", "d/e", "gone"))),
        st.builds("rm -rf {0} && printf %s {1} > {0}".format, name, text),
    )
    return st.one_of(*forms)


def prompts(most: int = 4) -> "st.SearchStrategy[Prompts]":
    """Some prompts, each with some calls: commands, and edits by the engine's own tools."""
    command = st.lists(_operations(), min_size=1, max_size=3).map(lambda several: _command("; ".join(several)))
    path, text = st.sampled_from(NAMES), st.sampled_from(WORDS)
    create = st.builds(lambda one, words: Step("create_file", {"path": one, "content": words}), path, text)
    edit = st.builds(
        lambda one, words: Step("edit_file", {"path": one, "old_str": "word", "new_str": f"other {words}"}), path, text
    )
    several = st.lists(st.one_of(command, command, create, edit), min_size=1, max_size=3)
    return st.lists(several, min_size=1, max_size=most)


def furnish(folder: Path) -> None:
    """The tree at the beginning: a few files that the operations name."""
    (folder / "d/e").mkdir(parents=True)
    for number, name in enumerate(("a", "b.txt", "d/a", "d/e/b", "odd name")):
        (folder / name).write_text(f"the word {number}\n")
    (folder / "link").symlink_to("d")
    (folder / "b.txt").chmod(0o600)
    (folder / "odd name").chmod(0o755)


def opened(folder: Path, use: str) -> Engine:
    settings = msgspec.convert({"sandbox": {"use": use}}, Settings)
    state = folder.parent / "state"
    # The conversation of both engines, before and after a kill: only its own writes are rewound.
    return Engine(folder, settings=settings, state=state, ask=Wanting(), session_id="a-conversation")


async def lived(top: Path, work: Prompts, to: int, use: str, *, copies: bool = False) -> str:
    """Do the work, rewind to a prompt, and take that back too. Says what is wrong, or nothing."""
    folder = top / "work"
    furnish(folder)
    seen: list[Picture] = []
    async with opened(folder, use) as engine:
        whole: Any = engine
        rewinds: Rewinds = ByCopies(folder) if copies else whole
        for number, steps in enumerate(work, 1):
            seen.append(picture(folder))
            rewinds.begin_prompt(number)
            for step in steps:
                await engine.call(step.tool, **step.input)
        end, wanted = picture(folder), seen[to - 1]
        try:
            await rewinds.rewind(to)
        except ToolFailure as refused:
            # Where nothing has changed since, there is nothing to do.
            return "" if end == wanted else f"rewind was refused: {refused.message}"
        wrong = differences(wanted, picture(folder))
        if wrong:
            return f"after the rewind to {to}: {told(wrong)}"
        if end == wanted:
            return ""
        try:
            await rewinds.undo()
        except ToolFailure as refused:
            return f"the rewind was not taken back: {refused.message}"
        wrong = differences(end, picture(folder))
        return f"after the rewind was taken back: {told(wrong)}" if wrong else ""


class Kill(NamedTuple):
    """Work that is killed, and when."""

    work: Prompts
    phase: str
    at: int
    """Which of the calls through which files are changed is the last, from 1; 0 for one that strace chooses."""
    syscall: str = ""
    use: str = "namespaces"
    to: int = 1
    """The prompt that is rewound to, before or after the kill."""
    back: str = "rewind"
    """`undo`: not by a rewind but one step after another, as far as it goes."""


def killed(top: Path, kill: Kill) -> tuple[bool, str]:
    """Was it killed before it was done? And what is wrong after a new engine has gone back, or nothing."""
    folder = top / "work"
    furnish(folder)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    argv = [sys.executable, "-m", "tests.ordinary.rewinding"]
    with open(top / "stderr", "wb") as stderr:
        process = subprocess.Popen(
            argv, cwd=top, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True
        )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        process.stdin.write(json.dumps(kill._asdict()) + "\n")
        process.stdin.flush()
        ready = process.stdout.readline()
        inject = ("-f", "-e", f"trace={kill.syscall}", "-e", f"inject={kill.syscall}:signal=KILL:when={abs(kill.at)}+")
        with _traced(process.pid, inject) if kill.syscall and ready else contextlib.nullcontext():
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write("go\n")
                process.stdin.close()
            try:
                process.wait(LIMIT_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                return False, "it did not end in time"
        code = process.returncode
    if code not in (0, -signal.SIGKILL):
        said = (top / "stderr").read_text(errors="replace").strip().splitlines()
        return False, f"it ended with {code}: {said[-1] if said else ''}"
    _settled(folder)
    with open(top / "pictures", encoding="utf-8") as file:
        seen: list[Picture] = [{path: tuple(row) for path, row in json.loads(line).items()} for line in file]
    return code != 0, asyncio.run(_gone_back(folder, kill, seen))


async def _gone_back(folder: Path, kill: Kill, seen: list[Picture]) -> str:
    """A new engine on what the killed one has left."""
    wanted = seen[0 if kill.back == "undo" else kill.to - 1]
    async with opened(folder, kill.use) as engine:
        whole: Any = engine
        rewinds: Rewinds = whole
        try:
            if kill.back == "undo":
                await _undone(rewinds, 3 * sum(map(len, kill.work)))
            else:
                await _rewound(rewinds, kill.to)
        except ToolFailure as refused:
            if picture(folder) != wanted:
                return f"refused: {refused.message}"
    wrong = differences(wanted, picture(folder))
    return f"killed {kill.phase} at {kill.syscall or 'call'} {kill.at}: {told(wrong)}" if wrong else ""


async def _rewound(rewinds: Rewinds, to: int) -> None:
    """What the kill has left half done may count as somebody else's change; a person says then that it may go."""
    try:
        await rewinds.rewind(to)
    except ToolFailure:
        await rewinds.rewind(to, over=True)


async def _undone(rewinds: Rewinds, most: int) -> None:
    for _ in range(most):
        try:
            await rewinds.undo()
        except ToolFailure:
            return


def _settled(folder: Path) -> None:
    """Until nothing of the killed engine works in the folder any more: its commands end with it, a moment later."""
    end = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < end and _working(str(folder)):
        time.sleep(0.02)


def _working(folder: str) -> bool:
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if name.isdecimal() and int(name) != os.getpid() and os.readlink(f"/proc/{name}/cwd").startswith(folder):
                return True
    return False


async def _work() -> None:
    """The program: everything but the last call, then a word, and after the answer what the kill is meant for."""
    how = json.loads(sys.stdin.readline())
    work = [[Step(*step) for step in steps] for steps in how["work"]]
    kill = Kill(**{**how, "work": work})
    folder = Path.cwd() / "work"
    steps = [(number, step) for number, one in enumerate(work, 1) for step in one]
    async with opened(folder, kill.use) as engine:
        whole: Any = engine
        begun = 0
        with open(folder.parent / "pictures", "w", encoding="utf-8") as file:
            for at, (number, step) in enumerate(steps, 1):
                if number != begun:
                    file.write(json.dumps(picture(folder)) + "\n")
                    file.flush()
                    if kill.back != "undo":
                        whole.begin_prompt(number)
                    begun = number
                if at == len(steps) and kill.phase == "during":
                    _ready(kill)
                await engine.call(step.tool, **step.input)
        if kill.phase == "after":
            _ready(kill)
            os.kill(os.getpid(), signal.SIGKILL)
        if kill.phase == "rewind":
            _ready(kill)
            with contextlib.suppress(ToolFailure):  # as where there is nothing to rewind
                await (_undone(whole, len(steps)) if kill.back == "undo" else _rewound(whole, kill.to))
    os._exit(0)


def _ready(kill: Kill) -> None:
    print("ready", flush=True)
    sys.stdin.readline()
    if not kill.syscall:
        Shim(Fault("kill", kill.at)).__enter__()


if __name__ == "__main__":
    asyncio.run(_work())
