"""`ferrule chat`: a conversation with an agent at the terminal."""

import contextlib
import importlib.util
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from ferrule.cli.codes import USAGE
from ferrule.cli.options import NO_ID, Prompted, finish, limit_options, session_options, take_limits, thread_ids
from ferrule.cli.session_flags import FITTING, FLAGS, Fitting, SessionFlags, add_fitting_options, session_flags
from ferrule.permissions.ask import YES, Answer, Nobody, Question
from ferrule.settings.schema import load_settings, state_folder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ferrule.agent.events import AgentEvent
    from ferrule.agent.session import Session
    from ferrule.cli.talk.commands import SessionRestart
    from ferrule.cli.talk.screen import TalkFrontend
    from ferrule.permissions.ask import Asker


_MISSING = "ferrule: the terminal needs two more packages: pip install 'ferrule[tui]'"


@click.command("chat", cls=Prompted)
@click.argument("prompt", required=False)
@click.option(
    "-r",
    "--resume",
    metavar="[ID]",
    is_flag=False,
    flag_value=NO_ID,
    shell_complete=thread_ids,
    help="Go on with an earlier conversation; without ID it is chosen from a list.",
)
@click.option("-c", "--continue", "last", is_flag=True, help="Go on with the last conversation of this folder.")
@click.option(
    "--record", type=click.Path(), metavar="FILE", default="", help="Record what the model says, to be played again."
)
@click.option(
    "--replay",
    type=click.Path(),
    metavar="FILE",
    help="Play a recorded conversation; the same as --model scripted:FILE.",
)
@limit_options
@add_fitting_options
@session_flags
@session_options
def command(
    prompt: str | None, *, resume: str | None, last: bool, record: str, replay: str | None, **session: Any
) -> int:
    """Talk to an agent at the terminal. PROMPT is the first thing that is said.

    \b
    Examples:
      ferrule
      ferrule chat --model anthropic:claude-opus-5-5
      ferrule "why does test_cart fail?"
      ferrule --continue
      ferrule chat --resume
      ferrule chat --permission-mode plan --max-cost 2
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
        first = "/resume" if resume == NO_ID else prompt
        resumed = "" if resume == NO_ID else resume or ""
        return finish(_talk(session, "last" if last else resumed, record, first))
    except ModelError as error:
        click.echo(f"ferrule: {error}", err=True)
        return USAGE


def _is_terminal(stream: Any) -> bool:
    return stream is not None and stream.isatty()


async def _talk(wishes: dict[str, Any], resume: str, record: str, first: str | None) -> int:
    from ferrule.cli.talk.chat import Chat
    from ferrule.cli.talk.commands import SessionRestart

    front = _front()
    opened = _SessionOpener(wishes, record)
    opened.front = front if wishes.get("answer") != "deny" else None
    model = wishes["model"] or opened.remembered
    chat = Chat(front, opened, first=SessionRestart(resume, wishes["dialect"], wishes["permission_mode"], model))
    # Nobody gave any option where `ferrule` alone was typed.
    opened.ask = _asker(wishes.get("answer"), front, chat)
    _complete(front, chat)
    if first and first.strip():
        chat.submit_line(first)
    chat.answer = wishes.get("answer") or ""
    code = await front.run_chat(chat.talk)
    if farewell := chat.farewell.lines(front.width):
        front.print_lines((), *farewell)
    return code


class _SessionOpener:
    """Opens one session after the other, each as the options say but for what has changed."""

    ask: "Asker"
    front: "TalkFrontend | None" = None
    """Where the user is asked whether the project is trusted, if they are."""

    def __init__(self, wishes: dict[str, Any], record: str) -> None:
        self._wishes = dict(wishes)
        self._record = record
        self._count = 0
        self._limits = take_limits(self._wishes)
        self.remembered = ""
        """The model that was chosen in the chat before, if this one is given none."""
        self._flags = SessionFlags({name: self._wishes.pop(name) for name in FLAGS})
        said = {name: self._wishes.pop(name) for name in FITTING}
        # Without any of them, an open session is let alone: the first paint waits for it.
        self._fitting = Fitting(**said) if any(value not in ((), "", None) for value in said.values()) else None
        if not self._wishes["model"] and not self._flags.model:
            from ferrule.models.catalog import last_model

            self.remembered = last_model(load_settings().models) or ""

    @contextlib.asynccontextmanager
    async def __call__(
        self, wanted: "SessionRestart", tell: "Callable[[AgentEvent], None]"
    ) -> "AsyncIterator[Session]":
        from ferrule.agent.session import Session

        self._count += 1
        is_first = self._count == 1
        if is_first and self.front is not None:
            from ferrule.cli.project_trust import ask_trust  # where the answer has effect: before the first session

            sources = self._flags.over.get("sources") or load_settings().sources
            await ask_trust(self.front, self._wishes["workspace"], sources)
        # A recording is never written over: what follows another start is another one.
        record = f"{self._record}.{self._count}" if self._record and self._count > 1 else self._record
        session = Session(
            self._wishes["workspace"],
            model=wanted.model or self._flags.model or None,
            dialect=wanted.dialect,
            ask=self.ask,
            resume=wanted.resume or "",
            thread=self._flags.thread if is_first else "",
            fork=self._flags.fork and is_first,
            fallback=self._flags.fallback,
            limits=self._limits,
            over=self._flags.over,
            hooks=tuple(self._flags.hooks),
            mode=self._fitting.mode if self._fitting is not None else None,
            record=record,
            permission_mode=wanted.permission_mode,
            add_dirs=(*self._wishes["add_dirs"], *self._flags.folders),
            mcp_config=(*self._wishes["mcp_config"], *self._flags.servers),
            network=self._wishes["network"],
            allow_hosts=self._wishes["allow_hosts"],
            watched=True,
            on_event=tell,
        )
        async with session:
            if self.remembered and is_first:
                from ferrule.models.catalog import WHY

                session.why_model = WHY
            self._flags.give(session)
            if self._fitting is not None:
                self._fitting.fit(session)
            for warning in (*self._flags.warnings, *_wide(self._wishes["workspace"])) if is_first else ():
                session.agent.talk.warn(warning)
            yield session


def _wide(workspace: str) -> tuple[str, ...]:
    from ferrule.cli.project_trust import wide_warning

    return (warning,) if (warning := wide_warning(workspace)) else ()


def _front() -> "TalkFrontend":
    """The screen or, on a terminal that can do little, lines."""
    from ferrule.cli.talk.keyboard import Typed

    if os.environ.get("TERM", "dumb") in {"dumb", "unknown", ""} and os.name == "posix":
        from ferrule.cli.talk.plain import Plain

        return Plain()
    from ferrule.cli.talk.keyboard import Keyboard
    from ferrule.cli.talk.theme import find_theme

    return Keyboard(history=Typed(state_folder()), colour=find_theme("auto"))


def _asker(answer: str | None, front: "TalkFrontend", chat: Any) -> "Asker":
    from ferrule.cli.talk.questions import InPerson

    if answer == "deny":
        return Nobody()
    person = InPerson(front, markdown=chat.markdown)
    person.on_shown = chat.lines.mark_seen
    person.on_asked = lambda summary: setattr(front, "subject", summary)
    person.on_waiting = chat.lines.mark_asked
    person.on_printed = lambda: chat.lines.mark_printed("question")
    if answer != "yes":
        return person

    class Willing:
        """Every call is allowed beforehand; what widens the session is still asked about."""

        is_person = True
        """To all but calls."""

        async def ask(self, question: Question) -> Answer:
            return YES if question.kind == "call" else await person.ask(question)

    return Willing()


def _complete(front: "TalkFrontend", chat: Any) -> None:
    """Completion, where there is a screen for it."""
    from ferrule.cli.talk.keyboard import Keyboard

    if not isinstance(front, Keyboard):
        return
    from ferrule.cli.talk import own_commands
    from ferrule.cli.talk.commands import commands, files, values_of
    from ferrule.cli.talk.keyboard import InputCompleter

    front.input.completer = InputCompleter(
        lambda: [
            *((name, one.about) for name, one in commands().items()),
            *own_commands.completions(chat),
            *chat.skills(),
        ],
        lambda name: values_of(chat, name),
        lambda: files(chat.session.engine.jail.folder),
    )
