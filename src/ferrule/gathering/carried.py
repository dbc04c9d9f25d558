"""What skills bring into a session: rules, a toolbox, servers; and the prompts of servers, which are skills."""

from collections.abc import Mapping, Sequence
from typing import Any

from ferrule.core.bringing import Bringing
from ferrule.core.errors import ToolFailure
from ferrule.gathering.gathering import Gathering


class Carried(Bringing):
    """The engine as the skill tool reaches it."""

    def __init__(self, gathering: Gathering) -> None:
        self._gathering = gathering

    def allow(self, rules: Sequence[str]) -> tuple[str, ...]:
        around = self._gathering.around
        return around.policing.allow(around.policy, rules, source="a skill")

    async def tools(self, folder: str) -> tuple[str, ...]:
        return await self._gathering.bring_toolbox(folder)

    async def servers(self, servers: Mapping[str, Any], origin: str) -> tuple[str, ...]:
        return await self._gathering.bring_servers(servers, origin)

    async def prompt(self, server: str, name: str, arguments: Mapping[str, str]) -> str:
        servers = self._gathering.servers
        if servers is None:
            raise ToolFailure(f"There is no MCP server called {server}.", code="no-server")
        return await servers.prompt(server, name, arguments)
