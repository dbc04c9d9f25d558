"""Which agent of the background a call means."""

from ferrule.core.delegated import subagents
from ferrule.core.errors import ToolFailure
from ferrule.core.subagents import Worked
from ferrule.core.tool import Context

_LISTED = 20


def find(name: str, ctx: Context) -> Worked:
    """The agent of this id. Raises with those that there are."""
    known = subagents(ctx).list()
    found = next((one for one in known if one.id == name.strip()), None)
    if found is None:
        names = ", ".join(f"{one.id} ({one.status})" for one in known[-_LISTED:])
        hint = f"There are {names}." if names else "None was left working in the background."
        raise ToolFailure(f"There is no agent with the id {name[:100]!r}. {hint}", code="unknown-task")
    return found
