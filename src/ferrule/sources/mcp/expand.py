"""Variables in a server's configuration: `${NAME}` and `${NAME:-otherwise}`, put in when the server is started.

Pins and questions are about the text as it was written. A project's server may name a variable that holds a secret,
in its address as well as in its environment; that is safe enough because nothing of a project is started before
the user has approved it, and the question names every variable that it would get.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping

import msgspec

from ferrule.core.errors import ConfigError
from ferrule.sources.mcp.server import Server

_VARIABLE = r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}"


def expanded(server: Server, environment: Mapping[str, str]) -> Server:
    """The server with its variables put in. Raises `ConfigError` that names a variable which is not set."""

    def value(found: re.Match[str]) -> str:
        name, otherwise = found[1], found[2]
        held = environment.get(name)
        if otherwise is not None:
            return held or otherwise
        if held is None:
            raise ConfigError(
                f"The MCP server {server.name} needs the variable {name}, which is not set. Set it, or write "
                f"${{{name}:-something}} in {server.source}."
            )
        return held

    def put(text: str) -> str:
        # What a variable holds is not looked at again: a value with ${…} in it is only text.
        return re.sub(_VARIABLE, value, text) if "${" in text else text

    return msgspec.structs.replace(
        server,
        command=os.path.expanduser(put(server.command)),
        args=tuple(map(put, server.args)),
        env=_values(server.env, put),
        cwd=os.path.expanduser(put(server.cwd)),
        url=put(server.url),
        headers=_values(server.headers, put),
    )


def variables(server: Server) -> tuple[str, ...]:
    """The names of all variables whose values the server would get."""
    return tuple(dict.fromkeys(found[1] for text in _texts(server) for found in re.finditer(_VARIABLE, text)))


def _values(texts: Mapping[str, str], put: Callable[[str], str]) -> dict[str, str]:
    return {name: put(text) for name, text in texts.items()}


def _texts(server: Server) -> Iterator[str]:
    yield from (server.command, *server.args, *server.env.values(), server.cwd, server.url, *server.headers.values())
