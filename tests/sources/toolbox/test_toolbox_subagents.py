"""Subagents in a toolbox: what a Markdown file says, and who runs it."""

from typing import TYPE_CHECKING, cast

import pytest
from tests.rows import each_row
from tests.sources.toolbox.boxes import box, put, session, statuses, toolbox

from ferrule import Engine
from ferrule.core.call import Call
from ferrule.core.errors import ToolFailure
from ferrule.core.services import Subagent, Subagents
from ferrule.sources.toolbox.tool import SubagentTool, subagent

if TYPE_CHECKING:
    from ferrule.core.tool import Context

REFACTOR = """---
type: subagent
model: claude-sonnet-4-5
description: Renames things.
tools: [Read, edit_file, tb__typescript_*]
---
You rename things.

Nothing else.
"""


class Somebody(Subagents):
    """Runs what it is given by saying it back."""

    def __init__(self):
        self.given = []

    async def run(self, subagent, prompt, ctx):
        self.given.append((subagent, prompt))
        return f"{subagent.name} did: {prompt}"


class Host:
    """A context that has this service and no other."""

    def __init__(self, service=None):
        self._service = service

    def need(self, service):
        if self._service is None or service is not Subagents:
            raise TypeError("The engine has none.")
        return self._service


def described() -> Subagent:
    found = subagent(REFACTOR, "tb__refactor")
    assert found is not None
    return found


@pytest.mark.contract("toolbox.subagents")
async def test_a_file_is_a_tool(tmp_path):
    put(tmp_path / "box", "refactor.md", REFACTOR, mode=0o644)
    boxes = toolbox(box(tmp_path / "box"), can_run_subagents=True)

    (tool,) = (await boxes.load()).tools

    assert (tool.name, tool.words, tool.exposure, tool.source) == ("tb__refactor", "Renames things.", None, "toolbox")
    assert isinstance(tool, SubagentTool)
    assert tool.subagent == Subagent(
        "refactor",
        "claude-sonnet-4-5",
        ("Read", "edit_file", "tb__typescript_*"),
        "You rename things.\n\nNothing else.",
        "Renames things.",
    )
    assert (list(tool.schema["properties"]), tool.schema["required"]) == (["prompt", "description"], ["prompt"])


async def test_a_host_with_a_model_runs_it(tmp_path):
    somebody = Somebody()
    tool = SubagentTool("x.md", described(), name="tb__refactor", can_run=True)

    said = await tool.run(tool.args(prompt="a to b"), cast("Context", Host(somebody)))

    assert said == "refactor did: a to b"
    assert somebody.given[0][0].name == "refactor"


async def test_without_a_model_it_is_hidden_and_says_so(tmp_path):
    put(tmp_path / "box", "refactor.md", REFACTOR, mode=0o644)
    (tmp_path / "work").mkdir()
    async with session(tmp_path / "work", box(tmp_path / "box")) as engine:
        assert "tb__refactor" not in [definition["name"] for definition in engine.definitions()]
        (reply,) = await engine.run([Call("tb__refactor", {"prompt": "x"})])

    assert reply.status == "error"
    assert "no model" in reply.text


async def test_a_context_without_the_service_is_one_without_a_model():
    tool = SubagentTool("x.md", described(), name="tb__refactor", can_run=False)

    with pytest.raises(ToolFailure, match="no model"):
        await tool.run(tool.args(prompt="x"), cast("Context", Host()))


@each_row(
    ("header", "tools"),
    [
        pytest.param("", None, id="nothing-is-said"),
        pytest.param("tools: [Read, Grep]\n", ("Read", "Grep"), id="list"),
        pytest.param("tools:\n  - Read\n  - Grep\n", ("Read", "Grep"), id="long-list"),
        pytest.param("tools: Read, Grep\n", ("Read", "Grep"), id="text"),
        pytest.param("toolPatterns: [tb__*]\n", ("tb__*",), id="older"),
        pytest.param("tools: [Read]\ntoolPatterns: [Grep]\n", ("Read",), id="newer-first"),
        pytest.param("tools: []\n", (), id="none"),
        pytest.param("tools:\n", (), id="empty-is-none-and-not-all"),
    ],
)
def test_the_tools_of_a_subagent(header, tools):
    found = subagent(f"---\ntype: subagent\n{header}---\nYou.\n", "tb__x")

    assert found is not None
    assert found.tools == tools


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("---\ntype: subagent\n---\n\n", "system prompt", id="no-prompt"),
        pytest.param("---\ntype: subagent\ntools: {a: b}\n---\nYou.", "list of names", id="tools-object"),
        pytest.param("---\ntype: subagent\ntools: [[a]]\n---\nYou.", "list of names", id="tools-nested"),
        pytest.param("---\ntype: subagent\nmodel: [a]\n---\nYou.", "texts", id="model-list"),
        pytest.param("---\ntype: subagent\na: &x 1\nb: *x\n---\nYou.", "cannot be read", id="anchors"),
        pytest.param(b"---\ntype: subagent\n---\n" + b"x" * (1 << 20), "longer than", id="too-long"),
    ],
)
async def test_a_file_that_cannot_be_used_fails_with_a_reason(tmp_path, text, reason):
    put(tmp_path, "bad.md", text, mode=0o644)
    put(tmp_path, "good.md", REFACTOR, mode=0o644)
    boxes = toolbox(box(tmp_path))

    await boxes.load()

    assert statuses(boxes.entries) == {"bad.md": "failed", "good.md": "registered"}
    assert reason in boxes.entries[0].reason


@pytest.mark.parametrize("text", ["# About\n", "---\ntitle: x\n---\nHello", "---\ntype: note\n---\nHello", ""])
def test_other_markdown_is_none(text):
    assert subagent(text, "tb__x") is None


async def test_it_holds_up_nobody_for_its_own_calls_are_decided_on(tmp_path):
    tool = SubagentTool("x.md", described(), name="tb__refactor", can_run=True)

    assert tool.access(tool.args(prompt="x"), cast("Context", Host())) == ()
    async with Engine(tmp_path, tools=[tool]) as engine:
        reply = await engine.call("tb__refactor", prompt="x")
    assert reply.status == "error"
