"""`ferrule redo`: write again what was undone."""

from typing import Any

import click

from ferrule.cli.options import engine_options
from ferrule.cli.step import step


@click.command("redo")
@click.argument("path", type=click.Path(), required=False)
@engine_options("workspace", "add_dirs")
def command(path: str | None, **session: Any) -> int:
    """Write again what was last undone, of PATH or of the workspace.

    \b
    Example:
      ferrule redo src/a.py
    """
    return step("redo", path, session, listing=False)
