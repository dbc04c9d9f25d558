"""Implement `ferrule threads rewind`: list prompts, preview the changes, and go back to before a prompt.

It rewinds a conversation that no session has open, and its files.
"""

import contextlib
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from typing import NamedTuple

import click
import msgspec

from ferrule.agent.conversation import REWOUND, UNREWOUND, Past, Prompt
from ferrule.agent.session import Claim
from ferrule.agent.threads import resume
from ferrule.checkpoints import left_out_words
from ferrule.checkpoints.undo import Rewind, count_noun, is_folder
from ferrule.cli.show import DONE, FAILED
from ferrule.core.errors import ConfigError, ToolFailure
from ferrule.engine import Engine
from ferrule.files.journal import Journal, JournalEntry, Node, NodeChange
from ferrule.output import clean
from ferrule.settings import state_folder
from ferrule.tools.threads import Item, ThreadMetadata, when
from ferrule.tools.threads.store import ThreadStore

MOST_PROMPTS = 30
_MOST_PATHS = 20
_LINE_CHARS = 70
_PLACES = {"here": "", "rewound": "rewound", "gone": "summed up"}


class RewindPoint(NamedTuple):
    """A prompt that can be gone back to."""

    prompt: Prompt
    files: int
    """How many files were changed since."""

    def words(self) -> str:
        """When it was, its first line, and what has come of it."""
        facts = [_PLACES[self.prompt.place], f"{count_noun(self.files, 'file')} changed since" if self.files else ""]
        about = ", ".join(filter(None, facts))
        return f"{when(self.prompt.at)}  {_first_line(self.prompt.text)}{f'  ({about})' if about else ''}"


async def preview_rewind(engine: Engine, number: int) -> Rewind:
    """What going back to before a prompt would do to the files. Raises `ToolFailure`."""
    try:
        return await engine.rewind_preview(number)
    except ToolFailure as error:
        if error.code != "no-history":
            raise
        return Rewind()


def list_points(past: Past, entries: Iterable[JournalEntry], thread: str) -> list[RewindPoint]:
    """The prompts of a conversation, the newest last."""
    steps: dict[str, list[_Stepped]] = {}
    for entry in entries:
        if entry.thread == thread:
            for file in entry.files:
                steps.setdefault(file.path, []).append(_Stepped(entry.prompt, file.before, file.after))
            for node in (one for one in entry.nodes if not is_folder(one)):
                stepped = _Stepped(entry.prompt, _mark(node.before), _mark(node.after))
                steps.setdefault(node.path, []).append(stepped)
    return [
        RewindPoint(prompt, sum(_differs(some, prompt.number) for some in steps.values())) for prompt in past.prompts()
    ]


class _Stepped(NamedTuple):
    """What an entry made of a path: the marks of what was there, and of what is."""

    prompt: int
    before: object
    after: object


def _mark(node: Node | None) -> object:
    if node is None or (node.kind == "file" and not node.is_unkept):
        return None if node is None else node.content
    return node if not node.is_unkept else object()  # what was not kept is like nothing else


def _differs(steps: list[_Stepped], number: int) -> bool:
    """Is a path another one now than before a prompt?"""
    since = [step for step in steps if step.prompt >= number]
    return bool(since) and since[0].before != since[-1].after


def is_nothing(rewind: Rewind) -> bool:
    """Are the files, and git, as they were?"""
    return not any(rewind._replace(left_out=()))


def preview_rows(rewind: Rewind, shown: Callable[[str], str]) -> list[str]:
    """What would become of the files: counts, then path by path."""
    if is_nothing(rewind):
        return ["The files are as they were then."]
    kinds = [_kind(change) for change in _files(rewind)]
    counts = [f"{kinds.count(kind):,} {kind}" for kind in ("restored", "removed", "made again") if kind in kinds]
    rows = [f"Files: {', '.join(counts) or 'none changed'}."]
    named = [
        f"  {_kind(change):<10}  {clean(shown(change.path))}{'/' * is_folder(change)}{_lines(change)}"
        for change in rewind.changes
    ]
    rows += _some(named)
    if rewind.by_hand:
        rows.append(f"Changed by you since, and left alone unless you say otherwise: {len(rewind.by_hand):,}")
        rows += _some([f"  by hand     {clean(shown(path))}" for path in rewind.by_hand])
    if rewind.lost:
        rows.append(f"Cannot be brought back, because their bytes were not kept: {len(rewind.lost):,}")
        rows += _some([f"  lost        {clean(shown(path))}" for path in rewind.lost])
    if rewind.damaged:
        rows.append(f"Entries of the journal that are damaged, so that their changes stay: {rewind.damaged:,}")
    if rewind.left_alone:
        rows.append(f"Left alone, because their bytes are not kept: {len(rewind.left_alone):,}")
        rows += _some([f"  left alone  {clean(shown(path))}" for path in rewind.left_alone])
    if rewind.left_out:
        words = left_out_words(dict(rewind.left_out), shown)
        rows.append(f"As they are, because checkpoints leave them out: {clean(words)}.")
    rows += [
        f"Removed: the repository {clean(shown(path))}. Whether it comes back from what was kept is asked then."
        for path in rewind.repositories
    ]
    return [*rows, *map(clean, rewind.moved)]


