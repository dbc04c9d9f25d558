"""Conversations go on: after the end of a session, after a crash, and only in one session at a time."""

import asyncio
import os
import signal
import sys

import msgspec
import pytest

from ferrule.agent import Spoke, Warned
from ferrule.agent.conversation import RESUMED
from ferrule.agent.threads import as_text, resume
from ferrule.core.content import Text
from ferrule.core.errors import ConfigError
from ferrule.hooks import Hook
from ferrule.models.cues import calls, hangs, said
from ferrule.tools.threads import Item
from ferrule.tools.threads.store import ThreadStore
from ferrule.wire import Result, Turn, Usage, Use

from .stage import Stage, check_valid, results, words
from .test_loop import until


def item(turn):
    return Item("turn", turn.role, msgspec.json.encode(turn))


USE = Turn("assistant", (Text("I look."), Use("c1", "Read", {"path": "a"}), Use("c2", "Read", {"path": "b"})))
ANSWER = Turn("user", (Result("c1", (Text("one"),), name="Read"), Result("c2", (Text("two"),), name="Read")))


async def test_a_conversation_goes_on_where_it_ended(tmp_path):
    (tmp_path / "a.py").write_text("x = 1\n")
    read = ("Read", {"file_path": "${workspace}/a.py"})
    async with Stage(tmp_path, calls(read, usage=Usage(10, 5)), said("One.", usage=Usage(20, 5))) as first:
        await first.run("first")
        turns, thread, spent = list(first.agent.turns), first.agent.thread, first.agent.spent
    async with Stage(tmp_path, said("Two."), resume=thread) as second:
        assert list(second.agent.turns) == turns
        assert second.agent.spent.usage == spent.usage
        assert second.agent.thread == thread
        assert second.agent.context_tokens > 1_000
        assert (await second.run("second")).text == "Two."
        assert [words(turn) for turn in second.agent.turns][-2:] == ["second", "Two."]


async def test_last_means_the_last_one_of_this_folder(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    async with Stage(one, said("One.")) as stage:
        await stage.run("in one")
        thread = stage.agent.thread
    async with Stage(other, said("Other.")) as stage:
        await stage.run("in other")
    async with Stage(one, said("More."), resume="last") as stage:
        assert stage.agent.thread == thread


@pytest.mark.parametrize("name", ["last", "T-00000000-0000-0000-0000-000000000000", "nonsense"])
async def test_what_is_not_there_cannot_go_on(tmp_path, name):
    with pytest.raises(ConfigError, match="There is no conversation"):
        async with Stage(tmp_path, resume=name):
            pass


async def test_two_sessions_do_not_go_on_with_one_conversation(tmp_path):
    async with Stage(tmp_path, said("One.")) as first:
        await first.run("first")
        await first.agent.talk.flush()
        with pytest.raises(ConfigError, match="open in another session"):
            async with Stage(tmp_path, resume=first.agent.thread):
                pass


@pytest.mark.parametrize(
    ("turns", "mended"),
    [
        pytest.param([USE], 1, id="killed while the calls ran"),
        pytest.param([Turn("user", (Text("hi"),)), USE, ANSWER], 0, id="killed before the next answer"),
        pytest.param([USE, Turn("user", (ANSWER.parts[0],))], 1, id="one result is missing"),
        pytest.param([USE, Turn("user", (Text("hm"),)), USE], 2, id="in the middle and at the end"),
        pytest.param([ANSWER, USE, ANSWER], 0, id="results without their calls"),
        pytest.param([], 0, id="nothing at all"),
    ],
)
def test_dangling_calls_are_answered_in_the_seeds_words(turns, mended):
    resumed = resume([item(turn) for turn in turns])

    check_valid(resumed.history.turns)
    told = [one for turn in resumed.history.turns for one in results(turn) if words(one) == RESUMED]
    assert (len(told) > 0) == (mended > 0)
    assert all(one.failed for one in told)


def test_items_that_cannot_be_read_are_counted_and_left_out():
    items = [item(USE), Item("turn", "user", b"{broken"), Item("turn", "user", b'{"role": 3}'), item(ANSWER)]
    resumed = resume(items)

    assert resumed.lost == 2
    check_valid(resumed.history.turns)


def test_a_conversation_that_was_made_smaller_is_resumed_small():
    summary = Turn("user", (Text("summary"),))
    items = [item(USE), item(ANSWER), Item("compacted", "", msgspec.json.encode({"turns": [summary]})), item(USE)]
    resumed = resume(items)

    assert resumed.history.turns[0] == summary
    assert len(resumed.history.turns) == 3
    assert "I look." in as_text(items)


REFUSING = Hook(
    "UserPromptSubmit",
    function=lambda given: {"decision": "block", "reason": "No."} if "not" in given["prompt"] else {},
)


async def interrupted(tmp_path, *more, **session):
    """A conversation whose first prompt the user has interrupted; its id."""
    async with Stage(tmp_path, hangs("I will now "), *more, **session) as stage:
        running = asyncio.create_task(stage.run("Begin."))
        await until(stage, Spoke)
        stage.agent.interrupt()
        await running
        if more:
            await stage.agent.compact()
        return stage.agent.thread


@pytest.mark.parametrize(
    "more", [pytest.param((), id="as it was"), pytest.param((said("Sum."),), id="and summed up since")]
)
async def test_a_model_is_told_once_that_it_was_interrupted_in_another_session(tmp_path, more):
    thread = await interrupted(tmp_path, *more)
    for told in (True, False):
        async with Stage(tmp_path, said("Yes?"), resume=thread) as stage:
            await stage.run("Go on.")

            assert ("interrupted" in words(stage.agent.turns[-2])) == told


async def test_a_prompt_that_a_hook_refuses_does_not_take_the_interruption_along(tmp_path):
    thread = await interrupted(tmp_path)
    async with Stage(tmp_path, said("Yes?"), resume=thread, hooks=[REFUSING]) as stage:
        assert (await stage.run("not this")).reason == "hook"
        await stage.run("Go on.")

        assert "interrupted" in words(stage.agent.turns[-2])


KILLED = """
import asyncio, os, signal, sys
from ferrule.agent.session import Session
from ferrule.models.cues import calls
from ferrule.models.recorder import Scripted
from ferrule.permissions import Everybody
from ferrule.agent import Called
from ferrule.core.call import Started

def hear(event):
    if isinstance(event, Called) and isinstance(event.call, Started):
        print(session.agent.thread, flush=True)
        asyncio.get_running_loop().create_task(die())

async def die():
    await session.agent.talk.flush()
    os.kill(os.getpid(), signal.SIGKILL)

async def main():
    global session
    model = Scripted(calls(("Bash", {"command": "sleep 60"}), text="I wait."))
    session = Session(sys.argv[1], model=model, dialect="claude", ask=Everybody(), on_event=hear)
    async with session:
        await session.agent.run("wait")

asyncio.run(main())
"""


async def test_after_kill_9_in_the_middle_of_a_call_the_conversation_goes_on(tmp_path):
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", KILLED, str(tmp_path), stdout=asyncio.subprocess.PIPE, env=dict(os.environ)
    )
    out, _ = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == -signal.SIGKILL
    async with Stage(tmp_path, said("Once more."), resume="last") as stage:
        assert stage.agent.thread == out.decode().split()[0]
        assert words(stage.agent.turns[1]) == "I wait."
        assert words(results(stage.agent.turns[2])[0]) == RESUMED
        check_valid(stage.agent.turns)
        assert (await stage.run("And?")).text == "Once more."


