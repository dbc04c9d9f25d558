"""`ferrule mcp serve`, once its options are read."""

import importlib.util
import json
import logging
import os
import sys
from typing import Any

import click

from ferrule.cli.options import open_engine
from ferrule.core.errors import ConfigError
from ferrule.serve.asking import Clients
from ferrule.serve.server import Serving

_DEPTH = "FERRULE_MCP_DEPTH"
_MOST_DEPTH = 3


async def served(session: dict[str, Any], *, address: str | None, token: str | None, names: tuple[str, ...]) -> None:
    """Serve until the client goes or a signal comes; standard output is the client's alone."""
    if importlib.util.find_spec("mcp") is None:
        raise ConfigError("MCP needs the package `mcp`: pip install 'ferrule[mcp]'.")
    _count_depth()
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="ferrule: %(message)s")
    clients = Clients()
    async with open_engine(**session, ask=clients) as engine:
        for warning in engine.warnings:
            click.echo(f"warning: {warning}", err=True)
        async with Serving(engine, clients) as serving:
            if address is None:
                from ferrule.serve.stdio import serve_stdio  # one of the two ways

                await serve_stdio(serving)
            else:
                await _over_http(serving, address, token, names)


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


async def _over_http(serving: Serving, address: str, token: str | None, names: tuple[str, ...]) -> None:
    import secrets  # only for this way

    from ferrule.serve.guard import is_loopback
    from ferrule.serve.http import PATH, check_token, listen, serve_http

    known = token is not None
    secret = check_token(token) if token is not None else secrets.token_urlsafe(32)
    listening, host, port = listen(address)
    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{port}{PATH}"
    header = "Bearer ${FERRULE_MCP_TOKEN}" if known else f"Bearer {secret}"

    def ready() -> None:
        if not is_loopback(host):
            click.echo(
                f"warning: {shown} can be reached from other machines, and what is said is not encrypted: whoever "
                "reads the token on the way can run commands here.",
                err=True,
            )
        entry = {"type": "http", "url": url, "headers": {"Authorization": header}}
        click.echo(f"Serving MCP at {url}. For a client's configuration:", err=True)
        click.echo(json.dumps({"mcpServers": {"ferrule": entry}}, indent=2), err=True)

    try:
        await serve_http(serving, listening, host=host, token=secret, names=names, ready=ready)
    finally:
        listening.close()
