"""Implement the commands that list and choose: servers, subagents, skills, tasks, models and conversations.

`/mcp`, `/agents` and `/skills` show what the session has beside its tools. `/tasks` and `/ports` show and stop
background work, with its output and its ports. The models that can be asked are listed with their host, their
window and their cost.
"""

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import msgspec

from ferrule.agent.subagents import model_name
from ferrule.cli.talk.commands import Next, SessionRestart
from ferrule.cli.talk.events import seconds, tokens
from ferrule.cli.talk.picker import PickerRow, Scope
from ferrule.cli.talk.status import home_short
from ferrule.cli.talk.text import BLANK, Line, cut, line, sentence, wide
from ferrule.cli.threads import export_form, render_export, write_export
from ferrule.core.errors import ConfigError, FerruleError, ToolFailure, near
from ferrule.core.services import Subagents, Worked
from ferrule.models import ModelError
from ferrule.models.catalog import CATALOG, SHORT, about
from ferrule.models.hosts import Host, find_host, host_names, models_here, stored_key
from ferrule.models.http import HttpModel
from ferrule.permissions import visible
from ferrule.sandbox.confinement import Confinement
from ferrule.system.proc import find_listeners
from ferrule.system.sqlite import UnusableError
from ferrule.system.tasks import Task, Tasks
from ferrule.tools.agents import BUILT_IN, AgentFiles, AgentKinds
from ferrule.tools.skills import Skills
from ferrule.tools.threads import Item, Thread, ThreadMetadata, count_noun, parse_thread_id, when
from ferrule.tools.threads.store import ThreadStore
from ferrule.tools.todos import Todos, todo_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ferrule.cli.talk.chat import Chat
    from ferrule.models import Model
    from ferrule.settings import Models
    from ferrule.sources.mcp import ServerState
    from ferrule.sources.mcp.servers import McpTool, Servers


_CONNECT = "connect"
_STATES = {
    "disabled": ("dim", "switched off"),
    "denied": ("red", "denied"),
    "new": ("yellow", "not approved"),
    "changed": ("yellow", "changed"),
    "unlisted": ("dim", "not started"),
    "listed": ("green", "ready"),
    "running": ("green", "running"),
}
_MOST_TOOLS = 100
_MOST_NAMED = 8


async def mcp(chat: "Chat", rest: str) -> Next:
    """All servers; with a name one of them with its tools; with `connect` before it, it is started anew."""
    servers: Servers | None = chat.session.engine.sources.servers
    if servers is None:
        chat.note("No MCP server is configured here. `ferrule mcp add NAME -- COMMAND` adds one.")
        return None
    words = rest.split()
    if len(words) == 2 and words[0] == _CONNECT:
        await _connect(chat, servers, words[1])
    elif not words:
        _list(chat, servers)
    elif len(words) == 1 and words[0] != _CONNECT:
        if (state := _state(chat, servers, words[0])) is not None:
            _one(chat, servers, state)
    else:
        chat.note("Write /mcp, /mcp NAME for one with its tools, or /mcp connect NAME to approve or restart it.")
    return None


def server_values(chat: "Chat") -> list[str]:
    """What can stand behind `/mcp`."""
    servers = chat.session.engine.sources.servers
    names = [] if servers is None else [one.name for one in servers.states()]
    return [*names, *(f"{_CONNECT} {name}" for name in names)]


def _list(chat: "Chat", servers: "Servers") -> None:
    states = servers.states()
    column = max(len(one.name) for one in states) if states else 0
    chat.say(BLANK)
    for one in states:
        style, word = _STATES.get(one.state, ("dim", one.state))
        if one.error:
            style, word = "red", "failed"
        count = f"{one.tools} tools" if one.state in {"listed", "running"} else ""
        where = f"{one.transport} · {home_short(one.source)}"
        chat.say(line(("cyan", f"  {one.name:<{column}}  "), (style, f"{word:<13}"), f"{count:<10}", ("dim", where)))
        if why := _why(one):
            chat.say(sentence(("dim", f"    {why}")))
    if not states:
        chat.say(line(("dim", "  No MCP server is configured here.")))
    chat.say(
        sentence(("dim", "  /mcp NAME shows its tools, /mcp connect NAME approves, starts or restarts it.")), BLANK
    )


