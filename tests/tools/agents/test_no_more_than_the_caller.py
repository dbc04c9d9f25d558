"""Whatever a file says and whatever is asked for: a subagent has no tool that its caller has not."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.crew import Crew

from ferrule.core.services import Subagent
from ferrule.dialects import FAMILIES, load_dialect
from ferrule.permissions import ModeConfig, includes
from ferrule.tools import BUILTIN
from ferrule.tools.agents import BUILT_IN, GROUPS, AgentKinds, grant_tools, read_agent, toolset
from ferrule.tools.skills import Unusable

NAMES = {face.name: face.tool for family in FAMILIES for face in load_dialect(family).faces}
NAMES |= {tool: tool for tool in BUILTIN} | {name: name for name in ("mcp__box__put", "mcp__box__get", "tb__lint")}
TOOLS = sorted({tool for tool in NAMES.values() if tool in BUILTIN or "__" in tool})
words = st.sampled_from([*sorted(NAMES), "*", "mcp__*", "mcp__box", "Bash(git *)", "no_such", "[a-z]*", "all", *GROUPS])
some = st.lists(words, max_size=6)


class Asked:
    """A call whose user answers all alike."""

    def __init__(self, *, answer: bool) -> None:
        self._answer = answer

    async def approve(self, sentence: str) -> bool:
        return self._answer

    def note(self, sentence: str) -> None:
        pass


def canonical(name: str) -> str:
    return NAMES.get(name, name)


def tools_of(agent: Subagent, parent: ModeConfig) -> set[str]:
    """The tools that the subagent has, as the session's gate decides it."""
    mode = ModeConfig(allow_mcp=True, allow_toolbox=True, only=agent.tools, without=agent.denied, within=parent)
    return {tool for tool in TOOLS if includes(mode, tool, canonical=canonical)}


parents = st.builds(
    ModeConfig,
    include_tools=st.none() | st.lists(st.sampled_from(sorted(BUILTIN)), max_size=8).map(tuple),
    allow_mcp=st.booleans(),
    allow_toolbox=st.booleans(),
    only=st.none() | some.map(tuple),
    without=st.lists(words, max_size=2).map(tuple),
)


@given(tools=st.none() | some, denied=some, allowed=some, answer=st.booleans(), parent=parents)
def test_a_file_and_a_grant_never_give_more_than_the_caller_has(tools, denied, allowed, answer, parent):
    lines = [f"tools: {', '.join(tools)}"] if tools is not None else []
    lines += [f"disallowedTools: {', '.join(denied)}"] if denied else []
    text = "\n".join(["---", "name: x", "description: y", *lines, "permissionMode: bypassPermissions", "---", "Do it."])
    try:
        agent = read_agent(text, file="/x.md", layer="project").agent
    except Unusable:
        return  # nothing is started
    more = asyncio.run(grant_tools(agent, allowed, Crew(), Asked(answer=answer)))  # type: ignore[arg-type]
    had = {tool for tool in TOOLS if includes(parent, tool, canonical=canonical)}
    before, after = tools_of(agent, parent), tools_of(more, parent)

    assert after <= had
    assert before <= after
    if not answer:
        assert after == before
    assert after <= tools_of(agent._replace(tools=None), parent), "what the file denies stays denied"


@given(names=some, parent=parents)
def test_sets_of_tools_never_give_more_than_the_caller_has(names, parent):
    agent = Subagent("x", "", toolset(names), "y")
    had = {tool for tool in TOOLS if includes(parent, tool, canonical=canonical)}

    assert tools_of(agent, parent) <= had


@pytest.mark.parametrize("kind", BUILT_IN)
@given(parent=parents)
def test_what_is_built_in_has_no_more_than_its_caller(kind, parent):
    had = {tool for tool in TOOLS if includes(parent, tool, canonical=canonical)}

    assert tools_of(AgentKinds().get(kind), parent) <= had


def test_who_names_no_tools_can_only_read():
    assert tools_of(Subagent("x", "", toolset(()), "y"), ModeConfig(allow_mcp=True)) == {"read", "grep", "glob"}
