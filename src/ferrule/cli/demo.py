"""Implement `ferrule demo`: play a recorded conversation on a small project in a temporary folder.

The conversation goes through the real loop. `ferrule demo --calls` plays a recorded list of calls instead.
"""

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable

import click
import msgspec

from ferrule.agent import AgentEvent, Called, Spoke, TurnEnded
from ferrule.agent.session import Session
from ferrule.cli.options import finish
from ferrule.cli.render import TranscriptPrinter
from ferrule.cli.show import DONE, FAILED, Bar, columns, paint, paint_diff, plain, timeline
from ferrule.cli.undo import diffs
from ferrule.core.call import Call, Done, Reply
from ferrule.engine import Engine
from ferrule.files.diff import diff
from ferrule.models.cues import read
from ferrule.models.recorder import load
from ferrule.permissions import Everybody
from ferrule.permissions.trust import Trust, code_files
from ferrule.sandbox import choose
from ferrule.settings import Settings

_HERE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "demo")


@click.command("demo")
@click.option("--calls", is_flag=True, help="A tour of the engine instead: calls without a model.")
@click.option("--keep", is_flag=True, help="Keep the folder, with the project as it was, to try more in it.")
def command(*, calls: bool, keep: bool) -> int:
    """Have a recorded model mend a small project: it finds a bug with a subagent, fixes it and runs the tests.

    Everything but the model's words is real: the loop, the calls, the permissions, the sandbox, the store.
    Needs no key and no network.

    \b
    Examples:
      ferrule demo
      ferrule demo --keep
      ferrule demo --calls
    """
    folder = os.path.realpath(tempfile.mkdtemp(prefix="ferrule-demo-"))
    project, state = os.path.join(folder, "shop"), os.path.join(folder, "state")
    _copy(project)
    try:
        passed = finish(play_tour(project, state) if calls else play(project, state))
    finally:
        if keep:
            _keep(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return DONE if passed else FAILED


def _copy(project: str) -> None:
    shutil.copytree(os.path.join(_HERE, "project"), project, ignore=shutil.ignore_patterns("__pycache__"))


def _keep(folder: str) -> None:
    """Leave all that is needed to try it by hand: the project before it was mended, and the recording."""
    before = os.path.join(folder, "before")
    _copy(before)
    shutil.copyfile(os.path.join(_HERE, "conversation.jsonl"), os.path.join(folder, "conversation.jsonl"))
    click.echo(f"Kept: {folder}")
    click.echo("The project as it was is in `before`. To play the conversation at the terminal:")
    click.echo(f"  cd {shlex.quote(before)} && ferrule chat --replay ../conversation.jsonl")


async def play(project: str, state: str) -> bool:
    """Play the conversation; true when the model was done and the tests passed."""
    path = os.path.join(_HERE, "conversation.jsonl")
    model, task = load(path), read(path).prompts[0]
    model.name, model.workspace, model.pace = "scripted:demo", project, float(sys.stdout.isatty())
    shown = TranscriptPrinter(is_live=True, shows_work=True, err=sys.stdout)
    seen = _DemoListener(project, shown.put)
    click.echo(paint(click.wrap_text(f"> {task}", columns(), "", "  ") + "\n", "bold"))
    settings = Settings()
    session = Session(
        project,
        model=model,
        dialect="claude",
        ask=Everybody(),
        state=state,
        settings=settings,
        lazy=True,
        on_event=seen.put,
    )
    async with session:
        ended = await session.agent.run(task)
        for text in await _changes(session):
            click.echo("\n" + paint_diff(text).rstrip("\n"))
    passed = ended.reason == "end" and seen.passed
    click.echo(paint("\nThe project is mended." if passed else "\nThe project is still broken.", "bold"))
    if passed and sys.stdout.isatty():
        click.echo(
            "With a model of your own: `ferrule models` lists what there is, `ferrule chat --model NAME` begins."
        )
    return passed


async def _changes(session: Session) -> list[str]:
    """What the conversation has changed, as diffs."""
    done, _ = await session.engine.history()
    folder = session.engine.jail.folder
    names = dict.fromkeys(os.path.relpath(change.path, folder) for entry in done for change in entry.files)
    return [diff(name, _text(os.path.join(_HERE, "project"), name), _text(folder, name)) for name in names]


def _text(folder: str, name: str) -> str:
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read()


class _DemoListener:
    """Passes events on, and remembers how the last command ended."""

    def __init__(self, project: str, put: Callable[[AgentEvent], None]) -> None:
        self._put = put
        self._project = project
        self._wrapping = WordWrapper(columns()) if sys.stdout.isatty() else None
        self.passed = False

    def put(self, event: AgentEvent) -> None:
        if isinstance(event, Called) and isinstance(event.call, Done) and event.call.name == "Bash":
            self.passed = _is_success(event.call.reply)
        if self._wrapping is None or not isinstance(event, Spoke | TurnEnded):
            self._put(event)
            return
        words = self._wrapping.more(event.text) if isinstance(event, Spoke) else self._wrapping.rest()
        if words:
            self._put(Spoke(thread=event.thread, text=words))
        if isinstance(event, TurnEnded):
            self._put(event)


class WordWrapper:
    """Breaks lines between words, as they come; a terminal breaks them anywhere."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._column = 0
        self._gap = self._word = ""

    def more(self, text: str) -> str:
        """What of it can be shown: its last word may go on."""
        out = ""
        for character in text:
            if not character.isspace():
                self._word += character
                continue
            out += self._break_line()
            if character == "\n":
                out, self._column, self._gap = f"{out}\n", 0, ""
            else:
                self._gap += character
        return out

    def rest(self) -> str:
        """The last word; a new text begins a line."""
        out, self._column, self._gap = self._break_line(), 0, ""
        return out

    def _break_line(self) -> str:
        gap, word, self._gap, self._word = self._gap, self._word, "", ""
        if not word:
            self._gap = gap
            return ""
        if self._column and self._column + len(gap) + len(word) > self._columns:
            self._column = len(word)
            return f"\n{word}"
        self._column += len(gap) + len(word)
        return gap + word


def _is_success(reply: Reply) -> bool:
    return reply.ok and "OK" in reply.text


_MOST_LINES = 14


class TourStep(msgspec.Struct, frozen=True):
    """A message of calls, command lines to decide on, or an undo or redo of a file."""

    say: str
    calls: tuple[Call, ...] = ()
    decide: tuple[str, ...] = ()
    """Command lines that are only decided on."""
    confined: bool = False
    """Is it left out where nothing confines commands?"""
    undo: str = ""
    redo: str = ""


async def play_tour(project: str, state: str) -> bool:
    """Play the recording; true when its last command succeeded."""
    Trust(state, "code").grant(project, code_files(project))
    steps = _load_recording()
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
                    click.echo(_indent(paint_diff(text)))
    passed = bool(replies) and _tour_succeeded(replies[-1])
    click.echo(paint("\nThe project is mended." if passed else "\nThe project is still broken.", "bold"))
    return passed


async def _decide(engine: Engine, line: str) -> None:
    decision = await engine.decide(Call("Bash", {"cmd": line}))
    colour = {"allow": "green", "ask": "yellow", "deny": "red"}[decision.verdict]
    click.echo(f"  {paint(f'{decision.verdict:<5}', colour)} {line}")
    click.echo(_indent(paint(click.wrap_text(decision.why, columns() - 6, "", "  "), "dim")))


def _load_recording() -> list[TourStep]:
    with open(os.path.join(_HERE, "calls.json"), "rb") as file:
        return msgspec.json.decode(file.read(), type=list[TourStep])


def _here(call: Call) -> Call:
    """The recording says python3; this machine may call it otherwise."""
    if call.name != "Bash" or not isinstance(call.input, dict):
        return call
    return Call(call.name, {"cmd": call.input["cmd"].replace("python3", f"'{sys.executable}'")}, call.id)


def _show(call: Call, reply: Reply, project: str) -> None:
    _head(call.name, msgspec.json.encode(call.input).decode(), ok=_tour_succeeded(reply))
    said = plain(reply).replace(f"{project}/", "").replace(project, ".").replace(f"'{sys.executable}'", "python3")
    lines = said.splitlines()
    more = len(lines) - _MOST_LINES
    # The end of a command says how it went; of everything else the beginning says what it is.
    kept = lines[-_MOST_LINES:] if call.name == "Bash" else lines[:_MOST_LINES]
    cut = [paint(f"… {more} more lines", "dim")] if more > 0 else []
    notes = [paint(click.wrap_text(f"note: {note}", columns() - 6, "", "  "), "dim") for note in reply.notes]
    click.echo(_indent("\n".join([*cut, *kept, *notes] if call.name == "Bash" else [*kept, *cut, *notes])))


def _tour_succeeded(reply: Reply) -> bool:
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


def _indent(text: str) -> str:
    return "\n".join(f"      {line}" for line in text.rstrip("\n").split("\n"))
