"""The tools that a mode gives to an agent at all, before any call is looked at."""

from collections.abc import Callable, Sequence

import msgspec


class ModeConfig(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a mode includes."""

    include_tools: tuple[str, ...] | None = None
    """Built-in tools by any of their names; None means all of them."""
    allow_mcp: bool = False
    allow_toolbox: bool = False
    subagent_type: str | None = None


def includes(
    mode: ModeConfig,
    name: str,
    *,
    subagent_types: Sequence[str] | None = None,
    canonical: Callable[[str], str] = str,
) -> bool:
    """Does the mode give this tool? `mcp__` and `tb__` names by their switches, all others by the list.

    A server's tool may be shown under a shorter name; its canonical one tells.
    """
    known = canonical(name)
    if known.startswith("mcp__"):
        return mode.allow_mcp
    if known.startswith("tb__"):
        if not mode.allow_toolbox:
            return False
        if mode.subagent_type and subagent_types is not None:
            return "all" in subagent_types or mode.subagent_type in subagent_types
        return True
    return mode.include_tools is None or known in {canonical(one) for one in mode.include_tools}
