"""The engine that a library user builds and closes, and its dry run for people who write rules."""

import asyncio
import functools
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import msgspec

from ferrule.core.access import EVERYTHING, Access
from ferrule.core.call import Call, Event, EventStream, Reply
from ferrule.core.errors import ConfigError, Denied, ToolFailure, UnknownTool
from ferrule.core.services import Planning
from ferrule.core.tool import AnyTool, Face
from ferrule.dialects import FAMILIES, Dialect, load_dialect
from ferrule.engine.build import (
    EngineInputs,
    assemble,
    check,
    check_folders,
    choose_dialect,
    family,
    new_session_id,
    registry_of,
    resolve_settings,
    with_network,
)
from ferrule.engine.extensions import Companions, SessionExtras
from ferrule.files.jail import Jail
from ferrule.files.ledger import Ledger
from ferrule.flow import Flow, ScheduledCall
from ferrule.permissions import (
    Asker,
    Callback,
    CallbackAsker,
    Case,
    Decision,
    ModeConfig,
    Nobody,
    Question,
    includes,
    parse_mode,
)
from ferrule.permissions.policy import Policy, mode_name
from ferrule.permissions.rules import PathAccess
from ferrule.registry.foreign import Family
from ferrule.schedule import batches
from ferrule.services import Services
from ferrule.settings import Settings, state_folder
from ferrule.system import Threads
from ferrule.tools import EXIT_PLAN, NEED_MODEL

if TYPE_CHECKING:
    from ferrule.checkpoints.undo import Rewind, Undone
    from ferrule.core.content import Planned
    from ferrule.core.services import Subagents
    from ferrule.engine.build import Branch
    from ferrule.files.guidance import Guide
    from ferrule.files.journal import JournalEntry, Node
    from ferrule.hooks import After, Hook
    from ferrule.output.store import Store, Stored
    from ferrule.registry.foreign import FamilyNames
    from ferrule.sources.load import SourceLoader


