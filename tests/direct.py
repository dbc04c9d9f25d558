"""A tool run by its canonical arguments in a real workspace, without a dialect around it."""

import os
from typing import TYPE_CHECKING, Any

from ferrule.context import CallContext
from ferrule.core.call import Call
from ferrule.core.tool import AnyTool
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.services import Services
from ferrule.settings import FileSettings, Settings
from ferrule.system import Threads

if TYPE_CHECKING:
    from ferrule.core.access import Access


class Direct:
    """Runs a tool as the engine does, guard and all; what it noted and touched last is kept."""

    def __init__(self, folder: str | os.PathLike[str], *, guarded_allow: tuple[str, ...] = ()) -> None:
        self.jail = Jail(os.fspath(folder))
        settings = Settings(files=FileSettings(guarded_allow=guarded_allow))
        self.services = Services(self.jail, settings, os.path.join(os.fspath(folder), os.pardir, "state"))
        self.notes: list[str] = []
        self.touches: tuple[Access, ...] = ()

    async def __call__(self, tool: AnyTool, **values: Any) -> Any:
        ctx = CallContext(
            Call(tool.name, values, "call"),
            jail=self.jail,
            services=self.services,
            emit=lambda _: None,
            clock=lambda: 0.0,
            new_log=lambda: ("", ""),
        )
        self.notes = ctx.notes
        args = tool.args(**values)
        self.touches = tool.access(args, ctx)
        for access in self.touches:
            self.services[Guard].check_read(access.key)
            self.jail.place(access.key)
        return await tool.run(args, ctx)

    def close(self) -> None:
        self.services[Threads].close()
        self.jail.close()
