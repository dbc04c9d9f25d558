"""A call in a few words, where the answer itself says how it went."""

import pytest

from ferrule.cli.talk.words import noticed, outcome
from ferrule.core.reply import Reply


@pytest.mark.parametrize(
    ("text", "ok", "words"),
    [
        pytest.param("2 checks in 0.4 s: 2 passed.\n✓ a", True, "2 checks in 0.4 s: 2 passed", id="passed"),
        pytest.param("1 check in 0.4 s: 1 failed.\n✗ a", False, "1 check in 0.4 s: 1 failed", id="failed"),
        pytest.param(
            "2 checks in 9.0 s: 1 passed, 1 missing.", False, "2 checks in 9.0 s: 1 passed, 1 missing", id="missing"
        ),
        pytest.param("one\ntwo", True, "2 lines", id="anything-else"),
    ],
)
def test_checks_are_told_by_what_came_of_them(text, ok, words):
    assert outcome(Reply(id="1", name="Check", status="done", result=text)) == (ok, words)


def test_new_errors_are_rows_and_other_notes_are_not():
    reply = Reply(
        id="1", name="Edit", status="done", result="", notes=("Other.", "New errors after the edit (ty):\n  1:2: No.")
    )

    assert noticed(reply) == ["New errors after the edit (ty):", "  1:2: No."]


@pytest.mark.parametrize(
    ("text", "lines", "words"),
    [
        pytest.param(
            "<output>\na\n</output>\n<exit_code>0</exit_code>", 1, "1 line", id="what-a-family-says-around-it"
        ),
        pytest.param("1\n2\n\n... [truncated 9 chars] ...\n\n9\n", 9, "9 lines", id="cut"),
        pytest.param("<output></output>\n<exit_code>0</exit_code>", 0, "", id="nothing"),
        pytest.param("hello", 1, "hello", id="one"),
    ],
)
def test_the_lines_of_a_command_are_those_that_it_printed(text, lines, words):
    assert outcome(Reply(id="1", name="Bash", status="done", result=text, lines=lines)) == (True, words)
