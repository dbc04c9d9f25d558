"""What is printed at the end: which conversation it was, what it cost and changed, and how to go on."""

import os
import re
from types import SimpleNamespace

import pytest
from tests.cli.test_chat_tmux import EDIT, READ, script

from ferrule.cli.talk.chat import Farewell, find_changed_files
from ferrule.cli.talk.text import plain, wrap_lines
from ferrule.engine import Engine
from ferrule.files.journal import Journal
from ferrule.permissions import Everybody


def shown(farewell, width=80):
    return [plain(row) for row in wrap_lines(farewell.lines(width), width)]


def test_it_says_all_of_it():
    farewell = Farewell("T-1", cost=0.0381, used_tokens=29100, files=("a.py", "b.py"), stopped="the command b1 (Serve)")

    assert shown(farewell) == [
        "  thread    T-1",
        "  cost      $0.0381 · 29.1k tokens",
        "  changed   2 files: a.py, b.py",
        "  stopped   the command b1 (Serve)",
        "  go on     ferrule --continue, or ferrule --resume T-1",
    ]


@pytest.mark.parametrize(
    ("width", "row"),
    [
        (80, "changed   4 files: src/one.py, src/two.py, src/three.py, src/four.py"),
        (56, "changed   4 files: src/one.py, src/two.py and 2 more"),
        (30, "changed   4 files"),
    ],
)
def test_names_of_files_are_listed_as_far_as_they_fit(width, row):
    farewell = Farewell("T-1", files=("src/one.py", "src/two.py", "src/three.py", "src/four.py"))

    assert shown(farewell, width)[1].strip() == row


def test_nothing_is_said_where_nothing_was_and_what_is_not_kept_cannot_go_on():
    assert shown(Farewell()) == []
    assert shown(Farewell("T-1", is_kept=False))[-1] == "  go on     not kept (threads.keep)"


async def test_only_files_that_are_left_another_count(tmp_path):
    (tmp_path / "a").write_text("one\n")
    (tmp_path / "b").write_text("one\n")
    async with Engine(tmp_path, dialect="amp", ask=Everybody()) as engine:
        for path, old, new in (("a", "one", "two"), ("b", "one", "two"), ("a", "two", "one")):
            assert (await engine.call("edit_file", path=path, old_str=old, new_str=new)).ok
        await engine.call("create_file", path="c", content="new\n")
        await engine.call("create_file", path="d", content="gone\n")
        await engine.undo("d")
        journal = engine.need(Journal)
        found = find_changed_files(entry for entry in journal.entries() if journal.wrote(entry))

    assert [os.path.basename(path) for path in found] == ["b", "c"]


async def test_a_conversation_in_which_nothing_is_said_any_more_is_still_told(tmp_path):
    async with Engine(tmp_path, dialect="amp", ask=Everybody()) as engine:
        usage = SimpleNamespace(input=1, output=2)
        agent = SimpleNamespace(thread="T-1", spent=SimpleNamespace(cost=None, usage=usage))
        session = SimpleNamespace(agent=agent, engine=engine)
        first = Farewell().after(session, is_said=True)
        other = SimpleNamespace(agent=SimpleNamespace(thread="T-2", spent=agent.spent), engine=engine)

        assert first.after(session, is_said=False) == first == Farewell("T-1", used_tokens=3)
        assert first.after(other, is_said=False) == Farewell()


@pytest.mark.parametrize("way", ["/exit\r", "\x04"], ids=["exit", "ctrl-D"])
def test_whoever_leaves_is_told_how_to_go_on_and_can(tmp_path, terminal, unconfined, way):
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "app.py").write_text("return a - b\n")
    path = script(tmp_path, {"parts": [READ]}, {"parts": [EDIT]}, {"text": "Fixed."})
    one = terminal(["--replay", path, "--yes"], folder)
    one.wait("context 100% left")
    one.type("fix it\r")
    one.wait("Fixed.")
    one.type(way)

    assert one.ended() == 0
    said = one.screen().rpartition("thread")[2]
    assert "1 file: app.py" in said
    found = re.search(r"--resume (T-[\w-]+)", said)
    assert found is not None
    thread = found[1]

    again = terminal(["--replay", path, "--resume", thread], folder)
    again.wait("Fixed.")
    again.type("\x04")
    assert again.ended() == 0
    assert "--continue" not in again.screen()  # nothing was said this time
