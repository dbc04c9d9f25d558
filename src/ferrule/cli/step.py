"""One step through the history of writes, shown as a diff."""

import time
from typing import Any

import click

from ferrule.cli.codes import DONE, FAILED
from ferrule.cli.loop import finish
from ferrule.cli.options import open_engine
from ferrule.cli.show import paint_diff
from ferrule.core.errors import ToolFailure
from ferrule.engine import Engine
from ferrule.output.clean import clean
from ferrule.support.diff import diff
from ferrule.workspace.entry_words import entry_words
from ferrule.workspace.journal import Entry
from ferrule.workspace.textfile import is_binary
from ferrule.workspace.undo import Undone


def step(which: str, path: str | None, session: dict[str, Any], *, listing: bool) -> int:
    """Undo or redo, as an exit code; a refusal changes nothing."""
    try:
        finish(_step(which, path, session, listing=listing))
    except ToolFailure as error:
        click.echo(f"ferrule: {error.message}", err=True)
        return FAILED
    return DONE


async def _step(which: str, path: str | None, session: dict[str, Any], *, listing: bool) -> None:
    async with open_engine(**session, lazy=True) as engine:
        if listing:
            await _list(engine, path)
            return
        done = await (engine.undo(path) if which == "undo" else engine.redo(path))
        for text in diffs(done, engine):
            click.echo(paint_diff(clean(text)), nl=False)
        for note in done.notes:
            click.echo(f"note: {clean(note)}", err=True)
        click.echo(f"{did(which, done)}: {_line(done.entry, engine)}")


def did(which: str, done: Undone) -> str:
    """What has become of a write, without a claim that is not true."""
    if done.is_nothing:
        return "Nothing was taken back" if which == "undo" else "Nothing was done again"
    return "Undone" if which == "undo" else "Redone"


def diffs(done: Undone, engine: Engine) -> list[str]:
    """What the step changed, a diff a file."""
    out = []
    for path, before in done.before.items():
        after = done.after[path]
        if any(raw is not None and is_binary(raw) for raw in (before, after)):
            out.append(f"Binary file {engine.jail.shown(path)} differs.\n")
        elif before != after:
            texts = [None if raw is None else raw.decode(errors="replace") for raw in (before, after)]
            out.append(diff(engine.jail.shown(path), texts[0], texts[1]))
    return out


async def _list(engine: Engine, path: str | None) -> None:
    undoable, redoable = await engine.history(path)
    for entry in reversed(redoable):
        click.echo(f"redo  {_line(entry, engine)}")
    for entry in reversed(undoable):
        click.echo(f"undo  {_line(entry, engine)}")
    if not undoable and not redoable:
        click.echo("Nothing has been written here yet.")


def _line(entry: Entry, engine: Engine) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.time))
    return clean(f"{entry_words(entry, engine.jail.shown)} at {when}")
