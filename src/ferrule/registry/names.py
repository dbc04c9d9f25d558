"""Map the names of tools and parameters in every family, which rules are written in, and explain unknown names.

A name cannot be called if it is unknown, switched off, shared by two tools, or not loaded yet.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec

from ferrule.core.errors import ToolFailure, UnknownTool
from ferrule.core.face import Face, copy_json
from ferrule.core.suggest import near
from ferrule.registry.foreign import Family


class FamilyNames:
    """Made when a rule is first looked at: it takes all families."""

    def __init__(self, families: Callable[[], Sequence[Family]], canonical: Callable[[str], str]) -> None:
        """`canonical` gives the tool behind a name of this session; the name itself where it knows none."""
        self._families = families
        self._canonical = canonical

    @cached_property
    def _faces(self) -> dict[str, list[Face]]:
        """By canonical tool."""
        out: dict[str, list[Face]] = {}
        for family in self._families():
            for face in family.faces:
                out.setdefault(face.tool, []).append(face)
        return out

    @cached_property
    def _tools(self) -> dict[str, str]:
        """Every name → its canonical tool. What a family calls its own tool counts before what others allow for it."""
        own = {face.name: tool for tool, faces in self._faces.items() for face in faces if face.shown}
        older = {face.name: tool for tool, faces in self._faces.items() for face in faces}
        aliases: dict[str, str] = {}
        for tool, faces in self._faces.items():
            for face in faces:
                aliases.update(dict.fromkeys(face.aliases, tool))
        for family in self._families():
            for alias, name in family.aliases.items():
                if name in older:
                    aliases.setdefault(alias, own.get(name, older[name]))
        return {**aliases, **older, **own, **{tool: tool for tool in self._faces}}

    def tool(self, name: str) -> str | None:
        """The canonical tool that a name means in any family, and in this session."""
        known = self._tools.get(name)
        if known is not None:
            return known
        here = self._canonical(name)
        return here if here != name else None

    def kin(self, tool: str) -> str | None:
        """The built-in tool that one from elsewhere stands for, by its name in any family; None where it is its own.

        What denies the one denies the other, whoever took whose name.
        """
        if tool in self._faces:
            return None
        known = self.tool(tool)
        return known if known != tool else None

    def of(self, tool: str) -> frozenset[str]:
        """All names of a canonical tool, or of one from elsewhere its own."""
        return self._every.get(tool) or frozenset((tool,))

    @cached_property
    def _every(self) -> dict[str, frozenset[str]]:
        out: dict[str, set[str]] = {}
        for name, tool in self._tools.items():
            out.setdefault(tool, {tool}).add(name)
        return {tool: frozenset(names) for tool, names in out.items()}

    def values(self, tool: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments in canonical names, each under every name that a family gives it, in that family's unit."""
        out = dict(given)
        for face in self._faces.get(tool, ()):
            for name in face.schema.get("properties", ()):
                meant = face.params.get(name, name)
                if meant in given and name not in out:
                    out[name] = _in_unit(given[meant], face.per.get(meant, 1))
        return out

    def parameters(self, tool: str, meant: str) -> frozenset[str]:
        """Every name of one canonical parameter."""
        names = {meant}
        for face in self._faces.get(tool, ()):
            names.update(name for name in face.schema.get("properties", ()) if face.params.get(name, name) == meant)
        return frozenset(names)


def _in_unit(value: Any, per: int) -> Any:
    return value * per if per != 1 and isinstance(value, (int, float)) and not isinstance(value, bool) else value


_NAME_CHARS = 128
"""How much of an unknown name is looked at and said back; no model API takes a longer one."""
_LISTED = 60
"""How many tools are named where none is near."""
_WORDS_CHARS = 2_000
_SCHEMA_CHARS = 60_000


def unknown(
    name: str,
    *,
    known: Mapping[str, Face],
    shown: Collection[str],
    instead: str | None,
    behind: str | None,
    disabled: Collection[str],
    longer: Sequence[str],
) -> UnknownTool:
    """`instead` is what an alias says to call, and `behind` the tool that is not here; `disabled` are switched off.

    `longer` are the whole names of servers' tools that are called so.
    """
    said = name[:_NAME_CHARS]
    if name in disabled or behind in disabled:
        return UnknownTool(
            f"{said} is switched off in this session by the setting tools.disable. The tools are {format_names(shown)}."
        )
    if len(longer) == 1:
        return UnknownTool(f"{said} is called {longer[0]} here. Call it by that name.")
    if longer:
        return UnknownTool(f"{said} may mean {' or '.join(longer[:8])}. Call the one that you mean by its whole name.")
    if instead is not None:
        return UnknownTool(f"{said} means {instead}, which is not among this session's tools: {format_names(shown)}.")
    if behind is not None:
        return UnknownTool(
            f"{said} is a tool that this version does not have yet. The tools are {format_names(shown)}."
        )
    meant = dict.fromkeys(known[one].name for one in near(said, known))
    hint = f" Did you mean {' or '.join(meant)}?" if meant else f" The tools are {format_names(shown)}."
    return UnknownTool(f"There is no tool called {said!r}.{hint}")


def not_loaded(name: str, face: Face, misfit: str = "") -> ToolFailure:
    """The whole definition, so that the next try works; `misfit` is what was wrong with the arguments."""
    schema = msgspec.json.encode(copy_json(face.schema)).decode()
    if len(schema) > _SCHEMA_CHARS:
        schema = f"(too long to show; its parameters are {', '.join(face.schema.get('properties', ()))[:2_000]})"
    words = face.words if len(face.words) <= _WORDS_CHARS else f"{face.words[:_WORDS_CHARS]}…"
    misfit = f"{misfit}\n" if misfit else ""
    also = "" if name == face.name else f", which is called {face.name} here,"
    return ToolFailure(
        f"{misfit}{name}{also} had not been loaded, so that its parameters were not known. It is loaded now.\n"
        f"Description: {words}\nParameters, as JSON Schema: {schema}\n"
        f"Call {face.name} again, with arguments that fit.",
        code="not-loaded",
    )


def format_names(names: Iterable[str]) -> str:
    """Names of tools in a sentence, and not a thousand of them."""
    every = list(names)
    more = f" and {len(every) - _LISTED} more" if len(every) > _LISTED else ""
    return ", ".join(every[:_LISTED]) + more
