"""Recordings: what a model said is on the disk when its answer ends, and plays again as it was."""

import asyncio
import json
import os
import sys
import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.core.content import Text
from ferrule.core.errors import ConfigError
from ferrule.models import ModelError, Prices, RetryNotice
from ferrule.models.cues import (
    Cue,
    Header,
    Portable,
    RecordedError,
    Spoken,
    calls,
    fails,
    fill_placeholders,
    hangs,
    line,
    read,
    repeats,
    said,
)
from ferrule.models.recorder import Recording, Scripted, Tape, load
from ferrule.wire import AnswerEnd, AnswerStart, Broke, Delta, Result, Turn, Usage, Use
from ferrule.wire.stream import assemble
from tests.models.conftest import KEY
from tests.models.contract import answer, asked, check_closing, check_given_up, heard, kept, model_turn
from tests.models.server import Exchange
from tests.models.spoken import ALL
from tests.strategies import texts
from tests.wire.streams import answers

PRICES = Prices(1.5, 2.0, 3.0, 4.0)


class Canned:
    """A model that sends the deltas that it was given."""

    name = "far:away"
    model = "away"
    wire = "anthropic"
    window = 1234
    most_output = 99
    vision = True
    prices: Prices | None = PRICES

    def __init__(self, *answers: list[Delta | RetryNotice]) -> None:
        self._answers = list(answers)

    async def ask(self, asked):
        for delta in self._answers.pop(0):
            yield delta

    async def close(self) -> None:
        """Nothing is open."""


