"""Asking the user to choose, through the whole flow, in the words of the families that have a tool for it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.rows import each_row

from ferrule import Answer, Engine, Event, Question
from ferrule.core.call import Blocked, Failure, Reply
from ferrule.core.services import Choice, Option, People
from ferrule.permissions import Choosers, Nobody

OPTIONS = [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]
WHICH = {"question": "Which colour?", "header": "Colour", "options": OPTIONS, "multiSelect": False}
SOME = {"question": "Which ones?", "header": "Some", "options": OPTIONS, "multiSelect": True}


@asynccontextmanager
async def session(tmp_path, ask: Any, dialect: str = "claude", **rest: Any) -> AsyncIterator[Engine]:
    async with Engine(tmp_path, dialect=dialect, ask=ask, **rest) as engine:
        flow = engine._flow
        people = Choosers(
            flow.gate.put,
            lambda call_id, name, said: flow.emit(Blocked(id=call_id, name=name, at=0.0, question=said)),
            lambda: engine.policy.standing.asks == "deny",
        )
        engine._services.put(People, people)
        yield engine


def failure(reply: Reply) -> Failure:
    assert reply.error is not None, reply
    return reply.error


def answering(**values: Any):
    """Somebody who answers this, and the questions that they were asked."""
    asked: list[Question] = []

    def answer(question: Question) -> Answer:
        asked.append(question)
        return Answer(allow=True, values=values)

    return asked, answer


async def test_the_user_is_asked_and_the_model_reads_the_answers(tmp_path):
    asked, answer = answering(**{"Which colour?": "Blue", "Which ones?": ["Red", "my own"]})
    seen: list[Event] = []
    async with session(tmp_path, answer, on_event=seen.append) as engine:
        reply = await engine.call("AskUserQuestion", questions=[WHICH, SOME])

    assert (reply.status, reply.notes) == ("done", ())
    assert reply.text == 'The user has answered:\n- "Which colour?": Blue\n- "Which ones?": Red, my own'
    (question,) = asked
    assert (question.kind, question.name, question.tool) == ("choose", "AskUserQuestion", "ask_user")
    assert question.choices == (
        Choice(question="Which colour?", header="Colour", options=(Option("Red", "warm"), Option("Blue", "cold"))),
        Choice(
            question="Which ones?",
            header="Some",
            options=(Option("Red", "warm"), Option("Blue", "cold")),
            multiple=True,
        ),
    )
    waiting = [event for event in seen if isinstance(event, Blocked)]
    assert [event.question for event in waiting] == ["The model asks: Which colour? Which ones?"]
    assert question.call_id == waiting[0].id == reply.id


async def test_a_question_may_be_left_open(tmp_path):
    _, answer = answering(**{"Which ones?": "blue, red"})
    async with session(tmp_path, answer) as engine:
        reply = await engine.call("AskUserQuestion", questions=[WHICH, SOME])

    assert '"Which colour?": (left open; decide yourself)\n- "Which ones?": Blue, Red' in reply.text


@pytest.mark.parametrize(
    ("dialect", "name", "question", "values", "said"),
    [
        pytest.param(
            "codex",
            "request_user_input",
            {"id": "c", "header": "Colour", "question": "Which?", "options": OPTIONS},
            {"c": "Red"},
            {"answers": {"c": {"answers": ["Red"]}}},
            id="codex",
        ),
        pytest.param(
            "gemini",
            "ask_user",
            {"question": "Which?", "header": "C", "type": "choice", "options": OPTIONS, "multiSelect": True},
            {"Which?": ["Red", "Blue"]},
            {"answers": {"Which?": "Red, Blue"}},
            id="gemini-choice",
        ),
        pytest.param(
            "gemini",
            "ask_user",
            {"question": "Why?", "header": "Reason", "type": "text", "placeholder": "a word"},
            {"Why?": "because"},
            {"answers": {"Why?": "because"}},
            id="gemini-text",
        ),
        pytest.param(
            "gemini",
            "ask_user",
            {"question": "Sure?", "header": "Sure", "type": "yesno"},
            {"Sure?": True},
            {"answers": {"Sure?": "Yes"}},
            id="gemini-yes-or-no",
        ),
        pytest.param(
            "opencode",
            "question",
            {"question": "Which?", "header": "A header of thirty characters", "options": OPTIONS},
            {"Which?": "green"},
            'The user has answered:\n- "Which?": green',
            id="opencode",
        ),
    ],
)
async def test_each_family_asks_and_reads_in_its_own_words(tmp_path, dialect, name, question, values, said):
    _, answer = answering(**values)
    async with session(tmp_path, answer, dialect) as engine:
        reply = await engine.call(name, questions=[question])

    assert (reply.status, reply.result, reply.notes) == ("done", said, ())


async def test_what_the_model_answers_itself_counts_for_nothing(tmp_path):
    _, answer = answering(**{"Which colour?": "Blue"})
    async with session(tmp_path, answer) as engine:
        reply = await engine.call(
            "AskUserQuestion", questions=[WHICH], answers={"Which colour?": "Red"}, metadata={"source": "x"}
        )

    assert reply.text.endswith('"Which colour?": Blue')
    assert reply.notes == ("answers was ignored: only the user answers.",)


async def test_a_long_header_is_cut_and_not_refused(tmp_path):
    asked, answer = answering(**{"Which colour?": "Blue"})
    async with session(tmp_path, answer) as engine:
        reply = await engine.call("AskUserQuestion", questions=[{**WHICH, "header": "A header that is long"}])

    assert (reply.status, reply.notes) == (
        "done",
        ("The header 'A header that is long' was cut to 12 characters.",),
    )
    assert asked[0].choices[0].header == "A header tha"


@each_row(
    ("questions", "message"),
    [
        pytest.param([], "questions: has 0 questions; ask 1 to 4.", id="none"),
        pytest.param(
            [{**WHICH, "question": str(number)} for number in range(5)],
            "questions: has 5 questions; ask 1 to 4.",
            id="five",
        ),
        pytest.param(
            [{**WHICH, "options": OPTIONS[:1]}], "questions[0].options: has 1 options; offer 2 to 4.", id="one-option"
        ),
        pytest.param(
            [{**WHICH, "options": [{"label": str(number), "description": ""} for number in range(5)]}],
            "questions[0].options: has 5 options; offer 2 to 4.",
            id="five-options",
        ),
        pytest.param(
            [{**WHICH, "options": [*OPTIONS, {"label": " RED\n", "description": ""}]}],
            "questions[0].options: two have the label 'red'.",
            id="same-labels",
        ),
        pytest.param(
            [{**WHICH, "options": [*OPTIONS, {"label": "\x1b", "description": ""}]}],
            "questions[0].options: a label is empty.",
            id="no-label",
        ),
        pytest.param(
            [{**WHICH, "options": [*OPTIONS, {"label": "x" * 201, "description": "y" * 1001}]}],
            "questions[0].options: a label has 201 characters; 200 is the most.\n"
            "questions[0].options: a description has 1,001 characters; 1,000 is the most.",
            id="long-options",
        ),
        pytest.param([WHICH, WHICH], "questions: two have the question 'Which colour?'.", id="same-questions"),
        pytest.param([{**WHICH, "question": " "}], "questions[0].question: is empty.", id="no-question"),
        pytest.param(
            [{**WHICH, "question": "x" * 2001}],
            "questions[0].question: has 2,001 characters; 2,000 is the most.",
            id="long-question",
        ),
    ],
)
async def test_what_cannot_be_asked_is_refused_before_anybody_is(tmp_path, questions, message):
    asked, answer = answering()
    async with session(tmp_path, answer) as engine:
        reply = await engine.call("AskUserQuestion", questions=questions)

    assert (reply.status, failure(reply).error_code, asked) == ("error", "bad-arguments", [])
    assert message in failure(reply).message


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        pytest.param(("a", "a"), "two have the id 'a'", id="same"),
        pytest.param(("Which 1?", "b"), "'Which 1?' is the id of one and the question of another", id="a-question-too"),
    ],
)
async def test_answers_can_be_told_apart(tmp_path, ids, message):
    _, answer = answering()
    questions = [
        {"id": one, "header": "h", "question": f"Which {number}?", "options": OPTIONS} for number, one in enumerate(ids)
    ]
    async with session(tmp_path, answer, "codex") as engine:
        reply = await engine.call("request_user_input", questions=questions)

    assert message in reply.text


@pytest.mark.parametrize(
    ("ask", "rest", "code", "start"),
    [
        pytest.param(Nobody(), {}, "nobody-to-ask", "There is nobody to ask in this session. Decide", id="nobody"),
        pytest.param(
            lambda question: Answer(allow=True, values={"Which colour?": "Red"}),
            {"permission_mode": "dontAsk"},
            "nobody-to-ask",
            "The user does not want to be asked in this session. Decide",
            id="a-mode-that-asks-nothing",
        ),
        pytest.param(lambda question: False, {}, "not-answered", "The user did not answer.", id="no"),
        pytest.param(lambda question: True, {}, "not-answered", "The user did not answer.", id="a-yes-without-answers"),
        pytest.param(
            lambda question: Answer(allow=True, values={"else": "x", "Which colour?": None}),
            {},
            "not-answered",
            "The user did not answer.",
            id="nothing-that-was-asked",
        ),
        pytest.param(lambda question: 1 / 0, {}, "not-answered", "The user did not answer.", id="a-host-that-fails"),
    ],
)
async def test_who_gets_no_answer_is_told_to_decide(tmp_path, ask, rest, code, start):
    async with session(tmp_path, ask, **rest) as engine:
        reply = await engine.call("AskUserQuestion", questions=[WHICH])

    assert (reply.status, failure(reply).error_code) == ("error", code)
    assert failure(reply).message.startswith(start)
    assert "which assumption you have made" in failure(reply).message


async def test_a_session_without_people_says_so(tmp_path):
    async with Engine(tmp_path, dialect="claude") as engine:
        engine._services.put(People, People())
        reply = await engine.call("AskUserQuestion", questions=[WHICH])

    assert failure(reply).error_code == "nobody-to-ask"


async def test_a_person_may_take_longer_than_any_call_and_can_be_given_up(tmp_path):
    began, ends = asyncio.Event(), asyncio.Event()

    async def slow(question: Question) -> Answer:
        began.set()
        await ends.wait()
        return Answer(allow=True, values={"Which colour?": "Red"})

    async with session(tmp_path, slow) as engine:
        assert engine.registry.resolve("AskUserQuestion").tool.timed is False
        running = asyncio.create_task(engine.call("AskUserQuestion", questions=[WHICH]))
        await asyncio.wait_for(began.wait(), 30)
        engine.cancel()
        first = await asyncio.wait_for(running, 30)
        ends.set()
        second = await engine.call("AskUserQuestion", questions=[WHICH])

    assert (first.status, second.status) == ("cancelled", "done")


async def test_what_is_asked_steers_no_screen(tmp_path):
    asked, answer = answering(**{"Which?[2J\nNow": "Red"})
    options = [{"label": "Red\x1b[0m", "description": "a\nb\u202e"}, {"label": "Blue", "description": ""}]
    evil = {"question": "Which?\x1b[2J\nNow", "header": "\x07h", "options": options, "multiSelect": False}
    async with session(tmp_path, answer) as engine:
        await engine.call("AskUserQuestion", questions=[evil])

    (question,) = asked
    assert question.choices[0] == Choice(
        question="Which?[2J\nNow", header="h", options=(Option("Red[0m", "a b"), Option("Blue"))
    )
    assert question.summary.isprintable()
