"""Implement `ferrule mcp`: serve the engine as an MCP server, and manage the servers that a session uses.

Servers of a workspace are added, listed, tried, approved and removed.
"""

import asyncio
import importlib.util
import json
import os
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from ferrule.cli.options import engine_options, finish
from ferrule.cli.show import DONE, FAILED, REFUSED, DefaultCommandGroup, paint
from ferrule.core.errors import ConfigError, near
from ferrule.engine.build import resolve_settings
from ferrule.output import clean
from ferrule.settings import settings_path, state_folder
from ferrule.sources.mcp import ServerState
from ferrule.sources.mcp.config import USER_FILE, add_server, read_servers, remove_server
from ferrule.sources.mcp.connection import Opening
from ferrule.sources.mcp.servers import Servers
from ferrule.system.environment import apart, left_out
from ferrule.system.tree import Roster

if TYPE_CHECKING:
    from ferrule.sources.mcp.approval import Approval, Approve
    from ferrule.sources.mcp.servers import McpTool


_WORKSPACE = click.option(
    "-C", "--workspace", type=click.Path(), metavar="DIR", default=".", help="The project (default: this folder)."
)
_PROJECT = click.option("--project", is_flag=True, help="In the project's .mcp.json instead of your own file.")


@click.group("mcp", cls=DefaultCommandGroup)
def command() -> None:
    """Serve the tools over MCP, and manage the servers whose tools are used.

    \b
    Examples:
      ferrule mcp serve --workspace ~/project
      ferrule mcp serve --http 127.0.0.1:8765 --dialect claude
      ferrule mcp add files -- npx -y @example/server-files '${WORKSPACE}'
      ferrule mcp list
      ferrule mcp test files
    """


@command.command("serve")
@engine_options()
@click.option(
    "--http", "address", metavar="HOST:PORT", help="Serve over HTTP there instead of standard input and output."
)
@click.option(
    "--token",
    envvar="FERRULE_MCP_TOKEN",
    metavar="TOKEN",
    help="What clients over HTTP must know; a random one is made and shown without it.",
)
@click.option("--name", "names", metavar="HOST", multiple=True, help="One more name that clients reach it by.")
def serve(*, address: str | None, token: str | None, names: tuple[str, ...], **session: Any) -> int:
    """Offer the tools of a dialect to any MCP client.

    Without --http one client is served over standard input and output, until it closes them: clients start the
    command themselves. Started in / or in the home folder, it works in the first folder that its client names as a
    root; --workspace chooses one. Calls that need a question ask the client's user, where the client can
    (elicitation), and are refused otherwise; --yes and --permission-mode let more pass.
    With --http every client that has the token is served at /mcp. Other machines reach it only where HOST says so.
    Prefer FERRULE_MCP_TOKEN to --token: other users of the machine can see command lines.

    \b
    Examples:
      ferrule mcp serve
      ferrule mcp serve -C ~/project --permission-mode acceptEdits
      FERRULE_MCP_TOKEN=… ferrule mcp serve --http 127.0.0.1:8765
    """
    if address is None and names:
        raise click.UsageError("--name goes with --http.")

    if importlib.util.find_spec("mcp") is None:
        raise ConfigError("MCP needs the package `mcp`: pip install 'ferrule[mcp]'.")
    if address is not None and importlib.util.find_spec("uvicorn") is None:
        raise ConfigError("MCP over HTTP needs the package `uvicorn`: pip install 'ferrule[mcp]'.")
    from ferrule.cli.mcp_serve import serve_clients  # loads the package `mcp`, which takes a second

    source = click.get_current_context().get_parameter_source("workspace")
    is_chosen = source is not click.core.ParameterSource.DEFAULT
    finish(serve_clients(session, address=address, token=token, names=names, is_chosen=is_chosen))
    return DONE


@command.command("add")
@click.argument("name")
@click.argument("what", nargs=-1, required=True, metavar="-- COMMAND [ARGS]... | URL")
@click.option("--env", "env", metavar="KEY=VALUE", multiple=True, help="A variable for the command.")
@click.option("--header", "headers", metavar="'KEY: VALUE'", multiple=True, help="A header for the address.")
@click.option("--sse", is_flag=True, help="The address is of the older kind, with server-sent events.")
@_PROJECT
@_WORKSPACE
def add(
    *,
    name: str,
    what: tuple[str, ...],
    env: tuple[str, ...],
    headers: tuple[str, ...],
    sse: bool,
    project: bool,
    workspace: str,
) -> int:
    """Add a server: a command that is started, or an address.

    It is written into mcp.json beside your settings, or with --project into the project's .mcp.json, which others get
    too and have to approve. Write secrets as ${NAME}: they are then taken from the environment when it starts.
    Your own servers start in your home, a project's in the project; ${WORKSPACE} is the folder that a session works in.

    \b
    Examples:
      ferrule mcp add files -- npx -y @example/server-files '${WORKSPACE}'
      ferrule mcp add tickets --env 'TOKEN=${MY_TOKEN}' -- tickets --stdio
      ferrule mcp add docs https://docs.example/mcp --header 'X-Key: ${KEY}'
    """
    path = file_of(workspace, project=project)
    entry = _entry(what, env, headers, sse=sse)
    if "args" in entry and not project:
        words = (entry["command"], *entry["args"])
        entry["command"], *entry["args"] = (_from_anywhere(word) for word in words)
        for before, after in zip(words, (entry["command"], *entry["args"]), strict=True):
            if before != after:
                click.echo(f"{before} is written as {after}: your own servers do not start in the workspace.")
    add_server(path, name, entry)
    click.echo(f"Added {name} to {path}.")
    click.echo(f"Next: ferrule mcp {'approve' if project else 'test'} {name}")
    return DONE


