"""A call as the policy sees it."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from ferrule.core.access import Access


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
    """Real path → the same as the caller spelled it."""
    hooked: tuple[str, str] = ("", "")
    """What the user's hooks say about it: allow, ask, deny or nothing, and why."""
    context: Literal["thread", "subagent"] = "thread"
