"""What gathering needs of the session around it."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ferrule.policing import Policing
from ferrule.registry.registry import Registry
from ferrule.services import Services
from ferrule.settings import Mcp, Settings
from ferrule.workspace.paths import Jail

if TYPE_CHECKING:
    from ferrule.permissions.asker import Answer, Question
    from ferrule.permissions.policy import Policy


class Around(NamedTuple):
    """The session, as far as its sources see it."""

    jail: Jail
    services: Services
    settings: Settings
    state: str
    session_id: str
    registry: Registry
    policing: Policing
    policy: "Policy"
    ask: "Callable[[Question], Awaitable[Answer]]"
    """Asks the user; nobody's answer is no."""
    managed: Mcp | None = None
    mcp_config: Sequence[str] = ()
    """Texts or files that configure more servers for this session."""
    can_run_subagents: bool = False
    short_names: bool = False
    """Does the family call servers' tools by their short names?"""
    allow_mcp: bool = True
    """Does the session's mode give servers' tools?"""
    asks_programs: bool = False
    """Is every program in a folder of tools a tool, also one that nothing describes? Such a one is asked."""
