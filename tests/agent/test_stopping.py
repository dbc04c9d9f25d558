"""Interrupted or cancelled at any moment: the conversation stays valid, goes on, and nothing is left behind."""

import asyncio
import os
import threading
from itertools import pairwise
from typing import Any, cast

import pytest

from ferrule.agent import Compacted, Ended, Limits, Warned
from ferrule.core.content import Text
from ferrule.core.errors import ConfigError
from ferrule.hooks import Hook
from ferrule.models import RetryNotice
from ferrule.models.cues import Header, calls, hangs, said
from ferrule.models.recorder import Scripted
from ferrule.permissions import Answer
from ferrule.settings import Loop, Settings
from ferrule.wire import ModelRequest, Turn, Use, load_wire
from tests.descriptors import open_now

from .stage import Stage, check_valid, results, words
from .test_children import task

READ = ("Read", {"file_path": "${workspace}/a.py"})
WRITE = ("Write", {"file_path": "${workspace}/w.txt", "content": "whole\n"})
ASK = {
    "question": "Which?",
    "header": "h",
    "multiSelect": False,
    "options": [{"label": "a", "description": "x"}, {"label": "b", "description": "y"}],
}
LONG = [("Read", {"file_path": f"${{workspace}}/f{at}.txt"}) for at in range(8)]


class Steps(asyncio.SelectorEventLoop):
    """Counts its steps from a moment on, and does something at one of them."""

    count, at, act = -1, 0, staticmethod(lambda: None)

    # Any arguments, as the wider type has it, would be said with a type variable that tests have no use for.
    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> Any:  # type: ignore[override]
        handle = super().call_soon(callback, *args, context=context)
        if self.count >= 0:
            self.count += 1
            if self.count == self.at:
                super().call_soon(self.act)
        return handle


class Hesitant(Scripted):
    """Is asked twice for each answer, with a wait in between, and speaks haltingly."""

    async def ask(self, asked):
        yield RetryNotice("busy", 0.001, 1)
        await asyncio.sleep(0.001)
        async for delta in super().ask(asked):
            yield delta
            await asyncio.sleep(0)


def parallel(folder):
    cues = (
        calls(READ, ("Bash", {"command": "echo hi; sleep 0.01"}), ("Grep", {"pattern": "x"}), WRITE, text="Look."),
        calls(("Bash", {"command": "sleep 60", "run_in_background": True})),
        said("done"),
    )
    return Scripted(*cues, workspace=str(folder)), {}


def subagents(folder):
    cues = (
        calls(task("one"), task("two", run_in_background=True)),
        calls(task("three"), prompt="one"),
        calls(READ, ("Bash", {"command": "true"}), prompt="three"),
        said("d", prompt="three"),
        said("d", prompt="one"),
        calls(("Bash", {"command": "sleep 60"}), prompt="two"),
        said("done"),
    )
    return Scripted(*cues, workspace=str(folder)), {"settings": Settings(loop=Loop(depth=2))}


def question(folder):
    cues = (calls(("AskUserQuestion", {"questions": [ASK]}), READ), said("done", thinking="Hm."))
    return Hesitant(*cues, workspace=str(folder)), {}


def compaction(folder):
    for at in range(8):
        (folder / f"f{at}.txt").write_text("some words of it\n" * 900)
    cues = (*map(calls, LONG[:5]), said("SUMMARY"), *map(calls, LONG[5:]), said("done"))
    return Scripted(*cues, header=Header(window=52_000, most_output=2_000), workspace=str(folder)), {}


def hooks(folder):
    names = ("UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop")
    told = [Hook(name, function=lambda _: {}) for name in names]
    return Scripted(calls(READ, WRITE), said("done"), workspace=str(folder)), {"hooks": told}


def command(folder):
    return Scripted(calls(("Bash", {"command": "true"})), said("done"), workspace=str(folder)), {}


