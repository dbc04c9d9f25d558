"""Every setting of the loop, of its models and of its threads does what it says."""

import os
import time

import msgspec
import pytest

from ferrule.agent import Began, ChildBegan, ChildEnded, Compacted
from ferrule.models import Prices
from ferrule.models.cues import Header, calls, said
from ferrule.models.recorder import Scripted
from ferrule.settings import Conversations, Loop, Models, PlanMode, Settings
from ferrule.tools.threads import Item
from ferrule.tools.threads.store import ThreadStore
from ferrule.wire import Result, Turn, Usage
from tests.cli.recordings import recording

from .stage import Stage, results, words
from .test_children import read, task


def look(at):
    return calls(("Glob", {"pattern": f"*{at}"}), usage=Usage(100, 20))


@pytest.mark.parametrize(
    ("loop", "reason", "turns"),
    [
        pytest.param(Loop(turns=2), "turns", 2, id="turns"),
        pytest.param(Loop(tokens=200), "tokens", 2, id="tokens"),
        pytest.param(Loop(cost=0.001), "cost", 2, id="cost"),
        pytest.param(Loop(seconds=1e-6), "time", 0, id="seconds"),
    ],
)
async def test_a_prompt_takes_no_more_than_the_settings_give(tmp_path, loop, reason, turns):
    header = Header(prices=Prices(3.0, 15.0, 0.0, 0.0))
    model = Scripted(*map(look, range(5)), said("done"), header=header, workspace=str(tmp_path))
    async with Stage(tmp_path, model=model, settings=Settings(loop=loop)) as stage:
        ended = await stage.run()

    assert (ended.reason, ended.spent.turns) == (reason, turns)


async def test_so_many_repeats_are_a_loop(tmp_path):
    async with Stage(tmp_path, *[look(1)] * 9, settings=Settings(loop=Loop(repeats=3))) as stage:
        ended = await stage.run()

    assert (ended.reason, ended.spent.turns) == ("loop", 3)


@pytest.mark.parametrize(
    ("part", "is_met"), [pytest.param(0.8, False, id="much"), pytest.param(0.2, True, id="little")]
)
async def test_the_part_of_the_window_that_may_be_filled(tmp_path, part, is_met):
    async with _long_outputs(tmp_path, Loop(compact_at=part, keep_turns=1)) as stage:
        await stage.run()

    assert bool(stage.of(Compacted)) == is_met


@pytest.mark.parametrize("kept", [1, 3])
async def test_the_last_turns_keep_their_outputs(tmp_path, kept):
    whole: list[Result] = []

    def count(event):
        if isinstance(event, Compacted) and not whole:
            whole.extend(one for turn in stage.agent.turns for one in results(turn) if "left out" not in words(one))

    async with _long_outputs(tmp_path, Loop(compact_at=0.24, keep_turns=kept)) as stage:
        stage.on = count
        await stage.run()

    assert len(whole) == kept


def _long_outputs(tmp_path, loop):
    """Five calls with 1,000 lines each."""
    (tmp_path / "a.py").write_text("some words of it\n" * 1_000)
    limits = [{"offset": at + 1} for at in range(5)]
    cues = [calls(("Read", {"file_path": "${workspace}/a.py", **limit})) for limit in limits]
    header = Header(window=120_000, most_output=2_000)
    model = Scripted(*cues, said("done"), header=header, workspace=str(tmp_path))
    return Stage(tmp_path, model=model, settings=Settings(loop=loop))


@pytest.mark.parametrize(("depth", "has"), [(0, [False]), (1, [True, False])])
async def test_subagents_have_subagents_as_deep_as_is_set(tmp_path, depth, has):
    cues = (calls(task()), said("done", prompt="child"), said("ok")) if depth else (said("ok"),)
    async with Stage(tmp_path, *cues, settings=Settings(loop=Loop(depth=depth))) as stage:
        await stage.run()

    assert ["Task" in event.tools for event in stage.of(Began)] == has


async def test_no_more_subagents_run_at_once_than_are_set(tmp_path):
    (tmp_path / "a.py").write_text("x\n")
    names = [f"child {at}" for at in range(5)]
    cues = [cue for name in names for cue in (calls(read(), prompt=name), said("done", prompt=name))]
    async with Stage(
        tmp_path, calls(*map(task, names)), *cues, said("ok"), settings=Settings(loop=Loop(children=2))
    ) as stage:
        await stage.run()

    steps = [{ChildBegan: 1, ChildEnded: -1}.get(type(event), 0) for event in stage.events]
    assert max(sum(steps[:at]) for at in range(len(steps) + 1)) == 2
    assert steps.count(-1) == 5


