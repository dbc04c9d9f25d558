"""A call: a tool's name and its input, in the words of whatever model family wrote it."""

from typing import Any

import msgspec


class Call(msgspec.Struct, frozen=True):
    """One tool call of a message."""

    name: str
    input: dict[str, Any] | str = msgspec.field(default_factory=dict)
    """The arguments; a string is read as JSON, as some model APIs send them."""
    id: str = ""
    """The caller's name for this call; the engine gives one where it is empty."""