def lines(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@settings(max_examples=30)
@given(st.lists(answers(interleaved=True), min_size=1, max_size=4))
def test_what_is_recorded_plays_again(given_answers):
    async def both(folder):
        path = os.path.join(folder, "talk.jsonl")
        recording = Recording(Canned(*given_answers), path, workspace=folder)
        first = [assemble(kept(await heard(recording, asked("Hello")))) for _ in given_answers]
        await recording.close()
        model = load(path)
        model.workspace = folder
        second = [await answer(model, asked("Hello")) for _ in given_answers]
        return first, second, model

    with tempfile.TemporaryDirectory() as folder:
        first, second, model = asyncio.run(both(folder))

    assert [(one.parts, one.reason, one.usage) for one in second] == [
        (one.parts, one.reason, one.usage) for one in first
    ]
    assert (model.model, model.wire, model.window, model.most_output) == ("away", "anthropic", 1234, 99)
    assert model.prices == PRICES


async def test_a_recording_passes_on_what_the_model_sends(tmp_path):
    deltas: list[Delta | RetryNotice] = [AnswerStart("m", "away"), Broke("Oh.", "x"), AnswerEnd("end", Usage(1, 2))]
    recording = Recording(Canned(deltas), str(tmp_path / "t"))

    assert await heard(recording, asked("Hello")) == deltas
    assert (recording.name, recording.model, recording.window) == ("far:away", "away", 1234)
    await recording.close()
    assert read(str(tmp_path / "t")).cues[0].broke == RecordedError(message="Oh.", kind="x")


async def test_an_answer_is_on_the_disk_before_its_end_is_passed_on(tmp_path):
    path = tmp_path / "talk.jsonl"
    recording = Recording(Scripted(said("Done.", usage=Usage(3, 1))), str(path))

    async for delta in recording.ask(asked("Hello")):
        if isinstance(delta, AnswerEnd):
            assert lines(path)[1] == {
                "prompt": "Hello",
                "parts": [{"text": "Done."}],
                "reason": "end",
                "usage": {"input": 3, "output": 1},
            }
    await recording.close()


async def test_failures_and_repetitions_play_again(tmp_path):
    path = str(tmp_path / "talk.jsonl")
    inner = Scripted(
        repeats("Half", ("Read", {"a": 1}), seconds=1.5), said("Whole."), fails("limit", "No money.", text="Well")
    )
    recording = Recording(inner, path)
    first = await heard(recording, asked("Hello"))
    with pytest.raises(ModelError, match="No money"):
        await heard(recording, asked("Hello"))
    await recording.close()
    model = load(path)

    assert await heard(model, asked("Hello")) == first
    with pytest.raises(ModelError, match="No money") as caught:
        await heard(model, asked("Hello"))
    assert caught.value.kind == "limit"


async def test_an_interrupted_answer_is_left_out(tmp_path):
    path = str(tmp_path / "talk.jsonl")
    recording = Recording(Scripted(hangs("Well"), said("Done.")), path)
    stream = recording.ask(asked("Hello"))
    await anext(stream)
    await stream.aclose()
    await answer(recording, asked("Hello"))
    await recording.close()

    assert (await answer(load(path), asked("Hello"))).parts == (Text("Done."),)


async def test_it_keeps_the_contract_of_models(tmp_path):
    recording = Recording(Scripted(*[calls(("Read", {"a": "b" * 200}), text="one two")] * 3), str(tmp_path / "t"))

    await check_given_up(recording, asked("Hello"))
    await answer(recording, asked("Hello"))
    await check_closing(recording)


async def test_children_share_one_tape_and_each_gets_its_own_answers_back(tmp_path):
    path = str(tmp_path / "talk.jsonl")
    tape = Tape(path, str(tmp_path))
    main = Recording(Scripted(said("main 1"), said("main 2")), tape)
    children = Recording(
        Scripted(
            calls(("Read", {}, "r1"), prompt="child a"), said("a 2", prompt="child a"), said("b 1", prompt="child b")
        ),
        tape,
    )
    await answer(main, asked("the task"))
    await asyncio.gather(answer(children, asked("child a")), answer(children, asked("child b of many")))
    result = Turn("user", (Result("r1", (Text("x"),)),))
    # A child that lost its beginning meanwhile.
    await answer(children, asked("child a, summed up", model_turn(Use("r1", "Read", {})), result))
    await answer(main, asked("the task", model_turn(Text("main 1")), "go on"))
    await main.close()
    await children.close()
    await tape.close()
    model = load(path)

    replayed = [await answer(model, asked(prompt)) for prompt in ("child b of many", "the task", "child a", "the task")]
    assert [part for one in replayed for part in one.parts] == [
        Text("b 1"),
        Text("main 1"),
        Use("r1", "Read", {}),
        Text("main 2"),
    ]
    summed_up = await answer(model, asked("child a, summed up", model_turn(Use("r1", "Read", {})), result))
    assert summed_up.parts == (Text("a 2"),)
    assert model.left == 0


async def test_conversations_that_begin_alike_are_kept_apart(tmp_path):
    path = str(tmp_path / "talk.jsonl")
    prompts = ["main", "x" * 500, "x" * 500 + "y", "x" * 400]
    recording = Recording(Scripted(*(said(f"{at}") for at in range(4))), path)
    for prompt in prompts:
        await answer(recording, asked(prompt))
    await recording.close()
    model = load(path)

    found = [(at, (await answer(model, asked(prompts[at]))).parts) for at in (2, 0, 1)]

    assert found == [(at, (Text(f"{at}"),)) for at in (2, 0, 1)]


async def test_paths_of_this_machine_are_not_in_the_recording(tmp_path):
    folder = tmp_path / "my work"
    folder.mkdir()
    inner = Scripted(
        calls(
            (
                "Read",
                {"file_path": f"{folder}/a.py", "other": f"{folder}2", "more": [f"cd {folder} && {sys.executable}"]},
            ),
            text=f"In {folder}. And ${{workspace}} costs $$5.".replace("${", "$${"),
        )
    )
    path = str(tmp_path / "talk.jsonl")
    recording = Recording(inner, path, workspace=str(folder))
    first = await answer(recording, asked(f"Look at {folder}/x."))
    await recording.close()
    cue = read(path).cues[0]

    assert cue.prompt == "Look at ${workspace}/x."
    assert cue.parts[0] == Spoken(text="In ${workspace}. And $${workspace} costs $$5.")
    assert cue.parts[1].input == {
        "file_path": "${workspace}/a.py",
        "other": f"{folder}2",
        "more": ["cd ${workspace} && ${python}"],
    }
    model = load(path)
    model.workspace = str(folder)
    assert (await answer(model, asked("x"))).parts == first.parts


@pytest.mark.parametrize("task_id", ["bx2k4m7p", "bfxtham", "T-1b4e28ba-2fa1-11d2-883f-0016d3cca427"])
async def test_an_id_that_stood_in_a_result_is_looked_for_there_again(tmp_path, task_id):
    path = str(tmp_path / "talk.jsonl")
    recording = Recording(Scripted(calls(("TaskOutput", {"task_id": task_id, "block": True}, "c2"))), path)

    def turns(task):
        started = Result("c1", (Text(f"Command running in background with ID: {task}. Output is kept."),))
        return asked("Hello", model_turn(Use("c1", "Bash", {})), Turn("user", (started,)))

    await answer(recording, turns(task_id))
    await recording.close()

    replayed = await answer(load(path), turns("bq9q9q9q"))
    assert replayed.parts == (Use("c2", "TaskOutput", {"task_id": "bq9q9q9q", "block": True}),)


@given(texts | st.text(st.sampled_from("${workspace}python:rlt /w"), max_size=60))
def test_what_is_made_portable_comes_back(text):
    value = {"a": [text, {"id": text}], "n": 1}
    for workspace in ("/w", "/w/x y", "/"):
        made = Portable(workspace).insert_placeholders(value, {"c1": f"ID: {text}"})

        assert fill_placeholders(made, os.path.realpath(workspace), lambda: {"c1": f"ID: {text}"}) == value


def test_a_recording_is_never_written_over_and_is_for_its_owner_alone(tmp_path):
    path = tmp_path / "talk.jsonl"
    Tape(str(path))

    assert path.stat().st_mode & 0o077 == 0
    with pytest.raises(ConfigError, match="is there already"):
        Tape(str(path))
    with pytest.raises(ConfigError, match="cannot be recorded into: No such file"):
        Tape(str(tmp_path / "no" / "such"))


async def test_what_cannot_be_written_is_an_error(tmp_path):
    recording = Recording(Scripted(said("x")), str(tmp_path / "t"))
    await recording.tape.close()

    with pytest.raises(ConfigError, match="cannot be recorded into"):
        await heard(recording, asked("Hello"))


def test_a_line_says_only_what_is_not_as_usual():
    assert line(Header(model="m")) == b'{"ferrule":"conversation","version":1,"model":"m"}\n'
    assert line(Cue(text="x", usage=Usage(2))) == b'{"text":"x","usage":{"input":2}}\n'


APIS = pytest.mark.parametrize("spoken", ALL, ids=lambda one: one.api)


@APIS
async def test_an_answer_of_each_api_plays_again_as_it_was_and_without_the_key(server, asker, tmp_path, spoken):
    async def busy(exchange: Exchange) -> None:
        await exchange.whole(429, {"error": {"message": f"slow down, {KEY}"}}, retry_after="2")

    async def whole(exchange: Exchange) -> None:
        await exchange.stream(spoken.stream)

    async def telling(exchange: Exchange) -> None:
        await exchange.stream(spoken.stream.replace("ü".encode(), KEY.encode()))

    server.play(busy, whole, telling)
    path = str(tmp_path / "c.jsonl")
    recording = Recording(asker.model(spoken), path)
    first = assemble(
        one for one in await heard(recording, asked(f"Hi, I am {KEY}")) if not isinstance(one, RetryNotice)
    )
    await heard(recording, asked("Go on"))
    await recording.close()

    played = load(path, str(tmp_path))
    deltas = await heard(played, asked("Hi"))
    again = next(at for at, one in enumerate(deltas) if isinstance(one, RetryNotice))
    text = (tmp_path / "c.jsonl").read_text()

    assert (first.parts, first.usage) == (spoken.parts, spoken.usage)
    played_answer = assemble(one for one in deltas[again + 1 :] if not isinstance(one, RetryNotice))
    assert (played_answer.parts, played_answer.reason) == (spoken.parts, "tools")
    assert played_answer.usage == spoken.usage
    assert KEY not in text
    assert "[key]" in text


@APIS
async def test_that_it_is_recorded_changes_nothing_of_what_a_host_is_told(server, asker, tmp_path, spoken):
    async def play(exchange: Exchange) -> None:
        await exchange.stream(spoken.stream)

    server.play(play)
    plain, taped = asker.model(spoken), Recording(asker.model(spoken), str(tmp_path / "c.jsonl"))
    for model in (plain, taped):
        model.conversation = "T-1"
        assert model.conversation == "T-1"
        await heard(model, asked("Hi"))
        await heard(model.beside("T-2"), asked("Hi"))
    await taped.close()

    bodies = [one.body for one in server.asked]
    assert bodies[:2] == bodies[2:]


async def test_a_model_that_has_no_line_of_its_own_is_the_same_beside_itself(tmp_path):
    recording = Recording(Scripted(said("x")), str(tmp_path / "c.jsonl"))
    recording.conversation = "T-1"

    assert recording.beside("T-2") is recording
    assert recording.conversation == ""
    await recording.close()
