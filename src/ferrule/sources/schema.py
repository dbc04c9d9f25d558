"""Is a schema from elsewhere one that a session can use? A bad one must not spoil the definitions of the others."""

import re
from typing import Any

import msgspec

from ferrule.arguments.judge import judge
from ferrule.core.errors import ConfigError

LIMIT_BYTES = 100_000
"""More than that no model reads, and every turn of a session would pay for it."""
_MOST_DEPTH = 40
_NAME = r"[A-Za-z0-9_.-]{1,64}"
"""What model APIs take as the name of a parameter."""


def usable(schema: object) -> dict[str, Any]:
    """A copy of the schema, as an object's. Raises ValueError with a sentence where it cannot be used."""
    if not isinstance(schema, dict):
        raise ValueError("Its schema is not a JSON object.")  # noqa: TRY004 - it is about what a program wrote
    if _too_deep(schema):
        raise ValueError(f"Its schema nests more than {_MOST_DEPTH} levels deep.")
    try:
        encoded = msgspec.json.encode(schema)
        copied = msgspec.json.decode(encoded, type=dict[str, Any])
    except (TypeError, ValueError, UnicodeError, msgspec.MsgspecError) as error:
        raise ValueError("Its schema is not JSON.") from error
    if len(encoded) > LIMIT_BYTES:
        raise ValueError(f"Its schema takes {len(encoded):,} bytes; {LIMIT_BYTES:,} is the most.")
    if copied.setdefault("type", "object") != "object":
        raise ValueError('Its schema is not one of an object: its "type" must be "object".')
    properties = copied.setdefault("properties", {})
    if not isinstance(properties, dict):
        raise ValueError('The "properties" of its schema are not a JSON object.')  # noqa: TRY004 - as above
    for name in properties:
        if not re.fullmatch(_NAME, name):
            raise ValueError(
                f"Its parameter {name[:80]!r} has a name that model APIs refuse: "
                "they take letters, digits, _, . and -, 64 at most."
            )
    try:
        judge(copied)
    except ConfigError as error:
        raise ValueError(f"{error}.".replace("The tool's schema", "Its schema").replace("..", ".")) from error
    return copied


def _too_deep(schema: dict[str, Any]) -> bool:
    level: list[Any] = [schema]
    for _ in range(_MOST_DEPTH):
        members = [value for one in level for value in (one.values() if isinstance(one, dict) else one)]
        level = [value for value in members if isinstance(value, dict | list)]
        if not level:
            return False
    return True
