"""Rules and tools in a built-in tool's place: what refuses the one refuses the other, what allows it does not."""

import pytest
from tests.registry.brought import Brought, mcp

from ferrule import Call, Engine, ModeConfig
from ferrule.core.access import Access
from ferrule.settings import Permissions, SandboxSettings, Settings


async def decided(tmp_path, dialect: str, name: str, permissions: Permissions, tool: Brought | None = None, **more):
    async with Engine(tmp_path, dialect=dialect, settings=Settings(permissions=permissions, **more)) as engine:
        engine.registry.bring("custom", [tool or Brought(name)])
        return (await engine.decide(Call(name, {"text": "x"}))).verdict


@pytest.mark.parametrize(
    ("dialect", "name", "rule"),
    [
        pytest.param("claude", "Bash", "Bash", id="by-its-name"),
        pytest.param("claude", "Edit", "Edit", id="a-group"),
        pytest.param("ah", "bash", "Bash", id="by-another-family-s-name"),
        pytest.param("ah", "edit", "Edit", id="a-group-by-another-family-s-name"),
        pytest.param("gemini", "Edit", "Edit", id="where-it-took-nobody-s-place"),
        pytest.param("gemini", "Edit", "replace", id="in-the-session-s-words"),
    ],
)
async def test_what_denies_the_built_in_tool_denies_what_bears_its_name(tmp_path, dialect, name, rule):
    assert await decided(tmp_path, dialect, name, Permissions(deny=(rule,))) == "deny"
    assert await decided(tmp_path, dialect, name, Permissions()) == "ask"


async def test_what_allows_a_group_of_built_in_tools_does_not_allow_what_took_the_place_of_one(tmp_path):
    assert await decided(tmp_path, "gemini", "replace", Permissions(allow=("Edit",))) == "ask"
    assert await decided(tmp_path, "claude", "count", Permissions(allow=("Bash",))) == "ask"


async def test_what_took_the_shell_s_place_does_not_count_as_confined(tmp_path):
    class Commanding(Brought):
        def access(self, args, ctx):
            return (Access.command("make install", ctx.path(".")),)

    verdict = await decided(
        tmp_path, "claude", "Bash", Permissions(), Commanding("Bash"), sandbox=SandboxSettings(auto_allow=True)
    )

    assert verdict == "ask"


async def test_a_tool_that_is_denied_altogether_is_not_advertised(tmp_path):
    settings = Settings(permissions=Permissions(deny=("Bash",)))
    async with Engine(tmp_path, dialect="claude", settings=settings) as engine:
        engine.registry.bring("custom", [Brought("Bash")])

        assert "Bash" not in [definition["name"] for definition in engine.definitions()]


async def test_a_mode_without_servers_has_no_tool_of_theirs_under_its_short_name_either(tmp_path):
    async with Engine(tmp_path, dialect="wayland", mode=ModeConfig(), ask=lambda question: True) as engine:
        engine.registry.bring("git", [mcp("git", "log", exposure="direct")])
        replies = [await engine.call(name, text="x") for name in ("log", "mcp__git__log")]
        shown = [definition["name"] for definition in engine.definitions()]

    assert [reply.error.error_code for reply in replies if reply.error] == ["not-in-mode"] * 2
    assert {"log", "mcp__git__log"}.isdisjoint(shown)
