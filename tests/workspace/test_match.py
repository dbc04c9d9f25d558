"""The match ladder: one place or all of them, nothing changed around them, and no guess between places."""

import re
import textwrap

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from ferrule.workspace.match import Ambiguous, Found, Missing, find
from ferrule.workspace.textfile import Splice, TextFile, parse, splice

ENDS = st.sampled_from(["\n", "\r\n"])
BLANKS = st.sampled_from(["", "", " ", "\t", "  "])
WORDS = st.sampled_from(["a", "b", "aa", "ab", "", "é", "x\ry", "}", "foo", "bar baz"])
SNIPPETS = st.text(st.sampled_from("ab \t\r\n}"), max_size=8)


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, str]:
    """A short text in which much repeats, and an old text that was cut out of it and then perhaps loosened."""
    count = draw(st.integers(0, 6))
    text = "".join(draw(BLANKS) + draw(WORDS) + draw(BLANKS) + draw(ENDS) for _ in range(count))
    text += draw(BLANKS) + draw(WORDS)
    start = draw(st.integers(0, len(text)))
    old = text[start : draw(st.integers(start, len(text)))] or draw(SNIPPETS.filter(bool))
    if draw(st.booleans()):
        old = old.replace("\r\n", "\n")
    if draw(st.booleans()):
        old = "\n".join(line.rstrip(" \t") + draw(BLANKS) for line in old.split("\n")) or "a"
    return text, old


def text_file(text: str) -> TextFile:
    return parse(text.encode())


def edited(text: str, old: str, new: str, *, everywhere: bool = False) -> str:
    file = text_file(text)
    outcome = find(file, old, new, everywhere=everywhere)
    assert isinstance(outcome, Found), outcome
    return splice(file, outcome.splices).decode()


def occurrences(text: str, old: str) -> list[int]:
    """Where `old` stands, overlapping, without halves of CR LF; written with patterns, unlike the ladder."""
    starts = [match.start() for match in re.finditer(f"(?={re.escape(old)})", text)]
    half = {match.start() + 1 for match in re.finditer("\r\n", text)}
    return [start for start in starts if start not in half and start + len(old) not in half]


def unix(text: str) -> str:
    return text.replace("\r\n", "\n")


def unblanked(text: str) -> str:
    return re.sub(r"[ \t]+$", "", unix(text), flags=re.MULTILINE)


@given(cases(), SNIPPETS, st.booleans())
def test_bytes_outside_of_the_places_never_change(case: tuple[str, str], new: str, everywhere: bool):
    text, old = case
    file = text_file(text)
    outcome = find(file, old, new, everywhere=everywhere)
    if not isinstance(outcome, Found):
        return
    raw = splice(file, outcome.splices)

    kept, done = [], 0
    for start, end, _ in outcome.splices:
        kept.append(text[done:start].encode())
        done = end
    kept.append(text[done:].encode())
    assert raw.startswith(kept[0])
    assert raw.endswith(kept[-1])
    assert len(raw) == sum(map(len, kept)) + sum(len(part.new.encode()) for part in outcome.splices)


@given(cases(), SNIPPETS)
def test_only_one_place_is_ever_found_unless_everywhere_is_meant(case: tuple[str, str], new: str):
    text, old = case
    outcome = find(text_file(text), old, new, everywhere=False)

    match outcome:
        case Found():
            assert outcome.places == 1
            assert len(outcome.splices) <= 1
        case Ambiguous():
            assert len(outcome.lines) > 1
            assert list(outcome.lines) == sorted(outcome.lines)


@given(cases(), SNIPPETS)
@example(("a\r\nb", "\n"), "x")
@example(("aaa", "aa"), "x")
@example(("a\r\n", "a\r"), "x")
def test_what_is_exactly_there_decides_alone(case: tuple[str, str], new: str):
    text, old = case
    starts = occurrences(text, old)
    outcome = find(text_file(text), old, new, everywhere=False)

    if len(starts) == 1:
        assert isinstance(outcome, Found)
        assert outcome.rung == "exact"
    elif starts:
        mark = "\n" if "\n" in text else "\r"
        assert outcome == Ambiguous("exact", tuple(text.count(mark, 0, start) + 1 for start in starts))
    else:
        assert isinstance(outcome, Missing) or outcome.rung != "exact"


@given(cases(), st.text(st.sampled_from("ab$\\ \t{}&"), max_size=6))
def test_a_unique_exact_text_is_plainly_replaced(case: tuple[str, str], new: str):
    text, old = case
    if not len(occurrences(text, old)) == 1 == text.count(old):
        return

    assert edited(text, old, new).encode() == text.encode().replace(old.encode(), new.encode())