def _why(state: "ServerState") -> str:
    """Why it is not used, or not all of it; empty where nothing is amiss."""
    if state.error:
        return state.error
    if state.state in {"new", "changed"}:
        what = "has changed since it was approved" if state.state == "changed" else "was never approved"
        return f"It {what}, so nothing of it is started: /mcp connect {state.name} shows it and asks."
    if state.state in {"disabled", "denied"}:
        return f"It is {_STATES[state.state][1]} in {home_short(state.source)}."
    parts = []
    if state.withheld:
        parts.append(f"Withheld, for they are new or changed: {_join_names(state.withheld)}.")
    if state.quarantined:
        parts.append(f"Not usable: {_join_names([f'{name} ({why})' for name, why in state.quarantined])}.")
    if state.is_guidance_withheld:
        parts.append("Its instructions are withheld, for they were not approved as they are.")
    if parts and (state.withheld or state.is_guidance_withheld):
        parts.append(f"/mcp connect {state.name} asks about that.")
    return " ".join(parts)


def _join_names(names: Any) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _state(chat: "Chat", servers: "Servers", name: str) -> "ServerState | None":
    states = {one.name: one for one in servers.states()}
    if name not in states:
        meant = near(name, states, most=1)
        hint = f"Did you mean {meant[0]}?" if meant else f"There are: {', '.join(states)}."
        chat.note(f"There is no MCP server {name}. {hint}")
    return states.get(name)


def _one(chat: "Chat", servers: "Servers", state: "ServerState") -> None:
    style, word = _STATES.get(state.state, ("dim", state.state))
    chat.say(BLANK, line(("bold", f"  {state.name}  "), (style, word)))
    chat.say(sentence(("dim", f"  {state.transport}, from the {state.layer}: {home_short(state.source)}")))
    if why := _why(state):
        chat.say(sentence(("yellow", f"  {why}")))
    tools = [cast("McpTool", one) for one in servers.source_tools().tools if one.origin == state.name]
    column = max((len(one.tool) for one in tools), default=0)
    for one in tools[:_MOST_TOOLS]:
        first = (one.words or "").strip().partition("\n")[0]
        chat.say(sentence(("cyan", f"  {one.tool:<{column}}"), ("dim", f"  {first}")))
    if len(tools) > _MOST_TOOLS:
        chat.say(line(("dim", f"  … {len(tools) - _MOST_TOOLS:,} more")))
    if state.guidance_chars:
        chat.say(line(("dim", f"  Its instructions stand in the system prompt ({state.guidance_chars:,} characters).")))
    chat.say(BLANK)


async def _connect(chat: "Chat", servers: "Servers", name: str) -> None:
    """Ask about what is not approved, and start it again."""
    state = _state(chat, servers, name)
    if state is None:
        return
    if state.state in {"disabled", "denied"}:
        chat.note(_why(state))
        return
    if chat.session.agent.is_running:
        chat.note("/mcp connect can be used when the agent is done; ctrl-C stops it.")
        return
    await servers.stop(name)
    started = chat.session.engine.connect([name])
    await chat.stoppable(started, f"starting {name}; ctrl-C stops that")
    now = next(one for one in servers.states() if one.name == name)
    if now.error:
        chat.note(now.error)
    elif now.state == "running":
        withheld = f" {_why(now)}" if _why(now) else ""
        chat.note(f"{name} runs, with {now.tools} tool{'' if now.tools == 1 else 's'}.{withheld}")
    else:
        chat.note(f"{name} was not started. {_why(now)}".rstrip())


