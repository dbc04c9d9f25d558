"""Cutting never splits a code point, never exceeds its bound, never loses an image, and is done only once."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ferrule.core.tool import GENERAL_LIMIT_BYTES
from ferrule.output.bounds import Cut, cut_head, cut_value, general
from tests.rows import each_row

NOTE = "[Tool result truncated: {}KB exceeds limit. Please refine the query.]"
NOTE_BYTES = len(NOTE) + 20
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 4000}}

# Few letters and many newlines, escapes, wide and broken characters, so that every boundary is met often.
texts = st.text(st.sampled_from('a\n\n"\\é€😀\x01\ud800'), max_size=80)
limits = st.one_of(st.integers(-2, 60), st.integers(60, 1200))
values = st.recursive(
    st.one_of(
        texts,
        texts.map(lambda text: text * 9),
        st.integers(),
        st.booleans(),
        st.none(),
        st.just(IMAGE),
        st.floats(allow_nan=False, allow_infinity=False),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=6),
        st.lists(texts, max_size=8),
        st.dictionaries(st.text(max_size=5), inner, max_size=5),
        st.builds(lambda text: {"type": "text", "text": text}, texts),
    ),
    max_leaves=20,
)


def size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def without_images(value: Any) -> Any:
    if isinstance(value, dict):
        return None if value == IMAGE else {key: without_images(member) for key, member in value.items()}
    return [without_images(item) for item in value] if isinstance(value, list) else value


def images(value: Any) -> int:
    return json.dumps(value).count(json.dumps(IMAGE))


def encoded(value: Any) -> int:
    value = without_images(value)
    return size(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":")))


@given(texts, st.integers(-2, 200))
def test_a_head_is_a_beginning_of_the_text_within_the_limit(text: str, limit: int) -> None:
    kept = cut_head(text, limit)

    assert text.startswith(kept.text)
    assert size(kept.text) <= max(0, limit)
    assert kept.omitted_bytes == size(text) - size(kept.text)


@given(texts, st.integers(-2, 200))
def test_a_head_ends_with_a_whole_line_or_keeps_more_than_half_of_what_fits(text: str, limit: int) -> None:
    kept = cut_head(text, limit)
    rest = text[len(kept.text) :]

    whole_line = not rest or rest.startswith("\n")
    assert whole_line or size(kept.text) > limit - 4
    assert whole_line or "\n" not in kept.text[len(kept.text) // 2 + 2 :] or not kept.text.isascii()


@each_row(
    ("text", "limit", "kept"),
    [
        pytest.param("one\ntwo\nthree", 10, "one\ntwo", id="back-to-a-line"),
        pytest.param("one\ntwo\nthree", 7, "one\ntwo", id="just-before-a-newline"),
        pytest.param("one\ntwo\nthree", 8, "one\ntwo", id="just-after-a-newline"),
        pytest.param("a\nbcdefghijk", 8, "a\nbcdefg", id="a-line-end-too-far-back"),
        pytest.param("ab\ncdefghij", 4, "ab", id="a-line-end-in-the-middle"),
        pytest.param("€€€", 5, "€", id="whole-code-points"),
        pytest.param("😀", 3, "", id="nothing-fits"),
        pytest.param("abc", 0, "", id="no-room"),
        pytest.param("abc", 3, "abc", id="exactly"),
    ],
)
def test_a_head_is_cut_here(text: str, limit: int, kept: str) -> None:
    assert cut_head(text, limit) == Cut(kept, size(text) - size(kept))


@pytest.mark.contract("truncate.general")
def test_seed_001_a_result_at_the_limit_is_left_alone() -> None:
    text = "x" * GENERAL_LIMIT_BYTES

    assert general(text, GENERAL_LIMIT_BYTES).text is text


@pytest.mark.contract("truncate.general", "truncate.message")
def test_seed_001_a_longer_result_ends_with_the_sentence() -> None:
    text = "x" * (GENERAL_LIMIT_BYTES + 1)

    assert general(text, GENERAL_LIMIT_BYTES) == Cut("x" * GENERAL_LIMIT_BYTES + "\n\n" + NOTE.format(100), 1)


@pytest.mark.parametrize(
    ("total", "kilobytes"),
    [
        pytest.param(102_400 + 511, 100, id="down"),
        pytest.param(102_400 + 512, 101, id="half-goes-up"),
        pytest.param(103_424 + 512, 102, id="half-goes-up-from-an-odd-number-too"),
    ],
)
def test_seed_001_kilobytes_are_rounded(total: int, kilobytes: int) -> None:
    assert general("x" * total, GENERAL_LIMIT_BYTES).text.endswith("\n\n" + NOTE.format(kilobytes))


def test_the_limit_counts_bytes_not_characters() -> None:
    assert general("é" * 60_000, GENERAL_LIMIT_BYTES).omitted_bytes == 120_000 - GENERAL_LIMIT_BYTES


@given(texts, st.integers(-2, 200))
@example("a\n\n" + NOTE.format(1), 2)
@example("ab\n\n" + NOTE.format(1), 0)
def test_a_bounded_text_fits_and_is_bounded_once(text: str, limit: int) -> None:
    once = general(text, limit)

    assert size(once.text) <= max(0, limit) + NOTE_BYTES
    assert (once.text == text) == (once.omitted_bytes == 0)
    assert general(once.text, limit) == Cut(once.text, 0)


def test_a_text_that_only_pretends_to_be_cut_is_cut() -> None:
    text = "x" * 1000 + "\n\n" + NOTE.format(1)

    assert general(text, 100).omitted_bytes == size(text) - 100


@given(values, limits)
@example([IMAGE, IMAGE, "a" * 300], 0)
@example([""], 3)
@example({"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": ["x" * 999, IMAGE]}}}}}}}}}}, 300)
@example([{"a": "x" * 900, "b": IMAGE}, {"c": [IMAGE]}], 200)
def test_a_cut_value_fits_keeps_its_images_and_is_cut_once(value: Any, limit: int) -> None:
    cut, omitted = cut_value(value, limit)

    assert encoded(cut) <= max(0, limit) + NOTE_BYTES + 24 + 5 * images(value)
    assert images(cut) == images(value)
    assert (cut is value or cut == value) == (omitted == 0)
    assert cut_value(cut, limit) == (cut, 0)


@given(values)
def test_a_value_that_fits_is_returned_itself(value: Any) -> None:
    cut, omitted = cut_value(value, 200_000)

    assert cut is value
    assert omitted == 0


def test_a_list_keeps_its_leading_items() -> None:
    items = [f"src/file_{number:04}.py" for number in range(1000)]

    cut, omitted = cut_value(items, 500)

    assert cut[:-1] == items[: len(cut) - 1]
    assert len(json.dumps(cut[:-1], separators=(",", ":"))) in range(480, 501)
    assert cut[-1] == NOTE.format(round(len(json.dumps(items, separators=(",", ":"))) / 1024))
    assert omitted > 0


def test_the_head_of_a_single_large_item_stays() -> None:
    assert cut_value(["x" * 5000], 100) == (["x" * 96, NOTE.format(5)], 4904)


def test_an_object_keeps_its_keys_and_its_small_members() -> None:
    value = {"stdout": "o" * 90_000, "exitCode": 1, "stderr": "short", "files": [f"{n}" for n in range(20_000)]}

    cut, omitted = cut_value(value, 10_000)

    assert list(cut) == list(value)
    assert (cut["exitCode"], cut["stderr"]) == (1, "short")
    assert cut["stdout"].endswith("o\n\n" + cut["files"][-1])
    assert abs(len(cut["stdout"]) - len(json.dumps(cut["files"], separators=(",", ":")))) < 100
    assert 9_700 < len(json.dumps(cut, separators=(",", ":"))) <= 10_000
    assert omitted > 180_000


def test_escapes_count_within_an_object() -> None:
    cut, _ = cut_value({"text": "\x01" * 50_000}, 1000)

    assert len(json.dumps(cut)) in range(900, 1001)


def test_what_has_no_large_member_becomes_text() -> None:
    value = {str(number): number for number in range(1000)}

    cut, _ = cut_value(value, 200)

    assert cut == json.dumps(value, separators=(",", ":"))[:200] + "\n\n" + NOTE.format(10)


def test_content_parts_stay_content_parts() -> None:
    cut, _ = cut_value([{"type": "text", "text": "x" * 5000}, IMAGE], 1000)

    assert [part["type"] for part in cut] == ["text", "image", "text"]
    assert cut[0]["text"].startswith("x" * 800)
    assert cut[1] is IMAGE
    assert cut[2]["text"] == NOTE.format(5)


def test_an_image_is_never_cut() -> None:
    assert cut_value(IMAGE, 10) == (IMAGE, 0)


def test_a_large_text_is_cut_in_one_pass_whatever_is_in_it() -> None:
    lines = cut_value({"text": '"\n' * 3_000_000}, 1000)[0]["text"]

    assert lines.startswith('"\n"\n')
