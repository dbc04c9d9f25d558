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
