"""`ferrule call`: one call."""

import os
from typing import Any

import click
import msgspec

from ferrule.cli.candidates import tools
from ferrule.cli.loop import finish
from ferrule.cli.options import as_text, engine_options, exit_code, open_engine, show_report, typed_in
from ferrule.cli.show import plain
from ferrule.core.call import Call
from ferrule.core.reply import Reply
from ferrule.engine import Engine


@click.command("call")
@click.argument("name", shell_complete=tools)
@click.argument("arguments", metavar="[JSON]", default="{}")
@click.option("--json", "as_json", is_flag=True, help="Print the reply object instead of its text.")
@engine_options()
def command(name: str, arguments: str, *, as_json: bool, **session: Any) -> int:
    """Run the tool NAME with the arguments JSON (`-` reads them from standard input).

    Prints the reply's text; notes go to standard error. A tool that takes free text, such as apply_patch, takes it in
    the place of JSON. Each call is a session of its own: what has to be read before it is written needs `ferrule exec`.
    Exit codes: 0 done, 1 the tool failed, 2 wrong use, 3 refused.

    \b
    Examples:
      ferrule call Read '{"path": "README.md", "read_range": [1, 20]}'
      ferrule call edit_file '{"path": "a", "old_str": "1", "new_str": "2"}'
      echo '{"pattern": "def "}' | ferrule call Grep -
      ferrule call read_file '{"file_path": "a.py", "limit": 20}' --dialect codex
      ferrule call apply_patch - --model gpt-5.2 --yes < fix.patch
    """
    text = typed_in() if arguments == "-" else as_text(os.fsencode(arguments), "The JSON")
    reply = finish(_call(Call(name, text), session))
    if as_json:
        click.echo(msgspec.json.encode(reply.as_dict()))
    else:
        click.echo(plain(reply), err=reply.error is not None)
        for note in (*reply.notes, *_hints(name, reply)):
            click.echo(f"note: {note}", err=True)
    return exit_code([reply])


def _hints(name: str, reply: Reply) -> list[str]:
    """What helps at a command line, where each call is a session of its own."""
    code = reply.error.error_code if reply.error is not None else None
    if code == "not-read":
        return [f"Each `ferrule call` is a session of its own: give the read and {name} to one `ferrule exec`."]
    if code == "bad-arguments" and reply.text.startswith("The arguments are not valid JSON"):
        return [f'Write the arguments as JSON, for example: ferrule call {name} \'{{"path": "a.txt"}}\'']
    return []


async def _call(call: Call, session: dict[str, Any]) -> Reply:
    async with open_engine(**session, many=False, lazy=True, on_event=show_report) as engine:
        reply = (await engine.run([call]))[0]
        show_unused(engine, reply)
        if "background" in str(call.input):
            from ferrule.cli.leaving import left_running  # for calls that may leave something running

            how = "Each `ferrule call` is a session of its own; without the background it waits for the end."
            if told := left_running(engine, how):
                click.echo(f"warning: {told}", err=True)
        return reply


def show_unused(engine: Engine, reply: Reply) -> None:
    """A tool that nobody knows may be one that could not be used, as those of a project that is not trusted."""
    if reply.error is not None and reply.error.error_code == "unknown-tool":
        for warning in engine.warnings:
            click.echo(f"warning: {warning}", err=True)
