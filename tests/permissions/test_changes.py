"""What a call would change, as rows for a person."""

import pytest

from ferrule.core.tool import Previewed
from ferrule.permissions.question import MOST_ROW_CHARS, rows
from tests.rows import each_row


def shown(path: str) -> str:
    return path.removeprefix("/w/")


MANY = "".join(f"{number}\n" for number in range(1, 31))


@each_row(
    ("before", "after", "expected"),
    [
        pytest.param(b"a\n", b"b\n", ("1 - a", "1 + b"), id="one-line"),
        pytest.param(None, b"", ("(new file, 0 bytes)",), id="empty"),
        pytest.param(b"a\n", b"a\n", ("(reads like this already: nothing would change)",), id="same"),
        pytest.param(b"a\n", b"a", ("1 - a", "1 + a", "   (no newline at the end then)"), id="no-newline"),
        pytest.param(b"a\r\nb\r\n", b"a\r\nc\r\n", ("1   a", "2 - b", "2 + c"), id="crlf"),
        pytest.param(b"a\r\n", b"a\n", ("1 - a\\r", "1 + a"), id="line-ends-change"),
        pytest.param(b"\xef\xbb\xbfa\n", b"a\n", ("(the text stays as it is; its encoding changes)",), id="mark"),
        pytest.param(b"\0", b"\1\0", ("(binary: 1 byte before, 2 bytes after)",), id="binary"),
        pytest.param(b"a\n", "\u202e\t\x1b[2J\n".encode(), ("1 - a", "1 + \\u202e    \\x1b[2J"), id="nothing-hides"),
        pytest.param("ä\n".encode(), "ö\n".encode(), ("1 - ä", "1 + ö"), id="half-a-character-in-common"),
        pytest.param(
            MANY.encode(),
            MANY.replace("5\n", "five\n", 1).replace("\n28\n", "\n").encode(),
            (
                " 2   2",
                " 3   3",
                " 4   4",
                " 5 - 5",
                " 5 + five",
                " 6   6",
                " 7   7",
                " 8   8",
                "   …",
                "25   25",
                "26   26",
                "27   27",
                "28 - 28",
                "28   29",
                "29   30",
            ),
            id="two-places",
        ),
    ],
)
def test_the_lines_that_differ_are_shown_with_their_numbers(before, after, expected):
    assert rows((Previewed("/w/a", before, after),), shown) == expected


def test_several_files_are_named_and_a_move_is_one():
    preview = (
        Previewed("/w/a", b"x\n", b"y\n"),
        Previewed("/w/old", b"1\n2\n", None),
        Previewed("/w/new", None, b"1\n3\n", "/w/old"),
        Previewed("/w/gone", b"z\n", None),
    )

    assert rows(preview, shown) == (
        "(a: changes)",
        "1 - x",
        "1 + y",
        "(new: moved from old)",
        "1   1",
        "2 - 2",
        "2 + 3",
        "(gone: deletes the file, 2 bytes)",
        "1 - z",
    )


def test_what_is_too_long_is_left_out_and_counted():
    long = b"x" * (MOST_ROW_CHARS + 7) + b"\n"
    many = b"y\n" * 3000

    assert rows((Previewed("/w/a", None, long),), shown)[1].endswith("x … 7 more characters")
    assert rows((Previewed("/w/a", None, many),), shown)[-1] == "… 1,001 more lines"
    assert len(rows((Previewed("/w/a", None, many),), shown)) == 2001
