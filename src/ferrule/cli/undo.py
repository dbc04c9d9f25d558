"""`ferrule undo`: take back the last write."""

from typing import Any

import click

from ferrule.cli.options import engine_options
from ferrule.cli.step import step


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