async def agents(chat: "Chat", _: str) -> Next:
    """The kinds of subagents: what each is for, which model runs it, where it was found."""
    session = chat.session
    files: AgentFiles | None = None
    try:
        files = session.engine.need(AgentFiles)
    except (TypeError, FerruleError):
        files = None
    kinds = AgentKinds(files)
    names = await asyncio.to_thread(kinds.names)
    described = {} if files is None else {one.agent.name: one for one in files.all()}
    own, roles = session.agent.model.name, session.engine.settings.models.roles
    column = max(map(len, names), default=0)
    chat.say(BLANK)
    for name in names:
        kind = kinds.get(name)
        model = model_name(kind, roles, own)
        where = home_short(session.engine.jail.display_path(described[name].file)) if name in described else "built in"
        if name in described and name in BUILT_IN:
            where += ", in the place of the one that is built in"
        tools = "all tools" if kind.tools is None else _join_names([str(tool) for tool in kind.tools])
        held = " · only reads" if kind.mode == "plan" else ""
        chat.say(line(("cyan", f"  {name:<{column}}  "), model or f"{own} (the session's)", ("dim", f"  {where}")))
        chat.say(sentence(("dim", f"    {kind.description}")))
        chat.say(sentence(("dim", f"    {tools}{held}")))
    for warning in () if files is None else files.warnings:
        chat.say(sentence(("yellow", "  ! "), ("dim", warning)))
    chat.say(BLANK, sentence(("dim", "  A file NAME.md in .claude/agents or .ferrule/agents adds one.")), BLANK)
    return None


async def skills(chat: "Chat", _: str) -> Next:
    """The skills: what each is for, whose it is, and who may start it."""
    try:
        found: Any = chat.session.engine.need(Skills)
        every = await asyncio.to_thread(found.all)
    except ToolFailure as error:
        chat.note(error.message)
        return None
    except (TypeError, FerruleError):
        chat.note("This session has no skills.")
        return None
    chat.say(BLANK)
    column = max((len(one.name) for one in every), default=0)
    for one in every:
        where = (
            f"server {one.place}"
            if one.layer == "server"
            else home_short(chat.session.engine.jail.display_path(one.folder))
        )
        marks = [where]
        marks += (
            ["not trusted: it brings no rules, tools or servers"] if one.layer == "project" and not one.trusted else []
        )
        marks += ["for the model alone"] if not one.for_user else []
        marks += ["for you alone"] if not one.for_model else []
        rows: list[Line] = [
            line(
                ("cyan", f"  {one.name:<{column}}"),
                ("dim", f"  {one.hint}  " if one.hint else "  "),
                ("dim", " · ".join(marks)),
            ),
            sentence(("dim", f"    {one.description}")),
        ]
        chat.say(*rows)
    for warning in found.warnings:
        chat.say(sentence(("yellow", "  ! "), ("dim", warning)))
    if not every:
        chat.say(
            sentence(
                ("dim", "  There are no skills: a folder with a SKILL.md in .claude/skills or .agents/skills is one.")
            )
        )
    chat.say(BLANK)
    return None


T = TypeVar("T")
_STOP = "stop"
_READ_CHARS = 1 << 20
_STYLES = {"running": "yellow", "completed": "green"}


async def tasks(chat: "Chat", rest: str) -> Next:
    """All of them; with an id what that one has printed, and with `stop` before it its end."""
    words = rest.split()
    if not words:
        await _show(chat)
    elif words[0] == _STOP and len(words) > 1:
        for name in words[1:]:
            await _stop(chat, name)
    elif words[0] == _STOP:
        await _stop_one(chat)
    elif len(words) > 1:
        chat.note("Write /tasks, /tasks ID for what one has printed, or /tasks stop ID.")
    else:
        await _print(chat, words[0])
    return None


def values(chat: "Chat") -> list[str]:
    """What can stand behind the command."""
    engine = chat.session.engine
    running = [one.id for one in engine.need(Tasks).list() if not one.running.ended]
    running += [one.id for one in _agents(chat) if one.status == "running"]
    every = [one.id for one in engine.need(Tasks).list()] + [one.id for one in _agents(chat)]
    return [*every, *(f"{_STOP} {one}" for one in running)]


