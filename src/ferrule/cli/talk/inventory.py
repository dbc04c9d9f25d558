"""What the session has beside its tools: MCP servers, kinds of subagents, skills. `/mcp`, `/agents`, `/skills`."""

import asyncio
from typing import TYPE_CHECKING, Any, cast

from ferrule.cli.talk.commands import Next
from ferrule.cli.talk.line import BLANK, Line, line, sentence
from ferrule.cli.talk.status import home_short
from ferrule.core.errors import FerruleError, ToolFailure
from ferrule.support.near import near

if TYPE_CHECKING:
    from ferrule.cli.talk.chatting import Chat
    from ferrule.sources.mcp.servers import Servers
    from ferrule.sources.mcp.state import ServerState
    from ferrule.sources.mcp.tool import McpTool

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
        parts.append(f"Withheld, for they are new or changed: {_named(state.withheld)}.")
    if state.quarantined:
        parts.append(f"Not usable: {_named([f'{name} ({why})' for name, why in state.quarantined])}.")
    if state.is_guidance_withheld:
        parts.append("Its instructions are withheld, for they were not approved as they are.")
    if parts and (state.withheld or state.is_guidance_withheld):
        parts.append(f"/mcp connect {state.name} asks about that.")
    return " ".join(parts)


def _named(names: Any) -> str:
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
    tools = [cast("McpTool", one) for one in servers.known().tools if one.origin == state.name]
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
    from ferrule.agent.child import model_name  # which is loaded with the first session
    from ferrule.tools.agents.kinds import BUILT_IN, Agents
    from ferrule.workspace.agent_files import AgentFiles

    session = chat.session
    files: AgentFiles | None = None
    try:
        files = session.engine.need(AgentFiles)
    except (TypeError, FerruleError):
        files = None
    kinds = Agents(files)
    names = await asyncio.to_thread(kinds.names)
    described = {} if files is None else {one.agent.name: one for one in files.all()}
    own, roles = session.agent.model.name, session.engine.settings.models.roles
    column = max(map(len, names), default=0)
    chat.say(BLANK)
    for name in names:
        kind = kinds.get(name)
        model = model_name(kind, roles, own)
        where = home_short(session.engine.jail.shown(described[name].file)) if name in described else "built in"
        if name in described and name in BUILT_IN:
            where += ", in the place of the one that is built in"
        tools = "all tools" if kind.tools is None else _named([str(tool) for tool in kind.tools])
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
    from ferrule.workspace.skills import Skills  # for sessions that have any

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
            f"server {one.place}" if one.layer == "server" else home_short(chat.session.engine.jail.shown(one.folder))
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
