"""What servers offer comes into a session when somebody looks, and what has not changed is not read again."""

import pytest
from tests.sources.mcp.pretend import listing, tool
from tests.sources.mcp.world import World, names

from ferrule import Engine


@pytest.fixture
async def world(tmp_path, monkeypatch):
    made = World(tmp_path)
    (made.user / "settings.toml").touch()
    monkeypatch.setenv("FERRULE_SETTINGS", str(made.user / "settings.toml"))
    yield made
    await made.close()


async def listed(world, *tools, **more):
    """A first session, in which the server is listed and approved."""
    world.user_servers(x={"command": "x"})
    world.scripts["x"].says = listing(*tools, **more)
    servers = world.session()
    await servers.connect()
    return servers


async def test_a_tool_that_has_not_changed_stays_the_same_object(world):
    servers = await listed(world, tool("a"), tool("b"))
    before = servers.source_tools().tools
    world.scripts["x"].says = listing(tool("a"), tool("c"))

    await servers.connect(["x"])

    assert servers.source_tools().tools[0] is before[0]


async def test_a_tool_that_reads_otherwise_is_another_object(world):
    async def yes(_):
        return True

    world.user_servers(x={"command": "x"})
    world.scripts["x"].says = listing(tool("a", "Old words."))
    first = world.session(yes)
    await first.connect()
    (before,) = first.source_tools().tools
    assert before.words == "Old words."
    world.scripts["x"].change(listing(tool("a", "New words.")))

    await first.connect(["x"])

    (after,) = first.source_tools().tools
    assert after is not before
    assert after.words == "New words."


async def test_a_tool_whose_description_was_lost_has_it_again_when_the_server_is_listed(world):
    await listed(world, tool("a", "Words."))
    (kept,) = (world.state / "mcp" / "listings").glob("*.json")
    servers = world.session()
    (lost,) = servers.source_tools().tools
    kept.unlink()
    assert "not known any more" in lost.words

    await servers.connect(["x"])

    assert [one.words for one in servers.source_tools().tools] == ["Words."]


async def test_a_session_that_uses_its_own_tools_asks_nothing_about_servers(world):
    await listed(world, tool("a"))
    (world.workspace / "a.txt").write_text("hello\n")
    async with Engine(world.workspace, state=world.state) as engine:
        assert (await engine.call("Read", path="a.txt")).ok
        assert engine.sources._servers is None

        assert "mcp__x__a" in [one["name"] for one in engine.definitions()]


async def test_warnings_about_servers_are_there_without_a_look(world):
    world.user_servers(x={"command": "x"}, broken={})
    async with Engine(world.workspace, state=world.state) as engine:
        said = "\n".join(engine.warnings)

    assert "broken is not used" in said
    assert "The tools of the server x are not known yet" in said


@pytest.mark.parametrize("has_resources", [pytest.param(True, id="some"), pytest.param(False, id="none")])
async def test_the_tools_for_resources_are_shown_where_a_server_has_any(world, has_resources):
    servers = await listed(world, tool("a"), has_resources=has_resources)
    assert names(servers.source_tools()) == ["mcp__x__a"]

    async with Engine(world.workspace, dialect="codex", state=world.state) as engine:
        shown = [one["name"] for one in engine.definitions()]

    assert ("read_mcp_resource" in shown) is has_resources
