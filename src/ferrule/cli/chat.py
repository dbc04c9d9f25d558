"""`ferrule chat`: a conversation with an agent at the terminal."""

import contextlib
import importlib.util
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from ferrule.cli.codes import USAGE
from ferrule.cli.loop import finish
from ferrule.cli.options import session_options

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ferrule.agent.events import AgentEvent
    from ferrule.agent.session import Session
    from ferrule.cli.talk.commands import Again
    from ferrule.cli.talk.front import Front
    from ferrule.permissions.asker import Asker

_MISSING = "ferrule: the terminal needs two more packages: pip install 'ferrule[tui]'"


@click.command("chat")
@click.option("--resume", metavar="ID", help="Go on with an earlier conversation; `ferrule threads` lists them.")
@click.option("--continue", "last", is_flag=True, help="Go on with the last conversation of this folder.")
@click.option("--record", metavar="FILE", default="", help="Record what the model says, to be played again.")
@click.option("--replay", metavar="FILE", help="Play a recorded conversation; the same as --model scripted:FILE.")
@session_options
def command(*, resume: str | None, last: bool, record: str, replay: str | None, **session: Any) -> int:
    """Talk to an agent at the terminal.

    \b
    Examples:
      ferrule
      ferrule chat --model anthropic:claude-opus-5-5
      ferrule chat --continue
      ferrule chat --permission-mode plan
    """
    if not (_is_terminal(sys.stdin) and _is_terminal(sys.stdout)):
        raise click.UsageError('ferrule chat is for a terminal. For scripts and pipes use `ferrule run "TASK"`.')
    if any(importlib.util.find_spec(name) is None for name in ("prompt_toolkit", "rich")):
        click.echo(_MISSING, err=True)
        return USAGE
    if resume and last:
        raise click.UsageError("Give --resume or --continue, not both.")
    if replay is not None:
        if session["model"] is not None:
            raise click.UsageError("Give --replay or --model, not both.")
        session["model"] = f"scripted:{replay}"
    from ferrule.models.model import ModelError  # for who talks

    try:
        return finish(_talk(session, "last" if last else resume or "", record))
    except ModelError as error:
        click.echo(f"ferrule: {error}", err=True)
        if error.kind == "none":
            click.echo("To see Ferrule work without any model: ferrule demo", err=True)
        return USAGE


def _is_terminal(stream: Any) -> bool:
    return stream is not None and stream.isatty()


async def _talk(wishes: dict[str, Any], resume: str, record: str) -> int:
    from ferrule.cli.talk.chatting import Chat
    from ferrule.cli.talk.commands import Again

    front = _front()
    opened = _Opened(wishes, record)
    chat = Chat(front, opened, first=Again(resume, wishes["dialect"], wishes["permission_mode"], wishes["model"]))
    # Nobody gave any option where `ferrule` alone was typed.
    opened.ask = _asker(wishes.get("answer"), front, chat)
    _complete(front, chat)
    return await front.during(chat.talk)


class _Opened:
    """Opens one session after the other, each as the options say but for what has changed."""

    ask: "Asker"

    def __init__(self, wishes: dict[str, Any], record: str) -> None:
        self._wishes = wishes
        self._record = record
        self._count = 0

    @contextlib.asynccontextmanager
    async def __call__(self, wanted: "Again", tell: "Callable[[AgentEvent], None]") -> "AsyncIterator[Session]":
        from ferrule.agent.session import Session

        self._count += 1
        # A recording is never written over: what follows another start is another one.
        record = f"{self._record}.{self._count}" if self._record and self._count > 1 else self._record
        session = Session(
            self._wishes["workspace"],
            model=wanted.model,
            dialect=wanted.dialect,
            ask=self.ask,
            resume=wanted.resume or "",
            record=record,
            permission_mode=wanted.permission_mode,
            add_dirs=self._wishes["add_dirs"],
            mcp_config=self._wishes["mcp_config"],
            network=self._wishes["network"],
            allow_hosts=self._wishes["allow_hosts"],
            watched=True,
            on_event=tell,
        )
        async with session:
            yield session


def _front() -> "Front":
    """The screen or, on a terminal that can do little, lines."""
    from ferrule.cli.talk.history import Typed
    from ferrule.settings import state_folder

    if os.environ.get("TERM", "dumb") in {"dumb", "unknown", ""} and os.name == "posix":
        from ferrule.cli.talk.plain import Plain

        return Plain()
    from ferrule.cli.talk.keyboard import Keyboard

    return Keyboard(history=Typed(state_folder()), colour="NO_COLOR" not in os.environ)


def _asker(answer: str | None, front: "Front", chat: Any) -> "Asker":
    from ferrule.cli.talk.asking import InPerson
    from ferrule.permissions.asker import YES, Answer, Nobody, Question

    if answer == "deny":
        return Nobody()
    person = InPerson(front, markdown=chat.markdown)
    person.on_shown = chat.lines.seen
    person.on_printed = lambda: chat.lines.printed("question")
    if answer != "yes":
        return person

    class Willing:
        """Every call is allowed beforehand; what widens the session is still asked about."""

        is_person = True
        """To all but calls."""

        async def ask(self, question: Question) -> Answer:
            return YES if question.kind == "call" else await person.ask(question)

    return Willing()


def _complete(front: "Front", chat: Any) -> None:
    """Completion, where there is a screen for it."""
    from ferrule.cli.talk.keyboard import Keyboard

    if not isinstance(front, Keyboard):
        return
    from ferrule.cli.talk.commands import commands
    from ferrule.cli.talk.completing import Words
    from ferrule.cli.talk.steering import MODES, files, model_names
    from ferrule.dialects.dialect import FAMILIES

    values = {"dialect": lambda: list(FAMILIES), "permissions": lambda: list(MODES), "model": model_names}
    front.input.completer = Words(
        lambda: [*((name, one.about) for name, one in commands().items()), *chat.skills()],
        lambda name: values.get(name, list)(),
        lambda: files(chat.session.engine.jail.folder),
    )
