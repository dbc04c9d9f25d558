"""How the families read skills, found tools, and what servers offer."""

from typing import Any

import pytest
from tests.rows import each_row

from ferrule.core.content import Picture
from ferrule.core.services import McpContent, Mixed, ServerResource, ServerResources, SkillLoaded, ToolFound, ToolsFound
from ferrule.dialects import FAMILIES, load_dialect

BARE = SkillLoaded("review", "", "Read it twice.")
FULL = SkillLoaded("review", "/s/review", "Read it twice.", ("tb__lint",), ("Bash(lint *)",), ("notes.md", "data/"))
RESOURCES = (
    ServerResource("docs", "doc://a", "A", "All of it.", "text/plain"),
    ServerResource("docs", "doc://b", "B"),
)


def says(family: str, name: str, outcome: Any) -> Any:
    return next(face for face in load_dialect(family).faces if face.name == name).says(outcome)


@each_row(
    ("family", "name", "outcome", "said"),
    [
        pytest.param("claude", "Skill", BARE, "Read it twice.", id="claude-bare"),
        pytest.param(
            "claude",
            "Skill",
            FULL,
            "Base directory for this skill: /s/review\n"
            "Files beside its instructions: notes.md, data/.\n"
            "Tools that it has brought: tb__lint.\n"
            "Allowed from now on: Bash(lint *).\n\n"
            "Read it twice.",
            id="claude",
        ),
        pytest.param(
            "amp", "skill", BARE, '<loaded_skill name="review">\nRead it twice.\n</loaded_skill>', id="amp-bare"
        ),
        pytest.param(
            "amp",
            "skill",
            FULL._replace(brought=(), allowed=()),
            '<loaded_skill name="review">\nRead it twice.\n\nRelative paths in it start from /s/review.\n'
            "Files beside its instructions: notes.md, data/.\n</loaded_skill>",
            id="amp",
        ),
        pytest.param(
            "gemini",
            "activate_skill",
            FULL._replace(brought=(), allowed=()),
            '<activated_skill name="review">\n<instructions>\nRead it twice.\n</instructions>\n'
            "<available_resources>\nRelative paths start from /s/review.\n"
            "Files beside its instructions: notes.md, data/.\n</available_resources>\n</activated_skill>",
            id="gemini",
        ),
        pytest.param(
            "gemini",
            "activate_skill",
            BARE,
            '<activated_skill name="review">\n<instructions>\nRead it twice.\n</instructions>\n</activated_skill>',
            id="gemini-bare",
        ),
        pytest.param(
            "opencode",
            "skill",
            FULL._replace(files=(), brought=(), allowed=()),
            '<skill_content name="review">\n# Skill: review\n\nRead it twice.\n\n'
            "Base directory for this skill: /s/review\n</skill_content>",
            id="opencode",
        ),
        pytest.param(
            "codex",
            "list_mcp_resources",
            ServerResources(RESOURCES, silent=(("git", "It does not start."),), next_cursor="7"),
            {
                "resources": [
                    {
                        "server": "docs",
                        "uri": "doc://a",
                        "name": "A",
                        "description": "All of it.",
                        "mimeType": "text/plain",
                    },
                    {"server": "docs", "uri": "doc://b", "name": "B"},
                ],
                "nextCursor": "7",
                "unavailable": {"git": "It does not start."},
            },
            id="codex-resources",
        ),
        pytest.param(
            "codex",
            "list_mcp_resource_templates",
            ServerResources(RESOURCES[1:], templates=True),
            {"resourceTemplates": [{"server": "docs", "uriTemplate": "doc://b", "name": "B"}]},
            id="codex-templates",
        ),
        pytest.param(
            "gemini",
            "list_mcp_resources",
            ServerResources(RESOURCES, silent=(("git", "It does not start."),)),
            "The connected servers offer these resources:\n- docs: doc://a (A) [text/plain]: All of it.\n"
            "- docs: doc://b (B)\ngit could not be asked: It does not start.",
            id="gemini-resources",
        ),
        pytest.param(
            "gemini", "list_mcp_resources", ServerResources(()), "No resources found.", id="gemini-no-resources"
        ),
        pytest.param("codex", "read_mcp_resource", Mixed(("One.", "Two.")), "One.\nTwo.", id="a-text"),
        pytest.param(
            "gemini",
            "read_mcp_resource",
            Mixed(("One.", Picture("", "image/png", b"x"), McpContent("audio", {}, "(a sound)"))),
            [
                {"type": "text", "text": "One."},
                {"type": "image", "media_type": "image/png", "data": "eA=="},
                {"type": "text", "text": "(a sound)"},
            ],
            id="a-picture",
        ),
        pytest.param(
            "codex",
            "tool_search",
            ToolsFound("q", (ToolFound("a", "Words.", {"type": "object"}),)),
            {"tools": [{"name": "a", "description": "Words.", "parameters": {"type": "object"}}]},
            id="codex-tools",
        ),
        pytest.param("codex", "tool_search", ToolsFound("q", ()), {"tools": []}, id="codex-no-tools"),
        pytest.param(
            "wayland",
            "ToolSearch",
            ToolsFound("q", (ToolFound("a", "Words.", {}),)),
            '[\n  {\n    "name": "a",\n    "description": "Words.",\n    "parameters": {}\n  }\n]',
            id="wayland-tools",
        ),
    ],
)
def test_an_outcome_reads_as_the_family_reads_it(family, name, outcome, said):
    assert says(family, name, outcome) == said


@pytest.mark.parametrize(
    ("family", "name", "values", "canonical"),
    [
        pytest.param("claude", "Skill", {"skill": "a", "args": "b"}, {"skill": "a", "args": "b"}, id="claude"),
        pytest.param("amp", "skill", {"name": "a", "arguments": "b"}, {"skill": "a", "args": "b"}, id="amp"),
        pytest.param("gemini", "activate_skill", {"name": "a"}, {"skill": "a"}, id="gemini"),
        pytest.param("opencode", "skill", {"name": "a"}, {"skill": "a"}, id="opencode"),
        pytest.param("gemini", "list_mcp_resources", {"serverName": "s"}, {"server": "s"}, id="gemini-server"),
        pytest.param(
            "codex", "tool_search", {"query": "q"}, {"query": "q", "limit": 8, "how": "ranked"}, id="codex-search"
        ),
        pytest.param("wayland", "ToolSearch", {"query": "q"}, {"query": "q", "how": "substring"}, id="wayland-search"),
    ],
)
def test_a_family_s_words_mean_the_canonical_ones(family, name, values, canonical):
    face = next(face for face in load_dialect(family).faces if face.name == name)

    assert face.canonical(values) == canonical


def test_two_families_defer_the_tools_of_servers_and_one_shortens_their_names():
    dialects = [load_dialect(name) for name in FAMILIES]

    assert [dialect.name for dialect in dialects if dialect.defers] == ["wayland", "codex"]
    assert [dialect.name for dialect in dialects if dialect.short_names] == ["wayland"]
