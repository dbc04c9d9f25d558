"""A call as the policy sees it."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from ferrule.core.access import Access, within

SPOKEN = frozenset({"skill", "check", "format"})
"""Tools whose commands come from files: rules about the shell bind those as if the shell had been asked to run them."""

_WEB = frozenset({"web_fetch", "web_search"})


def named_as(access: Access) -> str:
    """Under which key a call's `spelled` says what the check is called that runs a command; it can be no path."""
    return f"check\0{access.folder}\0{access.key}"


class Case(NamedTuple):
    """A call as the policy sees it."""

    call_id: str
    name: str
    """The tool in the session's words."""
    tool: str
    """The canonical tool: what rules bind."""
    touches: tuple[Access, ...]
    subagent_types: tuple[str, ...] | None = None
    input: Mapping[str, Any] = {}
    spelled: Mapping[str, str] = {}
    """Real path → the same as the caller spelled it; and for the commands of checks, see `named_as`."""
    hooked: tuple[str, str] = ("", "")
    """What the user's hooks say about it: allow, ask, deny or nothing, and why."""
    context: Literal["thread", "subagent"] = "thread"
    lent: tuple[str, ...] = ()
    """Folders outside the workspace that the user's settings lend to this call: to be read, and for nothing else."""
    given: Mapping[str, Any] = {}
    """The arguments as the caller gave them, in the session's names."""
    consented: bool = False
    """Has the user agreed to it beforehand?"""
    builtin: bool = True
    """Is the tool one of ours? One from elsewhere may have the name of one, and do something else."""

    @property
    def looks_at_web(self) -> bool:
        """Does a tool of ours only look at the web? To Amp's models that is as free as reading."""
        if self.tool not in _WEB or not self.builtin:  # every decision asks, and hardly any call is one of these
            return False
        return bool(self.touches) and all(access.kind == "host" and access.mode == "read" for access in self.touches)

    @property
    def is_fetch(self) -> bool:
        """Does it fetch pages, and nothing else?"""
        return self.looks_at_web and self.tool == "web_fetch"

    def may_read(self, access: Access) -> bool:
        """Is it a read of what was lent, by a tool of ours?"""
        reads = self.builtin and access.kind == "path" and access.mode == "read"
        return reads and any(within(access.key, folder) for folder in self.lent)
