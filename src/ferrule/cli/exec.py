"""`ferrule exec`: a message of calls, scheduled together."""

import asyncio
import sys
from typing import Any

import click
import msgspec

from ferrule.cli.options import exit_code, open_engine, parse_call, session_options
from ferrule.core.call import Call
from ferrule.core.events import Done, Event
from ferrule.core.reply import Reply


@click.command("exec", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--timing", is_flag=True, help="Add the start and end of each call, in ms from the first start.")
@click.option("--plan", is_flag=True, help="Print the batches that could run side by side; run nothing.")
@session_options
def command(*, timing: bool, plan: bool, **session: Any) -> int:
    """Run calls from standard input, one JSON object {"id", "name", "input"} a line, as one message.

    \b
    Replies are printed as JSON lines in the order of the calls, each as soon as it and those before it are there.
    Exit codes: as for `ferrule call`, the most serious of all replies.

    \b
    Example:
      printf '%s\\n' '{"id":"1","name":"Read","input":{"path":"a.py"}}' \\
                     '{"id":"2","name":"Grep","input":{"pattern":"x"}}' | ferrule exec --timing
    """
    lines = [line for line in sys.stdin.read().split("\n") if line.strip()]
    calls = [parse_call(line, f"line {number}") for number, line in enumerate(lines, 1)]
    calls = [Call(call.name, call.input, call.id or str(number)) for number, call in enumerate(calls, 1)]
    if plan:
        for number, batch in enumerate(asyncio.run(_plan(calls, session)), 1):
            _print({"batch": number, "calls": [{"id": call.id, "name": call.name} for call in batch]})
        return 0
    return exit_code(asyncio.run(_run(calls, session, timing=timing)))


async def _plan(calls: list[Call], session: dict[str, Any]) -> list[list[Call]]:
    async with open_engine(**session) as engine:
        return engine.plan(calls)


async def _run(calls: list[Call], session: dict[str, Any], *, timing: bool) -> list[Reply]:
    """Run them; print each reply once all before it are printed. With timing they are printed at the end."""
    ended: dict[str, Reply] = {}
    waiting = [call.id for call in calls]

    def heard(event: Event) -> None:
        if isinstance(event, Done) and not timing and len(set(waiting)) == len(waiting):
            ended[event.id] = event.reply
            while waiting and waiting[0] in ended:
                _print({"id": waiting[0], **ended[waiting.pop(0)].as_dict()})

    async with open_engine(**session, on_event=heard) as engine:
        replies = await engine.run(calls)
    zero = min((reply.started for reply in replies if reply.started), default=0.0)
    for reply in replies[len(calls) - len(waiting) :]:
        line = {"id": reply.id, **reply.as_dict()}
        if timing and reply.started:
            line["timing"] = {
                "start": round((reply.started - zero) * 1000, 3),
                "end": round((reply.ended - zero) * 1000, 3),
            }
        _print(line)
    return replies


def _print(value: dict[str, Any]) -> None:
    click.echo(msgspec.json.encode(value))
