"""`ferrule mcp`: the engine as an MCP server, and the servers whose tools a session may call."""

import json
import os
from typing import Any

import click

from ferrule.cli.codes import DONE
from ferrule.cli.loop import finish
from ferrule.cli.options import engine_options
from ferrule.cli.show import Listed

_WORKSPACE = click.option(
    "-C", "--workspace", type=click.Path(), metavar="DIR", default=".", help="The project (default: this folder)."
)
_PROJECT = click.option("--project", is_flag=True, help="In the project's .mcp.json instead of your own file.")


@click.group("mcp", cls=Listed)
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
    from ferrule.cli.serving import served  # loads an engine

    source = click.get_current_context().get_parameter_source("workspace")
    is_chosen = source is not click.core.ParameterSource.DEFAULT
    finish(served(session, address=address, token=token, names=names, is_chosen=is_chosen))
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
    from ferrule.cli.servers import file_of  # loads what knows of servers
    from ferrule.sources.mcp.written import add_server

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
    from ferrule.cli.servers import listed, show_rows  # loads what knows of servers

    rows, warnings = finish(listed(workspace))
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
    from ferrule.cli.servers import show_tried, tried  # loads what knows of servers

    code, found = finish(tried(workspace, name))
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
    from ferrule.cli.servers import approved  # loads what knows of servers

    return finish(approved(workspace, name, yes=yes))


@command.command("remove")
@click.argument("name")
@_PROJECT
@_WORKSPACE
def remove(*, name: str, project: bool, workspace: str) -> int:
    """Remove a server that was added, and what was approved of it."""
    from ferrule.cli.servers import removed  # loads what knows of servers

    return removed(workspace, name, project=project)