SCENES = [parallel, subagents, question, compaction, hooks]


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
@pytest.mark.parametrize("way", ["interrupt", "cancel"])
def test_a_run_that_is_stopped_at_any_step_leaves_a_valid_conversation_and_nothing_else(tmp_path, scene, way):
    (tmp_path / "a.py").write_text("x = 1\n")
    played(tmp_path, command, way, 1 << 30)  # the spawner of commands stays
    steps = played(tmp_path, scene, way, 1 << 30)
    assert steps > 30
    for at in range(1 + len(way), steps, 11):
        before = open_now()
        played(tmp_path, scene, way, at)
        check_nothing_is_left(tmp_path, before)


def played(folder, scene, way, at):
    """Stop a run at its so-manieth step, and go on with it in another session; how many steps there were."""
    problems = []
    with asyncio.Runner(loop_factory=Steps) as runner:
        loop = cast("Steps", runner.get_loop())
        loop.set_exception_handler(lambda _, about: problems.append(about))
        loop.at = at
        steps = runner.run(asyncio.wait_for(stopped(loop, folder, scene, way), 60))
        rest = asyncio.all_tasks(loop)
    assert (problems, rest) == ([], set())
    return steps


async def stopped(loop, folder, scene, way):
    model, more = scene(folder)
    async with Stage(folder, model=model, **more) as stage:
        running = asyncio.create_task(stage.run())
        loop.act = stage.agent.interrupt if way == "interrupt" else running.cancel
        loop.count = 0
        await asyncio.wait([running])
        steps, loop.count = loop.count, -1
        kept, thread = list(stage.agent.turns), stage.agent.thread
        assert not stage.agent.is_running
        assert len([event for event in stage.of(Ended) if event.thread == thread]) == 1
        check_for_every_wire(kept)
    if kept:
        async with Stage(folder, said("Again."), resume=thread) as stage:
            assert list(stage.agent.turns) == kept
            assert (await stage.run("go on")).text == "Again."
            check_for_every_wire(stage.agent.turns)
    return steps


def check_for_every_wire(turns):
    check_valid(turns)
    for turn, after in pairwise((*turns, Turn("user", ()))):
        assert turn.parts
        assert all(part.text.strip() for part in turn.parts if isinstance(part, Text))
        uses = [part.id for part in turn.parts if isinstance(part, Use)]
        assert uses == [result.id for result in results(after)] or not uses
    asked = ModelRequest(model="m", turns=tuple(turns), max_tokens=100)
    for wire in ("anthropic", "openai-chat", "openai-responses", "gemini"):
        assert load_wire(wire).asked_out(asked)


def check_nothing_is_left(folder, before):
    assert "ferrule-keeping" not in {thread.name for thread in threading.enumerate()}
    assert os.listdir(os.path.join(os.environ["FERRULE_STATE"], "threads", "open")) == []
    assert not open_now() - before
    if (folder / "w.txt").exists():
        assert (folder / "w.txt").read_text() == "whole\n"
        (folder / "w.txt").unlink()


SLOW = "touch began; sleep 60"


def at_the_hook(folder, act):
    """Do something once a hook is at work."""

    def look():
        if (folder / "began").exists():
            act()
        else:
            asyncio.get_running_loop().call_later(0.005, look)

    asyncio.get_running_loop().call_later(0.005, look)


@pytest.mark.parametrize("event", ["UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"])
async def test_a_hook_at_work_is_interrupted_too(tmp_path, event):
    (tmp_path / "a.py").write_text("x\n")
    async with Stage(tmp_path, calls(READ), said("Never."), hooks=[Hook(event, command=SLOW)]) as stage:
        at_the_hook(tmp_path, stage.agent.interrupt)
        async with asyncio.timeout(30):
            ended = await stage.run()

        assert ended.reason == "interrupted"
        check_for_every_wire(stage.agent.turns)


