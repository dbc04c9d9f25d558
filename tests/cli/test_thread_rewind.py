"""`ferrule threads rewind`: prompts are listed, what would change is shown, and files and conversation go back."""

import asyncio
import re

import pytest
from tests.agent.stage import Stage, words
from tests.cli.talk.terminals import Pty

from ferrule.agent.session import Claim
from ferrule.cli.main import run
from ferrule.models.cues import calls, said
from ferrule.settings import state_folder


def write(name, content):
    return calls(("Write", {"file_path": f"${{workspace}}/{name}", "content": content}))


def edit(name, old, new):
    return calls(("Edit", {"file_path": f"${{workspace}}/{name}", "old_string": old, "new_string": new}))


@pytest.fixture
async def thread(tmp_path, monkeypatch):
    """A conversation of three prompts: `a` is written, then edited, and `b` is written."""
    monkeypatch.chdir(tmp_path)
    cues = [write("a", "one\n"), said("A."), edit("a", "one", "two"), said("Two."), write("b", "b\n"), said("B.")]
    async with Stage(tmp_path, *cues) as stage:
        for prompt in ("write a", "edit a\nplease", "write b"):
            await stage.run(prompt)
        return stage.agent.thread


async def rewind(*arguments):
    return await asyncio.to_thread(run, ["threads", "rewind", *arguments])


async def spoken(tmp_path, thread):
    async with Stage(tmp_path, resume=thread) as stage:
        return [words(turn) for turn in stage.agent.turns if words(turn)]


ALL = ["write a", "A.", "edit a\nplease", "Two.", "write b", "B."]


async def test_without_a_number_the_prompts_are_listed(thread, capsys):
    code = await rewind(thread)

    shown = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "NOW", capsys.readouterr().out)
    assert (code, shown.splitlines()) == (
        0,
        [
            "1  NOW  write a  (2 files changed since)",
            "2  NOW  edit a  (2 files changed since)",
            "3  NOW  write b  (1 file changed since)",
        ],
    )


async def test_nothing_is_done_where_nobody_can_be_asked(tmp_path, thread, capsys):
    code = await rewind(thread, "2")

    told = capsys.readouterr()
    assert (code, told.out.splitlines()) == (
        1,
        ["Files: 1 restored, 1 removed.", "  restored    a", "  removed     b"],
    )
    assert "--yes" in told.err
    assert ((tmp_path / "a").read_text(), await spoken(tmp_path, thread)) == ("two\n", ALL)


async def test_files_and_conversation_go_back_and_forward_again(tmp_path, thread, capsys):
    assert await rewind(thread, "2", "--yes") == 0
    assert "edit a\nplease" in capsys.readouterr().out
    assert ((tmp_path / "a").read_text(), (tmp_path / "b").exists()) == ("one\n", False)
    assert await spoken(tmp_path, thread) == ALL[:2]

    assert await asyncio.to_thread(run, ["undo"]) == 0
    assert ((tmp_path / "a").read_text(), (tmp_path / "b").read_text()) == ("two\n", "b\n")
    assert await rewind(thread, "--back") == 0
    assert await spoken(tmp_path, thread) == ALL
    assert await rewind(thread, "--back") == 1


@pytest.mark.parametrize(
    ("option", "files", "talk"),
    [pytest.param("--files", "one\n", ALL, id="files"), pytest.param("--conversation", "two\n", ALL[:2], id="talk")],
)
async def test_only_one_of_them_goes_back_where_that_is_wanted(tmp_path, thread, option, files, talk):
    assert await rewind(thread, "2", option, "--yes") == 0

    assert ((tmp_path / "a").read_text(), await spoken(tmp_path, thread)) == (files, talk)


async def test_what_was_changed_by_hand_is_left_alone_unless_that_is_wanted_too(tmp_path, thread, capsys):
    (tmp_path / "b").write_text("by hand\n")
    assert await rewind(thread, "2", "--files", "--yes") == 0
    assert "  by hand     b" in capsys.readouterr().out
    assert ((tmp_path / "a").read_text(), (tmp_path / "b").read_text()) == ("one\n", "by hand\n")
    assert await rewind(thread, "2", "--files", "--yes", "--over") == 0

    assert not (tmp_path / "b").exists()


async def test_a_conversation_that_is_open_elsewhere_is_not_rewound(thread, capsys):
    claim = Claim(f"{state_folder()}/threads/open", thread)
    code = await rewind(thread, "2", "--yes")
    claim.close()

    assert code == 2
    assert "open in another session" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        pytest.param(["9", "--yes"], "There is no prompt 9", id="no such prompt"),
        pytest.param(["0"], "0 is not in the range", id="not counted"),
        pytest.param(["2", "--back"], "give it alone", id="both ways"),
    ],
)
async def test_what_cannot_be_meant_is_said(thread, capsys, arguments, told):
    code = await rewind(thread, *arguments)

    assert code == 2
    assert told in capsys.readouterr().err


async def test_a_prompt_that_was_summed_up_gives_its_files_back(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with Stage(tmp_path, write("a", "one\n"), said("A."), said("Sum.")) as stage:
        await stage.run("write a")
        await stage.agent.compact()
        thread = stage.agent.thread
    assert await rewind(thread, "1", "--conversation", "--yes") == 2
    assert "was summed up" in capsys.readouterr().err
    assert await rewind(thread, "1", "--yes") == 0

    assert not (tmp_path / "a").exists()


async def test_a_conversation_whose_folder_is_gone_goes_back_alone(tmp_path, capsys):
    folder = tmp_path / "gone"
    folder.mkdir()
    async with Stage(folder, said("One.")) as stage:
        await stage.run("one")
        thread = stage.agent.thread
    folder.rmdir()
    code = await rewind(thread, "1", "--yes")

    assert code == 0
    assert "only the conversation" in capsys.readouterr().err


async def test_at_a_terminal_it_is_asked(tmp_path, thread):
    (tmp_path / "b").write_text("by hand\n")
    terminal = Pty(100, 30)
    try:
        await asyncio.to_thread(_answer, terminal, tmp_path, thread)
    finally:
        terminal.close()

    assert ((tmp_path / "a").read_text(), (tmp_path / "b").read_text()) == ("one\n", "by hand\n")
    assert await spoken(tmp_path, thread) == ALL[:2]


def _answer(terminal, tmp_path, thread):
    terminal.start(["threads", "rewind", thread, "2"], tmp_path)
    terminal.wait(r"\[b\]oth, \[f\]iles, \[c\]onversation, \[n\]othing")
    terminal.type("b\n")
    terminal.wait("Over what you changed by hand")
    terminal.type("n\n")
    assert terminal.ended() == 0