class Lookback:
    """The part of an engine that makes no calls."""

    jail: Jail
    _services: Services
    _flow: Flow
    _asker: Asker
    _opened = False

    @property
    def store(self) -> "Store":
        """Full outputs by id."""
        self._check_open()
        return self._services.store()

    @property
    def steps(self) -> "Planned":
        """The plan as the model last wrote it: steps, and how far each is."""
        self._check_open()
        return self._services.steps().plan

    def begin_prompt(self, number: int) -> None:
        """What is written from now on is for this prompt of the conversation; prompts count from 1."""
        self._check_open()
        self._services.begin_prompt(number)
        self._flow.checkpoints.prepare()

    async def undo(self, path: str | os.PathLike[str] | None = None) -> "Undone":
        """Take back the last write, of one file or of all, or all that the last command has changed.

        Raises `ToolFailure` where it would lose something. A repository that was removed comes back only if whoever
        the engine asks agrees.
        """
        self._check_open()
        await self._settle()
        undo = self._services.undo()
        gone = await self._services[Threads].run(undo.removed_repositories, self._real(path))
        with_git = bool(gone) and await self._may_bring_back(gone)
        return await self._step(functools.partial(undo.undo_last, with_git=with_git), path)

    async def _may_bring_back(self, repositories: "tuple[str, ...]") -> bool:
        names = ", ".join(map(self.jail.display_path, repositories))
        question = Question(
            kind="call",
            call_id="",
            name="undo",
            summary=f"Bring the removed repository {names} back, from the objects that were kept of it",
            touches=tuple(Access.write(path) for path in repositories),
        )
        return (await self._asker.ask(question)).allow

    async def _settle(self, *, is_looked: bool = False) -> None:
        """Have what commands in the background have changed written down."""
        if self._services.keeps_checkpoints():
            await self._flow.checkpoints.settle(is_looked=is_looked)

    async def rewind_preview(self, prompt: int, *, over: bool = False) -> "Rewind":
        """What going back to before a prompt of this conversation would do to the files. Raises `ToolFailure`."""
        self._check_open()
        await self._settle(is_looked=True)
        return await self._services[Threads].run(self._services.history().preview, prompt, over=over)

    async def rewind(self, prompt: int, *, over: bool = False) -> "Rewind":
        """Put every file back to what it was before a prompt of this conversation; `undo` takes that back.

        `over`: also what somebody else has changed since. Raises `ToolFailure`.
        """
        self._check_open()
        await self._settle()
        history = self._services.history()
        gone = (await self._services[Threads].run(history.preview, prompt, over=over)).repositories
        with_git = bool(gone) and await self._may_bring_back(gone)
        done = await self._services[Threads].finish(history.rewind_to, prompt, over=over, with_git=with_git)
        files = {
            one.path: None
            if one.after is None or one.after.kind != "file" or one.after.is_unkept
            else one.after.content
            for one in done.changes
        }
        self._services[Ledger].follow_to(files)
        return done

    async def redo(self, path: str | os.PathLike[str] | None = None) -> "Undone":
        """Write again what was last undone."""
        self._check_open()
        return await self._step(self._services.undo().redo_last, path)

    async def history(
        self, path: str | os.PathLike[str] | None = None
    ) -> "tuple[list[JournalEntry], list[JournalEntry]]":
        """The writes that can be undone and those that can be redone, the next one last."""
        self._check_open()
        return await self._services[Threads].run(self._services.undo().history, self._real(path))

    def bytes_before(self, node: "Node") -> bytes | None:
        """The bytes of a file as it was before a command, where they were kept."""
        return self._services.checkpoints().read(node)

    async def _step(self, step: "Callable[[str | None], Undone]", path: str | os.PathLike[str] | None) -> "Undone":
        done = await self._services[Threads].finish(step, self._real(path))
        self._services[Ledger].follow(done.after)
        for touched in done.touched:
            if touched not in done.after:
                self._services[Ledger].forget(touched)
        return done

    def _real(self, path: str | os.PathLike[str] | None) -> str | None:
        return None if path is None else self.jail.real(os.fspath(path))

    async def output(self, output_id: str) -> "Stored":
        """A full output that was kept. Raises `ToolFailure` for an unknown id."""
        self._check_open()
        stored = await self.store.get(output_id)
        if stored is None:
            raise ToolFailure(f"No output is kept as {output_id!r}. It may have been let go by age or size.")
        return stored

    def tell_left_out(self, tell: "Callable[[Mapping[str, str]], None]") -> None:
        """Have somebody told once, after the first look, which paths checkpoints leave out, and why."""
        self._flow.checkpoints.tell = tell

    def name_outputs(self, where: "Callable[[str], str]") -> None:
        """Have the notes about results that were cut say how the whole is read, by its id."""
        self._flow.bounds.where = where

    async def guidance(self) -> "tuple[Guide, ...]":
        """The guidance files that hold from the start, outermost first, with what they mention.

        For a system prompt. What lies deeper comes with the notes of the calls that go there.
        """
        self._check_open()
        return await self._services[Threads].run(self._services.guidance().start)

    def _check_open(self) -> None:
        if not self._opened:
            raise ConfigError("The engine is not open: use `async with Engine(...) as engine:`.")


S = TypeVar("S")
_log = logging.getLogger("ferrule")


