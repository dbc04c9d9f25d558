"""`/mcp`, `/agents`, `/skills`: what the session has beside its tools, and approving a server in the chat."""

import json
import sys
from pathlib import Path

from tests.cli.talk.typing_front import talk

from ferrule.cli.talk.questions import InPerson
from ferrule.models.recorder import Scripted

SCRIPT = Path(__file__).parents[2] / "sources" / "mcp" / "hostile.py"


def servers(folder, *names):
    """A project's file with servers, which are not approved yet."""
    entry = {"command": sys.executable, "args": ["-I", "-S", str(SCRIPT), "good"]}
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": dict.fromkeys(names, entry)}))


class Yes:
    """A person who says yes to all that is shown."""

    is_person = True

    def __init__(self):
        self.kinds = []

    async def ask(self, question):
        self.kinds.append(question.kind)
        return await InPerson(_Place(), markdown=str).ask(question)


class _Place:
    width = 100

    def print(self, text): ...

    def print_lines(self, *lines): ...

    async def key(self, words, keys, *, again=False):
        return "y"

    async def words(self, offer, start=""): ...

    async def edit(self, text, suffix): ...


async def test_a_server_is_shown_with_why_it_is_not_used_approved_and_restarted(tmp_path):
    servers(tmp_path, "one")
    person = Yes()
    lines = ("/mcp", "/mcp connect one", "/mcp", "/mcp one", "/mcp connect one")
    front = await talk(tmp_path, Scripted(), *lines, ask=person)

    first, second = (part.split("\n> ", 1)[0] for part in front.shown.split("\n> /mcp\n")[1:])
    assert "not approved" in first
    assert "/mcp connect one shows it and asks." in first
    assert "running" in second
    assert "tools" in second
    assert "echo" in front.after("/mcp one")
    assert front.shown.count("one runs, with ") == 2
    assert person.kinds == ["server", "server"]


async def test_names_that_are_none_are_told(tmp_path):
    servers(tmp_path, "one")
    front = await talk(tmp_path, Scripted(), "/mcp oen", "/mcp connect", "/mcp connect none")

    assert "There is no MCP server oen. Did you mean one?" in front.after("/mcp oen")
    assert "Write /mcp, /mcp NAME" in front.after("/mcp connect")
    assert "There is no MCP server none." in front.after("/mcp connect none")


async def test_without_any_it_says_how_one_is_added(tmp_path):
    front = await talk(tmp_path, Scripted(), "/mcp")

    assert "`ferrule mcp add NAME -- COMMAND` adds one." in front.after("/mcp")


async def test_kinds_of_subagents_are_shown_with_their_models_and_places(tmp_path):
    folder = tmp_path / ".claude" / "agents"
    folder.mkdir(parents=True)
    (folder / "tester.md").write_text("---\nname: tester\ndescription: Tests.\ntools: Bash, Read\n---\nYou test.\n")
    front = await talk(tmp_path, Scripted(), "/agents")

    rows = front.after("/agents").splitlines()
    at = next(at for at, row in enumerate(rows) if row.startswith("  tester "))
    assert rows[at].endswith("scripted (the session's)  .claude/agents/tester.md")
    assert rows[at + 1 : at + 3] == ["    Tests.", "    Bash, Read"]
    assert any(row.startswith("  Explore ") and row.endswith("built in") for row in rows)


async def test_skills_are_shown_with_what_they_are_for(tmp_path):
    folder = tmp_path / ".claude" / "skills" / "tidy"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: tidy\ndescription: Tidies a file up.\n---\nTidy.\n")
    front = await talk(tmp_path, Scripted(), "/skills")

    assert front.after("/skills").splitlines()[1:3] == [
        "  tidy  .claude/skills/tidy · not trusted: it brings no rules, tools or servers",
        "    Tidies a file up.",
    ]
