"""Serve the engine to MCP clients: one over standard input and output, or many over HTTP."""

import json
import logging
import os
import secrets
import sys
from socket import socket
from typing import Any, NamedTuple

import click

from ferrule.cli.options import open_engine
from ferrule.core.errors import ConfigError
from ferrule.engine import Engine
from ferrule.serve.http_server import check_token, is_loopback, listen
from ferrule.serve.mcp import Serving
from ferrule.serve.mcp.client import Clients, Roots, is_nowhere, refuse_everything
from ferrule.serve.mcp.http import PATH, serve_http
from ferrule.serve.mcp.stdio import serve_stdio

_DEPTH = "FERRULE_MCP_DEPTH"
_MOST_DEPTH = 3


async def serve_clients(
    session: dict[str, Any],
    *,
    address: str | None,
    token: str | None,
    names: tuple[str, ...],
    is_chosen: bool = False,
) -> None:
    """Serve until the client goes or a signal comes; standard output is the client's alone.

    `is_chosen` means that the user named the workspace: otherwise the client may, where it was started nowhere.
    """
    os.environ.pop("FERRULE_MCP_TOKEN", None)  # it is for clients, not for the commands that they run
    _count_depth()
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="ferrule: %(message)s")
    clients = Clients()
    if not is_chosen and is_nowhere(session["workspace"]):
        if address is None:
            await _in_a_root(session, clients)
            return
        refuse_everything(session["workspace"])  # many clients, and none of them is asked for a folder
        click.echo("warning: The workspace is the home folder: --workspace chooses a smaller one.", err=True)
    at = None if address is None else _place(address, token)
    async with open_engine(**session, ask=clients) as engine:
        for warning in engine.warnings:
            click.echo(f"warning: {warning}", err=True)
        async with Serving(engine, clients) as serving:
            if at is None:
                _greet(engine)
                await serve_stdio(serving)
            else:
                await _over_http(serving, at, names)


async def _in_a_root(session: dict[str, Any], clients: Clients) -> None:
    """Serve one client in the workspace that it names."""

    def warn(sentence: str) -> None:
        click.echo(f"warning: {sentence}", err=True)

    start = os.path.realpath(session["workspace"])
    warn(
        f"Started in {start}, which is no project: the workspace is the first folder among the client's roots. "
        "--workspace DIR chooses one."
    )

    roots = Roots(start, lambda folder: open_engine(**{**session, "workspace": folder}, ask=clients), warn)
    try:
        async with Serving(None, clients, roots=roots) as serving:
            await serve_stdio(serving)
    finally:
        await roots.close()


def _count_depth() -> None:
    """A server that is configured as a server of its own would start itself, and that one itself, without end."""
    said = os.environ.get(_DEPTH, "0")
    depth = int(said) if said.isascii() and said.isdigit() else _MOST_DEPTH
    if depth >= _MOST_DEPTH:
        raise ConfigError(
            "`ferrule mcp serve` was started by itself, again and again: it is among the MCP servers that it uses. "
            "Look for it with `ferrule mcp list`."
        )
    os.environ[_DEPTH] = str(depth + 1)


def _greet(engine: Engine) -> None:
    """A person who starts it by hand would wait in vain."""
    if sys.stdin is None or not sys.stdin.isatty():
        return
    arguments = ["mcp", "serve", "--workspace", engine.jail.folder, "--dialect", engine.dialect.name]
    click.echo("Waiting for an MCP client here, which speaks JSON. For a client's configuration:", err=True)
    _show({"command": "ferrule", "args": arguments})
    click.echo("Ctrl-D ends it.", err=True)


def _show(entry: dict[str, Any]) -> None:
    click.echo(json.dumps({"mcpServers": {"ferrule": entry}}, indent=2), err=True)


class _ListenAddress(NamedTuple):
    """Where it listens, and what its clients must know."""

    listening: socket
    host: str
    url: str
    token: str
    is_given: bool
    """Is the token the user's own? Then it is not shown."""


def _place(address: str, token: str | None) -> _ListenAddress:
    """Wrong use is told before anything is opened."""
    secret = secrets.token_urlsafe(32) if token is None else check_token(token)
    listening, host, port = listen(address)
    shown = f"[{host}]" if ":" in host else host
    return _ListenAddress(listening, host, f"http://{shown}:{port}{PATH}", secret, token is not None)


async def _over_http(serving: Serving, at: _ListenAddress, names: tuple[str, ...]) -> None:
    def ready() -> None:
        if not is_loopback(at.host):
            click.echo(
                f"warning: {at.host} can be reached from other machines, and what is said is not encrypted: whoever "
                "reads the token on the way can run commands here.",
                err=True,
            )
        header = "Bearer ${FERRULE_MCP_TOKEN}" if at.is_given else f"Bearer {at.token}"
        click.echo(f"Serving MCP at {at.url}. For a client's configuration:", err=True)
        _show({"type": "http", "url": at.url, "headers": {"Authorization": header}})

    await serve_http(serving, at.listening, host=at.host, token=at.token, names=names, ready=ready)
