"""`/resume`, `/threads`, `/fork`, `/rename` and `/export`: what is offered, and what becomes of a conversation."""

import json
import os
import re
import stat
import subprocess
import time

import pytest
from tests.cli.recordings import FERRULE
from tests.cli.talk.terminals import Pty
from tests.cli.talk.typing_front import talk
from tests.cli.test_chat_tmux import READY, project, script, submit, terminal  # noqa: F401 - fixtures

from ferrule.cli.talk.inventory import age
from ferrule.models.cues import said
from ferrule.models.recorder import Scripted
from ferrule.tools.threads import Item
from ferrule.tools.threads.store import ThreadStore

PARSER = "T-11111111-0000-0000-0000-000000000000"
PRICES = "T-22222222-0000-0000-0000-000000000000"
AWAY = "T-33333333-0000-0000-0000-000000000000"


def turn(role, text):
    return Item("turn", role, json.dumps({"role": role, "parts": [{"type": "text", "text": text}]}).encode(), text)


def keep(store, thread, folder, title, branch, prompt, answer):
    store.begin(thread, workspace=str(folder), title=title, model="m")
    written = Item("written", "", json.dumps(prompt).encode(), said=prompt)
    answered = turn("assistant", answer)._replace(said=answer)
    store.append(thread, [written, Item("prompt", "", b"1"), turn("user", prompt), answered], branch=branch)


@pytest.fixture
def work(tmp_path):
    folder = tmp_path.resolve() / "work"
    folder.mkdir()
    away = tmp_path.resolve() / "elsewhere"
    away.mkdir()
    now = iter(range(3))
    store = ThreadStore(
        os.path.join(os.environ["FERRULE_STATE"], "threads"), clock=lambda: time.time() - 9000 + next(now, 3)
    )
    keep(store, PARSER, folder, "Mend the parser 三", "fix/empty", "Why does it fail?", "It takes text[0].")
    keep(store, AWAY, away, "Dinner", "main", "What do we eat?", "Soup\x1b[2J.")
    keep(store, PRICES, folder, "Prices", "", "Where are prices kept?", "In prices.sql.")
    store.close()
    return folder


def model(*cues):
    return Scripted(*cues)


def heard(scripted):
    """What the model was told before the last prompt."""
    return " ".join(part.text for turn in scripted.asked[-1].turns[1:] for part in turn.parts)


@pytest.mark.parametrize(
    ("line", "answers", "told"),
    [
        pytest.param("/resume", ["1"], "In prices.sql.", id="the-newest"),
        pytest.param("/resume", ["2"], "It takes text[0].", id="the-second"),
        pytest.param("/resume", ["mend 三", "1"], "It takes text[0].", id="by-title"),
        pytest.param("/resume", ["fix/em", "1"], "It takes text[0].", id="by-branch"),
        pytest.param("/resume", ["sql", "1"], "In prices.sql.", id="by-last-words"),
        pytest.param("/resume", ["where are", "1"], "In prices.sql.", id="by-the-last-prompt"),
        pytest.param("/resume", ["*", "elsewhere", "1"], "Soup", id="by-folder-among-all"),
        pytest.param("/resume parser", ["1"], "It takes text[0].", id="words-behind-the-command"),
        pytest.param("/resume dinner", ["1"], "Soup", id="words-of-another-folder"),
        pytest.param("/resume T-111111", [], "It takes text[0].", id="an-id"),
        pytest.param(f"/resume @{AWAY}", [], "Soup", id="a-whole-id"),
    ],
)
async def test_another_conversation_is_chosen_and_goes_on(work, line, answers, told):
    scripted = model(said("On."))
    await talk(work, scripted, line, "go on", answers=answers)

    assert told in heard(scripted)


@pytest.mark.parametrize(
    ("line", "answers", "words"),
    [
        pytest.param("/resume 2", [], "There is no conversation with the id 2:", id="a-number"),
        pytest.param("/resume T-99999999", [], "There is no conversation with the id T-99999999:", id="no-such-id"),
        pytest.param("/resume xyzzy", [], "No other conversation of any folder has “xyzzy”", id="no-such-words"),
        pytest.param("/resume", ["7", ""], "There is no number 7: they go from 1 to 2.", id="no-such-number"),
        pytest.param("/resume", [""], "", id="back"),
    ],
)
async def test_what_is_wrong_is_said_and_the_conversation_stays(work, line, answers, words):
    scripted = model(said("One."), said("Two."))
    front = await talk(work, scripted, "first", line, "second", answers=answers)

    assert words in front.after(line)
    assert heard(scripted).startswith("first One. second")


