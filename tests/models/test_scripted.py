"""A scripted model: its cues come in order, to the conversation that they are for, and nothing goes unnoticed."""

import asyncio
import json
import sys

import pytest

from ferrule.core.content import Text
from ferrule.core.errors import ConfigError
from ferrule.models import ModelError, Prices, RetryNotice
from ferrule.models.cues import Cue, Header, Spoken, Whom, calls, fails, hangs, read, repeats, said
from ferrule.models.recorder import Scripted, load
from ferrule.wire import (
    AnswerEnd,
    AnswerStart,
    Result,
    TextPiece,
    Thinking,
    ThinkingPiece,
    Turn,
    Usage,
    Use,
    UseBegun,
    UseEnded,
    UsePiece,
)
from tests.models.contract import (
    answer,
    asked,
    check_answer,
    check_closing,
    check_given_up,
    heard,
    kept,
    model_turn,
    user,
)
from tests.rows import each_row

HEADER = '{"ferrule":"conversation","version":1}'


def result(call_id, text):
    return Turn("user", (Result(call_id, (Text(text),)),))


def written(tmp_path, *lines):
    path = tmp_path / "talk.jsonl"
    path.write_text("\n".join([HEADER, *lines]) + "\n", encoding="utf-8")
    return str(path)


async def test_words_thinking_and_calls_come_in_pieces():
    model = Scripted(calls(("Read", {"file_path": "a.py"}), text="I look.", thinking="Where?"))

    deltas = await heard(model, asked("Hello"))

    assert deltas == [
        AnswerStart("msg_1", "scripted"),
        ThinkingPiece("Where?", wire="scripted"),
        TextPiece("I "),
        TextPiece("look."),
        UseBegun(0, "c1", "Read"),
        UsePiece(0, '{"file_path":"a.py"}'),
        UseEnded(0),
        AnswerEnd("tools", Usage()),
    ]


SAID = [
    pytest.param(said("Done."), (Text("Done."),), "end", id="end"),
    pytest.param(
        calls(("Read", {"a": 1}), ("Grep", {"b": 2}, "own")),
        (Use("c1", "Read", {"a": 1}), Use("own", "Grep", {"b": 2})),
        "tools",
        id="tools",
    ),
    pytest.param(said("Too lo", reason="length"), (Text("Too lo"),), "length", id="length"),
    pytest.param(said("", reason="refused"), (), "refused", id="refused"),
    pytest.param(said("Up to here", reason="stopped"), (Text("Up to here"),), "stopped", id="stopped"),
    pytest.param(calls(("Read", '{"a": ')), (Use("c1", "Read", '{"a": '),), "tools", id="malformed"),
    pytest.param(
        calls(Spoken(use="Write", input='{"content": "half', cut=True), reason="length"),
        (Use("c1", "Write", '{"content": "half'),),
        "length",
        id="cut",
    ),
    pytest.param(
        calls(Spoken(use="apply_patch", input="*** Begin Patch", free=True)),
        (Use("c1", "apply_patch", "*** Begin Patch", is_text=True),),
        "tools",
        id="free-text",
    ),
    pytest.param(
        Cue(parts=(Spoken(thinking="Hm.", signature="s"), Spoken(thinking="", sealed="x", wire="anthropic"))),
        (Thinking("Hm.", "s", wire="scripted"), Thinking("", sealed="x", wire="anthropic")),
        "end",
        id="thinking",
    ),
]


@each_row(("cue", "parts", "reason"), SAID)
async def test_every_kind_of_answer_is_said_as_it_stands(cue, parts, reason):
    found = await answer(Scripted(cue), asked("Hello"))

    assert (found.parts, found.reason) == (parts, reason)


@pytest.mark.parametrize(("piece", "count"), [(None, 3), (0, 1), (1, 13), (5, 3)])
async def test_the_size_of_the_pieces_can_be_said(piece, count):
    model = Scripted(said("one two three"), header=Header(piece=piece))

    deltas = await heard(model, asked("Hello"))

    assert "".join(delta.text for delta in deltas if isinstance(delta, TextPiece)) == "one two three"
    assert len(deltas) == count + 2


