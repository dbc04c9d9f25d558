"""Threads are found by words, phrases and filters; any text is a query, and an index changes nothing but the time."""

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import each_row

from ferrule.tools.threads import Item, excerpt, words
from ferrule.tools.threads.search import QUERY_CHARS, ThreadQuery, has_full_text, moment, parse
from ferrule.tools.threads.store import ThreadStore

NOW = 1_800_000_000.0
DAY = 86_400.0
UTC_MORNING = 1_769_854_830.0
"""The 31st of January 2026, 10:20:30 in universal time."""

TALKS = {
    "T-parser": ("/w", ["Why does parse_query fail?", "It is off by one: fix the loop."], ("/w/src/parse.py",)),
    "T-camel": ("/w", ["call parseQuery twice", "HTTPServer and getIDs"], ("/w/web/Server.ts",)),
    "T-plain": ("/w", ["a query to parse, later one off", "nothing else"], ()),
    "T-cafe": ("/w/sub", ["Das Café in der Straße", "日本語の文章を検索する"], ("/w/sub/naïve.md",)),
    "T-other": ("/other", ["parse everything", "in another place"], ("/other/a.sql",)),
}


def said(text: str, files: tuple[str, ...] = ()) -> Item:
    return Item("turn", "user", b"1", text, files)


def fill(store: ThreadStore) -> None:
    for thread, (workspace, texts, files) in TALKS.items():
        store.begin(thread, workspace=workspace, repo="github.com/x/Tool" if workspace == "/w" else "")
        store.append(thread, [said(text, files) for text in texts])


@pytest.fixture(params=[pytest.param(True, id="index"), pytest.param(False, id="scan")])
def store(request, tmp_path):
    # Without FTS5 the first would be the second: every machine that runs these has it.
    assert has_full_text()
    made = ThreadStore(str(tmp_path / "threads"), clock=lambda: NOW, full_text=request.param)
    fill(made)
    yield made
    made.close()


def ids(store: ThreadStore, query: str, **wanted) -> set[str]:
    found = store.find(query, **wanted)
    assert found.total >= len(found.found)
    return {finding.about.id for finding in found.found}


@pytest.mark.parametrize(
    ("query", "threads"),
    [
        pytest.param("parse", {"T-parser", "T-camel", "T-plain", "T-other"}, id="part-of-names"),
        pytest.param("pars", {"T-parser", "T-camel", "T-plain", "T-other"}, id="beginning"),
        pytest.param("PARSE query", {"T-parser", "T-camel", "T-plain"}, id="every-word"),
        pytest.param("query loop", {"T-parser"}, id="words-of-several-messages"),
        pytest.param("parse_query", {"T-parser", "T-camel"}, id="snake"),
        pytest.param("parseQuery", {"T-parser", "T-camel"}, id="camel"),
        pytest.param("parsequery", {"T-parser", "T-camel"}, id="as-one-word"),
        pytest.param("getids", {"T-camel"}, id="acronym"),
        pytest.param("server", {"T-camel"}, id="second-part"),
        pytest.param('"off by one"', {"T-parser"}, id="phrase"),
        pytest.param('"off by on"', set(), id="a-phrase-is-whole"),
        pytest.param('"one off"', {"T-plain"}, id="order"),
        pytest.param('"off by one', {"T-parser"}, id="open-quote"),
        pytest.param("cafe strasse", {"T-cafe"}, id="marks-and-case"),
        pytest.param("検索", {"T-cafe"}, id="no-blanks"),
        pytest.param("索検", set(), id="no-blanks-in-order"),
        pytest.param("file:parse.py", {"T-parser"}, id="file"),
        pytest.param("file:SRC/", {"T-parser"}, id="part-of-a-path"),
        pytest.param("file:*.ts", {"T-camel"}, id="glob"),
        pytest.param("file:web/*", {"T-camel"}, id="glob-of-the-end"),
        pytest.param("file:[", set(), id="bad-glob"),
        pytest.param("file:naïve", {"T-cafe"}, id="file-with-marks"),
        pytest.param('file:"parse.py" off', {"T-parser"}, id="quoted-filter"),
        pytest.param("repo:tool parse", {"T-parser", "T-camel", "T-plain"}, id="repo"),
        pytest.param("repo:other", {"T-other"}, id="repo-by-folder"),
        pytest.param("after:2d parse", {"T-parser", "T-camel", "T-plain", "T-other"}, id="after"),
        pytest.param("before:2d parse", set(), id="before"),
        pytest.param("author:me loop", {"T-parser"}, id="author"),
        pytest.param("fail: why", {"T-parser"}, id="unknown-filter-is-words"),
        pytest.param("", set(TALKS), id="nothing"),
        pytest.param("?!", set(), id="signs"),
        pytest.param("zzz", set(), id="not-there"),
        pytest.param('parse" OR 1 NEAR(a b) * ^plain : AND NOT {', set(), id="words-of-fts-are-words"),
    ],
)
def test_a_query_finds(store, query, threads):
    assert ids(store, query) == threads


