"""The loop, by scripted conversations: every way in which a run can go and end."""

import asyncio
import os
import subprocess
import sys

import pytest

from ferrule.agent import Began, Called, Calling, Ended, Limits, Retrying, Spoke, Steered, TurnBegan, TurnEnded
from ferrule.core.call import Prepared, Started
from ferrule.core.content import Text
from ferrule.core.errors import ConfigError
from ferrule.models.cues import Header, calls, fails, hangs, repeats, said
from ferrule.models.recorder import Scripted
from ferrule.permissions import Answer, CallbackAsker, Nobody
from ferrule.wire import Usage

from .stage import Stage, check_valid, results, words


def read(name="a.py"):
    return ("Read", {"file_path": f"${{workspace}}/{name}"})


async def test_a_run_asks_calls_hears_and_ends(tmp_path):
    (tmp_path / "a.py").write_text("x = 1\n")
    async with Stage(tmp_path, calls(read(), text="I look."), said("It is 1.", expect="x = 1")) as stage:
        ended = await stage.run("What is x?")

        assert (ended.reason, ended.text, ended.spent.turns) == ("end", "It is 1.", 2)
        assert [words(turn) for turn in stage.agent.turns] == ["What is x?", "I look.", "", "It is 1."]
        check_valid(stage.agent.turns)
    kinds = [type(event) for event in stage.events]
    assert kinds[0] is Began
    assert kinds[-1] is Ended
    assert kinds.count(Ended) == 1
    assert [event.number for event in stage.of(TurnBegan)] == [1, 2]
    assert "".join(event.text for event in stage.of(Spoke)) == "I look.It is 1."
    assert [event.name for event in stage.of(Calling)] == ["Read"]


@pytest.mark.parametrize(
    ("reason", "ends"),
    [
        pytest.param("end", "end", id="done"),
        pytest.param("stopped", "end", id="a stop word"),
        pytest.param("length", "length", id="out of tokens"),
        pytest.param("refused", "refused", id="a filter"),
    ],
)
async def test_every_stop_reason_hands_control_back(tmp_path, reason, ends):
    async with Stage(tmp_path, said("So far.", reason=reason)) as stage:
        ended = await stage.run()

        assert (ended.reason, ended.text, ended.error) == (ends, "So far.", "")
        check_valid(stage.agent.turns)


async def test_an_empty_answer_ends_the_run_and_is_no_turn(tmp_path):
    async with Stage(tmp_path, said(""), said("Here.")) as stage:
        first, second = await stage.run("one"), await stage.run("two")

        assert (first.reason, first.text) == ("end", "")
        assert second.text == "Here."
        assert [turn.role for turn in stage.agent.turns] == ["user", "user", "assistant"]


async def test_calls_of_one_message_run_side_by_side_and_are_answered_in_their_order(tmp_path):
    wait = "while [ ! -e there ]; do sleep 0.01; done; echo waited"
    cues = (
        calls(("Grep", {"pattern": "nothing"}), read("missing.py"), read()),
        calls(("Bash", {"command": wait}), ("Bash", {"command": "touch there"})),
        said("ok"),
    )
    (tmp_path / "a.py").write_text("x\n")
    (tmp_path / "there").touch()
    async with Stage(tmp_path, *cues) as stage:
        await stage.run()

        first = results(stage.agent.turns[2])
        assert [one.id for one in first] == ["c1", "c2", "c3"]
        assert [one.failed for one in first] == [False, True, False]
        check_valid(stage.agent.turns)


async def test_a_failing_call_is_told_to_the_model_which_goes_on(tmp_path):
    async with Stage(tmp_path, calls(read("no.py")), said("It is not there.", expect="does not exist")) as stage:
        ended = await stage.run()

    assert ended.reason == "end"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        pytest.param("{not json", "not valid JSON", id="no JSON"),
        pytest.param({"path": 3, "nothing": 1}, "file_path", id="wrong arguments"),
    ],
)
async def test_a_malformed_call_is_answered_and_not_made(tmp_path, given, told):
    async with Stage(tmp_path, calls(("Read", given)), said("Again.")) as stage:
        ended = await stage.run()

        result = results(stage.agent.turns[2])[0]
        assert ended.reason == "end"
        assert result.failed
        assert told in words(result)


async def test_an_unknown_tool_is_answered_with_near_names(tmp_path):
    async with Stage(tmp_path, calls(("Raed", {})), said("Read then.", expect="Read")) as stage:
        assert (await stage.run()).reason == "end"


