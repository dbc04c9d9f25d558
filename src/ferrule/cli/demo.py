"""`ferrule demo`: a recorded list of calls, played on a small project in a temporary folder."""

import asyncio
import os
import shutil
import sys
import tempfile
from typing import Any

import click
import msgspec

from ferrule.cli.show import Bar, paint, paint_diff, plain, timeline
from ferrule.cli.step import diffs
from ferrule.core.call import Call
from ferrule.core.reply import Reply
from ferrule.engine import Engine
from ferrule.permissions.asker import Everybody
from ferrule.settings import Settings

_HERE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "demo")
_MOST_LINES = 14


class Step(msgspec.Struct, frozen=True):
    """A message of calls, or an undo or redo of a file."""

    say: str
    calls: tuple[Call, ...] = ()
    undo: str = ""
    redo: str = ""


@click.command("demo", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--keep", is_flag=True, help="Keep the temporary folder and say where it is.")
def command(*, keep: bool) -> int:
    """Copy a small project with a failing test into a temporary folder, and play calls on it until it passes.

    \b
    Needs no key and no network.
    """
    folder = os.path.realpath(tempfile.mkdtemp(prefix="ferrule-demo-"))
    try:
        passed = asyncio.run(play(os.path.join(folder, "shop"), os.path.join(folder, "state")))
    finally:
        if keep:
            click.echo(f"Kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return 0 if passed else 1


async def play(project: str, state: str) -> bool:
    """Play the recording; true when its last command succeeded."""
    shutil.copytree(os.path.join(_HERE, "project"), project, ignore=shutil.ignore_patterns("__pycache__"))
    steps = _recording()
    replies: list[Reply] = []
    async with Engine(project, dialect="amp", ask=Everybody(), state=state, settings=Settings()) as engine:
        for number, step in enumerate(steps, 1):
            click.echo(paint(f"\n{number}. {step.say}", "bold"))
            if step.calls:
                replies = await engine.run(_here(call) for call in step.calls)
                for call, reply in zip(step.calls, replies, strict=True):
                    _show(call, reply, project)
                _draw(replies)
            else:
                done = await (engine.undo(step.undo) if step.undo else engine.redo(step.redo))
                for text in diffs(done, engine):
                    click.echo(_indented(paint_diff(text)))
    return bool(replies) and "<exit_code>0</exit_code>" in replies[-1].text


def _recording() -> list[Step]:
    with open(os.path.join(_HERE, "calls.json"), "rb") as file:
        return msgspec.json.decode(file.read(), type=list[Step])


def _here(call: Call) -> Call:
    """The recording says python3; this machine may call it otherwise."""
    if call.name != "Bash" or not isinstance(call.input, dict):
        return call
    return Call(call.name, {"cmd": call.input["cmd"].replace("python3", f"'{sys.executable}'")}, call.id)


def _show(call: Call, reply: Reply, project: str) -> None:
    mark = paint("✓", "green") if reply.ok else paint("✗", "red")
    click.echo(f"  {mark} {paint(call.name, 'cyan')} {_brief(call.input)}")
    lines = plain(reply).replace(f"{project}/", "").replace(project, ".").splitlines()
    click.echo(_indented("\n".join(lines[:_MOST_LINES])))
    if len(lines) > _MOST_LINES:
        click.echo(_indented(paint(f"… {len(lines) - _MOST_LINES} more lines", "dim")))


def _brief(values: Any) -> str:
    text = msgspec.json.encode(values).decode()
    return paint(text if len(text) <= 90 else text[:87] + "...", "dim")


def _draw(replies: list[Reply]) -> None:
    bars = [Bar(f"{at}. {reply.name}", reply.started, reply.ended) for at, reply in enumerate(replies, 1)]
    if len(bars) > 1:
        click.echo()
        for line in timeline(bars):
            click.echo(f"    {paint(line, 'blue')}")


def _indented(text: str) -> str:
    return "\n".join(f"      {line}" for line in text.rstrip("\n").split("\n"))
