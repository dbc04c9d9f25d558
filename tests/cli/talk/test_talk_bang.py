"""`!command` and `@file`: what the user runs and puts in, what the model hears of it, and what may not."""

import asyncio
import re

import pytest
from tests.cli.talk.typing_front import talk

from ferrule.cli.talk import own_commands
from ferrule.core.call import Call
from ferrule.engine import Engine
from ferrule.models.cues import said
from ferrule.models.recorder import Scripted
from ferrule.permissions import Everybody
from ferrule.system.tasks import Tasks


def heard(scripted):
    """The last prompt as the model was asked it."""
    return "\n".join(part.text for part in scripted.asked[-1].turns[-1].parts if hasattr(part, "text"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("!ls -l", ("ls -l", False), id="inside"),
        pytest.param("!!ls", ("ls", True), id="outside"),
        pytest.param("!", ("", False), id="nothing"),
        pytest.param("see !ls", None, id="not-at-the-beginning"),
        pytest.param("!ls\nrm -rf x", None, id="several-lines"),
        pytest.param("notes\n!ls", None, id="a-paste-that-contains-it"),
    ],
)
def test_a_command_is_told_from_words(text, found):
    assert own_commands.split(text) == found


async def test_a_command_runs_unasked_is_shown_and_goes_to_the_model_as_data(tmp_path):
    scripted = Scripted(said("I see."), workspace=str(tmp_path))
    front = await talk(tmp_path, scripted, "!echo one > made; echo said", "look")

    assert "said" in front.after("!echo one > made; echo said")
    assert front.asked == []
    assert (tmp_path / "made").read_text() == "one\n"
    assert "The user ran this command themselves" in heard(scripted)
    assert "$ echo one > made; echo said\n" in heard(scripted)


async def test_what_it_changed_can_be_undone(tmp_path):
    (tmp_path / "a").write_text("before")
    scripted = Scripted(said("Yes."), workspace=str(tmp_path))
    await talk(tmp_path, scripted, "hello", "!printf after > a", "/undo")

    assert (tmp_path / "a").read_text() == "before"


async def test_words_that_are_not_typed_run_nothing(tmp_path):
    scripted = Scripted(said("No."), workspace=str(tmp_path))
    await talk(tmp_path, scripted, "/plan !touch made")

    assert not (tmp_path / "made").exists()
    assert "!touch made" in str(scripted.asked[-1].turns)


async def test_a_terminal_that_cannot_tell_a_paste_runs_nothing(tmp_path):
    scripted = Scripted(said("No."), workspace=str(tmp_path))
    await talk(tmp_path, scripted, "!touch made", composes=False)

    assert not (tmp_path / "made").exists()
    assert heard(scripted).startswith("!touch made")


async def test_files_folders_and_lines_are_put_in_and_secrets_are_not(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.py").write_text("first\nsecond\nthird\n")
    (tmp_path / ".env").write_text("KEY=hidden\n")
    scripted = Scripted(*[said("Seen.")] * 4, workspace=str(tmp_path))
    front = await talk(tmp_path, scripted, "whole @sub/a.py.", "part @sub/a.py:2-3", "folder @sub", "secret @.env")
    prompts = [
        "\n".join(part.text for part in asked.turns[-1].parts if hasattr(part, "text")) for asked in scripted.asked
    ]

    assert "first" in prompts[0]
    assert "third" in prompts[0]
    assert "2\tsecond\n3\tthird" in prompts[1]
    assert "1\tfirst" not in prompts[1]
    assert "a.py" in prompts[2].replace("folder @sub", "")
    assert "hidden" not in prompts[3]
    assert "@.env is only named to the model" in front.after("secret @.env")
    assert "Read sub/a.py  3 lines" in front.after("whole @sub/a.py.")


@pytest.mark.parametrize("dialect", ["claude", "codex", "amp", "gemini"])
async def test_of_a_command_in_the_background_the_user_reads_what_they_can_type(tmp_path, dialect):
    async with Engine(tmp_path, dialect=dialect, ask=Everybody()) as engine:
        face = engine.registry.face_of("shell")
        assert face is not None
        call = Call(face.name, {face.shown_param("command"): "sleep 60"}, "one")
        running = asyncio.ensure_future(engine.run([call], approved=["one"]))
        while not engine.background():
            assert not running.done(), running.result()
            await asyncio.sleep(0.01)
        rows = own_commands.render_reply((await running)[0])

    (row,) = ["".join(text for _, text in row).strip() for row in rows]
    assert re.fullmatch(r"In the background, as (?:(\w+): /tasks \1|session ID 1: /tasks) shows what it prints\.", row)


@pytest.mark.parametrize("dialect", ["claude", "codex", "amp", "gemini"])
async def test_a_command_that_runs_goes_to_the_background_and_is_answered_at_once(tmp_path, dialect):
    async with Engine(tmp_path, dialect=dialect, ask=Everybody()) as engine:
        face = engine.registry.face_of("shell")
        assert face is not None
        call = Call(face.name, {face.shown_param("command"): "sleep 60"}, "one")
        running = asyncio.ensure_future(engine.run([call], approved=["one"]))
        while not engine.background():
            assert not running.done(), running.result()
            await asyncio.sleep(0.01)
        (reply,) = await running

        (task,) = engine.need(Tasks).list()
        assert reply.ok
        assert task.id in reply.text or f"session ID {task.number}" in reply.text  # as codex counts them
        assert engine.background() == 0
