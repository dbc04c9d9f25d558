"""The MCP servers of a workspace, as the command line adds, shows, tries and approves them."""

import asyncio
import os
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from ferrule.cli.codes import DONE, FAILED, REFUSED
from ferrule.cli.show import paint
from ferrule.core.errors import ConfigError
from ferrule.given import settled
from ferrule.output.clean import clean
from ferrule.settings import settings_path, state_folder
from ferrule.sources.mcp.config import configured
from ferrule.sources.mcp.opening import Opening
from ferrule.sources.mcp.places import USER_FILE
from ferrule.sources.mcp.servers import Servers
from ferrule.sources.mcp.state import ServerState
from ferrule.support.roster import Roster
from ferrule.workspace.search_path import apart, left_out

if TYPE_CHECKING:
    from ferrule.sources.mcp.approval import Approval, Approve
    from ferrule.sources.mcp.tool import McpTool

_COLOURS = {"running": "green", "listed": "green", "new": "yellow", "changed": "yellow", "denied": "red"}
_MEANS = {
    "disabled": "switched off",
    "denied": "denied by its configuration",
    "new": "not approved yet",
    "changed": "changed since it was approved",
    "unlisted": "never started",
    "listed": "ready",
    "running": "running",
}
_PROJECT_FILE = ".mcp.json"
_TELL_SECONDS = 0.2
_WORDS_CHARS = 70


def file_of(workspace: str, *, project: bool) -> str:
    """Where servers are added: a file of the user's, or the project's own."""
    if project:
        return os.path.join(os.path.realpath(workspace), _PROJECT_FILE)
    return os.path.join(os.path.dirname(settings_path()), USER_FILE)


def make_servers(workspace: str, approve: "Approve | None" = None) -> Servers:
    """The servers that a session in this folder would have. Without `approve`, nothing that is not approved starts."""
    if not os.path.isdir(os.path.expanduser(workspace)):
        raise ConfigError(f"{workspace} is not a folder.")
    folder, state = os.path.realpath(os.path.expanduser(workspace)), state_folder()
    settings, layered = settled(folder, state)
    managed = None if layered is None else layered.layers.get("managed")
    found = configured(
        folder,
        settings.mcp,
        managed=None if managed is None else managed.mcp,
        rule_files=settings.permissions.files,
        sources=settings.sources,
        strict=settings.mcp.strict,
    )
    opening = Opening(
        # As in a session: what lies in the workspace is no program that a server may be started with.
        environment=apart(os.environ, (folder,)),
        unsearched=left_out(os.environ.get("PATH", ""), (folder,)),
        roots=(folder,),
        # A server may offer other tools to whoever cannot be asked; here nobody is asked, but it is told the same.
        elicit=_declined,
        roster=Roster(os.path.join(state, "processes")),
        result_bytes=settings.mcp.result_mb << 20,
        keep_env=settings.shell.keep_env,
    )
    return Servers(found, state_folder=state, workspace=folder, opening=opening, approve=approve)


async def _declined(server: str, message: str, schema: Mapping[str, Any]) -> None:  # noqa: ARG001 - what is asked for
    click.echo(clean(f"{server} asks: {message} It was told no: it is only tried."), err=True)


def state_of(servers: Servers, name: str) -> ServerState:
    """The server of that name. Raises a usage error that names those there are."""
    states = servers.states()
    found = next((one for one in states if one.name == name), None)
    if found is None:
        from ferrule.support.near import near  # only a mistake pays for it

        names = [one.name for one in states]
        meant = near(name, names, most=1)
        hint = f"Did you mean {meant[0]!r}?" if meant else f"There are: {', '.join(names) or 'none'}."
        raise click.UsageError(f"There is no MCP server {name!r} here. {hint}")
    return found


async def listed(workspace: str) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Every server as a row, and the warnings about them. Nothing is started."""
    servers = make_servers(workspace)
    return [_row(state) for state in servers.states()], servers.known().warnings


def show_rows(rows: list[dict[str, Any]]) -> None:
    if not rows:
        click.echo("No MCP servers are configured here. Add one: ferrule mcp add NAME -- COMMAND ARGS…")
        return
    width = max(4, *(len(row["name"]) for row in rows))
    click.echo(f"{'name':<{width}}  {'state':<30}  {'tools':>5}  {'over':<5}  from")
    for row in rows:
        state = paint(f"{_MEANS[row['state']]:<30}", _COLOURS.get(row["state"], "dim"))
        tools = str(row["tools"]) if row["state"] in ("listed", "running") else "-"
        click.echo(f"{row['name']:<{width}}  {state}  {tools:>5}  {row['transport']:<5}  {row['source']}")


def _row(state: ServerState) -> dict[str, Any]:
    return {
        "name": clean(state.name),
        "state": state.state,
        "transport": state.transport,
        "layer": state.layer,
        "source": clean(state.source),
        "tools": state.tools,
        "withheld": list(state.withheld),
        "quarantined": [{"name": name, "why": why} for name, why in state.quarantined],
        "instructions": _instructed(state),
    }


def _instructed(state: ServerState) -> str:
    """What becomes of a server's instructions."""
    if state.is_guidance_withheld:
        return "withheld"
    return "shown" if state.guidance_chars else "none"


