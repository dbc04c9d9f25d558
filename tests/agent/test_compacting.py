"""The conversation stays inside its window: outputs make room first, then a summary, and all of it can be read back."""

import re

import pytest

from ferrule.agent import Compacted, Warned
from ferrule.agent.compaction import _cut
from ferrule.agent.conversation import TurnHistory, tokens_of
from ferrule.core.content import Image, Text
from ferrule.models import ModelError
from ferrule.models.cues import Header, calls, fails, said
from ferrule.models.recorder import Scripted
from ferrule.permissions import ModeConfig
from ferrule.settings import Conversations, Settings
from ferrule.wire import ModelResponse, Result, Turn, Usage, Use
from tests.rows import each_row

from .stage import Stage, check_valid, results, words

LONG = "word " * 3_000


def small_window(*cues, workspace, window=40_000):
    return Scripted(*cues, header=Header(window=window, most_output=2_000), workspace=str(workspace))


def look(at):
    return ("Read", {"file_path": f"${{workspace}}/f{at}.txt"})


def files(tmp_path, count=12):
    for at in range(count):
        (tmp_path / f"f{at}.txt").write_text(f"file {at} begins\n" + "some words of it\n" * 900)


async def test_old_outputs_make_room_and_can_be_recalled(tmp_path):
    files(tmp_path)
    cues = [calls(look(at)) for at in range(9)]
    model = small_window(*cues, _recall, said("back"), workspace=tmp_path, window=58_000)
    async with Stage(tmp_path, model=model) as stage:
        ended = await stage.run()

        assert ended.text == "back"
        assert [event.kind for event in stage.of(Compacted)] == ["outputs"]
        assert stage.of(Compacted)[0].after_tokens < stage.of(Compacted)[0].before_tokens
        check_valid(stage.agent.turns)
        recalled = next(reply for reply in stage.replies if reply.name == "recall")
        assert "file 0 begins" in recalled.text


def _recall(asked):
    said_ = "\n".join(words(result) for turn in asked.turns for result in results(turn))
    found = re.search(r'recall \{"id": "(\w+)"\}', said_)
    assert found is not None
    return calls(("recall", {"id": found[1], "limit": 3}))


async def test_a_summary_takes_the_place_of_the_beginning_and_the_thread_keeps_all(tmp_path):
    prompts = [f"Remember {at}: {LONG}" for at in range(6)]
    answers = [said(f"Noted {at}.") for at in range(5)]
    model = small_window(*answers, said("THE SUMMARY"), said("Noted 5."), workspace=tmp_path)
    async with Stage(tmp_path, model=model) as stage:
        for prompt in prompts[:5]:
            await stage.run(prompt)
        assert stage.of(Compacted) == []
        ended = await stage.run(prompts[5])

        assert ended.text == "Noted 5."
        done = stage.of(Compacted)[-1]
        assert (done.kind, done.summary) == ("summary", "THE SUMMARY")
        assert done.after_tokens < done.before_tokens
        first = words(stage.agent.turns[0])
        assert "THE SUMMARY" in first
        assert stage.agent.thread in first
        summing = stage.model.asked[-2]
        assert summing.choice is not None
        assert summing.choice.kind == "none"
        reply = await stage.session.engine.call("recall", id=stage.agent.thread, pattern="Remember 0")
        assert "Remember 0" in reply.text
        check_valid(stage.agent.turns)


class Deciding(Scripted):
    """Says what a function of what it is asked makes of it."""

    def __init__(self, decide, **more):
        super().__init__(**more)
        self._decide = decide

    async def ask(self, asked):
        async for delta in Scripted(self._decide(asked), workspace=self.workspace).ask(asked):
            yield delta


def _delegating(asked):
    """A parent with one subagent, which looks until it is summed up, and then reads its beginning back."""
    told = [words(one) for turn in asked.turns for one in results(turn)]
    if any(one.name == "Task" for one in asked.definitions):
        task = {"description": "d", "prompt": f"Sesame. {LONG * 4}", "subagent_type": "Explore"}
        return said(told[-1]) if told else calls(("Task", task))
    if asked.choice is not None:
        return said("THE SUMMARY")
    if (found := re.search(r'recall \{"id": "(T-[\w-]+)", ', "".join(map(words, asked.turns)))) is None:
        return calls(look(len(told)))
    if any("Sesame." in one for one in told):
        return said("I know: " + next(one for one in told if "Sesame." in one)[:40])
    return calls(("recall", {"id": found[1], "pattern": "Sesame"}))


