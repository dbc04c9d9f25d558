"""`/rewind`, and what stays with the conversation: /diff, /undo, what was read, and what runs in the background."""

import os
import re
import signal

import pytest
from tests.cli.recordings import recording, start, until, written
from tests.cli.talk.terminals import Pty
from tests.cli.talk.typing_front import talk
from tests.cli.test_chat_tmux import EDIT, READ, READY, project, script, submit, terminal  # noqa: F401 - fixtures

from ferrule.models.cues import calls, said
from ferrule.models.recorder import Scripted
from ferrule.tools.threads.store import ThreadStore


def write(name, content):
    return calls(("Write", {"file_path": f"${{workspace}}/{name}", "content": content}))


def edit(name, old, new):
    return calls(("Edit", {"file_path": f"${{workspace}}/{name}", "old_string": old, "new_string": new}))


def model(tmp_path, *cues):
    return Scripted(*cues, workspace=str(tmp_path))


def told(scripted):
    """What the model was asked last, without what stands above it."""
    turns = scripted.asked[-1].turns[1:]
    return [" ".join(part.text for part in turn.parts if hasattr(part, "text")) for turn in turns]


WRITTEN = (write("a", "one\n"), said("A."), edit("a", "one", "two"), said("Two."))


async def test_a_number_of_the_list_takes_files_and_conversation_back(tmp_path):
    scripted = model(tmp_path, *WRITTEN, said("Other."))
    lines = ("write a", "edit a\nplease", "/rewind", "something else")
    front = await talk(tmp_path, scripted, *lines, answers=["2", "b"])

    shown = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "NOW", front.after("/rewind"))
    assert [row.strip() for row in shown.splitlines() if row.strip()] == [
        "1  NOW  write a  (1 file changed since)",
        "2  NOW  edit a  (1 file changed since)",
        "Files: 1 restored.",
        "restored    a",
        "1 file is as before prompt 2. /undo takes that back.",
        "The conversation is before prompt 2 now. /rewind back takes that back.",
    ]
    assert front.asked[1] == ("Go back to before prompt 2?", "bfcn")
    assert front.back == ["edit a\nplease"]
    assert (tmp_path / "a").read_text() == "one\n"
    assert told(scripted)[-2:] == ["A.", "something else"]


@pytest.mark.parametrize(
    ("key", "content", "heard"),
    [
        pytest.param("f", "one\n", "taken files back", id="files"),
        pytest.param("c", "two\n", "The files stayed as they are", id="conversation"),
        pytest.param("n", "two\n", "", id="nothing"),
    ],
)
async def test_the_model_is_told_what_it_cannot_see(tmp_path, key, content, heard):
    scripted = model(tmp_path, *WRITTEN, said("Other."))
    await talk(tmp_path, scripted, "write a", "edit a", "/rewind 2", "go on", answers=[key])

    assert (tmp_path / "a").read_text() == content
    assert heard in told(scripted)[-1]
    assert told(scripted)[-1].startswith("go on")
    assert ("edit a" in told(scripted)) == (key != "c")


async def test_a_rewind_can_be_taken_back(tmp_path):
    scripted = model(tmp_path, *WRITTEN, said("On."))
    lines = ("write a", "edit a", "/rewind 1", "/undo", "/rewind back", "/rewind back", "go on")
    front = await talk(tmp_path, scripted, *lines, answers=["b"])

    assert (tmp_path / "a").read_text() == "two\n"
    assert "Undone: rewind of a." in front.after("/undo")
    assert "nothing to take back" in front.shown
    assert told(scripted)[0].startswith("write a")
    assert "Two." in told(scripted)


@pytest.mark.parametrize(
    ("answers", "content"),
    [pytest.param(["b", "n"], "by hand\n", id="no"), pytest.param(["b", "y"], None, id="yes")],
)
async def test_what_was_changed_by_hand_is_asked_about(tmp_path, answers, content):
    def by_hand(asked):
        (tmp_path / "a").write_text("by hand\n")
        return said("A.")

    front = await talk(tmp_path, model(tmp_path, write("a", "one\n"), by_hand), "write a", "/rewind 1", answers=answers)

    assert front.asked[-1] == ("Over what you changed by hand?", "yn")
    assert ((tmp_path / "a").read_text() if (tmp_path / "a").exists() else None) == content


