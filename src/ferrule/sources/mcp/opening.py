"""What connections to servers are made with."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ferrule.sources.mcp.server import Server

if TYPE_CHECKING:
    from ferrule.sources.mcp.connection import Connection, Elicit


class Opening(NamedTuple):
    """The same for all servers of a session."""

    environment: Mapping[str, str]
    """The whole one: variables are expanded from it. Servers get what of it is no secret."""
    roots: tuple[str, ...] = ()
    elicit: "Elicit | None" = None
    roster: object | None = None
    result_bytes: int = 32 << 20
    keep_env: tuple[str, ...] = ()
    """Variables that look secret and are handed to servers all the same."""
    unsearched: tuple[str, ...] = ()
    """Folders of the user's PATH that programs are not looked for in, because a model can write there."""
    kind: "type[Connection] | None" = None
    """What makes a connection, where it is not the usual class."""

    def connection(self, server: Server, folder: str, on_changed: Callable[[], None]) -> "Connection":
        """A connection to a server whose variables are expanded; nothing is started yet."""
        from ferrule.support.environment import quiet_environment  # whoever uses a server pays for these

        kind = self.kind
        if kind is None:
            from ferrule.sources.mcp.connection import Connection

            kind = Connection
        return kind(
            server,
            environment=quiet_environment(self.environment, keep=self.keep_env),
            folder=folder,
            roots=self.roots,
            on_changed=on_changed,
            elicit=self.elicit,
            roster=self.roster,
            result_bytes=self.result_bytes,
            unsearched=self.unsearched,
        )
