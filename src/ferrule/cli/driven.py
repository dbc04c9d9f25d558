"""Serve the program that drives us over standard input: its requests, its hooks, its answers and its tools.

A hook is a function of the other program, called by a request. It may answer the session's questions, and run the tools
of MCP servers of its own.
"""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, cast

import msgspec

from ferrule.cli.printer import Inbox, descriptor
from ferrule.cli.stream_json import line_of, new_uuid
from ferrule.core.access import Access
from ferrule.core.errors import ConfigError, FerruleError, ToolFailure
from ferrule.core.services import Subagents
from ferrule.core.tool import Context, Tool
from ferrule.hooks import EVENTS, Function, Hook
from ferrule.models import ModelError
from ferrule.output import clean, clean_value
from ferrule.permissions import KINDS, NO, Answer, Question, parse_mode
from ferrule.sources.mcp import fault, full_names
from ferrule.sources.mcp.results import MOST_ENTRIES, MOST_PAGES, McpResultReader
from ferrule.sources.mcp.results import fault as tool_fault
from ferrule.system.tasks import Tasks
from ferrule.tools import facts_of
from ferrule.tools.agents import AgentFiles, AgentKinds
from ferrule.tools.skills import Skills
from ferrule.wire.conversation import json_text

if TYPE_CHECKING:
    from ferrule.agent import Ended
    from ferrule.agent.session import Session
    from ferrule.cli.session_flags import Fitting, SessionFlags
    from ferrule.core.services import Mixed
    from ferrule.core.tool import Args
    from ferrule.tools.skills import Skill


_GONE = "The program that started this one has closed its end, and answers nothing any more."


class PeerError(Exception):
    """The other program did not do what it was asked for; the text says why."""


class Peer:
    """The other program. Requests go both ways, each with an id; a response names that of its request."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._count = 0
        self._is_gone = False
        self._loop = asyncio.get_running_loop()

    async def ask(self, subtype: str, **fields: Any) -> dict[str, Any]:
        """What it answers. Whoever stops waiting takes the request back. Raises: PeerError."""
        if self._is_gone:
            raise PeerError(_GONE)
        self._count += 1
        key = f"ferrule_{self._count}"
        answer: asyncio.Future[dict[str, Any]] = self._loop.create_future()
        self._waiting[key] = answer
        self._say({"type": "control_request", "request_id": key, "request": {"subtype": subtype, **fields}})
        try:
            return await answer
        except asyncio.CancelledError:
            self._say({"type": "control_cancel_request", "request_id": key})
            raise
        finally:
            del self._waiting[key]

    async def ask_from_elsewhere(self, subtype: str, **fields: Any) -> dict[str, Any]:
        """The same on an event loop of another thread."""
        asking = asyncio.run_coroutine_threadsafe(self.ask(subtype, **fields), self._loop)
        return await asyncio.wrap_future(asking)

    def hear(self, response: Mapping[str, Any]) -> None:
        """A response has come; one to nothing that was asked is left alone."""
        waiting = self._waiting.get(str(response.get("request_id")))
        if waiting is None or waiting.done():
            return
        if response.get("subtype") == "error":
            waiting.set_exception(PeerError(str(response.get("error") or "It does not say why.")))
            return
        said = response.get("response")
        waiting.set_result(said if isinstance(said, dict) else {})

    def end(self) -> None:
        """Nothing comes from it any more."""
        self._is_gone = True
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(PeerError(_GONE))

    def tell(self, line: Mapping[str, Any], session: str) -> None:
        """Something of the system, among the messages."""
        self._say({"type": "system", **line, "session_id": session, "uuid": new_uuid()})

    def answer(self, key: str, response: Mapping[str, Any] | None = None) -> None:
        about = {"subtype": "success", "request_id": key, "response": response or {}}
        self._say({"type": "control_response", "response": about})

    def refuse(self, key: str, why: str) -> None:
        self._say({"type": "control_response", "response": {"subtype": "error", "request_id": key, "error": why}})

    def _say(self, line: dict[str, Any]) -> None:
        self._write(line_of(line))


_SECONDS = 60.0


def hooks_of(given: Any, peer: Peer) -> tuple[tuple[Hook, ...], list[str]]:
    """The hooks of an `initialize`, and a sentence about each kind that nobody here tells."""
    wanted = given if isinstance(given, dict) else {}
    hooks = [hook for event in wanted if event in EVENTS for hook in _of_event(event, wanted[event], peer)]
    unknown = [event for event in wanted if event not in EVENTS]
    return tuple(hooks), [f"There are no hooks for {event} here: yours are not called." for event in unknown]


def _of_event(event: str, matchers: Any, peer: Peer) -> Iterator[Hook]:
    for matcher in matchers if isinstance(matchers, list) else ():
        if not isinstance(matcher, dict):
            continue
        seconds = matcher.get("timeout")
        keys = matcher.get("hookCallbackIds")
        for key in keys if isinstance(keys, list) else ():
            yield Hook(
                event,
                matcher=str(matcher.get("matcher") or ""),
                function=_build_callback(str(key), peer),
                seconds=float(seconds) if isinstance(seconds, int | float) and seconds > 0 else _SECONDS,
                layer="session",
                source=f"the program that started this one ({key})",
            )


def _build_callback(key: str, peer: Peer) -> Function:
    async def call(told: dict[str, Any]) -> dict[str, Any]:
        return await peer.ask_from_elsewhere(
            "hook_callback", callback_id=key, input=told, tool_use_id=told.get("tool_use_id")
        )

    return call


_BYPASS = "bypassPermissions"
_NOT_HERE = {
    "mcp_set_servers": "The MCP servers of a session are those that it began with: give them with --mcp-config.",
    "mcp_toggle": "An MCP server is switched on and off in the settings; here a session has it to its end.",
    "reload_plugins": "Plugins are read when a session begins: begin another one.",
}
"""Requests of Claude Code's that have no counterpart, and what to do instead."""


