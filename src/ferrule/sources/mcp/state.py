"""A server as people see it, and its prompts as skills."""

import msgspec

from ferrule.sources.mcp.server import Layer, Transport


class OfferedPrompt(msgspec.Struct, frozen=True):
    """A prompt of a server, which counts as a skill."""

    server: str
    name: str
    words: str
    arguments: tuple[tuple[str, str, bool], ...]
    """Name, description, and whether it is required."""


class ServerState(msgspec.Struct, frozen=True):
    """A server, for people."""

    name: str
    layer: Layer
    transport: Transport
    source: str
    state: str
    """disabled, denied, new, changed, unlisted, listed or running."""
    tools: int
    withheld: tuple[str, ...] = ()
    quarantined: tuple[tuple[str, str], ...] = ()
    error: str = ""
    guidance_chars: int = 0
    """How long its instructions are, where the model is shown them."""
    is_guidance_withheld: bool = False
