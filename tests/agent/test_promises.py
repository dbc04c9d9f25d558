"""A run in which nothing was done is no success, and a plain answer to a question is one."""

from pathlib import Path
from typing import Any

import pytest

from ferrule.agent.request import is_promise, without_numbers
from ferrule.models.cues import Header, calls, said
from ferrule.models.recorder import Scripted
from tests.rows import each_row

from .stage import Stage, check_valid, words

CODE = "Here it is:\n\n```python\ndef f():\n    return 1\n```"
PROMISES = [
    pytest.param("I will read the file and fix the function.", "Fix f in a.py.", id="i-will"),
    pytest.param("First, let me look at the tests.", "Fix f in a.py.", id="let-me"),
    pytest.param("The bug is in f.\n\nI'll now update it.", "Mend the bug.", id="at-the-end"),
    pytest.param("I’m going to run the tests.", "Run the tests.", id="a-round-apostrophe"),
    pytest.param("Here is the corrected call:", "Mend it.", id="nothing-behind-a-colon"),
    pytest.param(CODE, "f in a.py returns 2, and must return 1.", id="code-for-a-file-that-is-named"),
    pytest.param("I will fix it.", "f in a.py fails for an empty list.", id="a-list-is-no-order-to-list"),
]
ANSWERS = [
    pytest.param("I will read the file first.", "What will you do?", id="a-question"),
    pytest.param("I will read the file, then edit it.", "Plan how to mend a.py.", id="a-plan"),
    pytest.param("It adds two numbers.", "Explain a.py", id="an-explanation"),
    pytest.param("I will look at f first.", "Please tell me how you would mend a.py.", id="how-it-would"),
    pytest.param("I will read it again.", "Mend nothing in a.py, do not change it.", id="no-change"),
    pytest.param("Understood.", "a.py is generated, leave it alone.", id="a-remark"),
    pytest.param("I can do that. Shall I change a.py as well?", "Mend the bug.", id="it-asks-back"),
    pytest.param("Done. Let me know if I should run the tests too.", "Mend the bug.", id="an-offer"),
    pytest.param("Paris.", "Name the capital of France.", id="a-fact"),
    pytest.param(CODE, "Write a function f that returns 1.", id="code-for-no-file"),
    pytest.param(CODE, "Show me f of a.py.", id="code-that-was-asked-for"),
    pytest.param("I changed f. I will not touch the rest.", "Mend a.py.", id="what-it-will-not-do"),
    pytest.param("", "Mend a.py.", id="nothing"),
]


@pytest.mark.parametrize(("answer", "prompt"), PROMISES)
def test_an_answer_that_only_says_what_comes_next_does_nothing(tmp_path, answer, prompt):
    (tmp_path / "a.py").touch()

    assert is_promise(answer, prompt, str(tmp_path), has_changed=False)


@each_row(("answer", "prompt"), ANSWERS)
def test_an_answer_in_words_is_one(tmp_path, answer, prompt):
    (tmp_path / "a.py").touch()

    assert not is_promise(answer, prompt, str(tmp_path), has_changed=False)


SMALL = Header(model="tiny", window=8_000, most_output=1_000)


def small(workspace: Path, *cues: Any) -> Stage:
    return Stage(workspace, model=Scripted(*cues, header=SMALL, workspace=str(workspace)))


async def test_a_promise_gets_one_word_and_then_the_call_counts(tmp_path):
    read = calls(("Read", {"file_path": "${workspace}/a.txt"}))
    async with small(tmp_path, said("I will read it."), read, said("It says hello.")) as stage:
        stage.write("a.txt", "hello\n")
        ended = await stage.run("Open it")

        assert (ended.reason, [reply.status for reply in stage.replies]) == ("end", ["done"])
        assert "made no call" in words(stage.agent.turns[2])
        check_valid(stage.agent.turns)


async def test_a_promise_after_that_word_ends_the_run_as_no_success(tmp_path):
    async with small(tmp_path, said("I will read a.txt."), said("Now I will read it.")) as stage:
        ended = await stage.run("Open a.txt")

        assert (ended.reason, ended.text) == ("undone", "Now I will read it.")
        assert "Nothing was done" in ended.error


async def test_a_word_is_said_once_in_a_row_and_again_after_a_call(tmp_path):
    read = calls(("Read", {"file_path": "${workspace}/a.txt"}))
    cues = (said("I will read it."), read, said("Now I will check it."), said("All is well."))
    async with small(tmp_path, *cues) as stage:
        stage.write("a.txt", "hello\n")
        ended = await stage.run("Open it")

        assert (ended.reason, ended.text) == ("end", "All is well.")


async def test_a_model_that_makes_calls_of_its_own_is_taken_at_its_word(tmp_path):
    async with Stage(tmp_path, said("Gladly. I'll look into anything else that you need.")) as stage:
        ended = await stage.run("Thanks, I will try it out.")

        assert (ended.reason, len(stage.agent.turns)) == ("end", 2)


@pytest.mark.parametrize(
    ("shown", "plain"),
    [
        pytest.param("1\ta\n2\t  b\n3\t", "a\n  b", id="tabs"),
        pytest.param("     1→a\n     2→b", "a\nb", id="arrows"),
        pytest.param("1\ta\n3\tb", "1\ta\n3\tb", id="not-all-lines"),
        pytest.param("a\nb", "a\nb", id="no-numbers"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_a_file_is_shown_without_the_numbers_of_its_lines(shown, plain):
    assert without_numbers(shown) == plain
