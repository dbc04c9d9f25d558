"""The servers of a session, made from all that configures them; the user is asked for what they need."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ferrule.core.offered import Offered
from ferrule.gathering.around import Around
from ferrule.permissions.asker import NO, Question, visible
from ferrule.sources.mcp.config import Configured, configured
from ferrule.sources.mcp.opening import Opening
from ferrule.sources.mcp.servers import Servers
from ferrule.workspace.search_path import apart, left_out

if TYPE_CHECKING:
    from ferrule.sources.mcp.approval import Approval
    from ferrule.sources.mcp.state import ServerState


def find(around: Around) -> Configured:
    """What every layer configures."""
    return configured(
        around.jail.folder,
        around.settings.mcp,
        given=around.mcp_config,
        managed=around.managed,
        rule_files=around.settings.permissions.files,
        sources=around.settings.sources,
        strict=around.settings.mcp.strict,
    )


def make(around: Around, found: Configured, on_changed: Callable[[], None]) -> Servers:
    """The servers, none of them started, as the session's tools and rules see them."""
    from ferrule.support.roster import Roster  # for whoever has servers

    roots = tuple(root.path for root in around.jail.roots)

    def is_silent() -> bool:
        """Does the mode say no to whatever would ask?"""
        return around.policy.standing.asks == "deny"

    async def approve(approval: "Approval") -> bool:
        what = "start it" if approval.about == "start" else "use what it offers as it is now"
        question = Question(
            kind="server",
            call_id="",
            name=approval.server,
            summary=visible(f"The MCP server {approval.server} ({approval.layer}): {what}?"),
            touches=(),
            # Some characters end a line for one reader and not for the next: no line is to look like one of ours.
            effects=tuple(map(visible, approval.text.split("\n"))),
        )
        return not is_silent() and (await around.ask(question)).allow is True

    async def elicit(server: str, message: str, schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
        summary = visible(f"The MCP server {server} asks: {message}")
        question = Question(kind="values", call_id="", name=server, summary=summary, touches=(), schema=schema)
        answer = NO if is_silent() else await around.ask(question)
        return answer.values if answer.allow is True else None

    servers = Servers(
        found,
        state_folder=around.state,
        workspace=around.jail.folder,
        opening=Opening(
            # What a command has left in the workspace is no program that a server may be started with.
            environment=apart(os.environ, roots),
            unsearched=left_out(os.environ.get("PATH", ""), roots),
            roots=roots,
            elicit=elicit,
            roster=around.services[Roster],
            result_bytes=around.settings.mcp.result_mb << 20,
            keep_env=around.settings.shell.keep_env,
        ),
        approve=approve,
        on_changed=on_changed,
    )
    around.services.put(Offered, servers)
    return servers


def heed(around: Around, servers: Servers) -> None:
    """Let the user's word on whole servers of their own count as rules."""
    allowed = [text for action, text in servers.rules() if action == "allow"]
    if allowed:
        around.policing.allow(around.policy, allowed, source="the configuration of servers")


def why_not(states: "Sequence[ServerState]", name: str) -> str:
    """Why a tool of a server is not here, as a sentence; empty where nothing is known of it."""
    server = name.split("__")[1] if name.startswith("mcp__") and name.count("__") > 1 else ""
    state = next((one for one in states if one.name == server), None)
    if not server:
        return ""
    if state is None:
        return f"There is no MCP server called {server} in this session."
    if state.state in {"new", "changed"}:
        return f"The MCP server {server} is not approved: the user does that with `ferrule mcp approve {server}`."
    if state.error:
        return state.error
    if state.state in {"disabled", "denied"}:
        return f"The MCP server {server} is {state.state} in {state.source}."
    is_withheld = any(name.endswith(f"__{one}") for one in state.withheld)
    return f"The MCP server {server} offers it in a form that is not approved yet." if is_withheld else ""


def unheard(states: "Sequence[ServerState]", names: Collection[str]) -> list[str]:
    """A sentence for each of these servers, whose tools are not known, where nothing else has been said about it."""
    silent = [one for one in states if one.name in names and one.state == "unlisted" and not one.error]
    # The command line knows nothing of servers that only this session has.
    passing = {one.name: "a call of one lists them" for one in silent if one.layer in {"session", "skill"}}
    how = {one.name: passing.get(one.name, f"`ferrule mcp test {one.name}`") for one in silent}
    return [f"The tools of the server {name} are not known yet: {said}." for name, said in how.items()]