def test_only_threads_of_these_folders_are_found(store):
    assert ids(store, "", workspace="/w") == set(TALKS) - {"T-other"}
    assert ids(store, "", workspace="/w/sub") == {"T-cafe"}
    assert ids(store, "", workspace=["/other", "/w/sub"]) == {"T-cafe", "T-other"}
    assert ids(store, "", workspace="/o") == set()


def test_threads_of_subagents_and_of_this_session_can_be_left_out(store):
    store.begin("T-child", workspace="/w", parent="T-parser")
    store.append("T-child", [said("loop")])

    assert ids(store, "loop") == {"T-parser"}
    assert ids(store, "loop", children=True) == {"T-parser", "T-child"}
    assert ids(store, "loop", own=False) == set()


def test_the_best_come_first_and_of_equals_the_newest(tmp_path):
    now = [NOW]
    store = ThreadStore(str(tmp_path / "threads"), clock=lambda: now[0])
    for number in range(8):
        store.append(f"T-filler-{number}", [said(f"something else entirely {number}")])
    store.append("T-old", [said("needle")])
    now[0] += 200 * DAY
    store.append("T-new", [said("needle")])
    store.append("T-best", [said("needle needle needle")])
    store.append("T-long", [said("needle " + "and much more " * 50)])

    assert [finding.about.id for finding in store.find("needle").found] == ["T-best", "T-new", "T-old", "T-long"]
    limited = store.find("needle", limit=2)
    assert ([finding.about.id for finding in limited.found], limited.total) == (["T-best", "T-new"], 4)
    store.close()


def test_a_find_shows_the_line_and_the_files(store):
    files = tuple(f"/w/f{number:02}.py" for number in range(12))
    store.append("T-files", [said("x" * 300 + " before the  needle\nand after it " + "y" * 300, files)])

    (found,) = store.find("needle file:f11").found
    assert "before the needle and after it" in found.excerpt
    assert found.excerpt.startswith("…")
    assert found.excerpt.endswith("…")
    assert len(found.excerpt) < 300
    assert found.files == ("/w/f11.py", *files[:7])
    assert found.more_files == 4
    assert (found.about.turns, found.about.id) == (1, "T-files")


def test_titles_are_found_too(store):
    store.begin("T-titled", workspace="/w", title="Wombat")
    store.append("T-titled", [said("a loop")])

    assert ids(store, "wombat") == {"T-titled"}
    assert store.find("wombat").found[0].excerpt == "Wombat"
    assert ids(store, "wombat loop") == {"T-titled"}


def test_what_was_just_kept_is_found(store):
    assert ids(store, "fresh") == set()
    store.append("T-plain", [said("something fresh")])

    assert ids(store, "fresh") == {"T-plain"}


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param("UPDATE words_1_data SET block = x'ffffffffff' WHERE id > 10", id="words"),
        pytest.param("UPDATE words_1_data SET block = x'ff' WHERE id = 1", id="sums"),
        pytest.param("DELETE FROM words_1_data WHERE id = 10", id="structure"),
        pytest.param("DELETE FROM words_1_docsize", id="sizes"),
        pytest.param("DROP TABLE words_1_data", id="table"),
    ],
)
@pytest.mark.parametrize("delete_first", [False, True])
def test_a_damaged_index_is_made_anew_and_no_thread_is_lost(tmp_path, damage, delete_first):
    store: Any = ThreadStore(str(tmp_path / "threads"))
    fill(store)
    assert ids(store, "loop") == {"T-parser"}
    store._database.write(lambda connection: connection.execute(damage))
    store.close()

    gone = {"T-cafe"} if delete_first else set()
    assert store.delete("T-cafe") if delete_first else ids(store, "loop") == {"T-parser"}
    assert {about.id for about in store.list(limit=100)} == set(TALKS) - gone
    assert ids(store, "parse_query") == {"T-parser", "T-camel"}
    assert ids(store, "") == set(TALKS) - gone
    assert store.warning is None
    store.append("T-new", [said("loop again")])
    assert ids(store, "loop") == {"T-parser", "T-new"}
    store.close()