async def _show(chat: "Chat") -> None:
    engine = chat.session.engine
    commands, agents = engine.need(Tasks).list(), _agents(chat)
    rows: list[Line] = [*map(_task, commands), *map(_agent_line, agents)]
    if rows:
        how = "/tasks ID shows what one has printed"
        is_running = any(not one.running.ended for one in commands) or any(one.status == "running" for one in agents)
        rows.append(sentence(("dim", f"  {how}{', /tasks stop ID stops one' if is_running else ''}.")))
    try:
        todos = _maybe(lambda: engine.need(Todos))
        rows += [line(f"  {text}") for text in todo_lines(await todos.all() if todos is not None else ())]
    except ToolFailure as error:
        rows.append(line(("dim", f"  {error.message}")))
    chat.say(BLANK, *(rows or [line(("dim", "  Nothing runs in the background, and nothing is left to do."))]), BLANK)


def _agents(chat: "Chat") -> tuple[Worked, ...]:
    return _maybe(lambda: chat.session.engine.need(Subagents).list()) or ()


def _maybe(need: Callable[[], T]) -> T | None:
    """A service that a session may lack."""
    try:
        return need()
    except (TypeError, FerruleError):
        return None


def _task(task: Task) -> Line:
    style = _STYLES.get(task.status, "red")
    code = task.running.result().exit_code if task.running.ended else None
    how = f" · exit {code}" if code is not None else ""
    return line(
        (style, f"  {task.status:<10}"),
        f"{task.id}  ",
        ("give", _command(task)),
        ("dim give", f"  ({described})" if (described := task.description.strip()) else ""),
        ("dim", f"  {seconds(task.took_seconds)}{how}"),
    )


def _command(task: Task) -> str:
    """What runs, and not what the model says of it."""
    return " ".join(task.command.split())


def _agent_line(one: Worked) -> Line:
    style = _STYLES.get(one.status, "red")
    facts = f"  {one.turns} answers · {tokens(one.input_tokens + one.output_tokens)} tokens · {seconds(one.seconds)}"
    words = f"{one.name} {one.description}".rstrip()
    return line((style, f"  {one.status:<10}"), f"{one.id}  ", ("give", words), ("dim", facts))


def _find_task(chat: "Chat", name: str) -> Task | Worked | None:
    """By its id, or by the beginning of only one; a note says where there is none."""
    every: dict[str, Task | Worked] = {one.id: one for one in chat.session.engine.need(Tasks).list()}
    every |= {one.id: one for one in _agents(chat)}
    alike = [one for one in every if one.startswith(name)]
    if name not in every and len(alike) != 1:
        meant = near(name, every, most=1)
        hint = (
            f" Did you mean {meant[0]}?" if meant else " /tasks lists them." if every else " Nothing was left running."
        )
        chat.note(f"There is no task {name}.{hint}")
        return None
    return every[name if name in every else alike[0]]


async def _print(chat: "Chat", name: str) -> None:
    found = _find_task(chat, name)
    if isinstance(found, Task):
        await chat.front.page(_output(found))
    elif found is not None:
        await chat.front.page(
            [f"{found.name} {found.description}\n\n{found.text or found.why or '(It has said nothing yet.)'}\n"]
        )


def _output(task: Task) -> Iterator[str]:
    """The command and all that it has printed: its log where it has one, else what is kept of it."""
    finished = task.running.result()
    how = "it runs" if not task.running.ended else f"exit {finished.exit_code}"
    yield f"{task.id}  {task.command}\n{task.cwd} · {how} · {seconds(task.took_seconds)}\n\n"
    whole = 0
    if task.log is not None and os.path.isfile(task.log):
        with open(task.log, encoding="utf-8", errors="replace") as file:
            while piece := file.read(_READ_CHARS):
                whole += len(piece)
                yield piece
    if not whole:
        yield finished.text + finished.errors or "(It has printed nothing.)\n"


