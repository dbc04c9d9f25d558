"""`ferrule check`: the project's own checks, found, run and shown."""

import asyncio
import contextlib
import os
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ferrule.cli.check_show import Asking, Show, above, as_data, as_error, failed
from ferrule.cli.codes import DONE, FAILED, INTERRUPTED, REFUSED, USAGE
from ferrule.cli.loop import StoppedError, finish
from ferrule.cli.options import asker_of, exit_code, open_engine, session_options, show_report
from ferrule.core.call import Call
from ferrule.core.checks import Check
from ferrule.core.errors import ToolFailure
from ferrule.core.reply import Reply
from ferrule.dialects.families.amp.checks_said import looked_in as in_files
from ferrule.engine import Engine
from ferrule.models.model import ModelError
from ferrule.models.names import VARIABLE, choose
from ferrule.output.clean import clean
from ferrule.workspace.guarded import Guard
from ferrule.workspace.paths import Jail

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ferrule.agent_settings import Models
    from ferrule.tools.checks.choice import Known

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
        return finish(_listed(names, path, session, as_json=as_json))
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
    return USAGE if not show.run.checks else FAILED if failed(show.run) else DONE


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


async def _listed(names: Sequence[str], path: str, session: dict[str, Any], *, as_json: bool) -> int:
    """What there is, without running any of it."""
    async with open_engine(**{**session, "model": None}, lazy=True) as engine:
        _warn(engine.warnings)
        try:
            known = _known(engine, path, names)
        except ToolFailure as error:
            click.echo(clean(error.message), err=True)
            return _CODES.get(error.code or "", USAGE)
    from ferrule.tools.checks.review import as_check  # it brings in the readers of reviews

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


def _known(engine: Engine, path: str, names: Sequence[str]) -> "Known":
    from ferrule.tools.checks.choice import as_folder, known

    jail, guard = engine.need(Jail), engine.need(Guard)
    whole = known(as_folder(path, jail.real(path or "."), jail, guard), jail, guard, engine.settings.checks)
    return whole.named(names, jail.folder) if names else whole


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
        async with _opened(given, session, show) as engine:
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
        found = _known(engine, given["path"], given["only"]).found
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
async def _opened(given: dict[str, Any], session: dict[str, Any], show: Show) -> "AsyncIterator[Engine]":
    """An engine; where there are reviews to do and a model for them, that of a session with it."""
    session["dialect"] = session["dialect"] or _DIALECT
    ask = Asking(asker_of(session["answer"], many=False), show)
    plain = open_engine(**{**session, "model": None}, ask=ask, lazy=True, on_event=show_report)
    models = plain.settings.models
    wants = given.get("review") or session["model"] or os.environ.get(VARIABLE, "").strip() or models.default
    # Reviews cost money: a key alone is no wish for them, unless they are asked for.
    wants = wants or ("review" in given["only"] and _has_model(models))
    if not wants or given.get("review") is False:
        async with plain as engine:
            yield engine
        return
    from ferrule.agent.session import Session  # for reviews

    del session["answer"]
    async with Session(**session, ask=ask) as opened:
        yield opened.engine