async def test_a_store_that_cannot_be_used_does_not_stop_the_loop(tmp_path):
    threads = os.path.join(os.environ["FERRULE_STATE"], "threads")
    os.makedirs(threads)
    os.mkdir(os.path.join(threads, "threads.db"))
    os.symlink("/dev/null", os.path.join(threads, "store.id"))
    async with Stage(tmp_path, said("One."), said("Two.")) as stage:
        assert (await stage.run("first")).text == "One."
        await stage.agent.talk.flush()
        assert (await stage.run("second")).text == "Two."
        assert [event for event in stage.events if "not kept" in getattr(event, "sentence", "")]


async def test_two_sessions_of_one_workspace_keep_their_own_conversations(tmp_path):
    cues = {letter: [said(f"{letter}{at}") for at in range(5)] for letter in "ab"}
    async with Stage(tmp_path, *cues["a"]) as one, Stage(tmp_path, *cues["b"]) as other:
        for at in range(5):
            await asyncio.gather(one.run(f"to a {at}"), other.run(f"to b {at}"))
    store = ThreadStore(os.path.join(os.environ["FERRULE_STATE"], "threads"))
    for stage, letter in ((one, "a"), (other, "b")):
        thread = store.load(stage.agent.thread)
        assert thread is not None
        said_ = [words(turn) for turn in resume(thread.items).history.turns]
        assert said_ == [text for at in range(5) for text in (f"to {letter} {at}", f"{letter}{at}")]
    store.close()


async def test_a_conversation_that_goes_on_in_another_folder_says_so(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    async with Stage(one, said("One.")) as stage:
        await stage.run("in one")
        thread = stage.agent.thread
    async with Stage(other, said("More."), resume=thread) as stage:
        told = [event.sentence for event in stage.of(Warned)]
    async with Stage(one, said("More."), resume=thread) as stage:
        assert stage.of(Warned) == []

    assert told == [f"The conversation was had in {one}; it goes on in {other}."]


async def test_a_copy_goes_on_and_the_first_conversation_stays_as_it_is(tmp_path):
    async with Stage(tmp_path, said("One."), thread="11111111-2222-4333-8444-555555555555") as first:
        await first.run("First.")
    async with Stage(tmp_path, said("Two."), resume=first.agent.thread, fork=True) as copy:
        await copy.run("Second.")
    async with Stage(tmp_path, said("Three."), resume=first.agent.thread) as again:
        await again.run("Third.")

    assert first.agent.thread == again.agent.thread == "11111111-2222-4333-8444-555555555555"
    assert copy.agent.thread != first.agent.thread
    assert [words(turn) for turn in copy.agent.turns] == ["First.", "One.", "Second.", "Two."]
    assert [words(turn) for turn in again.agent.turns] == ["First.", "One.", "Third.", "Three."]


async def test_an_id_that_is_taken_is_refused(tmp_path):
    async with Stage(tmp_path, said("One."), thread="11111111-2222-4333-8444-555555555555") as first:
        await first.run("First.")

    with pytest.raises(ConfigError, match="--resume 11111111-2222-4333-8444-555555555555 goes on with it"):
        async with Stage(tmp_path, thread=first.agent.thread):
            pass