async def _stop(chat: "Chat", name: str) -> None:
    found = _find_task(chat, name)
    if isinstance(found, Task):
        did = await chat.session.engine.need(Tasks).stop(found)
        label = _command(found)
    elif found is not None:
        did = found.status == "running"
        await chat.session.engine.need(Subagents).stop(found.id)
        label = f"{found.name} {found.description}".rstrip()
    else:
        return
    if not did:
        chat.note(f"{found.id} had ended already.")
        return
    chat.note(f"Stopped: {found.id} ({label}).")
    chat.session.agent.steer(f"[The user has stopped the task {found.id} ({label}).]", by_user=False)


async def _stop_one(chat: "Chat") -> None:
    """The one that runs; of several the user says which."""
    running = [one.id for one in chat.session.engine.need(Tasks).list() if not one.running.ended]
    running += [one.id for one in _agents(chat) if one.status == "running"]
    if len(running) == 1:
        await _stop(chat, running[0])
    elif running:
        chat.note(f"Say which one: /tasks stop {' or '.join(running)}.")
    else:
        chat.note("Nothing runs in the background.")


async def ports(chat: "Chat", _: str) -> Next:
    """Where commands of the session listen, who opened it, and how the user reaches it."""
    engine = chat.session.engine
    running = [one for one in engine.need(Tasks).list() if not one.running.ended]
    opened = await asyncio.to_thread(_map_ports, [(task, task.running.pids()) for task in running])
    machine = _maybe(lambda: engine.need(Confinement).machine_or_none)
    inside = {} if machine is None else {one.port: str(one) for one in machine.listeners()}
    forwarded = set() if machine is None else set(machine.forwarded)
    every = {**{port: f"{host}:{port}" for port, (host, _) in opened.items()}, **inside}
    rows: list[Line] = []
    for port, where in sorted(every.items()):
        if port in inside and port not in forwarded:
            how = ("yellow", "not forwarded: reached by this session's commands alone")
        else:
            how = ("green", f"http://127.0.0.1:{port}/")
        rows.append(line(("cyan", f"  {where:<18}"), how))
        task = opened[port][1] if port in opened else None
        by = "a command of this session" if task is None else f"{task.id}  {_command(task)}"
        rows.append(sentence(("dim", f"    {by}")))
    if any(port not in forwarded for port in inside):
        rows.append(
            sentence(
                ("dim", "  sandbox.forward decides which ports are forwarded; those of well-known services are not.")
            )
        )
    chat.say(BLANK, *(rows or [line(("dim", "  No command of this session listens on a port."))]), BLANK)
    return None


def _map_ports(running: Iterable[tuple[Task, list[int]]]) -> dict[int, tuple[str, Task]]:
    """Port → where it is open, and the task that has opened it."""
    return {port: (host, task) for task, pids in running for port, host in find_listeners(pids).items()}


_LIST_SECONDS = 10.0
_COLUMN = 35
NO_MODELS = (
    "No host has a key, and no model server answers on this machine. Set a key such as ANTHROPIC_API_KEY, keep one "
    "with `ferrule login HOST`, or start ollama; /model NAME takes any name."
)


async def choices(settings: "Models", now: "Model") -> tuple[list[PickerRow], Scope]:
    """The rows of the models that are known, and a second set: all that the hosts list, asked for when it is wanted."""
    hosts, here = await asyncio.gather(
        asyncio.to_thread(usable, settings), asyncio.to_thread(models_here, settings, os.environ)
    )
    names = list_model_names(settings, hosts, here)
    if now.name not in names:
        names.insert(0, now.name)

    async def rows() -> list[PickerRow]:
        listed = await asyncio.gather(*(_list_host_models(host, settings) for host in hosts))
        all_of_them = [name for several in listed for name in several]
        local = [f"{host}:{name}" for host, several in here.items() for name in several]
        return [_model_row(name, settings, now) for name in dict.fromkeys((*local, *all_of_them))]

    return [_model_row(name, settings, now) for name in names], Scope(
        "all that the hosts list", "the models that are known", rows
    )


def usable(settings: "Models") -> list[Host]:
    """The hosts whose keys are set, and those of the settings that want none."""
    found = []
    for name in host_names(settings):
        try:
            host = find_host(name, settings, os.environ, stored_key)
        except ConfigError:
            continue  # `ferrule models` says what is wrong with it
        if host.key or (name in settings.hosts and not host.key_env):
            found.append(host)
    return found


