"""Threads are kept item by item, found again by name, and go away when they are old; several processes share them."""

import contextlib
import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ferrule.system.sqlite import UnusableError
from ferrule.tools.threads import Item, Thread, ThreadMetadata, parse_thread_id
from ferrule.tools.threads.store import ThreadStore

ONE = "T-5928a90d-d53b-488f-a829-4e36442142ee"
OTHER = "T-5928ffff-0000-4000-8000-000000000000"
DAY = 86_400.0


class Clock:
    """A time that only goes on when it is told to."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path, clock):
    made = ThreadStore(str(tmp_path / "threads"), clock=clock)
    yield made
    made.close()


def said(text: str, role: str = "user", files: tuple[str, ...] = ()) -> Item:
    return Item("turn", role, b'{"role": "x"}', text, files)


def test_nothing_is_made_before_a_thread_has_an_item(store, tmp_path):
    store.begin(ONE, workspace="/w")
    store.append(ONE, [])

    assert store.latest("/w") is None
    assert store.list() == ()
    assert store.find("x").found == ()
    assert store.resolve(OTHER) is None
    assert store.load(OTHER) is None
    assert not store.delete(OTHER)
    assert os.listdir(tmp_path) == []


def test_a_thread_that_has_begun_is_known_without_an_item(store):
    store.begin(ONE, workspace="/w", model="m")

    assert store.load(ONE) == Thread(ThreadMetadata(ONE, "/w", model="m", created=1_800_000_000.0))
    assert store.resolve("T-5928a90d-d53b-488f-a829-4e36442142ee") == ONE


def test_items_come_back_in_their_order(store, clock):
    store.begin(ONE, workspace="/w", repo="r", model="m", dialect="amp", parent="T-p", title="A title")
    store.append(ONE, [said("first"), said("second", "assistant", ("/w/b.py", "/w/a.py"))])
    clock.now += 5
    store.append(ONE, [Item("spent", "", b"[1]"), said("third", files=("/w/a.py",))])

    thread = store.load(ONE)
    assert thread.about == ThreadMetadata(
        ONE, "/w", "r", "m", "amp", "T-p", "A title", clock.now - 5, clock.now, turns=3, items=4, answers=1
    )
    assert [item.text for item in thread.items] == ["first", "second", "", "third"]
    assert thread.items[2] == Item("spent", "", b"[1]", at=clock.now)
    assert thread.files == ("/w/a.py", "/w/b.py")


def test_to_begin_twice_changes_nothing(store):
    store.begin(ONE, workspace="/w", title="first")
    store.append(ONE, [said("x")])
    store.begin(ONE, workspace="/other", title="second")
    store.append(ONE, [said("y")])

    assert store.load(ONE).about[:7] == ThreadMetadata(ONE, "/w", title="first")[:7]


def test_a_thread_goes_on_in_another_process(store, tmp_path, clock):
    store.begin(ONE, workspace="/w", title="first")
    store.append(ONE, [said("x")])
    later = ThreadStore(str(tmp_path / "threads"), clock=clock)
    later.begin(ONE, workspace="/elsewhere")
    later.append(ONE, [said("y")])
    later.close()

    assert [item.text for item in store.load(ONE).items] == ["x", "y"]
    assert store.load(ONE).about.workspace == "/w"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        pytest.param("Mend the\n  parser", "Mend the parser", id="one-line"),
        pytest.param("x" * 200, "x" * 79 + "…", id="cut"),
        pytest.param("\ud800", "?", id="half-a-pair"),
    ],
)
def test_what_the_user_says_first_is_the_title(store, text, title):
    store.append(ONE, [said("not this", "assistant"), said("  "), said(text), said("nor this")])

    assert store.about(ONE).title == title


def test_the_latest_is_of_this_very_folder_and_of_no_subagent(store, clock):
    for number, (thread, workspace, parent) in enumerate(
        [("T-1", "/w", ""), ("T-2", "/w", ""), ("T-3", "/w/sub", ""), ("T-4", "/w", "T-1")]
    ):
        clock.now += number
        store.begin(thread, workspace=workspace, parent=parent)
        store.append(thread, [said("x")])

    assert store.latest("/w") == "T-2"
    assert store.latest("/other") is None
    clock.now += 1
    store.append("T-1", [said("y")])
    assert store.latest("/w") == "T-1"


def test_lists_are_of_a_folder_and_below_the_newest_first(store, clock):
    for thread, workspace, parent in (
        ("T-1", "/w", ""),
        ("T-2", "/w/sub", ""),
        ("T-3", "/where", ""),
        ("T-4", "/w", "T-1"),
    ):
        clock.now += 1
        store.begin(thread, workspace=workspace, parent=parent)
        store.append(thread, [said("x")])

    def ids(**wanted):
        return [about.id for about in store.list(**wanted)]

    assert ids(workspace="/w") == ["T-2", "T-1"]
    assert ids(workspace="/w", children=True) == ["T-4", "T-2", "T-1"]
    assert ids(workspace=["/where", "/w/sub"]) == ["T-3", "T-2"]
    assert ids(limit=2) == ["T-3", "T-2"]


@pytest.mark.parametrize(
    ("name", "thread"),
    [
        pytest.param(ONE, ONE, id="id"),
        pytest.param(f"  @{ONE} ", ONE, id="mentioned"),
        pytest.param(ONE.upper(), ONE, id="upper-case"),
        pytest.param(ONE[2:], ONE, id="without-its-t"),
        pytest.param(f"https://example.com/threads/{ONE}", ONE, id="address"),
        pytest.param(f"https://example.com/threads/{ONE}/?a=b/c#d", ONE, id="address-with-more"),
        pytest.param("T-5928a", ONE, id="beginning"),
        pytest.param("5928a90d", ONE, id="beginning-without-its-t"),
        pytest.param("T-5928", None, id="of-two"),
        pytest.param("T-592", None, id="too-short"),
        pytest.param("T-", None, id="nothing-of-it"),
        pytest.param("T-9999", None, id="of-none"),
        pytest.param("plain-id", "plain-id", id="any-id-in-full"),
        pytest.param("T-5928a%", None, id="no-pattern"),
        pytest.param("", None, id="empty"),
    ],
)
def test_a_thread_is_meant_by(store, name, thread):
    for one in (ONE, OTHER, "plain-id"):
        store.append(one, [said("x")])

    assert store.resolve(name) == thread


def test_those_that_may_be_meant_are_named(store):
    for one in (ONE, OTHER):
        store.append(one, [said("x")])

    assert set(store.find_ids("T-5928")) == {ONE, OTHER}
    assert parse_thread_id("nonsense") == ""


def test_only_the_user_can_read_the_file(store, tmp_path):
    (tmp_path / "threads").mkdir(mode=0o755)
    store.append(ONE, [said("secret")])

    files = [tmp_path / "threads", *(tmp_path / "threads").glob("threads.db*")]
    assert len(files) >= 2
    assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in files} == {0}


def test_an_end_that_is_no_json_is_left_out_and_counted(store):
    store.append(ONE, [said("whole"), Item("turn", "user", b'{"cut', "broken"), Item("turn", "user", b"", "empty")])

    thread = store.load(ONE)
    assert [item.text for item in thread.items] == ["whole"]
    assert thread.skipped == 2


def test_what_is_deleted_is_gone_from_the_file_with_its_subagents(store, tmp_path):
    store.append("T-kept", [said("harmless words")])
    for thread, parent in ((ONE, ""), ("T-child", ONE), ("T-grandchild", "T-child")):
        store.begin(thread, workspace="/w", parent=parent)
        store.append(thread, [said(f"hunter2secret {thread}", files=("/w/hunter2file",))])
    assert len(store.find("hunter2secret", children=True).found) == 3

    assert store.delete(ONE)
    assert not store.delete(ONE)
    assert [about.id for about in store.list(children=True)] == ["T-kept"]
    assert store.find("hunter2secret", children=True).found == ()
    assert [finding.about.id for finding in store.find("harmless").found] == ["T-kept"]
    store.close()
    raw = b"".join(path.read_bytes() for path in (tmp_path / "threads").glob("threads.db*"))
    assert b"hunter2" not in raw


def test_old_threads_go_away_but_not_the_one_in_use(tmp_path, clock):
    folder = str(tmp_path / "threads")
    first = ThreadStore(folder, keep_days=10, clock=clock)
    first.append("T-old", [said("x")])
    first.append("T-open", [said("x")])
    first.close()
    clock.now += 11 * DAY
    second = ThreadStore(folder, keep_days=10, clock=clock)
    second.begin("T-open", workspace="/w")
    second.append("T-new", [said("y")])

    assert {about.id for about in second.list()} == {"T-open", "T-new"}
    second.close()


def test_retention_looks_once_an_hour_over_all_processes(tmp_path, clock):
    folder = str(tmp_path / "threads")
    first = ThreadStore(folder, keep_days=0, clock=clock)
    first.append("T-old", [said("x")])
    clock.now += 1_800
    second = ThreadStore(folder, keep_days=0, clock=clock)
    second.append("T-new", [said("x")])
    assert {about.id for about in second.list()} == {"T-old", "T-new"}

    clock.now += 3_000
    third = ThreadStore(folder, keep_days=0, clock=clock)
    third.append("T-newest", [said("x")])
    # What another process has kept within the hour is spared too.
    assert {about.id for about in third.list()} == {"T-new", "T-newest"}
    for store in (first, second, third):
        store.close()


def test_many_old_threads_go_away_at_once(tmp_path, clock):
    folder = str(tmp_path / "threads")
    first = ThreadStore(folder, keep_days=1, clock=clock)
    for number in range(120):
        first.append(f"T-{number}", [said("old words")])
    assert first.find("old").total == 120
    first.close()
    clock.now += 2 * DAY
    second = ThreadStore(folder, keep_days=1, clock=clock)
    second.append("T-new", [said("new words")])

    assert [about.id for about in second.list(limit=1000)] == ["T-new"]
    assert [finding.about.id for finding in second.find("words").found] == ["T-new"]
    second.close()


def test_eight_processes_append_at_once_and_nothing_is_lost(tmp_path):
    program = (
        "import sys\n"
        "from ferrule.tools.threads.store import Item, ThreadStore\n"
        "store = ThreadStore(sys.argv[1], busy_seconds=60)\n"
        "own = f'T-{sys.argv[2]}'\n"
        "for thread in (own, 'T-shared'):\n"
        "    store.begin(thread, workspace='/w')\n"
        "for number in range(25):\n"
        "    text = f'{sys.argv[2]} {number}'\n"
        "    store.append(own, [Item('turn', 'user', b'1', text), Item('turn', 'assistant', b'1', text)])\n"
        "    store.append('T-shared', [Item('turn', 'user', b'1', text)])\n"
        "    if number % 10 == 0:\n"
        "        store.find(text)\n"
        "store.close()\n"
        "assert store.warning is None\n"
    )
    children = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "threads"), str(number)]) for number in range(8)
    ]
    assert [child.wait(timeout=120) for child in children] == [0] * 8

    store: Any = ThreadStore(str(tmp_path / "threads"))
    for number in range(8):
        texts = [item.text for item in store.load(f"T-{number}").items]
        assert texts == [f"{number} {at}" for at in range(25) for _ in range(2)]
    shared = [item.text.split() for item in store.load("T-shared").items]
    assert len(shared) == 200
    for number in range(8):
        assert [int(at) for who, at in shared if who == str(number)] == list(range(25))
    assert store.find('"7 24"').total == 2
    store.close()


def zero_the_header(path: Path) -> None:
    with open(path, "r+b") as file:
        file.write(bytes(16))


def empty(path: Path) -> None:
    os.truncate(path, 0)


def cut_short(path: Path) -> None:
    os.truncate(path, 100)


def write_garbage(path: Path) -> None:
    path.write_bytes(b"no database\n" * 2000)


@pytest.mark.parametrize("damage", [zero_the_header, empty, cut_short, write_garbage])
def test_a_damaged_file_is_set_aside_and_the_conversation_goes_on(tmp_path, damage):
    store: Any = ThreadStore(str(tmp_path / "threads"))
    store.begin(ONE, workspace="/w", model="m")
    store.append(ONE, [said("before")])
    store.close()
    damage(tmp_path / "threads" / "threads.db")

    store.append(ONE, [said("after")])
    assert "was damaged and is now threads.damaged-1.db" in store.warning
    assert (tmp_path / "threads" / "threads.damaged-1.db").exists()
    thread = store.load(ONE)
    assert (thread.about.workspace, thread.about.model) == ("/w", "m")
    assert [item.text for item in thread.items] == ["after"]
    store.close()


def test_a_locked_file_is_named_in_a_sentence_and_can_still_be_read(tmp_path):
    store: Any = ThreadStore(str(tmp_path / "threads"), busy_seconds=0.05)
    store.append(ONE, [said("words of before")])
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(UnusableError) as raised:
        store.append(ONE, [said("refused")])

    assert str(raised.value) == (
        f"The store of threads {store.path} stayed locked by another process for 0.05 seconds."
    )
    # Its index cannot be brought up to date now: the texts themselves are looked through.
    assert [finding.about.id for finding in store.find("words").found] == [ONE]
    assert [item.text for item in store.load(ONE).items] == ["words of before"]
    other.execute("ROLLBACK")
    other.close()
    store.append(ONE, [said("kept")])
    assert [item.text for item in store.load(ONE).items] == ["words of before", "kept"]
    store.close()


def test_a_full_disk_loses_the_items_of_one_call_only(store):
    store.append(ONE, [said("first")])
    database = store._database
    pages = database.read(lambda connection: connection.execute("PRAGMA page_count").fetchone()[0])
    database.read(lambda connection: connection.execute(f"PRAGMA max_page_count = {pages}").fetchone())
    with pytest.raises(UnusableError, match="has no room left on its disk"):
        store.append(ONE, [said("small"), said("x" * 200_000)])
    database.read(lambda connection: connection.execute("PRAGMA max_page_count = 100000").fetchone())
    store.append(ONE, [said("second")])

    assert [item.text for item in store.load(ONE).items] == ["first", "second"]


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    store = ThreadStore(str(tmp_path / "file" / "threads"))

    with pytest.raises(UnusableError, match=r"^The store of threads .* cannot be used: .*\.$"):
        store.append(ONE, [said("x")])


def test_a_store_that_was_closed_opens_again(store):
    store.append(ONE, [said("x")])
    store.close()
    store.close()

    assert store.load(ONE).about.turns == 1


def test_prompts_answers_branch_and_last_words_are_kept_beside_a_thread(store):
    prompt = [Item("prompt", "", b"1"), Item("written", "", b'"Go on."', said="Go on."), said("Go on.")]
    store.append(ONE, [*prompt, Item("turn", "assistant", b"{}", "Read a", said="")], branch="main")
    store.append(ONE, [said("a result"), Item("turn", "assistant", b"{}", "", said="Done.\ud800")])
    store.append(ONE, prompt, branch="fix/it")

    about = store.about(ONE)
    assert (about.prompts, about.answers, about.branch) == (2, 2, "fix/it")
    assert (about.last_prompt, about.last_answer, about.size) == ("Go on.", "Done.?", "2 prompts, 2 answers")


def test_a_title_of_the_model_replaces_the_first_words_and_the_users_replaces_both(store, clock):
    store.append(ONE, [said("first words")])
    titles = [store.about(ONE).title]
    clock.now += 5
    for by in ("model", "user", "model"):
        store.append(ONE, [Item("title", "", f'{{"title": "by the {by}", "by": "{by}"}}'.encode())])
        titles.append(store.about(ONE).title)
    store.append(ONE, [Item("title", "", b"{broken"), Item("title", "", b"[1]")])
    store.rename(ONE, "again")
    titles.append(store.about(ONE).title)

    assert titles == ["first words", "by the model", "by the user", "by the user", "again"]
    assert (store.about(ONE).titled_by, store.about(ONE).updated) == ("user", clock.now - 5)
    assert not store.rename(OTHER, "nothing")
    assert [finding.about.id for finding in store.find("again").found] == [ONE]


def test_a_copy_has_all_of_a_thread_and_leaves_it_as_it_is(store, clock):
    store.begin(ONE, workspace="/w", model="m", parent="T-p")
    items = [Item("prompt", "", b"1"), said("needle", files=("/w/a",)), said("yes", "assistant")]
    store.append(ONE, items, branch="main")
    before = store.load(ONE)
    clock.now += 9

    assert store.copy(ONE, OTHER)
    store.append(OTHER, [said("more")])
    copy = store.load(OTHER)
    assert store.load(ONE) == before
    assert copy.about == before.about._replace(
        id=OTHER, parent="", title="needle (fork)", titled_by="model", updated=clock.now, turns=3, items=4
    )
    assert copy.items[:3] == before.items
    assert copy.files == ("/w/a",)
    assert {finding.about.id for finding in store.find("needle", children=True).found} == {ONE, OTHER}
    assert not store.copy("T-none", "T-other")


def test_threads_of_before_prompts_were_counted_are_counted_once(tmp_path):
    store = ThreadStore(str(tmp_path / "old"))
    result = b'{"parts": [{"type":"result","id":"u"}]}'
    quoted = b'{"parts":[{"type":"text","text":"a \\"type\\":\\"result\\" in words"}]}'
    store.append(ONE, [Item("prompt", "", b"1"), said("a"), said("b", "assistant"), said("c")])
    store.append(OTHER, [said("a"), said("b", "assistant"), Item("turn", "user", result), Item("turn", "user", quoted)])
    store.close()
    with contextlib.closing(sqlite3.connect(tmp_path / "old" / "threads.db")) as old:
        for column in ("branch", "prompts", "answers", "titled_by", "last_prompt", "last_answer"):
            old.execute(f"ALTER TABLE threads DROP COLUMN {column}")
        (version,) = old.execute("PRAGMA user_version").fetchone()
        old.execute(f"PRAGMA user_version = {version - 8}")
        old.commit()

    counts = {about.id: (about.prompts, about.answers, about.branch) for about in store.list()}
    assert counts == {ONE: (1, 1, ""), OTHER: (2, 1, "")}
    store.close()
