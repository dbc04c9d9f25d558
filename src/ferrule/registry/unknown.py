"""What is said about a name that cannot be called: unknown, switched off, shared by two tools, or not loaded yet."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from ferrule.core.errors import ToolFailure, UnknownTool
from ferrule.core.face import Face, copied
from ferrule.support.near import near

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
            f"{said} is switched off in this session by the setting tools.disable. The tools are {listed(shown)}."
        )
    if len(longer) == 1:
        return UnknownTool(f"{said} is called {longer[0]} here. Call it by that name.")
    if longer:
        return UnknownTool(f"{said} may mean {' or '.join(longer[:8])}. Call the one that you mean by its whole name.")
    if instead is not None:
        return UnknownTool(f"{said} means {instead}, which is not among this session's tools: {listed(shown)}.")
    if behind is not None:
        return UnknownTool(f"{said} is a tool that this version does not have yet. The tools are {listed(shown)}.")
    meant = dict.fromkeys(known[one].name for one in near(said, known))
    hint = f" Did you mean {' or '.join(meant)}?" if meant else f" The tools are {listed(shown)}."
    return UnknownTool(f"There is no tool called {said!r}.{hint}")


def not_loaded(name: str, face: Face, misfit: str = "") -> ToolFailure:
    """The whole definition, so that the next try works; `misfit` is what was wrong with the arguments."""
    schema = msgspec.json.encode(copied(face.schema)).decode()
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


def listed(names: Iterable[str]) -> str:
    """Names of tools in a sentence, and not a thousand of them."""
    every = list(names)
    more = f" and {len(every) - _LISTED} more" if len(every) > _LISTED else ""
    return ", ".join(every[:_LISTED]) + more
