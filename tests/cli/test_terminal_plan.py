"""A plan at the terminal: shown whole before anybody is asked, with the rules that a yes brings."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from ferrule.cli.prompts import TerminalAsker
from ferrule.core.access import Access
from ferrule.permissions import Answer, Question

PLAN = "# Plan\n" + "".join(f"{number}. Do it.\n" for number in range(60)) + "x" * 300 + " \x1b[2J\u202eend\n"


def question(mode: str = "default") -> Question:
    return Question(
        kind="plan",
        call_id="1",
        name="ExitPlanMode",
        tool="exit_plan",
        summary="approve the plan in .ferrule/plans/a.md and leave plan mode",
        touches=(),
        input={"plan": PLAN, "mode": mode},
        effects=tuple(f"allows Bash(make t{number}) in this session" for number in range(9)),
    )


@pytest.fixture
def typed() -> Iterator[Any]:
    """A terminal at which somebody types this."""
    opened = []

    def at(text: str) -> TerminalAsker:
        reading, writing = os.pipe()
        os.write(writing, text.encode())
        os.close(writing)
        opened.append(os.fdopen(reading))
        return TerminalAsker(opened[-1])

    yield at
    for one in opened:
        one.close()


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        pytest.param("y\n", Answer(allow=True), id="yes"),
        pytest.param("a\n", Answer(allow=True, values={"mode": "acceptEdits"}), id="edits"),
        pytest.param("n\n", Answer(allow=False), id="no"),
        pytest.param("\n", Answer(allow=False), id="nothing"),
        pytest.param("", Answer(allow=False), id="the-end"),
        pytest.param("always\nn\n", Answer(allow=False), id="there-is-no-always"),
    ],
)
async def test_the_plan_is_shown_whole_and_then_asked_about(typed, capsys, text, answer):
    assert await typed(text).ask(question()) == answer
    screen = capsys.readouterr().err

    assert screen.index("59. Do it.") < screen.index("Approve the plan?")
    assert "x" * 300 + " \\x1b[2J\\u202eend" in screen
    assert "allows Bash(make t8) in this session" in screen
    assert "\x1b" not in screen


async def test_the_user_s_words_reach_the_model(typed, capsys):
    answer = await typed("t\ntests first\n").ask(question())

    assert not answer.allow
    assert "says: tests first" in answer.message


async def test_edits_are_offered_only_where_they_ask_by_now(typed, capsys):
    assert await typed("a\nn\n").ask(question("dontAsk")) == Answer(allow=False)
    assert "[a]ccept" not in capsys.readouterr().err


async def test_a_plan_is_edited_in_the_editor_and_then_asked_about_again(typed, capsys, monkeypatch):
    monkeypatch.setenv("VISUAL", 'sh -c \'echo "# Less" > "$0"\'')

    answer = await typed("e\ny\n").ask(question())

    assert answer == Answer(allow=True, input={"plan": "# Less\n"})
    assert capsys.readouterr().err.count("Approve the plan?") == 2


async def test_without_an_editor_a_plan_stays_as_it_is(typed, capsys, monkeypatch):
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)

    assert await typed("e\nn\n").ask(question()) == Answer(allow=False)
    assert "Set VISUAL or EDITOR to edit the plan." in capsys.readouterr().err


async def test_a_command_is_typed_anew_where_there_is_no_editor(typed, capsys, monkeypatch):
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    one = Question(
        kind="call",
        call_id="1",
        name="Bash",
        summary="run `make`",
        touches=(Access.command("make", "/w"),),
        input={"command": "make"},
    )

    answer = await typed("e\nmake -n\n").ask(one)

    assert answer == Answer(allow=True, input={"command": "make -n"})
    assert "[e]dit it first" in capsys.readouterr().err
