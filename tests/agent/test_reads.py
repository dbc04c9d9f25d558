"""What was read belongs to the conversation: it is known after another start, and goes with what is out of sight."""

import asyncio
import os
import signal
import sys

import pytest

from ferrule.agent import Compacted
from ferrule.models.cues import calls, said

from .stage import Stage
from .test_compacting import files, look, small_window

READ = ("Read", {"file_path": "${workspace}/a.txt"})


def edit(old, new):
    return ("Edit", {"file_path": "${workspace}/a.txt", "old_string": old, "new_string": new})


async def read_before(tmp_path, *, dialect="claude"):
    """The id of a conversation in which a file was read."""
    (tmp_path / "a.txt").write_text("one\n")
    async with Stage(tmp_path, calls(READ), said("Read."), dialect=dialect) as stage:
        await stage.run("read")
        return stage.agent.thread


@pytest.mark.parametrize("dialect", ["claude", "wayland"])
async def test_a_file_that_was_read_can_be_edited_after_another_start(tmp_path, dialect):
    thread = await read_before(tmp_path)
    async with Stage(tmp_path, calls(edit("one", "two")), said("Done."), resume=thread, dialect=dialect) as stage:
        await stage.run("edit")

    assert (tmp_path / "a.txt").read_text() == "two\n"


async def test_a_file_that_was_changed_between_two_sessions_has_to_be_read_again(tmp_path):
    thread = await read_before(tmp_path)
    (tmp_path / "a.txt").write_text("one and more\n")
    async with Stage(tmp_path, calls(edit("one", "two")), said("Done."), resume=thread) as stage:
        await stage.run("edit")
        (reply,) = stage.replies

    assert (reply.status, (tmp_path / "a.txt").read_text()) == ("error", "one and more\n")
    assert "modified since" in reply.text


async def test_what_was_undone_behind_the_last_turn_is_known_after_another_start(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    async with Stage(tmp_path, calls(READ), calls(edit("one", "two")), said("Done.")) as stage:
        await stage.run("edit")
        await stage.session.engine.undo()
        thread = stage.agent.thread
    async with Stage(tmp_path, calls(edit("one", "three")), said("Done."), resume=thread) as stage:
        await stage.run("edit again")

    assert (tmp_path / "a.txt").read_text() == "three\n"


async def test_an_unchanged_file_is_not_shown_twice_also_after_another_start(tmp_path):
    thread = await read_before(tmp_path, dialect="wayland")
    async with Stage(tmp_path, calls(READ), said("Read."), resume=thread, dialect="wayland") as stage:
        await stage.run("read again")
        (reply,) = stage.replies

    assert reply.text.startswith("File unchanged since last read")


KILLED = """
import asyncio, os, signal, sys
from ferrule.agent import Ended, TurnBegan
from ferrule.agent.session import Session
from ferrule.models.cues import calls, said
from ferrule.models.recorder import Scripted
from ferrule.permissions import Everybody

turns = 0

def hear(event):
    global turns
    turns += isinstance(event, TurnBegan)
    if turns == 2:
        asyncio.get_running_loop().create_task(die())

async def die():
    await session.agent.talk.flush()
    os.kill(os.getpid(), signal.SIGKILL)

async def main():
    global session
    read = calls(("Read", {"file_path": sys.argv[1] + "/a.txt"}))
    session = Session(sys.argv[1], model=Scripted(read, read), dialect="claude", ask=Everybody(), on_event=hear)
    async with session:
        await session.agent.run("read")

asyncio.run(main())
"""


async def test_what_was_read_before_kill_9_is_known(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED, str(tmp_path), env=dict(os.environ))
    assert await asyncio.wait_for(process.wait(), 60) == -signal.SIGKILL
    async with Stage(tmp_path, calls(edit("one", "two")), said("Done."), resume="last") as stage:
        await stage.run("edit")

    assert (tmp_path / "a.txt").read_text() == "two\n"


@pytest.mark.parametrize("again", [False, True], ids=["at once", "after another start"])
async def test_what_was_summed_up_counts_as_never_read(tmp_path, again):
    (tmp_path / "a.txt").write_text("one\n")
    cues = [calls(READ), said("Read."), said("Sum."), calls(edit("one", "two")), calls(READ), said("Done.")]
    async with Stage(tmp_path, *(cues[:3] if again else cues), dialect="wayland") as stage:
        await stage.run("read")
        await stage.agent.compact()
        thread = stage.agent.thread
        if not again:
            await stage.run("edit")
    if again:
        async with Stage(tmp_path, *cues[3:], dialect="wayland", resume=thread) as stage:
            await stage.run("edit")
    editing, reading = stage.replies[-2:]

    assert (editing.status, (tmp_path / "a.txt").read_text()) == ("error", "one\n")
    assert "You must Read" in editing.text
    assert "one" in reading.text


async def test_an_output_that_was_left_out_is_shown_again(tmp_path):
    files(tmp_path)
    cues = [*(calls(look(at)) for at in range(9)), calls(look(0), look(8)), said("done")]
    model = small_window(*cues, workspace=tmp_path, window=58_000)
    async with Stage(tmp_path, model=model, dialect="wayland") as stage:
        await stage.run()
        assert [event.kind for event in stage.of(Compacted)][:1] == ["outputs"]
        first, last = sorted(stage.replies[-2:], key=lambda reply: reply.id)

    assert "file 0 begins" in first.text
    assert last.text.startswith("File unchanged since last read")


async def test_what_was_written_since_stays_known_where_reading_it_is_out_of_sight(tmp_path):
    files(tmp_path)
    change = {"file_path": "${workspace}/f0.txt", "old_string": "file 0 begins", "new_string": "file 0 goes on"}
    again = {**change, "old_string": "file 0 goes on", "new_string": "file 0 ends"}
    cues = [calls(look(0)), calls(("Edit", change)), *(calls(look(at)) for at in range(1, 9))]
    model = small_window(*cues, calls(("Edit", again)), said("done"), workspace=tmp_path, window=58_000)
    async with Stage(tmp_path, model=model) as stage:
        await stage.run()
        assert [event.kind for event in stage.of(Compacted)][:1] == ["outputs"]

    assert (tmp_path / "f0.txt").read_text().startswith("file 0 ends")


@pytest.mark.parametrize("again", [False, True], ids=["at once", "after another start"])
async def test_a_rewind_knows_what_was_known_then(tmp_path, again):
    (tmp_path / "a.txt").write_text("one\n")
    (tmp_path / "b.txt").write_text("one\n")
    other = {"file_path": "${workspace}/b.txt", "old_string": "one", "new_string": "two"}
    reading = [calls(READ), said("Read."), calls(("Read", {"file_path": "${workspace}/b.txt"})), said("Read.")]
    editing = [calls(edit("one", "two"), ("Edit", other)), said("Done."), calls(("Edit", other)), said("Done.")]
    async with Stage(tmp_path, *reading, *([] if again else editing)) as stage:
        await stage.run("read a")
        await stage.run("read b")
        stage.agent.rewind(2)
        thread = stage.agent.thread
        if not again:
            await _edits(stage, tmp_path)
    if again:
        async with Stage(tmp_path, *editing, resume=thread) as stage:
            await _edits(stage, tmp_path)


async def _edits(stage, tmp_path):
    await stage.run("edit both")
    assert sorted(reply.status for reply in stage.replies[-2:]) == ["done", "error"]
    assert ((tmp_path / "a.txt").read_text(), (tmp_path / "b.txt").read_text()) == ("two\n", "one\n")
    stage.agent.unrewind()
    await stage.run("edit b")

    assert (tmp_path / "b.txt").read_text() == "two\n"
