"""Tools that are known by name alone, and sources that are put off until somebody looks."""

from typing import Any

import pytest
from tests.registry.brought import SCHEMA, mcp, names, session

from ferrule.core.errors import ToolFailure, UnknownTool
from ferrule.core.tool import Raw, Tool


class Unread(Tool[Raw, Any]):
    """A tool that tells when somebody reads what it says of itself."""

    args = Raw
    source = "mcp"

    def __init__(self, name, *, chars):
        self.name = f"mcp__far__{name}"
        self.short = name
        self.definition_chars = chars
        self.reads = 0

    @property
    def schema(self):  # type: ignore[override]  # as servers' tools have it
        self.reads += 1
        return SCHEMA

    @property
    def words(self):  # type: ignore[override]  # the same
        self.reads += 1
        return "Do something far away."


async def test_a_deferred_tool_is_read_when_it_is_looked_at():
    one, other = Unread("one", chars=100_000), Unread("other", chars=100_000)
    registry = session("amp")
    registry.bring("servers", [one, other])

    assert list(registry.deferred) == ["mcp__far__one", "mcp__far__other"]
    assert "far: one, other" in next(face.words for face in registry.visible_faces() if face.tool == "tool_search")
    assert registry.canonical("mcp__far__one") == "mcp__far__one"
    assert (one.reads, other.reads) == (0, 0)

    assert registry.resolve("mcp__far__one").face.words == "Do something far away."
    assert one.reads
    assert not other.reads
    shown = next(face for face in registry.visible_faces() if face.tool == "mcp__far__one")
    assert shown.definition() == {
        "name": "mcp__far__one",
        "description": "Do something far away.",
        "inputSchema": SCHEMA,
    }


@pytest.mark.parametrize(
    ("chars", "deferred"),
    [
        pytest.param(2_000, [], id="within-the-budget"),
        pytest.param(2_001, ["mcp__far__a", "mcp__far__b"], id="one-character-above-it"),
    ],
)
def test_what_tools_cost_is_known_without_reading_them(chars, deferred):
    tools = [Unread("a", chars=2_000), Unread("b", chars=chars)]
    registry = session("amp", defer_tokens=1_000)
    registry.bring("servers", tools)

    assert list(registry.deferred) == deferred
    assert [tool.reads for tool in tools] == [0, 0]


@pytest.mark.parametrize(
    "look",
    [
        pytest.param(lambda registry: registry.visible_faces(), id="what-is-shown"),
        pytest.param(lambda registry: registry.deferred, id="what-is-deferred"),
        pytest.param(lambda registry: registry.knows("mcp__x__t"), id="a-name-that-is-not-known"),
        pytest.param(lambda registry: registry.canonical("mcp__x__t"), id="the-tool-behind-such-a-name"),
        pytest.param(lambda registry: registry.resolve("mcp__x__t"), id="a-call"),
        pytest.param(lambda registry: registry.hear("mcp__x__t", {"text": "a"}), id="a-call-with-arguments"),
        pytest.param(lambda registry: registry.load(["mcp__x__t"]), id="loading-one"),
    ],
)
def test_what_was_put_off_comes_before_anybody_looks(look):
    registry = session("amp")
    told = []
    registry.on_changed = lambda: told.append("changed")
    registry.put_off(lambda: registry.bring("servers", [mcp("x", "t")]))

    look(registry)

    assert registry.knows("mcp__x__t")
    assert "mcp__x__t" in names(registry)
    assert told == [], "nobody has seen it without"


def test_the_family_s_own_names_need_nothing_that_was_put_off():
    registry = session("amp")
    brought = []
    registry.put_off(lambda: brought.append("servers"))

    assert registry.resolve("Read").face.tool == "read"
    assert registry.knows("Read")
    assert registry.canonical("Read") == "read"
    assert registry.hear("Read", {"path": "a"}).face.name == "Read"
    assert brought == []

    with pytest.raises(UnknownTool):
        registry.resolve("mcp__x__t")
    registry.settle()
    assert brought == ["servers"], "it comes once"


def test_what_cannot_be_brought_is_not_tried_again_and_harms_no_later_look():
    registry = session("amp")

    def fail():
        raise ToolFailure("no")

    registry.put_off(fail)
    registry.on_changed = heard = lambda: None
    with pytest.raises(ToolFailure):
        registry.visible_faces()

    assert "Read" in names(registry)
    assert registry.on_changed is heard
