"""Define the slash commands of the chat: look them up, and run those that inspect or change the session.

The diff of a conversation comes from the journal: every file as it was before, and as it is now. `/rewind` goes
back to before a prompt, with the files, the conversation, or both.
"""

import asyncio
import contextlib
import os
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ferrule.agent.attachments import words_of_parts
from ferrule.checkpoints.undo import command_words, entry_words, files_of, names_of
from ferrule.cli.rewind import MOST_PROMPTS, RewindPoint, describe_rewind, list_points, preview_rewind, preview_rows
from ferrule.cli.talk.text import BLANK, NAMES, THEMES, diff_lines, line, remember_theme, sentence, whole_rows
from ferrule.cli.talk.text import NAMES as THEME_NAMES
from ferrule.cli.undo import did, diffs
from ferrule.core.errors import ConfigError, FerruleError, ToolFailure, near
from ferrule.core.services import Planning
from ferrule.dialects import FAMILIES
from ferrule.files import search
from ferrule.files.diff import diff as diff_diff
from ferrule.files.journal import DamagedError, FileChange, Journal, JournalEntry, Node, NodeChange
from ferrule.files.ledger import fingerprint
from ferrule.files.text import is_binary
from ferrule.models.catalog import SHORT, remember_model
from ferrule.models.hosts import ROWS
from ferrule.permissions import parse_mode
from ferrule.system.folder import is_regular, read_all
from ferrule.tools.threads import when

if TYPE_CHECKING:
    from ferrule.checkpoints.undo import Rewind
    from ferrule.cli.talk.chat import Chat


class SessionRestart(NamedTuple):
    """The session is opened again; None leaves a thing as it is."""

    resume: str | None = None
    """A thread, or nothing for a new conversation."""
    dialect: str | None = None
    permission_mode: str | None = None
    model: str | None = None


class Leave(NamedTuple):
    """The user goes."""


Next = SessionRestart | Leave | None
"""What a command leads to."""


class SlashCommand(NamedTuple):
    """One command."""

    about: str
    run: Callable[["Chat", str], Awaitable[Next]]
    takes: str = ""
    while_running: bool = False
    """Can it be used while the agent works?"""
    looks_alone: bool = False
    """Does it only look, and so at any time, where nothing is said behind it?"""


def split(text: str) -> tuple[str, str] | None:
    """The name of a command and what is said behind it; None where a line is for the model, such as a path."""
    if not text.startswith("/") or text.startswith("//"):
        return None
    name, *rest = re.split(r"\s+", text[1:].rstrip(), maxsplit=1)
    return None if "/" in name else (name, rest[0] if rest else "")


def find_command(name: str) -> SlashCommand | None:
    """By its name, or by the beginning of only one."""
    known = commands()
    name = {"quit": "exit", "new": "clear", "mode": "permissions"}.get(name.lower(), name.lower())
    if name in known:
        return known[name]
    alike = [one for one in known if one.startswith(name)] if name else []
    return known[alike[0]] if len(alike) == 1 else None


def unknown(name: str) -> str:
    """What to say about a command that there is none of."""
    meant = near(name, commands(), most=1)
    hint = f"Did you mean /{meant[0]}?" if meant else "/help lists the commands."
    return f"There is no command /{name}. {hint}"


