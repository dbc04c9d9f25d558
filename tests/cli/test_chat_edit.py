"""A command and a plan that are edited in their questions, at a real terminal."""

import re
import time

from tests.cli.test_chat_tmux import READY, project, script, submit, terminal  # noqa: F401 - fixtures


def press_until(one, key, words):
    """Press a key until it has answered: one that comes right behind another is no answer."""
    for _ in range(20):
        if words in one.screen():
            return
        one.type(key)
        time.sleep(0.6)
    raise AssertionError(one.screen())


RUN = {"use": "Bash", "input": {"command": "touch one", "description": "Touch"}}
PLAN = {"use": "ExitPlanMode", "input": {"plan": "# Plan\n\n1. Do it.\n"}}


def test_a_command_is_edited_in_the_composer_and_what_was_typed_there_comes_back(
    tmp_path,
    project,  # noqa: F811 - fixtures
    terminal,  # noqa: F811
    unconfined,
):
    one = terminal(
        ["--replay", script(tmp_path, {"parts": [RUN]}, {"expect": "`touch two`", "text": "I see."})], project
    )
    one.wait(READY)
    submit(one, "touch it")
    one.wait(r"\[e\]dit it first")
    one.type("e")
    one.wait(r"^> touch one$")
    one.press("BSpace", "BSpace", "BSpace")
    one.type("two")
    one.wait(r"^> touch two$")
    one.press("Enter")
    shown = one.wait("I see.")

    assert "→ yes, changed to:" in shown
    assert re.search(r"✓ Bash touch two", shown)
    assert sorted(path.name for path in project.iterdir()) == ["app.py", "two"]


def test_a_plan_is_edited_in_the_editor_shown_again_and_approved(tmp_path, project, terminal):  # noqa: F811 - fixtures
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nprintf '# Plan\\n\\n1. Do less.\\n' > \"$1\"\n")
    editor.chmod(0o755)
    path = script(tmp_path, {"parts": [PLAN]}, {"expect": "1. Do less.", "text": "I carry it out."})
    one = terminal(["--replay", path, "--permission-mode", "plan"], project, EDITOR=str(editor), VISUAL="")
    one.wait(READY)
    submit(one, "plan it")
    one.wait(r"\[a\]ccept edits too, unasked")
    one.type("e")
    shown = one.wait("as you have edited")
    one.wait(r"\[a\]ccept edits too, unasked")
    assert "Do less." in shown
    press_until(one, "a", "I carry it out.")
    one.wait(r"(?m)^  acceptEdits")

    (plan,) = (project / ".ferrule" / "plans").glob("*.md")
    assert plan.read_text() == "# Plan\n\n1. Do less.\n"


def test_where_the_terminal_can_do_little_the_editor_writes_the_command(
    tmp_path,
    project,  # noqa: F811 - fixtures
    terminal,  # noqa: F811
    unconfined,
):
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nprintf 'touch three\\n' > \"$1\"\n")
    editor.chmod(0o755)
    path = script(tmp_path, {"parts": [RUN]}, {"text": "I see."}, {"text": "Again."})
    one = terminal(["--replay", path], project, TERM="dumb", EDITOR=str(editor), VISUAL="")
    one.wait(r"^> *$")
    submit(one, "touch it")
    one.wait(r"\[e\]dit it first")
    submit(one, "e")
    one.wait("I see.")
    submit(one, "and more")
    one.wait("Again.")

    assert sorted(path.name for path in project.iterdir()) == ["app.py", "three"]
