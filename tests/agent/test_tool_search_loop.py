"""Deferred tools in a conversation: what a search finds stands among the tools of the next turn, and only there."""

import pytest

from ferrule.models.cues import calls, said
from tests.registry.brought import mcp

from .stage import Stage, results, words

TOOLS = [mcp("hub", f"{verb}_issue", f"{verb.title()} an issue.", exposure="deferred") for verb in ("create", "close")]


def names(asked):
    return [one.name for one in asked.definitions]


async def staged(stage):
    stage.session.engine.registry.bring("hub", TOOLS)
    await stage.run()


async def test_what_a_search_finds_stands_among_the_tools_and_not_in_its_answer(tmp_path):
    cues = (calls(("ToolSearch", {"query": "select:mcp__hub__close_issue"})), said("Found."))
    async with Stage(tmp_path, *cues) as stage:
        await staged(stage)
        first, second = stage.model.asked

    (result,) = results(second.turns[-1])
    assert "mcp__hub__close_issue" not in names(first)
    assert names(second) == [*names(first), "mcp__hub__close_issue"]
    assert "Close an issue." in words(result)
    assert "properties" not in words(result)


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        pytest.param(("ToolSearch", {"query": "close an issue", "max_results": 1}), True, id="a-search"),
        pytest.param(("mcp__hub__close_issue", {"text": "7"}), True, id="a-call"),
        pytest.param(("Glob", {"pattern": "*"}), False, id="something-else"),
    ],
)
async def test_a_subagent_is_shown_what_it_has_found_or_called(tmp_path, call, shown):
    task = ("Task", {"description": "help", "prompt": "child", "subagent_type": "general-purpose"})
    cues = (calls(task), calls(call, prompt="child"), said("Done.", prompt="child"), said("ok"))
    async with Stage(tmp_path, *cues) as stage:
        await staged(stage)
        first, second = [asked for asked in stage.model.asked if "child" in words(asked.turns[1])]

    assert "mcp__hub__close_issue" not in names(first)
    assert ("mcp__hub__close_issue" in names(second)) is shown


async def test_a_subagent_finds_nothing_that_its_kind_may_not_use(tmp_path):
    (tmp_path / ".claude/agents").mkdir(parents=True)
    (tmp_path / ".claude/agents/closer.md").write_text(
        "---\nname: closer\ndescription: Closes.\ntools: ToolSearch, mcp__hub__close_issue\n---\nClose it.\n"
    )
    task = ("Task", {"description": "help", "prompt": "child", "subagent_type": "closer"})
    search = ("ToolSearch", {"query": "issue"})
    cues = (calls(task), calls(search, prompt="child"), said("Done.", prompt="child"), said("ok"))
    async with Stage(tmp_path, *cues) as stage:
        await staged(stage)
        (_, second) = [asked for asked in stage.model.asked if "child" in words(asked.turns[1])]

    (result,) = results(second.turns[-1])
    assert "close_issue" in words(result)
    assert "create_issue" not in words(result)
