"""The commands after a slash: which there are, and finding the one that is meant."""

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

from ferrule.cli.talk.line import BLANK, sentence
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
    from ferrule.cli.talk import looking, rewinding, steering  # which know the chat, and so this file

    return {
        "help": Command("This list, and the keys.", show_help, while_running=True),
        "model": Command("Show the model, or use another one.", steering.model, "[NAME]", looks_alone=True),
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
        "tasks": Command("Commands and subagents in the background, and todos.", looking.tasks, while_running=True),
        "cost": Command("Tokens and money so far.", looking.cost, while_running=True),
        "compact": Command("Sum the conversation up, to make room.", steering.compact, "[FOCUS]"),
        "threads": Command("Earlier conversations of this folder.", looking.threads, while_running=True),
        "resume": Command("Go on with an earlier conversation.", steering.resume, "[ID]"),
        "clear": Command("Begin a new conversation.", steering.clear),
        "thinking": Command("Show what the model thinks whole, or folded.", steering.thinking, while_running=True),
        "exit": Command("Leave.", leave),
    }


async def show_help(chat: "Chat", _: str) -> Next:
    chat.say(BLANK)
    for name, command in commands().items():
        head = f"/{name} {command.takes}".rstrip()
        chat.say(sentence(("cyan", f"  {head:<20}"), command.about))
    chat.say(BLANK)
    for keys, about in _KEYS:
        chat.say(sentence(("cyan", f"  {keys:<20}"), about))
    chat.say(BLANK)
    return None


async def leave(chat: "Chat", _: str) -> Next:  # noqa: ARG001 - every command gets them
    return Leave()


_KEYS = (
    ("Enter", "send; while the agent works, tell it something"),
    ("esc Enter, ctrl-J", "a new line"),
    ("up, ctrl-R", "what was typed before; look for it"),
    ("@", "a file of the workspace; tab completes"),
    ("ctrl-C", "stop what runs; twice at an empty line, leave"),
    ("ctrl-D", "leave"),
)