async def test_a_subagent_has_the_turns_that_are_set(tmp_path):
    cues = [calls(("Glob", {"pattern": f"*{at}"}), prompt="child") for at in range(5)]
    async with Stage(tmp_path, calls(task()), *cues, said("ok"), settings=Settings(loop=Loop(child_turns=3))) as stage:
        await stage.run()

    assert [(event.reason, event.spent.turns) for event in stage.of(ChildEnded)] == [("turns", 3)]


async def test_the_small_model_sums_up(tmp_path):
    settings = Settings(models=Models(small="scripted:" + recording(tmp_path / "small.jsonl", said("In short."))))
    async with Stage(tmp_path, said("One."), settings=settings) as stage:
        await stage.run("first")
        done = await stage.agent.compact()

    assert done.summary == "In short."
    assert len(stage.model.asked) == 1


async def test_a_kind_of_subagent_has_the_model_of_its_role(tmp_path):
    other = "scripted:" + recording(tmp_path / "other.jsonl", said("from another one"))
    settings = Settings(models=Models(roles={"Explore": other}))
    async with Stage(tmp_path, calls(task(kind="Explore")), said("ok"), settings=settings) as stage:
        await stage.run()

        assert "from another one" in words(results(stage.agent.turns[2])[0])
    assert [event.model for event in stage.of(ChildBegan)] == [other]


async def test_how_long_answers_and_thinking_may_be_is_said_for_subagents_too(tmp_path):
    settings = Settings(models=Models(max_tokens=1_234, thinking_tokens=567))
    async with Stage(tmp_path, calls(task()), said("done", prompt="child"), said("ok"), settings=settings) as stage:
        await stage.run()

    assert [(asked.max_tokens, asked.thinking_tokens) for asked in stage.model.asked] == [(1_234, 567)] * 3


async def test_nothing_is_kept_where_nothing_is_to_be(tmp_path):
    async with Stage(tmp_path, said("One."), settings=Settings(threads=Conversations(keep=False))) as stage:
        await stage.run()

    assert not os.path.exists(_threads().path)


@pytest.mark.parametrize("goes_on", [False, True])
async def test_conversations_are_kept_for_so_many_days(tmp_path, goes_on):
    old = ThreadStore(os.path.dirname(_threads().path), clock=lambda: time.time() - 3 * 86_400)
    async with Stage(tmp_path, said("One.")) as stage:
        await stage.run()
        thread = stage.agent.thread
    old.append("T-old", [Item("turn", "user", msgspec.json.encode(Turn("user", ())))])
    old.close()
    again = {"resume": thread} if goes_on else {}
    async with Stage(tmp_path, said("Two."), settings=Settings(threads=Conversations(keep_days=1)), **again) as stage:
        await stage.run()

    store = _threads()
    kept = {about.id for about in store.list()}
    store.close()
    assert "T-old" not in kept
    assert thread in kept


async def test_plans_are_written_where_they_are_to_be(tmp_path):
    settings = Settings(plan=PlanMode(folder="notes/plans"))
    async with Stage(tmp_path, calls(("EnterPlanMode", {})), said("ok"), settings=settings) as stage:
        await stage.run()

    assert "notes/plans" in stage.replies[0].text + "".join(stage.replies[0].notes)


async def test_what_other_models_say_is_recorded_and_played_again(tmp_path):
    """The recording holds all of it: played again, it asks neither the small model nor a role's."""
    work = tmp_path / "work"
    work.mkdir()
    models = Models(
        roles={"Explore": "scripted:" + recording(tmp_path / "other.jsonl", said("from another one"))},
        small="scripted:" + recording(tmp_path / "small.jsonl", said("In short.")),
    )
    tape = str(tmp_path / "tape.jsonl")
    texts = []
    for more in (
        {"model": Scripted(calls(task(kind="Explore")), said("ok"), workspace=str(work)), "record": tape},
        {"model": f"scripted:{tape}"},
    ):
        async with Stage(work, **more, settings=Settings(models=models)) as stage:
            await stage.run()
            told = words(results(stage.agent.turns[2])[0])
            done = await stage.agent.compact()
            texts.append((told.split("\n")[0], done.summary))

    assert texts == [("from another one", "In short.")] * 2


async def test_a_recording_that_cannot_be_written_ends_the_run(tmp_path):
    async with Stage(tmp_path, said("One."), record=str(tmp_path / "tape.jsonl")) as stage:
        tape = stage.agent.model.tape
        os.close(tape._descriptor)
        tape._descriptor = os.open(os.devnull, os.O_RDONLY)
        ended = await stage.run()

    assert ended.reason == "error"
    assert "cannot be recorded into" in ended.error


def _threads():
    return ThreadStore(os.path.join(os.environ["FERRULE_STATE"], "threads"))
