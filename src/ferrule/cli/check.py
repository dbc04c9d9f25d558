"""`ferrule check`: the project's own checks, found, run and shown."""

import asyncio
import contextlib
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ferrule.cli.check_show import Asking, Show, as_data, failed
from ferrule.cli.codes import DONE, FAILED, USAGE
from ferrule.cli.loop import finish
from ferrule.cli.options import asker_of, exit_code, open_engine, session_options, show_report
from ferrule.core.call import Call
from ferrule.core.checks import Check
from ferrule.core.errors import ToolFailure
from ferrule.core.reply import Reply
from ferrule.dialects.families.amp.checks_said import looked_in as in_files
from ferrule.engine import Engine
from ferrule.output.clean import clean
from ferrule.workspace.guarded import Guard
from ferrule.workspace.paths import Jail

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_NAME = "check"
"""The canonical tool, whose own words every session understands: some of its parameters no family has."""
_DIALECT = "amp"
"""The one that has the tool."""


@click.command("check")
@click.argument("names", nargs=-1)
@click.option("--list", "only_list", is_flag=True, help="List the checks; run nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
@click.option("--review/--no-review", "review", default=None, help="Do the reviews of .agents/checks, or leave them.")
@click.option("--diff", metavar="REVISIONS", default="", help="What is reviewed (default: uncommitted changes).")
@click.option("--path", metavar="DIR", default="", help="Only the checks below this folder.")
@session_options
def command(
    names: Sequence[str],
    *,
    only_list: bool,
    as_json: bool,
    review: bool | None,
    diff: str,
    path: str,
    **session: Any,
) -> int:
    """Find the project's own checks and run them: type checkers, linters, tests.

    \b
    NAMES are names of checks, globs of names, or kinds: types, lint, format, tests, build, review. Without any, all
    checks run that the project's files speak of. Commands run as those of a session do: in the sandbox, and as the
    rules about Bash say. Reviews need a model: --model, or the setting models.default.
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
    values: dict[str, Any] = {"only": list(names), "path": path, "review": review, "diff": diff}
    # Words that no family has are always among them: then the call is understood as it is meant, without a note.
    given = {key: value for key, value in values.items() if value is not None}
    if only_list:
        return finish(_listed(path, session, as_json=as_json))
    show = Show(is_quiet=as_json)
    reply = finish(_run(given, session, show))
    if show.run is None or reply.status != "done":
        click.echo(reply.text, err=True)
        is_no_folder = reply.error is not None and reply.error.error_code == "not-a-folder"
        return USAGE if is_no_folder else exit_code([reply])
    if as_json:
        click.echo(msgspec.json.encode(as_data(show.run, reply)))
    else:
        show.end(reply)
    if not show.run.checks:
        return USAGE
    return FAILED if failed(show.run) else DONE


async def _listed(path: str, session: dict[str, Any], *, as_json: bool) -> int:
    """What there is, without running any of it."""
    async with open_engine(**{**session, "model": None}, lazy=True) as engine:
        checks, others, warnings, looked_in = _known(engine, path)
    if as_json:
        rows = [_row(one, by_default=one in checks) for one in (*checks, *others)]
        click.echo(msgspec.json.encode({"checks": rows, "lookedIn": list(looked_in)}))
    else:
        width = max((len(one.name) for one in (*checks, *others)), default=0)
        for one in checks:
            click.echo(_line(one, width, engine.jail.folder))
        if others:
            click.echo("\nOnly when they are named:")
            for one in others:
                click.echo(_line(one, width, engine.jail.folder))
        if not checks and not others:
            click.echo(f"No checks were found{in_files(looked_in)}.", err=True)
    for warning in warnings:
        click.echo(f"warning: {clean(warning)}", err=True)
    return DONE if checks or others else USAGE


def _known(engine: Engine, path: str) -> tuple[list[Check], list[Check], Sequence[str], Sequence[str]]:
    from ferrule.tools.checks.choice import as_folder, known
    from ferrule.tools.checks.review import as_check

    jail, settings = engine.need(Jail), engine.settings.checks
    try:
        folder = as_folder(path, jail.real(path or "."), jail, engine.need(Guard))
        found, reviews = known(folder, jail, engine.need(Guard), settings)
    except ToolFailure as error:
        raise click.UsageError(error.message) from error
    reviewed = [as_check(one, jail.folder) for one in reviews.reviews]
    return [*found.checks, *reviewed], list(found.others), (*found.warnings, *reviews.warnings), found.looked_in


def _line(check: Check, width: int, root: str) -> str:
    where = f"  in {os.path.relpath(check.folder, root)}" if check.folder != root and check.command else ""
    return clean(f"{check.name:<{width}}  {check.kind:<6}  {check.command or '(review)'}{where}  ({check.source})")


def _row(check: Check, *, by_default: bool) -> dict[str, Any]:
    names = ("name", "kind", "command", "folder", "source")
    return {**{name: clean(getattr(check, name)) for name in names}, "byDefault": by_default}


async def _run(given: dict[str, Any], session: dict[str, Any], show: Show) -> Reply:
    async with _opened(given, session, show) as engine:
        engine.give("CheckWatch", lambda: show)
        ticking = asyncio.create_task(show.tick())
        try:
            (reply,) = await engine.run([Call(_NAME, given)])
        finally:
            ticking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await ticking
        return reply


@contextlib.asynccontextmanager
async def _opened(given: dict[str, Any], session: dict[str, Any], show: Show) -> "AsyncIterator[Engine]":
    """An engine; where there are reviews to do and a model for them, that of a session with it."""
    session["dialect"] = session["dialect"] or _DIALECT
    ask = Asking(asker_of(session["answer"], many=False), show)
    plain = open_engine(**{**session, "model": None}, ask=ask, lazy=True, on_event=show_report)
    wants = given.get("review") or session["model"] or plain.settings.models.default
    if not wants or given.get("review") is False:
        async with plain as engine:
            yield engine
        return
    from ferrule.agent.session import Session  # for reviews

    del session["answer"]
    async with Session(**session, ask=ask) as opened:
        yield opened.engine
