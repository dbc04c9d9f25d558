"""What servers send about a document, however odd, becomes problems in order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from ferrule.tools.lsp import Problem
from ferrule.tools.lsp.diagnostics import MOST, MOST_MESSAGE_CHARS, SEVERITIES, problems
from ferrule.tools.lsp.life import Published

TEXT = "one\ntwo \U0001f600 x\r\nthree\n"


def at(line: object, character: object = 0) -> dict[str, object]:
    return {"start": {"line": line, "character": character}, "end": {"line": 0, "character": 0}}


def one(encoding="utf-16", **fields):
    (found,) = problems("/a.py", TEXT, [{"message": "m", "range": at(0), **fields}], encoding, source="server")
    return found


@each_row(
    ("fields", "expected"),
    [
        pytest.param({}, {"line": 1, "character": 1, "severity": "error", "source": "server"}, id="least"),
        pytest.param({"range": at(2, 3)}, {"line": 3, "character": 4}, id="place"),
        pytest.param({"range": at(1, 7)}, {"line": 2, "character": 7}, id="behind-a-pair-of-units"),
        pytest.param({"range": at(1, 999)}, {"line": 2, "character": 8}, id="behind-the-line"),
        pytest.param({"range": at(999, 4)}, {"line": 4, "character": 1}, id="behind-the-end"),
        pytest.param({"range": at(-5, -7)}, {"line": 1, "character": 1}, id="before-the-beginning"),
        pytest.param({"range": None}, {"line": 0, "character": 0}, id="no-place"),
        pytest.param({"range": at("1")}, {"line": 0, "character": 0}, id="a-place-that-is-none"),
        pytest.param({"range": at(True)}, {"line": 0, "character": 0}, id="a-truth-is-no-line"),
        pytest.param({"severity": 2}, {"severity": "warning"}, id="warning"),
        pytest.param({"severity": 3}, {"severity": "information"}, id="information"),
        pytest.param({"severity": 4}, {"severity": "hint"}, id="hint"),
        pytest.param({"severity": 9}, {"severity": "error"}, id="no-such-severity"),
        pytest.param({"code": "E1", "source": "ty"}, {"code": "E1", "source": "ty"}, id="code-and-source"),
        pytest.param({"code": 2304}, {"code": "2304"}, id="a-number-as-code"),
        pytest.param({"code": {"value": "E1", "target": "x"}}, {"code": "E1"}, id="an-object-as-code"),
        pytest.param({"code": [1], "source": 7.5}, {"code": "", "source": "server"}, id="neither"),
        pytest.param({"message": "m\ninfo: looked\n in x"}, {"message": "m"}, id="without-asides"),
        pytest.param({"message": "two\n  lines\tof it"}, {"message": "two lines of it"}, id="one-line"),
        pytest.param({"message": "\x1b[31mred\x1b[0m \u202eback"}, {"message": "red back"}, id="nothing-that-steers"),
        pytest.param({"message": {"kind": "markdown", "value": "m"}}, {"message": "m"}, id="marked-up"),
        pytest.param({"message": "half \ud83d"}, {"message": "half ?"}, id="half-a-pair"),
    ],
)
def test_a_diagnostic_is_read(fields, expected):
    found = one(**fields)

    assert {name: getattr(found, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("encoding", "units"), [pytest.param("utf-8", 9, id="8"), ("utf-16", 7), pytest.param("utf-32", 6, id="32")]
)
def test_characters_are_counted_as_people_do(encoding, units):
    assert one(encoding, range=at(1, units)).character == 7


def test_a_lone_cr_is_no_line_of_ours():
    (found,) = problems("/a", "a\rb\nc", [{"message": "m", "range": at(1, 0)}], "utf-16")

    assert (found.line, found.character) == (1, 3)


@each_row("raw", ["text", None, 7, [], {}, {"message": ""}, {"message": "\x1b[0m"}, {"message": 3.5}])
def test_what_makes_no_sense_is_left_out(raw):
    assert problems("/a", "", [raw], "utf-8") == ()


def test_errors_come_first_and_then_by_place():
    raw = [
        {"message": "w", "severity": 2, "range": at(0)},
        {"message": "late", "severity": 1, "range": at(2)},
        {"message": "early", "severity": 1, "range": at(1)},
    ]

    assert [found.message for found in problems("/a", TEXT, raw, "utf-8")] == ["early", "late", "w"]


def test_of_very_many_the_worst_are_kept():
    hints = [{"message": "h", "severity": 4, "range": at(0)}] * (MOST + 10)

    found = problems("/a", TEXT, [*hints, {"message": "e", "range": at(0)}], "utf-8")

    assert len(found) == MOST
    assert found[0] == Problem("/a", 1, "e", 1)


def test_a_long_message_is_cut():
    assert len(one(message="x" * 10_000).message) == MOST_MESSAGE_CHARS


FIELDS = ["message", "range", "start", "line", "character", "severity", "code", "value", "source"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=20,
)


@given(st.lists(JSON, max_size=4), st.text(), st.sampled_from(["utf-8", "utf-16", "utf-32"]))
def test_nothing_that_a_server_sends_does_harm(raw, text, encoding):
    text = text.encode(errors="ignore").decode()

    for found in problems("/a", text, raw, encoding):
        assert found.severity in SEVERITIES
        assert 0 <= found.line <= text.count("\n") + text.count("\r") + 1
        assert "\n" not in found.message
        assert found.message.encode()


def test_sequences_for_a_terminal_go_as_a_whole():
    (found,) = problems("/a", "", [{"message": "a\x1b]0;title\x07b\x1b[31mc\x9b0md\u202ee\x1bPq\x1b\\f"}], "utf-8")

    assert found.message == "abcdef"


def test_what_is_kept_of_reports_is_bounded():
    """A server may send any number of them, about any files, each as large as a message can be."""
    published = Published()
    item = {"message": "m" * 100_000, "data": "d" * 100_000, "range": {"start": {"line": 1, "character": 2, "x": "y"}}}
    for number in range(15):
        published.put({"uri": f"file:///{number}", "diagnostics": [item] * 5000})
        published.put_answer(f"/{number}", {"kind": "full", "resultId": "1", "items": [item] * 5000})

    assert published._kept == sum(len(one.items) for one in published._reports.values()) <= 50_000
    assert published._pulled == sum(len(one[1]) for one in published._results.values()) <= 50_000
    kept = published._reports["/14"].items[0]
    assert len(kept["message"]) <= 4000
    assert kept["range"] == {"start": {"line": 1, "character": 2}}
    assert "data" not in kept
    published.forget("/14")
    assert published._kept == sum(len(one.items) for one in published._reports.values())
