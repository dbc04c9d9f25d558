"""Cleaning takes out what steers a terminal or hides from a reader, all of it, and nothing else."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.output import clean, clean_value
from tests.rows import each_row

STRIPPED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)

# Mostly the letters that sequences are made of, so that random texts contain real ones.
noisy = st.text(
    st.one_of(
        st.sampled_from("\x1b\x1b[]PX^_k\\;?0129mhK ()\x07\x18\x9b\x9c\x9d\x90\x98\r\n\t\u202e\u2066\U000e0041\ud800"),
        st.characters(),
    ),
    max_size=60,
)
plain = st.text(st.characters(codec="utf-8"), max_size=60).filter(lambda text: not STRIPPED.search(text))


@each_row(
    ("text", "cleaned"),
    [
        pytest.param("\x1b[31mred\x1b[0m", "red", id="colour"),
        pytest.param("a\x1b[2;5Hb\x1b[?25lc\x1b[1 qd", "abcd", id="cursor"),
        pytest.param("a\x9b31mb", "ab", id="8-bit-csi"),
        pytest.param("a\x1b[38;5", "a", id="unfinished-csi"),
        pytest.param("a\x1b[12é", "aé", id="broken-csi"),
        pytest.param("\x1b]0;title\x07a", "a", id="title-ended-by-bell"),
        pytest.param("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link", id="link"),
        pytest.param("\x1b]52;c;aGk=\x9ca", "a", id="clipboard-ended-by-8-bit-st"),
        pytest.param("\x9d0;title\x9ca", "a", id="8-bit-osc"),
        pytest.param("\x1b]0;no end\nnext", "\nnext", id="unfinished-osc-takes-its-line"),
        pytest.param("\x1b]0;no end", "", id="unfinished-osc-at-the-end"),
        pytest.param("\x1bPq#0;2\n#1~~\x1b\\a", "a", id="picture-of-several-lines"),
        pytest.param("\x1b_app\x1b\\\x1b^pm\x1b\\\x1bXsos\x1b\\a", "a", id="apc-pm-sos"),
        pytest.param("\x90dcs\x9c\x98sos\x9c\x9epm\x9c\x9fapc\x9ca", "a", id="8-bit-strings"),
        pytest.param("\x1bPtmux;\x1b\x1b]52;c;aGk=\x07\x1b\\a", "a", id="passed-through-tmux"),
        pytest.param("\x1bkname\x1b\\a", "a", id="window-name"),
        pytest.param("\x1b(Ba\x1b=b\x1b7c\x1bcd\x1b#8e", "abcde", id="short-sequences"),
        pytest.param("a\x1b", "a", id="escape-at-the-end"),
        pytest.param("a\x1b\x1b\x1b[1mb", "ab", id="escapes-in-a-row"),
        pytest.param("a\x1b\nb", "a\nb", id="escape-before-a-newline"),
        pytest.param("a\x00\x07\x08\x0b\x0c\x7f\x85b", "ab", id="control-characters"),
        pytest.param("a\tb\nc", "a\tb\nc", id="tab-and-newline-stay"),
        pytest.param("a\r\nb\r\r\nc", "a\nb\nc", id="line-endings"),
        pytest.param("10%\r20%\r\x1b[K30%\n", "10%\n20%\n30%\n", id="progress-bar"),
        pytest.param("if \u202eadmin\u2066 x\u2069\u200f\u200e\u061c", "if admin x", id="direction"),
        pytest.param("hi\U000e0068\U000e0069\U000e007f", "hi", id="tags"),
        pytest.param("\ufeffone\ufefftwo", "onetwo", id="byte-order-marks"),
        pytest.param("a\ud800b\udfffc", "a\ufffdb\ufffdc", id="halves-of-pairs"),
        pytest.param("\U0001f469\u200d\U0001f4bb\ufe0f", "\U0001f469\u200d\U0001f4bb\ufe0f", id="joined-emoji"),
        pytest.param("نص\u200cعربي", "نص\u200cعربي", id="right-to-left-letters"),
        pytest.param("â\x80\x98keptâ\x80\x99 â\x80\x9ckeptâ\x80\x9d kept", "âkeptâ âkeptâ kept", id="mojibake"),
    ],
)
def test_what_a_text_becomes(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


@given(noisy)
def test_nothing_that_steers_or_hides_is_left(text: str) -> None:
    assert not STRIPPED.search(clean(text))


@given(noisy)
def test_cleaning_twice_changes_nothing(text: str) -> None:
    once = clean(text)

    assert clean(once) is once


@given(plain)
def test_a_clean_text_is_returned_itself(text: str) -> None:
    assert clean(text) is text


@given(plain, plain)
def test_text_around_a_finished_sequence_stays(before: str, after: str) -> None:
    assert clean(f"{before}\x1b[1;31m{after}") == before + after


@given(noisy, plain)
def test_the_next_line_always_stays(first: str, after: str) -> None:
    # A string of several lines has to be closed by something; nothing in a plain line closes one.
    assert clean(first + "\n" + after).endswith("\n" + after)


@pytest.mark.parametrize(
    "unit",
    [
        pytest.param("\x1b", id="escapes"),
        pytest.param("\x1b]", id="openings"),
        pytest.param("\x1b]\n", id="openings-on-lines"),
        pytest.param("\x9d", id="8-bit-openings"),
        pytest.param("\x9da", id="8-bit-openings-with-text"),
        pytest.param("\x1b[", id="csi"),
        pytest.param("\x1b[1", id="csi-with-numbers"),
        pytest.param("\r", id="returns"),
        pytest.param("\x1b ", id="intermediates"),
    ],
)
def test_a_megabyte_of_beginnings_is_cleaned_in_one_walk(unit: str) -> None:
    # A search that walks back would need hours here, not a moment.
    cleaned = clean(unit * (1_000_000 // len(unit)))

    assert not STRIPPED.search(cleaned)


@each_row("opening", ["\x1b]", "\x1b[", "\x1bP", "\x9d", "\x9b"])
@each_row("filling", ["0", ";", " ", "\n", "a"])
def test_one_opening_before_a_megabyte_is_cleaned_in_one_walk(opening: str, filling: str) -> None:
    assert not STRIPPED.search(clean(opening + filling * 1_000_000))


json_values = st.recursive(
    st.one_of(noisy, plain, st.integers(), st.none(), st.booleans()),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(noisy, inner, max_size=4)),
    max_leaves=12,
)


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for key, member in value.items() for leaf in (key, *leaves(member))]
    if isinstance(value, list):
        return [leaf for item in value for leaf in leaves(item)]
    return [value]


@given(json_values)
def test_every_text_of_a_value_is_cleaned_and_none_is_lost(value: Any) -> None:
    before = repr(value)

    cleaned = clean_value(value)

    assert not any(isinstance(leaf, str) and STRIPPED.search(leaf) for leaf in leaves(cleaned))
    assert len(leaves(cleaned)) == len(leaves(value))
    assert clean_value(cleaned) is cleaned
    assert repr(value) == before


def test_a_clean_value_is_returned_itself() -> None:
    value = {"a": ["b", {"c": 1}], "d": None}

    assert clean_value(value) is value


def test_keys_that_become_the_same_stay_apart_and_the_clean_one_keeps_its_name() -> None:
    value = {"path\x1b[0m": 1, "path": 2, "pa\u202eth": 3}

    assert clean_value(value) == {"path_2": 1, "path": 2, "path_3": 3}


def test_a_value_may_be_as_deep_as_it_likes() -> None:
    value: Any = "\x1b[1mdeep"
    for _ in range(100_000):
        value = [value]

    cleaned = clean_value(value)
    while isinstance(cleaned, list):
        (cleaned,) = cleaned

    assert cleaned == "deep"
