"""Implement `ferrule undo`, `ferrule redo` and `ferrule output`.

Undo and redo take one step through the history of writes, and show it as a diff. `ferrule output` prints a full
output that was kept.
"""

import sys
import time
from typing import Any

import click

from ferrule.checkpoints.undo import Undone, entry_words
from ferrule.cli.options import engine_options, finish, open_engine
from ferrule.cli.show import DONE, FAILED, paint_diff
from ferrule.core.errors import ToolFailure
from ferrule.engine import Engine
from ferrule.files.diff import diff
from ferrule.files.journal import JournalEntry
from ferrule.files.text import is_binary
from ferrule.output import clean


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
            out.append(f"Binary file {engine.jail.display_path(path)} differs.\n")
        elif before != after:
            texts = [None if raw is None else raw.decode(errors="replace") for raw in (before, after)]
            out.append(diff(engine.jail.display_path(path), texts[0], texts[1]))
    return out


async def _list(engine: Engine, path: str | None) -> None:
    undoable, redoable = await engine.history(path)
    for entry in reversed(redoable):
        click.echo(f"redo  {_line(entry, engine)}")
    for entry in reversed(undoable):
        click.echo(f"undo  {_line(entry, engine)}")
    if not undoable and not redoable:
        click.echo("Nothing has been written here yet.")


def _line(entry: JournalEntry, engine: Engine) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.time))
    return clean(f"{entry_words(entry, engine.jail.display_path)} at {when}")


@click.command("undo")
@click.argument("path", type=click.Path(), required=False)
@click.option("--list", "listing", is_flag=True, help="List what can be undone and redone; change nothing.")
@engine_options("workspace", "add_dirs")
def command(path: str | None, *, listing: bool, **session: Any) -> int:
    """Take back the last write of PATH, or the last write in the workspace, whoever asked for it.

    A file that was changed since by something else is left alone. What was undone comes back with `ferrule redo`.

    \b
    Examples:
      ferrule undo --list
      ferrule undo src/a.py
    """
    return step("undo", path, session, listing=listing)


@click.command("redo")
@click.argument("path", type=click.Path(), required=False)
@engine_options("workspace", "add_dirs")
def redo_command(path: str | None, **session: Any) -> int:
    """Write again what was last undone, of PATH or of the workspace.

    \b
    Example:
      ferrule redo src/a.py
    """
    return step("redo", path, session, listing=False)


@click.command("output")
@click.argument("output_id", metavar="[ID]", required=False)
@engine_options("workspace")
def output_command(output_id: str | None, **session: Any) -> int:
    """Print the full output kept as ID; without an ID, list what is kept.

    \b
    Replies that were cut name the id of the whole.

    \b
    Example:
      ferrule output k3v9q2m7xd | less
    """
    try:
        finish(_print(output_id, session))
    except ToolFailure as error:
        click.echo(f"ferrule: {error.message}", err=True)
        return FAILED
    return DONE


async def _print(output_id: str | None, session: dict[str, Any]) -> None:
    async with open_engine(**session, lazy=True) as engine:
        if output_id is None:
            kept = await engine.store.entries(50)
            for entry in kept:
                when = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.created))
                click.echo(f"{entry.id}  {when}  {entry.size_bytes:>12,} bytes  {entry.tool}")
            if not kept:
                click.echo("No outputs are kept.")
            return
        stored = await engine.output(output_id)
        offset: int | None = 0
        while offset is not None:
            page = stored.read(offset, 1 << 20)
            sys.stdout.write(clean(page.text) if sys.stdout.isatty() else page.text)
            offset = page.next_offset
        sys.stdout.flush()
