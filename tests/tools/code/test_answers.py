"""What servers answer becomes places and symbols; whatever they answer, nothing but a failure is raised."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.rows import each_row

from ferrule.core.errors import ToolFailure
from ferrule.tools.lsp import OutlineRow, answers
from ferrule.tools.lsp.answers import ServerLocation


def span(line: int, unit: int = 0, last: int | None = None, end: int = 1) -> dict[str, Any]:
    return {
        "start": {"line": line, "character": unit},
        "end": {"line": line if last is None else last, "character": end},
    }


FILE = "file:///a.py"


@each_row(
    ("answer", "expected"),
    [
        pytest.param(None, [], id="nothing"),
        pytest.param([], [], id="none"),
        pytest.param({"uri": FILE, "range": span(3, 4)}, [ServerLocation(FILE, 3, 4)], id="one"),
        pytest.param([{"uri": FILE, "range": span(3, 4)}] * 2, [ServerLocation(FILE, 3, 4)] * 2, id="several"),
        pytest.param(
            [{"targetUri": FILE, "targetRange": span(3), "targetSelectionRange": span(5, 6)}],
            [ServerLocation(FILE, 5, 6)],
            id="link",
        ),
        pytest.param(
            [{"targetUri": FILE, "targetRange": span(3)}], [ServerLocation(FILE, 3, 0)], id="link-without-selection"
        ),
        pytest.param([{"uri": FILE}], [ServerLocation(FILE)], id="without-a-range"),
        pytest.param(
            [{"uri": FILE, "range": {"start": {"line": -1, "character": 2}}}], [ServerLocation(FILE)], id="below-0"
        ),
        pytest.param([{"uri": FILE, "range": span(2**40)}], [ServerLocation(FILE)], id="absurd"),
        pytest.param([{"uri": FILE, "range": span(True)}], [ServerLocation(FILE)], id="a-truth-is-no-number"),
        pytest.param(
            [{"uri": FILE, "range": {"start": {"line": 3.0, "character": 1.0}}}],
            [ServerLocation(FILE, 3, 1)],
            id="float",
        ),
        pytest.param([1, None, "x", [], {"uri": 5}, {}], [], id="nonsense-is-left-out"),
        pytest.param([{"uri": "x" * 100_000, "range": span(0)}], [], id="an-address-that-is-too-long"),
    ],
)
def test_places_are_read_in_every_form(answer, expected):
    assert answers.places(answer) == expected


@each_row("read", [answers.places, answers.symbols, answers.items, answers.hover])
@each_row("answer", ["text", 5, True])
def test_what_is_no_answer_is_a_failure(read, answer):
    with pytest.raises(ToolFailure) as failure:
        read(answer)

    assert failure.value.code == "server-failed"


def test_symbols_of_a_workspace_are_read_in_both_forms():
    answer = [
        {"name": "one", "kind": 12, "location": {"uri": FILE, "range": span(1, 4)}, "containerName": "box"},
        {"name": "two", "kind": 99, "location": {"uri": FILE}},
        {"name": "", "kind": 5, "location": {"uri": FILE}},
        {"name": "three", "kind": 5},
    ]

    assert answers.symbols(answer) == [
        ServerLocation(FILE, 1, 4, "function", "one", "box"),
        ServerLocation(FILE, kind="", name="two"),
    ]


def test_calls_have_the_places_where_they_are_made():
    item = {"name": "usual", "kind": 12, "uri": FILE, "range": span(5, 0, 9), "selectionRange": span(5, 4)}
    answer = [{"from": item, "fromRanges": [span(8, 3), span(7, 2), span(8, 3), None]}, {"from": None}, {"to": item}]

    assert answers.calls(answer, "from") == [
        ServerLocation(FILE, 5, 4, "function", "usual", "", item, sites=((7, 2), (8, 3)))
    ]


def test_an_outline_is_in_the_order_of_the_file_and_as_deep_as_the_code():
    method = {"name": "area", "kind": 6, "range": span(3, 4, 4), "selectionRange": span(3, 8)}
    answer = [
        {"name": "last", "kind": 12, "range": span(9, 0, 11, 0), "children": None},
        {"name": "Circle", "kind": 5, "range": span(1, 0, 4), "children": [method, {"kind": 1}]},
    ]

    assert answers.outline(answer, 10) == (
        (
            OutlineRow(0, "class", "Circle", 2, 5),
            OutlineRow(1, "method", "area", 4, 5),
            OutlineRow(0, "function", "last", 10, 11),
        ),
        0,
    )


def test_a_flat_outline_names_what_a_symbol_belongs_to():
    answer = [{"name": "area", "kind": 6, "location": {"uri": FILE, "range": span(3, 0, 4)}, "containerName": "Circle"}]

    assert answers.outline(answer, 10) == ((OutlineRow(0, "method", "area", 4, 5, "Circle"),), 0)


def test_an_outline_is_bounded_and_counts_the_rest():
    answer = [{"name": f"n{number}", "kind": 12, "range": span(number)} for number in range(30)]

    rows, more = answers.outline(answer, 10)

    assert (len(rows), more) == (10, 20)


def test_an_outline_of_any_depth_is_read():
    answer: dict[str, Any] = {"name": "n", "range": span(0)}
    for _ in range(50_000):
        answer = {"name": "n", "range": span(0), "children": [answer]}

    rows, more = answers.outline([answer], 100)

    assert len(rows) == 100
    assert more > 100


@pytest.mark.parametrize(
    ("contents", "text"),
    [
        pytest.param({"kind": "markdown", "value": " **bold** \n"}, "**bold**", id="markup"),
        pytest.param("plain", "plain", id="string"),
        pytest.param({"language": "python", "value": "def x()"}, "```python\ndef x()\n```", id="marked"),
        pytest.param({"language": "md", "value": "```\nx\n```"}, "````md\n```\nx\n```\n````", id="fence-in-a-fence"),
        pytest.param(["one", {"language": "c", "value": "int x"}, "", None, 5], "one\n\n```c\nint x\n```", id="list"),
        pytest.param(None, "", id="nothing"),
        pytest.param({"value": 5}, "", id="nonsense"),
    ],
)
def test_hover_texts_are_read_in_every_form(contents, text):
    assert answers.hover({"contents": contents}) == text


def test_a_name_is_one_line():
    answer = [{"name": "a\nb.py:1:1: rm -rf", "kind": 12, "location": {"uri": FILE, "range": span(1)}}]

    assert [told.name for told in answers.symbols(answer)] == ["a b.py:1:1: rm -rf"]


KEYS = st.sampled_from(
    [
        *("uri", "targetUri", "range", "targetRange", "targetSelectionRange", "selectionRange", "start", "end"),
        *("line", "character", "name", "kind", "detail", "containerName", "location", "children", "contents"),
        *("value", "language", "from", "to", "fromRanges"),
    ]
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=10)
    | st.sampled_from([FILE, "jdt://x", "untitled:1", "file://host/x", "file:///%ff%00", "\ud800"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=25,
)


@given(JSON)
@example([{"uri": FILE, "range": {"start": {"line": float("nan"), "character": float("inf")}}}])
def test_no_answer_raises_anything_but_a_failure(answer):
    for read in (answers.places, answers.symbols, answers.items, answers.hover):
        try:
            read(answer)
        except ToolFailure:
            continue
    for end in ("from", "to"):
        try:
            told = answers.calls(answer, end)
        except ToolFailure:
            continue
        assert all(one.line >= -1 and one.unit >= 0 for one in told)
    try:
        rows, more = answers.outline(answer, 3)
    except ToolFailure:
        return
    assert len(rows) <= 3
    assert more >= 0
