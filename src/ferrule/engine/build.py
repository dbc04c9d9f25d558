"""Build an engine from its options: settings, dialect and parts; and a branch of it for a subagent."""

import functools
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypedDict

import msgspec

from ferrule.arguments.schema import Arguments
from ferrule.call_checkpoint import CallCheckpoints
from ferrule.context import CallContext
from ferrule.core.call import Call, Event, Reply, ToolsChanged
from ferrule.core.errors import ConfigError, ToolFailure
from ferrule.core.tool import AnyTool, Face, Tool
from ferrule.dialects import Dialect, load_dialect, pick
from ferrule.execute import ToolRunner
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.flow import Flow
from ferrule.output.bounds import OutputLimiter
from ferrule.permissions import Asker, ModeConfig, includes, parse_mode
from ferrule.permissions.gate import Gate
from ferrule.permissions.policy import Policy, RuledHosts, StricterPolicy
from ferrule.permissions.trust import Trust, project_files
from ferrule.registry import Registry
from ferrule.registry.entry import ExposurePolicy, Later
from ferrule.registry.foreign import Family
from ferrule.schedule import Scheduler
from ferrule.services import Services
from ferrule.session_policy import SessionPolicy
from ferrule.settings import Settings, load_settings, managed_path, read_settings, settings_path
from ferrule.system import Threads
from ferrule.tools import BUILTIN, load

if TYPE_CHECKING:
    from ferrule.files.guidance import Guide
    from ferrule.hooks import Hook
    from ferrule.settings.layers import Layered


class EngineInputs(NamedTuple):
    """What an engine was given, in its final form."""

    workspace: str
    add_dirs: tuple[str, ...]
    settings: Settings
    state: str
    session_id: str
    dialect: Dialect
    registry: Registry
    families: Callable[[], Sequence[Family]]
    """Every family, the session's own first: rules are written in anybody's words."""
    asker: Asker
    mode: ModeConfig
    permission_mode: str | None
    rules: str | None
    emit: Callable[[Event], None]


class Parts(NamedTuple):
    """An open engine's parts."""

    jail: Jail
    services: Services
    policing: SessionPolicy
    policy: Policy
    runner: ToolRunner
    flow: Flow


def assemble(given: EngineInputs) -> Parts:
    """Open the workspace, settle what dead engines have left there, and connect the stages."""
    settings = given.settings
    jail = Jail(os.path.expanduser(given.workspace), given.add_dirs)
    services = Services(jail, settings, given.state, given.session_id)
    services.sweep()
    services.sweep_processes()
    guard = services[Guard]
    guard.kept = tuple(_read_protected_folders(given.dialect, jail))
    policing = SessionPolicy(jail, settings, given.state, given.registry, given.families)
    policy = policing.policy(services, notes=given.dialect.notes, mode=given.permission_mode, rules=given.rules)
    runner = ToolRunner(seconds=settings.limits.seconds)
    flow = Flow(
        context=lambda call: CallContext(
            call,
            jail=jail,
            services=services,
            emit=given.emit,
            clock=time.perf_counter,
            new_log=lambda: services.store().new_log(),
        ),
        registry=given.registry,
        arguments=Arguments(),
        gate=Gate(
            jail,
            guard,
            given.asker,
            mode=given.mode,
            canonical=given.registry.canonical,
            own=(given.state, settings_path()),
            kept=guard.kept,
            policy=policy,
            save=policing.save(policy),
            approved=policing.make_approved,
            thread=given.session_id,
        ),
        checkpoints=CallCheckpoints(services),
        scheduler=Scheduler(settings.limits.parallel),
        runner=runner,
        bounds=OutputLimiter(services.store, "ferrule output {}".format),
        emit=given.emit,
        clock=time.perf_counter,
    )
    return Parts(jail, services, policing, policy, runner, flow)


def _read_protected_folders(dialect: Dialect, jail: Jail) -> list[str]:
    """The folders that the user keeps from being written, by the family's environment variable."""
    named = os.environ.get(dialect.protects, "") if dialect.protects else ""
    return [jail.real(folder) for folder in named.split(os.pathsep) if folder]


class EngineOptions(TypedDict, total=False):
    """What an engine takes that a session hands on as it is, so that whoever writes a program is told of them."""

    mode: "ModeConfig | None"
    permission_mode: str | None
    rules: str | os.PathLike[str] | None
    add_dirs: Sequence[str | os.PathLike[str]]
    settings: Settings | None
    over: Mapping[str, Any]
    hooks: "Sequence[Hook]"
    mcp_config: Sequence[str | os.PathLike[str]]
    lazy: bool
    network: bool
    allow_hosts: Sequence[str]
    watched: bool


