"""Arguments of a tool: one frozen struct per tool, in canonical names."""

import msgspec


class Args(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool accepts, after a face has turned its own parameters into these."""
