"""Which tools from elsewhere a session takes, and why it does not take the others."""

import re
from collections.abc import Iterable, Mapping, ValuesView
from typing import NamedTuple

from ferrule.core.errors import ConfigError
from ferrule.core.tool import AnyTool, Tool
from ferrule.registry.cost import as_json
from ferrule.registry.exposure import Disabled, kindred
from ferrule.registry.ground import Ground

_DEEPEST = 200
"""Levels of a schema; those that people write have a dozen."""
_NAME = re.compile(r"[^\s/\\]{1,128}")
PREFIXES = {"toolbox": "tb__", "mcp": "mcp__"}
"""Of tools that never stand in another's place, in the order in which they get their names."""
_CONFINED = frozenset({"shell", "shell_session", "skill", "check"})
"""Names by which the policy knows whose commands run in the sandbox: nothing from elsewhere may bear one."""


class Came(NamedTuple):
    """The tools that are accepted, by name, and what is said of the others."""

    own: dict[str, AnyTool]
    """The user's and the project's."""
    elsewhere: dict[str, AnyTool]
    """Those of toolboxes and servers."""
    warnings: dict[str, str]
    """Each with the source that it is about."""

    def every(self) -> dict[str, AnyTool]:
        return {**self.own, **self.elsewhere}


class Accepting:
    """What the names of a session leave for others to take."""

    def __init__(self, ground: Ground, disable: Disabled | None) -> None:
        """`disable` are the tools that the settings switch off, if any."""
        self._ground = ground
        self._disable = disable
        self._looked: dict[int, tuple[AnyTool, str]] = {}
        """What is wrong with a tool's description, by its identity: it is looked at once."""

    def accepted(self, sources: Mapping[str, tuple[AnyTool, ...]]) -> Came:
        own: dict[str, AnyTool] = {}
        elsewhere: dict[str, AnyTool] = {}
        warnings: dict[str, str] = {}
        brought = [(source, tool) for source, tools in sources.items() for tool in tools]
        self._looked = {id(tool): self._looked.get(id(tool)) or (tool, _flaw(tool)) for _, tool in brought}
        for source, tool in sorted(brought, key=lambda one: _rank(one[1])):
            if self._disable is not None and self._disable.has((tool.name, tool.short or tool.name)):
                continue
            fault = self._looked[id(tool)][1] or self._fault(tool, own, elsewhere)
            if fault:
                origin = f" ({tool.origin})" if tool.origin else ""
                warnings[f"The tool {tool.name[:128]!r}{origin} is left out: {fault}."] = source
            elif is_far(tool):
                elsewhere[tool.name] = tool
            else:
                own[tool.name] = tool
        return Came(own, elsewhere, warnings)

    def _fault(self, tool: AnyTool, own: Mapping[str, AnyTool], elsewhere: Mapping[str, AnyTool]) -> str:
        """Why a tool cannot be taken; empty where it can."""
        name, ground = tool.name, self._ground
        # A name is shown to people too: nothing in it may steer a screen, or turn its letters round.
        if not _NAME.fullmatch(name) or not name.isprintable():
            return "it needs a name of up to 128 printable characters without blanks and slashes"
        if is_far(tool):
            if not name.startswith(PREFIXES[tool.source]):
                return f"names of its kind begin with {PREFIXES[tool.source]}"
            if name in own or name in elsewhere or name in ground.names or name in ground.tools:
                return "another tool has that name; change one of the two"
            return ""
        if name.startswith(tuple(PREFIXES.values())):
            return "names that begin so belong to servers and toolboxes"
        if name in _CONFINED:
            return f"no other tool can be called {name}; give it another name"
        if any(behind in ground.given for behind in self.behind(name)):
            return "the program that runs this session has a tool of that name"
        return ""

    def behind(self, name: str) -> frozenset[str]:
        """The tools of the session that a name means: what one of the user's own tools takes the place of."""
        ground = self._ground
        faces = [ground.names[name], *ground.older.get(name, ())] if name in ground.names else []
        behind = {face.tool for face in faces} | ({name} if name in ground.tools else set())
        # Another family's tool for the same is no way around what took this one's place.
        alike = {one for tool in behind for one in kindred(tool) if one in ground.tools and one not in ground.answers}
        return frozenset(behind | alike)


def checked(tools: Iterable[AnyTool]) -> tuple[AnyTool, ...]:
    """The tools of a source, once it is certain that they are tools."""
    every = tuple(tools)
    for one in every:
        given: object = one
        if not isinstance(given, Tool):
            raise ConfigError(f"A source brings tools, not {given!r:.80}.")
    return every


def _flaw(tool: AnyTool) -> str:
    """Why no model can be told of a tool; empty where one can."""
    if tool.definition_chars:
        return ""  # it came as JSON, and was looked at when it was listed
    given: tuple[object, ...] = (tool.name, tool.words, tool.short, tool.schema)
    if not all(isinstance(text, str) for text in given[:3]) or not isinstance(given[3], Mapping):
        return "its name and its description must be texts, and its schema an object"
    try:
        as_json((tool.name, tool.words, tool.schema))
    except (TypeError, ValueError, RecursionError) as error:
        return f"its description cannot be written as JSON ({error})"
    # How deep JSON may be differs from one Python to the next.
    return "" if _is_shallow(tool.schema) else f"its schema is more than {_DEEPEST} levels deep as JSON"


def _is_shallow(schema: object) -> bool:
    level = [schema]
    for _ in range(_DEEPEST):
        within = (one.values() if isinstance(one, Mapping) else one for one in level)
        level = [inner for one in within if isinstance(one, ValuesView | list | tuple) for inner in one]
        if not level:
            return True
    return False


def is_far(tool: AnyTool) -> bool:
    return tool.source in PREFIXES


def _rank(tool: AnyTool) -> int:
    return list(PREFIXES).index(tool.source) if is_far(tool) else -1
