"""Implement `ferrule check`: find, run and show the project's own checks.

Each check prints a row as it ends; problems are listed below the rows, and all of it can be printed as JSON.
"""

import asyncio
import contextlib
import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ferrule.agent.session import Session
from ferrule.cli.options import StoppedError, asker_of, exit_code, finish, open_engine, session_options, show_report
from ferrule.cli.show import DONE, FAILED, INTERRUPTED, REFUSED, USAGE, paint
from ferrule.core.call import Call, Reply
from ferrule.core.errors import ToolFailure
from ferrule.dialects.amp import blocks, describe_places, explain_covering_checks, explain_none_run, row, summarize_run
from ferrule.dialects.amp import describe_places as in_files
from ferrule.engine import Engine
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.models import ModelError
from ferrule.models.catalog import VARIABLE, choose
from ferrule.output import clean
from ferrule.permissions import Answer, Asker, Nobody, Question, end_sentence, visible
from ferrule.tools.checks import Check, Checked, CheckRun, CheckWatch
from ferrule.tools.checks.choice import as_folder, find_known
from ferrule.tools.checks.tool import as_check
from ferrule.tools.lsp import Problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ferrule.settings import Models
    from ferrule.tools.checks.choice import Known


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

    async def ask_person(self, asker: Asker, question: Question) -> Answer:
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
            click.echo(clean(explain_no_checks(self.run)), err=True)
        else:
            for block in blocks(self.run):
                click.echo(f"\n{clean(block)}")
            click.echo(("\n" if len(self.run.checks) > 1 or has_failures(self.run) else "") + summarize_run(self.run))
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


class CheckAsker:
    """Asks whoever answers, and tells the one who shows. Where nobody can be asked, it says what can be done."""

    def __init__(self, asker: Asker, show: Show) -> None:
        self.behind = asker
        self._show = show

    async def ask(self, question: Question) -> Answer:
        answer = await self._show.ask_person(self.behind, question)
        if isinstance(self.behind, Nobody) and question.kind == "call" and not answer.allow:
            return Answer(allow=False, message=_explain_refusal(question))
        return answer


def _explain_refusal(question: Question) -> str:
    """That nobody can be asked, and which rules would have made it needless."""
    commands = [access.key for access in question.touches if access.kind == "command"]
    rules = question.proposals or tuple(f"Bash({command})" for command in commands if command in question.why)
    named = ", ".join(f'"{visible(rule)}"' for rule in rules[:_MOST_RULES])
    how = f"; permissions.allow = [{named}] in your settings lets such commands run without a question" if named else ""
    return (
        f"Nobody can be asked, so this was not allowed: {end_sentence(question.summary)}"
        f"{question.why} --yes allows it this time{how}."
    )


def explain_no_checks(run: CheckRun) -> str:
    """Why there was nothing to run, to a person."""
    if run.why_unreviewed:
        how = "" if "model" not in run.why_unreviewed else " Name one with --model, or in the setting models.default."
        return f"{explain_none_run(run)}{how}"
    if run.known:
        return explain_none_run(run)
    if run.covering:
        return above(run.covering)
    return f"No checks were found{describe_places(run.looked_in)}. Name your own in the setting checks.commands."


def above(names: Sequence[str]) -> str:
    """Where a folder has no checks of its own, though there are some, to a person."""
    return f"{explain_covering_checks(names)} Leave --path out to run them."


def has_failures(run: CheckRun) -> bool:
    """Is there one of which nobody can say that it passed? A review that had nothing to look at is none."""
    return any(
        one.status not in {"passed", "skipped"} or (one.status == "skipped" and one.check.kind != "review")
        for one in run.checks
    )


def as_data(run: CheckRun, reply: Reply | None) -> dict[str, Any]:
    """All of it, for programs; without a reply it was interrupted."""
    status = "nothing-found" if not run.checks else "failed" if has_failures(run) else "passed"
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


_NAME = "check"
"""The canonical tool, whose own words every session understands: some of its parameters no family has."""
_DIALECT = "amp"
"""The one that has the tool."""
_CODES = {"not-a-folder": USAGE, "outside-workspace": REFUSED, "denied-by-rule": REFUSED}
"""How it ends where a call failed with such a code."""
_MOST_DECIDED = 40