def skills_of(session: "Session") -> "list[Skill]":
    """The skills that a person may call by their names."""
    return [skill for skill in session.engine.need(Skills).all() if skill.for_user]


def agents_of(session: "Session") -> list[tuple[str, str]]:
    """The kinds of agents, each with what it is for."""
    kinds = AgentKinds(session.engine.need(AgentFiles))
    return [(name, kinds.get(name).description) for name in kinds.names()]


def build_init_fields(session: "Session") -> dict[str, Any]:
    """What of it stands in the first line of a session."""
    skills = [skill.name for skill in skills_of(session)]
    return {"slash_commands": skills, "skills": skills, "agents": [name for name, _ in agents_of(session)]}


def _object(holder: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A member that is an object, or is not there. Raises: FerruleError."""
    value = holder.get(name)
    if value is not None and not isinstance(value, dict):
        raise FerruleError(f"{name} has to be an object.")
    return value or {}


def _texts(rules: Mapping[str, Any], name: str) -> list[str]:
    """A member that is a list of texts, or is not there. Raises: FerruleError."""
    value = rules.get(name) or []
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise FerruleError(f"permissions.{name} has to be a list of texts.")
    return value


class Control:
    """Answers requests in their order; one that nobody understands is refused, and the work goes on."""

    def __init__(self, session: "Session", peer: Peer, *, may_bypass: bool) -> None:
        """`may_bypass`: did whoever started the session say that questions may be bypassed?"""
        self._session = session
        self._peer = peer
        self._may_bypass = may_bypass
        self.inside: tuple[str, ...] = ()
        """Servers that the other program has inside itself."""
        self.is_interrupted = False
        """Has the other program stopped the last prompt? It may send another one."""
        self._prompts: dict[str, int] = {}
        """The id of a message → the number of the prompt that it was."""
        self._answers: dict[str, Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any] | None]]] = {
            "interrupt": self._interrupt,
            "set_permission_mode": self._mode,
            "set_model": self._model,
            "set_max_thinking_tokens": self._set_thinking,
            "apply_flag_settings": self._settings,
            "rewind_files": self._rewind,
            "stop_task": self._stop_task,
            "mcp_status": self._servers,
            "mcp_reconnect": self._reconnect,
            "get_context_usage": self._usage,
        }

    async def answer(self, key: str, request: Mapping[str, Any]) -> None:
        subtype = str(request.get("subtype"))
        if subtype == "initialize":
            self._peer.refuse(key, "initialize has to be the first line, and comes once.")
            return
        answer = self._answers.get(subtype)
        if answer is None:
            known = ", ".join(self._answers)
            unknown = f"There is no request {subtype!r} here; there are initialize, {known}."
            self._peer.refuse(key, _NOT_HERE.get(subtype, unknown))
            return
        try:
            self._peer.answer(key, await answer(request))
        except (FerruleError, ModelError) as error:
            self._peer.refuse(key, str(error))

    def answer_initialize(self, key: str) -> None:
        """The first request is answered once the session is open."""
        name = self._session.model.name
        self._peer.answer(
            key,
            {
                "commands": [
                    {"name": skill.name, "description": skill.description, "argumentHint": skill.hint}
                    for skill in skills_of(self._session)
                ],
                "agents": [
                    {"name": agent, "description": description} for agent, description in agents_of(self._session)
                ],
                "output_style": "default",
                "available_output_styles": ["default"],
                "models": [{"value": name, "displayName": name, "description": ""}],
                "account": {},
            },
        )

    def begin(self, key: str) -> None:
        """A message with this id is worked on now."""
        self.is_interrupted = False
        if key:
            self._prompts[key] = self._session.agent.talk.past.number + 1

    def halt(self) -> None:
        """An answer of the other program's has ended the work on its prompt; it may send another one."""
        self.is_interrupted = True

    async def _interrupt(self, _: Mapping[str, Any]) -> None:
        if self._session.agent.is_running:
            self.is_interrupted = True
            self._session.agent.interrupt()

    async def _mode(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        mode = self.change_mode(str(request.get("mode")))
        self._peer.tell({"subtype": "status", "status": None, "permissionMode": mode}, self._session.engine.session_id)
        return {"mode": mode}

    def change_mode(self, name: str) -> str:
        """The permission mode that holds from now on. Raises: FerruleError."""
        wanted = parse_mode(name).name
        if wanted == _BYPASS and not self._may_bypass:
            raise FerruleError(
                f"The session did not begin with --permission-mode {_BYPASS}, so it cannot change to it."
            )
        return self._session.set_mode(wanted)

    async def _model(self, request: Mapping[str, Any]) -> None:
        session, name = self._session, request.get("model")
        session.agent.use(session.load(str(name)) if name else session.model)

    async def _set_thinking(self, request: Mapping[str, Any]) -> None:
        tokens = request.get("max_thinking_tokens")
        if tokens is not None and (not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 0):
            raise FerruleError("max_thinking_tokens is a number of tokens, or null for what the settings say.")
        setup = self._session.agent.talk.setup
        setup.thinking_tokens = self._session.engine.settings.models.thinking_tokens if tokens is None else tokens

    async def _settings(self, request: Mapping[str, Any]) -> None:
        """Rules, variables and the model of a session that runs; other settings need another session."""
        settings = _object(request, "settings")
        rules, variables = _object(settings, "permissions"), _object(settings, "env")
        others = [key for key in settings if key not in {"permissions", "env", "model"}]
        others += [f"permissions.{key}" for key in rules if key not in {"allow", "deny"}]
        if others:
            raise FerruleError(
                f"{', '.join(others)} cannot change in a session that runs; permissions.allow, permissions.deny, env "
                "and model can. Begin another session for the rest."
            )
        for name, value in variables.items():
            os.environ[str(name)] = str(value)
        self._rules(rules)
        if settings.get("model"):
            await self._model(settings)

    def _rules(self, rules: Mapping[str, Any]) -> None:
        engine = self._session.engine
        around = engine.sources.around
        if denied := _texts(rules, "deny"):
            around.policing.deny(engine.policy, around.services, denied, source="apply_flag_settings")
        allowed = _texts(rules, "allow")
        understood = around.policing.allow(engine.policy, allowed, source="apply_flag_settings")
        self._session.agent.talk.tools_changed()
        if wrong := [text for text in allowed if text not in understood]:
            raise FerruleError(f"The rules {', '.join(wrong)} are not understood, and allow nothing.")

    async def _rewind(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Put the files back to what they were before a message."""
        number = self._prompts.get(str(request.get("user_message_id")))
        if number is None:
            raise FerruleError("There is no message with this id in this session: a message names its own as uuid.")
        if self._session.agent.is_running:
            raise FerruleError("The model is at work: interrupt it before files are put back.")
        engine = self._session.engine
        look = engine.rewind_preview if request.get("dry_run") else engine.rewind
        changes = (await look(number)).changes
        return {"canRewind": True, "filesChanged": [change.path for change in changes]}

    async def _stop_task(self, request: Mapping[str, Any]) -> None:
        """Stop a subagent or a command that runs in the background."""
        name, engine = str(request.get("task_id")), self._session.engine
        if await engine.need(Subagents).stop(name) is not None:
            return
        task = engine.need(Tasks).get(name)
        if task is None:
            raise FerruleError(f"Nothing called {name!r} runs in the background.")
        await engine.need(Tasks).stop(task)

    async def _reconnect(self, request: Mapping[str, Any]) -> None:
        name = str(request.get("serverName"))
        engine = self._session.engine
        if name in self.inside:
            return
        if name not in {state.name for state in engine.sources.states()}:
            raise FerruleError(f"There is no MCP server called {name!r} in this session.")
        await engine.connect([name])
        self._session.agent.talk.tools_changed()

    async def _servers(self, _: Mapping[str, Any]) -> Mapping[str, Any]:
        words = {"running": "connected", "listed": "connected", "unlisted": "pending", "disabled": "disabled"}
        states = self._session.engine.sources.states()
        return {
            "mcpServers": [
                *({"name": name, "status": "connected", "scope": "dynamic"} for name in self.inside),
                *(
                    {
                        "name": one.name,
                        "status": "failed" if one.error else words.get(one.state, "needs-auth"),
                        "scope": one.layer,
                        **({"error": one.error} if one.error else {}),
                    }
                    for one in states
                ),
            ]
        }

    async def _usage(self, _: Mapping[str, Any]) -> Mapping[str, Any]:
        agent = self._session.agent
        used, window = agent.context_tokens, agent.model.window
        share = round(100 * used / window, 1) if window else 0
        about = {"totalTokens": used, "maxTokens": window, "rawMaxTokens": window, "percentage": share}
        return {**about, "categories": [], "model": agent.model.name}


class Driver:
    """`async with Driver(write) as driver`: its lines are read from then on."""

    def __init__(self, write: Callable[[bytes], None], *, may_bypass: bool) -> None:
        self.peer = Peer(write)
        self._inbox = Inbox(descriptor(), self.peer)
        self._may_bypass = may_bypass
        self._key = ""
        self._servers: list[str] = []
        self._warnings: list[str] = []
        self._asker: ByPeer | None = None

    async def __aenter__(self) -> Self:
        await self._inbox.begin()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._inbox.close()

    def prepare(
        self, fitting: "Fitting", flags: "SessionFlags", options: dict[str, Any], *, asks: bool
    ) -> dict[str, Any]:
        """What the session is given; `asks`: the other program answers questions."""
        more: dict[str, Any] = {}
        config: tuple[str, ...] = ()
        if options["mcp_config"]:
            config, self._servers = inside(options["mcp_config"])
        if self._inbox.first is not None:
            self._key, wanted = self._inbox.first
            inside_it = wanted.get("sdkMcpServers")
            more_names = inside_it if isinstance(inside_it, list) else ()
            self._servers += [str(name) for name in more_names if name not in self._servers]
            if wanted.get("hooks"):
                hooks, self._warnings = hooks_of(wanted["hooks"], self.peer)
                more["hooks"] = (*options.get("hooks", ()), *hooks)
            self._hear_words(fitting, wanted)
            if isinstance(agents := wanted.get("agents"), dict):
                flags.describe(agents)
            if isinstance(skills := wanted.get("skills"), list):
                flags.only_skills([str(name) for name in skills])
        if asks:
            more["ask"] = self._asker = ByPeer(self.peer)
        return {**options, **more, "mcp_config": config}

    def _hear_words(self, fitting: "Fitting", wanted: dict[str, Any]) -> None:
        given = wanted.get("systemPrompt")
        words = "\n\n".join(map(str, given)) if isinstance(given, list) else str(given or "")
        fitting.words = words or fitting.words
        fitting.append(str(wanted.get("appendSystemPrompt") or ""))

    def init_fields(self, session: "Session") -> dict[str, Any]:
        """What the first line of the session tells of it."""
        return build_init_fields(session)

    @contextlib.contextmanager
    def report_failure(self) -> Any:
        """A session that cannot be opened is told to whoever waits for it."""
        try:
            yield
        except FerruleError as error:
            if self._key:
                self.peer.refuse(self._key, str(error))
            raise

    async def work(self, session: "Session") -> "Ended":
        """Work on what it sends until it is done."""
        control = Control(session, self.peer, may_bypass=self._may_bypass)
        if self._asker is not None:
            self._asker.session, self._asker.warn = session, session.agent.talk.warn
            self._asker.change_mode = control.change_mode
            self._asker.halt = control.halt
        if self._servers:
            await self._bring(session)
            control.inside = tuple(self._servers)
        for warning in self._warnings:
            session.agent.talk.warn(warning)
        if self._key:
            control.answer_initialize(self._key)
        return await self._inbox.work(session.agent, control)

    async def _bring(self, session: "Session") -> None:
        registry = session.engine.registry
        for server in tuple(self._servers):
            try:
                tools, warnings = await tools_of(server, self.peer)
            except FerruleError as error:
                self._warnings.append(str(error))
                self._servers.remove(server)
                continue
            self._warnings += [*warnings, *registry.bring(f"mcp {server}", tools)]
        session.agent.talk.tools_changed()


_EXCHANGED = ("call", "outside", "folder")
"""Questions about a call that has not begun: it may be made with another input."""
_OTHER = "The user wants this call with another input, so it was not made. Make it with exactly this input: {}"


class ByPeer:
    """Asks the other program. What it cannot be asked, such as whether a server may start, is denied."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self.session: Session | None = None
        """Tells what the model calls the arguments, and is interrupted where the answer says so."""
        self.warn: Callable[[str], None] = lambda _: None
        self.change_mode: Callable[[str], object] = lambda _: None
        self.halt: Callable[[], object] = lambda: None
        """Told when an answer ends the work on a prompt: another one may follow."""
        self._halted: tuple[object, Answer] | None = None
        """The prompt that an answer has ended, by its budget, and that answer: nothing more is asked about it."""

    async def ask(self, question: Question) -> Answer:
        if question.kind in {"server", "values"} or KINDS[question.kind].only_persons:
            return NO
        if self._halted is not None and self.session is not None and self._halted[0] is self.session.agent.budget:
            return self._halted[1]
        given = self._tool_input(question)
        suggested = _render_suggestions(question)
        try:
            said = await self._peer.ask(
                "can_use_tool",
                tool_name=question.name,
                input=given,
                tool_use_id=question.call_id,
                description=question.summary,
                decision_reason=question.why,
                permission_suggestions=suggested,
                **({"preview": "\n".join(question.changes)} if question.changes else {}),
                **({"blocked_path": question.folder} if question.folder else {}),
                **({"agent_id": question.who} if question.who else {}),
            )
        except PeerError as error:
            return Answer(allow=False, message=f"Nobody could be asked about this: {error}")
        if said.get("behavior") != "allow":
            answer = Answer(allow=False, message=str(said.get("message") or ""), stop=said.get("interrupt") is True)
            if answer.stop and self.session is not None:
                self._halted = (self.session.agent.budget, answer)
                self.halt()
            return answer
        wanted = said.get("updatedInput")
        if question.kind == "choose":
            return _parse_choices(question, wanted if isinstance(wanted, dict) else {})
        always = self._always(said.get("updatedPermissions"), suggested)
        if isinstance(wanted, dict) and wanted != given and question.kind != "plan":
            if question.kind not in _EXCHANGED:
                # It is about something that came up while the call ran: its input is what it is.
                return Answer(allow=False, message=_OTHER.format(json_text(wanted)))
            return Answer(allow=True, always=always, input=wanted)
        return Answer(allow=True, always=always)

    def _tool_input(self, question: Question) -> dict[str, Any]:
        """The arguments as the model gave them, which is what the other program knows the call by."""
        if question.kind == "choose":
            return {"questions": [_render_choice(choice) for choice in question.choices]}
        if question.kind == "plan":
            return dict(question.input)
        if question.given is not None or self.session is None:
            return dict(question.input if question.given is None else question.given)
        try:
            face = self.session.engine.registry.resolve(question.name).face
            return face.advertised(question.input)
        except (FerruleError, TypeError, ValueError, KeyError):
            return dict(question.input)

    def _always(self, updates: Any, suggested: list[dict[str, Any]]) -> bool:
        """Does the answer hold for the like of it too? Only what was suggested can."""
        if not updates:
            return False
        if updates == suggested:
            for one in suggested:
                if one["type"] == "setMode":
                    self.change_mode(one["mode"])
            return True
        self.warn("Rules that differ from the suggested ones are not taken with an answer: this call is allowed once.")
        return False


def _render_suggestions(question: Question) -> list[dict[str, Any]]:
    """What "always" would save, in the form of the other program."""
    rules = []
    for text in question.proposals if question.kind == "call" else ():
        name, opened, inner = text.partition("(")
        rules.append({"toolName": name, **({"ruleContent": inner.removesuffix(")")} if opened else {})})
    if not rules:
        is_edit = question.kind == "call" and facts_of(question.tool).kind == "edit"
        return [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}] if is_edit else []
    return [{"type": "addRules", "rules": rules, "behavior": "allow", "destination": "localSettings"}]


def _render_choice(choice: Any) -> dict[str, Any]:
    options = [{"label": one.label, "description": one.description} for one in choice.options]
    return {
        "question": choice.question,
        "header": choice.header,
        "options": options,
        "multiSelect": choice.multiple,
    }


def _parse_choices(question: Question, given: Mapping[str, Any]) -> Answer:
    answers = given.get("answers")
    if not isinstance(answers, dict):
        return NO
    values = {choice.key: answers[choice.question] for choice in question.choices if choice.question in answers}
    return Answer(allow=True, values=values) if values else NO


_VERSION = "2025-06-18"
_START_SECONDS = 30.0


def inside(config: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """What of `--mcp-config` is for everybody, and the names of the servers that the other program has inside."""
    kept, names = [], []
    for text in config:
        try:
            servers = dict(msgspec.json.decode(text)["mcpServers"]) if text.lstrip().startswith("{") else {}
        except (msgspec.DecodeError, KeyError, TypeError, ValueError):
            servers = {}  # whoever reads it says what is wrong with it
        own = [name for name, entry in servers.items() if isinstance(entry, dict) and entry.get("type") == "sdk"]
        names += own
        rest = {name: entry for name, entry in servers.items() if name not in own}
        if not own:
            kept.append(text)
        elif rest:
            kept.append(msgspec.json.encode({"mcpServers": rest}).decode())
    return tuple(kept), names


async def tools_of(server: str, peer: Peer) -> tuple[list["PeerTool"], list[str]]:
    """All tools of one server, and sentences about those that cannot be used. Raises: ConfigError."""
    if why := fault(server):
        raise ConfigError(f"The MCP server {clean(server)!r} cannot be used: {why}.")
    line = PeerServer(server, peer)
    try:
        async with asyncio.timeout(_START_SECONDS):
            entries = await line.list_tools()
    except (PeerError, TimeoutError) as error:
        why = str(error) or f"it did not list its tools within {_START_SECONDS:g} seconds"
        raise ConfigError(f"The MCP server {server} cannot be used: {clean(why).removesuffix('.')}.") from error
    wrong = [(entry, tool_fault("tools/list", entry)) for entry in entries]
    warnings = [f"A tool of the MCP server {server} is left out. {why}" for _, why in wrong if why]
    usable = list({entry["name"]: entry for entry, why in wrong if not why}.values())
    names = full_names(server, [entry["name"] for entry in usable])
    return [PeerTool(line, entry, names[entry["name"]]) for entry in usable], warnings


class PeerServer:
    """The way to one server."""

    def __init__(self, server: str, peer: Peer) -> None:
        self.server = server
        self._peer = peer
        self._count = 0

    async def list_tools(self) -> list[dict[str, Any]]:
        """Introduce this program, and have the tools listed. Raises: PeerError."""
        about = {"protocolVersion": _VERSION, "capabilities": {}, "clientInfo": {"name": "ferrule", "version": "1"}}
        await self.ask("initialize", about)
        message = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await self._peer.ask("mcp_message", server_name=self.server, message=message)
        found: list[dict[str, Any]] = []
        cursor: dict[str, Any] = {}
        for _ in range(MOST_PAGES):
            page = await self.ask("tools/list", cursor)
            tools = page.get("tools")
            found += tools if isinstance(tools, list) else ()
            if not page.get("nextCursor") or len(found) > MOST_ENTRIES:
                break
            cursor = {"cursor": page["nextCursor"]}
        return found[:MOST_ENTRIES]

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The result of one request. Raises: PeerError."""
        self._count += 1
        message = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}
        said = await self._peer.ask("mcp_message", server_name=self.server, message=message)
        answer = said.get("mcp_response")
        if not isinstance(answer, dict):
            raise PeerError("its answer is no message of MCP")
        if isinstance(answer.get("error"), dict):
            raise PeerError(str(answer["error"].get("message") or "it does not say why"))
        result = answer.get("result")
        return result if isinstance(result, dict) else {}


class PeerTool(Tool[Any, "Mixed"]):
    """One tool of such a server."""

    args = cast("type[Args]", dict)
    source = "mcp"

    def __init__(self, line: PeerServer, entry: Mapping[str, Any], name: str) -> None:
        self.name = name
        self.origin = line.server
        self.tool = str(entry["name"])
        self.schema = clean_value(entry["inputSchema"])
        self.words = clean(str(entry.get("description") or entry.get("title") or ""))
        self.output_schema = entry.get("outputSchema")
        hints = entry.get("annotations")
        self.hints = clean_value(hints) if isinstance(hints, dict) else {}
        self._line = line

    def access(self, args: Any, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - nobody knows what it touches
        reads = self.hints.get("readOnlyHint") is True
        return (Access.server(self.origin, mode="read" if reads else "write"),)

    async def run(self, args: Any, ctx: Context) -> "Mixed":  # noqa: ARG002 - it needs nothing of this machine
        from mcp_types import CallToolResult  # for whoever has such servers
        from pydantic import ValidationError

        try:
            said = await self._line.ask("tools/call", {"name": self.tool, "arguments": args})
            result = CallToolResult.model_validate(said)
        except PeerError as error:
            raise ToolFailure(
                f"The MCP server {self.origin} could not run {self.tool}: {error}", code="mcp-error"
            ) from error
        except ValidationError as error:
            raise ToolFailure(
                f"The MCP server {self.origin} answered with no result of a tool.", code="mcp-answer"
            ) from error
        return await McpResultReader().read_result(self.tool, result, self.output_schema)
