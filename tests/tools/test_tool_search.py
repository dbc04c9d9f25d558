"""The tool that searches for tools, in the words of the families that have it."""

import json
from typing import Any

import pytest
from tests.registry.brought import SCHEMA, mcp, names

from ferrule import Engine, Question
from ferrule.core.catalog import Catalog
from ferrule.dialects.dialect import FAMILIES

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


@pytest.mark.parametrize("family", FAMILIES)
async def test_every_family_can_search_and_then_call(tmp_path, family):
    async with opened(tmp_path, family) as engine:
        (name,) = [face.name for face in engine.registry.shown() if face.tool == "tool_search"]
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
