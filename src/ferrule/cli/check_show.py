"""How checks are shown at the command line: a row for each as it ends, what is wrong below, and all of it as JSON."""

import asyncio
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import click

from ferrule.cli.show import paint
from ferrule.core.checks import Check, Checked, CheckRun, CheckWatch
from ferrule.core.problems import Problem
from ferrule.core.reply import Reply
from ferrule.dialects.families.amp.checks_said import blocks, covered, looked_in, none_of, row, summed_up
from ferrule.output.clean import clean
from ferrule.permissions.asker import Answer, Asker, Nobody, Question, stated, visible

_COLOURS = {"passed": "green", "failed": "red", "stopped": "yellow", "missing": "yellow", "skipped": "dim"}
_TICK_SECONDS = 0.5
_MOST_RULES = 12
_INTERRUPTED = "It was interrupted."


class Show(CheckWatch):
    """Prints rows as checks end. At a terminal, a line below says what runs and for how long."""

    def __init__(self, *, is_quiet: bool) -> None:
        """`is_quiet`: only the line is shown; the outcome is printed by somebody else."""
        self.run: CheckRun | None = None
        """What came of all of them."""
        self._is_quiet = is_quiet
        self._is_live = sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self.root = ""
        """The workspace, from which paths are shown."""
        self.is_gone = False
        """Is there nobody any more who reads what is printed?"""
        self.give_up: Callable[[], object] = bool
        """Called when there is not."""
        self._asked = 0
        self._running: dict[Check, float] = {}
        self._ended: list[Checked] = []
        self._is_drawn = False

    def began(self, check: Check) -> None:
        self._running[check] = time.monotonic()
        self._draw()

    def ended(self, checked: Checked) -> None:
        self._running.pop(checked.check, None)
        self._ended.append(checked)
        self._wipe()
        if not self._is_quiet and not self.is_gone:
            try:
                click.echo(paint(clean(row(checked)), _COLOURS[checked.status]))
            except BrokenPipeError:
                self.is_gone = True
                self.give_up()
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

    def cut(self) -> CheckRun:
        """What is known where they were interrupted: those that have ended, and those that were stopped."""
        self._wipe()
        now = time.monotonic()
        stopped = (Checked(one, "stopped", now - since, why=_INTERRUPTED) for one, since in self._running.items())
        return CheckRun((*self._ended, *stopped), root=self.root)

    def end_early(self, *, is_quiet: bool) -> None:
        """Print what is known, where they were interrupted; `is_quiet`: only that they were."""
        run = self.cut()
        told = [] if is_quiet else blocks(run)
        for block in told:
            click.echo(f"\n{clean(block)}")
        names = [one.check.name for one in run.checks if one.why == _INTERRUPTED]
        were = "were" if len(names) > 1 else "was"
        said = f"Interrupted: {', '.join(names)} {were} stopped." if names else "Interrupted."
        click.echo("\n" * bool(told) + clean(said), err=True)

    def _draw(self) -> None:
        if not self._is_live or not self._running or self._asked:
            return
        now = time.monotonic()
        running = ", ".join(f"{one.name} ({now - since:.0f} s)" for one, since in self._running.items())
        width = max(20, shutil.get_terminal_size().columns - 1)
        line = clean(f"{len(self._ended)} done; running: {running}").replace("\n", " ")
        print(f"\r\x1b[K{paint(line[:width], 'dim', sys.stderr)}", end="", file=sys.stderr, flush=True)
        self._is_drawn = True

    def _wipe(self) -> None:
        if self._is_drawn:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._is_drawn = False


class Asking:
    """Asks whoever answers, and tells the one who shows. Where nobody can be asked, it says what can be done."""

    def __init__(self, asker: Asker, show: Show) -> None:
        self.behind = asker
        self._show = show

    async def ask(self, question: Question) -> Answer:
        answer = await self._show.asked(self.behind, question)
        if isinstance(self.behind, Nobody) and question.kind == "call" and not answer.allow:
            return Answer(allow=False, message=_unasked(question))
        return answer


def _unasked(question: Question) -> str:
    """That nobody can be asked, and which rules would have made it needless."""
    commands = [access.key for access in question.touches if access.kind == "command"]
    rules = question.proposals or tuple(f"Bash({command})" for command in commands if command in question.why)
    named = ", ".join(f'"{visible(rule)}"' for rule in rules[:_MOST_RULES])
    how = f"; permissions.allow = [{named}] in your settings lets such commands run without a question" if named else ""
    return (
        f"Nobody can be asked, so this was not allowed: {stated(question.summary)}"
        f"{question.why} --yes allows it this time{how}."
    )


def nothing(run: CheckRun) -> str:
    """Why there was nothing to run, to a person."""
    if run.why_unreviewed:
        how = "" if "model" not in run.why_unreviewed else " Name one with --model, or in the setting models.default."
        return f"{none_of(run)}{how}"
    if run.known:
        return none_of(run)
    if run.covering:
        return above(run.covering)
    return f"No checks were found{looked_in(run.looked_in)}. Name your own in the setting checks.commands."


def above(names: Sequence[str]) -> str:
    """Where a folder has no checks of its own, though there are some, to a person."""
    return f"{covered(names)} Leave --path out to run them."


def failed(run: CheckRun) -> bool:
    """Is there one of which nobody can say that it passed? A review that had nothing to look at is none."""
    return any(
        one.status not in {"passed", "skipped"} or (one.status == "skipped" and one.check.kind != "review")
        for one in run.checks
    )


def as_data(run: CheckRun, reply: Reply | None) -> dict[str, Any]:
    """All of it, for programs; without a reply it was interrupted."""
    status = "nothing-found" if not run.checks else "failed" if failed(run) else "passed"
    out: dict[str, Any] = {
        "status": status if reply is not None else "interrupted",
        "seconds": round(run.seconds, 3),
        "checks": [_check(one) for one in run.checks],
        "lookedIn": list(run.looked_in),
        "notes": list(reply.notes) if reply is not None else [],
    }
    if reply is not None and reply.output_id:
        out["outputId"] = reply.output_id
    return out


def as_error(reply: Reply) -> dict[str, Any]:
    """The same where nothing was run because the call was wrong or refused."""
    error = reply.error.as_dict() if reply.error is not None else {"message": reply.text}
    status = "refused" if reply.status == "rejected-by-user" else "error"
    error = {key: clean(value) for key, value in error.items()}
    return {"status": status, "seconds": 0.0, "checks": [], "lookedIn": [], "notes": list(reply.notes), "error": error}


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
