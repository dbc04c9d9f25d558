"""Shortening: what fits stays as it is, what is kept is really the beginning or the end, and the sentences count right.

Names in backticks are those of the tests of ah's own truncation, whose counterparts these are.
"""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ferrule.core.tool import WHOLE, Bound, Ends, LineLimit, Middle, Tail
from ferrule.output.bounds import Cut, shorten
from ferrule.system.highlights import Highlights
from tests.rows import each_row

# Few letters and many newlines, wide and broken characters, so that every boundary is met often.
texts = st.text(st.sampled_from("ab\n\né€😀\ud800"), max_size=60)
sizes = st.integers(0, 40)
bounds: st.SearchStrategy[Bound] = st.one_of(
    st.just(WHOLE),
    st.builds(Tail, sizes),
    st.builds(Ends, sizes, st.none() | st.integers(0, 8)),
    st.builds(Middle, sizes),
    st.builds(LineLimit, st.integers(0, 8), sizes, st.booleans()),
)


def size(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


def fits(text: str, bound: Bound) -> bool:
    """Is the text within the bound? Said once more, as plainly as possible."""
    lines = text.split("\n")
    if isinstance(bound, Tail | Middle):
        return len(text) <= bound.chars
    if isinstance(bound, Ends):
        return size(text) <= bound.limit_bytes and (bound.lines is None or not text or len(lines) <= bound.lines)
    if isinstance(bound, LineLimit):
        # A newline at the end of the last line begins no further one.
        return size(text) <= bound.limit_bytes and (not text or len(lines) - (not lines[-1]) <= bound.lines)
    return True


def apart(text: str, start: str, end: str) -> tuple[str, str]:
    """What stands before and behind the one sentence that begins and ends like this."""
    head, _, rest = text.partition(start)
    return head, rest.partition(end)[2]


@given(texts, bounds, st.integers(0, 1000))
def test_what_fits_is_returned_itself_and_only_that(text: str, bound: Bound, missing: int) -> None:
    cut = shorten(text, bound, missing=missing)

    if fits(text, bound):
        assert cut.text is text
        assert cut.omitted_bytes == 0
    else:
        assert cut.text != text
        assert cut.omitted_bytes > 0


@given(texts, bounds)
def test_no_character_is_split_or_made_up(text: str, bound: Bound) -> None:
    kept = shorten(text, bound).text

    assert {letter for letter in kept if not letter.isascii()} <= set(text)
    assert kept.encode(errors="surrogatepass").decode(errors="surrogatepass") == kept


@given(texts, sizes)
def test_a_tail_is_the_end_of_the_text(text: str, chars: int) -> None:
    cut = shorten(text, Tail(chars))

    assert text.endswith(cut.text)
    assert len(cut.text) == min(chars, len(text))
    assert cut.omitted_bytes == size(text) - size(cut.text)
    assert shorten(cut.text, Tail(chars)) == Cut(cut.text, 0)


@given(texts, sizes, st.integers(0, 1000))
def test_the_middle_goes_and_is_counted_in_characters(text: str, chars: int, missing: int) -> None:
    cut = shorten(text, Middle(chars), missing=missing)
    if not cut.omitted_bytes:
        return
    half = chars // 2
    head, tail = text[:half], text[len(text) - half :]

    assert cut.text == f"{head}\n\n... [truncated {len(text) - 2 * half + missing} chars] ...\n\n{tail}"
    assert len(head) + len(tail) <= chars
    assert cut.omitted_bytes == size(text) - size(head) - size(tail)


@given(texts, sizes, st.integers(0, 1000))
def test_both_ends_stay_within_half_of_the_bytes_each(text: str, limit_bytes: int, missing: int) -> None:
    cut = shorten(text, Ends(limit_bytes), missing=missing)
    if not cut.omitted_bytes:
        return
    head, tail = apart(cut.text, "\n\n[output truncated: ", " bytes removed from middle]\n\n")
    half = limit_bytes // 2

    assert f"[output truncated: {size(text) + missing - limit_bytes} bytes removed from middle]" in cut.text
    assert text.startswith(head)
    assert text.endswith(tail)
    for kept in (head, tail):
        # A character has at most four bytes: where one does not fit, no more than three of them are lost.
        assert half - 3 <= size(kept) <= half
    assert cut.omitted_bytes == size(text) - size(head) - size(tail)


@given(st.lists(st.sampled_from(["", "a", "bb", "é"]), max_size=20), st.integers(0, 12))
def test_the_first_and_the_last_lines_stay(lines: list[str], most: int) -> None:
    text = "\n".join(lines)
    cut = shorten(text, Ends(10_000, most))
    if not cut.omitted_bytes:
        return
    half = most // 2
    head, tail = lines[:half], lines[len(lines) - half :]
    notice = f"[...{len(lines) - 2 * half} lines omitted...]"

    assert cut.text == "\n".join(head) + f"\n{notice}\n" + "\n".join(tail)


@given(texts, st.integers(0, 8), sizes, st.booleans())
@example("x" * 50 + "\n", 5, 10, True)
@example("one\ntwo\n", 1, 40, True)
def test_whole_lines_stay_until_either_limit(text: str, most: int, limit_bytes: int, last: bool) -> None:
    cut = shorten(text, LineLimit(most, limit_bytes, last))
    if not cut.omitted_bytes:
        return
    notice = "[Truncated: these are the "
    if last:
        said, _, kept = cut.text.partition("\n\n")
        assert text.endswith(kept) or text.removesuffix("\n").endswith(kept)
    else:
        kept, _, said = cut.text.rpartition("\n\n")
        assert text.startswith(kept)

    assert said.startswith(notice)
    assert said.endswith(".]")
    assert size(kept) <= limit_bytes
    assert len(kept.removesuffix("\n").split("\n")) <= max(1, most)
    assert cut.omitted_bytes == size(text) - size(kept)


@given(texts, st.integers(1, 8), sizes, st.booleans())
def test_as_many_lines_stay_as_fit(text: str, most: int, limit_bytes: int, last: bool) -> None:
    cut = shorten(text, LineLimit(most, limit_bytes, last))
    if not cut.omitted_bytes or " lines.]" not in cut.text:
        return
    lines = text.removesuffix("\n").split("\n")
    kept = int(cut.text.split(" of ")[0].rsplit(" ", 1)[1]) if last else int(cut.text.rsplit(" of ")[-2].split()[-1])
    more = lines[len(lines) - kept - 1 :] if last else lines[: kept + 1]
    needed = size("\n".join(more)) + (last and text.endswith("\n"))

    assert kept == most or kept == len(lines) or needed > limit_bytes


@given(st.text(st.sampled_from("ab \n"), max_size=60), st.one_of(st.builds(Ends, sizes), st.builds(Middle, sizes)))
def test_shortening_again_keeps_the_same_ends(text: str, bound: Ends | Middle) -> None:
    """The sentence comes on top of the bound, so a second time finds something to cut: the sentence itself."""
    once = shorten(text, bound)
    if not once.omitted_bytes:
        return
    half = (bound.chars if isinstance(bound, Middle) else bound.limit_bytes) // 2
    twice = shorten(once.text, bound)

    assert twice.text[:half] == once.text[:half] == text[:half]
    assert twice.text[len(twice.text) - half :] == once.text[len(once.text) - half :] == text[len(text) - half :]


NUMBERED = "\n".join(f"line{number}" for number in range(1, 21))


@each_row(
    ("text", "bound", "shown"),
    [
        pytest.param("hello", Ends(100), "hello", id="truncate_chars_short"),
        pytest.param("x" * 100, Ends(100), "x" * 100, id="truncate_chars_exact"),
        pytest.param(
            "x" * 1000,
            Ends(200),
            "x" * 100 + "\n\n[output truncated: 800 bytes removed from middle]\n\n" + "x" * 100,
            id="truncate_chars_long",
        ),
        pytest.param(
            "H" * 50 + "M" * 200 + "T" * 50,
            Ends(120),
            "H" * 50 + "M" * 10 + "\n\n[output truncated: 180 bytes removed from middle]\n\n" + "M" * 10 + "T" * 50,
            id="truncate_chars_preserves_head_tail",
        ),
        pytest.param("a\nb\nc", Ends(1000, 10), "a\nb\nc", id="truncate_lines_short"),
        pytest.param(
            NUMBERED,
            Ends(1000, 10),
            "line1\nline2\nline3\nline4\nline5\n[...10 lines omitted...]\nline16\nline17\nline18\nline19\nline20",
            id="truncate_lines_long",
        ),
        pytest.param(NUMBERED, Ends(1000, 20), NUMBERED, id="truncate_lines_exact"),
        pytest.param("", Ends(0, 0), "", id="count_lines_empty"),
        pytest.param("hello", Ends(100, 1), "hello", id="count_lines_one"),
        pytest.param("a\nb\nc", Ends(100, 3), "a\nb\nc", id="count_lines_multiple"),
        pytest.param("a\nb\n", Ends(100, 3), "a\nb\n", id="count_lines_trailing_newline-3-fit"),
        pytest.param(
            "a\nb\n", Ends(100, 2), "a\n[...1 lines omitted...]\n", id="count_lines_trailing_newline-2-are-too-few"
        ),
        pytest.param(
            "é" * 50,
            Ends(11),
            "éé\n\n[output truncated: 89 bytes removed from middle]\n\néé",
            id="whole-characters",
        ),
        pytest.param("abcdef", Middle(4), "ab\n\n... [truncated 2 chars] ...\n\nef", id="middle"),
        pytest.param("abcdef", Middle(6), "abcdef", id="middle-exactly"),
        pytest.param("a\nb\nc\n", LineLimit(3, 100), "a\nb\nc\n", id="lines-exactly"),
        pytest.param(
            "a\nb\nc\n", LineLimit(2, 100), "a\nb\n\n[Truncated: these are the first 2 of 3 lines.]", id="first-lines"
        ),
        pytest.param(
            "a\nb\nc\n",
            LineLimit(2, 100, last=True),
            "[Truncated: these are the last 2 of 3 lines.]\n\nb\nc\n",
            id="last",
        ),
        pytest.param(
            "aaaa\nbbbb", LineLimit(9, 6), "aaaa\n\n[Truncated: these are the first 1 of 2 lines.]", id="lines-by-bytes"
        ),
        pytest.param(
            "a" * 20,
            LineLimit(9, 6),
            "aaaaaa\n\n[Truncated: these are the first 6 bytes of a line of 20 bytes.]",
            id="long",
        ),
        pytest.param(
            "a" * 20 + "\n",
            LineLimit(9, 6, last=True),
            "[Truncated: these are the last 6 bytes of a line of 20 bytes.]\n\naaaaaa",
            id="a-long-last-line-is-not-lost-for-its-newline",
        ),
        pytest.param("abc", Tail(2), "bc", id="tail"),
        pytest.param("abc", Tail(0), "", id="no-tail"),
        pytest.param("abc" * 50_000, WHOLE, "abc" * 50_000, id="whole"),
    ],
)
def test_a_text_is_shortened_like_this(text: str, bound: Bound, shown: str) -> None:
    assert shorten(text, bound).text == shown


def test_lines_are_counted_after_the_bytes_are_cut() -> None:
    """Both passes of the seed, in its order. The second one takes the sentence of the first, and counts for both."""
    text = "\n".join(f"{number:04}" for number in range(1000))
    cut = shorten(text, Ends(100, 6))

    assert cut.text == "0000\n0001\n0002\n[...994 lines omitted...]\n0997\n0998\n0999"


@pytest.mark.parametrize(
    ("bound", "count"),
    [
        pytest.param(Ends(100), "[output truncated: 1900 bytes removed from middle]", id="ends"),
        pytest.param(Middle(100), "[truncated 1900 chars]", id="middle"),
    ],
)
def test_what_a_tool_left_out_already_is_counted_too(bound: Bound, count: str) -> None:
    assert count in shorten("x" * 1000, bound, missing=1000).text


def test_a_large_text_is_shortened_in_one_pass_whatever_is_in_it() -> None:
    text = "é\n" * 1_000_000

    for bound in (
        Ends(30_000, 256),
        Middle(50_000),
        LineLimit(2000, 50_000),
        LineLimit(2000, 50_000, last=True),
        Tail(50_000),
    ):
        assert len(shorten(text, bound).text) < 60_000


LINES = [f"line {number} of what came" for number in range(1, 2001)]
ROWS = {700: "src/a.c:7:1: error: no", 900: "warning: slow", 1200: "== 1 failed, 3 passed =="}


@each_row("bound", [Middle(2000), Ends(2000), Ends(2000, 40), LineLimit(60, 2000, last=True), Tail(2000)])
@each_row("many", [False, True])
def test_lines_that_matter_come_in_between_within_the_same_bound(bound: Bound, many: bool) -> None:
    rows = {**ROWS, **({at: f"error: number {at}" for at in range(300, 1700, 3)} if many else {})}
    text = "\n".join(rows.get(number, line) for number, line in enumerate(LINES, 1)) + "\n"
    highlights = Highlights()
    highlights.feed(text)
    plain = shorten(text, bound).text
    short = shorten(text, bound, found=highlights.collect).text

    assert len(short) <= max(len(plain), 2000) + 8  # blank lines around them, and a notice with another number
    if isinstance(bound, Ends | LineLimit) and bound.lines:
        assert short.count("\n") <= plain.count("\n") + 3
    shown = [line for line in short.split("\n") if re.match(r"\d+: ", line)]
    assert shown
    for row in shown:
        number, _, said = row.partition(": ")
        assert rows[int(number)] == said  # the number is the line's own
    if not many:
        assert [int(row.partition(":")[0]) for row in shown] == sorted(ROWS)


def test_an_output_without_such_lines_is_shortened_as_ever() -> None:
    text = "\n".join(LINES)
    highlights = Highlights()
    highlights.feed(text)

    assert shorten(text, Middle(500), found=highlights.collect) == shorten(text, Middle(500))


@given(st.integers(1, 3000), st.integers(2, 60), st.integers(20, 4000))
def test_the_lines_shown_and_the_lines_omitted_are_all_lines(count: int, most: int, limit_bytes: int) -> None:
    text = "\n".join(f"{number}" for number in range(count))
    short = shorten(text, Ends(limit_bytes, most)).text
    found = re.search(r"\[\.\.\.(\d+) lines omitted\.\.\.\]", short)
    if found and "bytes removed" not in short:
        shown = [line for line in short.split("\n") if line.isdigit()]
        # Of a line on either side only a piece may be left, of which its number may be gone.
        assert 0 <= count - len(shown) - int(found[1]) <= 2
