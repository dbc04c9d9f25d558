"""The ranked index: words of names, what counts more, regions, and an index that follows its files."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.tools.agents import finder
from ferrule.tools.agents.finder import PIECE_LINES, Ranked, RankedFiles, parse_query, region, stem, terms


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("readFile", ("readfile", "read", "file"), id="camel"),
        pytest.param("read_file", ("read_file", "read", "file"), id="snake"),
        pytest.param("HTTPServer", ("httpserver", "http", "serv"), id="shouted-beginning"),
        pytest.param("x", (), id="one-letter"),
        pytest.param("__init_subclass__", ("init_subclass", "init", "subclas"), id="underscores"),
    ],
)
def test_a_name_is_found_by_itself_and_by_its_parts(name, expected):
    assert terms(name) == expected


@pytest.mark.parametrize(
    "forms",
    [
        ("resolve", "resolves", "resolved", "resolving"),
        ("cancel", "cancels", "cancelled", "cancelling"),
        ("entry", "entries"),
        ("match", "matches", "matching"),
        ("link", "links", "linked"),
        ("commit", "committed", "commits"),
    ],
)
def test_forms_of_a_word_are_one(forms):
    assert len({stem(form) for form in forms}) == 1


@pytest.mark.parametrize("word", ["is", "class", "status", "process", "this", "bus"])
def test_an_s_that_is_no_ending_stays(word):
    assert stem(word).endswith("s")


def test_words_that_every_question_has_count_nothing():
    assert parse_query("where is the code that does it?") == {}


def test_kindred_words_count_less_than_the_word_itself():
    weights = parse_query("symlink")

    assert weights["symlink"] == 1.0
    assert 0 < weights["link"] < 1.0


def found(ranked, query):
    return [match.path for match in ranked.search(query)]


def test_a_file_s_name_counts_more_than_a_mention():
    ranked = Ranked()
    ranked.put("src/parser.py", "x = 1\n")
    ranked.put("src/other.py", "# the parser is elsewhere\nx = 1\n")

    assert found(ranked, "parser") == ["src/parser.py", "src/other.py"]


def test_what_defines_a_name_comes_before_what_uses_it():
    ranked = Ranked()
    ranked.put("a.py", "load_all()\nload_all()\n")
    ranked.put("b.py", "def load_all():\n    pass\n")

    assert found(ranked, "load_all") == ["b.py", "a.py"]


def test_tests_come_after_code_unless_they_are_asked_for():
    ranked = Ranked()
    ranked.put("tests/test_login.py", "def test_login():\n    login()\n")
    ranked.put("src/account.py", "def login():\n    pass\n")

    assert found(ranked, "login")[0] == "src/account.py"
    assert found(ranked, "tests of login")[0] == "tests/test_login.py"


@pytest.mark.parametrize(
    "other", ["node_modules/x/login.js", "lib/_vendor/login.py", "third_party/login.c", "login.pyi"]
)
def test_what_others_wrote_and_what_only_declares_comes_after_code(other):
    ranked = Ranked()
    ranked.put(other, "def login(): ...\n")
    ranked.put("src/a/login.py", "def login(): ...\n")

    assert [match.path for match in ranked.search("login")] == ["src/a/login.py", other]


def test_a_long_file_is_searched_piece_by_piece():
    ranked = Ranked()
    lines = [f"line_{number} = {number}" for number in range(5 * PIECE_LINES)]
    lines[3 * PIECE_LINES + 7] = "def needle(): ..."
    ranked.put("long.py", "\n".join(lines))
    (match,) = ranked.search("needle")

    assert match.first <= 3 * PIECE_LINES + 8 <= match.last
    assert match.last - match.first < PIECE_LINES


texts = st.text(alphabet="ab_X \n", max_size=60)


@given(st.lists(st.tuples(st.sampled_from(["a.py", "b/c.py", "d.md"]), texts | st.none()), max_size=12))
def test_an_index_that_changed_is_the_same_as_a_new_one(changes):
    ranked = Ranked()
    kept: dict[str, str] = {}
    for path, text in changes:
        if text is None:
            ranked.drop(path)
            kept.pop(path, None)
        else:
            ranked.put(path, text)
            kept[path] = text
    fresh = Ranked()
    for path, text in kept.items():
        fresh.put(path, text)

    for query in ("ab", "a_b X", "c", "aa bb abX"):
        one, other = ([(m.path, m.first, m.last, round(m.score, 6)) for m in r.search(query)] for r in (ranked, fresh))
        assert one == other
    assert len(ranked) == len(kept)


@given(st.text(max_size=300), st.text(max_size=60))
def test_no_text_and_no_question_is_too_odd(text, query):
    ranked = Ranked()
    ranked.put("a.py", text)
    weights = ranked.weights(query)
    for match in ranked.search(query):
        lines = text.split("\n")[match.first - 1 : match.last]
        where = region(lines, weights, start=match.first)
        assert match.first <= where.first <= where.last <= match.last


def test_the_region_is_where_the_words_stand_together():
    lines = ["alpha", *["x"] * 30, "def alpha_beta():", "    beta()", *["x"] * 30, "beta"]
    ranked = Ranked()
    ranked.put("a.py", "\n".join(lines))
    where = region(lines, ranked.weights("alpha beta"))

    assert (where.first, where.last) == (32, 33)
    assert where.line == "def alpha_beta():"


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "workspace"
    folder.mkdir()
    jail = Jail(str(folder))
    yield RankedFiles(jail, Guard((), jail))
    jail.close()


@pytest.fixture
def root(files, tmp_path):
    return tmp_path / "workspace"


def refresh(files, root, **more):
    names = [os.path.relpath(os.path.join(at, name), root) for at, _, some in os.walk(root) for name in some]
    return files.refresh({str(root): names}, **more)


def spots(files, query):
    return [spot.path for spot in files.search(query)]


def test_the_index_follows_its_files(files, root):
    (root / "a.py").write_text("def apple(): ...\n")
    (root / "b.py").write_text("def pear(): ...\n")
    refresh(files, root)
    assert spots(files, "apple") == ["a.py"]

    (root / "a.py").write_text("def cherry_tree(): ...\n")
    (root / "b.py").unlink()
    refresh(files, root)

    assert spots(files, "apple") == []
    assert spots(files, "pear") == []
    assert spots(files, "cherry") == ["a.py"]


def test_what_did_not_change_is_not_read_again(files, root):
    (root / "a.py").write_text("apple\n")
    refresh(files, root)
    read: list[str] = []

    def spy(real):
        read.append(real)
        return b""

    files._read = spy
    refresh(files, root)
    assert read == []


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        pytest.param("large.py", b"apple\n" * (1 << 18), id="too-large"),
        pytest.param("binary.py", b"apple\0\1\2", id="binary"),
        pytest.param(".env", b"apple=1\n", id="secret"),
        pytest.param("id_rsa", b"apple\n", id="a-key"),
    ],
)
def test_what_is_too_large_binary_or_secret_is_not_looked_into(files, root, name, raw):
    (root / name).write_bytes(raw)
    refresh(files, root)

    assert spots(files, "apple") == []


def test_a_secret_is_not_even_found_by_its_name(files, root):
    (root / "credentials.json").write_text("{}")
    (root / "large_apple.py").write_bytes(b"x\n" * (1 << 20))
    refresh(files, root)

    assert spots(files, "credentials") == []
    assert spots(files, "apple") == ["large_apple.py"]


def test_a_file_that_became_secret_since_is_not_shown(files, root):
    (root / "a.py").write_text("apple\n")
    refresh(files, root)
    files._guard.denied = lambda path, _: path.endswith("a.py")

    assert spots(files, "apple") == []


def test_no_link_is_followed(files, root, tmp_path):
    (tmp_path / "outside.py").write_text("apple\n")
    (root / "link.py").symlink_to(tmp_path / "outside.py")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "c.py").write_text("apple\n")
    (root / "sub").symlink_to(tmp_path / "folder")
    files.refresh({str(root): ["link.py", "sub/c.py"]})

    assert spots(files, "apple") == []


def test_too_many_files_are_counted_and_the_deepest_left_out(files, root, monkeypatch):
    monkeypatch.setattr(finder, "MOST_FILES", 2)
    (root / "deep").mkdir()
    for name in ("a.py", "b.py", "deep/c.py"):
        (root / name).write_text("apple\n")
    refreshed = refresh(files, root)

    assert refreshed == (2, 1, 0)
    assert sorted(spots(files, "apple")) == ["a.py", "b.py"]


def test_of_too_much_text_the_short_files_are_held_whole_and_the_long_ones_begun(files, root, monkeypatch):
    monkeypatch.setattr(finder, "TOTAL_BYTES", 3 * finder._NAME_BYTES + 400)
    (root / "deep" / "er").mkdir(parents=True)
    (root / "short.py").write_text("plum\n")
    (root / "long.py").write_text("apple\n" + "filler\n" * 500 + "cherry\n")
    (root / "deep" / "er" / "peeled.py").write_text("apple\n" + "filler\n" * 500)
    refreshed = refresh(files, root)

    assert refreshed == (3, 0, 2)
    assert spots(files, "plum") == ["short.py"]
    assert sorted(spots(files, "apple")) == ["deep/er/peeled.py", "long.py"]
    assert spots(files, "cherry") == []
    assert spots(files, "peeled") == ["deep/er/peeled.py"]


def test_what_is_not_held_takes_no_room_from_what_is(files, root, monkeypatch):
    monkeypatch.setattr(finder, "TOTAL_BYTES", 1 << 20)
    for number in range(4):
        with open(root / f"{number}.bin", "wb") as file:
            file.truncate(finder.FILE_BYTES + 1)
    (root / "deep").mkdir()
    (root / "deep" / "code.py").write_text("filler\n" * 5000 + "apple\n")

    assert refresh(files, root) == (5, 0, 0)
    assert spots(files, "apple") == ["deep/code.py"]


def test_a_file_more_does_not_have_all_the_others_read_again(files, root, monkeypatch):
    monkeypatch.setattr(finder, "TOTAL_BYTES", 60_000)
    for number in range(50):
        (root / f"{number}.py").write_text("filler\n" * 1000)
    refresh(files, root)
    (root / "one.py").write_text("x\n")
    read: list[str] = []
    really = files._read

    def spy(real):
        read.append(os.path.basename(real))
        return really(real)

    files._read = spy
    refresh(files, root)

    assert read == ["one.py"]


def test_it_stops_when_nobody_waits_any_more_and_goes_on_later(files, root):
    for name in ("a.py", "b.py"):
        (root / name).write_text("apple\n")

    assert refresh(files, root, is_over=lambda: True).files == 0
    assert refresh(files, root).files == 2


def test_it_says_how_far_it_is(files, root, monkeypatch):
    monkeypatch.setattr(finder, "_TELL_EVERY", 2)
    for number in range(5):
        (root / f"{number}.py").write_text("apple\n")
    said: list[str] = []
    refresh(files, root, tell=said.append)

    assert said == ["2 of 5 files looked at", "4 of 5 files looked at"]
