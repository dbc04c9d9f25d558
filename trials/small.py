"""Small bugs mended by a small model on this machine: twenty tasks of one file each, with the default settings."""

import asyncio
import os
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ferrule.agent import AgentEvent, Called, Ended, Limits, Spoke, Thought, TurnBegan, TurnEnded
from ferrule.agent.session import Session
from ferrule.core.call import Done
from ferrule.models import Model, RetryNotice
from ferrule.models.catalog import load_model
from ferrule.permissions import Everybody
from ferrule.settings import Settings
from ferrule.wire import Delta, ModelRequest
from trials.trial import Place, Row, Trial

GOAL = 12
LIMITS = Limits(turns=12, seconds=420)
_CHECK_SECONDS = 20
SETS = ("small_tasks.toml", "small_tasks_fresh.toml")
"""The first was there when small models were first led; nothing was ever tuned on the second."""
_MISSING = (
    "NO MODEL: put a GGUF file, or a link to one, at {path}, and run this again. The figures here are those of "
    "Qwen2.5-Coder-1.5B-Instruct in Q4_K_M, 1.1 GB."
)


class Task(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One bug in one file, and what tells whether it is there."""

    name: str
    file: str
    prompt: str
    check: str
    source: str
    test: str
    mend: tuple[str, str]
    """One way to do it: an old text and a new one. It is there to prove that the check can pass."""
    test_file: str = "check.py"

    def lay_out(self, folder: Path) -> None:
        """Put the task into an empty folder."""
        (folder / self.file).write_text(self.source.lstrip("\n"), encoding="utf-8")
        self._put_test(folder)

    def checked(self, folder: Path) -> str:
        """Run the check; empty where it passes, else the last words of why not."""
        self._put_test(folder)
        path = os.pathsep.join([os.path.join(sys.prefix, "bin"), os.environ.get("PATH", "/usr/bin:/bin")])
        env = {**os.environ, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            done = subprocess.run(
                self.check.split(),
                cwd=folder,
                env=env,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_CHECK_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"the check took over {_CHECK_SECONDS} seconds"
        if done.returncode == 0:
            return ""
        lines = [line for line in done.stderr.splitlines() if "Error" in line] or done.stderr.splitlines()
        return lines[-1].strip() if lines else f"exit code {done.returncode}"

    def _put_test(self, folder: Path) -> None:
        (folder / self.test_file).write_text(self.test.lstrip("\n"), encoding="utf-8")


def tasks(file: str) -> list[Task]:
    """All of one of the sets, in the order of the file."""
    text = Path(__file__).with_name(file).read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text)["task"], list[Task])


class _Kept:
    """A model that outlives the sessions that ask it: what it has read of the prompt is read once."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.name, self.model, self.wire, self.prices = model.name, model.model, model.wire, model.prices
        self.window, self.most_output = model.window, model.most_output

    def ask(self, asked: ModelRequest) -> AsyncIterator[Delta | RetryNotice]:
        return self._model.ask(asked)

    async def close(self) -> None:
        """Nothing: the next session asks it again."""


class _Tally:
    """What happens in one session: counted, and written down for whoever wants to know why a task failed."""

    def __init__(self, log: Path) -> None:
        self.calls = 0
        self.failed = 0
        self._log = log.open("w", encoding="utf-8")

    def hear(self, event: AgentEvent) -> None:
        if isinstance(event, Called) and isinstance(event.call, Done):
            self.calls += 1
            self.failed += event.call.reply.status != "done"
        if not isinstance(event, Spoke | Thought | TurnBegan):
            self._write(event)

    def close(self) -> None:
        self._log.close()

    def _write(self, event: AgentEvent) -> None:
        value: Any = event.said if isinstance(event, TurnEnded) else event
        if isinstance(event, Called):
            if not isinstance(event.call, Done):
                return
            value = event.call.reply
        self._log.write(f"{type(event).__name__}: {value}\n\n")
        self._log.flush()


class _Outcome(NamedTuple):
    """How one task went."""

    is_done: bool
    words: str


def rows(place: Place, file: str = SETS[0]) -> Iterator[Row]:
    """One for each task of a set, and one for all of them."""
    folder = place.tool("small")
    path = folder / "model.gguf"
    if not path.is_file():
        yield Row("small bugs, a small model", "tried", _MISSING.format(path=path), None)
        return
    model = load_model(f"local:{path.resolve()}", Settings().models)
    done, count = 0, 0
    with asyncio.Runner() as runner:
        try:
            for task in tasks(file):
                outcome = runner.run(_tried(task, _Kept(model), folder))
                done, count = done + outcome.is_done, count + 1
                yield Row(f"{task.name}: {task.file}", "mended", outcome.words, outcome.is_done)
        finally:
            runner.run(model.close())
    yield Row(f"mended by {model.model}", f"at least {GOAL} of {count}", f"{done} of {count}", done >= GOAL)


async def _tried(task: Task, model: Model, folder: Path) -> _Outcome:
    # Every task has the same path: the words above a conversation are the same then, and the model has them already.
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    task.lay_out(work)
    tally = _Tally(folder / f"{task.name}.log")
    start = time.monotonic()
    try:
        ended = await _run(task, model, folder, tally)
    finally:
        tally.close()
    why = task.checked(work)
    facts = f"{ended.spent.turns} turns, {tally.calls} calls, {tally.failed} failed, {time.monotonic() - start:.0f} s"
    how = "" if ended.reason == "end" else f", ended by {ended.reason}"
    return _Outcome(not why, f"done: {facts}{how}" if not why else f"NOT DONE ({why}): {facts}{how}")


async def _run(task: Task, model: Model, folder: Path, tally: _Tally) -> Ended:
    session = Session(
        folder / "work",
        model=model,
        ask=Everybody(),
        limits=LIMITS,
        state=folder / "state",
        settings=Settings(),
        on_event=tally.hear,
    )
    async with session:
        return await session.agent.run(task.prompt)


TRIAL = Trial(
    "small",
    "Twenty small bugs in one file each, mended by a model of 1.5 billion parameters on this machine's processor, with "
    "the default settings. The tasks were fixed before the model was first asked.",
    rows,
)