def list_model_names(settings: "Models", hosts: Iterable[Host], here: dict[str, list[str]]) -> list[str]:
    """Whole names: what the settings name, the models of this machine, and those of the catalog at each host."""
    names = [name for name in (settings.default, *settings.roles.values()) if ":" in name]
    names += [f"{host}:{name}" for host, several in here.items() for name in several]
    whole = dict.fromkeys(SHORT.values())
    for host in hosts:
        names += [name for name in whole if name.partition(":")[0] == host.name]
        if host.name != "openai-chat":  # the same models as openai's, over an older API
            begins = host.row.begins
            names += [
                f"{host.name}:{one.begins}"
                for one in CATALOG
                if one.prices is not None and one.begins.startswith(begins or ("\0",)) and not _is_short(one.begins)
            ]
        if host.row.default:
            names.append(f"{host.name}:{host.row.default}")
    return list(dict.fromkeys(names))


def _is_short(begins: str) -> bool:
    """Is it only the beginning of a name that a short one stands for?"""
    whole = (name.partition(":")[2] for name in SHORT.values())
    return any(about(name, {}).begins == begins and name != begins for name in whole)


def _model_row(name: str, settings: "Models", now: "Model") -> PickerRow:
    found = about(name.partition(":")[2], settings.known)
    if name == now.name:
        found = found._replace(window=now.window, prices=now.prices)
    prices = found.prices
    short = ", ".join(one for one, meant in {**SHORT, **settings.roles}.items() if meant == name)
    host = name.partition(":")[0]
    if prices is not None:
        price = f"${prices.input:g} / ${prices.output:g}"
        cached = f", ${prices.cache_read:g} cached" if prices.cache_read < prices.input else ""
        detail = f"${prices.input:g} in, ${prices.output:g} out{cached}, for a million tokens."
    else:
        price = "on this machine" if host in _LOCAL else "no prices known"
        detail = f"Its prices are not known. Its window is taken to be {tokens(found.window)} tokens."
    shown = visible(name)
    mark = "  now" if name == now.name else f"  {short}" if short else ""
    gap = " " * max(0 if mark else 2, _COLUMN - len(shown) - len(mark))
    window = f"{tokens(found.window):>7}  "
    return PickerRow(
        name, line(shown, gap, ("cyan", mark), ("dim", window), ("dim give", price)), f"{shown} {short} {price}", detail
    )


_LOCAL = frozenset({"ollama", "llamacpp", "vllm", "lmstudio", "local"})


async def _list_host_models(host: Host, settings: "Models") -> list[str]:
    """What a host says that it has; nothing where it does not answer in time."""
    model = HttpModel(host, "", about("", {}), settings)
    try:
        async with asyncio.timeout(_LIST_SECONDS):
            return [f"{host.name}:{name}" for name in await model.names()]
    except (ModelError, TimeoutError):
        return []
    finally:
        await model.close()


_MOST_THREADS = 1_000
_MOST_LISTED = 15
_AGES = ((60.0, 60, "m"), (3_600.0, 24, "h"), (86_400.0, 14, "d"), (7 * 86_400.0, 52, "w"))
_BRANCH_COLUMNS = 14
_FOLDER_COLUMNS = 16
_WIDE_COLUMNS, _WIDER_COLUMNS = 80, 100
"""A narrower terminal shows less beside the titles."""


class _Columns(NamedTuple):
    """How wide what stands before the titles is; 0 for what has no room."""

    prompts: int
    branch: int
    folder: int


async def resume(chat: "Chat", rest: str) -> Next:
    """Go on with another conversation: by its id, or chosen from a list, which words behind the command filter."""
    if rest and (thread := await _by_id(chat, rest)):
        return _go_on(chat, thread)
    here = await _rows(chat, every=False)
    other = Scope("all folders", "this folder", lambda: _rows(chat, every=True))
    if rest and not any(row.has(rest.casefold().split()) for row in here):
        here = [row for row in await other.rows() if row.has(rest.casefold().split())]
        if not here:
            chat.note(f"No other conversation of any folder has “{rest}” in its title, folder, branch or last words.")
            return None
        chat.note(f"None of this folder has “{rest}”; these are of other folders.")
    if not here and not await other.rows():
        chat.note("There are no earlier conversations.")
        return None
    chosen = await chat.front.pick("Which conversation?", here, other=other, query=rest)
    return None if chosen is None else _go_on(chat, chosen)


