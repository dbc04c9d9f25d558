"""A command that outlives the session: nothing confines it then, so the user is always asked about it."""

import os

from ferrule.core.errors import ToolFailure
from ferrule.core.outcomes import Ran
from ferrule.core.tool import Context
from ferrule.settings import Settings
from ferrule.support.beneath import describe
from ferrule.support.environment import quiet_environment
from ferrule.support.programs import shell
from ferrule.support.roster import Roster
from ferrule.support.tasks import Tasks
from ferrule.workspace.paths import Jail


def detach(command: str, ctx: Context, *, cwd: str) -> Ran:
    """Start it and let it go; whoever wants to see or end it later does that by `ferrule tasks`."""
    from ferrule.support.detached import start_detached  # few commands are meant to stay

    settings, jail = ctx.need(Settings).shell, ctx.need(Jail)
    jail.check(cwd)
    log, name = ctx.new_log(), ctx.need(Tasks).new_id()
    if log is None:
        raise ToolFailure("It was not started: there is no place for its output.", code="no-log")
    try:
        pid = start_detached(
            [shell(outside=[root.path for root in jail.roots]), "-c", command],
            cwd=cwd,
            env=quiet_environment(os.environ, keep=settings.keep_env),
            log=log,
            log_limit_bytes=settings.log_mb << 20,
            roster=ctx.need(Roster),
            task=name,
        )
    except OSError as error:
        raise ToolFailure(f"Cannot run it in {cwd}: {describe(error)}.", path=cwd) from error
    ctx.keep_log(0)
    said = (
        f"It goes on when this session ends, as task {name} (process {pid}). For the user: `ferrule tasks output"
        f" {name}` shows what it prints, and `ferrule tasks stop {name}` ends it.\n"
    )
    return Ran(command, cwd, said, 0)