@given(st.text(max_size=60) | st.text(alphabet="ab\":* -^(){}file:after:before:7d\\'", max_size=40))
def test_any_text_is_a_query(shared_stores, text):
    indexed, scanned = (made.find(text, limit=100) for made in shared_stores)

    assert {one.about.id for one in indexed.found} == {one.about.id for one in scanned.found}
    assert [one.about.id for one in indexed.found] == [one.about.id for one in scanned.found]


@settings(max_examples=40)
@given(st.text(min_size=1, max_size=40))
def test_every_word_of_a_text_finds_it(shared_stores, text):
    store = shared_stores[0]
    store.append("T-any", [Item("turn", "user", b"1", text)])
    try:
        for word in text.replace('"', " ").replace(":", " ").split():
            if words(word).plain:
                assert "T-any" in {finding.about.id for finding in store.find(word, limit=100).found}
    finally:
        store.delete("T-any")


@pytest.fixture(scope="module")
def shared_stores(tmp_path_factory):
    """One folder with an index and without one."""
    folder = str(tmp_path_factory.mktemp("shared") / "threads")
    stores = [ThreadStore(folder, clock=lambda: NOW, full_text=full_text) for full_text in (True, False)]
    fill(stores[0])
    yield stores
    for made in stores:
        made.close()


def local(year: int, month: int, day: int, hour: int = 0, minute: int = 0) -> float:
    return time.mktime((year, month, day, hour, minute, 0, 0, 0, -1))


@each_row(
    ("text", "at"),
    [
        pytest.param("2026-01-31", local(2026, 1, 31), id="day"),
        pytest.param("2026-1-3T14:05", local(2026, 1, 3, 14, 5), id="minute"),
        pytest.param("7d", NOW - 7 * DAY, id="days"),
        pytest.param("2w", NOW - 14 * DAY, id="weeks"),
        pytest.param("3 hours", NOW - 3 * 3600, id="hours"),
        pytest.param("1y", NOW - 365.25 * DAY, id="years"),
        pytest.param("today", local(*time.localtime(NOW)[:3]), id="today"),
        pytest.param("yesterday", local(*time.localtime(NOW - DAY)[:3]), id="yesterday"),
        pytest.param("2026-02-31", None, id="no-such-day"),
        pytest.param("2026-01-31T25:00", None, id="no-such-hour"),
        pytest.param("9999999d", None, id="too-far"),
        pytest.param("soon", None, id="no-date"),
        pytest.param("2026-01-31T10:20:30Z", UTC_MORNING, id="universal-time"),
        pytest.param("2026-01-31T10:20:30.5z", UTC_MORNING, id="parts-of-a-second"),
        pytest.param("2026-01-31 12:20:30 +02:00", UTC_MORNING, id="a-zone"),
        pytest.param("2026-01-31T05:50:30-0430", UTC_MORNING, id="a-zone-behind"),
        pytest.param("2026-01-31T10:20Z", UTC_MORNING - 30, id="a-zone-without-seconds"),
        pytest.param("2026-02-31T10:20Z", None, id="no-day-in-any-zone"),
        pytest.param("2026-01-31T24:00Z", None, id="no-hour-in-any-zone"),
        pytest.param("2026-01-31T10:20:60", None, id="no-second"),
        pytest.param("2026-01-31Z", None, id="a-zone-without-a-time"),
    ],
)
def test_a_moment_is(text, at):
    assert moment(text, now=NOW) == at


def test_what_is_left_out_of_a_query_is_said():
    query = parse("after:soon file: author:me word", now=NOW)

    assert [note.split()[0] for note in query.notes] == ["after:soon", "file:", "author:"]
    assert parse("?!", now=NOW).is_empty
    assert not parse("author:me", now=NOW).is_empty
    assert not parse("author:me after:soon", now=NOW).is_empty
    assert parse("", now=NOW) == ThreadQuery()
    assert "first 2,000 characters" in parse("x " * QUERY_CHARS, now=NOW).notes[0]
    assert len(parse(" ".join(f"w{n}" for n in range(100)), now=NOW).terms) == 32


def test_of_two_dates_the_narrower_counts():
    query = parse("after:9d after:2d before:1d before:5d", now=NOW)

    assert (query.after, query.before) == (NOW - 2 * DAY, NOW - 5 * DAY)


def test_an_excerpt_of_a_hostile_text_takes_no_time():
    text = "a" + " " * 50_000 + "a" * 50_000

    assert excerpt(text, [("a",) * 30])