async def _by_id(chat: "Chat", name: str) -> str:
    """The conversation that an id means; empty for words. Raises `FerruleError` for an id that means none, or many."""
    wanted = parse_thread_id(name)
    found = await _ask_store(lambda store: store.find_ids(name), chat) if wanted else ()
    if len(found) == 1:
        return str(found[0])
    if len(found) > 1:
        raise FerruleError(f"{name} is the beginning of several ids: {', '.join(found)}. Give more of it.")
    if name.isdecimal() or name.strip().lower().lstrip("@").startswith("t-"):
        raise FerruleError(
            f"There is no conversation with the id {name}: an id is as T-a27930f2, or six characters of it. "
            "/resume without one lists them to choose from."
        )
    return ""


def _go_on(chat: "Chat", thread: str) -> Next:
    if thread == chat.session.agent.thread:
        chat.note("That is this conversation.")
        return None
    return SessionRestart(resume=thread)


async def _rows(chat: "Chat", *, every: bool) -> list[PickerRow]:
    """The conversations of this folder and those below it, or of all, as rows; the newest first."""
    folder = None if every else chat.session.engine.jail.folder
    found = await _ask_store(lambda store: store.list(limit=_MOST_THREADS, workspace=folder), chat)
    found = [about for about in found if about.id != chat.session.agent.thread]
    width = chat.front.width
    longest = max((wide(about.branch) for about in found), default=0)
    columns = _Columns(
        prompts=11 if width >= (_WIDER_COLUMNS if every else _WIDE_COLUMNS) else 0,
        branch=min(longest, _BRANCH_COLUMNS if width >= _WIDE_COLUMNS else 0 if every else 10),
        folder=(_FOLDER_COLUMNS if width >= _WIDE_COLUMNS else 12) if every else 0,
    )
    now = time.time()
    return [_thread_row(about, now, columns) for about in found]


def _thread_row(about: ThreadMetadata, now: float, columns: _Columns) -> PickerRow:
    folder = home_short(about.workspace)
    last = about.last_answer or about.last_prompt
    # Shown as they are: what a model or a file has called something is made harmless by `line`.
    parts = [f"{age(about.updated, now):>4}"]
    if columns.prompts:
        parts.append(f"{count_noun(about.prompts, 'prompt'):>{columns.prompts}}")
    if columns.branch:
        parts.append(_pad_column(about.branch, columns.branch))
    if columns.folder:
        parts.append(_pad_column(os.path.basename(about.workspace), columns.folder))
    facts = [about.size, about.id[:10], *([folder] if columns.folder else []), *([f"“{last}”"] if last else [])]
    return PickerRow(
        about.id,
        line(("dim", "  ".join(parts) + "  "), about.title or "(no title)"),
        search=f"{about.title} {folder} {about.branch} {about.last_prompt} {about.last_answer} {about.id[:10]}",
        detail=" · ".join(facts),
    )


def _pad_column(text: str, columns: int) -> str:
    shown = cut(" ".join(text.split()), columns)
    return shown + " " * (columns - wide(shown))


def age(then: float, now: float) -> str:
    """How long ago something was, in four columns: `now`, `5m`, `3h`, `2d`, `6w`, or a year and a month."""
    seconds = max(0.0, now - then)
    if seconds < _AGES[0][0]:
        return "now"
    for unit, most, sign in _AGES:
        if seconds < unit * most:
            return f"{int(seconds // unit)}{sign}"
    return time.strftime("%b%y", time.localtime(then))