def commands() -> dict[str, SlashCommand]:
    """All of them, in the order in which help shows them."""
    # These know the chat, and so this file.
    from ferrule.cli.talk import inventory, own_commands, status

    return {
        "help": SlashCommand("This list, and the keys.", show_help, while_running=True),
        "model": SlashCommand(
            "Choose another model, from a list with windows and prices.", model, "[NAME]", while_running=True
        ),
        "dialect": SlashCommand("Show the dialect, or speak another one.", dialect, "[NAME]", looks_alone=True),
        "tools": SlashCommand("The tools that the model has.", tools, while_running=True),
        "permissions": SlashCommand(
            "Show the permission mode and the rules, or change the mode.",
            permissions,
            "[MODE]",
            looks_alone=True,
        ),
        "plan": SlashCommand("Begin plan mode, or end it: only reading.", plan, "[TASK]"),
        "undo": SlashCommand("Take back the last write, or what the last command changed.", undo, "[FILE]"),
        "redo": SlashCommand("Write again what was undone.", redo, "[FILE]"),
        "rewind": SlashCommand("Back to before a prompt: files, conversation or both.", rewind, "[NUMBER]"),
        "diff": SlashCommand("What this conversation has changed.", diff, "[FILE]", while_running=True),
        "tasks": SlashCommand(
            "What runs in the background: see its output, stop it. And todos.",
            inventory.tasks,
            "[ID | stop ID]",
            while_running=True,
        ),
        "ports": SlashCommand("Where commands listen, and how you reach it.", inventory.ports, while_running=True),
        "context": SlashCommand("What fills the model's window, and cache hits.", status.context, while_running=True),
        "cost": SlashCommand("Tokens and money so far, for each model.", status.cost, while_running=True),
        "mcp": SlashCommand(
            "MCP servers and their tools; approve or restart one.",
            inventory.mcp,
            "[NAME | connect NAME]",
            while_running=True,
        ),
        "agents": SlashCommand("The kinds of subagents, and their models.", inventory.agents, while_running=True),
        "skills": SlashCommand("The skills, and where they are from.", inventory.skills, while_running=True),
        "init": SlashCommand("Have the agent write AGENTS.md for this project.", own_commands.init),
        "review": SlashCommand("Review the uncommitted change, a branch or a range.", own_commands.review, "[WHAT]"),
        "compact": SlashCommand("Sum the conversation up, to make room.", compact, "[FOCUS]"),
        "threads": SlashCommand("Earlier conversations of this folder.", inventory.threads, while_running=True),
        "resume": SlashCommand("Go on with an earlier conversation, chosen from a list.", inventory.resume, "[ID]"),
        "fork": SlashCommand("Go on in a copy of this conversation.", inventory.fork),
        "rename": SlashCommand("Give this conversation a title.", inventory.rename, "[TITLE]", while_running=True),
        "export": SlashCommand("Write this conversation into a file.", inventory.export, "[FILE]"),
        "clear": SlashCommand("Begin a new conversation.", clear),
        "thinking": SlashCommand("Show what the model thinks whole, or folded.", thinking, while_running=True),
        "theme": SlashCommand("Show the theme, or use other colours.", theme, "[NAME]", while_running=True),
        "exit": SlashCommand("Leave.", leave),
    }


def values_of(chat: "Chat", name: str) -> Sequence[str]:
    """What can stand behind a command, for completion."""
    from ferrule.cli.talk import inventory, own_commands  # as above

    known: dict[str, Callable[[], Sequence[str]]] = {
        "dialect": lambda: list(FAMILIES),
        "permissions": lambda: list(MODES),
        "model": lambda: model_names(chat),
        "tasks": lambda: inventory.values(chat),
        "theme": lambda: list(NAMES),
        "mcp": lambda: inventory.server_values(chat),
        "review": lambda: own_commands.branches(chat.session.engine.jail.folder),
    }
    try:
        return known.get(name, lambda: own_commands.values(chat, name))()
    except (AttributeError, FerruleError):  # no session is open
        return []


async def show_help(chat: "Chat", _: str) -> Next:
    known = commands()
    heads = {name: f"/{name} {command.takes}".rstrip() for name, command in known.items()}
    column = max(map(len, (*heads.values(), *(keys for keys, _ in _KEYS))))
    for title, names in (*_GROUPS, ("More", tuple(name for name in known if not any(name in g for _, g in _GROUPS)))):
        if names := tuple(name for name in names if name in known):
            chat.say(BLANK, line(("bold", f"  {title}")))
            chat.say(*(sentence(("cyan", f"  {heads[name]:<{column}}  "), known[name].about) for name in names))
    chat.say(BLANK, line(("bold", "  Keys")))
    chat.say(*(sentence(("cyan", f"  {keys:<{column}}  "), about) for keys, about in _KEYS), BLANK)
    return None


