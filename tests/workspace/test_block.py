"""The block around a line: how far out it reaches, what opens and closes it, and what stands above it."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from ferrule.files.text import block

PYTHON = '''\
import os

# about f
@cached(
    1,
)
def f(
    a,
):
    if a:
        x = 1
        y = 2
    elif b:
        z = 3
    else:
# at the margin
        w = 4
    return a


class C:
    """Words."""

    # about m
    @property
    def m(self):
        return 1

    def n(self):
        try:
            go()
        except (A, B):
            stop()
        # the end of n

x = 1
'''

C = """\
#include <x.h>

/**
 * Main.
 */
int main(int a)
{
    switch (a) {
    case 1:
        go();
#ifdef X
        more();
#endif
        break;
    default:
        stop();
    }
    return 0;
}

class A {
public:
    int x;
private:
    int y;
};
"""

SCRIPT = """\
for one in a b
do
    if test -f one
    then
        go
    fi
done | sort

switch (x) {
  case 1:
    one();
  case 2:
    two();
}
"""

JSON = """\
[
  {
    "a": 1
  },
  {
    "b": [
      2
    ]
  }
]
"""

YAML = """\
services:
\tweb:
\t\timage: x
\t\tports:
\t\t\t- 80

\tdb:
\t\timage: y
volumes: {}
"""


def around(text: str, anchor: int, levels=0, siblings=False, header=True, most=999) -> tuple[int, int]:
    return block(text.splitlines(), anchor, levels=levels, siblings=siblings, header=header, most=most)


@each_row(
    ("text", "anchor", "more", "lines"),
    [
        pytest.param(PYTHON, 11, {}, (3, 18), id="all-levels-reach-the-outermost"),
        pytest.param(PYTHON, 11, {"levels": 1}, (10, 17), id="one-level-is-the-statement-with-all-its-branches"),
        pytest.param(PYTHON, 14, {"levels": 1}, (10, 17), id="from-a-later-branch"),
        pytest.param(PYTHON, 17, {"levels": 1}, (10, 17), id="a-comment-at-the-margin-ends-nothing"),
        pytest.param(PYTHON, 13, {"levels": 1}, (3, 18), id="a-branch-s-own-line-is-as-deep-as-its-beginning"),
        pytest.param(PYTHON, 11, {"levels": 2}, (3, 18), id="two-levels"),
        pytest.param(PYTHON, 11, {"levels": 9}, (3, 18), id="more-levels-than-there-are"),
        pytest.param(PYTHON, 10, {"header": False}, (7, 18), id="without-its-header"),
        pytest.param(PYTHON, 7, {}, (3, 18), id="on-the-line-that-opens-it"),
        pytest.param(PYTHON, 9, {}, (3, 18), id="on-the-end-of-the-parameters"),
        pytest.param(PYTHON, 3, {}, (3, 18), id="on-its-comment"),
        pytest.param(PYTHON, 4, {}, (3, 18), id="on-its-decorator"),
        pytest.param(PYTHON, 19, {}, (3, 18), id="a-blank-line-belongs-to-what-is-above"),
        pytest.param(PYTHON, 1, {}, (1, 1), id="a-line-by-itself"),
        pytest.param(PYTHON, 36, {}, (36, 36), id="the-last-line"),
        pytest.param(PYTHON, 27, {"levels": 1}, (24, 27), id="a-method-with-its-decorator"),
        pytest.param(PYTHON, 27, {"levels": 1, "header": False}, (26, 27), id="a-method-alone"),
        pytest.param(PYTHON, 26, {"levels": 1}, (21, 34), id="levels-count-from-the-line-itself"),
        pytest.param(PYTHON, 27, {"levels": 1, "siblings": True}, (22, 34), id="all-of-the-same-level"),
        pytest.param(PYTHON, 27, {"siblings": True}, (1, 36), id="all-of-the-outermost-level-is-the-file"),
        pytest.param(PYTHON, 31, {"levels": 1}, (30, 33), id="try-and-except"),
        pytest.param(PYTHON, 31, {"levels": 2}, (29, 34), id="a-comment-at-the-end-of-a-body"),
        pytest.param(PYTHON, 11, {"most": 3}, (10, 12), id="the-nearest-lines"),
        pytest.param(PYTHON, 11, {"most": 1}, (11, 11), id="the-line-alone"),
        pytest.param(PYTHON, 3, {"most": 4}, (3, 6), id="the-nearest-at-the-start"),
        pytest.param(PYTHON, 18, {"most": 4}, (15, 18), id="the-nearest-at-the-end"),
        pytest.param(C, 10, {}, (3, 19), id="braces-on-their-own-lines"),
        pytest.param(C, 7, {}, (3, 19), id="on-the-opening-brace"),
        pytest.param(C, 19, {}, (3, 19), id="on-the-closing-brace"),
        pytest.param(C, 4, {}, (3, 19), id="inside-a-long-comment"),
        pytest.param(C, 10, {"levels": 1}, (8, 17), id="labels-as-deep-as-the-switch"),
        pytest.param(C, 12, {"levels": 1}, (8, 17), id="lines-for-the-preprocessor-end-nothing"),
        pytest.param(C, 23, {"levels": 1}, (21, 26), id="parts-of-a-class"),
        pytest.param(SCRIPT, 5, {"levels": 1}, (3, 6), id="then-and-fi"),
        pytest.param(SCRIPT, 5, {}, (1, 7), id="do-and-done"),
        pytest.param(SCRIPT, 11, {"levels": 1}, (10, 11), id="a-label-that-is-deeper-than-the-switch"),
        pytest.param(SCRIPT, 13, {}, (9, 14), id="the-whole-switch"),
        pytest.param(JSON, 3, {"levels": 1}, (2, 4), id="one-object-of-a-list"),
        pytest.param(JSON, 7, {"levels": 1}, (6, 8), id="a-list-in-an-object"),
        pytest.param(JSON, 7, {"levels": 2}, (5, 9), id="the-last-object"),
        pytest.param(JSON, 3, {}, (1, 10), id="all-of-the-list"),
        pytest.param(YAML, 3, {"levels": 1}, (2, 5), id="tabs"),
        pytest.param(YAML, 3, {}, (1, 8), id="tabs-to-the-outermost"),
        pytest.param("\n\nx\n", 1, {}, (3, 3), id="blank-lines-at-the-start-belong-to-what-follows"),
        pytest.param("\n\n\n", 2, {}, (3, 3), id="nothing-but-blank-lines"),
        pytest.param("    a\n    b\n", 2, {}, (2, 2), id="everything-is-indented"),
        pytest.param("# a\n\ndef f():\n    pass\n", 3, {}, (3, 4), id="a-comment-further-above-is-not-its-header"),
        pytest.param("x = [\n    1,\n]\ndef f():\n    pass\n", 5, {}, (4, 5), id="another-s-end-is-not-its-header"),
        pytest.param("#main {\n  a: b;\n}\n", 2, {}, (1, 3), id="a-hash-is-not-always-a-comment"),
    ],
)
def test_the_block_around_a_line(text, anchor, more, lines):
    assert around(text, anchor, **more) == lines


LINES = st.lists(
    st.builds(
        lambda depth, text: "  " * depth + text,
        st.integers(0, 4),
        st.sampled_from(["", "x", "if a:", "else:", "{", "}", "# c", "@d(", ")", "case 1:", "*", "end", "}, {"]),
    ),
    min_size=1,
    max_size=30,
)


@given(LINES, st.data())
def test_a_block_is_in_the_file_and_no_longer_than_it_may_be(lines, data):
    anchor = data.draw(st.integers(1, len(lines)))
    most = data.draw(st.integers(1, 40))
    levels, siblings, header = data.draw(st.tuples(st.integers(0, 5), st.booleans(), st.booleans()))
    first, last = block(lines, anchor, levels=levels, siblings=siblings, header=header, most=most)

    assert 1 <= first <= last <= len(lines)
    assert last - first < most


@given(LINES, st.data())
def test_a_block_holds_its_line_and_grows_with_its_levels(lines, data):
    anchor = data.draw(st.integers(1, len(lines)))
    siblings = data.draw(st.booleans())
    spans = [block(lines, anchor, levels=n, siblings=siblings, header=False, most=99) for n in (1, 2, 3, 0)]

    if lines[anchor - 1].strip() not in ("", "# c", "@d(", "*"):
        assert spans[0][0] <= anchor <= spans[0][1]
    for (first, last), (wider_first, wider_last) in itertools.pairwise(spans):
        assert wider_first <= first
        assert last <= wider_last


@given(LINES, st.data())
def test_a_header_only_adds_lines_above(lines, data):
    anchor = data.draw(st.integers(1, len(lines)))
    bare = block(lines, anchor, levels=1, siblings=False, header=False, most=99)
    whole = block(lines, anchor, levels=1, siblings=False, header=True, most=99)

    assert whole[0] <= bare[0]
    assert whole[1] == bare[1]


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(["{", *["// x"] * 50_000, "}"], id="comments"),
        pytest.param(["@x"] * 50_000, id="decorators"),
        pytest.param(["else"] * 50_000, id="branches"),
        pytest.param([")"] * 50_000, id="ends"),
        pytest.param(["case 1:", "  x"] * 25_000, id="labels"),
        pytest.param([""] * 50_000, id="blank-lines"),
        pytest.param(["* x"] * 50_000, id="stars"),
    ],
)
def test_long_files_of_one_kind_of_line_are_no_trouble(lines):
    for anchor in (1, len(lines) // 2, len(lines)):
        first, last = block(lines, anchor, levels=0, siblings=False, header=True, most=10)

        assert last - first < 10