class Engine(Lookback):
    """Tools over one workspace, for one session. Use it as `async with Engine(...) as engine:`."""

    def __init__(
        self,
        workspace: str | os.PathLike[str] = ".",
        *,
        dialect: "str | Dialect | Callable[[Settings], str] | None" = None,
        model: str | None = None,
        tools: "Iterable[AnyTool | Mapping[str, Any]]" = (),
        ask: Asker | Callback | None = None,
        mode: ModeConfig | None = None,
        permission_mode: str | None = None,
        rules: str | os.PathLike[str] | None = None,
        add_dirs: Sequence[str | os.PathLike[str]] = (),
        settings: Settings | None = None,
        over: Mapping[str, Any] = MappingProxyType({}),
        state: str | os.PathLike[str] | None = None,
        hooks: "Sequence[Hook]" = (),
        mcp_config: Sequence[str | os.PathLike[str]] = (),
        subagents: "Subagents | None" = None,
        session_id: str | None = None,
        lazy: bool = False,
        network: bool = False,
        allow_hosts: Sequence[str] = (),
        watched: bool = False,
        on_event: Callable[[Event], object] | None = None,
    ) -> None:
        """`lazy`: tools from elsewhere are looked for only when a call needs them, and none has to be loaded first.

        `network` lets commands use the network, and `allow_hosts` lets them reach these hosts, beside what the
        settings say. `watched`: a person sits before it, to whom servers' ports are forwarded.

        `over` are settings by their names, as in a file, that count over the user's and the project's for this session.

        `session_id` is given where an earlier session goes on. `dialect` may be a function of the settings.
        """
        check(tools := _make_tools(tools), ask, add_dirs, settings, mcp_config, mode=mode)
        self._tools = tools
        self.state = os.path.abspath(state) if state is not None else state_folder()
        found = (settings, None) if settings else resolve_settings(os.fspath(workspace), self.state, over)
        self.settings, self.layered = found
        self.settings = with_network(self.settings, network=network, hosts=allow_hosts)
        self._watched = watched
        more = (*self.settings.files.add_dirs, *(os.fspath(one) for one in add_dirs))
        self._folders = (os.fspath(workspace), more)
        check_folders(self._folders[0], *self._folders[1])
        self.dialect = choose_dialect(dialect(self.settings) if callable(dialect) else dialect, model, self.settings)
        self.registry = registry_of(self.dialect, self.settings, tools, self._foreign, for_people=lazy)
        self._asker: Asker = Nobody() if ask is None else ask if hasattr(ask, "ask") else CallbackAsker(ask)
        self.mode = mode or ModeConfig(allow_mcp=True, allow_toolbox=True)
        self._permissions = (permission_mode, None if rules is None else os.fspath(rules))
        self.session_id = session_id or new_session_id()
        """What hooks, toolboxes and delegates are told that the session is."""
        self._extra = SessionExtras(tuple(hooks), tuple(os.fspath(one) for one in mcp_config), subagents, lazy=lazy)
        self._on_event = on_event
        self._streams: set[EventStream] = set()
        self._calls = 0
        self._entered = 0
        """How often it was entered and not left."""
        self._entering = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __aenter__(self) -> Self:
        """Open it. Entered again, it is the same open engine until it was left as often; once closed, it opens anew.

        Raises `ConfigError` where it is open in another event loop.
        """
        loop = asyncio.get_running_loop()
        if self._loop not in {None, loop}:
            raise ConfigError(
                "The engine is open in another event loop. Use it there, make another Engine, or use a SyncEngine, "
                "which any thread may call."
            )
        self._loop = loop
        try:
            async with self._entering:
                if not self._opened:
                    self._open()
                    await self._companions.begin()
                self._entered += 1
        except BaseException:
            if not self._entered:
                await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._entered -= 1
        if self._entered <= 0:
            await self.close()

    def _foreign(self) -> list[Family]:
        """Every other family, in the order in which their words are tried."""
        return [family(load_dialect(name)) for name in FAMILIES if name != self.dialect.name]

    def _families(self) -> list[Family]:
        """Every family, the session's own first: rules are written in anybody's words."""
        return [family(self.dialect), *self._foreign()]

    def _open(self) -> None:
        workspace, add_dirs = self._folders
        if hasattr(self, "_parts"):
            # It was open before: what came from elsewhere is looked for anew.
            lazy = self._extra.lazy
            self.registry = registry_of(self.dialect, self.settings, self._tools, self._foreign, for_people=lazy)
        given = EngineInputs(
            workspace,
            add_dirs,
            self.settings,
            self.state,
            self.session_id,
            self.dialect,
            self.registry,
            self._families,
            self._asker,
            self.mode,
            *self._permissions,
            self._emit,
        )
        self._parts = assemble(given)
        self.jail, self._services, self._policing, self.policy, self._runner, self._flow = self._parts
        self._services.is_shared, self._services.is_watched = self._extra.lazy, self._watched
        self._companions = Companions(given, self._parts, self.layered, self._extra)
        self.registry.permits = self._permits
        self._opened = True

    async def close(self) -> None:
        """Stop what runs, wait for it, let go of everything. Closing twice is fine."""
        self._entered, self._loop = 0, None
        if not self._opened:
            return
        self._opened = False
        try:
            await self._flow.stop()
            await self._flow.checkpoints.close()
            await self._companions.end()
        finally:
            # Also when whoever closes it has no more patience with a hook: no process, lock or connection stays.
            self._runner.close()
            await self._services.close()
            for stream in self._streams:
                stream.put(None)
            self._streams = set()

    def definitions(self, wire: str | None = None) -> list[dict[str, Any]]:
        """The tools that the mode gives, as a model is shown them: name, description and input schema.

        With `wire` they are as that model API takes them: anthropic, openai-chat, openai-responses, gemini or mcp.
        """
        faces = self.faces()
        if wire is None:
            return [face.definition() for face in faces]
        from ferrule.wire import definition_of, load_wire  # for programs that talk to a model themselves

        out: list[dict[str, Any]] = load_wire(wire).definitions_out([definition_of(face) for face in faces])
        return out

    def faces(self) -> list[Face]:
        """The tools that a model is shown. A session that plans shows those that read, and the way out of planning."""
        given = self._available_faces()
        if not self._opened or not self.policy.is_planning:
            return given
        from ferrule.permissions.plan_mode import select_plan_tools  # for sessions that plan

        way_out = self.registry.face_of(EXIT_PLAN)
        return select_plan_tools(
            given, way_out if way_out is not None and self._permits(way_out) else None, self.registry.facts
        )

    def _available_faces(self) -> list[Face]:
        """The tools that the mode and the rules give."""
        return [face for face in self.registry.visible_faces() if self._permits(face)]

    def _permits_name(self, tool: str) -> bool:
        """Can the session use a tool from elsewhere, shown or deferred?"""
        is_given = includes(self.mode, tool, canonical=self.registry.canonical)
        return is_given and not self.policy.denies_everything(tool)

    def _permits(self, face: Face) -> bool:
        """Can the session use it? Tools that are subagents cannot be used without a model."""
        if self.registry.facts(face).offered == "with repositories" and not self.settings.repositories:
            return False
        if face.tool in NEED_MODEL and (self._extra.subagents is None or self.settings.loop.depth <= 0):
            return False
        types = self.registry.subagent_types(face)
        is_given = includes(self.mode, face.name, subagent_types=types, canonical=self.registry.canonical)
        return is_given and not (self._opened and self.policy.denies_everything(face.tool))

    def section(self, *, listed: bool = True) -> str:
        """The part of a system prompt that tells a model of its tools: names, descriptions, guidance, skills, agents.

        Without `listed`, tools are named only where they have guidance: for models that are shown the definitions.
        """
        self._check_open()
        return self._companions.section(self._available_faces(), self._permits_name, listed=listed)

    def instructions(self) -> dict[str, str]:
        """MCP server → what it says about the use of its tools, as the user has approved it; a part of `section`."""
        self._check_open()
        return self._companions.instructions(self._permits_name)

    def need(self, service: type[S]) -> S:
        """The session's one object of that type, as its tools have it."""
        self._check_open()
        return self._services[service]

    def give(self, name: str, make: Callable[[], object]) -> None:
        """Have the session's tools find this object under the name of its type."""
        self._check_open()
        self._services.later(name, make)

    def change_mode(self, name: str) -> str:
        """Have another permission mode hold from now on, through the same checks as at the start; which one does.

        Calls and tasks that run go on. Raises `ConfigError` for a mode that there is not, or that is switched off.
        """
        self._check_open()

        planning, wanted = self._services[Planning], parse_mode(name).name
        if wanted == "plan":
            planning.enter()
        else:
            self._policing.change_mode(self.policy, wanted)
            if planning.is_on:
                planning.leave()
        return mode_name(self.policy)

    async def tell(self, event: str, **fields: Any) -> "After | None":
        """Tell the user's hooks of what is no call, as `Stop`; None where nobody is told."""
        self._check_open()
        return await self._companions.tell(event, fields)

    def branch(
        self,
        name: str,
        mode: ModeConfig,
        *,
        services: Mapping[str, object] = MappingProxyType({}),
        permission_mode: str = "",
        on_event: Callable[[Event], None] | None = None,
        policy: Policy | None = None,
    ) -> "Branch":
        """The same engine for a subagent: the tools of its mode, one order of calls, no right that `policy` lacks."""
        self._check_open()
        from ferrule.engine.build import Branch  # for sessions with subagents

        return Branch(
            self._parts,
            self._companions,
            name=name,
            mode=msgspec.structs.replace(mode, within=mode.within or self.mode),
            services=services,
            permission_mode=permission_mode,
            emit=on_event or self._emit,
            policy=policy,
        )

    async def connect(self, servers: Sequence[str] | None = None) -> None:
        """Look for all tools from elsewhere, starting the MCP servers that are named, or all that were never listed.

        What could not be used is in `warnings`.
        """
        await self.sources.connect(servers)

    @property
    def sources(self) -> "SourceLoader":
        """Where tools from elsewhere come from: MCP servers, toolboxes and the user's own."""
        self._check_open()
        return self._companions.gathering

    @property
    def beginning(self) -> tuple[str, ...]:
        """What the hooks of the session's start want the model to know."""
        self._check_open()
        return self._companions.beginning

    async def run(self, calls: Iterable[Call], *, approved: Iterable[str] = ()) -> list[Reply]:
        """One message's calls, scheduled together; the replies come in the order of the calls.

        `approved` are the ids of calls that the user has agreed to elsewhere: where one would ask, the answer is yes,
        once. It goes over no rule that denies, opens no folder, and lets nothing write protected files.
        """
        self._check_open()
        named = [self._assign_id(call) for call in calls]
        agreed = _check_approved(approved, named) if approved else frozenset()
        if not await self._companions.ensure([call.name for call in named]):
            return self._flow.reply_cancelled(named)
        return await self._flow.run(named, approved=agreed)

    async def call(self, name: str, /, **input: Any) -> Reply:  # noqa: A002 - the word of the wire
        """One call."""
        return (await self.run([Call(name, input)]))[0]

    def misfit(self, call: Call) -> ToolFailure | None:
        """Why a name and its arguments make no call of a tool here; None where they do, also one that would fail."""
        self._check_open()
        return self._flow.misfit(call)

    def cancel(self) -> None:
        """Stop every running call; each still gets its reply, with the status `cancelled`."""
        self._check_open()
        self._companions.cancel()
        self._flow.cancel()

    def background(self) -> int:
        """Send every command that a call waits for to the background, and have the calls answered; how many."""
        self._check_open()
        from ferrule.system.tasks import Tasks  # for whoever watches commands run

        return self._services[Tasks].release()

    def plan(self, calls: Iterable[Call]) -> list[list[Call]]:
        """The calls in batches that could run side by side, without running any of them.

        Raises `ToolFailure` for a call that could not run at all.
        """
        self._check_open()

        return plan_batches(self._flow, [self._assign_id(call) for call in calls])

    async def decide(self, call: Call) -> "Decision":
        """What would be said about a call: allow, ask or deny, by which rule and why. Nothing runs, nobody is asked."""
        self._check_open()

        call = self._assign_id(call)
        return await weigh(self._flow, call, self._policing.names())

    def why_asked(self) -> str:
        """Why confined commands ask all the same, as a sentence; empty where they run without a question."""
        self._check_open()
        return self._services.why_asked()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What could not be used of the rules, the settings and the tools from elsewhere, each as a sentence."""
        self._check_open()
        return (*self._policing.warnings, *self._companions.warnings)

    def events(self) -> EventStream:
        """What happens from now on, as it happens, for `async for`."""
        self._check_open()
        stream = EventStream(self._streams.discard)
        self._streams.add(stream)
        return stream

    def _assign_id(self, call: Call) -> Call:
        given: object = call
        if not isinstance(given, Call) or not isinstance(given.name, str):
            raise ConfigError(f"A call is Call(name, input), not {call!r:.80}.")
        self._calls += 1
        return call if call.id else Call(call.name, call.input, f"call_{self._calls}")

    def _emit(self, event: Event) -> None:
        for stream in self._streams:
            stream.put(event)
        if self._on_event is not None:
            try:
                self._on_event(event)
            except Exception:  # noqa: BLE001 - whoever listens must not be able to fail a call
                _log.exception("on_event failed; the call goes on")


def _make_tools(given: "Iterable[AnyTool | Mapping[str, Any]]") -> tuple[AnyTool, ...]:
    """The tools that a program gives: made by it, or written down as records. Raises `ConfigError`."""
    tools: list[Any] = []
    for one in given:
        if isinstance(one, Mapping):
            from ferrule.sources.custom.module import tool_of  # for programs that write records

            try:
                one = tool_of(one, "the program")  # noqa: PLW2901 - what it stands for
            except ValueError as error:
                raise ConfigError(f"tools= has a record that no model could call: {error}") from error
        tools.append(one)
    return tuple(tools)


def _check_approved(approved: Iterable[str], calls: Sequence[Call]) -> frozenset[str]:
    """Return the ids that were agreed to; raise `ConfigError` for one that names no call, or two."""
    agreed = frozenset({approved} if isinstance(approved, str) else approved)
    ids = [call.id for call in calls]
    if unknown := sorted(agreed.difference(ids)):
        raise ConfigError(f"approved= names no call of this message: {', '.join(unknown)}. Give each Call its id.")
    if twice := sorted(one for one in agreed if ids.count(one) > 1):
        raise ConfigError(f"approved= names two calls of this message: {', '.join(twice)}. Give each its own id.")
    return agreed


async def weigh(flow: Flow, call: Call, names: "FamilyNames") -> Decision:
    """Allow, ask or deny, and why in one sentence."""
    ready = flow.look(call)
    if isinstance(ready, ScheduledCall):
        case = flow.case(ready)
        decision = await _decide_case(flow, case)
        if decision.verdict == "allow" and (secret := flow.gate.secrets(case)):
            return Decision("ask", f"{secret[0]} is a secret file: only a person can let it be read.", fixed=True)
        return decision
    error = ready.error
    if isinstance(error, UnknownTool):
        # Rules may be about tools that this session does not have: those of servers, and those that are to come.
        decision = await _decide_case(flow, _elsewhere(call, names))
        if names.tool(call.name) is None and not decision.rule and not call.name.startswith(("mcp__", "tb__")):
            return decision._replace(why=f"{call.name} is no tool that Ferrule knows, and no rule covers it.")
        return decision
    said = error.message if isinstance(error, ToolFailure) else str(error)
    if isinstance(error, ToolFailure) and error.code == "denied-by-rule" and error.path is not None:
        rule = _find_deny_rule(flow, error.path)
        return Decision("deny", f"{call.name} is denied by {rule}: {said}", rule, fixed=True)
    return Decision("deny", f"The call cannot run: {said}")


def plan_batches(flow: Flow, calls: Sequence[Call]) -> list[list[Call]]:
    """The calls in batches that could run side by side. Raises `ToolFailure` for a call that could not run at all."""
    looked = [(call, flow.look(call)) for call in calls]
    for call, ready in looked:
        if not isinstance(ready, ScheduledCall):
            raise ToolFailure(f"{call.id}: {ready.error}") from ready.error
    return batches([(call, ready.touches) for call, ready in looked if isinstance(ready, ScheduledCall)])


def _find_deny_rule(flow: Flow, path: str) -> str:
    """The rule that denies a path to whoever reads or writes it."""
    found = (
        *flow.gate.policy.bound(PathAccess("read", path, path)),
        *flow.gate.policy.bound(PathAccess("write", path, path)),
    )
    return next((rule.text for rule in found if rule.action == "deny"), "")


async def _decide_case(flow: Flow, case: Case) -> Decision:
    try:
        flow.gate.check_mode(case)
        return await flow.gate.decide_case(case)
    except Denied as denied:
        return Decision("deny", denied.message)


def _elsewhere(call: Call, names: "FamilyNames") -> Case:
    tool = names.tool(call.name) or call.name
    given: Mapping[str, Any] = call.input if isinstance(call.input, dict) else {}
    return Case(call.id, call.name, tool, (EVERYTHING,), input=given)