def _entry(what: tuple[str, ...], env: tuple[str, ...], headers: tuple[str, ...], *, sse: bool) -> dict[str, Any]:
    """A server as its file has it."""
    if what[0].lower().startswith(("http://", "https://")):
        if len(what) > 1 or env:
            raise click.UsageError("An address has no arguments and no --env; headers are given with --header.")
        pairs = [_pair(one, ":", "--header 'KEY: VALUE'") for one in headers]
        out: dict[str, Any] = {"type": "sse" if sse else "http", "url": what[0]}
        return {**out, "headers": dict(pairs)} if pairs else out
    if headers or sse:
        raise click.UsageError("--header and --sse go with an address; a command gets its variables with --env.")
    if "://" in what[0]:
        raise click.UsageError(f"An address begins with http:// or https://, not as {what[0]!r} does.")
    out = {"command": what[0], "args": list(what[1:])}
    pairs = [_pair(one, "=", "--env KEY=VALUE") for one in env]
    return {**out, "env": dict(pairs)} if pairs else out


def _from_anywhere(word: str) -> str:
    """A path that means the same wherever the server is started: this folder is whichever workspace it is used in."""
    if word in {".", "./"}:
        return "${WORKSPACE}"
    is_path = not os.path.isabs(word) and not word.startswith("-") and os.sep in word and os.path.exists(word)
    return (
        os.path.abspath(word)
        if is_path or (word.endswith((".py", ".js", ".mjs", ".ts")) and os.path.isfile(word))
        else word
    )


def _pair(text: str, sign: str, form: str) -> tuple[str, str]:
    key, found, value = text.partition(sign)
    if not found or not key.strip():
        raise click.UsageError(f"Write {form}, not {text!r}.")
    return key.strip(), value.strip() if sign == ":" else value


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@_WORKSPACE
def list_servers(*, as_json: bool, workspace: str) -> int:
    """List the servers that a session here would have. None of them is started."""
    rows, warnings = finish(load_server_rows(workspace))
    if as_json:
        for row in rows:
            click.echo(json.dumps(row, ensure_ascii=False))
    else:
        show_rows(rows)
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)
    return DONE


@command.command("test")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@_WORKSPACE
def test_server(*, name: str, as_json: bool, workspace: str) -> int:
    """Start a server, list its tools, and say what is wrong with it.

    Nothing that is not approved is started. Exit codes: 0 it works, 1 it does not, 3 it is not approved or is off.
    """
    code, found = finish(try_server(workspace, name))
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False))
    else:
        show_tried(found)
    return code


@command.command("approve")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Approve what is shown without being asked.")
@_WORKSPACE
def approve(*, name: str, yes: bool, workspace: str) -> int:
    """Approve a project's server, or tools that have changed."""
    return finish(approve_server(workspace, name, yes=yes))


@command.command("remove")
@click.argument("name")
@_PROJECT
@_WORKSPACE
def remove(*, name: str, project: bool, workspace: str) -> int:
    """Remove a server that was added, and what was approved of it."""
    return delete_server(workspace, name, project=project)


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
    settings, layered = resolve_settings(folder, state)
    managed = None if layered is None else layered.layers.get("managed")
    found = read_servers(
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
        elicit=_decline,
        roster=Roster(os.path.join(state, "processes")),
        result_bytes=settings.mcp.result_mb << 20,
        keep_env=settings.shell.keep_env,
    )
    return Servers(found, state_folder=state, workspace=folder, opening=opening, approve=approve)


async def _decline(server: str, message: str, schema: Mapping[str, Any]) -> None:  # noqa: ARG001 - what is asked for
    click.echo(clean(f"{server} asks: {message} It was told no: it is only tried."), err=True)


def state_of(servers: Servers, name: str) -> ServerState:
    """The server of that name. Raises a usage error that names those there are."""
    states = servers.states()
    found = next((one for one in states if one.name == name), None)
    if found is None:
        names = [one.name for one in states]
        meant = near(name, names, most=1)
        hint = f"Did you mean {meant[0]!r}?" if meant else f"There are: {', '.join(names) or 'none'}."
        raise click.UsageError(f"There is no MCP server {name!r} here. {hint}")
    return found


async def load_server_rows(workspace: str) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Every server as a row, and the warnings about them. Nothing is started."""
    servers = make_servers(workspace)
    return [_row(state) for state in servers.states()], servers.source_tools().warnings


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
        "instructions": _instructions_state(state),
    }


def _instructions_state(state: ServerState) -> str:
    """What becomes of a server's instructions."""
    if state.is_guidance_withheld:
        return "withheld"
    return "shown" if state.guidance_chars else "none"


async def try_server(workspace: str, name: str) -> tuple[int, dict[str, Any]]:
    """Start a server and list its tools: an exit code, and what was found."""
    servers = make_servers(workspace)
    before = state_of(servers, name)
    if before.state in ("new", "changed", "disabled", "denied"):
        return REFUSED, {**_row(before), "error": _refusal(before)}
    try:
        began = time.perf_counter()
        brought = await _show_wait(f"Starting {name}", servers.connect([name]))
        seconds = time.perf_counter() - began
        after = state_of(servers, name)
        tools: list[Any] = [tool for tool in brought.tools if tool.origin == name]
    finally:
        await _show_wait(f"Ending {name}", servers.close())
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


async def approve_server(workspace: str, name: str, *, yes: bool) -> int:
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


async def _show_wait(what: str, work: Any) -> Any:
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


def delete_server(workspace: str, name: str, *, project: bool) -> int:
    """Take a server out of the file that it was added to, and forget what was approved of it."""
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
