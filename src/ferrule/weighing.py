"""What would be said about a call, without running it: for people who write rules."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ferrule.core.access import EVERYTHING, Access
from ferrule.core.call import Call
from ferrule.core.errors import Denied, ToolFailure, UnknownTool
from ferrule.flow import Flow, Ready
from ferrule.permissions.case import Case
from ferrule.permissions.decision import Decision

if TYPE_CHECKING:
    from ferrule.registry.names import Names

_HOSTS = frozenset({"web_fetch"})
"""Tools that go to the host of an address."""


async def weigh(flow: Flow, call: Call, names: "Names") -> Decision:
    """Allow, ask or deny, and why in one sentence."""
    ready = flow.look(call)
    if isinstance(ready, Ready):
        return await _decided(flow, flow.case(ready))
    error = ready.error
    if isinstance(error, UnknownTool):
        # Rules may be about tools that this session does not have: those of servers, and those that are to come.
        return await _decided(flow, _elsewhere(call, names))
    said = error.message if isinstance(error, ToolFailure) else str(error)
    return Decision("deny", f"The call cannot run: {said}")


async def _decided(flow: Flow, case: Case) -> Decision:
    try:
        flow.gate.check_mode(case)
        return await flow.gate.decided(case)
    except Denied as denied:
        return Decision("deny", denied.message)


def _elsewhere(call: Call, names: "Names") -> Case:
    tool = names.tool(call.name) or call.name
    given: Mapping[str, Any] = call.input if isinstance(call.input, dict) else {}
    touches = tuple(Access.host(host) for host in _hosts(tool, given)) or (EVERYTHING,)
    return Case(call.id, call.name, tool, touches, input=given)


def _hosts(tool: str, given: Mapping[str, Any]) -> list[str]:
    from urllib.parse import urlsplit  # only for such calls

    address = given.get("url")
    if tool not in _HOSTS or not isinstance(address, str):
        return []
    try:
        return [urlsplit(address).hostname or ""]
    except ValueError:  # no host can be read off it, so that no rule about hosts covers it
        return [""]
