"""`ferrule threads`: what is listed, shown, found, taken away and deleted."""

import asyncio
import contextlib
import json
import os
import re
import sqlite3
import stat
import subprocess
import sys
import time

import pytest
from tests.cli.recordings import FERRULE
from tests.cli.talk.terminals import Pty
from tests.kept_threads import TALK, result, turn, use
from tests.kept_threads import text as said

from ferrule.agent.session import Claim
from ferrule.cli.main import run
from ferrule.settings import state_folder
from ferrule.tools.threads import Item
from ferrule.tools.threads.store import ThreadStore
from ferrule.tools.todos import TodoChange, Todos

ID = "T-5928a90d-d53b-488f-a829-4e36442142ee"
LIKE = "T-5928a90d-ffff-488f-a829-4e36442142ee"
OTHER = "T-77777777-d53b-488f-a829-4e36442142ee"
PROMPTS = (Item("prompt", "", b"1"), Item("prompt", "", b"2"))
NOW = time.mktime((2026, 11, 16, 7, 44, 0, 0, 0, -1))


@pytest.fixture
def work(tmp_path, monkeypatch):
    folder = tmp_path.resolve() / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def store(work):
    now = iter(range(1000))
    made = ThreadStore(os.path.join(os.environ["FERRULE_STATE"], "threads"), clock=lambda: NOW + next(now))
    made.begin(ID, workspace=str(work), model="anthropic:x", title="Mend\tthe \x1b[31mparser")
    made.append(ID, [*TALK, Item("turn", "user", b"{}", "", ("src/parse.py",)), *PROMPTS])
    made.begin(OTHER, workspace=str(work) + "-other", model="openai:y", title="Elsewhere")
    made.append(OTHER, [turn("user", said("Something about wombats."))])
    yield made
    made.close()


def test_nothing_is_kept_at_first(work, capsys):
    assert run(["threads"]) == 0
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "No threads are kept about this folder; --all lists those of others too.\n")
    assert run(["threads", "search", "x"]) == 0
    assert capsys.readouterr().err == "No threads were found.\n"
    assert not os.path.exists(os.environ["FERRULE_STATE"])


def test_threads_of_this_folder_are_listed(store, capsys):
    assert run(["threads", "list"]) == 0
    assert capsys.readouterr().out == (
        "id          when              prompts  answers  model        title\n"
        "T-5928a90d  2026-11-16 07:44        2        3  anthropic:x  Mend the parser\n"
    )


@pytest.mark.parametrize(
    ("columns", "head"),
    [
        pytest.param(60, "id          when              prompts  title", id="60"),
        pytest.param(70, "id          when              prompts  answers  title", id="70"),
        pytest.param(90, "id          when              prompts  answers  model        title", id="90"),
    ],
)
def test_on_a_narrow_terminal_no_row_of_the_list_is_broken(store, work, columns, head):
    store.rename(ID, "A title that is long enough to be cut off at the edge of any of these terminals")
    one = Pty(columns, 24)
    try:
        one.start(["threads"], work, COLUMNS=str(columns))
        assert one.ended() == 0
        rows = one.screen().split("\n")
    finally:
        one.close()

    assert rows[0].rstrip() == head
    assert re.search(r"  A title that is.*…$", rows[1].rstrip())
    assert max(map(len, rows)) <= columns


def test_of_a_result_that_was_shortened_no_lines_are_counted(store, work, capsys):
    store.append(
        ID,
        [
            turn("assistant", use(9, "Bash", cmd="seq 9")),
            turn("user", result(9, "1\n\n... [truncated 9 chars] ...\n\n9")),
        ],
    )

    assert run(["threads", "show", ID]) == 0
    assert '- Bash {"cmd":"seq 9"} → 1 (and more, shortened)\n' in capsys.readouterr().out