async def test_what_was_summed_up_gives_only_its_files_back(tmp_path):
    cues = (write("a", "one\n"), said("A."), said("Sum."))
    front = await talk(tmp_path, model(tmp_path, *cues), "write a", "/compact", "/rewind 1", answers=["f"])

    assert "was summed up" in front.after("/rewind 1")
    assert front.asked[-1] == ("Go back to before prompt 1?", "fn")
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        pytest.param("/rewind", "Nothing was said", id="nothing was said"),
        pytest.param("/rewind 7", "Nothing was said", id="no such prompt"),
        pytest.param("/rewind back", "nothing to take back", id="nothing to take back"),
    ],
)
async def test_where_nothing_was_said_there_is_nothing_to_go_back_to(tmp_path, line, words):
    front = await talk(tmp_path, model(tmp_path), line)

    assert words in front.after(line)


async def test_a_conversation_that_was_rewound_to_its_beginning_stays_the_same_one(tmp_path):
    scripted = model(tmp_path, said("One."), said("Two."))
    lines = ("one", "/rewind 1", "/dialect amp", "/rewind back", "two")
    front = await talk(tmp_path, scripted, *lines, answers=["c"])

    assert "A new conversation" not in front.shown
    assert told(scripted) == ["one", "One.", "two"]


@pytest.mark.parametrize("change", ["/permissions acceptEdits", "/dialect wayland", "/model scripted:"])
async def test_after_a_change_of_mode_dialect_or_model_all_of_it_is_still_there(tmp_path, change):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a").write_text("one\n")
    again = {"file_path": "${workspace}/a", "old_string": "two", "new_string": "three"}
    other = recording(tmp_path / "r.jsonl", {"parts": [{"use": "Edit", "input": again}]}, {"text": "Three."})
    read = calls(("Read", {"file_path": "${workspace}/a"}))
    scripted = model(folder, read, edit("a", "one", "two"), said("Two."), calls(("Edit", again)), said("Three."))
    change = change.replace("scripted:", f"scripted:{other}")
    front = await talk(folder, scripted, "edit a", change, "/diff", "edit it again", "/undo a", "/undo a")

    assert "+two" in front.after("/diff")
    assert front.shown.count("Undone: edit of a.") == 2
    assert front.asked == []
    assert (folder / "a").read_text() == "one\n"


async def test_after_continue_all_of_it_is_still_there(tmp_path):
    await talk(tmp_path, model(tmp_path, *WRITTEN), "write a", "edit a")
    scripted = model(tmp_path, edit("a", "two", "three"), said("Three."))
    front = await talk(tmp_path, scripted, "/diff", "again", "/rewind 1", resume="last", answers=["f"])

    assert "+two" in front.after("/diff")
    assert not (tmp_path / "a").exists()


async def test_after_kill_9_all_of_it_is_still_there(tmp_path, unconfined):
    folder = tmp_path / "project"
    folder.mkdir()
    wait = {"use": "Bash", "input": {"command": "echo $$ > pid; exec sleep 600"}}
    one = {"use": "Write", "input": {"file_path": "${workspace}/a", "content": "one\n"}}
    path = recording(tmp_path / "r.jsonl", {"parts": [one]}, {"parts": [wait]})
    process = start(["run", "write a", "--replay", path, "--yes"], folder)
    store = ThreadStore(os.path.join(os.environ["FERRULE_STATE"], "threads"))
    until(lambda: written(folder / "pid") and store.list(), process)  # a conversation is written behind the calls
    store.close()
    process.kill()
    process.communicate()
    os.kill(int((folder / "pid").read_text()), signal.SIGKILL)
    scripted = model(folder, edit("a", "one", "two"), said("Two."))
    front = await talk(folder, scripted, "/diff", "edit a", "/undo a", "/rewind 1", resume="last", answers=["b"])

    assert "+one" in front.after("/diff")
    assert "Undone: edit of a." in front.after("/undo a")
    assert not (folder / "a").exists()


