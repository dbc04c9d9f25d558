"""An engine with plan mode, whoever wires it."""

from pathlib import Path
from typing import Any

from ferrule import Engine
from ferrule.core.services import Planning
from ferrule.files.guard import Guard
from ferrule.permissions.plan_mode import Planner

NAMES = {
    "claude": ("EnterPlanMode", "ExitPlanMode"),
    "wayland": ("EnterPlanMode", "ExitPlanMode"),
    "gemini": ("enter_plan_mode", "exit_plan_mode"),
}
"""Family → what it calls the tools."""


def planning(engine: Engine) -> Planning:
    """The session's plan mode. Where the engine does not make it by itself, it is made as the engine would."""
    services = engine._services
    if "Planning" not in services._factories and "Planning" not in services._made:
        names = NAMES.get(engine.dialect.name, ("", ""))
        services.later(
            "Planning",
            lambda: Planner(
                engine.jail,
                services[Guard],
                engine.policy,
                folder=engine.settings.plan.folder,
                ask=engine._flow.gate.put,
                allow=lambda texts: engine._policing.allow(engine.policy, texts, source="the approved plan"),
                exit_tool=names[1],
            ),
        )
    return services[Planning]


async def leave_by_tool(engine: Engine, **more: Any) -> Any:
    """The call that ends planning, in the words of the session's family; loaded first where it is deferred."""
    name = NAMES[engine.dialect.name][1]
    if engine.dialect.name == "gemini":
        more = {"plan_filename": Path(planning(engine).plan_path).name or "plan.md", **more}
    reply = await engine.call(name, **more)
    if "had not been loaded" in reply.text:
        reply = await engine.call(name, **more)
    return reply


async def enter_by_tool(engine: Engine, **more: Any) -> Any:
    name = NAMES[engine.dialect.name][0]
    reply = await engine.call(name, **more)
    return await engine.call(name, **more) if "had not been loaded" in reply.text else reply
