"""Commands from files in the chat: what reaches the model, and what is refused on the way."""

import asyncio
import json
import types
from typing import Any

import pytest
from tests.cli.talk.typing_front import talk

from ferrule.cli.talk.own_commands import expand_command
from ferrule.engine import Engine
from ferrule.models.recorder import Scripted
from ferrule.tools.skills.text import read_command


def sent(workspace, tmp_path, body, rest="", **options):
    async def work():
        async with Engine(str(workspace), state=str(tmp_path / "state"), **options) as engine:
            chat: Any = types.SimpleNamespace(session=types.SimpleNamespace(engine=engine))
            return await expand_command(chat, read_command(body, "a", "user", "/x/a.md"), rest)

    return asyncio.run(work())


def test_files_are_read_by_the_engine_and_secrets_stay_closed(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("what a holds\n")
    (work / "b.txt").write_text("what b holds\n")
    (work / ".env").write_text("KEY=hidden\n")
    text = sent(work, tmp_path, "See @a.txt and @.env for $1.", "@b.txt")
    assert "what a holds" in text
    assert "The file .env:" in text
    assert "hidden" not in text
    assert "what b holds" not in text  # an argument is put in as it is


@pytest.mark.parametrize("action", ["allow", "deny"])
def test_a_line_runs_as_the_rules_say(tmp_path, action):
    work = tmp_path / "work"
    work.mkdir()
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps({"permissions": {action: ["Bash(touch *)"]}}))
    sent(work, tmp_path, "!`touch $1`", "made", rules=str(rules))
    assert (work / "made").exists() == (action == "allow")


async def test_a_command_that_is_not_trusted_is_told_apart_from_one_that_there_is_not(tmp_path):
    folder = tmp_path / ".claude" / "commands" / "sub"
    folder.mkdir(parents=True)
    (folder / "fix.md").write_text("Fix it.\n")
    scripted = Scripted()
    front = await talk(tmp_path, scripted, "/sub:fix 3", "/fix 3")

    assert "/sub:fix is in .claude/commands/sub/fix.md, which is not trusted" in front.after("/sub:fix 3")
    assert "There is no command /fix." in front.after("/fix 3")
    assert scripted.asked == []
    assert scripted.asked == []
