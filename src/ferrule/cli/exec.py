"""`ferrule exec`: a message of calls, scheduled together."""

from typing import Any

import click
import msgspec

from ferrule.cli.codes import DONE
from ferrule.cli.loop import finish
from ferrule.cli.options import engine_options, exit_code, open_engine, show_report, typed_in
from ferrule.core.call import Call
from ferrule.core.errors import ToolFailure
from ferrule.core.events import Done, Event
from ferrule.core.reply import Reply


@click.command("exec")
@click.option("--timing", is_flag=True, help="Add the start and end of each call, in ms from the first start.")
@click.option("--plan", is_flag=True, help="Print the batches that could run side by side; run nothing.")
@engine_options()
def command(*, timing: bool, plan: bool, **session: Any) -> int:
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
    calls = read_calls(typed_in())
    if plan:
        try:
            batches = finish(_plan(calls, session))
        except ToolFailure as error:
            raise click.UsageError(error.message) from error
        for number, batch in enumerate(batches, 1):
            _print({"batch": number, "calls": [{"id": call.id, "name": call.name} for call in batch]})
        return DONE
    return exit_code(finish(_run(calls, session, timing=timing)))


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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
            read = msgspec.json.decode(line, type=Line)
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
