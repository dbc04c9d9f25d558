"""Every name that a tool and its parameters have in any family: what rules are written in."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from ferrule.core.face import Face
from ferrule.registry.foreign import Family


class Names:
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
