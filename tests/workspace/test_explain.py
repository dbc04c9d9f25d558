"""Reports about edits that found no place or too many: short, true, and with a next step."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.files.match import Ambiguous, Missing, find
from ferrule.files.replace import LIMIT_CHARACTERS, explain, explain_ambiguous
from ferrule.files.text import parse

SOURCE = """\
import math


def area(radius):
    if radius < 0:
        raise ValueError(radius)
    return math.pi * radius ** 2


def circumference(radius):
    if radius < 0:
        raise ValueError(radius)
    return 2 * math.pi * radius
"""
WORDS = st.sampled_from(
    ["alpha", "beta", "gamma", " ", "  ", "\t", "\n", "\r\n", "\r", "é", "'", "12: ", "7→", "(", ")"]
)
TEXTS = st.lists(WORDS, max_size=40).map("".join)


def report(text: str, old: str, new: str = "x", *, changed_since_read: bool = False) -> str:
    file = parse(text.encode())
    outcome = find(file, old, new, everywhere=False)
    if isinstance(outcome, Ambiguous):
        return explain_ambiguous(file, outcome, old)
    assert isinstance(outcome, Missing)
    return explain(file, old, new, changed_since_read=changed_since_read)


@given(TEXTS, TEXTS.filter(bool), TEXTS, st.booleans())
def test_every_report_is_short_and_has_sentences(text: str, old: str, new: str, changed: bool):
    file = parse(text.encode())
    outcome = find(file, old, new, everywhere=False)
    found = explain(file, old, new, changed_since_read=changed)

    assert found.endswith(".")
    assert len(found) <= LIMIT_CHARACTERS
    if isinstance(outcome, Ambiguous):
        assert len(explain_ambiguous(file, outcome, old)) <= LIMIT_CHARACTERS


def test_the_closest_lines_are_shown_beside_the_old_text():
    assert report(
        SOURCE, "    if radius <= 0:\n        raise ValueError(radius)\n    return math.pi * radius ** 2\n"
    ) == (
        "The old text is not in the file. Nothing was changed.\n"
        "The closest text is at lines 5 to 7.\n"
        "Where they differ, > is the file, · is a space, → a tab and ␍ a carriage return:\n"
        ">     5  ····if·radius·<·0:\n"
        "    old  ····if·radius·<=·0:\n"
        "      6          raise ValueError(radius)\n"
        "Copy the old text from the file as it is now, and edit again."
    )


@pytest.mark.parametrize(
    ("text", "old", "rows"),
    [
        pytest.param(
            SOURCE,
            "def area(radius):\n    return math.pi * radius ** 2\n",
            [
                "      4  def area(radius):",
                ">     5  ····if·radius·<·0:",
                ">     6  ········raise·ValueError(radius)",
                "      7      return math.pi * radius ** 2",
            ],
            id="lines-left-out",
        ),
        pytest.param(
            SOURCE,
            "import math\n\nclass Circle:\n\ndef area(radius):\n",
            ["      …", "      2  ", "    old  class·Circle:", "      3  "],
            id="lines-that-are-not-there",
        ),
        pytest.param(
            "call(one,  two)\n",
            "call(one, two)",
            [">     1  call(one,··two)", "    old  call(one,·two)"],
            id="blanks-inside-a-line",
        ),
        pytest.param(
            "\tif first:\n\t    second()\n",
            "\tif first:\n\t\tsecond()\n",
            ["      1  \tif first:", ">     2  →····second()", "    old  →→second()"],
            id="tabs-and-spaces",
        ),
        pytest.param(
            "print('a')\rprint('b')\nprint('c')\n",
            "print('a')\nprint('b')\nprint('c')\n",
            [">     1  print('a')␍print('b')", "    old  print('a')", "    old  print('b')", "      2  print('c')"],
            id="a-carriage-return",
        ),
        pytest.param(
            "say ‘hello’ to all\n",
            "say 'hello' to all",
            [
                ">     1  say·‘hello’·to·all",
                "    old  say·'hello'·to·all",
                "         the file has '‘' (U+2018) where the old text has \"'\" (U+0027)",
            ],
            id="other-quotes",
        ),
        pytest.param(
            "x" * 3000 + " one " + "y" * 3000,
            "x" * 3000 + " two " + "y" * 3000,
            [f">     1  …{'x' * 79}·one·{'y' * 76}…", f"    old  …{'x' * 79}·two·{'y' * 76}…"],
            id="deep-inside-a-long-line",
        ),
    ],
)
def test_only_what_differs_is_shown_with_visible_blanks(text: str, old: str, rows: list[str]):
    shown = report(text, old).split("\n")

    assert shown[3:-1] == rows


def test_a_text_like_nothing_in_the_file_is_said_to_be_so():
    assert report(SOURCE, "fn main() -> Result<()> {\n    Ok(())\n}\n") == (
        "The old text is not in the file. Nothing was changed.\n"
        "Nothing in the file is like it: read the file again, or look for the text in other files."
    )


def test_the_closest_text_is_found_far_down_a_long_file():
    text = "".join(f"value_{number} = compute({number})\n" for number in range(100_000))

    shown = report(text, "value_70000 = compute(70000)\nvalue_70001 = calculate(70001)\n")
    assert "The closest text is at lines 70001 to 70002.\n" in shown
    assert "> 70002  value_70001·=·compute(70001)\n" in shown


def test_a_file_that_changed_is_said_to_have_changed():
    assert "The file has changed since you read it" in report(SOURCE, "def area(r):", changed_since_read=True)
    assert "has changed since" not in report(SOURCE, "def area(r):")


def test_an_edit_that_was_made_before_is_recognised():
    shown = report(SOURCE, "return 3 * radius ** 2", "return math.pi * radius ** 2")

    assert "The new text is already in the file, at line 7:" in shown


def test_a_short_new_text_proves_nothing():
    assert "already in the file" not in report(SOURCE, "def area(r):", "radius")


@pytest.mark.parametrize(
    "old",
    [
        pytest.param("4: def area(radius):\n5:     if radius < 0:", id="colon"),
        pytest.param("     4→def area(radius):\n     5→    if radius < 0:\n", id="arrow"),
        pytest.param("4\tdef area(radius):\n5\t    if radius < 0:\n", id="tab"),
        pytest.param("L4: def area(radius):\nL5:     if radius < 0:\n", id="letter"),
        pytest.param("   4| def area(radius):\n   5|     if radius < 0:\n", id="bar"),
        pytest.param("3: \n4: def area(radius):\n", id="an-empty-line-too"),
    ],
)
def test_pasted_line_numbers_are_recognised(old: str):
    shown = report(SOURCE, old)

    assert shown == (
        "The old text is not in the file. Nothing was changed.\n"
        "The lines of the old text begin with line numbers, which are not in the file. "
        f"Without them it stands at line {3 if old.startswith('3') else 4}: leave them out, in the new text too."
    )


@pytest.mark.parametrize("old", ["end\n", "\nend\n\n", "\r\n\r\nend"])
def test_line_ends_that_are_not_there_are_recognised(old: str):
    assert report("begin\nend", old) == (
        "The old text is not in the file. Nothing was changed.\n"
        "Without the line ends around it, the old text stands at line 2: the file has none there. "
        "Leave them out, in the new text too."
    )


def test_an_indentation_that_cannot_be_carried_over_is_explained():
    shown = report("\tone = 1\n\ttwo = 2\n", "one = 1\ntwo = 2\n", "if one:\n    two = 2\n")

    assert shown.startswith(
        "The old text stands at line 1 with another indentation, and the new text cannot be moved the same way. "
        "Nothing was changed. Write both with the file's own indentation.\n"
    )
    assert ">     1  →one·=·1\n    old  one·=·1\n" in shown


def test_a_file_that_repeats_itself_too_much_is_said_to_do_so():
    text = "\r\n" * 1_000_000

    assert report(text, "\n\r" * 5_000 + "\n").startswith("The file repeats itself so much")


def test_halves_of_pairs_do_not_get_into_a_report():
    assert "call(one,·?)" in report("call(one, two)\n", "call(one, \ud800)").encode().decode()


def test_an_empty_file_is_said_to_be_empty():
    assert report("", "a") == "The file is empty: there is nothing to replace."


def test_an_old_text_that_differs_late_is_not_compared_to_its_end():
    text = "".join(f"line {number}\n" for number in range(1000))

    assert "The first 400 lines are the same" in report(text, text.replace("line 900\n", "line nine hundred\n"))


@pytest.mark.parametrize(
    ("text", "old", "expected"),
    [
        pytest.param(
            SOURCE,
            "raise ValueError(radius)",
            "The old text fits 2 places: it stands at lines 6, 12.\n{advice}",
            id="exact",
        ),
        pytest.param(
            SOURCE,
            "(radius):\n",
            "The old text fits 2 places: it stands at lines 4, 10.\n{advice}\n"
            "Line 4 comes after: import math\nLine 10 comes after: return math.pi * radius ** 2",
            id="what-stands-before-tells-them-apart",
        ),
        pytest.param(
            "aaa", "aa", "The old text fits 2 places: it stands at line 1 (2 times).\n{advice}", id="one-line"
        ),
        pytest.param(
            "a \nb\na\t\nb\n",
            "a\nb",
            "The old text fits 2 places: but for blanks at the ends of lines, it stands at lines 1, 3.\n{advice}",
            id="loosely",
        ),
        pytest.param(
            "\n \n \n",
            " ",
            "The old text, which is nothing but blanks, fits 2 places: it stands at lines 2, 3.\n{advice}",
            id="blanks",
        ),
        pytest.param(
            "x\n" * 30,
            "x",
            "The old text fits 30 places: it stands at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, "
            "17, 18, 19, 20 and 10 more.\n{advice}",
            id="many",
        ),
    ],
)
def test_the_lines_of_all_places_are_listed(text: str, old: str, expected: str):
    advice = "Nothing was changed. Add lines before or after it, to both texts, until it fits one place only."

    assert report(text, old) == expected.format(advice=advice)


def test_places_too_many_to_count_are_said_to_be_more():
    assert report("a" * 200_000, "a").startswith(
        "The old text fits more than 100000 places: it stands at line 1 (100000 times)."
    )
