"""The tool that searches for tools, in the words of the families that have it."""

import json
from typing import Any

import pytest
from tests.registry.brought import SCHEMA, mcp, names
from tests.rows import each_row

from ferrule import Engine, Question
from ferrule.core.services import Catalog
from ferrule.dialects import FAMILIES

TOOLS = [
    mcp("github", "search_code", "Search code. Größe: 1 < 2.", exposure="deferred"),
    mcp("github", "create_issue", "Open an issue.", exposure="deferred"),
]


def opened(tmp_path, dialect: str, tools: Any = TOOLS) -> Engine:
    engine = Engine(tmp_path, dialect=dialect)
    engine.registry.bring("github", tools)
    return engine


async def searched(tmp_path, dialect: str, name: str, tools: Any = TOOLS, **values: Any) -> Any:
    async with opened(tmp_path, dialect, tools) as engine:
        return await engine.call(name, **values), names(engine.registry)


def test_the_catalog_is_what_tools_ask_for(tmp_path):
    assert isinstance(opened(tmp_path, "amp").registry.catalog, Catalog)


async def test_wayland_gets_a_pretty_array(tmp_path):
    reply, shown = await searched(tmp_path, "wayland", "ToolSearch", query="CODE. GRÖ")
    rows = [{"name": shown[-1], "description": "Search code. Größe: 1 < 2.", "parameters": SCHEMA}]

    assert reply.result == json.dumps(rows, indent=2, ensure_ascii=False)
    assert not reply.notes


@pytest.mark.contract("search.nothing")
async def test_wayland_finds_nothing_without_an_error(tmp_path):
    reply, _ = await searched(tmp_path, "wayland", "ToolSearch", query="weather")

    assert (reply.status, reply.result) == ("done", 'No deferred tools matching "weather" found.')


@pytest.mark.parametrize("values", [{"query": ""}, {"query": "  "}, {}], ids=["empty", "blank", "missing"])
@pytest.mark.contract("search.required")
async def test_wayland_needs_a_query(tmp_path, values):
    reply, _ = await searched(tmp_path, "wayland", "ToolSearch", **values)

    assert (reply.status, reply.text) == ("error", "Error: query is required")


async def test_codex_gets_the_tools_as_an_object_the_best_first(tmp_path):
    reply, shown = await searched(tmp_path, "codex", "tool_search", query="open issues")

    assert reply.result == {
        "tools": [{"name": "mcp__github__create_issue", "description": "Open an issue.", "parameters": SCHEMA}]
    }
    assert shown[-1] == "mcp__github__create_issue"


@pytest.mark.contract("search.ranked")
async def test_codex_finds_eight_unless_it_asks_for_more(tmp_path):
    tools = [mcp("x", f"same_{n}", exposure="deferred") for n in range(60)]
    usual, _ = await searched(tmp_path, "codex", "tool_search", tools, query="same")
    more, _ = await searched(tmp_path, "codex", "tool_search", tools, query="same", limit=20)
    most, _ = await searched(tmp_path, "codex", "tool_search", tools, query="same", limit=1_000)

    assert [len(reply.result["tools"]) for reply in (usual, more, most)] == [8, 20, 50]
    assert most.notes == ("These are the first 50; there may be more. A longer query finds fewer.",)


@pytest.mark.parametrize("limit", [0, -1])
async def test_to_look_for_no_tools_is_a_mistake(tmp_path, limit):
    reply, _ = await searched(tmp_path, "codex", "tool_search", query="x", limit=limit)

    assert reply.text == "limit: must be at least 1."


@each_row("family", FAMILIES)
async def test_every_family_can_search_and_then_call(tmp_path, family):
    async with opened(tmp_path, family) as engine:
        (name,) = [face.name for face in engine.registry.visible_faces() if face.tool == "tool_search"]
        reply = await engine.call(name, query="issue")
        again = await engine.call("tool_search", query="issue")

    assert reply.ok
    assert again.ok
    assert "create_issue" in reply.text
    assert engine.registry.resolve("mcp__github__create_issue").tool is TOOLS[1]


