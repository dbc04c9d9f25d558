"""What a source hands to the registry, and what it says of what it could not use."""

from typing import NamedTuple

from ferrule.core.tool import AnyTool


class Brought(NamedTuple):
    """The tools of one source, as they are now."""

    tools: tuple[AnyTool, ...]
    warnings: tuple[str, ...] = ()
    """What could not be used, each as a sentence with the file or the server in it."""
