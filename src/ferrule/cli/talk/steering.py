"""Commands that change something: the model, the dialect, the mode, the files, the conversation."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from ferrule.cli.talk.commands import Again, Next
from ferrule.cli.talk.line import BLANK, diff_lines, line, sentence
from ferrule.cli.talk.theme import NAMES as THEME_NAMES
from ferrule.cli.talk.theme import THEMES, remember_theme
from ferrule.core.errors import ConfigError, ToolFailure
from ferrule.core.planning import Planning
from ferrule.dialects.dialect import FAMILIES
from ferrule.workspace.entry_words import command_words, entry_words, files_of, names_of
from ferrule.workspace.journal import Entry, Journal
from ferrule.workspace.thread import when

if TYPE_CHECKING:
    from ferrule.cli.talk.chatting import Chat

MODES = ("default", "acceptEdits", "plan", "dontAsk", "bypassPermissions")
_MOST_DIFF_ROWS = 40
_MOST_RULES = 40


async def model(chat: "Chat", rest: str) -> Next:
    """In place: the conversation goes on with another one."""
    agent = chat.session.agent
    if not rest and not (rest := await _picked(chat)):
        return None
    chosen = await asyncio.to_thread(chat.session.load, rest)  # a recording or a model's file is read for it
    agent.use(chosen)
    chat.tally.switched(agent.thread, chosen.name)
    chat.note(f"The model is {chosen.name} from now on.")
    from ferrule.models.last_model import remember_model  # for who changes it

    with contextlib.suppress(ConfigError):  # a state folder that cannot be written ends nothing
        await asyncio.to_thread(remember_model, rest, chat.session.engine.settings.models)
    return None


async def _picked(chat: "Chat") -> str:
    """The name of a model that is chosen from a list; empty where it stays as it is."""
    from ferrule.cli.talk.model_list import NO_MODELS, choices  # for who looks for one

    now = chat.session.agent.model.name
    looks = choices(chat.session.engine.settings.models, chat.session.agent.model)
    is_running = chat.session.agent.is_running
    looked = await (looks if is_running else chat.stoppable(looks, "looking which models there are"))
    if looked is None:
        return ""
    rows, more = looked
    if len(rows) < 2:
        chat.note(f"The model is {now}. {NO_MODELS}")
        return ""
    chosen = await chat.front.pick(f"Which model? (now {now})", rows, other=more, at=now)
    if not chosen or chosen == now:
        chat.note(f"The model is {now}.")
        return ""
    return str(chosen)


def model_names(chat: "Chat") -> list[str]:
    """What a model's name can be, or begin with, for completion."""
    from ferrule.cli.talk.model_list import known, usable  # for who completes
    from ferrule.models.catalog import SHORT
    from ferrule.models.hosts import ROWS

    settings = chat.session.engine.settings.models
    return list(
        dict.fromkeys((*SHORT, *settings.roles, *known(settings, usable(settings), {}), *(f"{h}:" for h in ROWS)))
    )


async def dialect(chat: "Chat", rest: str) -> Next:
    """The session is opened again: other names, other words, the same conversation."""
    now = chat.session.engine.dialect.name
    if not rest:
        chat.note(f"The dialect is {now}. /dialect NAME speaks another one: {', '.join(FAMILIES)}.")
        return None
    if rest not in FAMILIES:
        chat.note(f"There is no dialect {rest}. The dialects are {', '.join(FAMILIES)}.")
        return None
    return None if rest == now else Again(resume=chat.going_on(), dialect=rest)


async def permissions(chat: "Chat", rest: str) -> Next:
    """In place: what runs in the background goes on."""
    session = chat.session
    now = chat.mode()
    if not rest:
        chat.note(f"The permission mode is {now}. /permissions MODE changes it: {', '.join(MODES)}.")
        _show_rules(chat)
        return None
    from ferrule.permissions.standing import named

    wanted = named(rest).name
    if wanted == "plan":
        session.set_mode(wanted)
        chat.note("Plan mode is on: only reading works. /plan ends it.")
    elif wanted != now:
        holds = session.set_mode(wanted)
        chat.named_mode = wanted
        chat.note(f"The permission mode is {holds} from now on.")
    return None


def _show_rules(chat: "Chat") -> None:
    rules = [(rule, kept) for kept in chat.session.engine.policy.sets for rule in kept.rules]
    for rule, kept in rules[:_MOST_RULES]:
        where = f"  ({kept.layer}: {kept.source})"
        chat.say(line(("cyan", f"  {rule.action:<8} "), ("give", rule.text), ("dim", where)))
    if len(rules) > _MOST_RULES:
        chat.note(f"… {len(rules) - _MOST_RULES} more: `ferrule permissions list` shows all rules.")
    if any(kept.layer == "project" for _, kept in rules) and not chat.session.engine.policy.trusted:
        chat.note("The project's rules can only tighten, for they are not trusted: see `ferrule permissions trust`.")
    why = chat.session.engine.why_asked()
    confined = f"Commands ask before they run: {why}" if why else "Commands in the sandbox run without a question."
    if not rules:
        chat.note(f"There are no rules yet: what is not plainly harmless is asked about. {confined}")
    else:
        chat.note(confined)


