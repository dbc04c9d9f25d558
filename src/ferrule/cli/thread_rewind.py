"""`ferrule threads rewind`: a conversation that nobody has open, and its files, back to before a prompt."""

import contextlib
import os
import sys
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, NamedTuple

import click
import msgspec

from ferrule.agent.claim import Claim
from ferrule.agent.past import REWOUND, UNREWOUND, Past
from ferrule.agent.stored import resume
from ferrule.cli.codes import DONE, FAILED
from ferrule.cli.rewinding import Listed, done_words, listed, preview_rows, previewed
from ferrule.core.errors import ConfigError, ToolFailure
from ferrule.engine import Engine
from ferrule.output.clean import clean
from ferrule.settings import state_folder
from ferrule.workspace.journal import Journal
from ferrule.workspace.thread_store import About, Item, ThreadStore

if TYPE_CHECKING:
    from ferrule.workspace.rewind import Rewind

_CHOICES = {"b": "both", "f": "files", "c": "conversation", "n": "nothing"}


class Wanted(NamedTuple):
    """What the options say."""

    turn: int | None
    files: bool
    conversation: bool
    over: bool
    yes: bool
    back: bool


class _Talk(NamedTuple):
    """A conversation that is kept."""

    store: ThreadStore
    about: About
    past: Past


class _Plan(NamedTuple):
    """What is done."""

    files: bool
    conversation: bool
    over: bool


async def rewound(store: ThreadStore, about: About, wanted: Wanted) -> int:
    """List, show and do, as an exit code. Raises `ConfigError` where somebody has the conversation open."""
    if about.parent:
        raise ConfigError(f"{about.id} is a subagent's. Rewind the conversation that has started it: {about.parent}.")
    claim = Claim(os.path.join(state_folder(), "threads", "open"), about.id)
    try:
        loaded = store.load(about.id)
        past = resume(loaded.items).past if loaded is not None else Past()
        talk = _Talk(store, about, past)
        if wanted.back:
            return _unrewind(talk)
        async with _engine(about, past) as engine:
            entries = engine.need(Journal).entries() if engine is not None else []
            prompts = listed(past, entries, about.id)
            if wanted.turn is None:
                return _list(prompts)
            found = next((one for one in prompts if one.prompt.number == wanted.turn), None)
            if found is None:
                past.step(wanted.turn)  # which says what there is
                return FAILED
            return await _rewind(talk, found, engine, wanted)
    finally:
        claim.close()


@contextlib.asynccontextmanager
async def _engine(about: About, past: Past) -> AsyncIterator[Engine | None]:
    """An engine on the folder of the conversation; none where that is gone."""
    if not os.path.isdir(about.workspace):
        click.echo(f"{clean(about.workspace)} is not there any more: only the conversation can go back.", err=True)
        yield None
        return
    async with Engine(about.workspace, session_id=about.id, lazy=True) as engine:
        engine.begin_prompt(past.number)
        yield engine


def _list(prompts: list[Listed]) -> int:
    if not prompts:
        click.echo("It has no prompts that can be gone back to.", err=True)
        return DONE
    column = len(str(prompts[-1].prompt.number))
    for one in prompts:
        click.echo(f"{one.prompt.number:>{column}}  {one.words()}")
    return DONE


def _unrewind(talk: _Talk) -> int:
    if not talk.past.left:
        click.echo("ferrule: the conversation was not rewound, so there is nothing to take back.", err=True)
        return FAILED
    talk.store.append(talk.about.id, [Item(UNREWOUND, "", b"null")])
    click.echo("The conversation is as it was before it was rewound. The files stayed as they are.")
    return DONE


async def _rewind(talk: _Talk, one: Listed, engine: Engine | None, wanted: Wanted) -> int:
    number, thread, past = one.prompt.number, talk.about.id, talk.past
    if wanted.conversation:
        past.step(number)  # what cannot go back is said before anything else
    try:
        preview = await previewed(engine, number) if engine is not None else None
        if preview is not None and engine is not None:
            click.echo("\n".join(preview_rows(preview, engine.jail.shown)))
        plan = _planned(one, preview, wanted)
        if plan is None:
            return FAILED
        if plan.files and engine is not None:
            done = await engine.rewind(number, over=plan.over)
            click.echo(f"{done_words(done, number)}{' `ferrule undo` takes that back.' if done.entry else ''}")
    except ToolFailure as error:
        click.echo(f"ferrule: {error.message}", err=True)
        return FAILED
    if plan.conversation:
        talk.store.append(thread, [Item(REWOUND, "", msgspec.json.encode(past.step(number)))])
        click.echo(f"The conversation is before prompt {number} now. The prompt was:\n{clean(past.text(number))}")
        click.echo(f"`ferrule threads rewind {thread} --back` takes that back.")
    return DONE


def _planned(one: Listed, preview: "Rewind | None", wanted: Wanted) -> _Plan | None:
    """What is to be done; None where it is nothing, which is said."""
    has_files = preview is not None and bool(preview.changes or preview.by_hand)
    has_talk = one.prompt.place != "gone"
    if not has_talk:
        click.echo(f"Prompt {one.prompt.number} was summed up, so the conversation stays as it is.", err=True)
    is_open = not (wanted.files or wanted.conversation)
    files, talk = has_files and (is_open or wanted.files), has_talk and (is_open or wanted.conversation)
    if not (files or talk):
        click.echo("There is nothing to go back to.", err=True)
        return None
    by_hand = preview is not None and bool(preview.by_hand)
    if wanted.yes:
        return _Plan(files, talk, wanted.over)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        hint = " --over also takes back what you changed by hand." if by_hand and files else ""
        click.echo(
            "Nothing was changed, for nobody can be asked here. --yes does it; --files or --conversation does only "
            f"that.{hint}",
            err=True,
        )
        return None
    if is_open and files and talk:
        offer = ", ".join(f"[{key}]{word[1:]}" for key, word in _CHOICES.items())
        key = click.prompt(f"Go back? {offer}", type=click.Choice(list(_CHOICES)), show_choices=False)
        files, talk = key in {"b", "f"}, key in {"b", "c"}
    elif not click.confirm(f"Take the {'files' if files else 'conversation'} back?"):
        files = talk = False
    if not (files or talk):
        click.echo("Nothing was changed.", err=True)
        return None
    over = wanted.over
    if files and by_hand and not over:
        over = click.confirm("Over what you changed by hand?")
    return _Plan(files, talk, over)