def describe_rewind(rewind: Rewind, number: int) -> str:
    """What a rewind has done to the files."""
    count = len(_files(rewind))
    return f"{count_noun(count, 'file')} {'is' if count == 1 else 'are'} as before prompt {number}."


def _files(rewind: Rewind) -> list[NodeChange]:
    """Without folders, unless there is nothing else."""
    return [change for change in rewind.changes if not is_folder(change)] or list(rewind.changes)


def _kind(change: NodeChange) -> str:
    if change.after is None:
        return "removed"
    return "made again" if change.before is None else "restored"


def _lines(change: NodeChange) -> str:
    return f"  +{change.added} -{change.removed}" if change.added or change.removed else ""


def _some(rows: list[str]) -> list[str]:
    more = [f"  … and {len(rows) - _MOST_PATHS:,} more"] if len(rows) > _MOST_PATHS else []
    return [*rows[:_MOST_PATHS], *more]


def _first_line(text: str) -> str:
    words = " ".join(clean(text.strip().split("\n", 1)[0]).split())
    return (words if len(words) <= _LINE_CHARS else words[: _LINE_CHARS - 1] + "…") or "(nothing)"


_CHOICES = {"b": "both", "f": "files", "c": "conversation", "n": "nothing"}


class RewindOptions(NamedTuple):
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
    about: ThreadMetadata
    past: Past


class _Plan(NamedTuple):
    """What is done."""

    files: bool
    conversation: bool
    over: bool


async def rewind_thread(store: ThreadStore, about: ThreadMetadata, wanted: RewindOptions) -> int:
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
            prompts = list_points(past, entries, about.id)
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
async def _engine(about: ThreadMetadata, past: Past) -> AsyncIterator[Engine | None]:
    """An engine on the folder of the conversation; none where that is gone."""
    if not os.path.isdir(about.workspace):
        click.echo(f"{clean(about.workspace)} is not there any more: only the conversation can go back.", err=True)
        yield None
        return
    async with Engine(about.workspace, session_id=about.id, lazy=True) as engine:
        engine.begin_prompt(past.number)
        yield engine


def _list(prompts: list[RewindPoint]) -> int:
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


async def _rewind(talk: _Talk, one: RewindPoint, engine: Engine | None, wanted: RewindOptions) -> int:
    number, thread, past = one.prompt.number, talk.about.id, talk.past
    if wanted.conversation:
        past.step(number)  # what cannot go back is said before anything else
    try:
        preview = await preview_rewind(engine, number) if engine is not None else None
        if preview is not None and engine is not None:
            click.echo("\n".join(preview_rows(preview, engine.jail.display_path)))
        plan = _plan_rewind(one, preview, wanted)
        if plan is None:
            return FAILED
        if plan.files and engine is not None:
            done = await engine.rewind(number, over=plan.over)
            click.echo(f"{describe_rewind(done, number)}{' `ferrule undo` takes that back.' if done.entry else ''}")
    except ToolFailure as error:
        click.echo(f"ferrule: {error.message}", err=True)
        return FAILED
    if plan.conversation:
        talk.store.append(thread, [Item(REWOUND, "", msgspec.json.encode(past.step(number)))])
        click.echo(f"The conversation is before prompt {number} now. The prompt was:\n{clean(past.text(number))}")
        click.echo(f"`ferrule threads rewind {thread} --back` takes that back.")
    return DONE


def _plan_rewind(one: RewindPoint, preview: "Rewind | None", wanted: RewindOptions) -> _Plan | None:
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