async def plan(chat: "Chat", rest: str) -> Next:
    """On or off; with a task behind it on, and the task is what is planned."""
    planning = chat.session.engine.need(Planning)
    if rest:
        chat.heard(rest)
    if planning.is_on and rest:
        chat.note("Plan mode is on already.")
    elif planning.is_on:
        chat.note(f"Plan mode is off; the permission mode is {planning.leave()}.")
    else:
        entered = planning.enter()
        where = chat.session.engine.jail.shown(entered.path)
        chat.note(f"Plan mode is on: only reading works, and the plan goes to {where}. /plan ends it.")
    return None


async def undo(chat: "Chat", rest: str) -> Next:
    return await _step(chat, rest, "undo")


async def redo(chat: "Chat", rest: str) -> Next:
    return await _step(chat, rest, "redo")


async def _step(chat: "Chat", rest: str, which: str) -> Next:
    from ferrule.cli.step import did, diffs  # for who steps back

    engine = chat.session.engine
    path = rest or None
    try:
        if which == "undo" and not await _is_wanted(chat, path):
            chat.note("Nothing was undone.")
            return None
        done = await (engine.undo(path) if which == "undo" else engine.redo(path))
    except ToolFailure as error:
        chat.note(error.message)
        return None
    texts = await asyncio.to_thread(diffs, done, engine)
    rows = [row for text in texts for row in text.rstrip("\n").split("\n")]
    chat.say(BLANK, *diff_lines(rows[:_MOST_DIFF_ROWS], "  "))
    if len(rows) > _MOST_DIFF_ROWS:
        more = len(rows) - _MOST_DIFF_ROWS
        chat.say(line(("dim", f"  … {more:,} more line{'s' * (more > 1)}")))
    chat.note(f"{did(which, done)}: {entry_words(done.entry, engine.jail.shown)}.")
    for note in done.notes:
        chat.note(note)
    if done.is_nothing:
        return None
    step = "undone" if which == "undo" else "redone"
    is_own = engine.need(Journal).wrote(done.entry)
    chat.session.agent.steer(
        f"[The user has {step} {_what(done.entry, engine.jail.shown, is_own=is_own)}.]", by_user=False
    )
    return None


def _what(entry: Entry, shown: Callable[[str], str], *, is_own: bool) -> str:
    """What the model is told that was taken back or done again."""
    names = names_of(files_of(entry), shown)
    if entry.kind == "command":
        whose = "your command" if is_own else "an earlier command"
        return f"what {whose} {command_words(entry)} has changed: {names}"
    if entry.kind == "rewind":
        return f"a rewind of {names}"
    return f"{'your last write' if is_own else 'an earlier write'} of {names}"


async def _is_wanted(chat: "Chat", path: str | None) -> bool:
    """What another session has written, which may be at work on it just now, is not taken back unasked."""
    engine = chat.session.engine
    undoable, _ = await engine.history(path)
    if not undoable or engine.need(Journal).wrote(undoable[-1]):
        return True
    last = undoable[-1]
    chat.note(f"This session did not write it: {entry_words(last, engine.jail.shown)}, {when(last.time)}.")
    key = await chat.stoppable(chat.front.key("Undo it all the same?", [("y", "es"), ("n", "o")]))
    return bool(key == "y")


async def compact(chat: "Chat", rest: str) -> Next:
    if not chat.session.agent.turns:
        chat.note("There is nothing to sum up yet.")
        return None
    done = await chat.stoppable(chat.session.agent.compact(rest), "summing the conversation up; ctrl-C stops that")
    if done is None or not done.summary:
        chat.note("Stopped: the conversation is as it was.")
    return None


async def clear(chat: "Chat", _: str) -> Next:  # noqa: ARG001 - every command gets them
    return Again(resume="")


async def thinking(chat: "Chat", _: str) -> Next:
    chat.lines.whole_thinking = not chat.lines.whole_thinking
    chat.note(f"Thinking is shown {'whole' if chat.lines.whole_thinking else 'folded to a line'} from now on.")
    return None


async def theme(chat: "Chat", rest: str) -> Next:
    """At once, and from the next start on."""
    setting = chat.session.engine.settings.chat.theme
    if not rest:
        chat.note(f"The theme is {chat.front.colour.name}. /theme NAME uses another one:")
        chat.say(sentence(("cyan", f"  {'auto':<20}"), "light or dark by COLORFGBG, else terminal"))
        for one in THEMES.values():
            chat.say(sentence(("cyan", f"  {one.name:<20}"), one.about))
        return None
    if rest not in THEME_NAMES:
        chat.note(f"There is no theme {rest}. The themes are {', '.join(THEME_NAMES)}.")
        return None
    used = chat.use_theme(rest)
    kept = ""
    try:
        await asyncio.to_thread(remember_theme, rest, setting)
    except ConfigError as error:
        kept = f" It is not remembered: {error}"
    if rest not in {used.name, "auto"}:
        why = "NO_COLOR is set" if chat.front.steer else "this terminal has no colours"
        chat.note(f"The theme {rest} counts from the next start on: {why}.{kept}")
    else:
        chat.note(f"The theme is {used.name} from now on.{kept}")
    return None


async def files(root: str) -> list[str]:
    """The files of the workspace that git would see, for completion; none where ripgrep cannot be run."""
    from ferrule.support import ripgrep  # for who completes

    program = await asyncio.to_thread(ripgrep.find_rg, outside=(root,))
    if program is None:
        return []
    try:
        return await ripgrep.files(program, root, hidden=False)
    except (OSError, ToolFailure):
        return []
