"""What the tools of agents reach beside files and commands, each made when it is first asked for."""

import os
import time
from collections.abc import Iterable

from ferrule.core.events import Blocked, TodoItem, TodosChanged, ToolsChanged
from ferrule.core.services import Planning
from ferrule.engine.build import EngineInputs, Parts
from ferrule.files.guard import Guard
from ferrule.permissions.ask import Choosers
from ferrule.permissions.policy import RuledHosts
from ferrule.settings.schema import settings_path
from ferrule.tools import EXIT_PLAN


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
        from ferrule.tools.todos.store import Todos  # for sessions that keep a list

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
        from ferrule.tools.agents.kinds import BUILT_IN, AgentFiles

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
        from ferrule.system.roster import Roster
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