async def test_a_call_that_was_cut_off_is_never_made(tmp_path):
    cut = calls(("Write", '{"file_path": "b.txt", "content": "half'), reason="length")
    async with Stage(tmp_path, cut, said("In two parts.", expect="cut off")) as stage:
        ended = await stage.run()

        assert ended.reason == "end"
        assert not os.path.exists(tmp_path / "b.txt")
        check_valid(stage.agent.turns)


async def test_a_refused_call_is_told_with_the_users_words(tmp_path):
    asker = CallbackAsker(lambda _: Answer(allow=False, message="Not that file."))
    write = ("Write", {"file_path": "${workspace}/b.txt", "content": "x"})
    async with Stage(tmp_path, calls(write), said("All right.", expect="Not that file."), ask=asker) as stage:
        ended = await stage.run()

    assert ended.reason == "end"
    assert [reply.status for reply in stage.replies] == ["rejected-by-user"]
    assert not (tmp_path / "b.txt").exists()


async def test_an_output_that_is_too_long_is_cut_and_kept(tmp_path):
    shell = ("Bash", {"command": "seq 1 20000"})
    async with Stage(tmp_path, calls(shell), said("Long.")) as stage:
        await stage.run()

        result = results(stage.agent.turns[2])[0]
        kept = next(reply.output_id for reply in stage.replies)
        assert len(words(result)) < 40_000
        assert kept is not None
        assert kept in words(result)
        assert "\n12345\n" in ((await stage.session.engine.output(kept)).text or "")


async def test_prompts_follow_each_other_in_one_conversation(tmp_path):
    async with Stage(tmp_path, said("One."), said("Two.")) as stage:
        await stage.run("first")
        ended = await stage.run("second")

        assert [words(turn) for turn in stage.agent.turns] == ["first", "One.", "second", "Two."]
        assert (ended.spent.turns, ended.total.turns) == (1, 2)


async def test_two_runs_at_once_are_refused(tmp_path):
    async with Stage(tmp_path, hangs("Hm")) as stage:
        running = asyncio.create_task(stage.run())
        await until(stage, Spoke)
        with pytest.raises(ConfigError, match="already"):
            await stage.run()
        stage.agent.interrupt()
        await running


async def until(stage, kind, count=1):
    """Wait, for a bounded time, until events of a kind have been told."""
    async with asyncio.timeout(20):
        while len(stage.of(kind)) < count:
            await asyncio.sleep(0)


async def test_interrupting_an_answer_keeps_its_words_and_the_conversation_goes_on(tmp_path):
    async with Stage(tmp_path, hangs("I will now ", read()), said("Yes?", expect={})) as stage:
        running = asyncio.create_task(stage.run("Begin."))
        await until(stage, Calling)
        stage.agent.interrupt()
        ended = await running

        assert ended.reason == "interrupted"
        assert [words(turn) for turn in stage.agent.turns] == ["Begin.", "I will now "]
        check_valid(stage.agent.turns)
        again = await stage.run("Go on.")
        assert again.text == "Yes?"
        assert "interrupted" in words(stage.agent.turns[2])


async def test_interrupting_calls_answers_each_of_them(tmp_path):
    cue = calls(("Bash", {"command": "sleep 60"}), read())
    (tmp_path / "a.py").write_text("x\n")
    async with Stage(tmp_path, cue, said("Fine.")) as stage:

        def stop(event):
            if isinstance(event, Called) and isinstance(event.call, Started) and event.call.name == "Bash":
                asyncio.get_running_loop().call_soon(stage.agent.interrupt)

        stage.on = stop
        ended = await stage.run()

        assert ended.reason == "interrupted"
        check_valid(stage.agent.turns)
        assert "cancelled" in words(results(stage.agent.turns[2])[0])
        assert (await stage.run("And now?")).text == "Fine."


async def test_interrupting_before_the_first_answer_is_valid_too(tmp_path):
    async with Stage(tmp_path, said("Never."), said("Now.")) as stage:
        stage.on = lambda event: stage.agent.interrupt() if isinstance(event, Began) else None
        ended = await stage.run("one")

        assert ended.reason == "interrupted"
        stage.on = lambda _: None
        assert (await stage.run("two")).reason == "end"
        check_valid(stage.agent.turns)