async def threads(chat: "Chat", _: str) -> Next:
    """The newest conversations of this folder."""
    folder = chat.session.engine.jail.folder
    found = await _ask_store(lambda store: store.list(limit=_MOST_LISTED, workspace=folder), chat)
    chat.say(BLANK, *map(_thread_line, found))
    if not found:
        chat.note("There are no earlier conversations of this folder.")
    chat.say(BLANK)
    return None


def _thread_line(about: ThreadMetadata) -> Line:
    facts = f"{when(about.updated)}  {about.id[:10]}  {count_noun(about.prompts, 'prompt'):>11}  "
    return line(("dim", f"  {facts}"), about.title or "(no title)")


async def _ask_store(ask: "Callable[[ThreadStore], Sequence[T]]", chat: "Chat") -> "Sequence[T]":
    """What the store of conversations has. Raises `FerruleError` if it cannot be used."""
    store = chat.session.engine.need(ThreadStore)
    await chat.session.agent.talk.flush()  # what was said here last is in it too
    try:
        return await asyncio.to_thread(ask, store)
    except UnusableError as error:
        raise FerruleError(str(error)) from error


async def fork(chat: "Chat", _: str) -> Next:
    """Go on in a copy of this conversation; the one that is copied stays as it is."""
    before = chat.session.agent.thread
    copy = await chat.session.copy()
    chat.note(
        f"You go on in a copy of this conversation, {copy}. What was changed so far belongs to the one before it, and "
        f"/diff begins anew. That one stays: /resume {before[:10]}"
    )
    chat.move(copy)
    return SessionRestart(resume=copy, permission_mode=None if chat.mode() == "plan" else chat.mode())


async def rename(chat: "Chat", rest: str) -> Next:
    """Give this conversation the user's own title."""
    if rest:
        chat.session.rename(rest)
        chat.note(f"This conversation is called “{' '.join(rest.split())}” now.")
        return None
    thread = chat.session.agent.thread
    found = await _ask_store(lambda store: [one for one in [store.about(thread)] if one is not None], chat)
    called = f"This conversation is called “{found[0].title}”. " if found and found[0].title else ""
    chat.note(f"{called}/rename TITLE gives it another title.")
    return None


async def export(chat: "Chat", rest: str) -> Next:
    """Write this conversation into a file: Markdown, or JSON by the ending of its name."""
    agent, folder = chat.session.agent, chat.session.engine.jail.folder
    if not agent.turns and not agent.talk.past.number:
        chat.note("Nothing was said in this conversation yet, so there is nothing to write.")
        return None
    name = os.path.expanduser(rest.strip() or f"{agent.thread[:10]}.md")
    path = os.path.join(folder, name)
    if os.path.isdir(path):
        chat.note(f"{home_short(path)} is a folder. Name a file in it: /export {os.path.join(name, 'NAME.md')}")
        return None
    text = await asyncio.to_thread(render_export, await _whole(chat), export_form(path))
    over = False
    while True:
        try:
            await asyncio.to_thread(write_export, path, text, over=over)
        except FileExistsError:
            keys = [("y", "es"), ("n", "o")]
            if (
                await chat.stoppable(chat.front.key(f"{home_short(path)} is there already. Write over it?", keys))
                != "y"
            ):
                chat.note("Nothing was written.")
                return None
            over = True
        except OSError as error:
            chat.note(f"{home_short(path)} cannot be written: {error.strerror or error}. /export FILE names another.")
            return None
        else:
            chat.note(f"Wrote {home_short(path)}. It holds all that was said and read, so it is for you alone.")
            return None


async def _whole(chat: "Chat") -> Thread:
    """This conversation as it is kept; if it is not, as its model sees it."""
    agent, engine = chat.session.agent, chat.session.engine
    await agent.talk.flush()
    loaded = await _ask_store(lambda store: [one for one in [store.load(agent.thread)] if one and one.items], chat)
    if loaded:
        return loaded[0]
    about = ThreadMetadata(agent.thread, engine.jail.folder, model=agent.model.name, dialect=engine.dialect.name)
    return Thread(about, tuple(Item("turn", turn.role, msgspec.json.encode(turn)) for turn in agent.turns))
