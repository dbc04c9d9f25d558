"""An engine as a subagent has it: the same parts, its own memory, fewer tools, and no right that the session lacks."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from ferrule.context import CallContext
from ferrule.core.call import Call, Reply
from ferrule.core.errors import ToolFailure
from ferrule.core.events import Event, ToolsChanged
from ferrule.core.face import Face
from ferrule.engine.build import Parts
from ferrule.files.jail import Jail
from ferrule.flow import Flow
from ferrule.permissions.decision import parse_mode
from ferrule.permissions.policy import Policy, RuledHosts, StricterPolicy
from ferrule.permissions.toolset import ModeConfig, includes
from ferrule.schedule import Scheduler
from ferrule.system.threads import Threads

if TYPE_CHECKING:
    from ferrule.files.guidance import Guide


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