def with_network(settings: Settings, *, network: bool, hosts: Sequence[str]) -> Settings:
    """The settings with what this session may reach beside them. Raises `ConfigError` for what is no host."""
    if not network and not hosts:
        return settings

    from ferrule.system.hosts import entries  # for sessions that are given hosts

    try:
        entries(hosts)
    except ValueError as error:
        raise ConfigError(f"allow_hosts: {error}") from error
    sandbox = settings.sandbox
    changed = msgspec.structs.replace(
        sandbox, network=network or sandbox.network, hosts=(*sandbox.hosts, *map(str, hosts))
    )
    return msgspec.structs.replace(settings, sandbox=changed)


def family(dialect: Dialect) -> Family:
    """A dialect as the registry takes it."""
    return Family(dialect.name, dialect.faces, dialect.aliases)


def choose_dialect(given: str | Dialect | None, model: str | None, settings: Settings) -> Dialect:
    """The dialect that was given, else the one that the model speaks best, else the one of the settings."""
    if isinstance(given, Dialect):
        return given
    if given is None and model is not None:
        given = pick(model, settings.dialects)
    return load_dialect(settings.dialect if given is None else given)


def resolve_settings(
    workspace: str, state: str, over: Mapping[str, Any] = MappingProxyType({})
) -> "tuple[Settings, Layered | None]":
    """The settings of all layers, and where they came from; mostly there is only the user's file, or none.

    `over` is what this session wants beside them.
    """
    project = os.path.join(workspace, ".ferrule", "settings.toml")
    if not over and not os.path.lexists(project) and not os.path.exists(managed_path()):
        settings = load_settings()
        if "user" in settings.sources:
            return settings, None
    whole = layers_of(workspace, state, over)
    return whole.settings, whole


def layers_of(workspace: str, state: str, over: Mapping[str, Any] = MappingProxyType({})) -> "Layered":
    """The settings of all layers, each value with its origin."""
    from ferrule.settings.layers import (
        LayerFile,
        merge_layers,
        project_path,
    )  # for projects and machines with settings of their own

    files = []
    if (raw := read_settings(managed_path())) is not None:
        files.append(LayerFile("managed", managed_path(), raw))
    if (raw := read_settings(settings_path())) is not None:
        files.append(LayerFile("user", settings_path(), raw))
    sources = over.get("sources") or merge_layers(files, over).settings.sources
    real = os.path.realpath(os.path.expanduser(workspace))
    path = project_path(real)
    notes: tuple[str, ...] = ()
    if os.path.lexists(path) and "project" in sources:
        seen = Trust(state).look(real, project_files(real))
        if seen.state == "trusted" and path in seen.contents:
            files.append(LayerFile("project", path, seen.contents[path]))
        else:
            notes = (f"{path} is not trusted: only its rules that tighten count. See `ferrule permissions trust`.",)
    whole = merge_layers(files, over)
    return whole._replace(warnings=(*whole.warnings, *notes))


def registry_of(
    dialect: Dialect,
    settings: Settings,
    tools: Sequence[AnyTool],
    foreign: Callable[[], Sequence[Family]],
    *,
    for_people: bool,
) -> Registry:
    """The built-in tools and those that the program gives, with the family's faces."""
    known = (Later(name, functools.partial(load, name)) for name in BUILTIN)
    showing = ExposurePolicy(
        disable=settings.tools.disable,
        exposure={**dict.fromkeys(dialect.deferred, "deferred"), **settings.tools.exposure},
        short_names=dialect.short_names,
        defers=dialect.defers,
        defer_tokens=settings.mcp.defer_tokens,
        for_people=for_people,
    )
    return Registry((*known, *tools), dialect.faces, dialect.aliases, foreign, showing)


def new_session_id() -> str:
    """An id that nobody can guess, in the form that Amp's threads have."""
    raw = os.urandom(16).hex()
    return f"T-{raw[:8]}-{raw[8:12]}-{raw[12:16]}-{raw[16:20]}-{raw[20:]}"


def check_folders(*folders: str) -> None:
    """Refuse what is no folder."""
    for folder in folders:
        if not os.path.isdir(os.path.expanduser(folder)):
            raise ConfigError(f"{folder} is not a folder.")


def check(
    tools: Sequence[object],
    ask: object,
    add_dirs: object,
    settings: object,
    mcp_config: Sequence[object] = (),
    *,
    mode: object = None,
) -> None:
    """Refuse at once what would only fail later, in the middle of a session."""
    for one in tools:
        if not isinstance(one, Tool):
            raise ConfigError(f"tools= takes tools, made with @tool or from Tool, not {one!r:.80}.")
    if ask is not None and not callable(ask) and not hasattr(ask, "ask"):
        raise ConfigError(f"ask= takes a function that answers questions, not {ask!r:.80}.")
    if isinstance(add_dirs, (str, os.PathLike)):
        raise ConfigError("add_dirs= takes a list of folders; give [folder].")
    if isinstance(mcp_config, str) or not all(isinstance(one, str | os.PathLike) for one in mcp_config):
        raise ConfigError("mcp_config= takes a list of files, or of texts with JSON in them; give [file].")
    if settings is not None and not isinstance(settings, Settings):
        raise ConfigError("settings= takes a Settings; msgspec.convert(values, Settings) makes one of plain values.")
    if isinstance(mode, str):
        raise ConfigError(f"mode= takes a ModeConfig, the tools of a session; is permission_mode={mode!r} meant?")


