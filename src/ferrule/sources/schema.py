"""Is a schema from elsewhere one that a session can use? A bad one must not spoil the definitions of the others."""

import re
from typing import Any

from ferrule.core.errors import ConfigError
from ferrule.sources.mcp.quarantine import usable as looked_through
from ferrule.sources.mcp.server import ListedTool

_NAME = r"[A-Za-z0-9_.-]{1,64}"
"""What model APIs take as the name of a parameter."""


def usable(schema: object) -> dict[str, Any]:
    """The schema, clean and as an object's. Raises ValueError with a sentence where it cannot be used."""
    if not isinstance(schema, dict):
        raise ValueError("Its schema is not an object.")  # noqa: TRY004 - it is about what a program wrote
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        raise ValueError('The "properties" of its schema are not an object.')  # noqa: TRY004 - as above
    for name in properties:
        if not re.fullmatch(_NAME, name):
            raise ValueError(
                f"Its parameter {name[:80]!r} has a name that model APIs refuse: "
                "they take letters, digits, _, . and -, 64 at most."
            )
    try:
        found = looked_through(ListedTool(name="tool", words="", schema={"properties": {}, **schema}))
    except ConfigError as error:
        reason = str(error).rstrip(".")
        raise ValueError(f"{reason[:1].upper()}{reason[1:]}.") from error
    return dict(found.schema)
