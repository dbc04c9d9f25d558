"""Build what a session has around its calls: services, tools from elsewhere, hooks and skills."""

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from ferrule.core.call import Blocked, HookRun, Reported, TodoItem, TodosChanged, ToolsChanged
from ferrule.core.errors import ConfigError
from ferrule.core.services import Planning, Subagents
from ferrule.engine.build import EngineInputs, Parts
from ferrule.files.guard import Guard
from ferrule.flow import stop
from ferrule.output import clean
from ferrule.permissions import Choosers
from ferrule.permissions.policy import RuledHosts, mode_name
from ferrule.settings import settings_path
from ferrule.system import Threads
from ferrule.system.environment import Variables, quiet_environment
from ferrule.system.tree import Roster
from ferrule.tools import CHECK, DELEGATE, EXIT_PLAN, READ_RESOURCE

if TYPE_CHECKING:
    from ferrule.core.tool import Face
    from ferrule.hooks import After, Hook
    from ferrule.hooks.hooks import HookRunEvent, Hooks
    from ferrule.settings.layers import Layered
    from ferrule.sources.load import SourceLoader


class SessionServices:
    """Makes the services for one session: its plan mode, its todos, its people, its threads and its kinds of agents."""

    def __init__(self, given: EngineInputs, parts: Parts) -> None:
        self._given = given
        self._parts = parts

    def introduce(self) -> None:
        later, policy = self._parts.services.later, self._parts.policy
        self._parts.services.is_held = lambda: policy.is_held
        later("Planning", self._make_planner)
        later("People", self._people)
        later("Todos", self._todos)
        later("Steps", self._steps)
        later("ThreadStore", self._thread_store)
        later("AgentFiles", self._agent_files)
        later("HostsAllowed", self._hosts_allowed)
        later("Web", self._web)
        later("Converter", self._converter)
        later("LanguageServers", self._language_servers)
        later("Ahead", self._ahead)
        if policy.standing.reads_only:
            self._start_planning()

    def _start_planning(self) -> None:
        # Made now: its plan may be written from the first call on.
        assert self._parts.services[Planning].is_on

    def _make_planner(self) -> object:
        from ferrule.permissions.plan_mode import Planner  # for sessions that plan

        given, parts = self._given, self._parts
        way_out = given.registry.face_of(EXIT_PLAN)
        return Planner(
            parts.jail,
            parts.services[Guard],
            parts.policy,
            folder=given.settings.plan.folder,
            ask=parts.flow.gate.put,
            allow=lambda rules: parts.policing.allow(parts.policy, rules, source="the approved plan"),
            exit_tool=way_out.name if way_out is not None else "",
            changed=self._on_planning_changed,
        )

    def _on_planning_changed(self) -> None:
        """Show the model other tools; the way out is one of them, also where it is usually found by a search."""
        self._given.registry.load([EXIT_PLAN])
        self._given.emit(ToolsChanged(id="", name="", at=time.perf_counter()))

    def _ahead(self) -> object:
        from ferrule.tools.checks.choice import Ahead  # for sessions that check

        return Ahead(self._parts.jail, self._parts.services[Guard], self._given.settings.checks)

    def _people(self) -> object:
        gate, policy = self._parts.flow.gate, self._parts.policy
        return Choosers(gate.put, self._emit_blocked, lambda: policy.standing.asks == "deny")

    def _emit_blocked(self, call_id: str, name: str, question: str) -> None:
        self._given.emit(Blocked(id=call_id, name=name, at=time.perf_counter(), question=question))

    def _todos(self) -> object:
        from ferrule.tools.todos import Todos  # for sessions that keep a list

        shared = os.environ.get("FERRULE_TASK_LIST", "")
        keep_days = self._given.settings.threads.keep_days
        return Todos(
            os.path.join(self._given.state, "todos"),
            shared or self._given.session_id,
            keep_days=keep_days,
            on_change=lambda todos: self._tell_todos(
                TodoItem(one.id, one.subject, one.status, one.active_form, one.owner) for one in todos
            ),
        )

    def _steps(self) -> object:
        from ferrule.tools.plan import Steps  # for sessions that plan

        return Steps(
            lambda plan: self._tell_todos(
                TodoItem(str(number), step.text, step.status) for number, step in enumerate(plan.steps, 1)
            )
        )

    def _tell_todos(self, todos: Iterable[TodoItem]) -> None:
        self._given.emit(TodosChanged(id="", name="", at=time.perf_counter(), todos=tuple(todos)))

    def _thread_store(self) -> object:
        from ferrule.tools.threads.store import ThreadStore  # for sessions that look at others

        threads = self._given.settings.threads
        return ThreadStore(os.path.join(self._given.state, "threads"), keep_days=threads.keep_days)

    def _agent_files(self) -> object:
        from ferrule.tools.agents import BUILT_IN, AgentFiles

        roles = self._given.settings.models.roles
        return AgentFiles(
            self._parts.jail,
            self._parts.services[Guard],
            beside=os.path.dirname(settings_path()),
            models=(*roles, *roles.values()),
            taken=BUILT_IN,
            sources=self._given.settings.sources,
        )

    def _hosts_allowed(self) -> object:
        return RuledHosts(self._parts.policy)

    def _web(self) -> object:
        from ferrule.tools.web.client import Allowances, Web  # for sessions that look at the web

        web = self._given.settings.web
        return Web(
            Allowances(
                private_hosts=web.private_hosts,
                robots=web.robots,
                user_agent=web.user_agent,
                proxy=web.proxy,
                seconds=web.seconds,
                most_bytes=int(web.most_mb * (1 << 20)),
                hops=web.hops,
                cache_seconds=web.cache_seconds,
            ),
            inside=self._parts.services.inside,
        )

    def _language_servers(self) -> object:
        from ferrule.after_edits import Notices  # for sessions that ask language servers
        from ferrule.tools.lsp.diagnostics import Noticing
        from ferrule.tools.lsp.servers import LanguageServers

        parts, lsp = self._parts, self._given.settings.lsp
        services = parts.services
        servers = LanguageServers(parts.jail, services[Guard], services.confinement, lsp, lambda: services[Roster])
        parts.flow.notices = Notices(Noticing(servers, lsp, parts.jail), servers, parts.jail)
        return servers

    def _converter(self) -> object:
        from ferrule.tools.web.content import Converter  # for sessions that look at the web

        return Converter()