async def test_it_touches_nothing_and_needs_no_question(tmp_path):
    asked: list[Question] = []

    def ask(question: Question) -> bool:
        asked.append(question)
        return False

    async with Engine(tmp_path, dialect="codex", ask=ask) as engine:
        engine.registry.bring("github", TOOLS)
        reply = await engine.call("tool_search", query="issue")

    assert reply.ok
    assert asked == []


def search_name(engine: Engine) -> str:
    (name,) = [face.name for face in engine.registry.visible_faces() if face.tool == "tool_search"]
    return name


@pytest.mark.contract("search.select")
@each_row("family", FAMILIES)
@each_row(
    ("query", "found"),
    [
        pytest.param("select:mcp__github__create_issue", {"create_issue"}, id="one"),
        pytest.param("select:search_code, MCP__GITHUB__CREATE_ISSUE", {"create_issue", "search_code"}, id="several"),
        pytest.param("SELECT: create_issue,create_issue,", {"create_issue"}, id="in-any-case-and-each-once"),
        pytest.param("select:issue", set(), id="no-words"),
    ],
)
async def test_names_behind_select_are_loaded_and_nothing_else(tmp_path, family, query, found):
    async with opened(tmp_path, family) as engine:
        before = {face.tool for face in engine.faces()}
        reply = await engine.call(search_name(engine), query=query)
        after = {face.tool for face in engine.faces()}

    assert reply.ok
    assert after - before == {f"mcp__github__{name}" for name in found}
    assert all(name in reply.text for name in found)


async def test_claude_code_s_own_search_tool_takes_max_results(tmp_path):
    tools = [mcp("x", f"same_{n}", exposure="deferred") for n in range(20)]
    usual, _ = await searched(tmp_path, "claude", "ToolSearch", tools, query="same")
    three, _ = await searched(tmp_path, "claude", "ToolSearch", tools, query="same", max_results=3)
    one, _ = await searched(tmp_path, "claude", "ToolSearch", tools, query="select:mcp__x__same_7", max_results=3)

    assert [len(reply.result["tools"]) for reply in (usual, three, one)] == [5, 3, 1]
    assert not usual.notes


@each_row("family", FAMILIES)
async def test_select_says_which_names_mean_nothing_and_which_are_listed_anyway(tmp_path, family):
    async with opened(tmp_path, family) as engine:
        listed = next(face.name for face in engine.faces() if face.tool == "read")
        reply = await engine.call(search_name(engine), query=f"select:{listed},create_isue,create_issue")

    assert "create_issue" in reply.text
    assert f"{listed}: listed in full already; call it." in reply.notes
    assert "No deferred tool is called create_isue. Search for words of what it does." in reply.notes


async def test_select_without_a_name_is_a_mistake(tmp_path):
    reply, _ = await searched(tmp_path, "codex", "tool_search", query="select: , ")

    assert (reply.status, reply.text) == ("error", "query: name a tool behind select:")


@each_row("family", FAMILIES)
@each_row("query", ["weather", "the", "select:weather", "?"])
async def test_a_search_that_finds_nothing_says_what_there_is(tmp_path, family, query):
    async with opened(tmp_path, family) as engine:
        before = names(engine.registry)
        reply = await engine.call(search_name(engine), query=query)

        assert reply.ok
        assert any("github: search_code, create_issue" in note for note in reply.notes)
        assert names(engine.registry) == before


async def test_a_search_where_nothing_is_deferred_says_so(tmp_path):
    reply, _ = await searched(tmp_path, "amp", "tool_search", [], query="weather")

    assert reply.notes == ("There is nothing to be found: all tools of this session are listed in full.",)


@each_row("family", FAMILIES)
async def test_schemas_are_not_told_twice_where_the_definitions_follow(tmp_path, family):
    long = mcp("github", "create_issue", f"{'Open an issue. ' * 30}\nAnd much more.", exposure="deferred")
    async with opened(tmp_path, family, [long]) as engine:
        name = search_name(engine)
        whole = await engine.call(name, query="issue")
        engine.registry.definitions_follow = True
        short = await engine.call(name, query="issue")

    assert "What to work on." in whole.text
    assert "And much more." in whole.text
    if family == "wayland":  # the form of its answer is a contract
        assert short.text == whole.text
    else:
        assert short.result["tools"] == [{"name": "mcp__github__create_issue", "description": long.words[:299] + "…"}]