async def test_another_mode_leaves_the_background_alone_and_another_dialect_says_what_it_stops(tmp_path, unconfined):
    server = calls(("Bash", {"command": "sleep 600", "description": "Serve", "run_in_background": True}))
    scripted = model(tmp_path, server, said("It runs."), said("Gone."))
    lines = ("serve", "/permissions acceptEdits", "/tasks", "/dialect amp", "and now?")
    front = await talk(tmp_path, scripted, *lines)

    assert "The permission mode is acceptEdits from now on." in front.after("/permissions acceptEdits")
    assert re.search(r"running +\w+ +sleep 600  \(Serve\)", front.after("/tasks"))
    assert "stopped with the session: the command" in front.after("/dialect amp")
    assert "(sleep 600)" in told(scripted)[-1]


async def test_a_mode_that_is_switched_off_is_not_changed_to(tmp_path):
    with open(os.environ["FERRULE_SETTINGS"], "w", encoding="utf-8") as file:
        file.write("[permissions]\nbypass = false\n")
    front = await talk(tmp_path, model(tmp_path), "/permissions bypassPermissions", "/permissions")

    assert "switched off in the settings" in front.after("/permissions bypassPermissions")
    assert "The permission mode is default." in front.after("/permissions")
    assert "Commands in the sandbox run without a question." in front.after("/permissions")


def test_on_the_screen_the_prompt_is_in_the_input_again(tmp_path, project, terminal):  # noqa: F811 - fixtures
    path = script(tmp_path, {"parts": [READ]}, {"parts": [EDIT]}, {"text": "Done."})
    one = terminal(["--replay", path, "--yes"], project)
    one.wait(READY)
    submit(one, "fix it")
    one.wait("Done.")
    submit(one, "/rewind")
    one.wait("Back to before which one")
    one.type("1")
    one.press("Enter")
    one.wait(r"\[c\]onversation")
    one.type("b")
    one.wait("conversation is before prompt 1")
    shown = one.wait(r"^> fix it *\n  default")
    one.press("C-u", "C-d")

    assert one.ended() == 0
    assert "restored    app.py" in shown
    assert "a - b" in (project / "app.py").read_text()


def test_on_a_terminal_that_can_do_little_the_prompt_is_printed(tmp_path, project, terminal):  # noqa: F811 - fixtures
    path = script(tmp_path, {"parts": [READ]}, {"parts": [EDIT]}, {"text": "Done."})
    one = terminal(["--replay", path, "--yes"], project, kind=Pty, TERM="dumb")
    one.wait("^> $")
    one.type("fix it\n")
    one.wait(r"Done\.\s+> $")
    one.type("/rewind\n")
    one.wait("Back to before which one.* $")
    one.type("1\n")
    one.wait(r"\[n\]othing: $")
    one.type("b\n")
    one.wait("Prompt 1: fix it")
    one.type("\x04")

    assert one.ended() == 0
    assert "a - b" in (project / "app.py").read_text()


@pytest.mark.parametrize("way", ["/exit", "ctrl-D"])
def test_whoever_leaves_is_told_what_is_stopped(tmp_path, project, terminal, unconfined, way):  # noqa: F811 - fixtures
    serve = {"use": "Bash", "input": {"command": "sleep 600", "description": "Serve", "run_in_background": True}}
    one = terminal(["--replay", script(tmp_path, {"parts": [serve]}, {"text": "It runs."}), "--yes"], project)
    one.wait(READY)
    submit(one, "serve")
    one.wait("It runs.")
    if way == "/exit":
        submit(one, "/exit")
    else:
        one.press("C-d")

    assert one.ended() == 0
    assert re.search(r"stopped\s+the command \w+ \(sleep 600\)", one.screen())


FORMATTED = calls(("Bash", {"command": "mkdir new && cp a new/b && echo two > a"}))


