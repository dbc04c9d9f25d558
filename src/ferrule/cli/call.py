"""`ferrule call`: one call."""

import asyncio
import sys
from typing import Any

import click
import msgspec

from ferrule.cli.options import exit_code, open_engine, session_options
from ferrule.cli.show import plain
from ferrule.core.call import Call
from ferrule.core.reply import Reply


@click.command("call", context_settings={"help_option_names": ["-h", "--help"]})
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
    text = sys.stdin.read() if arguments == "-" else arguments
    try:
        values = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise click.UsageError(f"The arguments are not JSON: {error}.") from error
    if not isinstance(values, dict):
        raise click.UsageError('The arguments must be a JSON object, for example {"path": "README.md"}.')
    reply = asyncio.run(_call(Call(name, values), session))
    if as_json:
        click.echo(msgspec.json.encode(reply.as_dict()))
    else:
        click.echo(plain(reply), err=reply.error is not None)
        for note in reply.notes:
            click.echo(f"note: {note}", err=True)
    return exit_code([reply])


async def _call(call: Call, session: dict[str, Any]) -> Reply:
    async with open_engine(**session) as engine:
        return (await engine.run([call]))[0]
