"""A family's words and schemas, kept as prose and JSON beside its code."""

import os
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ferrule.core.face import Face

_HEADING = "# "


def rows(folder: str) -> Callable[..., Face]:
    """What makes the faces of a family: the canonical tool, the family's name for it, and in what it differs."""
    schema, word = schemas(folder), words(folder)

    def face(tool: str, name: str, *, like: str = "", also: Mapping[str, Any] | None = None, **rest: Any) -> Face:
        """`like` is the name of the face whose words it shares; `also` are parameters that are understood besides.

        Models come to know parameters that the family's schema, which is a contract, does not have.
        """
        if also:
            rest["accepts"] = {**schema[name], "properties": {**schema[name]["properties"], **also}}
        return Face(tool=tool, name=name, schema=schema[name], words=word[like or name], **rest)

    return face


def words(folder: str) -> dict[str, str]:
    """`words.md` as its sections: tool name → what the model reads about it. A section begins with `# NAME`."""
    with open(os.path.join(folder, "words.md"), encoding="utf-8") as file:
        sections = ("\n" + file.read()).split("\n" + _HEADING)
    pairs = (section.partition("\n") for section in sections[1:])
    return {name.strip(): text.strip() for name, _, text in pairs}


def schemas(folder: str) -> dict[str, dict[str, Any]]:
    """`schemas.json`: tool name → its JSON Schema."""
    with open(os.path.join(folder, "schemas.json"), "rb") as file:
        return msgspec.json.decode(file.read(), type=dict[str, dict[str, Any]])