async def test_a_subagent_that_is_given_few_tools_reads_its_own_conversation_back(tmp_path):
    files(tmp_path)
    model = Deciding(_delegating, header=Header(window=40_000, most_output=2_000), workspace=str(tmp_path))
    async with Stage(tmp_path, model=model) as stage:
        ended = await stage.run()

    assert ended.text.startswith("I know: ")
    assert [event.kind for event in stage.of(Compacted)][-1] == "summary"


@pytest.mark.parametrize(
    ("session", "told"),
    [
        pytest.param({}, "is kept as thread", id="kept"),
        pytest.param({"settings": Settings(threads=Conversations(keep=False))}, "to save room.]", id="not kept"),
        pytest.param({"mode": ModeConfig(without=("recall",))}, "is kept as thread", id="no tool to read it with"),
    ],
)
async def test_a_summary_promises_nothing_that_is_not_there(tmp_path, session, told):
    async with Stage(tmp_path, said("One."), said("Sum."), **session) as stage:
        await stage.run("first")
        await stage.agent.compact()
        first = words(stage.agent.turns[0])

    assert told in first
    assert ("recall" in first) == (session == {})


async def test_a_model_that_cannot_sum_up_gets_a_list_instead(tmp_path):
    answers = [said(f"Noted {at}.") for at in range(5)]
    failing = fails("server", "It broke.")
    model = small_window(*answers, failing, said("Going on."), workspace=tmp_path)
    async with Stage(tmp_path, model=model) as stage:
        for at in range(6):
            ended = await stage.run(f"Remember {at}: {LONG}")

        assert ended.text == "Going on."
        assert "- The user: Remember 0" in words(stage.agent.turns[0])


@pytest.mark.parametrize(
    ("given", "told"),
    [
        pytest.param(said("I will not sum that up.", reason="refused"), "- The user: Remember 0", id="refused"),
        pytest.param(said(""), "- The user: Remember 0", id="empty"),
        pytest.param(fails("overloaded", "Too many."), "- The user: Remember 0", id="busy"),
        pytest.param(fails("too-long", "Too long."), "- The user: Remember 0", id="too long"),
        pytest.param(said("In short. " * 20_000), "In short. In short.", id="without an end"),
    ],
)
async def test_whatever_a_model_says_for_a_summary_the_conversation_becomes_smaller(tmp_path, given, told):
    answers = [said(f"Noted {at}.") for at in range(5)]
    model = small_window(*answers, given, said("Going on."), workspace=tmp_path)
    async with Stage(tmp_path, model=model) as stage:
        for at in range(6):
            ended = await stage.run(f"Remember {at}: {LONG}")

        done = stage.of(Compacted)[-1]
        assert ended.text == "Going on."
        assert done.after_tokens < done.before_tokens
        assert told in words(stage.agent.turns[0])
        check_valid(stage.agent.turns)


class Narrow(Scripted):
    """Refuses what is too long for its window."""

    async def ask(self, asked):
        above = sum(len(one.words) + len(str(one.schema)) for one in asked.definitions)
        if above / 4 + sum(map(tokens_of, asked.turns)) > self.window:
            raise ModelError("It is too long.", "too-long")
        if asked.choice is not None:
            async for delta in Scripted(said("THE SUMMARY"), workspace=self.workspace).ask(asked):
                yield delta
            return
        async for delta in super().ask(asked):
            yield delta


@pytest.mark.parametrize("window", [8_192, 16_384, 32_768])
@pytest.mark.parametrize("count", [1, 6])
async def test_outputs_that_are_too_much_at_once_are_cut_and_can_be_recalled(tmp_path, window, count):
    """However small the window is that the tools leave room in, the run comes to its end."""
    lines = [("Bash", {"command": f"seq {at}0001 {at}4000"}) for at in range(1, 1 + count)]
    header = Header(window=window, most_output=2_000)
    model = Narrow(*[calls(*lines)] * 4, said("done"), header=header, workspace=str(tmp_path))
    async with Stage(tmp_path, model=model) as stage:
        ended = await stage.run("Sesame.")

        assert (ended.reason, ended.text) == ("end", "done")
        check_valid(stage.agent.turns)
        told = [words(one) for asked in model.asked for turn in asked.turns for one in results(turn)]
        if window < 20_000 * count:
            cut = next(one for one in told if "[The middle of this output" in one)
            kept = re.search(r'recall \{"id": "(\w+)"\}', cut)
            assert cut.startswith("10001\n")
            assert kept is not None
            reply = await stage.session.engine.call("recall", id=kept[1], pattern="^12000$")
            assert "12000" in reply.text


