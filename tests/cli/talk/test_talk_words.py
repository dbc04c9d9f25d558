"""A call in a few words, where the answer itself says how it went."""

import pytest

from ferrule.cli.talk.events import about, find_new_errors, left_running, outcome
from ferrule.core.call import Failure, Reply


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

    assert find_new_errors(reply) == ["New errors after the edit (ty):", "  1:2: No."]


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


@pytest.mark.parametrize(
    ("text", "found", "words"),
    [
        pytest.param("Found 2 files\na.py\nb.py", (2, "file"), "2 files", id="files"),
        pytest.param("a.py\n\n(more)", (70, "file"), "70 files", id="shown-or-not"),
        pytest.param("a.py:1:x\n--\na.py:9:x", (2, "line"), "2 lines", id="matching-lines"),
        pytest.param("No files found", (0, "file"), "No files found", id="nothing"),
        pytest.param("a.py", (1, "file"), "a.py", id="one"),
        pytest.param("     1→hello", (1, "line"), "1 line", id="the-only-line-of-a-file"),
    ],
)
def test_a_search_is_told_by_what_it_has_found(text, found, words):
    assert outcome(Reply(id="1", name="Grep", status="done", result=text, found=found)) == (True, words)


def test_the_lines_of_a_command_are_told_apart():
    assert (
        about({"command": "cat > x <<'END'\n  hello  you\n\nEND\nwc x"}, "/w")
        == "cat > x <<'END' ↵ hello you ↵ END ↵ wc x"
    )
    assert about({"command": "make \n"}, "/w") == "make"


@pytest.mark.parametrize(
    "text",
    [
        "Command running in background with ID: b12abc. Use TaskOutput to read its output.",
        "Command did not complete within its 3s timeout and was moved to the background with ID: b12abc. Use it.",
        "some output\n\nThe command goes on in the background after 3 seconds, as task b12abc (process 12).",
        "Output: hi\n\nBackground PIDs: 12 (read_it reads what it prints, and Stop with the task_id b12abc stops it)",
    ],
)
def test_a_command_that_goes_on_is_not_told_as_one_that_is_done(text):
    assert left_running(Reply(id="1", name="Bash", status="done", result=text)) == "in the background, as b12abc"
    assert left_running(Reply(id="1", name="Bash", status="done", result="Done.")) == ""


@pytest.mark.parametrize(
    ("code", "words"),
    [
        pytest.param("denied-by-rule", "`rm x` is denied by Bash(rm:*).", id="by-a-rule"),
        pytest.param("not-in-mode", "`rm x` is denied by Bash(rm:*).", id="by-the-mode"),
        pytest.param("not-allowed", "not allowed", id="by-the-user-who-knows-why"),
    ],
)
def test_why_a_call_was_refused_is_told_to_a_user_who_was_not_asked(code, words):
    why = Failure("`rm x` is denied by Bash(rm:*).", code)

    assert outcome(Reply(id="1", name="Bash", status="rejected-by-user", error=why)) == (False, words)


def test_a_plan_that_was_shown_is_not_shown_again_as_a_row():
    assert about({"plan": "# The plan\n\n1. Read"}, "/w") == ""
    assert about({"words": "one\ntwo"}, "/w") == "one two"
