"""The question about trust: asked once a folder, with what would run, and never where nothing would."""

import json
import os
from pathlib import Path

import pytest
from tests.cli.talk.typing_front import Typing
from tests.cli.test_chat_tmux import answer_when_quiet, script

from ferrule.cli.talk.start import TrustItem, ask_trust, find_trust_items, kinds, wide_warning
from ferrule.permissions.trust import code_files, project_files
from ferrule.settings import state_folder

CLAUDE = {
    "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./guard.sh"}]}]},
    "permissions": {"allow": ["Bash(npm run *)"], "deny": ["Read(secret)"], "defaultMode": "acceptEdits"},
}
FILES = {
    ".claude/settings.json": json.dumps(CLAUDE),
    ".ferrule/settings.toml": 'dialect = "codex"\n[checks.commands.lint]\ncommand = "make lint"\n',
    ".mcp.json": json.dumps({"mcpServers": {"github": {"command": "npx", "args": ["-y", "gh"]}}}),
    ".claude/commands/sub/review.md": "Review it.",
    ".claude/skills/write/SKILL.md": "---\nname: write\ndescription: x\n---\n",
    "tools/build.py": "x = 1\n",
    "guard.sh": "exit 0\n",
}


def put(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(folder)


def contents(folder):
    paths = [path for path in (*project_files(folder), *code_files(folder)) if os.path.exists(path)]
    return {path: Path(path).read_bytes() for path in paths}


def states(folder):
    return [kind.trust.state(folder, kind.files) for kind in kinds(folder, state_folder())]


async def asked(folder, *answers, **options):
    front = Typing(answers=answers)
    await ask_trust(front, folder, **options)
    return front


def test_everything_that_would_run_or_allow_is_named(tmp_path):
    folder = put(tmp_path, FILES)

    assert find_trust_items(folder, contents(folder)) == [
        TrustItem("hook", "PreToolUse: ./guard.sh"),
        TrustItem("check", "lint: make lint"),
        TrustItem("server", "github: npx -y gh"),
        TrustItem("tool", "tools/build.py"),
        TrustItem("skill", ".claude/skills/write/SKILL.md"),
        TrustItem("command", "/sub:review"),
        TrustItem("allows", "Bash(npm run *)"),
        TrustItem("mode", "acceptEdits"),
    ]


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({}, id="an-empty-folder"),
        pytest.param({"src/a.py": "x", "AGENTS.md": "y"}, id="ordinary-files"),
        pytest.param({".claude/settings.json": '{"permissions": {"deny": ["Read(x)"]}}'}, id="rules-that-deny"),
        pytest.param({".ferrule/settings.toml": 'dialect = "codex"\n'}, id="a-dialect"),
        pytest.param({".claude/settings.json": "{ broken"}, id="what-cannot-be-read"),
        pytest.param({"tools/notes.txt": "x"}, id="no-program"),
    ],
)
async def test_where_nothing_would_run_nothing_is_asked(tmp_path, files):
    front = await asked(put(tmp_path, files))

    assert (front.asked, front.shown) == ([], "")


async def test_a_yes_trusts_all_of_it_and_is_not_asked_again(tmp_path):
    folder = put(tmp_path, FILES)
    front = await asked(folder, "y")

    assert front.asked == [("Trust it?", "yn")]
    assert "PreToolUse: ./guard.sh" in front.shown
    assert states(folder) == ["trusted", "trusted"]
    assert (await asked(folder)).asked == []


async def test_a_no_is_remembered_and_trusts_nothing(tmp_path):
    folder = put(tmp_path, FILES)
    await asked(folder, "n")
    put(tmp_path, {"tools/more.py": "y = 2\n"})

    assert states(folder) == ["unknown", "unknown"]
    assert (await asked(folder)).asked == []


async def test_a_change_of_what_was_trusted_is_asked_about(tmp_path):
    folder = put(tmp_path, FILES)
    await asked(folder, "y")
    put(tmp_path, {"tools/more.py": "y = 2\n"})
    front = await asked(folder, "y")

    assert "changed since you trusted" in front.shown
    assert "tools/more.py" in front.shown
    assert "guard.sh" not in front.shown  # its kind is trusted as it is
    assert states(folder) == ["trusted", "trusted"]


async def test_what_changes_while_it_is_asked_about_is_not_trusted(tmp_path):
    folder = put(tmp_path, FILES)

    class Slow(Typing):
        async def key(self, words, keys, *, again=False):
            put(tmp_path, {"tools/build.py": "evil = 1\n"})
            return "y"

    front = Slow()
    await ask_trust(front, folder)

    assert states(folder) == ["trusted", "unknown"]
    assert "have changed since they were shown" in front.shown


async def test_many_are_shown_on_request(tmp_path):
    folder = put(tmp_path, {f"tools/t{number:02}.py": "x\n" for number in range(20)})
    front = await asked(folder, "s", "n")

    assert front.asked == [("Trust it?", "yns"), ("Trust it?", "yn")]
    assert front.shown.index("… 8 more") < front.shown.index("tools/t19.py")


async def test_a_session_that_takes_nothing_from_projects_does_not_ask(tmp_path):
    assert (await asked(put(tmp_path, FILES), sources=("user",))).asked == []


async def test_what_a_project_writes_there_steers_no_terminal(tmp_path):
    settings = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "a\x1b[2Jb\u202ec\nd"}]}]}}
    folder = put(tmp_path, {".claude/settings.json": json.dumps(settings)})
    front = await asked(folder, "n")

    assert "\x1b" not in front.shown
    assert "\u202e" not in front.shown


def test_the_home_folder_and_the_machine_are_warned_about(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))

    assert wide_warning("/").startswith("The workspace is the whole machine (/)")
    assert wide_warning("~").startswith(f"The workspace is your whole home folder ({tmp_path})")
    assert wide_warning(str(tmp_path / "project")) == ""


async def test_on_the_whole_machine_nothing_is_asked():
    assert (await asked("/")).asked == []


def test_the_first_start_asks_before_anything_of_the_project_counts(tmp_path, terminal):
    folder = tmp_path / "project"
    put(folder, FILES)
    path = script(tmp_path, {"text": "Hi."})
    one = terminal(["--replay", path, "--dialect", "claude"], folder)
    shown = one.wait("o, and do not ask again")
    assert "Trust this folder?" in shown
    assert "/help lists commands" not in shown
    answer_when_quiet(one, "y", "lists commands")
    shown = one.wait("lists commands")
    one.wait("acceptEdits")
    one.type("\x04")

    assert one.ended() == 0
    assert "are not run" not in shown
    assert states(str(folder)) == ["trusted", "trusted"]

    again = terminal(["--replay", path], folder)
    again.wait("lists commands")
    again.type("\x04")
    assert again.ended() == 0
    assert "Trust this folder?" not in again.screen()


def test_whoever_answers_nothing_is_not_asked_and_the_home_folder_is_warned_about(tmp_path, terminal):
    put(tmp_path, FILES)
    one = terminal(
        ["--replay", script(tmp_path, {"text": "Hi."}), "--deny"],
        tmp_path,
        HOME=str(tmp_path),
    )
    shown = one.wait("context 100% left")
    one.type("\x04")

    assert one.ended() == 0
    assert "Trust this folder?" not in shown
    assert "The workspace is your whole home folder" in shown
