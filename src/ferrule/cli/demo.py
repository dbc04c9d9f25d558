"""`ferrule demo`: a recorded conversation, played through the real loop on a small project in a temporary folder."""

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable

import click

from ferrule.agent.events import AgentEvent, Called, Spoke, TurnEnded
from ferrule.agent.session import Session
from ferrule.cli.codes import DONE, FAILED
from ferrule.cli.loop import finish
from ferrule.cli.show import columns, paint, paint_diff
from ferrule.cli.told import Told
from ferrule.core.events import Done
from ferrule.core.reply import Reply
from ferrule.models.recorded import read
from ferrule.models.scripted import load
from ferrule.permissions.asker import Everybody
from ferrule.settings import Settings
from ferrule.support.diff import diff

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
        if calls:
            from ferrule.cli.tour import play as tour  # for whoever wants to see the engine alone

            passed = finish(tour(project, state))
        else:
            passed = finish(play(project, state))
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
    shown = Told(is_live=True, shows_work=True, err=sys.stdout)
    seen = _Seen(project, shown.put)
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


class _Seen:
    """Passes events on, and remembers how the last command ended."""

    def __init__(self, project: str, put: Callable[[AgentEvent], None]) -> None:
        self._put = put
        self._project = project
        self._wrapping = Wrapping(columns()) if sys.stdout.isatty() else None
        self.passed = False

    def put(self, event: AgentEvent) -> None:
        if isinstance(event, Called) and isinstance(event.call, Done) and event.call.name == "Bash":
            self.passed = _succeeded(event.call.reply)
        if self._wrapping is None or not isinstance(event, Spoke | TurnEnded):
            self._put(event)
            return
        words = self._wrapping.more(event.text) if isinstance(event, Spoke) else self._wrapping.rest()
        if words:
            self._put(Spoke(thread=event.thread, text=words))
        if isinstance(event, TurnEnded):
            self._put(event)


class Wrapping:
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
            out += self._broken()
            if character == "\n":
                out, self._column, self._gap = f"{out}\n", 0, ""
            else:
                self._gap += character
        return out

    def rest(self) -> str:
        """The last word; a new text begins a line."""
        out, self._column, self._gap = self._broken(), 0, ""
        return out

    def _broken(self) -> str:
        gap, word, self._gap, self._word = self._gap, self._word, "", ""
        if not word:
            self._gap = gap
            return ""
        if self._column and self._column + len(gap) + len(word) > self._columns:
            self._column = len(word)
            return f"\n{word}"
        self._column += len(gap) + len(word)
        return gap + word


def _succeeded(reply: Reply) -> bool:
    return reply.ok and "OK" in reply.text
