"""Positions and addresses: the way to a server and back leads to the same character and the same file."""

import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from ferrule.files.text import lines
from ferrule.tools.lsp.diagnostics import problems
from ferrule.tools.lsp.documents import from_server, path_of, to_server, uri

ENCODINGS = ("utf-8", "utf-16", "utf-32")
TEXTS = st.text(alphabet=st.sampled_from("aé漢𝄞\n\r\t "), max_size=40)
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0/"), min_size=1, max_size=12)


@each_row(
    ("text", "place", "encoding", "expected"),
    [
        pytest.param("abc\ndef", (2, 2), "utf-16", (1, 1), id="plain"),
        pytest.param("𝄞x", (1, 2), "utf-8", (0, 4), id="utf-8"),
        pytest.param("𝄞x", (1, 2), "utf-16", (0, 2), id="utf-16"),
        pytest.param("𝄞x", (1, 2), "utf-32", (0, 1), id="utf-32"),
        pytest.param("ab", (1, 99), "utf-16", (0, 2), id="behind-the-end-of-the-line"),
        pytest.param("ab\ncd", (99, 1), "utf-16", (1, 0), id="behind-the-last-line"),
        pytest.param("ab\ncd", (0, 0), "utf-16", (0, 0), id="before-the-first"),
        pytest.param("ab\r\ncd", (1, 9), "utf-16", (0, 2), id="crlf-ends-before-its-cr"),
        pytest.param("a\rb\nc", (2, 1), "utf-16", (2, 0), id="a-lone-cr-ends-a-line-for-servers"),
        pytest.param("a\rb\nc", (1, 3), "utf-16", (1, 0), id="behind-a-lone-cr"),
        pytest.param("a\rb", (2, 1), "utf-16", (1, 0), id="cr-only"),
        pytest.param("", (1, 1), "utf-16", (0, 0), id="empty"),
    ],
)
def test_a_position_is_written_as_a_server_counts(text, place, encoding, expected):
    line, character = expected

    assert to_server(text, place[0], place[1], encoding) == {"line": line, "character": character}


@each_row(
    ("text", "position", "encoding", "expected"),
    [
        pytest.param("abc\ndef", (1, 1), "utf-16", (2, 2), id="plain"),
        pytest.param("𝄞x", (0, 2), "utf-16", (1, 2), id="utf-16"),
        pytest.param("𝄞x", (0, 1), "utf-16", (1, 1), id="inside-of-a-character"),
        pytest.param("𝄞x", (0, 3), "utf-8", (1, 1), id="inside-of-a-character-utf-8"),
        pytest.param("ab\ncd", (9, 9), "utf-8", (2, 3), id="behind-the-end"),
        pytest.param("a\rb\nc", (1, 0), "utf-16", (1, 3), id="behind-a-lone-cr"),
        pytest.param("a\r\nb", (1, 0), "utf-16", (2, 1), id="crlf"),
        pytest.param("ab", (-1, -5), "utf-16", (1, 1), id="nonsense"),
    ],
)
def test_a_position_of_a_server_is_read_as_people_count(text, position, encoding, expected):
    line, character = position

    assert from_server(text, {"line": line, "character": character}, encoding) == expected


@given(TEXTS, st.integers(1, 12), st.integers(1, 12), st.sampled_from(ENCODINGS))
def test_a_place_in_a_text_is_found_again(text, line, character, encoding):
    found = lines(text) or [""]
    line = min(line, len(found))
    character = min(character, len(found[line - 1]) + 1)

    assert from_server(text, to_server(text, line, character, encoding), encoding) == (line, character)


@given(st.lists(NAMES, min_size=1, max_size=4))
def test_an_address_leads_back_to_its_path(names):
    path = os.path.join(os.sep, *names)

    assert path_of(uri(path)) == path
    assert uri(path).isascii()


def test_a_name_that_is_no_utf_8_has_an_address_too():
    path = os.fsdecode(b"/a/\xff\xfe")

    assert uri(path) == "file:///a/%FF%FE"
    assert path_of(uri(path)) == path


@each_row(
    ("address", "path"),
    [
        pytest.param("file:///a%20b/c%3A.py", "/a b/c:.py", id="escaped"),
        pytest.param("file:///a/c:.py", "/a/c:.py", id="not-escaped"),
        pytest.param("file://localhost/a", "/a", id="localhost"),
        pytest.param("file:///a?b#c", "/a?b#c", id="marks-in-a-name"),
        pytest.param("file://elsewhere/a", None, id="another-machine"),
        pytest.param("https://example.org/a", None, id="a-page"),
        pytest.param("vscode-notebook-cell:/a", None, id="something-else"),
        pytest.param("file:///a%00b", None, id="nul"),
        pytest.param("file://[/a", None, id="broken"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_only_files_of_this_machine_have_a_path(address, path):
    assert path_of(address) == path


@given(TEXTS, st.integers(0, 12), st.integers(0, 12), st.sampled_from(ENCODINGS))
def test_what_a_server_means_is_found_by_counting_too(text, line, character, encoding):
    """The same by walking: a server's lines end with CR LF, LF or CR; people's with the mark of the text."""
    pieces, units = re.split("(\r\n|\n|\r)", text), character
    if 2 * line >= len(pieces):
        offset = len(text)
    else:
        offset = len("".join(pieces[: 2 * line]))
        for char in pieces[2 * line]:
            size = {"utf-8": len(char.encode()), "utf-16": len(char.encode("utf-16-le")) // 2, "utf-32": 1}[encoding]
            if size > units:
                break
            units -= size
            offset += 1
    mark = "\r" if "\r" in text and "\n" not in text else "\n"
    before = text[:offset]
    expected = (before.count(mark) + 1, offset - (before.rfind(mark) + 1) + 1)

    assert from_server(text, {"line": line, "character": character}, encoding) == expected


def test_a_large_text_with_a_lone_cr_is_gone_through_once():
    """Line by line with a look for the next CR each time would take hours."""
    text = "a\r" + "x = 1\n" * 500_000
    raw = [{"message": "m", "range": {"start": {"line": 400_000 + at, "character": 2}}} for at in range(2000)]

    found = problems("/a", text, raw, "utf-16")

    assert [(one.line, one.character) for one in found[:2]] == [(400_000, 3), (400_001, 3)]


def test_a_line_as_long_as_a_book_is_not_counted_through_for_each_problem():
    text = "é" * 2_000_000
    raw = [{"message": "m", "range": {"start": {"line": 0, "character": 1_900_000 + at}}} for at in range(2000)]

    assert problems("/a", text, raw, "utf-16")[0].character == 1_900_001


@pytest.mark.parametrize(
    "address", ["file:a", "file://?a", "file://#/a", "file:///\ud800", "file://host/a", "FILE://x/a"]
)
def test_an_address_that_names_no_absolute_path_is_none(address):
    assert path_of(address) is None
