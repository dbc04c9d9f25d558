"""The parts of an engine, put together from what it was given."""

import os
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ferrule.arguments.arguments import Arguments
from ferrule.call_checkpoint import CallCheckpoints
from ferrule.context import CallContext
from ferrule.core.events import Event
from ferrule.dialects.dialect import Dialect
from ferrule.execute.runner import Runner
from ferrule.flow import Flow
from ferrule.output.bounds import Bounds
from ferrule.permissions.asker import Asker
from ferrule.permissions.gate import Gate
from ferrule.permissions.modes import ModeConfig
from ferrule.permissions.policy import Policy
from ferrule.policing import Policing
from ferrule.registry.foreign import Family
from ferrule.registry.registry import Registry
from ferrule.schedule.scheduler import Scheduler
from ferrule.services import Services
from ferrule.settings import Settings, settings_path
from ferrule.workspace.guarded import Guard
from ferrule.workspace.paths import Jail


class Given(NamedTuple):
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
    policing: Policing
    policy: Policy
    runner: Runner
    flow: Flow


def assemble(given: Given) -> Parts:
    """Open the workspace, settle what dead engines have left there, and connect the stages."""
    settings = given.settings
    jail = Jail(os.path.expanduser(given.workspace), given.add_dirs)
    services = Services(jail, settings, given.state, given.session_id)
    services.sweep()
    services.sweep_processes()
    guard = services[Guard]
    guard.kept = tuple(_kept(given.dialect, jail))
    policing = Policing(jail, settings, given.state, given.registry, given.families)
    policy = policing.policy(services, notes=given.dialect.notes, mode=given.permission_mode, rules=given.rules)
    runner = Runner(seconds=settings.limits.seconds)
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
            approved=policing.approved,
            thread=given.session_id,
        ),
        checkpoints=CallCheckpoints(services),
        scheduler=Scheduler(settings.limits.parallel),
        runner=runner,
        bounds=Bounds(services.store, "ferrule output {}".format),
        emit=given.emit,
        clock=time.perf_counter,
    )
    return Parts(jail, services, policing, policy, runner, flow)


def _kept(dialect: Dialect, jail: Jail) -> list[str]:
    """The folders that the user keeps from being written, by the family's environment variable."""
    named = os.environ.get(dialect.protects, "") if dialect.protects else ""
    return [jail.real(folder) for folder in named.split(os.pathsep) if folder]
