"""Servers' tools that cost too much are deferred: a search finds them, in whatever words the session speaks."""

from typing import Any

import pytest
from tests.gathering.world import World, listed, names

from ferrule import Engine
from ferrule.dialects import FAMILIES, load_dialect
from ferrule.settings import Permissions

MANY = [listed(f"tool_{at}", f"Weighs {word} carefully.", word={"type": "string"}) for at, word in enumerate("abcdef")]
MANY.append(listed("zebra", "Counts the stripes of zebras.", stripes={"type": "integer"}))


def search_of(engine: Engine) -> str:
    """What the session calls the tool that searches."""
    (name,) = [face.name for face in engine.registry.visible_faces() if face.tool == "tool_search"]
    return name


@pytest.fixture
async def known(world: World) -> Any:
    """A server with many tools, listed in an earlier session."""
    servers = {"one": world.server("one", kinds={"tools": MANY}, permission="allow")}
    async with world.session(servers=servers) as engine:
        await engine.connect()
    return servers


@pytest.mark.parametrize("family", FAMILIES)
async def test_what_costs_too_much_is_found_by_a_search(world: World, known: Any, family: str) -> None:
    short = load_dialect(family).short_names
    zebra, other = ("zebra", "tool_0") if short else ("mcp__one__zebra", "mcp__one__tool_0")
    async with world.session(servers=known, mcp={"defer_tokens": 20}, dialect=family) as engine:
        assert not {zebra, other} & names(engine)
        found = await engine.call(search_of(engine), query="zebras")
        assert found.ok
        assert zebra in found.text
        assert names(engine) & {zebra, other} == {zebra}
        assert (await engine.call(zebra, stripes=3)).text == 'zebra {"stripes": 3}'

        unfit = await engine.call(other, word=["x"])
        assert unfit.error is not None
        assert unfit.error.error_code == "not-loaded"
        assert '"word"' in unfit.error.message
        assert other in names(engine)
        assert (await engine.call(other, word="x")).text == 'tool_0 {"word": "x"}'
        assert (await engine.call(other.replace("0", "1"), word="y")).text == 'tool_1 {"word": "y"}'
    assert world.starts("one") == 2


@pytest.mark.parametrize("family", FAMILIES)
async def test_few_tools_are_shown_unless_the_family_defers_all(world: World, known: Any, family: str) -> None:
    dialect = load_dialect(family)
    async with world.session(servers=known, dialect=family) as engine:
        shown = "zebra" if dialect.short_names else "mcp__one__zebra"
        assert (shown in names(engine)) is not dialect.defers
        assert any(face.tool == "tool_search" for face in engine.registry.visible_faces()) is dialect.defers


async def test_settings_of_a_tool_or_a_server_come_before_what_they_cost(world: World, known: Any) -> None:
    exposure = {"mcp__one__zebra": "direct", "mcp__one__tool_?": "hidden"}
    async with world.session(servers=known, mcp={"defer_tokens": 0}, tools={"exposure": exposure}) as engine:
        assert {one for one in names(engine) if one.startswith("mcp__")} == {"mcp__one__zebra"}
        assert (await engine.call("mcp__one__tool_1")).text == "tool_1 {}"
    direct = {"one": world.server("one", kinds={"tools": MANY}, permission="allow", exposure="direct")}
    async with world.session(servers=direct, mcp={"defer_tokens": 0}) as engine:
        assert len([one for one in names(engine) if one.startswith("mcp__")]) == len(MANY)


async def test_a_search_does_not_find_what_the_session_may_not_use(world: World, known: Any) -> None:
    rules = Permissions(deny=("mcp__one__zebra",))
    async with world.session(servers=known, mcp={"defer_tokens": 0}, permissions=rules) as engine:
        found = await engine.call(search_of(engine), query="zebra")
        assert "stripes" not in found.text
        assert "mcp__one__zebra" not in names(engine)


async def test_a_search_lists_servers_that_were_never_listed(world: World, known: Any) -> None:
    servers = {**known, "new": world.server("new", kinds={"tools": [listed("giraffe", "Measures necks.")]})}
    async with world.session(servers=servers, mcp={"defer_tokens": 0}) as engine:
        assert world.starts("new") == 0
        found = await engine.call(search_of(engine), query="necks")
        assert "mcp__new__giraffe" in found.text
        assert (world.starts("new"), world.starts("one")) == (1, 1)


async def test_whoever_calls_by_hand_needs_nothing_loaded(world: World, known: Any) -> None:
    async with world.session(servers=known, mcp={"defer_tokens": 0}, lazy=True) as engine:
        assert (await engine.call("mcp__one__tool_2", word="x")).text == 'tool_2 {"word": "x"}'
