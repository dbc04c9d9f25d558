"""How checks are shown at the command line: a row for each as it ends, what is wrong below, and all of it as JSON."""

import asyncio
import os
import shutil
import sys
import time
from typing import Any

import click

from ferrule.cli.show import paint
from ferrule.core.checks import Check, Checked, CheckRun, CheckWatch
from ferrule.core.problems import Problem
from ferrule.core.reply import Reply
from ferrule.dialects.families.amp.checks_said import blocks, looked_in, none_of, row, summed_up
from ferrule.output.clean import clean
from ferrule.permissions.asker import Answer, Asker, Question

_COLOURS = {"passed": "green", "failed": "red", "stopped": "yellow", "missing": "yellow", "skipped": "dim"}
_TICK_SECONDS = 0.5


class Show(CheckWatch):
    """Prints rows as checks end. At a terminal, a line below says what runs and for how long."""

    def __init__(self, *, is_quiet: bool) -> None:
        """`is_quiet`: only the line is shown; the outcome is printed by somebody else."""
        self.run: CheckRun | None = None
        """What came of all of them."""
        self._is_quiet = is_quiet
        self._is_live = sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._asked = 0
        self._running: dict[str, float] = {}
        self._ended = 0
        self._is_drawn = False

    def began(self, check: Check) -> None:
        self._running[check.name] = time.monotonic()
        self._draw()

    def ended(self, checked: Checked) -> None:
        self._running.pop(checked.check.name, None)
        self._ended += 1
        self._wipe()
        if not self._is_quiet:
            click.echo(paint(clean(row(checked)), _COLOURS[checked.status]))
        self._draw()

    def done(self, run: CheckRun) -> None:
        self._running.clear()
        self._wipe()
        self.run = run

    async def tick(self) -> None:
        """Keep the line true, until this is cancelled."""
        try:
            while self._is_live:
                await asyncio.sleep(_TICK_SECONDS)
                self._draw()
        finally:
            self._wipe()

    async def asked(self, asker: Asker, question: Question) -> Answer:
        """Have a person asked; the line stays away meanwhile."""
        self._wipe()
        self._asked += 1
        try:
            return await asker.ask(question)
        finally:
            self._asked -= 1

    def end(self, reply: Reply) -> None:
        """What is wrong, the sum of it, and what else is to be known."""
        assert self.run is not None
        if not self.run.checks:
            click.echo(clean(nothing(self.run)), err=True)
        else:
            for block in blocks(self.run):
                click.echo(f"\n{clean(block)}")
            click.echo(("\n" if len(self.run.checks) > 1 or failed(self.run) else "") + summed_up(self.run))
        for note in reply.notes:
            click.echo(f"note: {note}", err=True)

    def _draw(self) -> None:
        if not self._is_live or not self._running or self._asked:
            return
        now = time.monotonic()
        running = ", ".join(f"{name} ({now - since:.0f} s)" for name, since in self._running.items())
        width = max(20, shutil.get_terminal_size().columns - 1)
        line = clean(f"{self._ended} done; running: {running}").replace("\n", " ")
        print(f"\r\x1b[K{paint(line[:width], 'dim', sys.stderr)}", end="", file=sys.stderr, flush=True)
        self._is_drawn = True

    def _wipe(self) -> None:
        if self._is_drawn:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._is_drawn = False


class Asking:
    """Asks whoever answers, and tells the one who shows."""

    def __init__(self, asker: Asker, show: Show) -> None:
        self._asker = asker
        self._show = show

    async def ask(self, question: Question) -> Answer:
        return await self._show.asked(self._asker, question)


def nothing(run: CheckRun) -> str:
    """Why there was nothing to run, to a person."""
    if run.why_unreviewed:
        how = "" if "model" not in run.why_unreviewed else " Name one with --model, or in the setting models.default."
        return f"{none_of(run)}{how}"
    if run.known:
        return none_of(run)
    return f"No checks were found{looked_in(run.looked_in)}. Name your own in the setting checks.commands."


def failed(run: CheckRun) -> bool:
    """Is there one of which nobody can say that it passed? A review that had nothing to look at is none."""
    return any(
        one.status not in {"passed", "skipped"} or (one.status == "skipped" and one.check.kind != "review")
        for one in run.checks
    )


def as_data(run: CheckRun, reply: Reply) -> dict[str, Any]:
    """All of it, for programs."""
    out: dict[str, Any] = {
        "status": "nothing-found" if not run.checks else "failed" if failed(run) else "passed",
        "seconds": round(run.seconds, 3),
        "checks": [_check(one) for one in run.checks],
        "lookedIn": list(run.looked_in),
        "notes": list(reply.notes),
    }
    if reply.output_id:
        out["outputId"] = reply.output_id
    return out


def _check(one: Checked) -> dict[str, Any]:
    check = one.check
    return {
        "name": clean(check.name),
        "kind": check.kind,
        "command": clean(check.command),
        "folder": clean(check.folder),
        "source": clean(check.source),
        "status": one.status,
        "seconds": round(one.seconds, 3),
        "exitCode": one.exit_code,
        "problems": [_problem(problem) for problem in one.problems],
        "totalProblems": one.total_problems,
        "output": clean(one.output),
        "why": clean(one.why),
    }


def _problem(one: Problem) -> dict[str, Any]:
    words = {name: clean(getattr(one, name)) for name in ("path", "message", "severity", "source", "code")}
    return {**words, "line": one.line, "character": one.character}