async def test_without_any_other_conversation_there_is_nothing_to_choose(tmp_path):
    front = await talk(tmp_path, model(said("One.")), "first", "/resume", "/threads")

    assert "There are no earlier conversations." in front.after("/resume")
    assert re.search(r"T-\w{8}  +1 prompt  first\n", front.after("/threads"))


async def test_a_fork_goes_on_in_a_copy_and_the_old_one_stays(work):
    scripted = model(said("One."), said("Two."), said("Three."), said("Four."))
    front = await talk(work, scripted, "first", "/fork", "second", "/threads", "/resume first", "third", answers=["1"])

    assert "belongs to the one before it" in " ".join(front.after("/fork").split())
    named = re.search(r"a copy of this conversation,\s+(T-[0-9a-f-]{36})", front.after("/fork"))
    copy = named[1] if named is not None else "no copy"
    assert front.shown.count("One.") == 2  # when it was said, and when the old one is gone on with
    assert f"{copy[:10]}    2 prompts  first (fork)" in front.after("/threads")
    assert heard(scripted) == "first One. third"


async def test_a_title_of_the_user_is_shown_wherever_threads_are(work):
    lines = ("/rename too early", "first", "/rename", "/rename  My \x1b[31m own", "/rename", "/threads")
    front = await talk(work, model(said("One.")), *lines)
    listed = subprocess.run([*FERRULE, "threads"], cwd=work, capture_output=True, text=True, check=True).stdout

    assert "Nothing was said in this conversation yet" in front.after("/rename too early")
    assert "This conversation is called “first”. /rename TITLE" in front.after("/rename")
    assert re.search(r"1 prompt  My .*own", front.after("/threads"))
    assert re.search(r"My .*own", listed)
    assert "\x1b" not in front.after("/threads") + listed


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        pytest.param("", "# first\n", id="markdown"),
        pytest.param("talk.txt", "# first\n", id="a-text"),
        pytest.param("{work}/talk.json", "{\n", id="json-and-a-whole-path"),
        pytest.param("talk.jsonl", '{"thread"', id="json-lines"),
    ],
)
async def test_a_conversation_is_written_out_for_the_user_alone(work, name, begins):
    name = name.format(work=work)
    front = await talk(work, model(said("One.")), "first", f"/export {name}".rstrip())
    (path,) = work.iterdir()

    assert (path.read_text()[: len(begins)], stat.S_IMODE(path.stat().st_mode)) == (begins, 0o600)
    assert f"Wrote {path}." in front.shown
    assert "One." in path.read_text()


@pytest.mark.parametrize(("key", "text"), [("n", "mine"), ("y", "# first")])
async def test_a_file_that_is_there_is_asked_about(work, key, text):
    (work / "a.md").write_text("mine")
    front = await talk(work, model(said("One.")), "first", "/export a.md", answers=[key])

    assert front.asked == [(f"{work}/a.md is there already. Write over it?", "yn")]
    assert (work / "a.md").read_text().startswith(text)


async def test_what_cannot_be_written_is_said(work):
    front = await talk(work, model(said("One.")), "/export", "first", "/export no/such/a.md", "/export .")

    assert "Nothing was said in this conversation yet" in front.after("/export")
    assert "a.md cannot be written: No such file or directory." in front.after("/export no/such/a.md")
    assert "is a folder. Name a file in it: /export ./NAME.md" in front.after("/export .")
    assert front.asked == []


