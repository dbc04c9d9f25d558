"""Who answers: everybody who can be asked keeps one contract, and says no unless somebody said yes."""

import asyncio
import io
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ferrule.cli.prompts import TerminalAsker
from ferrule.core.access import Access
from ferrule.permissions import NO, YES, Answer, Asker, CallbackAsker, Everybody, Nobody, Question
from tests.rows import each_row
from tests.scripted import ALWAYS, Scripted

LIMIT_SECONDS = 10


def question(kind: Any = "call", call_id: str = "1") -> Question:
    return Question(
        kind=kind,
        call_id=call_id,
        name="create_file",
        summary="write a.txt",
        touches=(Access.write("/w/a.txt"),),
        folder="/w" if kind == "folder" else "",
    )


async def soon(question: Question) -> bool:
    await asyncio.sleep(0)
    return True


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Somebody at the keyboard: what they type is there to be read."""
    end, keyboard = os.pipe()
    with os.fdopen(end) as stdin, os.fdopen(keyboard, "w") as keys:
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(sys, "stderr", io.StringIO())

        def write(text: str) -> None:
            keys.write(text)
            keys.flush()

        yield write


ASKERS = [
    pytest.param(Nobody, id="nobody"),
    pytest.param(Everybody, id="everybody"),
    pytest.param(lambda: CallbackAsker(lambda question: True), id="function"),
    pytest.param(lambda: CallbackAsker(lambda question: ALWAYS), id="function-with-an-answer"),
    pytest.param(lambda: CallbackAsker(soon), id="coroutine-function"),
    pytest.param(lambda: Scripted(YES, NO, ALWAYS, YES), id="scripted"),
    pytest.param(TerminalAsker, id="terminal"),
]


@pytest.mark.parametrize("make", ASKERS)
async def test_every_asker_answers_every_question_with_a_plain_yes_or_no(make, typed):
    asker: Asker = make()
    answers = []
    async with asyncio.timeout(LIMIT_SECONDS):
        for kind, line in (("call", "y\n"), ("folder", "n\n"), ("call", "a\n"), ("folder", "\n")):
            typed(line)
            answers.append(await asker.ask(question(kind)))

    kinds = {tuple(map(type, (answer, answer.allow, answer.always, answer.message))) for answer in answers}
    assert kinds == {(Answer, bool, bool, str)}


@pytest.mark.parametrize("make", ASKERS)
async def test_no_asker_is_harmed_by_being_cancelled(make, typed):
    asker: Asker = make()
    waiting = asyncio.ensure_future(asker.ask(question()))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting], timeout=LIMIT_SECONDS)
    typed("y\n")

    async with asyncio.timeout(LIMIT_SECONDS):
        answer = await asker.ask(question())
    assert type(answer) is Answer


@pytest.mark.parametrize("kind", ["call", "folder"])
async def test_nobody_says_no(kind):
    assert (await Nobody().ask(question(kind))).allow is False


@pytest.mark.parametrize(("kind", "answer"), [("call", YES), ("folder", NO)])
async def test_everybody_allows_calls_and_opens_no_folder(kind, answer):
    assert await Everybody().ask(question(kind)) == answer


@each_row(
    ("said", "answer"),
    [
        pytest.param(True, YES, id="true"),
        pytest.param(False, NO, id="false"),
        pytest.param(ALWAYS, ALWAYS, id="answer"),
        pytest.param(Answer(allow=False, message="Not now."), Answer(allow=False, message="Not now."), id="reason"),
        pytest.param(None, NO, id="nothing"),
        pytest.param("yes", NO, id="text"),
        pytest.param("n", NO, id="text-that-means-no"),
        pytest.param(1, NO, id="one"),
        pytest.param([True], NO, id="list"),
    ],
)
async def test_a_function_s_word_is_a_yes_only_when_it_is_true_or_an_answer(said, answer):
    async def later(_: Question) -> Any:
        return said

    assert [await CallbackAsker(lambda _: said).ask(question()), await CallbackAsker(later).ask(question())] == [
        answer,
        answer,
    ]


async def test_what_a_function_raises_is_not_taken_for_an_answer():
    def broken(_: Question) -> bool:
        raise LookupError("no terminal")

    with pytest.raises(LookupError):
        await CallbackAsker(broken).ask(question())


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        pytest.param("y\n", YES, id="y"),
        pytest.param("Yes\n", YES, id="yes"),
        pytest.param("a\n", ALWAYS, id="a"),
        pytest.param("always\n", ALWAYS, id="always"),
        pytest.param("n\n", NO, id="n"),
        pytest.param("\n", NO, id="nothing"),
        pytest.param("yess\ny\n", YES, id="almost-is-asked-again"),
        pytest.param("?\nok then\nno\n", NO, id="something-else-is-asked-again"),
    ],
)
async def test_a_person_at_the_terminal_is_understood(typed, line, answer):
    typed(line)

    async with asyncio.timeout(LIMIT_SECONDS):
        assert await TerminalAsker().ask(question()) == answer


async def test_the_end_of_input_is_a_no(monkeypatch):
    end, keyboard = os.pipe()
    os.close(keyboard)
    with os.fdopen(end) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)

        async with asyncio.timeout(LIMIT_SECONDS):
            assert await TerminalAsker().ask(question()) == NO


async def test_a_script_remembers_what_was_asked():
    asker = Scripted(YES, NO)
    answers = [await asker.ask(question(call_id="1")), await asker.ask(question("folder", "2"))]

    assert (answers, [(asked.call_id, asked.kind) for asked in asker.questions]) == (
        [YES, NO],
        [("1", "call"), ("2", "folder")],
    )


async def test_a_question_beyond_the_script_is_a_fault():
    with pytest.raises(AssertionError, match=r"write a\.txt"):
        await Scripted().ask(question())
