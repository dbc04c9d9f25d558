"""Pieces of text for others in one file: where they go, what is refused, and what stays as it was."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from ferrule.core.errors import ToolFailure
from ferrule.files.ledger import Ledger
from ferrule.files.replace import Piece, check_read, current, replace, replace_all
from ferrule.files.text import parse

FILE = b"one\ntwo\nthree\ntwo\nfive\n"


def done(raw: bytes, *pieces: Piece, in_turn: bool = True):
    return replace_all(parse(raw), pieces, "/a", in_turn=in_turn, stale=False)


def refused(raw: bytes, *pieces: Piece, in_turn: bool = True) -> ToolFailure:
    with pytest.raises(ToolFailure) as caught:
        done(raw, *pieces, in_turn=in_turn)
    return caught.value


@each_row(
    ("pieces", "in_turn", "raw", "first_line", "last_line", "places"),
    [
        pytest.param([Piece("one", "1")], True, b"1\ntwo\nthree\ntwo\nfive\n", 1, 1, 1, id="one"),
        pytest.param(
            [Piece("two", "2", everywhere=True)], True, b"one\n2\nthree\n2\nfive\n", 2, 4, 2, id="one-everywhere"
        ),
        pytest.param(
            [Piece("five", "5"), Piece("one", "1\n1\n1")],
            True,
            b"1\n1\n1\ntwo\nthree\ntwo\n5\n",
            1,
            7,
            2,
            id="lines-are-those-of-the-end",
        ),
        pytest.param(
            [Piece("five", "5"), Piece("one", "1\n1\n1")],
            False,
            b"1\n1\n1\ntwo\nthree\ntwo\n5\n",
            1,
            7,
            2,
            id="lines-are-those-of-the-end-at-once",
        ),
        pytest.param(
            [Piece("one", "uno"), Piece("uno", "1")], True, b"1\ntwo\nthree\ntwo\nfive\n", 1, 1, 2, id="in-turn"
        ),
        pytest.param(
            [Piece("one", "two"), Piece("three\n", "3\n")],
            False,
            b"two\ntwo\n3\ntwo\nfive\n",
            1,
            3,
            2,
            id="at-once-in-the-file-as-it-is",
        ),
        pytest.param([Piece("one\n", ""), Piece("five\n", "")], True, b"two\nthree\ntwo\n", 1, 3, 2, id="deletions"),
        pytest.param([Piece("one", "1"), Piece("1", "one")], True, FILE, 1, 1, 2, id="there-and-back"),
        pytest.param(
            [Piece("one\n", "one\nA\n"), Piece("two\nthree", "B\ntwo\nthree")],
            False,
            b"one\nA\nB\ntwo\nthree\ntwo\nfive\n",
            2,
            3,
            2,
            id="neighbours-are-no-overlap",
        ),
    ],
)
def test_pieces_are_replaced(pieces, in_turn, raw, first_line, last_line, places):
    replaced = done(FILE, *pieces, in_turn=in_turn)

    assert (replaced.raw, replaced.first_line, replaced.last_line, replaced.places) == (
        raw,
        first_line,
        last_line,
        places,
    )
    assert replaced.after == parse(raw)


@each_row(
    ("pieces", "in_turn", "code", "start"),
    [
        pytest.param([Piece("", "x")], True, "empty-old", "The old text is empty.", id="empty"),
        pytest.param([Piece("one", "one")], True, "same-text", "The old text and the new", id="same"),
        pytest.param([Piece("nine", "9")], True, "no-match", "The old text is not in the file", id="missing"),
        pytest.param([Piece("two", "2")], True, "ambiguous", "", id="two-places"),
        pytest.param(
            [Piece("two", "2", expected=3)],
            True,
            "unexpected-count",
            "The old text stands in 2 places, not in 3.",
            id="not-as-many-as-expected",
        ),
        pytest.param(
            [Piece("one", "1"), Piece("one", "2")],
            True,
            "no-match",
            "Edit 2 of 2: The old text is not",
            id="in-turn-gone",
        ),
        pytest.param(
            [Piece("one", "1"), Piece("", "2")],
            True,
            "empty-old",
            "Edit 2 of 2: The old text is empty.",
            id="which-one",
        ),
        pytest.param(
            [Piece("one", "1"), Piece("1", "2")], False, "no-match", "Edit 2 of 2:", id="at-once-sees-only-the-file"
        ),
        pytest.param(
            [Piece("one\ntwo\n", "x\n"), Piece("two\nthree\n", "y\n")],
            False,
            "overlap",
            "Two of the edits change the same text.",
            id="overlap",
        ),
        pytest.param(
            [Piece("one", "x"), Piece("one", "y")], False, "overlap", "Two of the edits", id="the-same-place-twice"
        ),
    ],
)
def test_what_is_not_clear_is_refused(pieces, in_turn, code, start):
    failure = refused(FILE, *pieces, in_turn=in_turn)

    assert failure.code == code
    assert failure.message.startswith(start)


@pytest.mark.parametrize("in_turn", [True, False])
def test_the_file_s_encoding_and_line_ends_stay_whatever_comes(in_turn):
    raw = "é eins\r\nzwei\r\ndrei\r\n".encode("cp1252")
    replaced = done(raw, Piece("é eins", "1"), Piece("drei", "ö\n3"), in_turn=in_turn)

    assert replaced.raw == "1\r\nzwei\r\nö\r\n3\r\n".encode("cp1252")
    assert replaced.notes[-1] == "The file is encoded as cp1252, and still is."


def test_a_character_that_the_encoding_has_not_is_refused_in_any_edit():
    failure = refused("é\neins\n".encode("cp1252"), Piece("eins", "1"), Piece("1", "☃"))

    assert failure.code == "unencodable"
    assert "'☃'" in failure.message


@pytest.mark.parametrize("in_turn", [True, False])
def test_a_text_that_would_be_taken_for_binary_breaks_nothing(in_turn):
    replaced = done(b"a\nb\n", Piece("a", "\0\1\2"), Piece("b", "c"), in_turn=in_turn)

    assert replaced.raw == b"\0\1\2\nc\n"
    assert replaced.diff("a").endswith("-a\n-b\n+\0\1\2\n+c\n")


def test_loose_matches_are_told_of_each():
    replaced = done(b"a  \nb\nc  \nd\n", Piece("a\nb", "A\nB"), Piece("c\nd", "C\nD"))

    assert replaced.notes == (
        "Edit 1: The old text was matched loosely (trailing-blanks).",
        "Edit 2: The old text was matched loosely (trailing-blanks).",
    )


def test_a_diff_is_of_the_whole_change():
    in_turn = done(FILE, Piece("one", "1"), Piece("five", "5"))
    at_once = done(FILE, Piece("one", "1"), Piece("five", "5"), in_turn=False)

    assert in_turn.diff("a") == at_once.diff("a")
    assert in_turn.diff("a").startswith("diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,5 +1,5 @@\n-one\n+1\n two\n")


NAMES = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=8, unique=True)


@given(NAMES, st.data())
def test_edits_of_different_lines_come_to_the_same_in_turn_and_at_once(names, data):
    raw = "".join(f"<{name}>\n" for name in names).encode()
    chosen = data.draw(st.permutations(names))[: data.draw(st.integers(1, len(names)))]
    news = st.text("XYZ\n", max_size=5)
    pieces = [Piece(f"<{name}>", data.draw(news)) for name in chosen]
    in_turn, at_once = done(raw, *pieces), done(raw, *pieces, in_turn=False)

    assert in_turn.raw == at_once.raw
    assert (in_turn.first_line, in_turn.last_line) == (at_once.first_line, at_once.last_line)
    assert 1 <= in_turn.first_line <= in_turn.last_line


def test_one_piece_by_itself_is_the_same_as_a_list_of_one():
    piece = Piece("three", "3")

    assert replace(parse(FILE), piece, "/a", stale=False) == done(FILE, piece)


@pytest.mark.parametrize(
    ("seen", "now", "code"),
    [
        pytest.param(None, b"x", "not-read", id="never-read"),
        pytest.param(b"x", b"x", None, id="as-it-was-read"),
        pytest.param(b"x", b"y", "stale", id="changed-since"),
    ],
)
def test_a_file_must_have_been_read_as_it_is(seen, now, code):
    ledger = Ledger()
    if seen is not None:
        ledger.saw("/a", seen)

    if code is None:
        check_read(now, "/a", ledger)
        assert current(now, "/a", ledger, read_first=True).raw == now
    else:
        with pytest.raises(ToolFailure) as caught:
            current(now, "/a", ledger, read_first=True)
        assert caught.value.code == code
        assert current(now, "/a", ledger, read_first=False).raw == now


@pytest.mark.parametrize(
    ("raw", "code"), [pytest.param(None, "not-found", id="missing"), pytest.param(b"\0\1", "binary", id="binary")]
)
def test_only_a_text_that_is_there_can_be_changed(raw, code):
    with pytest.raises(ToolFailure) as caught:
        current(raw, "/a", Ledger(), read_first=False)

    assert (caught.value.code, caught.value.path) == (code, "/a")