async def test_a_picture_that_came_last_stays_when_the_words_beside_it_are_cut(tmp_path):
    async with Stage(tmp_path, said("One."), said("Two.")) as stage:
        await stage.run()
        picture = Image("image/png", "AAAA")
        stage.agent.talk.add(Turn("assistant", (Use("c1", "Read", {}), Use("c2", "Read", {}))))
        shown = (Result("c1", (Text("x" * 9_000), picture)), Result("c2", (picture,)))
        stage.agent.talk.add(Turn("user", shown))
        assert await stage.agent._compacting._cut_last(stage.agent.talk, 1_000)

        first, second = results(stage.agent.turns[-1])
        assert "[The middle of this output" in words(first)
        assert len(words(first)) < 4_000
        assert (first.parts[-1], second) == (picture, shown[1])


@pytest.mark.parametrize(("window", "count"), [(6_000, 1), (200_000, 0)])
async def test_a_window_that_the_tools_fill_is_told_of_once(tmp_path, window, count):
    async with Stage(tmp_path, model=small_window(*[said("ok")] * 3, workspace=tmp_path, window=window)) as stage:
        for _ in range(3):
            await stage.run()

    assert sum("window, and little is left" in event.sentence for event in stage.of(Warned)) == count


async def test_a_conversation_that_the_model_calls_too_long_is_made_smaller_and_asked_again(tmp_path):
    cues = (said("One."), said("Two."), fails("too-long", "Too long."), said("A summary."), said("Three."))
    async with Stage(tmp_path, *cues) as stage:
        for prompt in ("first " * 50, "second", "third"):
            ended = await stage.run(prompt)

        assert (ended.reason, ended.text) == ("end", "Three.")
        assert stage.of(Compacted)[-1].kind == "summary"


async def test_what_is_too_long_at_once_is_an_error_that_says_so(tmp_path):
    async with Stage(tmp_path, fails("too-long", "The conversation is too long for it.")) as stage:
        ended = await stage.run()

    assert (ended.reason, ended.error) == ("error", "The conversation is too long for it.")


async def test_summing_up_by_hand_keeps_the_users_focus(tmp_path):
    async with Stage(tmp_path, said("One."), said("Two."), said("Sum."), said("Three.")) as stage:
        await stage.run("first")
        await stage.run("second")
        done = await stage.agent.compact("the names of files")

        assert done.summary == "Sum."
        assert "the names of files" in words(stage.model.asked[-1].turns[-1])
        assert (await stage.run("third")).text == "Three."
        check_valid(stage.agent.turns)


def turns_of(count, chars=4_000):
    out = [Turn("user", (Text("begin"),))]
    for at in range(count):
        out.append(Turn("assistant", (Use(f"c{at}", "Read", {"at": at}),)))
        out.append(Turn("user", (Result(f"c{at}", (Text("x" * chars),), name="Read"),)))
    return out


@each_row("count", [0, 1, 2, 5, 30])
@each_row("room", [10, 2_000, 10_000, 10**6])
def test_the_cut_never_parts_a_call_from_its_result(count, room):
    turns = turns_of(count)
    at = _cut(turns, room)

    assert at == 0 or turns[at].role == "assistant"
    kept = sum(map(tokens_of, turns[at:]))
    assert kept <= room or at in {0, len(turns) - 2}


def test_tokens_are_the_apis_count_and_an_estimate_of_what_came_since():
    history = TurnHistory()
    history.add(Turn("user", (Text("x" * 350),)))
    history.hear(ModelResponse(id="", model="", parts=(Text("hi"),), reason="end", usage=Usage(1_000, 50)))
    assert history.tokens == 1_050
    history.add(Turn("user", (Text("y" * 3_500), Image("image/png", "AAAA"))))
    assert history.tokens == pytest.approx(1_050 + 1_000 + 1_600, abs=20)


def test_a_smaller_conversation_is_estimated_smaller():
    history = TurnHistory(turns_of(10))
    history.hear(ModelResponse(id="", model="", parts=(Text("hi"),), reason="end", usage=Usage(20_000, 10)))
    before = history.tokens
    history.replace(history.turns[-3:])

    assert 0 < history.tokens < before


async def test_todos_and_plan_mode_outlive_a_summary(tmp_path):
    made = ("TaskCreate", {"subject": "Mend the sum", "description": "It is off by one.", "activeForm": "Mending"})
    cues = [calls(made), calls(("EnterPlanMode", {})), said("Noted."), said("All summed up.")]
    listing = [
        calls(("TaskList", {}), ("Write", {"file_path": "${workspace}/x", "content": "x"})),
        said("Still there."),
    ]
    async with Stage(tmp_path, *cues, *listing) as stage:
        await stage.run("Note it.")
        compacted = await stage.agent.compact()
        await stage.run("What is to be done?")
        answers = [result for turn in stage.agent.turns for result in results(turn)]

    assert compacted.summary == "All summed up."
    assert "Mend the sum" in words(answers[0])
    assert answers[1].failed
    assert not (tmp_path / "x").exists()