async def test_a_conversation_that_is_not_kept_is_written_out_but_neither_named_nor_copied(work):
    with open(os.environ["FERRULE_SETTINGS"], "w", encoding="utf-8") as file:
        file.write("[threads]\nkeep = false\n")
    front = await talk(work, model(said("One.")), "first", "/rename x", "/fork", "/export a.md")

    assert "is not kept (threads.keep is false)" in front.after("/rename x")
    assert "is not kept (threads.keep is false)" in front.after("/fork")
    assert "## User\n\nfirst\n\n## Assistant\n\nOne." in (work / "a.md").read_text()


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "now"), (-5, "now"), (61, "1m"), (3600, "1h"), (86_400, "1d"), (15 * 86_400, "2w"), (364 * 86_400, "Nov26")],
)
def test_how_long_ago_is_said_in_few_columns(seconds, words):
    now = time.mktime((2027, 11, 16, 12, 0, 0, 0, 0, -1))

    assert age(now - seconds, now) == words


def test_prompts_and_answers_are_counted_alike_everywhere(tmp_path, work):
    read = {"parts": [{"use": "Glob", "input": {"pattern": "*"}}]}
    path = script(tmp_path, read, {"text": "One."})
    run = [*FERRULE, "run", "first", "--replay", path, "--yes", "--output", "json"]
    done = json.loads(subprocess.run(run, cwd=work, capture_output=True, text=True, check=True).stdout)
    listed = subprocess.run([*FERRULE, "threads"], cwd=work, capture_output=True, text=True, check=True).stdout
    shown = subprocess.run(
        [*FERRULE, "threads", "show", done["session_id"]], cwd=work, capture_output=True, text=True, check=True
    ).stdout

    assert done["num_turns"] == 2
    assert re.search(r"  +1  +2  scripted:.*first\n", listed)
    assert "1 prompt, 2 answers" in shown


@pytest.mark.parametrize("columns", [60, 80, 140])
@pytest.mark.parametrize("colour", [True, False])
def test_on_the_screen_a_conversation_is_looked_for_and_taken(tmp_path, work, terminal, columns, colour):  # noqa: F811
    environment = {} if colour else {"NO_COLOR": "1"}
    one = terminal(["--replay", script(tmp_path, {"text": "On."}), "--resume"], work, columns=columns, **environment)
    shown = one.wait(r"Which conversation\?  2\n\n> *\n  →   2h .*Prices *\n      2h .*Mend the parser 三")
    assert ("1 prompt " in shown.split("detail")[0].split("1 prompt, 1 answer")[0]) == (columns >= 80)
    one.press("Down")
    one.wait(r"→   2h .*Mend the parser")
    one.press("Tab")
    one.wait(r"3 · all folders\n\n> *\n( .*\n)*  →   2h .*work .*Mend")
    one.type("DINNER")
    one.wait(
        r"1 of 3 · all folders\n\n> DINNER *\n  →   2h .*elsewhere .*Dinner *\n    1 prompt, 1 answer · T-33333333"
    )
    one.press("Escape")
    one.wait(READY)
    submit(one, "/resume parser")
    one.wait(r"1 of 2\n\n> parser *\n  →   2h")
    one.press("Enter")
    one.wait(r"It takes text\[0\]\.")
    one.wait(READY)
    one.press("C-d")

    assert one.ended() == 0


def test_on_a_terminal_that_can_do_little_a_number_is_typed(tmp_path, work, terminal):  # noqa: F811 - fixtures
    path = script(tmp_path, {"text": "On."})
    one = terminal(["--replay", path, "--resume"], work, kind=Pty, TERM="dumb")
    one.wait(r" 1 .*Prices")
    one.wait(r"Which conversation\? $")
    one.type("mend\n")
    one.wait(r" 1    2h .*Mend the parser(.*\n)*.*Which conversation\? $")
    one.type("1\n")
    one.wait(r"It takes text\[0\]\.")
    one.type("\x04")

    assert one.ended() == 0


def test_what_was_typed_in_another_folder_and_session_is_looked_for(tmp_path, project, work, terminal):  # noqa: F811
    path = script(tmp_path, {"text": "One."})
    first = terminal(["--replay", path], project)
    first.wait(READY)
    submit(first, "the needle in a folder")
    first.wait("One.")
    first.press("C-d")
    assert first.ended() == 0

    other = terminal(["--replay", path], work)
    other.wait(READY)
    other.press("C-r")
    other.wait("typed before:")
    other.type("needle")
    other.wait("the needle in a folder")
    other.press("Enter")
    other.wait("typed before", gone=other.is_real)
    other.press("C-e", "C-u", "C-d")
    assert other.ended() == 0
