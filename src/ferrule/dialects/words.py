"""A family's words and schemas, kept as prose and JSON beside its code."""

import os
from typing import Any

import msgspec

_HEADING = "# "


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