async def leave(chat: "Chat", _: str) -> Next:  # noqa: ARG001 - every command gets them
    return Leave()


_GROUPS = (
    ("Conversation", ("resume", "threads", "fork", "rename", "export", "rewind", "compact", "clear", "exit")),
    ("Work", ("plan", "init", "review", "undo", "redo", "diff", "tasks", "ports")),
    ("Model", ("model", "context", "cost", "thinking", "theme", "dialect")),
    ("What the agent has, and what it may", ("tools", "mcp", "agents", "skills", "permissions")),
)
"""Commands in the order in which help shows them; those that are in none come last."""
_KEYS = (
    ("Enter", "send; while the agent works, tell it something"),
    ("esc Enter, ctrl-J", "a new line"),
    ("/", "a command or a skill; tab completes, also what it takes"),
    ("@", "a file or a folder, whose content goes to the model; tab completes"),
    ("!COMMAND", "run a command behind the sandbox; !! outside of it"),
    ("up, down", "what was typed before"),
    ("ctrl-R", "look for something that was typed before"),
    ("ctrl-G", "write the input in your editor"),
    ("esc", "stop what runs; twice at an idle prompt, go back to an earlier one"),
    ("shift-tab", "the next permission mode, also while the agent works"),
    ("ctrl-B", "send the running command to the background"),
    ("ctrl-O", "all that the last calls came to, in a pager"),
    ("ctrl-C", "stop what runs, empty the line; twice at an empty line, leave"),
    ("ctrl-D", "leave"),
    ("ctrl-Z", "into the background of the shell"),
)


_MOST_DIFF_ROWS = 2000


async def tools(chat: "Chat", _: str) -> Next:
    faces = chat.session.engine.faces()
    column = max((len(face.name) for face in faces), default=0)
    chat.say(BLANK)
    for face in faces:
        chat.say(sentence(("cyan", f"  {face.name:<{column}}"), ("dim", f"  {face.words.strip().splitlines()[0]}")))
    chat.say(BLANK)
    return None


async def diff(chat: "Chat", rest: str) -> Next:
    engine = chat.session.engine
    texts = await asyncio.to_thread(changes, engine.need(Journal), engine.jail.display_path, rest, engine.bytes_before)
    rows = [row for text in texts for row in text.rstrip("\n").split("\n")]
    chat.say(BLANK, *whole_rows(rows[:_MOST_DIFF_ROWS], "  ", chat.front.width))
    if not rows:
        chat.note(f"This conversation has changed nothing{f' in {rest}' if rest else ''}.")
    elif len(rows) > _MOST_DIFF_ROWS:
        more = len(rows) - _MOST_DIFF_ROWS
        chat.say(line(("dim", f"  … {more:,} more line{'s' * (more > 1)}")))
    chat.say(BLANK)
    return None


MODES = ("default", "acceptEdits", "plan", "dontAsk", "bypassPermissions")
_STEERING_MOST_DIFF_ROWS = 40
_MOST_RULES = 40


async def model(chat: "Chat", rest: str) -> Next:
    """In place: the conversation goes on with another one."""
    agent = chat.session.agent
    if not rest and not (rest := await _pick_model(chat)):
        return None
    chosen = await asyncio.to_thread(chat.session.load, rest)  # a recording or a model's file is read for it
    agent.use(chosen)
    chat.tally.switch_model(agent.thread, chosen.name)
    chat.note(f"The model is {chosen.name} from now on.")

    with contextlib.suppress(ConfigError):  # a state folder that cannot be written ends nothing
        await asyncio.to_thread(remember_model, rest, chat.session.engine.settings.models)
    return None


