"""Commands of the user's and the project's files, and prompts of MCP servers, as the chat runs them.

What a file says is a prompt that others may have written. Its `!` lines and its `@` files are calls of the engine, so
they are decided on, asked about and refused as the model's own are. What a server says is plain text.
"""

import os
import re
from typing import TYPE_CHECKING

from ferrule.core.bringing import Bringing
from ferrule.core.call import Call
from ferrule.core.errors import ConfigError, FerruleError, ToolFailure
from ferrule.models.model import ModelError
from ferrule.settings import settings_path
from ferrule.workspace.command_files import FOLDERS, CommandFile, command_files, command_name, markdown_files
from ferrule.workspace.skill import Parameter, shown
from ferrule.workspace.skill_text import MOST_COMMANDS, Unquotable, compose, prompt_arguments

if TYPE_CHECKING:
    from ferrule.cli.talk.chatting import Chat
    from ferrule.sources.mcp.state import OfferedPrompt

_MENTION = r"(?<!\S)@(?P<path>[^\s@`'\"]*[^\s@`'\".,;:!?)])"
_MOST_MENTIONS = 20


def files(chat: "Chat") -> dict[str, CommandFile]:
    """The commands of files by name; a project's only where the user trusts it and its files count at all."""
    engine = chat.session.engine
    home = os.path.expanduser("~")
    folders = [
        *(os.path.join(home, name) for name in FOLDERS),
        os.path.join(os.path.dirname(settings_path()), "commands"),
    ]
    own = engine.jail.folder
    # In the home folder itself the user's commands are the project's, and wait for trust as those do.
    apart = [one for one in folders if os.path.commonpath([os.path.realpath(one), own]) != own]
    trusted = engine.sources.trusted if "project" in engine.settings.sources else {}
    return command_files(own, trusted, apart)


def untrusted(chat: "Chat", name: str) -> str:
    """The file that would describe the command of this name if the user trusted the project; empty without one."""
    engine = chat.session.engine
    if "project" not in engine.settings.sources:
        return ""
    for folder in FOLDERS:
        inside = os.path.join(engine.jail.folder, folder)
        for file in markdown_files(inside):
            if command_name(file, inside) == name and file not in engine.sources.trusted:
                return str(engine.jail.shown(file))
    return ""


def prompts(chat: "Chat") -> "dict[str, OfferedPrompt]":
    """The prompts of servers that the user has approved, as `server:prompt`."""
    servers = chat.session.engine.sources.servers
    return {shown(f"{one.server}:{one.name}"): one for one in (() if servers is None else servers.prompts())}


def completions(chat: "Chat") -> list[tuple[str, str]]:
    """Names, each with what it takes and what it is for."""
    try:
        found = [(name, f"{one.hint}  {one.description}".strip()) for name, one in files(chat).items()]
        for name, prompt in prompts(chat).items():
            hint = " ".join(part if needed else f"[{part}]" for part, _, needed in prompt.arguments)
            found.append((name, shown(f"{hint}  {prompt.words}")))
    except (AttributeError, FerruleError):  # no session is open
        return []
    return found


def values(chat: "Chat", name: str) -> list[str]:
    """What a prompt of a server takes, as `name=`."""
    try:
        prompt = prompts(chat).get(name)
    except (AttributeError, FerruleError):  # no session is open
        return []
    return [] if prompt is None else [f"{part}=" for part, _, _ in prompt.arguments]


async def start(chat: "Chat", name: str, rest: str) -> bool:
    """Run the command of this name as the user's prompt; false where there is none."""
    command = files(chat).get(name)
    prompt = prompts(chat).get(name) if command is None else None
    if command is None and prompt is None:
        return False
    if chat.session.agent.is_running:
        chat.note(f"/{name} can be used when the agent is done; ctrl-C stops it.")
        return True
    typed = f"/{name} {rest}".rstrip()
    try:
        if command is not None:
            await _run(chat, command, rest, typed)
        elif prompt is not None:
            await chat.stoppable(chat.session.agent.run(await _prompted(chat, prompt, rest), written=typed))
    except ToolFailure as error:
        chat.note(error.message)
    return True


async def _prompted(chat: "Chat", prompt: "OfferedPrompt", rest: str) -> str:
    try:
        given = prompt_arguments(rest, [Parameter(*one) for one in prompt.arguments])
    except ValueError as error:
        raise ToolFailure(f"/{shown(f'{prompt.server}:{prompt.name}')} needs {error}.") from error
    text: str = await chat.session.engine.sources.servers.prompt(prompt.server, prompt.name, given)
    return text


async def _run(chat: "Chat", command: CommandFile, rest: str, typed: str) -> None:
    agent = chat.session.agent
    if command.rules and command.layer == "user":
        chat.session.engine.need(Bringing).allow(command.rules)
    elif command.rules:
        chat.note(f"What /{command.name} wants allowed is not allowed by it, for it is a file of the project.")
    text = await chat.stoppable(expanded(chat, command, rest))
    if text is None:
        chat.note("Stopped: nothing was sent.")
        return
    before = agent.model
    if command.model:
        try:
            agent.use(chat.session.load(command.model))
        except (ModelError, ConfigError) as error:
            chat.note(f"{error} {before.name} is asked instead.")
    try:
        await chat.stoppable(agent.run(text, written=typed))
    finally:
        agent.use(before)


async def expanded(chat: "Chat", command: CommandFile, rest: str) -> str:
    """The prompt of a command, with its arguments, what its commands print and what its files hold.

    What was put in is not looked through again. Raises: ToolFailure.
    """
    try:
        composed = compose(command.body, arguments=rest, folder=os.path.dirname(command.file), first=1)
    except Unquotable as error:
        raise ToolFailure(f"/{command.name} was not sent: its arguments cannot be put into `{error}`.") from error
    if len(composed.lines) > MOST_COMMANDS:
        raise ToolFailure(f"/{command.name} has more than {MOST_COMMANDS} commands; none was run.")
    outputs = [await _called(chat, "shell", "command", one) for one in composed.lines]
    # The mentions are those of the file: neither an argument nor an output names one.
    paths = list(dict.fromkeys(found["path"] for found in re.finditer(_MENTION, command.body)))[:_MOST_MENTIONS]
    folder = chat.session.engine.jail.folder
    there = [path for path in paths if os.path.isfile(os.path.join(folder, os.path.expanduser(path)))]
    held = [f"The file {path}:\n```\n{await _called(chat, 'read', 'path', path)}\n```" for path in there]
    return "\n\n".join([composed.text(outputs), *held])


async def _called(chat: "Chat", tool: str, param: str, value: str) -> str:
    """What a call of a tool gives, or why it gives nothing: the rest of the prompt is of use."""
    engine = chat.session.engine
    face = engine.registry.face_of(tool)
    if face is None:
        return f"[{value} was left out: this session has no tool for it.]"
    path = os.path.join(engine.jail.folder, os.path.expanduser(value)) if tool == "read" else value
    (reply,) = await engine.run([Call(face.name, {face.shown_param(param): path})])
    return reply.text if reply.ok else f"[{value}: {reply.text}]"