@click.command("check")
@click.argument("names", nargs=-1)
@click.option("--list", "only_list", is_flag=True, help="List the checks; run nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
@click.option("--review/--no-review", "review", default=None, help="Do the reviews of .agents/checks, or leave them.")
@click.option("--diff", metavar="REVISIONS", help="What is reviewed (default: uncommitted changes).")
@click.option("--path", type=click.Path(), metavar="DIR", default="", help="Only the checks below this folder.")
@session_options
def command(
    names: Sequence[str],
    *,
    only_list: bool,
    as_json: bool,
    review: bool | None,
    diff: str | None,
    path: str,
    **session: Any,
) -> int:
    """Find the project's own checks and run them: type checkers, linters, tests.

    NAMES are names of checks, globs of names, or kinds: types, lint, format, tests, build, other, review. Without
    any, all checks run that the project's files speak of. Commands run as those of a session do: in the sandbox, and
    as the rules about Bash say. Reviews need a model: --model, or the setting models.default; for
    `ferrule check review` a key is enough.
    Exit codes: 0 all passed, 1 one did not, 2 wrong use or nothing found, 3 refused, 130 interrupted.

    \b
    Examples:
      ferrule check
      ferrule check --list
      ferrule check types lint
      ferrule check pytest --path services/api
      ferrule check review --diff main...HEAD --model anthropic:claude-opus-5-5
      ferrule check --json --yes --no-review > checks.json
    """
    if diff is not None and not diff.strip():
        raise click.UsageError("--diff needs a revision or a range; without it the uncommitted changes are reviewed.")
    values: dict[str, Any] = {"only": list(names), "path": path, "review": review, "diff": diff or ""}
    # Words that no family has are always among them: then the call is understood as it is meant, without a note.
    given = {key: value for key, value in values.items() if value is not None}
    if only_list:
        return finish(_list_checks(names, path, session, as_json=as_json))
    show = Show(is_quiet=as_json)
    try:
        reply = finish(_run(given, session, show))
    except KeyboardInterrupt:
        _cut(show, as_json=as_json)
        return INTERRUPTED
    except StoppedError:
        _cut(show, as_json=as_json)
        raise
    except BrokenPipeError:
        return _unread(FAILED)  # of those that were given up nobody can say that they pass
    code = _code(show, reply)
    try:
        _print(show, reply, as_json=as_json)
    except BrokenPipeError:
        return _unread(code)
    return code


def _code(show: Show, reply: Reply) -> int:
    if show.run is None or reply.status != "done":
        said = reply.error.error_code if reply.error is not None else None
        return _CODES.get(said or "", exit_code([reply]))
    return USAGE if not show.run.checks else FAILED if has_failures(show.run) else DONE


def _print(show: Show, reply: Reply, *, as_json: bool) -> None:
    if show.run is None or reply.status != "done":
        if as_json:
            click.echo(msgspec.json.encode(as_error(reply)))
        click.echo(reply.text, err=True)
    elif as_json:
        click.echo(msgspec.json.encode(as_data(show.run, reply)))
    else:
        show.end(reply)


def _cut(show: Show, *, as_json: bool) -> None:
    """Tell what is known of checks that were interrupted: what has ended was worth its time."""
    if as_json:
        click.echo(msgspec.json.encode(as_data(show.cut(), None)))
    show.end_early(is_quiet=as_json)


def _unread(code: int) -> int:
    """End without a word: whoever read our output has gone, and Python would complain once more while it flushes."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return code


async def _list_checks(names: Sequence[str], path: str, session: dict[str, Any], *, as_json: bool) -> int:
    """What there is, without running any of it."""
    async with open_engine(**{**session, "model": None}, lazy=True) as engine:
        _warn(engine.warnings)
        try:
            known = _find_checks(engine, path, names)
        except ToolFailure as error:
            click.echo(clean(error.message), err=True)
            return _CODES.get(error.code or "", USAGE)

    root, found = engine.jail.folder, known.found
    checks, others = [*found.checks, *(as_check(one, root) for one in known.reviews.reviews)], list(found.others)
    if as_json:
        rows = [_row(one, by_default=one in checks) for one in (*checks, *others)]
        click.echo(msgspec.json.encode({"checks": rows, "lookedIn": list(found.looked_in)}))
    else:
        width = max((len(one.name) for one in (*checks, *others)), default=0)
        for one in checks:
            click.echo(_line(one, width, root))
        if others:
            click.echo("\nOnly when they are named:"[not checks :])
            for one in others:
                click.echo(_line(one, width, root))
    if not checks and not others:
        none = "There is no such check." if names else f"No checks were found{in_files(found.looked_in)}."
        click.echo(above(known.covering) if known.covering else none, err=True)
    _warn((*found.warnings, *known.reviews.warnings))
    return DONE if checks or others else USAGE


def _warn(sentences: Sequence[str]) -> None:
    for sentence in sentences:
        click.echo(f"warning: {clean(sentence)}", err=True)


def _find_checks(engine: Engine, path: str, names: Sequence[str]) -> "Known":

    jail, guard = engine.need(Jail), engine.need(Guard)
    whole = find_known(as_folder(path, jail.real(path or "."), jail, guard), jail, guard, engine.settings.checks)
    return whole.select(names, jail.folder) if names else whole


def _line(check: Check, width: int, root: str) -> str:
    where = f"  in {os.path.relpath(check.folder, root)}" if check.folder != root and check.command else ""
    return clean(f"{check.name:<{width}}  {check.kind:<6}  {check.command or '(review)'}{where}  ({check.source})")


def _row(check: Check, *, by_default: bool) -> dict[str, Any]:
    names = ("name", "kind", "command", "folder", "source")
    return {**{name: clean(getattr(check, name)) for name in names}, "byDefault": by_default}


async def _run(given: dict[str, Any], session: dict[str, Any], show: Show) -> Reply:
    this = asyncio.current_task()
    assert this is not None
    show.give_up = this.cancel
    try:
        async with _open_check_engine(given, session, show) as engine:
            _warn(engine.warnings)
            show.root = engine.jail.folder
            engine.give("CheckWatch", lambda: show)
            ticking = asyncio.create_task(show.tick())
            try:
                (reply,) = await engine.run([Call(_NAME, given)])
            finally:
                ticking.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await ticking
            return await _with_others(reply, given, engine)
    except asyncio.CancelledError:
        if show.is_gone:
            raise BrokenPipeError from None
        raise


async def _with_others(reply: Reply, given: dict[str, Any], engine: Engine) -> Reply:
    """A refusal by a rule with the command line that runs the checks which it does not deny."""
    if reply.error is None or reply.error.error_code != "denied-by-rule":
        return reply
    try:
        found = _find_checks(engine, given["path"], given["only"]).found
    except ToolFailure:  # the folder itself is denied
        return reply
    checks = (*found.checks, *(found.others if given["only"] else ()))
    calls = [(one, Call(_NAME, {**given, "only": [one.name], "review": False})) for one in checks[:_MOST_DECIDED]]
    left = [one.name for one, call in calls if (await engine.decide(call)).verdict != "deny"]
    if not left or len(left) == len(checks):
        return reply
    words = ["ferrule", "check", *left, *(["--path", given["path"]] if given["path"] else [])]
    message = f"{reply.error.message}\nThe others alone: {clean(shlex.join(words))}"
    return msgspec.structs.replace(reply, error=msgspec.structs.replace(reply.error, message=message))


def _has_model(settings: "Models") -> bool:
    """Does a model follow from the keys, or from a server on this machine?"""
    try:
        choose(None, settings)
    except ModelError:
        return False
    return True


@contextlib.asynccontextmanager
async def _open_check_engine(given: dict[str, Any], session: dict[str, Any], show: Show) -> "AsyncIterator[Engine]":
    """An engine; where there are reviews to do and a model for them, that of a session with it."""
    session["dialect"] = session["dialect"] or _DIALECT
    ask = CheckAsker(asker_of(session["answer"], many=False), show)
    plain = open_engine(**{**session, "model": None}, ask=ask, lazy=True, on_event=show_report)
    models = plain.settings.models
    wants = given.get("review") or session["model"] or os.environ.get(VARIABLE, "").strip() or models.default
    # Reviews cost money: a key alone is no wish for them, unless they are asked for.
    wants = wants or ("review" in given["only"] and _has_model(models))
    if not wants or given.get("review") is False:
        async with plain as engine:
            yield engine
        return

    del session["answer"]
    async with Session(**session, ask=ask) as opened:
        yield opened.engine
