"""`ferrule output`: a full output that was kept."""

import sys
import time
from typing import Any

import click

from ferrule.cli.codes import DONE, FAILED
from ferrule.cli.loop import finish
from ferrule.cli.options import engine_options, open_engine
from ferrule.core.errors import ToolFailure
from ferrule.output.clean import clean


@click.command("output")
@click.argument("output_id", metavar="[ID]", required=False)
@engine_options("workspace")
def command(output_id: str | None, **session: Any) -> int:
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
