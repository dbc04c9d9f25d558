"""Tools from elsewhere, and sessions that they come into, for the tests of the registry."""

import functools
from collections.abc import Mapping
from typing import Any

from ferrule.core.tool import Args, Context, Exposure, Raw, Source, Tool
from ferrule.dialects import FAMILIES, load_dialect
from ferrule.registry import Registry
from ferrule.registry.entry import ExposurePolicy, Later
from ferrule.registry.foreign import Family
from ferrule.tools import BUILTIN, load

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"text": {"type": "string", "description": "What to work on."}},
    "required": ["text"],
}


class Brought(Tool[Raw, Any]):
    """A tool that says what it was given."""

    args: type[Args] = Raw

    def __init__(
        self,
        name: str,
        words: str = "Do something.",
        *,
        source: Source = "custom",
        short: str = "",
        schema: Mapping[str, Any] = SCHEMA,
        exposure: Exposure | None = None,
        guidance: str = "",
    ) -> None:
        self.name = name
        self.words = words
        self.source = source
        self.short = short
        self.schema = schema
        self.exposure = exposure
        self.guidance = guidance

    async def run(self, args: Raw, ctx: Context) -> Any:
        return dict(args.values)


def mcp(server: str, tool: str, words: str = "Do something far away.", **more: Any) -> Brought:
    return Brought(f"mcp__{server}__{tool}", words, source="mcp", short=tool, **more)


def session(name: str, **showing: Any) -> Registry:
    """The registry of a session in that family's dialect."""
    dialect = load_dialect(name)
    known = [Later(tool, functools.partial(load, tool)) for tool in BUILTIN]
    others = [load_dialect(other) for other in FAMILIES if other != name]
    families = [Family(one.name, one.faces, one.aliases) for one in others]
    usual = {"short_names": dialect.short_names, "defers": dialect.defers}
    return Registry(known, dialect.faces, dialect.aliases, lambda: families, ExposurePolicy(**{**usual, **showing}))


def names(registry: Registry) -> list[str]:
    return [face.name for face in registry.visible_faces()]
