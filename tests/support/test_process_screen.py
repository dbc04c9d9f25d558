"""What a reader sees of a program's output: the same wherever it is cut, and never a control character."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.system.stream import OutputDecoder, TerminalRenderer
from tests.rows import each_row

CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]"
)
SPECIAL = (
    "\x00\x07\b\t\n\r\x0b\x0c\x18\x1b\x7f\x84\x9b\x9c\x9d[]()#;:?0123456789mKGPX^_k\\ab é\u202e\u200d\ufeff\U000e0041"
)
MIXED = st.text(alphabet=SPECIAL, max_size=60)


def seen(*pieces: str) -> str:
    screen = TerminalRenderer()
    return "".join(map(screen.feed, pieces)) + screen.end()


@each_row(
    ("text", "shown"),
    [
        pytest.param("one\ntwo\n", "one\ntwo\n", id="plain"),
        pytest.param("a\tb", "a\tb", id="tab-stays"),
        pytest.param("one\r\ntwo\r\n", "one\ntwo\n", id="windows-lines"),
        pytest.param("one\r\r\ntwo", "one\ntwo", id="two-returns-and-a-newline"),
        pytest.param("1%\r50%\r100%\ndone\n", "100%\ndone\n", id="progress-bar"),
        pytest.param("1%\r50%\r100%\r\ndone\n", "100%\ndone\n", id="progress-bar-that-returns-at-its-end"),
        pytest.param("\r1%\r50%", "50%", id="progress-bar-that-returns-first"),
        pytest.param("50%\r", "50%", id="the-last-state-stays-after-a-return"),
        pytest.param("50%\r\x1b[K100%\n", "100%\n", id="erased-to-the-end-of-the-line"),
        pytest.param("ab\b\bcd", "cd", id="backspaces"),
        pytest.param("a\b\b\b\bb", "b", id="more-backspaces-than-there-are-characters"),
        pytest.param("one\n\b\btwo", "one\ntwo", id="backspaces-stay-in-their-line"),
        pytest.param("N\bNA\bAM\bME\bE", "NAME", id="bold-of-a-manual"),
        pytest.param("|\b/\b-\bdone", "done", id="spinner"),
        pytest.param("\x1b[1;31mred\x1b[0m", "red", id="colour"),
        pytest.param("\x1b]0;title\x07text", "text", id="title"),
        pytest.param("\x1b]8;;http://example\x1b\\link\x1b]8;;\x1b\\", "link", id="link"),
        pytest.param("\x1b]52;c;aGk=\x07text", "text", id="clipboard"),
        pytest.param("\x1bP1$r0m\x1b\\text", "text", id="device-control"),
        pytest.param("\x1b]never ends\nnext line", "\nnext line", id="what-never-ends-takes-its-line"),
        pytest.param("\x1b(Btext\x1b7\x1b8\x1b=", "text", id="short-sequences"),
        pytest.param("\x9b31mred", "red", id="one-byte-introducer"),
        pytest.param("a\x00b\x07c\x0bd\x0ce\x7ff", "abcdef", id="control-characters"),
        pytest.param("a\u202eb\u2066c\ufeffd\U000e0041e", "abcde", id="what-turns-or-hides"),
        pytest.param("\U0001f468\u200d\U0001f469", "\U0001f468\u200d\U0001f469", id="joiners-stay"),
        pytest.param("text\x1b", "text", id="half-a-sequence-at-the-end"),
        pytest.param("text\x1b[31", "text", id="unfinished-colour-at-the-end"),
    ],
)
def test_what_is_seen(text, shown):
    assert seen(text) == shown
    assert seen(*text) == shown


@given(MIXED, st.data())
def test_it_is_the_same_wherever_it_is_cut(text, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]

    assert seen(*pieces) == seen(text)


@given(MIXED)
def test_no_control_character_is_seen(text):
    assert CONTROL.search(seen(text)) is None


@given(st.lists(st.binary(max_size=200)), st.integers(0, 50), st.integers(0, 50))
def test_the_text_of_any_bytes_is_valid_and_without_control_characters(pieces, first, last):
    shown = OutputDecoder(first, last)
    for piece in pieces:
        shown.feed(piece)

        assert CONTROL.search(shown.text()) is None
        shown.text().encode()


def test_rare_control_characters_of_a_flood_are_not_seen_either():
    shown = OutputDecoder(100, 100)
    shown.feed(b"a\x01b" * 50_000)

    assert set(shown.text()) <= set("ab\n[],0123456789 charteshownhere")
    assert set(shown.news()) <= set("ab\n[],0123456789 charteshownhere")


@pytest.mark.parametrize(
    "piece",
    [
        pytest.param(b"x" * 65_536, id="plain"),
        pytest.param("é".encode() * 30_000, id="not-ascii"),
        pytest.param(b"x\r" * 30_000, id="returns"),
        pytest.param(b"x\b" * 30_000, id="backspaces"),
        pytest.param(b"\x1b]" + b"x" * 60_000, id="a-title-that-never-ends"),
        pytest.param(b"\x1b[" + b"1;" * 30_000, id="parameters-that-never-end"),
        pytest.param(b"\x1b" * 60_000, id="escapes"),
    ],
)
def test_a_line_of_eight_megabytes_is_not_held_in_memory(piece):
    shown = OutputDecoder(100, 100)
    for _ in range(8_000_000 // len(piece)):
        shown.feed(piece)

        assert len(shown.line) <= 1 << 14
        assert len(shown._screen._rest) <= 4
    assert len(shown.text()) <= 300


def test_a_line_that_was_let_go_is_ended_by_a_return():
    long = "x" * 20_000

    assert seen(long, "\r1%\r2%\n") == long + "\n2%\n"


def test_news_have_the_line_that_is_being_written_and_then_its_rest_or_its_next_state():
    shown = OutputDecoder(1000, 1000)
    told = []
    for data in (b"Pass", b"word: ", b"\r1%", b"\r2%", b"", b"\nend\n"):
        shown.feed(data)
        told.append(shown.news())

    assert told == ["Pass", "word: ", "1%", "2%", "", "\nend\n"]