async def _pick_model(chat: "Chat") -> str:
    """The name of a model that is chosen from a list; empty where it stays as it is."""
    from ferrule.cli.talk.inventory import NO_MODELS, choices  # for who looks for one

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
    from ferrule.cli.talk.inventory import list_model_names, usable  # for who completes

    settings = chat.session.engine.settings.models
    return list(
        dict.fromkeys(
            (*SHORT, *settings.roles, *list_model_names(settings, usable(settings), {}), *(f"{h}:" for h in ROWS))
        )
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
    return None if rest == now else SessionRestart(resume=chat.resume_id(), dialect=rest)


async def permissions(chat: "Chat", rest: str) -> Next:
    """In place: what runs in the background goes on."""
    session = chat.session
    now = chat.mode()
    if not rest:
        chat.note(f"The permission mode is {now}. /permissions MODE changes it: {', '.join(MODES)}.")
        _show_rules(chat)
        return None

    wanted = parse_mode(rest).name
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
        chat.submit_line(rest)
    if planning.is_on and rest:
        chat.note("Plan mode is on already.")
    elif planning.is_on:
        chat.note(f"Plan mode is off; the permission mode is {planning.leave()}.")
    else:
        entered = planning.enter()
        where = chat.session.engine.jail.display_path(entered.path)
        chat.note(f"Plan mode is on: only reading works, and the plan goes to {where}. /plan ends it.")
    return None


async def undo(chat: "Chat", rest: str) -> Next:
    return await _step(chat, rest, "undo")


async def redo(chat: "Chat", rest: str) -> Next:
    return await _step(chat, rest, "redo")


async def _step(chat: "Chat", rest: str, which: str) -> Next:

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
    chat.say(BLANK, *diff_lines(rows[:_STEERING_MOST_DIFF_ROWS], "  "))
    if len(rows) > _STEERING_MOST_DIFF_ROWS:
        more = len(rows) - _STEERING_MOST_DIFF_ROWS
        chat.say(line(("dim", f"  … {more:,} more line{'s' * (more > 1)}")))
    chat.note(f"{did(which, done)}: {entry_words(done.entry, engine.jail.display_path)}.")
    for note in done.notes:
        chat.note(note)
    if done.is_nothing:
        return None
    step = "undone" if which == "undo" else "redone"
    is_own = engine.need(Journal).wrote(done.entry)
    chat.session.agent.steer(
        f"[The user has {step} {_what(done.entry, engine.jail.display_path, is_own=is_own)}.]", by_user=False
    )
    return None


def _what(entry: JournalEntry, shown: Callable[[str], str], *, is_own: bool) -> str:
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
    chat.note(f"This session did not write it: {entry_words(last, engine.jail.display_path)}, {when(last.time)}.")
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
    return SessionRestart(resume="")


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
    program = await asyncio.to_thread(search.find_rg, outside=(root,))
    if program is None:
        return []
    try:
        return await search.files(program, root, hidden=False)
    except (OSError, ToolFailure):
        return []


_FOREIGN = "changed by somebody else since; `git diff` or /undo may tell more"
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


class _Earlier(NamedTuple):
    """What a file was before a write."""

    raw: bytes | None
    why: str = ""
    """Why nobody can tell; empty where it is known."""


def changes(
    journal: Journal,
    shown: Callable[[str], str],
    only: str = "",
    kept: Callable[[Node], bytes | None] = lambda _: None,
) -> list[str]:
    """One diff a file, in the order in which they were first written; `only` one file, or those in a folder.

    `kept` gives the bytes that a file had before a command, where they are known.
    """
    own = [entry for entry in journal.entries() if journal.wrote(entry)]
    changed = dict.fromkeys(path for entry in own for path in files_of(entry))
    paths = [path for path in changed if _is_below(path, only, shown) and not os.path.isdir(path)]
    return [text for path in paths if (text := _of_file(journal, own, path, shown(path), kept))]


def _is_below(path: str, only: str, shown: Callable[[str], str]) -> bool:
    wanted = os.path.normpath(only)
    return not only or any(name == wanted or name.startswith(wanted + os.sep) for name in (path, shown(path)))


def _of_file(
    journal: Journal, own: Sequence[JournalEntry], path: str, name: str, kept: Callable[[Node], bytes | None]
) -> str:
    now = _contents(path)
    before, why = now, ""
    for entry in reversed(own):
        earlier = _before(journal, entry, path, before, kept)
        if earlier is None:
            continue
        if why := earlier.why:
            break
        before = earlier.raw
    if why and before == now:
        return f"diff --git a/{name} b/{name}\n({why})\n"
    if any(raw is not None and is_binary(raw) for raw in (before, now)):
        return f"Binary file {name} differs.\n" if before != now else ""
    return diff_diff(name, *(None if raw is None else raw.decode(errors="replace") for raw in (before, now)))


def _before(
    journal: Journal, entry: JournalEntry, path: str, now: bytes | None, kept: Callable[[Node], bytes | None]
) -> _Earlier | None:
    """What the file was before this entry; None where the entry is not about it."""
    file = next((one for one in entry.files if one.path == path), None)
    node = next((one for one in entry.nodes if one.path == path), None)
    if file is None:
        return None if node is None else _before_command(now, node, entry, kept)
    try:
        raw, fits = _revert_change(now, file, journal.payload(entry), entry)
    except DamagedError:
        return _Earlier(now, _FOREIGN)
    return _Earlier(raw, "" if fits else _FOREIGN)


def _by_command(entry: JournalEntry) -> str:
    return f"changed by a command: {command_words(entry)}" if entry.kind == "command" else "changed by a command"


def _before_command(
    now: bytes | None, node: NodeChange, entry: JournalEntry, kept: Callable[[Node], bytes | None]
) -> _Earlier:
    unknown = _Earlier(now, _by_command(entry))
    was, became = node.before, node.after
    if any(one is not None and one.kind != "file" for one in (was, became)):
        return unknown
    if became is not None and became.is_unkept:
        return unknown
    if (None if now is None else fingerprint(now)) != (None if became is None else became.content):
        return _Earlier(now, _FOREIGN)
    if was is None:
        return _Earlier(None)
    raw = kept(was)
    return unknown if raw is None else _Earlier(raw)


def _revert_change(
    now: bytes | None, file: FileChange, payload: bytes, entry: JournalEntry
) -> tuple[bytes | None, bool]:
    """What the file was before this write; false where it is not what the write has left."""
    if (None if now is None else fingerprint(now)) != file.after:
        return now, False
    if file.before is None:
        return None, True
    at = 0
    for one in entry.files:
        if one.path == file.path:
            break
        at += one.old + one.new
    old, base = payload[at : at + file.old], now or b""
    return base[: file.start] + old + base[file.start + file.new :], True


def _contents(path: str) -> bytes | None:
    try:
        # What was a file may be a pipe by now: nobody waits for it.
        descriptor = os.open(path, _READ)
    except OSError:
        return None
    try:
        return read_all(descriptor) if is_regular(descriptor) else None
    except OSError:
        return None
    finally:
        os.close(descriptor)


BACK = "back"
_STAYED = (
    "[The user has gone back to this point of the conversation. The files stayed as they are: what was changed behind "
    "this point is still there.]"
)
_CHOICES = {"b": "oth", "f": "iles", "c": "onversation", "n": "othing"}


async def rewind(chat: "Chat", rest: str) -> Next:
    """To the prompt of this number, or to one of a list; `back` takes the last rewind of the conversation back."""
    if rest.strip() == BACK:
        _unrewind(chat)
        return None
    agent, journal = chat.session.agent, chat.session.engine.need(Journal)
    entries = await asyncio.to_thread(journal.entries)
    prompts = list_points(agent.talk.past, entries, agent.thread)
    if not prompts:
        chat.note("Nothing was said in this conversation yet.")
        return None
    said = rest.strip() or await _ask_prompt(chat, prompts)
    if said == BACK:
        _unrewind(chat)
    elif said:
        found = next((one for one in prompts if said == str(one.prompt.number)), None)
        if found is None:
            chat.note(f"There is no prompt {said}: they are numbered from 1 to {prompts[-1].prompt.number}.")
        else:
            await _rewind(chat, found)
    return None


async def _ask_prompt(chat: "Chat", prompts: list[RewindPoint]) -> str:
    """What is typed to a list of the prompts."""
    column = len(str(prompts[-1].prompt.number))
    chat.say(BLANK)
    if len(prompts) > MOST_PROMPTS:
        chat.note(f"… {len(prompts) - MOST_PROMPTS:,} earlier ones: /rewind NUMBER goes back to one.")
    for one in prompts[-MOST_PROMPTS:]:
        chat.say(line(("cyan bold", f"  {one.prompt.number:>{column}}  "), one.words()))
    has_left = bool(chat.session.agent.talk.past.left)
    back = f", {BACK} to take back the last rewind of the conversation" if has_left else ""
    said = await chat.front.words(f"Back to before which one? (a number{back}; nothing to stay)")
    return (said or "").strip()


async def _rewind(chat: "Chat", one: RewindPoint) -> None:
    engine, number = chat.session.engine, one.prompt.number
    try:
        preview = await preview_rewind(engine, number)
    except ToolFailure as error:
        chat.note(error.message)
        return
    chat.say(BLANK, *(sentence(f"  {row}") for row in preview_rows(preview, engine.jail.display_path)))
    has_files, has_talk = bool(preview.changes or preview.by_hand), one.prompt.place != "gone"
    if not has_talk:
        chat.note(f"Prompt {number} was summed up, so the conversation stays as it is.")
    offered = {"b": has_files and has_talk, "f": has_files, "c": has_talk, "n": True}
    if not (has_files or has_talk):
        return
    keys = [(key, rest) for key, rest in _CHOICES.items() if offered[key]]
    key = await chat.stoppable(chat.front.key(f"Go back to before prompt {number}?", keys))
    if key not in {"b", "f", "c"}:
        chat.note("Nothing was changed.")
        return
    over = False
    if key in {"b", "f"} and preview.by_hand:
        wanted = chat.front.key("Over what you changed by hand?", [("y", "es"), ("n", "o, leave that alone")])
        answer = await chat.stoppable(wanted)
        if answer is None:
            chat.note("Nothing was changed.")
            return
        over = answer == "y"
    await _go(chat, number, key, over=over)


async def _go(chat: "Chat", number: int, key: str, *, over: bool) -> None:
    """Files first: where they cannot go back, the conversation stays with them."""
    engine, agent = chat.session.engine, chat.session.agent
    changed: tuple[str, ...] = ()
    if key in {"b", "f"}:
        try:
            done: Rewind = await engine.rewind(number, over=over)
        except ToolFailure as error:
            chat.note(error.message)
            return
        changed = tuple(change.path for change in done.changes)
        how = " /undo takes that back." if done.entry else ""
        chat.note(f"{describe_rewind(done, number)}{how}")
    if key == "f":
        if changed:
            names = names_of(changed, engine.jail.display_path)
            agent.steer(
                f"[The user has taken files back to what they were before an earlier message: {names}.]", by_user=False
            )
        return
    try:
        text = agent.rewind(number)
    except FerruleError as error:
        chat.note(str(error))
        return
    chat.note(f"The conversation is before prompt {number} now. /rewind {BACK} takes that back.")
    if key == "c":
        agent.steer(_STAYED, by_user=False)
    chat.front.put_back(text, about=f"Prompt {number}")


def _unrewind(chat: "Chat") -> None:
    agent = chat.session.agent
    if not agent.unrewind():
        chat.note("The conversation was not rewound, so there is nothing to take back.")
        return
    agent.talk.steering = [parts for parts in agent.talk.steering if words_of_parts(parts) != _STAYED]
    chat.note("The conversation is as it was before it was rewound. The files stayed as they are.")
