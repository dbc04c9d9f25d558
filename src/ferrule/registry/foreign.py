"""The words of the other families: a call in any dialect is accepted in every session."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from ferrule.core.face import Face
from ferrule.core.tool import AnyTool


class Family(NamedTuple):
    """What has to be known of another family to understand its calls."""

    name: str
    faces: Sequence[Face]
    aliases: Mapping[str, str]


class Abroad(NamedTuple):
    """A face and the family whose it is."""

    family: str
    face: Face


class Heard(NamedTuple):
    """A call understood: who answers it, in whose words its arguments are, and what to say about that."""

    face: Face
    tool: AnyTool
    spoken: Face
    values: dict[str, Any]
    note: str = ""


NAMES: Mapping[str, Sequence[str]] = {
    "path": ("path", "file_path", "filePath", "relative_path", "absolute_path", "file", "filename", "dir_path"),
    "old": ("old", "old_string", "oldString", "oldText", "old_str", "before", "needle", "search"),
    "new": ("new", "new_string", "newString", "newText", "new_str", "after", "repl", "replace"),
    "content": ("content", "contents", "file_text", "text"),
    "command": ("command", "cmd"),
    "cwd": ("cwd", "workdir", "dir_path", "working_dir", "working_directory", "directory"),
}
"""Canonical parameter → what families here and elsewhere call it."""

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int, float),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict,),
}


def fits(face: Face, values: Mapping[str, Any], *, forgiving: bool) -> bool:
    """Could these be arguments in this face's words? By names and, roughly, types; a forgiving one mends strings."""
    schema = face.taken
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return True
    for name, value in values.items():
        about = properties.get(name)
        # Nothing, where nothing is needed, fits whatever is asked for.
        if about is None or (value is not None and not _is_of(value, about, forgiving=forgiving)):
            return False
    # A loop, for this is asked about every call.
    for name in schema.get("required", ()):  # noqa: SIM110
        if values.get(name) is None:
            return False
    return True


def _is_of(value: Any, schema: Any, *, forgiving: bool) -> bool:
    kind = schema.get("type") if isinstance(schema, dict) else None
    if not isinstance(kind, str) or (forgiving and isinstance(value, str)):
        return True
    if kind == "array" and (names := member_names(value)):
        known = schema.get("items", {}).get("properties")
        return known is None or names <= known.keys()
    return isinstance(value, _TYPES.get(kind, (object,)))


def member_names(value: Any) -> frozenset[str]:
    """The names in the first of several objects: families name those differently too."""
    first = value[0] if isinstance(value, list | tuple) and value else None
    return frozenset(first) if isinstance(first, dict) else frozenset()


def same_meaning(face: Face, canonical: str) -> str | None:
    """The face's name for a canonical parameter, where nothing but the name differs."""
    if canonical in face.per or canonical in face.shift:
        return None
    shown = next((shown for shown, name in face.params.items() if name == canonical), canonical)
    return shown if shown in face.schema.get("properties", ()) else None


class Foreign:
    """The faces of all other families by name and by tool; they are loaded when a call needs them."""

    def __init__(
        self, families: Callable[[], Sequence[Family]], known: Collection[str], own: Sequence[Face] = ()
    ) -> None:
        """`known` are the tools whose calls may come in other words, `own` the session's faces."""
        self._load = families
        self._known = known
        self._own = own
        self._sayable: dict[str, list[str]] = {}

    def without(self, tools: Collection[str]) -> "Foreign":
        """The same, as if these tools were not here."""
        own = [face for face in self._own if face.tool not in tools]
        return Foreign(lambda: self._families, frozenset(self._known).difference(tools), own)

    @cached_property
    def _families(self) -> Sequence[Family]:
        return self._load()

    @cached_property
    def _by_name(self) -> dict[str, list[Abroad]]:
        out: dict[str, list[Abroad]] = {}
        for family in self._families:
            by_name = {face.name: face for face in family.faces}
            for face in family.faces:
                for name in (face.name, *face.aliases):
                    out.setdefault(name, []).append(Abroad(family.name, face))
            for alias, name in family.aliases.items():
                if name in by_name:
                    out.setdefault(alias, []).append(Abroad(family.name, by_name[name]))
        return out

    @cached_property
    def _by_tool(self) -> dict[str, list[Abroad]]:
        out: dict[str, list[Abroad]] = {}
        for family in self._families:
            for face in family.faces:
                if face.tool in self._known:
                    out.setdefault(face.tool, []).append(Abroad(family.name, face))
        return out

    def named(self, name: str) -> list[Abroad]:
        """Faces of that name whose tools are here."""
        return [one for one in self._by_name.get(name, ()) if one.face.tool in self._known]

    def behind(self, name: str) -> str | None:
        """The tool that some family calls by that name, whether it is here or not."""
        return next((one.face.tool for one in self._by_name.get(name, ())), None)

    def having(self, tool: str) -> Sequence[Abroad]:
        """Faces of a tool, in the order of the families."""
        return self._by_tool.get(tool, ())

    def borrowed(self, tool: str) -> Face | None:
        """A face for a tool that the session's family has none for: one that calls it by its own name, else any."""
        faces = [one.face for one in self.having(tool)]
        return next((face for face in faces if face.name == tool), faces[0] if faces else None)

    def meaning(self, tool: AnyTool, key: str) -> str | None:
        """The canonical parameter that a name of whatever family stands for, where only the name differs."""
        fields = tool.args.__struct_fields__
        theirs = [one.face for one in self.having(tool.name) if key in one.face.schema.get("properties", ())]
        meant = {face.params.get(key, key) for face in theirs}
        # What one family counts in other units than the next has no meaning without a family.
        if any(canonical in face.per or canonical in face.shift for face in theirs for canonical in meant):
            return None
        known = [canonical for canonical in meant if canonical in fields and canonical != key]
        if len(known) == 1:
            return known[0]
        if key in self.sayable(tool):
            return key
        return next((canonical for canonical, names in NAMES.items() if key in names and canonical in fields), None)

    def sayable(self, tool: AnyTool) -> list[str]:
        """The canonical parameters that some family lets its callers give. The others are the engine's to fill in."""
        if tool.name not in self._sayable:
            said = set(tool.extras)
            own = (face for face in self._own if face.tool == tool.name)
            for face in (*own, *(one.face for one in self.having(tool.name))):
                said.update(face.said_as, (face.params.get(name, name) for name in face.schema.get("properties", ())))
            self._sayable[tool.name] = [field for field in tool.args.__struct_fields__ if field in said]
        return self._sayable[tool.name]


def own_words(tool: AnyTool, sayable: Sequence[str] = ()) -> Face:
    """The canonical tool's own names, as a face: they are understood in every session too."""
    fields = tool.args.__struct_fields__
    required = fields[: len(fields) - len(tool.args.__struct_defaults__)]
    schema = {
        "type": "object",
        "properties": {field: {} for field in fields if field in sayable or field in required},
        "required": list(required),
    }
    return Face(tool=tool.name, name=tool.name, schema=schema, words="")