async def test_pauses_are_taken_only_where_the_script_has_them_and_the_pace_allows_it():
    model = Scripted(Cue(text="a b", pause=3600.0), pace=0.0)

    assert (await answer(model, asked("Hello"))).parts == (Text("a b"),)


async def test_usage_window_and_prices_are_those_of_the_recording():
    header = Header(model="claude-opus-4-5", wire="anthropic", window=1000, most_output=50, prices=Prices(1, 2, 3, 4))
    model = Scripted(said("x", usage=Usage(7, 3)), header=header, name="scripted:x")

    assert (await answer(model, asked("Hello"))).usage == Usage(7, 3)
    assert (model.name, model.model, model.wire, model.window, model.most_output) == (
        "scripted:x",
        "claude-opus-4-5",
        "anthropic",
        1000,
        50,
    )
    assert model.prices == Prices(1, 2, 3, 4)


async def test_the_end_of_the_recording_is_said_plainly():
    model = Scripted(said("One."))
    await answer(model, asked("Hello"))

    with pytest.raises(ModelError, match=r"The recording is at its end: scripted has 1 answer .* with 'Hello'"):
        await heard(model, asked("Hello"))


def test_what_nobody_has_heard_is_counted():
    assert Scripted(said("One."), said("Two."), said("x", prompt="child")).left == 3


async def test_a_failure_is_raised_with_its_kind():
    model = Scripted(fails("overloaded", "Too many."), said("Better."))

    with pytest.raises(ModelError, match=r"Too many\.") as caught:
        await heard(model, asked("Hello"))

    assert caught.value.kind == "overloaded"
    assert (await answer(model, asked("Hello"))).parts == (Text("Better."),)
    assert model.left == 0


async def test_a_failure_may_come_behind_some_words():
    stream = Scripted(fails("cut", text="So f")).ask(asked("Hello"))

    assert [await anext(stream), await anext(stream), await anext(stream)] == [
        AnswerStart("msg_1", "scripted"),
        TextPiece("So "),
        TextPiece("f"),
    ]
    with pytest.raises(ModelError):
        await anext(stream)


async def test_a_stream_that_was_cut_is_asked_again():
    model = Scripted(repeats("So f", seconds=2.0), repeats("So fa", why="Again."), said("So far, so good."))

    deltas = await heard(model, asked("Hello"))

    check_answer(deltas)
    assert [delta for delta in deltas if isinstance(delta, RetryNotice)] == [
        RetryNotice("The stream was cut.", 2.0, 1),
        RetryNotice("Again.", 0.0, 2),
    ]
    assert "".join(delta.text for delta in kept(deltas) if isinstance(delta, TextPiece)) == "So far, so good."


async def test_an_answer_without_end_waits_until_it_is_given_up():
    model = Scripted(hangs("Well"), said("x"))
    task = asyncio.create_task(heard(model, asked("Hello")))
    for _ in range(20):
        await asyncio.sleep(0)

    assert not task.done()
    task.cancel()
    await asyncio.wait([task])
    assert (await answer(model, asked("Hello"))).parts == (Text("x"),)


async def test_it_keeps_the_contract_of_models():
    model = Scripted(*[calls(("Read", {"a": "b" * 200}), text="one two three")] * 3)

    await check_given_up(model, asked("Hello"))
    await answer(model, asked("Hello"))
    await check_closing(model)


EXPECTED = [
    pytest.param({"c1": "contents"}, "", id="there"),
    pytest.param({"c1": ["con", "tents"]}, "", id="several"),
    pytest.param("contents of", "", id="what-came-last"),
    pytest.param("go on", "", id="the-user"),
    pytest.param({"c1": "else"}, "'else' is expected in the result of c1, which says 'the contents of a'", id="other"),
    pytest.param({"c9": "x"}, "it has no result of c9", id="no-such-call"),
    pytest.param("Hello", "is expected in what came last", id="not-last"),
]


