"""`ferrule demo --calls`: a recorded list of calls, played on a small project in a temporary folder."""

import os
import sys

import click
import msgspec

from ferrule.cli.show import Bar, columns, paint, paint_diff, plain, timeline
from ferrule.cli.step import diffs
from ferrule.core.call import Call
from ferrule.core.reply import Reply
from ferrule.engine import Engine
from ferrule.permissions.asker import Everybody
from ferrule.permissions.code import code_files
from ferrule.permissions.trust import Trust
from ferrule.settings import Settings
from ferrule.support.sandbox.choose import choose

_HERE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "demo")
_MOST_LINES = 14


class Step(msgspec.Struct, frozen=True):
    """A message of calls, command lines to decide on, or an undo or redo of a file."""

    say: str
    calls: tuple[Call, ...] = ()
    decide: tuple[str, ...] = ()
    """Command lines that are only decided on."""
    confined: bool = False
    """Is it left out where nothing confines commands?"""
    undo: str = ""
    redo: str = ""


async def play(project: str, state: str) -> bool:
    """Play the recording; true when its last command succeeded."""
    Trust(state, "code").grant(project, code_files(project))
    steps = _recording()
    replies: list[Reply] = []
    async with Engine(project, dialect="amp", ask=Everybody(), state=state, settings=Settings()) as engine:
        for number, step in enumerate(steps, 1):
            click.echo(paint("\n" + click.wrap_text(f"{number}. {step.say}", columns(), "", "   "), "bold"))
            if step.confined and choose() is None:
                click.echo("  Nothing confines commands on this machine, so this is left out. See ferrule doctor.")
            elif step.calls:
                replies = await engine.run(_here(call) for call in step.calls)
                for call, reply in zip(step.calls, replies, strict=True):
                    _show(call, reply, project)
                _draw(replies)
            elif step.decide:
                for line in step.decide:
                    await _decide(engine, line)
            else:
                done = await (engine.undo(step.undo) if step.undo else engine.redo(step.redo))
                _head("undo" if step.undo else "redo", step.undo or step.redo, ok=True)
                for text in diffs(done, engine):
                    click.echo(_indented(paint_diff(text)))
    passed = bool(replies) and _succeeded(replies[-1])
    click.echo(paint("\nThe project is mended." if passed else "\nThe project is still broken.", "bold"))
    return passed


async def _decide(engine: Engine, line: str) -> None:
    decision = await engine.decide(Call("Bash", {"cmd": line}))
    colour = {"allow": "green", "ask": "yellow", "deny": "red"}[decision.verdict]
    click.echo(f"  {paint(f'{decision.verdict:<5}', colour)} {line}")
    click.echo(_indented(paint(click.wrap_text(decision.why, columns() - 6, "", "  "), "dim")))


def _recording() -> list[Step]:
    with open(os.path.join(_HERE, "calls.json"), "rb") as file:
        return msgspec.json.decode(file.read(), type=list[Step])


def _here(call: Call) -> Call:
    """The recording says python3; this machine may call it otherwise."""
    if call.name != "Bash" or not isinstance(call.input, dict):
        return call
    return Call(call.name, {"cmd": call.input["cmd"].replace("python3", f"'{sys.executable}'")}, call.id)


def _show(call: Call, reply: Reply, project: str) -> None:
    _head(call.name, msgspec.json.encode(call.input).decode(), ok=_succeeded(reply))
    said = plain(reply).replace(f"{project}/", "").replace(project, ".").replace(f"'{sys.executable}'", "python3")
    lines = said.splitlines()
    more = len(lines) - _MOST_LINES
    # The end of a command says how it went; of everything else the beginning says what it is.
    kept = lines[-_MOST_LINES:] if call.name == "Bash" else lines[:_MOST_LINES]
    cut = [paint(f"… {more} more lines", "dim")] if more > 0 else []
    notes = [paint(click.wrap_text(f"note: {note}", columns() - 6, "", "  "), "dim") for note in reply.notes]
    click.echo(_indented("\n".join([*cut, *kept, *notes] if call.name == "Bash" else [*kept, *cut, *notes])))


def _succeeded(reply: Reply) -> bool:
    return reply.ok and (reply.name != "Bash" or "<exit_code>0</exit_code>" in reply.text)


def _head(name: str, about: str, *, ok: bool) -> None:
    mark = paint("✓", "green") if ok else paint("✗", "red")
    room = max(20, columns() - len(name) - 6)
    about = about if len(about) <= room else about[: room - 3] + "..."
    click.echo(f"  {mark} {paint(name, 'cyan')} {paint(about, 'dim')}")


def _draw(replies: list[Reply]) -> None:
    bars = [Bar(f"{at}. {reply.name}", reply.started, reply.ended) for at, reply in enumerate(replies, 1)]
    if len(bars) > 1:
        click.echo()
        for line in timeline(bars):
            click.echo(f"    {paint(line, 'blue')}")


def _indented(text: str) -> str:
    return "\n".join(f"      {line}" for line in text.rstrip("\n").split("\n"))