async def test_cancelling_the_task_that_runs_leaves_a_valid_conversation(tmp_path):
    async with Stage(tmp_path, calls(("Bash", {"command": "sleep 60"})), said("Back.")) as stage:
        running = asyncio.create_task(stage.run())
        await until_started(stage)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

        check_valid(stage.agent.turns)
        assert not stage.agent.is_running
        assert [(event.thread, event.reason) for event in stage.of(Ended)] == [(stage.agent.thread, "interrupted")]
        assert (await stage.run("again")).text == "Back."


async def until_started(stage):
    async with asyncio.timeout(20):
        while not any(isinstance(event.call, Started) for event in stage.of(Called)):
            await asyncio.sleep(0.001)


async def test_steering_reaches_the_model_with_the_next_replies(tmp_path):
    (tmp_path / "a.py").write_text("x\n")
    async with Stage(tmp_path, calls(read()), said("Short it is.")) as stage:

        def steer(event):
            if isinstance(event, Called) and isinstance(event.call, Prepared):
                stage.agent.steer("Be brief.")

        stage.on = steer
        ended = await stage.run()

        assert ended.text == "Short it is."
        assert words(stage.agent.turns[2]) == "Be brief."
        assert [event.text for event in stage.of(Steered)] == ["Be brief."]
        check_valid(stage.agent.turns)


@pytest.mark.parametrize("goes_on", [False, True])
async def test_what_is_typed_while_the_model_speaks_is_heard_after_it(tmp_path, goes_on):
    (tmp_path / "a.py").write_text("x\n")
    first = calls(read(), text="I look.") if goes_on else said("I look.")
    async with Stage(tmp_path, first, said("Short it is.")) as stage:
        stage.on = lambda event: (
            stage.agent.steer("Be brief.") if isinstance(event, Spoke) and not stage.of(TurnEnded) else None
        )
        ended = await stage.run()

        assert ended.text == "Short it is."
        assert words(stage.agent.turns[1]) == "I look."
        assert set(words(stage.agent.turns[2]).split("\n")) == {"Be brief."}
        check_valid(stage.agent.turns)


async def test_steering_at_the_end_starts_another_turn(tmp_path):
    async with Stage(tmp_path, said("Done."), said("That too.")) as stage:
        stage.on = lambda event: (
            stage.agent.steer("And this?") if isinstance(event, TurnEnded) and len(stage.of(TurnEnded)) == 1 else None
        )
        ended = await stage.run()

        assert ended.text == "That too."
        assert [words(turn) for turn in stage.agent.turns] == ["Do it.", "Done.", "And this?", "That too."]


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        pytest.param(Limits(turns=2), "turns", id="turns"),
        pytest.param(Limits(tokens=250), "tokens", id="tokens"),
        pytest.param(Limits(cost=0.0004), "cost", id="cost"),
        pytest.param(Limits(seconds=1e-9), "time", id="time"),
    ],
)
async def test_a_limit_ends_the_run_with_every_call_answered(tmp_path, limits, reason):
    from ferrule.models import Prices

    (tmp_path / "a.py").write_text("x\n")
    usage = Usage(100, 50)
    many = [calls(read(), ("Glob", {"pattern": f"*{at}"}), usage=usage) for at in range(9)]
    model = Scripted(*many, header=Header(prices=Prices(1.0, 2.0, 0.1, 1.0)), workspace=str(tmp_path))
    async with Stage(tmp_path, model=model, limits=limits) as stage:
        ended = await stage.run()

        assert ended.reason == reason
        assert ended.spent.turns <= 3
        check_valid(stage.agent.turns)


async def test_calls_past_the_budget_are_skipped_in_the_seeds_words(tmp_path):
    write = ("Write", {"file_path": "${workspace}/b.txt", "content": "x"})
    async with Stage(tmp_path, calls(write, usage=Usage(100, 50)), limits=Limits(tokens=100)) as stage:
        ended = await stage.run()

        assert ended.reason == "tokens"
        assert words(results(stage.agent.turns[-1])[0]) == "error: tool execution skipped (token budget exceeded)"
        assert not (tmp_path / "b.txt").exists()


async def test_the_same_call_again_and_again_is_told_and_then_stopped(tmp_path):
    (tmp_path / "a.py").write_text("x\n")
    async with Stage(tmp_path, *[calls(read()) for _ in range(9)]) as stage:
        ended = await stage.run()

        assert ended.reason == "loop"
        assert ended.spent.turns == 5
        told = [at for at, turn in enumerate(stage.agent.turns) if "[LOOP DETECTED]" in words(turn)]
        assert told == [6]
        check_valid(stage.agent.turns)