def test_all_threads_are_listed_with_their_folders(store, work, capsys):
    assert run(["threads", "list", "--all"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["id", "T-77777777", "T-5928a90d"]
    assert lines[1].endswith(f"Elsewhere  {work}-other")


def test_ids_that_begin_alike_are_listed_in_full(store, work, capsys):
    store.begin(LIKE, workspace=str(work))
    store.append(LIKE, [turn("user", said("x"))])

    assert run(["threads"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]] == [LIKE, ID]


def test_lists_as_json(store, work, capsys):
    assert run(["threads", "list", "--json", "--limit", "1", "--all"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["id"], row["workspace"], row["messages"], row["model"]) == (OTHER, f"{work}-other", 1, "openai:y")


def test_a_thread_is_shown(store, capsys):
    assert run(["threads", "show", "T-5928"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"Mend\tthe parser\n{ID}, 2026-11-16 07:44, ")
    assert "\n[1] User:\nWhy does parse_query fail on empty input?\n" in out
    assert '- Bash {"cmd":"pytest -q"} → failed: exit code 1 (and 1 more line)\n' in out
    assert "\x1b" not in out


def test_in_full_outputs_are_shown_whole(store, capsys):
    assert run(["threads", "show", f"@{ID}", "--full"]) == 0
    assert "    IndexError: string index out of range\n" in capsys.readouterr().out


def test_threads_are_found(store, work, capsys):
    assert run(["threads", "search", "parseQuery", "file:parse.py"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{ID}  2026-11-16 07:44  2 prompts, 3 answers\n  Mend\tthe parser\n")
    assert "parse_query" in out
    assert "  files: src/parse.py\n" in out

    assert run(["threads", "search", "wombat"]) == 0
    assert capsys.readouterr().out == ""
    assert run(["threads", "search", "--all", "wombat", "after:nonsense"]) == 0
    found = capsys.readouterr()
    assert "Something about wombats." in found.out
    assert "note: after:nonsense is no date" in found.err
    assert run(["threads", "search", "--all", "--json", "wombat"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["id"], row["excerpt"], row["files"]) == (OTHER, "Something about wombats.", [])


def test_more_than_the_limit_is_counted(store, capsys):
    assert run(["threads", "search", "--all", "--limit", "1", "after:2020-01-01"]) == 0
    assert capsys.readouterr().err == "\n1 more; --limit shows them.\n"


def test_a_thread_is_taken_away_as_markdown(store, capsys):
    assert run(["threads", "export", ID]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"# Mend the parser\n\n- Thread: {ID}\n- Begun: 2026-11-16 07:44\n")
    assert "\n## Assistant\n\nI look at it.\n\n**Read**\n\n```json\n" in out
    assert "**Bash** (failed)" in out


def test_a_fence_is_longer_than_those_in_it(store, capsys):
    use = {"type": "use", "id": "u", "name": "Read", "input": "````\n\x1b[2J"}
    store.append(OTHER, [turn("assistant", use)])

    assert run(["threads", "export", OTHER]) == 0
    assert "`````json\n````\n\n`````\n" in capsys.readouterr().out


def test_a_thread_is_taken_away_as_json(store, tmp_path, capsys):
    path = tmp_path / "talk.json"

    assert run(["threads", "export", ID, "--format", "json", "-o", str(path)]) == 0
    whole = json.loads(path.read_text(encoding="utf-8"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert (whole["thread"]["id"], whole["files"]) == (ID, ["src/parse.py"])
    assert [item["kind"] for item in whole["items"]].count("turn") == len(TALK) - 2 + 1
    assert whole["items"][1]["body"] == json.loads(TALK[1].body)

    assert run(["threads", "export", ID, "-o", str(path)]) == 2
    assert "is there already; --force writes over it." in capsys.readouterr().err
    assert run(["threads", "export", ID, "--format", "jsonl", "--force", "-o", str(path)]) == 0
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert lines[0]["thread"]["id"] == ID
    assert lines[1:] == whole["items"]


def test_threads_are_deleted(store, capsys):
    assert run(["threads", "delete", "T-5928", "T-7777", "--yes"]) == 0
    assert capsys.readouterr().out.endswith("Deleted 2 threads.\n")
    assert run(["threads", "list", "--all"]) == 0
    assert capsys.readouterr().out == ""


def test_a_thread_that_a_session_has_open_is_not_deleted(store, capsys):
    claim = Claim(os.path.join(state_folder(), "threads", "open"), ID)
    assert run(["threads", "delete", OTHER, ID, "--yes"]) == 2
    assert f"The conversation {ID} is open in another session" in capsys.readouterr().err
    assert store.about(OTHER) is not None
    claim.close()
    assert run(["threads", "delete", OTHER, ID, "--yes"]) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="It has no such terminals.")
@pytest.mark.parametrize(("rows", "is_paged"), [(5, True), (500, False)], ids=["no room", "room"])
def test_what_has_no_room_on_a_terminal_goes_through_the_pager(store, rows, is_paged):
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 80, 0, 0))
    environment = {**os.environ, "PAGER": "sed s/^/paged:/", "TERM": "xterm", "NO_COLOR": "1"}
    environment = {name: value for name, value in environment.items() if name not in {"LINES", "COLUMNS"}}
    child = subprocess.Popen([*FERRULE, "threads", "show", ID], stdin=theirs, stdout=theirs, env=environment)
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # what a terminal says when nobody is left at its other end
        while piece := os.read(ours, 65536):
            shown += piece
    os.close(ours)
    assert child.wait(timeout=60) == 0
    assert shown.startswith(b"paged:Mend") is is_paged
    assert b"Mend the parser" in shown.replace(b"\t", b" ")


def test_what_steers_a_terminal_is_escaped_in_json(store, work, capsys):
    text = "one\x9b31m\u2028two\u202eeno"
    store.begin(LIKE, workspace=str(work), title=text)
    store.append(LIKE, [turn("user", said(text))])
    for arguments in (["list", "--json"], ["export", LIKE, "--format", "json"], ["export", LIKE, "--format", "jsonl"]):
        assert run(["threads", *arguments]) == 0
        out = capsys.readouterr().out
        assert not re.search("[\x7f-\x9f\u2028\u202e]", out)
        assert r"one\u009b31m\u2028two\u202eeno" in out
    assert json.loads(out.splitlines()[1])["body"]["parts"][0]["text"] == text


def test_the_todos_of_a_thread_go_with_it(store, capsys):
    folder = os.path.join(state_folder(), "todos")

    async def listed(thread: str, *subjects: str) -> int:
        todos = Todos(folder, thread)
        for subject in subjects:
            await todos.create(TodoChange(subject=subject))
        count = len(await todos.all())
        await todos.close()
        return count

    asyncio.run(listed(ID, "one", "two"))
    asyncio.run(listed("T-other", "three"))
    assert run(["threads", "delete", ID, "--yes"]) == 0

    assert (asyncio.run(listed(ID)), asyncio.run(listed("T-other"))) == (0, 1)


def test_an_export_over_a_file_that_all_can_read_is_for_the_user_alone(store, tmp_path):
    path = tmp_path / "talk.md"
    path.write_text("")
    path.chmod(0o644)
    assert run(["threads", "export", ID, "--force", "-o", str(path)]) == 0

    assert path.stat().st_mode & 0o777 == 0o600


def test_nothing_is_deleted_where_nobody_can_be_asked(store, capsys, monkeypatch):
    with open(os.devnull, encoding="utf-8") as nobody:
        monkeypatch.setattr("sys.stdin", nobody)
        assert run(["threads", "delete", ID]) == 2
    assert "--yes deletes without a question" in capsys.readouterr().err
    assert store.load(ID) is not None


@pytest.mark.parametrize("action", ["show", "export", "delete"])
@pytest.mark.parametrize(
    ("name", "why"),
    [
        pytest.param("T-0000", "There is no thread 'T-0000'.", id="none"),
        pytest.param("T-5928a90d", "'T-5928a90d' is the beginning of several ids: ", id="several"),
        pytest.param("x", "There is no thread 'x'.", id="no-id"),
    ],
)
def test_a_thread_that_is_not_meant_is_an_error(store, work, capsys, action, name, why):
    store.append(LIKE, [turn("user", said("x"))])

    assert run(["threads", action, name]) == 2
    assert re.sub(r"\s+", " ", capsys.readouterr().err).count(why)


def test_a_store_that_cannot_be_used_is_one_line(work, capsys):
    os.makedirs(os.path.join(os.environ["FERRULE_STATE"], "threads", "threads.db"))

    assert run(["threads"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("ferrule: The store of threads ")
    assert said.count("\n") == 1


def test_a_damaged_store_is_a_warning(store, capsys):
    store.close()
    with open(store.path, "r+b") as file:
        file.write(bytes(16))

    assert run(["threads"]) == 0
    assert "warning: " in capsys.readouterr().err
    assert os.path.exists(store.path.replace("threads.db", "threads.damaged-1.db"))


def test_doctor_says_how_threads_are_kept(store, capsys, monkeypatch):
    run(["doctor"])
    assert re.search(r"ok    threads +2 kept\n", capsys.readouterr().out)
    monkeypatch.setattr("ferrule.cli.doctor.has_full_text", lambda: False)
    run(["doctor"])
    assert "2 kept; this SQLite has no FTS5" in capsys.readouterr().out


def test_a_thread_may_be_shown_while_it_goes_on(store, capsys):
    with sqlite3.connect(store.path) as other:
        other.execute("BEGIN IMMEDIATE")
        assert run(["threads", "show", ID]) == 0
        assert run(["threads", "search", "parse"]) == 0
        other.rollback()
    other.close()
    assert "parse_query" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("ferrule threads show T-5", f"plain,{ID}\n"),
        ("ferrule run --resume T-7", f"plain,{OTHER}\n"),
        ("ferrule threads delete x", "\n"),
        ("ferrule run --replay ./", "file,./\n"),
    ],
)
def test_a_shell_completes_ids_and_files(store, words, completed):
    environment = {"COMP_WORDS": words, "COMP_CWORD": "3", "_FERRULE_COMPLETE": "bash_complete"}
    done = subprocess.run(
        FERRULE, env={**os.environ, **environment}, capture_output=True, timeout=60, check=False, text=True
    )
    assert (done.stdout, done.stderr) == (completed, "")


def test_a_thread_is_renamed_and_keeps_its_place_and_its_title(store, capsys):
    assert run(["threads", "rename", "T-5928", "Empty", " queries\x1b[31m"]) == 0
    store.append(ID, [Item("title", "", b'{"title": "Of the model", "by": "model"}')])

    assert capsys.readouterr().out == f"{ID} is called “Empty queries” now.\n"
    about = store.about(ID)
    assert (about.titled_by, about.title.startswith("Empty queries"), about.updated < NOW + 2) == ("user", True, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(["T-99999999", "x"], "There is no thread 'T-99999999'", id="no-such-thread"),
        pytest.param(["T-5928", " "], "A title needs words", id="no-words"),
        pytest.param(["T-5928"], "Missing argument 'TITLE", id="no-title"),
    ],
)
def test_what_cannot_be_renamed_is_wrong_use(store, capsys, words, said):
    assert run(["threads", "rename", *words]) == 2
    assert said in capsys.readouterr().err


def test_the_ending_of_a_file_says_the_form(store, tmp_path, capsys):
    for name, begins in (("a.json", "{\n"), ("a.jsonl", '{"thread"'), ("a.md", "# Mend"), ("a.txt", "# Mend")):
        assert run(["threads", "export", ID, "-o", str(tmp_path / name)]) == 0
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(begins)