@given(cases(), SNIPPETS)
def test_a_loose_place_reads_as_if_the_looseness_were_not_there(case: tuple[str, str], new: str):
    text, old = case
    file = text_file(text)
    outcome = find(file, old, new, everywhere=False)
    if not isinstance(outcome, Found) or outcome.rung not in {"line-endings", "trailing-blanks"}:
        return
    simple = unix if outcome.rung == "line-endings" else unblanked
    *_, last = unix(old).split("\n")
    stop = r"(?=\n|\Z)" if simple(last) != last else ""
    starts = [match.start() for match in re.finditer(f"(?={re.escape(simple(old))}{stop})", simple(text))]
    # At its edges a text may stand inside a line, where the file keeps its own blanks.
    new = f"{unix(old).split(chr(10))[0]}\n{new}\n{last}"
    outcome = find(file, old, new, everywhere=False)
    assert isinstance(outcome, Found)

    start = starts.pop()
    assert not starts
    expected = simple(text)[:start] + simple(new) + simple(text)[start + len(simple(old)) :]
    assert simple(splice(file, outcome.splices).decode()) == simple(expected)


@given(st.lists(st.sampled_from(["a", "b", "  c ", "", "d\t"]), min_size=2, max_size=8), st.data())
def test_a_crlf_file_edited_with_lf_text_stays_crlf(lines: list[str], data: st.DataObject):
    start = data.draw(st.integers(0, len(lines) - 1))
    end = data.draw(st.integers(start + 1, len(lines)))
    old = "\n".join(lines[start:end])
    new = data.draw(st.lists(st.sampled_from(["x", "", "y "]), max_size=4).map("\n".join))
    text = "\r\n".join(lines) + "\r\n"
    file = text_file(text)
    outcome = find(file, old, new, everywhere=True)
    if not isinstance(outcome, Found):
        return

    assert not re.search(r"\r(?!\n)|(?<!\r)\n", splice(file, outcome.splices).decode())


@given(cases())
def test_an_edit_can_be_taken_back_by_the_opposite_edit(case: tuple[str, str]):
    text, old = case
    text, old = text.replace("\r", ""), old.replace("\r", "") or "a"
    file = text_file(text)
    outcome = find(file, old, "<unique>", everywhere=False)
    if not isinstance(outcome, Found) or outcome.rung != "exact":
        return

    assert edited(edited(text, old, "<unique>"), "<unique>", old) == text


@given(cases(), st.sampled_from(["<1>", "<1>\n<2>\n", "\n<1>"]), st.booleans())
def test_the_reported_lines_hold_the_new_text(case: tuple[str, str], new: str, everywhere: bool):
    text, old = case
    file = text_file(text)
    outcome = find(file, old, new, everywhere=everywhere)
    if not isinstance(outcome, Found):
        return
    lines = splice(file, outcome.splices).decode().replace("\r\n", "\n")
    lines = (lines if "\n" in lines else lines.replace("\r", "\n")).split("\n")

    for first, last in outcome.lines:
        assert "<1>" in "".join(lines[first - 1 : last])
        assert last - first == new.rstrip("\n").count("\n")


BODY = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(["a()", "b = 1", "if c:", "return d", ""])), min_size=1, max_size=7
).filter(lambda lines: any(text for _, text in lines))


def block(lines: list[tuple[int, str]], unit: str) -> str:
    return "".join(unit * level + text + "\n" if text else "\n" for level, text in lines)


@given(BODY, BODY, st.sampled_from(["  ", "    ", "\t", "   "]), st.integers(1, 3))
def test_a_shift_carries_the_new_text_along(old: list[tuple[int, str]], new: list[tuple[int, str]], unit: str, by: int):
    deep = textwrap.indent(block(old, unit), unit * by)
    text = f"<begin>\n{deep}<end>\n"
    file = text_file(text)
    outcome = find(file, block(old, unit), block(new, unit), everywhere=False)
    if not isinstance(outcome, Found) or outcome.rung != "indentation":
        return

    expected = f"<begin>\n{textwrap.indent(block(new, unit), unit * by)}<end>\n"
    assert splice(file, outcome.splices).decode() == expected
    back = find(
        text_file(f"<begin>\n{block(old, unit)}<end>\n"),
        deep,
        textwrap.indent(block(new, unit), unit * by),
        everywhere=False,
    )
    if isinstance(back, Found):
        plain = text_file(f"<begin>\n{block(old, unit)}<end>\n")
        assert splice(plain, back.splices).decode() == f"<begin>\n{block(new, unit)}<end>\n"


@given(BODY, BODY, st.sampled_from([2, 4, 8]), st.integers(0, 2), st.booleans())
def test_tabs_for_spaces_carry_the_new_text_along(
    old: list[tuple[int, str]], new: list[tuple[int, str]], width: int, by: int, file_has_tabs: bool
):
    mine, theirs = (" " * width, "\t") if file_has_tabs else ("\t", " " * width)
    text = f"<begin>\n{textwrap.indent(block(old, theirs), theirs * by)}<end>\n"
    file = text_file(text)
    outcome = find(file, block(old, mine), block(new, mine), everywhere=False)
    levels = {level for level, line in old if line}
    assume(len(levels) > 1 or (by == 0 and all(level in levels for level, line in new if line)))

    assert isinstance(outcome, Found)
    expected = f"<begin>\n{textwrap.indent(block(new, theirs), theirs * by)}<end>\n"
    assert splice(file, outcome.splices).decode() == expected
