"""Resources of servers as tools: what is asked of the session's servers, and what comes back."""

from typing import Any, cast

import pytest

from ferrule.core.access import Access
from ferrule.core.errors import BadArguments
from ferrule.core.services import Mixed, Offered, ServerResource, ServerResources
from ferrule.tools.meta import ListResources, ListResourceTemplates, ReadResource

FOUND = ServerResources((ServerResource("x", "file:///a", "a"),), next_cursor="5")


class Servers(Offered):
    """Servers that remember what they were asked."""

    def __init__(self):
        self.asked = []

    async def resources(self, server, *, templates=False, cursor=""):
        self.asked.append((server, templates, cursor))
        return FOUND._replace(templates=templates)

    async def read(self, server, uri):
        self.asked.append((server, uri))
        return Mixed((f"content of {uri}",))


class Reaching:
    """The part of a call's context that these tools use."""

    def __init__(self):
        self.servers = Servers()

    def need(self, service):
        assert service is Offered
        return self.servers

    def param(self, name):
        return name


@pytest.mark.parametrize(
    ("tool", "values", "asked"),
    [
        pytest.param(ListResources, {}, (None, False, ""), id="all"),
        pytest.param(ListResources, {"server": "x", "cursor": "5"}, ("x", False, "5"), id="one"),
        pytest.param(ListResources, {"server": ""}, (None, False, ""), id="an-empty-name-is-none"),
        pytest.param(ListResourceTemplates, {"server": "x"}, ("x", True, ""), id="templates"),
    ],
)
async def test_lists_come_from_the_sessions_servers(tool, values, asked):
    ctx: Any = Reaching()
    args = tool.args(**values)

    found = await tool().run(args, ctx)

    assert ctx.servers.asked == [asked]
    assert found == FOUND._replace(templates=asked[1])
    assert tool().access(args, ctx) == (Access.server(asked[0] or "*", mode="read"),)


@pytest.mark.parametrize("server", [None, "x"])
async def test_a_resource_is_read_from_its_server(server):
    ctx: Any = Reaching()
    args = ReadResource.args(uri="file:///a", server=server)

    assert await ReadResource().run(args, ctx) == Mixed(("content of file:///a",))
    assert ctx.servers.asked == [(server, "file:///a")]
    assert ReadResource().access(args, ctx) == (Access.server(server or "*", mode="read"),)


async def test_an_address_that_is_empty_is_refused():
    with pytest.raises(BadArguments, match="uri: it is empty"):
        await ReadResource().run(ReadResource.args(uri=" "), cast("Any", Reaching()))


def test_the_names_are_the_canonical_ones():
    assert [tool.name for tool in (ListResources, ListResourceTemplates, ReadResource)] == [
        "list_mcp_resources",
        "list_mcp_resource_templates",
        "read_mcp_resource",
    ]