async def test_two_calls_in_turn_are_a_loop_as_well(tmp_path):
    (tmp_path / "a.py").write_text("x\n")
    both = (read(), ("Glob", {"pattern": "*.py"}))
    async with Stage(tmp_path, *[calls(both[at % 2]) for at in range(20)]) as stage:
        ended = await stage.run()

    assert ended.reason == "loop"
    assert ended.spent.turns == 10


async def test_the_same_call_with_another_answer_is_no_loop(tmp_path):
    count = ("Bash", {"command": "echo x >> n; wc -l < n"})
    async with Stage(tmp_path, *[calls(count) for _ in range(8)], said("done")) as stage:
        assert (await stage.run()).reason == "end"


async def test_a_model_that_fails_ends_the_run_with_what_to_do(tmp_path):
    async with Stage(tmp_path, fails("wrong-key", "The key is refused: set ANTHROPIC_API_KEY."), said("Now.")) as stage:
        ended = await stage.run()

        assert (ended.reason, ended.error) == ("error", "The key is refused: set ANTHROPIC_API_KEY.")
        assert (await stage.run("again")).text == "Now."
        check_valid(stage.agent.turns)


class Faulty(Scripted):
    """A model whose code has a fault."""

    async def ask(self, asked):
        async for delta in super().ask(asked):
            yield delta
            raise KeyError("choices")


async def test_a_model_with_a_fault_of_its_own_ends_the_run_too(tmp_path):
    model = Faulty(said("I begin."), said("Never."), workspace=str(tmp_path))
    async with Stage(tmp_path, model=model) as stage:
        ended = await stage.run()

        assert (ended.reason, stage.events[-1]) == ("error", ended)
        assert "KeyError: 'choices'" in ended.error
        check_valid(stage.agent.turns)


async def test_what_was_heard_before_a_repetition_is_void(tmp_path):
    (tmp_path / "a.py").write_text("x\n")
    async with Stage(tmp_path, repeats("Half a ", read()), said("A whole answer.")) as stage:
        ended = await stage.run()

        assert ended.text == "A whole answer."
        assert [words(turn) for turn in stage.agent.turns] == ["Do it.", "A whole answer."]
        assert len(stage.of(Retrying)) == 1
        assert stage.replies == []


async def test_without_anybody_to_ask_what_would_ask_is_refused(tmp_path):
    write = ("Write", {"file_path": "${workspace}/b.txt", "content": "x"})
    async with Stage(tmp_path, calls(write), said("I cannot.", expect="Nobody can be asked"), ask=Nobody()) as stage:
        assert (await stage.run()).reason == "end"


async def test_thinking_goes_back_with_its_turn(tmp_path):
    (tmp_path / "a.py").write_text("x\n")
    async with Stage(tmp_path, calls(read(), thinking="Hm."), said("ok")) as stage:
        await stage.run()

        assert stage.agent.turns[1].parts[0].text == "Hm."
        assert stage.model.asked[1].turns[2] == stage.agent.turns[1]


async def test_the_system_prompt_has_guidance_and_facts_and_stays_the_same(tmp_path):
    (tmp_path / "AGENTS.md").write_text("Use tabs.\n")
    (tmp_path / "a.py").write_text("x\n")
    async with Stage(tmp_path, calls(read()), said("ok")) as stage:
        await stage.run()

        first, second = (asked.turns[0] for asked in stage.model.asked)
        assert first == second
        assert isinstance(first.parts[0], Text)
        assert "Use tabs." in first.parts[0].text
        assert f"Workspace: {tmp_path}" in first.parts[0].text
        assert stage.model.asked[0].definitions is stage.model.asked[1].definitions


LIGHT = """
import asyncio, sys
from ferrule.agent.session import Session
from ferrule.models.cues import said
from ferrule.models.recorder import Scripted

async def main():
    async with Session(sys.argv[1], model=Scripted(said("Hello.")), dialect="claude") as session:
        await session.agent.run("Hi.")

asyncio.run(main())
heavy = {"importlib.metadata", "ferrule.tools.files.edit", "ferrule.tools.shell.shell", "ferrule.tools.search.grep"}
print(sorted(heavy & sys.modules.keys()))
"""


def test_a_conversation_without_calls_loads_no_tool(tmp_path):
    """The tools are shown by their faces; what they need is loaded by whoever calls them."""
    argv = [sys.executable, "-c", LIGHT, str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout == "[]\n"
