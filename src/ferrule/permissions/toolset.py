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
    only: tuple[str, ...] | None = None
    """Names, or globs of names, of the tools of every source that it gives; None means all of them."""
    without: tuple[str, ...] = ()
    """The same of tools that it does not give."""
    within: "ModeConfig | None" = None
    """A mode that has to give a tool as well: a subagent has no tool that its parent has not."""


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
    if mode.within is not None and not includes(mode.within, name, subagent_types=subagent_types, canonical=canonical):
        return False
    if mode.only is not None and not _is_named(mode.only, name, known, canonical):
        return False
    if mode.without and _is_excluded(mode.without, name, known, canonical):
        return False
    if known.startswith("mcp__"):
        return mode.allow_mcp
    if known.startswith("tb__"):
        if not mode.allow_toolbox:
            return False
        if mode.subagent_type and subagent_types is not None:
            return "all" in subagent_types or mode.subagent_type in subagent_types
        return True
    return mode.include_tools is None or known in {canonical(one) for one in mode.include_tools}


def _is_named(patterns: Sequence[str], name: str, known: str, canonical: Callable[[str], str]) -> bool:
    """Is the tool among these? A name of any family means its tool; a glob is about names as they are."""
    from fnmatch import fnmatchcase  # for subagents

    return any(canonical(one) == known or fnmatchcase(name, one) or fnmatchcase(known, one) for one in patterns)


def _is_excluded(patterns: Sequence[str], name: str, known: str, canonical: Callable[[str], str]) -> bool:
    """The same for what is kept out: `BASH` and `web-fetch` leave no doubt about what is meant either."""
    if _is_named(patterns, name, known, canonical):
        return True
    names = {_plain(name), _plain(known)}
    spelled = ({_plain(one), _plain(canonical(one.lower())), _plain(canonical(one.capitalize()))} for one in patterns)
    return any(names & one for one in spelled) or _is_named([one.lower() for one in patterns], name.lower(), known, str)


def _plain(name: str) -> str:
    return name.replace("-", "").replace("_", "").casefold()
