"""The command around the conversation, and what a session has changed."""

import os
import subprocess
import sys

import pytest
from tests.cli.talk.terminals import Pty

from ferrule.cli.main import run
from ferrule.cli.talk.commands import changes
from ferrule.engine import Engine
from ferrule.files.journal import Journal
from ferrule.permissions import Everybody

FERRULE = [sys.executable, "-m", "ferrule"]


@pytest.fixture
def terminal():
    opened = []

    def start(arguments, cwd, **environment):
        one = Pty(80, 24)
        opened.append(one)
        one.start(arguments, cwd, **environment)
        return one

    yield start
    for one in opened:
        one.close()


def test_without_a_terminal_it_says_what_to_use_instead(capsys):
    assert run(["chat"]) == 2
    assert "`ferrule run" in capsys.readouterr().err


def test_ferrule_alone_shows_its_help_where_there_is_no_terminal(tmp_path):
    done = subprocess.run(FERRULE, capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=tmp_path, check=True)

    assert "Commands:" in done.stdout
    assert "chat" in done.stdout


def test_ferrule_alone_at_a_terminal_wants_to_talk_and_says_how_to_choose_a_model(terminal, tmp_path, monkeypatch):
    monkeypatch.delenv("FERRULE_MODEL", raising=False)
    one = terminal([], tmp_path)
    code = one.ended()

    shown = one.screen()
    assert code == 2
    assert "No model is chosen" in shown
    assert "ferrule demo" in shown
    assert "Traceback" not in shown


def test_without_its_packages_it_says_which_to_install(terminal, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as u\nfound = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name == 'rich' else found(name, *more)\n"
    )
    one = terminal(["chat"], tmp_path, PYTHONPATH=str(tmp_path))

    assert one.ended() == 2
    assert "pip install 'ferrule[tui]'" in one.screen()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["--resume", "T-1", "--continue"], "not both", id="resume-and-continue"),
        pytest.param(["--replay", "a", "--model", "b"], "not both", id="replay-and-model"),
        pytest.param(["--replay", "nothing.jsonl"], "nothing.jsonl", id="no-recording"),
        pytest.param(["--model", "nonsense"], "nonsense", id="no-model-of-that-name"),
        pytest.param(["--resume", "T-nothing"], "T-nothing", id="no-such-conversation"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(terminal, tmp_path, arguments, words):
    one = terminal(["chat", *arguments], tmp_path)

    assert one.ended() == 2
    assert words in one.screen()
    assert "Traceback" not in one.screen()


async def test_the_changes_of_a_session_are_those_since_its_beginning(tmp_path):
    (tmp_path / "a").write_text("one\ntwo\n")
    async with Engine(tmp_path, dialect="amp", ask=Everybody()) as engine:
        for old, new in (("one", "1"), ("two", "2"), ("1", "one")):
            assert (await engine.call("edit_file", path="a", old_str=old, new_str=new)).ok
        await engine.call("create_file", path="b", content="new\n")
        await engine.call("create_file", path="c", content="gone\n")
        await engine.undo("c")
        texts = changes(engine.need(Journal), engine.jail.display_path)

    assert [row for text in texts for row in text.split("\n") if row[:1] in "+-@"] == [
        "--- a/a", "+++ b/a", "@@ -1,2 +1,2 @@", "-two", "+2",
        "", "--- /dev/null", "+++ b/b", "@@ -0,0 +1 @@", "+new", "",
    ]  # fmt: skip


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFO on this system: there is nothing to wait for")
async def test_a_file_that_has_become_a_pipe_keeps_nobody_waiting(tmp_path):
    async with Engine(tmp_path, dialect="amp", ask=Everybody()) as engine:
        await engine.call("create_file", path="a", content="one\n")
        (tmp_path / "a").unlink()
        os.mkfifo(tmp_path / "a")
        (text,) = changes(engine.need(Journal), engine.jail.display_path)

    assert "changed by somebody else" in text


async def test_what_somebody_else_changed_meanwhile_is_not_taken_for_ours(tmp_path):
    (tmp_path / "a").write_text("one\n")
    async with Engine(tmp_path, dialect="amp", ask=Everybody()) as engine:
        await engine.call("edit_file", path="a", old_str="one", new_str="1")
        (tmp_path / "a").write_text("something else\n")
        (text,) = changes(engine.need(Journal), engine.jail.display_path)

    assert "changed by somebody else" in text


def test_talking_loads_nothing_of_the_screen_before_it_is_needed():
    code = (
        "import sys, ferrule.cli.talk.command;"
        " print([name for name in ('rich', 'prompt_toolkit') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ}, check=True)

    assert done.stdout.strip() == "[]"
