"""What the tests of the families share: their catalogues, schemas without words, and files laid out."""

import functools
from pathlib import Path
from typing import Any

from ferrule.dialects import load_dialect
from ferrule.registry import Registry
from ferrule.registry.entry import Later
from ferrule.tools import BUILTIN, ON_REQUEST, load

LOOKS = {name for name, tool in BUILTIN.items() if tool.planning} | {"recall"}
"""The tools that a planning session has, each for calls of it that only read."""
WRITES_PLAN = {name for name, tool in BUILTIN.items() if tool.writes_plan}


def catalog(family: str) -> list[dict[str, Any]]:
    """What a model of that family is shown where there is something for every tool to do."""
    dialect = load_dialect(family)
    known = [Later(name, functools.partial(load, name)) for name in BUILTIN]
    registry = Registry(known, dialect.faces, dialect.aliases)
    for tool in {face.tool for face in dialect.faces} & set(ON_REQUEST):
        registry.offer(tool, True)
    return [face.definition() for face in registry.visible_faces()]


def silent(schema: Any) -> Any:
    """A schema without its descriptions, which are ours."""
    if isinstance(schema, list):
        return [silent(member) for member in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: silent(member) for key, member in schema.items() if not (key == "description" and isinstance(member, str))
    }


def lay_out(folder: Path, files: dict[str, bytes]) -> None:
    """Files by their names, with the folders that they need."""
    for name, raw in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)
