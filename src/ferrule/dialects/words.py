"""A family's words and schemas, kept as prose and JSON beside its code."""

import os
from typing import Any

import msgspec


def words(folder: str, name: str) -> str:
    """The text of `NAME.md`."""
    with open(os.path.join(folder, f"{name}.md"), encoding="utf-8") as file:
        return file.read().strip()


def schema(folder: str, name: str) -> dict[str, Any]:
    """The JSON Schema of `NAME.json`."""
    with open(os.path.join(folder, f"{name}.json"), "rb") as file:
        return msgspec.json.decode(file.read(), type=dict[str, Any])