class BranchContext(Protocol):
    """What a session has around its calls, as a branch needs it."""

    async def ensure(self, names: Sequence[str]) -> bool: ...

    def section(self, faces: Sequence[Face], permits: Callable[[str], bool], *, listed: bool = True) -> str: ...


class Branch:
    """Calls of one subagent. They stand in one order with all calls of the session, so none collides with another."""

    def __init__(
        self,
        parts: Parts,
        around: BranchContext,
        *,
        name: str,
        mode: ModeConfig,
        services: Mapping[str, object],
        permission_mode: str,
        emit: Callable[[Event], None],
        policy: Policy | None = None,
    ) -> None:
        """`policy` is what holds for whoever starts it; the session's where nothing is said."""
        parent, held = parts.flow, policy or parts.policy
        self.name = name
        self.mode = mode
        self.registry = parent.registry
        self.policy = StricterPolicy(held, parse_mode(permission_mode)) if permission_mode else held
        self.services = parts.services.view(services)
        self.services.later("HostsAllowed", self._hosts_allowed)
        self.services.later("Catalog", self._catalog)
        self._emit = emit
        self._changes = self.registry.changes
        self._parts = parts
        self._around = around
        self._calls = 0
        self.jail = jail = self.services[Jail]
        self._flow = Flow(
            context=lambda call: CallContext(
                call,
                jail=jail,
                services=self.services,
                emit=emit,
                clock=time.perf_counter,
                new_log=lambda: parts.services.store().new_log(),
            ),
            registry=parent.registry,
            arguments=parent.arguments,
            gate=parent.gate.child(name, mode, self.policy),
            checkpoints=parent.checkpoints,
            scheduler=parent.scheduler,
            runner=parent.runner,
            bounds=parent.bounds,
            emit=emit,
            clock=parent.clock,
            hooks=parent.hooks,
            context_kind="subagent",
        )
        self._flow.why_not = parent.why_not

    def stand_beside(self) -> None:
        """Order its calls among themselves alone: whoever waits for this subagent holds all that they may read."""
        self._flow.scheduler = Scheduler(self._flow.scheduler.parallel)

    async def run(self, calls: Iterable[Call]) -> list[Reply]:
        """One message's calls; the replies come in the order of the calls."""
        named_calls = [self._assign_id(call) for call in calls]
        if not await self._around.ensure([call.name for call in named_calls]):
            return self._flow.reply_cancelled(named_calls)
        self._flow.notices = self._parts.flow.notices
        try:
            return await self._flow.run(named_calls)
        finally:
            self._tell_changed()

    def _tell_changed(self) -> None:
        """Tell the subagent that there are other tools; the session's own agent hears it from the engine."""
        changes, self._changes = self._changes, self.registry.changes
        if changes != self._changes:
            self._emit(ToolsChanged(id="", name="", at=self._flow.clock()))

    def cancel(self) -> None:
        """Stop every running call of this subagent; each still gets its reply."""
        self._flow.cancel()

    def misfit(self, call: Call) -> ToolFailure | None:
        """Why a name and its arguments make no call of a tool here; None where they do."""
        return self._flow.misfit(call)

    def faces(self) -> list[Face]:
        """The tools that it is shown; while it may only read, those that read."""
        given = self._available_faces()
        if not self.policy.is_planning:
            return given
        from ferrule.permissions.plan_mode import select_plan_tools  # as the engine does

        return select_plan_tools(given, None, self.registry.facts)

    def _available_faces(self) -> list[Face]:
        shown = (face for face in self.registry.visible_faces() if self._gives(face))
        return [face for face in shown if not self.policy.denies_everything(face.tool)]

    def section(self) -> str:
        """The part of its system prompt that tells of its tools."""
        return self._around.section(self._available_faces(), self._permits, listed=False)

    async def guidance(self) -> "tuple[Guide, ...]":
        """The guidance files that hold from the start."""
        return await self.services[Threads].run(self.services.guidance().start)

    async def close(self) -> None:
        """Stop what it still does, and end what it has left running."""
        await self._flow.stop()
        await self.services.close()

    def _hosts_allowed(self) -> object:
        return RuledHosts(self.policy)

    def _gives(self, face: Face) -> bool:
        types = self.registry.subagent_types(face)
        return includes(self.mode, face.name, subagent_types=types, canonical=self.registry.canonical)

    def _permits(self, tool: str) -> bool:
        is_given = includes(self.mode, tool, canonical=self.registry.canonical)
        return is_given and not self.policy.denies_everything(tool)

    def _catalog(self) -> object:
        """What a search of the subagent's finds: nothing that its mode refuses."""
        return self.registry.catalog.within(self._gives)

    def _assign_id(self, call: Call) -> Call:
        self._calls += 1
        return call if call.id else Call(call.name, call.input, f"call_{self._calls}")
