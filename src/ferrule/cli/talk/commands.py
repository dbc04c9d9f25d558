"""The commands after a slash: which there are, and finding the one that is meant."""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ferrule.cli.talk.line import BLANK, line, sentence
from ferrule.core.errors import FerruleError
from ferrule.support.near import near

if TYPE_CHECKING:
    from ferrule.cli.talk.chatting import Chat


class Again(NamedTuple):
    """The session is opened again; None leaves a thing as it is."""

    resume: str | None = None
    """A thread, or nothing for a new conversation."""
    dialect: str | None = None
    permission_mode: str | None = None
    model: str | None = None


class Leave(NamedTuple):
    """The user goes."""


Next = Again | Leave | None
"""What a command leads to."""


class Command(NamedTuple):
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


def found(name: str) -> Command | None:
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


def commands() -> dict[str, Command]:
    """All of them, in the order in which help shows them."""
    # These know the chat, and so this file.
    from ferrule.cli.talk import conversations, inventory, looking, prompts, rewinding, steering, task_list, window

    return {
        "help": Command("This list, and the keys.", show_help, while_running=True),
        "model": Command(
            "Choose another model, from a list with windows and prices.", steering.model, "[NAME]", while_running=True
        ),
        "dialect": Command("Show the dialect, or speak another one.", steering.dialect, "[NAME]", looks_alone=True),
        "tools": Command("The tools that the model has.", looking.tools, while_running=True),
        "permissions": Command(
            "Show the permission mode and the rules, or change the mode.",
            steering.permissions,
            "[MODE]",
            looks_alone=True,
        ),
        "plan": Command("Begin plan mode, or end it: only reading.", steering.plan, "[TASK]"),
        "undo": Command("Take back the last write, or what the last command changed.", steering.undo, "[FILE]"),
        "redo": Command("Write again what was undone.", steering.redo, "[FILE]"),
        "rewind": Command("Back to before a prompt: files, conversation or both.", rewinding.rewind, "[NUMBER]"),
        "diff": Command("What this conversation has changed.", looking.diff, "[FILE]", while_running=True),
        "tasks": Command(
            "What runs in the background: see its output, stop it. And todos.",
            task_list.tasks,
            "[ID | stop ID]",
            while_running=True,
        ),
        "ports": Command("Where commands listen, and how you reach it.", task_list.ports, while_running=True),
        "context": Command("What fills the model's window, and cache hits.", window.context, while_running=True),
        "cost": Command("Tokens and money so far, for each model.", window.cost, while_running=True),
        "mcp": Command(
            "MCP servers and their tools; approve or restart one.",
            inventory.mcp,
            "[NAME | connect NAME]",
            while_running=True,
        ),
        "agents": Command("The kinds of subagents, and their models.", inventory.agents, while_running=True),
        "skills": Command("The skills, and where they are from.", inventory.skills, while_running=True),
        "init": Command("Have the agent write AGENTS.md for this project.", prompts.init),
        "review": Command("Review the uncommitted change, a branch or a range.", prompts.review, "[WHAT]"),
        "compact": Command("Sum the conversation up, to make room.", steering.compact, "[FOCUS]"),
        "threads": Command("Earlier conversations of this folder.", conversations.threads, while_running=True),
        "resume": Command("Go on with an earlier conversation, chosen from a list.", conversations.resume, "[ID]"),
        "fork": Command("Go on in a copy of this conversation.", conversations.fork),
        "rename": Command("Give this conversation a title.", conversations.rename, "[TITLE]", while_running=True),
        "export": Command("Write this conversation into a file.", conversations.export, "[FILE]"),
        "clear": Command("Begin a new conversation.", steering.clear),
        "thinking": Command("Show what the model thinks whole, or folded.", steering.thinking, while_running=True),
        "theme": Command("Show the theme, or use other colours.", steering.theme, "[NAME]", while_running=True),
        "exit": Command("Leave.", leave),
    }


def values_of(chat: "Chat", name: str) -> Sequence[str]:
    """What can stand behind a command, for completion."""
    from ferrule.cli.talk import inventory, own_commands, prompts, steering, task_list  # as above
    from ferrule.cli.talk.theme import NAMES
    from ferrule.dialects.dialect import FAMILIES

    known: dict[str, Callable[[], Sequence[str]]] = {
        "dialect": lambda: list(FAMILIES),
        "permissions": lambda: list(steering.MODES),
        "model": lambda: steering.model_names(chat),
        "tasks": lambda: task_list.values(chat),
        "theme": lambda: list(NAMES),
        "mcp": lambda: inventory.server_values(chat),
        "review": lambda: prompts.branches(chat.session.engine.jail.folder),
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
