"""Writes docs/catalog.md: every tool of every dialect with its parameters, from the faces themselves."""

import os
from collections.abc import Iterator
from typing import Any

from ferrule.core.tool import Face
from ferrule.dialects import COMING, FAMILIES, Dialect, load_dialect
from ferrule.tools import BUILTIN

PATH = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "docs", "catalog.md")

HEAD = """# The catalogue

Every tool of every dialect, with the canonical tool behind it. `scripts/catalog.py` writes this page from the faces,
and a test holds the two together. What the tools do is in [the tools](tools.md), how families differ in [the
dialects](dialects.md). A star marks a required parameter. Names that are accepted but not advertised are in brackets.
"""


def page() -> str:
    """The whole text."""
    sections = (section for name in FAMILIES for section in _family(load_dialect(name)))
    return "\n".join([HEAD, *sections])


def _family(dialect: Dialect) -> Iterator[str]:
    yield f"## {dialect.name}\n"
    yield "| tool | canonical | parameters |"
    yield "|---|---|---|"
    here = [face for face in dialect.faces if face.tool in BUILTIN]
    for face in here:
        name = f"`{face.name}`" if face.shown else f"(`{face.name}`)"
        yield f"| {name} | `{face.tool}` | {_parameters(face)} |"
    yield ""
    others = dict(dialect.aliases)
    others |= {alias: face.name for face in dialect.faces for alias in face.aliases}
    if others:
        yield f"Also called: {', '.join(f'`{alias}` for `{name}`' for alias, name in sorted(others.items()))}.\n"
    later = [face for face in dialect.faces if face.tool not in BUILTIN]
    if later:
        yield "To come, and not advertised before:\n"
        yield "| tool | canonical | issue | parameters |"
        yield "|---|---|---|---|"
        for face in later:
            yield f"| `{face.name}` | `{face.tool}` | {COMING[face.tool]} | {_parameters(face)} |"
        yield ""


def _parameters(face: Face) -> str:
    required = set(face.schema.get("required", ()))
    rows = [f"`{name}`{'*' * (name in required)} {_type(about)}" for name, about in face.schema["properties"].items()]
    return ", ".join(rows) or "none"


def _type(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    kind = str(schema.get("type", "any"))
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if kind == "object" and schema.get("properties"):
        inner = ", ".join(f"`{name}` {_type(about)}" for name, about in schema["properties"].items())
        return "{" + inner + "}"
    return kind + (f" = {schema['default']}" if "default" in schema else "")


def main() -> None:
    with open(PATH, "w", encoding="utf-8") as file:
        file.write(page())
    print(f"wrote {os.path.relpath(PATH)}")


if __name__ == "__main__":
    main()
