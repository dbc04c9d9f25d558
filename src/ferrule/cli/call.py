"""`ferrule call`: one call."""

import os
from typing import Any

import click
import msgspec

from ferrule.cli.loop import finish
from ferrule.cli.options import as_text, exit_code, open_engine, session_options, typed_in
from ferrule.cli.show import plain
from ferrule.core.call import Call
from ferrule.core.reply import Reply


@click.command("call")
@click.argument("name")
@click.argument("arguments", metavar="JSON", default="{}")
@click.option("--json", "as_json", is_flag=True, help="Print the reply object instead of its text.")
@session_options
def command(name: str, arguments: str, *, as_json: bool, **session: Any) -> int:
    """Run the tool NAME with the arguments JSON (`-` reads them from standard input).

    \b
    Prints the reply's text; notes go to standard error.
    Exit codes: 0 done, 1 the tool failed, 2 wrong use, 3 refused.

    \b
    Examples:
      ferrule call Read '{"path": "README.md", "read_range": [1, 20]}'
      ferrule call edit_file '{"path": "a.py", "old_str": "1", "new_str": "2"}' --yes
      echo '{"pattern": "def "}' | ferrule call Grep -
    """
    text = typed_in() if arguments == "-" else as_text(os.fsencode(arguments), "The JSON")
    reply = finish(_call(Call(name, text), session))
    if as_json:
        click.echo(msgspec.json.encode(reply.as_dict()))
    else:
        click.echo(plain(reply), err=reply.error is not None)
        for note in reply.notes:
            click.echo(f"note: {note}", err=True)
    return exit_code([reply])


async def _call(call: Call, session: dict[str, Any]) -> Reply:
    async with open_engine(**session, many=False) as engine:
        return (await engine.run([call]))[0]