@pytest.mark.parametrize(("expect", "complaint"), EXPECTED)
async def test_a_script_says_what_it_expects(expect, complaint):
    turns = asked("Hello", model_turn(Use("c1", "Read", {})), result("c1", "the contents of a"), user("and go on"))
    model = Scripted(said("Done.", expect=expect))

    if not complaint:
        assert (await answer(model, turns)).parts == (Text("Done."),)
    else:
        with pytest.raises(ModelError, match=complaint):
            await heard(model, turns)


async def test_parallel_conversations_get_their_own_answers_in_any_order():
    model = Scripted(
        said("main 1"),
        said("a 1", prompt="look at a"),
        said("b 1", prompt="look at b"),
        said("longer 1", prompt="look at a.py"),
        said("a 2", prompt="look at a"),
        said("main 2"),
        said("judge", system="You judge"),
    )
    order = ["b", "main", "a", "a.py", "a", "main"]

    found = [
        (await answer(model, asked("the task" if name == "main" else f"Please look at {name}"))).parts for name in order
    ]

    assert found == [(Text(t),) for t in ("b 1", "main 1", "a 1", "longer 1", "a 2", "main 2")]
    assert (await answer(model, asked("the task", system="You judge."))).parts == (Text("judge"),)
    assert model.left == 0


async def test_conversations_that_one_cue_fits_each_hear_it_from_the_beginning():
    model = Scripted(calls(("Read", {}), prompt="file"), said("done", prompt="file"))
    prompts = [f"file {number}" for number in range(5)]

    first = await asyncio.gather(*(answer(model, asked(prompt)) for prompt in prompts))
    second = await asyncio.gather(*(answer(model, asked(prompt)) for prompt in prompts))

    assert {one.reason for one in first} == {"tools"}
    assert {one.parts for one in second} == {(Text("done"),)}


async def test_a_conversation_that_lost_its_beginning_is_known_by_its_calls():
    model = Scripted(said("main"), calls(("Read", {}, "x1"), prompt="child"), said("the child's end", prompt="child"))
    await answer(model, asked("I am a child"))

    found = await answer(model, asked("A summary.", model_turn(Use("x1", "Read", {})), result("x1", "y")))

    assert found.parts == (Text("the child's end"),)


async def test_a_conversation_that_no_cue_is_for_is_an_error():
    with pytest.raises(ModelError, match="no cue is for the conversation that begins with 'Hello'"):
        await heard(Scripted(said("x", prompt="child")), asked("Hello"))


async def test_values_of_this_machine_and_this_run_are_put_in(tmp_path):
    model = Scripted(
        calls(
            (
                "Bash",
                {
                    "command": "${python} -m x",
                    "where": ["${workspace}/a"],
                    "task_id": "${result:c0:id: (b\\w{3,5})}",
                    "as it is": "$${workspace} ${HOME} $${result:",
                },
                "c1",
            ),
            text="In ${workspace}.",
        ),
        workspace=str(tmp_path),
    )

    found = await answer(model, asked("Hello", model_turn(Use("c0", "Bash", {})), result("c0", "id: b2x4z, running")))

    assert found.parts == (
        Text(f"In {tmp_path}."),
        Use(
            "c1",
            "Bash",
            {
                "command": f"{sys.executable} -m x",
                "where": [f"{tmp_path}/a"],
                "task_id": "b2x4z",
                "as it is": "${workspace} ${HOME} ${result:",
            },
        ),
    )


