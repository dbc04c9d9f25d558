"""What a tool with a JSON Schema of its own receives; it stands in the core, for the registry makes its face."""

from ferrule.core.args import Raw

__all__ = ["Raw"]