async def test_what_a_command_changed_is_shown_listed_undone_and_done_again(tmp_path):
    (tmp_path / "a").write_text("one\n")
    front = await talk(tmp_path, model(tmp_path, FORMATTED, said("Done.")), "format", "/diff", "/undo", "/redo")

    assert [row.strip() for row in front.after("/diff").splitlines() if row.strip()[:1] in {"+", "-"}] == [
        *("--- a/a", "+++ b/a", "-one", "+two"),
        *("--- /dev/null", "+++ b/new/b", "+one"),
    ]
    undone = "command `mkdir new && cp a new/b && echo two > a`: 2 files."
    assert f"Undone: {undone}" in front.after("/undo")
    assert f"Redone: {undone}" in front.after("/redo")
    assert ((tmp_path / "a").read_text(), (tmp_path / "new" / "b").read_text()) == ("two\n", "one\n")


async def test_a_rewind_takes_back_edits_and_commands_together(tmp_path):
    (tmp_path / "a").write_text("one\n")
    read = calls(("Read", {"file_path": "${workspace}/a"}))
    scripted = model(tmp_path, read, edit("a", "one", "0"), said("A."), FORMATTED, said("B."), edit("a", "one", "1"))
    lines = ("edit", "format", "/rewind 1", "/undo", "/rewind 2")
    front = await talk(tmp_path, scripted, *lines, answers=["f", "f"])

    rows = [row.strip() for row in front.after("/rewind 1").splitlines() if row.strip()]
    assert rows[0] == "Files: 1 restored, 1 removed."
    assert sorted(row.split()[1] for row in rows[1:4]) == ["a", "new/", "new/b"]
    assert ((tmp_path / "a").read_text(), (tmp_path / "new").exists()) == ("0\n", False)


async def test_where_only_git_was_moved_it_is_said_how_it_is_moved_back(tmp_path, unconfined):
    commit = calls(
        ("Bash", {"command": "git init -q . && git -c user.name=n -c user.email=e commit -q --allow-empty -m m"})
    )
    again = calls(("Bash", {"command": "git -c user.name=n -c user.email=e commit -q --allow-empty -m n"}))
    scripted = model(tmp_path, commit, said("A."), again, said("B."))
    front = await talk(tmp_path, scripted, "begin", "commit", "/rewind 2", answers=["n"])

    assert "git " in front.after("/rewind 2")


async def test_an_undo_that_takes_nothing_back_does_not_claim_it(tmp_path, unconfined):
    commit = calls(
        ("Bash", {"command": "git init -q . && git -c user.name=n -c user.email=e commit -q --allow-empty -m m"})
    )
    again = calls(("Bash", {"command": "git -c user.name=n -c user.email=e commit -q --allow-empty -m n"}))
    scripted = model(tmp_path, commit, said("A."), again, said("B."), said("C."))
    front = await talk(tmp_path, scripted, "begin", "commit", "/undo", "go on")

    seen = " ".join(front.after("/undo").split())
    assert seen.startswith("Nothing was taken back: command `git -c user.name=n")
    assert "`git update-ref" in seen
    assert not any("has undone" in words for words in told(scripted))


async def test_a_prompt_that_a_command_has_made_is_listed_and_put_back_as_it_was_typed(tmp_path):
    front = await talk(tmp_path, model(tmp_path, said("Written.")), "/init", "/rewind", answers=["1", "c"])

    assert re.search(r"1  \S+ \S+  /init$", front.after("/rewind"), re.MULTILINE)
    assert front.back == ["/init"]


async def test_a_conversation_that_goes_on_shows_what_was_typed_for_its_prompts(tmp_path):
    await talk(tmp_path, model(tmp_path, said("Written."), said("Two.")), "/init", "go on")
    front = await talk(tmp_path, model(tmp_path), "/rewind", answers=[""], resume="last")

    assert [row for row in front.shown.split("\n> /rewind")[0].splitlines() if row.startswith("> ")] == [
        "> /init",
        "> go on",
    ]
    assert re.search(r"1  \S+ \S+  /init$", front.after("/rewind"), re.MULTILINE)