async def test_a_hook_before_a_summary_is_interrupted_too(tmp_path):
    async with Stage(tmp_path, said("One."), said("Two."), hooks=[Hook("PreCompact", command=SLOW)]) as stage:
        await stage.run("first")
        before = list(stage.agent.turns)
        at_the_hook(tmp_path, stage.agent.interrupt)
        async with asyncio.timeout(30):
            done = await stage.agent.compact()

        assert (done.summary, stage.of(Compacted), list(stage.agent.turns)) == ("", [], before)
        assert (await stage.run("second")).text == "Two."


async def test_nothing_else_is_done_while_a_conversation_is_summed_up(tmp_path):
    async with Stage(tmp_path, said("One."), hangs(), said("Two.")) as stage:
        await stage.run("first")
        summing = asyncio.create_task(stage.agent.compact())
        async with asyncio.timeout(20):
            while len(stage.model.asked) < 2:
                await asyncio.sleep(0)
        for work in (stage.agent.run("second"), stage.agent.compact()):
            with pytest.raises(ConfigError):
                await work
        stage.agent.interrupt()

        assert (await summing).summary == ""
        assert (await stage.run("second")).text == "Two."
        check_for_every_wire(stage.agent.turns)


@pytest.mark.parametrize("event", ["UserPromptSubmit", "Stop"])
async def test_a_hook_takes_no_more_time_than_there_is(tmp_path, event):
    limits = Limits(seconds=0.5)
    async with Stage(tmp_path, said("One."), limits=limits, hooks=[Hook(event, command=SLOW)]) as stage:
        async with asyncio.timeout(30):
            ended = await stage.run("prompt")

        assert ended.reason == "time"
        # What a hook has not let in is not in the conversation.
        assert bool(stage.agent.turns) == (event == "Stop")


async def test_what_is_said_while_a_hook_looks_at_the_end_is_heard(tmp_path):
    said_once = iter(["And this?"])

    def steer(_):
        stage.agent.steer(next(said_once, ""))
        return {}

    async with Stage(tmp_path, said("Done."), said("That too."), hooks=[Hook("Stop", function=steer)]) as stage:
        ended = await stage.run()

        assert ended.text == "That too."
        assert [words(turn) for turn in stage.agent.turns] == ["Do it.", "Done.", "And this?", "That too."]


HALT = """[[hooks.{event}]]
command = '''echo '{{"continue": false, "stopReason": "Enough."}}' '''
"""


@pytest.mark.parametrize(
    ("event", "asked", "reason"),
    [
        ("PreToolUse", 1, "stopped"),
        ("PostToolUse", 1, "stopped"),
        ("UserPromptSubmit", 0, "stopped"),
        ("Stop", 2, "end"),
    ],
)
async def test_a_hook_of_the_settings_ends_the_loop(tmp_path, event, asked, reason):
    with open(os.environ["FERRULE_SETTINGS"], "w", encoding="utf-8") as file:
        file.write(HALT.format(event=event))
    (tmp_path / "a.txt").write_text("x")
    async with Stage(tmp_path, calls(("Read", {"file_path": "a.txt"})), said("Done.")) as stage:
        ended = await stage.run()

    assert (ended.reason, ended.error, len(stage.model.asked)) == (reason, "Enough.", asked)
    assert [event.sentence for event in stage.of(Warned)] == ["A hook has ended the work: Enough."]


async def test_a_no_may_end_the_work_with_one_result_for_each_call(tmp_path):
    asked = []

    def refuse(question):
        asked.append(question)
        return Answer(allow=False, message="Not today.", stop=True)

    writes = [("Write", {"file_path": f"{name}.txt", "content": "x"}) for name in "ab"]
    async with Stage(tmp_path, calls(*writes), said("Again."), ask=refuse) as stage:
        ended = await stage.run()
        again = await stage.run("Go on.")
        told = [words(result) for turn in stage.agent.turns for result in results(turn)]

    assert (ended.reason, again.text) == ("interrupted", "Again.")
    assert (len(told), told[0], list(tmp_path.glob("*.txt"))) == (2, "Not today.", [])
    assert [reply.status for reply in stage.replies] == ["rejected-by-user", "cancelled"]
    check_valid(stage.agent.turns)