@pytest.mark.parametrize(
    ("mark", "complaint"),
    [
        ("${result:c7:x}", "it wants something from the result of c7, and there is none"),
        ("${result:c0:x+}", "nothing in the result of c0 matches 'x.'"),
        ("${result:c0:(}", "is not valid"),
    ],
)
async def test_a_value_that_is_not_there_is_an_error(mark, complaint):
    turns = asked("Hello", model_turn(Use("c0", "Bash", {})), result("c0", "nothing"))

    with pytest.raises(ModelError, match=complaint):
        await heard(Scripted(calls(("Bash", {"id": mark}))), turns)


async def test_a_cue_may_be_worked_out_from_what_is_asked():
    model = Scripted(lambda given: said(f"{len(given.turns)} turns"), lambda _: calls(("Read", {}), ("Read", {})))

    assert (await answer(model, asked("a", "b"))).parts == (Text("2 turns"),)
    assert (await answer(model, asked("a"))).parts == (Use("c2_1", "Read", {}), Use("c2_2", "Read", {}))
    assert model.asked == [asked("a", "b"), asked("a")]


async def test_a_file_is_read_with_its_comments(tmp_path):
    path = written(
        tmp_path,
        "# First it looks.",
        '{"prompt": "Fix it.", "text": "I look.", "parts": [{"use": "Read", "input": {"file_path": "a"}}]}',
        "",
        '{"for": {"prompt": "child"}, "text": "Mine."}',
        '{"text": "Done.", "expect": {"c1": "x"}, "usage": {"input": 3, "output": 1}}',
    )
    model = load(path)

    assert model.name == f"scripted:{path}"
    assert read(path).prompts == ("Fix it.",)
    assert (await answer(model, asked("Hello"))).parts == (Text("I look."), Use("c1", "Read", {"file_path": "a"}))
    assert (await answer(model, asked("the child"))).parts == (Text("Mine."),)
    found = await answer(model, asked("Hello", model_turn(Use("c1", "Read", {})), result("c1", "x")))
    assert (found.parts, found.usage) == ((Text("Done."),), Usage(3, 1))


BAD = [
    pytest.param("", "is empty", id="empty"),
    pytest.param('{"text": "x"}', r"line 1: this is no recorded conversation", id="no-header"),
    pytest.param('{"ferrule": "conversation", "version": 2}', "has version 2, and this Ferrule knows 1", id="version"),
    pytest.param(HEADER + "\n{", r"line 2: this is no JSON", id="no-json"),
    pytest.param(HEADER + '\n\n{"txt": "x"}', r"line 3: .*txt", id="unknown-member"),
    pytest.param(HEADER + '\n{"reason": "bored"}', r"line 2: .*bored", id="unknown-reason"),
    pytest.param(HEADER + '\n{"fail": {"kind": "sad"}}', r"line 2: .*sad", id="unknown-kind"),
    pytest.param(HEADER + '\n{"hang": true, "again": {}}', "there can be one", id="two-ends"),
    pytest.param(HEADER + '\n{"parts": [{"id": "x"}]}', "one of `text`, `thinking` and `use`", id="empty-part"),
    pytest.param(HEADER + '\n{"parts": [{"use": "x", "text": "y"}]}', "each part has one", id="two-in-a-part"),
    pytest.param(HEADER + "\n" + "[" * 100_000, r"line 2: this is no JSON", id="deep"),
]


@each_row(("text", "complaint"), BAD)
def test_a_file_that_is_no_recording_is_refused_by_its_line(tmp_path, text, complaint):
    path = tmp_path / "talk.jsonl"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(ConfigError, match=complaint):
        load(str(path))


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path):
    (tmp_path / "raw").write_bytes(b"\xff\xfe")

    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load(str(tmp_path / "missing"))
    with pytest.raises(ConfigError, match="not UTF-8"):
        load(str(tmp_path / "raw"))


def test_a_path_may_begin_at_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    path = written(tmp_path, json.dumps({"text": "x"}))

    assert load("~/talk.jsonl").name == f"scripted:{path}"


def test_a_cue_says_for_whom_it_is():
    assert said("x", prompt="p", system="s").whom == Whom(prompt="p", system="s")