_HOOK_FILES = (".claude/settings.json", ".claude/settings.local.json")


class SessionExtras(NamedTuple):
    """What a host may give a session beside the ordinary."""

    hooks: "tuple[Hook, ...]" = ()
    mcp_config: tuple[str, ...] = ()
    subagents: "Subagents | None" = None
    lazy: bool = False


class Companions:
    """Opened before the first call, closed after the last."""

    def __init__(self, given: EngineInputs, parts: Parts, layered: "Layered | None", extra: SessionExtras) -> None:
        self._given = given
        self._parts = parts
        self._layered = layered
        self._extra = extra
        self._hooks: Hooks | None = None
        self._hook_warnings: list[str] = []
        self._own: bool | None = None
        self._looking: set[asyncio.Task[None]] = set()
        self._is_over = False
        self.beginning: tuple[str, ...] = ()
        """What the hooks of the session's start want the model to know."""
        self._introduce()

    @cached_property
    def gathering(self) -> "SourceLoader":
        """Brings tools from elsewhere; made when somebody asks for one."""
        from ferrule.sources.load import (
            SourceContext,  # most calls are of built-in tools
            SourceLoader,
        )

        given, parts, layered, extra = self._given, self._parts, self._layered, self._extra
        managed = layered.layers.get("managed") if layered is not None else None
        return SourceLoader(
            SourceContext(
                parts.jail,
                parts.services,
                given.settings,
                given.state,
                given.session_id,
                given.registry,
                parts.policing,
                parts.policy,
                ask=parts.flow.gate.put,
                managed=None if managed is None else managed.mcp,
                mcp_config=extra.mcp_config,
                can_run_subagents=extra.subagents is not None,
                short_names=given.dialect.short_names,
                allow_mcp=given.mode.allow_mcp,
                asks_programs=given.dialect.asks_programs,
            )
        )

    async def ensure(self, names: Sequence[str]) -> bool:
        """Have what calls under these names need: mostly it is there. False where somebody stopped the look for it."""
        if any(self._given.registry.canonical(name) == CHECK for name in names):
            await self._look_ahead()
        if "gathering" in self.__dict__:
            is_needed = self.gathering.lacks(names)
        else:
            is_needed = self._may_have_own() or not all(map(self._given.registry.knows, names))
        return await self._look_for(names) if is_needed else True

    async def _look_ahead(self) -> None:
        """Find the project's checks on a thread: what a call of them touches is asked where nothing may wait."""
        from ferrule.tools.checks.choice import Ahead

        services = self._parts.services
        await services[Threads].run(services[Ahead].look)

    def cancel(self) -> None:
        """Stop looking; the calls that wait for it are cancelled with it."""
        for looking in self._looking:
            looking.cancel()

    def _why_not(self, name: str) -> str:
        if "gathering" not in self.__dict__ or not (states := self.gathering.states()):
            return ""
        from ferrule.sources.load import why_not  # for sessions with servers

        return why_not(states, name)

    async def _look_for(self, names: Sequence[str]) -> bool:
        """Look in a task of its own: the session may end meanwhile, and then neither it nor a call goes on."""
        looking = asyncio.create_task(self.gathering.ensure(names))
        self._looking.add(looking)
        try:
            await asyncio.wait([looking])
        finally:
            await stop(() if looking.done() else (looking,))
            self._looking.discard(looking)
        if self._is_over:
            raise ConfigError("The engine was closed while the calls waited for their tools; none of them has run.")
        if looking.cancelled():
            return False
        looking.result()
        return True

    def _may_have_own(self) -> bool:
        """Could one of the user's or the project's own tools stand in for a built-in one?"""
        if self._own is None:
            folder = self._parts.jail.folder
            places = (os.path.dirname(settings_path()), folder, os.path.join(folder, ".ferrule"))
            named = bool(self._given.settings.tools.folders)
            self._own = named or any(os.path.isdir(os.path.join(place, "tools")) for place in places)
        return self._own

    def _introduce(self) -> None:
        """Let the tools reach what they may need."""
        services, registry = self._parts.services, self._given.registry
        services.later("Catalog", lambda: registry.catalog)
        services.later("Skills", self._make_skills)
        services.later("Bringing", self._make_bringing)
        services.later("Offered", self._make_offered)
        services.later("Subagents", self._make_subagents)
        SessionServices(self._given, self._parts).introduce()
        registry.before_search = self._connect
        self._parts.flow.why_not = self._why_not
        registry.on_changed = lambda: self._given.emit(ToolsChanged(id="", name="", at=time.perf_counter()))

    def _make_skills(self) -> object:
        return self.gathering.make_skills()

    async def _connect(self) -> None:
        await self.gathering.connect()

    def _make_bringing(self) -> object:
        return self.gathering.make_bringing()

    def _make_offered(self) -> object:
        return self.gathering.make_offered()

    def _make_subagents(self) -> object:

        return self._extra.subagents or Subagents()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What could not be used, each as a sentence."""
        settings = self._layered.warnings if self._layered is not None else ()
        gathered = self.gathering.warnings if "gathering" in self.__dict__ else ()
        agents = self._parts.services.warnings_of("AgentFiles")
        # What a project or a server is called must not steer the screen that it is shown on.
        return tuple(" ".join(clean(one).split()) for one in (*settings, *self._hook_warnings, *gathered, *agents))

    async def begin(self) -> None:
        """Tell the hooks that the session starts, and look for tools, unless that is to wait for a call."""
        if self._extra.hooks or self._may_have_hooks():
            await self._start_hooks()
        if not self._extra.lazy:
            await self.gathering.load()
        for name in self._given.mode.include_tools or ():
            if not self._given.registry.knows(name):
                raise ConfigError(f"There is no tool {name!r} to include; `ferrule tools` lists them.")

    def _may_have_hooks(self) -> bool:
        """Mostly there are none, and then nothing is loaded for them."""
        settings, layered = self._given.settings, self._layered
        if settings.hooks or settings.permissions.files or (layered is not None and len(layered.layers) > 1):
            return True
        return any(os.path.lexists(os.path.join(self._parts.jail.folder, name)) for name in _HOOK_FILES)

    async def _start_hooks(self) -> None:
        from ferrule.hooks.calls import Hooking, Notifying, find, find_scripts
        from ferrule.hooks.hooks import Hooks  # for sessions with hooks
        from ferrule.permissions.shell import started
        from ferrule.permissions.shell.started import CommandScripts

        given, parts, workspace = self._given, self._parts, self._parts.jail.folder
        roots = (root.path for root in parts.jail.roots)
        others = (
            *(path for path in roots if path != workspace),
            *map(os.path.expanduser, given.settings.sandbox.writable),
        )

        def look(command: str) -> CommandScripts:
            return started.look(command, workspace, others=others)

        found = find(given.settings, self._layered, workspace, given.state, self._extra.hooks, look=look)
        for warning in found.warnings:
            self._report(warning)  # a guard that has gone must not go silently
        if not found.hooks:
            return
        parts.services[Guard].keep(find_scripts(found.hooks, look))
        self._hooks = Hooks(
            found.hooks,
            workspace=workspace,
            environment=quiet_environment(os.environ, keep=given.settings.shell.keep_env),
            session_id=given.session_id,
            permission_mode=lambda: mode_name(parts.policy),
            report=self._report,
            roster=parts.services[Roster],
            look=look,
            walls=parts.services.confinement,
            others=others,
            ran=self._ran,
        )
        parts.flow.hooks = Hooking(
            self._hooks, given.registry, parts.flow.arguments, parts.policing.names, parts.flow.look
        )
        if self._hooks.has("Notification") or self._hooks.has("PermissionRequest"):
            parts.flow.gate.hear(Notifying(given.asker, self._hooks))
        if self._hooks.has("SessionStart"):
            said = await self._hooks.fire("SessionStart", source="startup")
            self.beginning = tuple(clean(note) for note in said.notes)
            variables = parts.services[Variables]
            variables.update(self._hooks.environment_additions())
            variables.confined.update(self._hooks.environment_additions(is_confined=True))

    def _ran(self, ran: "HookRunEvent") -> None:
        """Tell whoever listens of a program that is a hook."""
        code, out, err = (ran.answer and ran.answer.printed) or (0, b"", b"")
        self._given.emit(
            HookRun(
                id=ran.key,
                name=ran.about,
                at=time.perf_counter(),
                hook=ran.event,
                ended=ran.answer is not None,
                exit_code=code,
                stdout=clean(out.decode(errors="replace")),
                stderr=clean(err.decode(errors="replace")),
            )
        )

    def _report(self, sentence: str) -> None:
        """Tell the user, and not the model."""
        said = clean(sentence)
        self._hook_warnings.append(said)
        self._given.emit(Reported(id="", name="", at=time.perf_counter(), sentence=said))

    async def end(self) -> None:
        """Tell the hooks that it is over, and end the servers."""
        self._is_over = True
        await stop(self._looking)
        if self._hooks is not None:
            if self._hooks.has("SessionEnd"):
                await self._hooks.fire("SessionEnd", reason="other")
            self._hooks.close()
        if "gathering" in self.__dict__:
            await self.gathering.close()

    async def tell(self, event: str, fields: "Mapping[str, Any]") -> "After | None":
        """Tell the hooks of what is no call; None where none is to be told."""
        if self._hooks is None or not self._hooks.has(event):
            return None
        return await self._hooks.fire(event, **fields)

    def instructions(self, permits: Callable[[str], bool]) -> dict[str, str]:
        """Server → what it says about the use of its tools, of those with a tool that `permits` lets pass."""
        return self.gathering.guidance(permits) if "gathering" in self.__dict__ else {}

    def section(self, faces: "Sequence[Face]", permits: Callable[[str], bool], *, listed: bool = True) -> str:
        """These tools, their servers, the skills and the agents, as a system prompt tells of them.

        Without `listed` only those tools that have more to say: a model API is told of them all in its own way.
        """
        from ferrule.registry.search import servers_section, tools_section  # for whoever writes a system prompt

        services = self._parts.services
        registry = self._given.registry
        shown = [face for face in faces if not self._parts.policy.denies_everything(face.tool)]
        told = shown if listed else filter(registry.guidance, shown)
        tools = tools_section([registry.resolve(face.name) for face in told], listed=listed)
        reader = next((face for face in shown if face.tool == READ_RESOURCE), None)
        servers = servers_section(self.instructions(permits), reader)
        agents = ""
        if any(face.tool == DELEGATE for face in shown):
            from ferrule.tools.agents import AgentFiles, AgentKinds

            agents = AgentKinds(services[AgentFiles]).catalog_text()
        from ferrule.tools.skills import Skills  # a call without a model needs none

        return "\n\n".join(part for part in (tools, servers, services[Skills].catalog_text(), agents) if part)
