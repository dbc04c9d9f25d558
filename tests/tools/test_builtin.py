"""The list of built-in tools: every line fits the tool that it names."""

import pytest

from ferrule import tools
from ferrule.core.tool import NO_FACTS, Tool
from ferrule.tools import BUILTIN, facts_of, load


@pytest.mark.parametrize("name", BUILTIN)
def test_a_line_names_a_tool_that_describes_itself(name):
    tool = load(name)

    assert (tool.name, tool.source, tool.facts) == (name, "builtin", BUILTIN[name])
    assert tool.title
    assert {"readOnlyHint", "openWorldHint"} <= set(tool.hints)


def test_facts_name_only_tools_that_there_are():
    named = {other for row in BUILTIN.values() for other in (*row.siblings, *row.watched_as)}
    called = {value for name, value in vars(tools).items() if name.isupper() and isinstance(value, str)}

    assert named | called <= BUILTIN.keys()
    assert all(name in BUILTIN[other].siblings for name, row in BUILTIN.items() for other in row.siblings)


def test_the_ranks_of_what_writes_a_plan_are_different():
    ranks = [row.writes_plan for row in BUILTIN.values() if row.writes_plan]

    assert len(ranks) == len(set(ranks))


def test_nothing_is_true_of_a_tool_from_elsewhere():
    assert facts_of("mcp__files__read") == Tool.facts == NO_FACTS
    assert Tool.source == "custom"
