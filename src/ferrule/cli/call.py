"""Implement `ferrule call`, which makes one call, and `ferrule exec`, which schedules several together."""

import os
from typing import Any

import click
import msgspec

from ferrule.cli.options import as_text, engine_options, exit_code, finish, open_engine, read_stdin, show_report, tools
from ferrule.cli.show import DONE, plain
from ferrule.core.call import Call, Done, Event, Reply
from ferrule.core.errors import ToolFailure
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
    text = read_stdin() if arguments == "-" else as_text(os.fsencode(arguments), "The JSON")
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
            from ferrule.cli.tasks import left_running  # for calls that may leave something running

            how = "Each `ferrule call` is a session of its own; without the background it waits for the end."
            if told := left_running(engine, how):
                click.echo(f"warning: {told}", err=True)
        return reply


def show_unused(engine: Engine, reply: Reply) -> None:
    """A tool that nobody knows may be one that could not be used, as those of a project that is not trusted."""
    if reply.error is not None and reply.error.error_code == "unknown-tool":
        for warning in engine.warnings:
            click.echo(f"warning: {warning}", err=True)


@click.command("exec")
@click.option("--timing", is_flag=True, help="Add the start and end of each call, in ms from the first start.")
@click.option("--plan", is_flag=True, help="Print the batches that could run side by side; run nothing.")
@engine_options()
def exec_command(*, timing: bool, plan: bool, **session: Any) -> int:
    """Run calls from standard input, one JSON object {"id", "name", "input"} a line, as one message.

    Replies are printed as JSON lines in the order of the calls, each as soon as it can be.
    Exit codes: as for `ferrule call`, the most serious of all replies.

    \b
    Example:
      printf '%s\\n' '{"id":"1","name":"Read","input":{"path":"a.py"}}' \\
                     '{"id":"2","name":"Grep","input":{"pattern":"x"}}' \\
        | ferrule exec --timing
      ferrule exec --model claude-opus-4-5 --yes < read-then-edit.jsonl
    """
    calls = read_calls(read_stdin())
    if plan:
        try:
            batches = finish(_plan(calls, session))
        except ToolFailure as error:
            raise click.UsageError(error.message) from error
        for number, batch in enumerate(batches, 1):
            _print({"batch": number, "calls": [{"id": call.id, "name": call.name} for call in batch]})
        return DONE
    return exit_code(finish(_run(calls, session, timing=timing)))


class CallLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call as it stands on a line."""

    name: str
    input: dict[str, Any] | str = {}
    id: str | int | None = None


def read_calls(text: str) -> list[Call]:
    """The calls of all lines. Nothing runs when a line is wrong; every wrong line is named."""
    calls: list[Call] = []
    wrong: list[str] = []
    taken: set[str] = set()
    for number, line in enumerate((line for line in text.split("\n") if line.strip()), 1):
        try:
            read = msgspec.json.decode(line, type=CallLine)
        except msgspec.ValidationError as error:
            wrong.append(f"line {number}: {_words(str(error))}")
        except (msgspec.DecodeError, RecursionError) as error:
            wrong.append(f"line {number}: not JSON: {error}.")
        else:
            call_id = str(number if read.id in (None, "") else read.id)
            if call_id in taken:
                wrong.append(f"line {number}: the id {call_id!r} is taken already.")
            taken.add(call_id)
            calls.append(Call(read.name, read.input, call_id))
    if wrong:
        raise click.UsageError("\n".join(wrong))
    return calls


def _words(message: str) -> str:
    """What the decoder says, in plain words."""
    what, _, where = message.partition(" - at ")
    place = where.strip("`").removeprefix("$.") or "the line"
    words = what.replace("`", "").replace("object missing required field", "it lacks").lower()
    words = words.replace("object contains unknown field", "a call has id, name and input, and no")
    return f"{place}: {words}." if where else f"{words}."


async def _plan(calls: list[Call], session: dict[str, Any]) -> list[list[Call]]:
    async with open_engine(**session, lazy=True) as engine:
        await engine.sources.ensure([call.name for call in calls])
        return engine.plan(calls)


async def _run(calls: list[Call], session: dict[str, Any], *, timing: bool) -> list[Reply]:
    """Run them; print each reply once all before it are printed. With timing they are printed at the end."""
    ended: dict[str, Reply] = {}
    waiting = [call.id for call in calls]

    def heard(event: Event) -> None:
        show_report(event)
        if isinstance(event, Done) and not timing:
            ended[event.id] = event.reply
            while waiting and waiting[0] in ended:
                _print({"id": waiting[0], **ended[waiting[0]].as_dict()})
                waiting.pop(0)

    async with open_engine(**session, on_event=heard, lazy=True) as engine:
        replies = await engine.run(calls)
    zero = min((reply.started for reply in replies if reply.started), default=0.0)
    for reply in replies[len(calls) - len(waiting) :]:
        line = {"id": reply.id, **reply.as_dict()}
        if timing:
            at = (reply.started, reply.ended) if reply.started else (0.0, 0.0)
            line["timing"] = {"start": _ms(at[0], zero), "end": _ms(at[1], zero)}
        _print(line)
    return replies


def _ms(at: float, zero: float) -> float | None:
    """Milliseconds from the first start; None for a call that never started."""
    return round((at - zero) * 1000, 3) if at and zero else None


def _print(value: dict[str, Any]) -> None:
    click.echo(msgspec.json.encode(value))