async def tried(workspace: str, name: str) -> tuple[int, dict[str, Any]]:
    """Start a server and list its tools: an exit code, and what was found."""
    servers = make_servers(workspace)
    before = state_of(servers, name)
    if before.state in ("new", "changed", "disabled", "denied"):
        return REFUSED, {**_row(before), "error": _refusal(before)}
    try:
        began = time.perf_counter()
        brought = await _told(f"Starting {name}", servers.connect([name]))
        seconds = time.perf_counter() - began
        after = state_of(servers, name)
        tools: list[Any] = [tool for tool in brought.tools if tool.origin == name]
    finally:
        await _told(f"Ending {name}", servers.close())
    found = {
        **_row(after),
        "seconds": round(seconds, 3),
        "tools": [_tool_row(tool) for tool in tools],
        "error": clean(after.error),
    }
    return FAILED if after.error else DONE, found


def _refusal(state: ServerState) -> str:
    if state.state in ("disabled", "denied"):
        return f"{state.name} is {_MEANS[state.state]} in {state.source}, so it was not started."
    return (
        f"{state.name} of {state.source} is {_MEANS[state.state]}, so it was not started. "
        f"Look at it with `ferrule mcp approve {state.name}`."
    )


def _tool_row(tool: "McpTool") -> dict[str, Any]:
    first = (tool.words or "").strip().partition("\n")[0]
    return {
        "name": clean(tool.tool),
        "called": tool.name,
        "description": clean(first),
        "characters": tool.definition_chars,
        "readOnly": tool.hints.get("readOnlyHint") is True,
    }


def show_tried(found: dict[str, Any]) -> None:
    if found["error"]:
        click.echo(f"ferrule: {found['error']}", err=True)
    if not isinstance(found["tools"], list):
        return
    if not found["error"]:
        count = len(found["tools"])
        click.echo(f"{found['name']} started and listed its tools in {found['seconds']:.2f} s: {count} can be used.")
    width = max((len(tool["name"]) for tool in found["tools"]), default=0)
    for tool in found["tools"]:
        reads = " (only reads)" if tool["readOnly"] else ""
        click.echo(f"  {tool['name']:<{width}}  {tool['description'][:_WORDS_CHARS]}{paint(reads, 'dim')}")
    for name in found["withheld"]:
        click.echo(paint(f"  withheld: {name} is new or has changed since you approved the server.", "yellow"))
    if found["instructions"] == "shown":
        click.echo("  Its instructions stand in the system prompt.")
    elif found["instructions"] == "withheld":
        click.echo(paint("  withheld: its instructions, which were not approved as they are.", "yellow"))
    if found["withheld"] or found["instructions"] == "withheld":
        click.echo(f"Look at these with `ferrule mcp approve {found['name']}`.")
    for one in found["quarantined"]:
        click.echo(paint(f"  not usable: {one['name']}: {one['why']}.", "red"))


async def approved(workspace: str, name: str, *, yes: bool) -> int:
    """Show all that a yes would allow, ask, and keep the answer."""
    refused = []

    async def ask(approval: "Approval") -> bool:
        click.echo(approval.text)
        if yes:
            return True
        if not sys.stdin.isatty():
            click.echo("ferrule: nobody can be asked here; --yes approves what is shown above.", err=True)
            refused.append(approval.about)
            return False
        what = "Start it" if approval.about == "start" else "Use these as they are now"
        if click.confirm(f"{what}, from now on?", default=False, err=True):
            return True
        refused.append(approval.about)
        return False

    servers = make_servers(workspace, ask)
    before = state_of(servers, name)
    if before.state in ("disabled", "denied"):
        raise click.UsageError(_refusal(before))
    try:
        await servers.connect([name])
        after = state_of(servers, name)
    finally:
        await servers.close()
    if refused:
        click.echo(f"{name}: nothing was approved." if "start" in refused else f"{name}: what is new stays withheld.")
        return REFUSED
    if after.error:
        click.echo(f"ferrule: {clean(after.error)}", err=True)
        return FAILED
    click.echo(f"{name} is approved as it is now, with {after.tools} tools.")
    return DONE


async def _told(what: str, work: Any) -> Any:
    """Wait for it; a person at the terminal sees for how long."""
    task = asyncio.ensure_future(work)
    began = time.perf_counter()
    shown = False
    try:
        while not (await asyncio.wait({task}, timeout=_TELL_SECONDS))[0]:
            if sys.stderr is not None and sys.stderr.isatty():
                shown = True
                print(f"\r{what} … {time.perf_counter() - began:.1f} s", end="", file=sys.stderr, flush=True)
    finally:
        if shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
    return task.result()


def removed(workspace: str, name: str, *, project: bool) -> int:
    """Take a server out of the file that it was added to, and forget what was approved of it."""
    from ferrule.sources.mcp.written import remove_server  # only for this

    path, other = (file_of(workspace, project=one) for one in (project, not project))
    servers = make_servers(workspace)
    known = next((one for one in servers.states() if one.name == name), None)
    if remove_server(path, name):
        # One of the same name may be in another file: what was approved of that stays.
        if known is not None and os.path.realpath(known.source) == os.path.realpath(path):
            servers.forget(name)
        click.echo(f"Removed {name} from {path}.")
        return DONE
    source = state_of(servers, name).source
    if os.path.realpath(source) == os.path.realpath(other):
        option = "without --project" if project else "with --project"
        raise click.UsageError(f"{name} is in {source}: try again {option}.")
    raise click.UsageError(f"{name} is not in {path}, but in {source}: take it out there by hand.")
