"""How parameters reach a toolbox tool: nothing is lost on the way, and no value can forge another parameter."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from ferrule.core.errors import BadArguments
from ferrule.sources.toolbox.tool import encode_input

NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_.-]{0,10}", fullmatch=True)
TEXTS = st.text(max_size=40) | st.text(alphabet='\n\r"\\u2028n: ab\x85\u2028\x00', max_size=20)
SCALARS = TEXTS | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    SCALARS | st.none(), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3)
)


def lines(raw: bytes) -> dict[str, str]:
    """As a tool reads them: a line for each, however it counts lines."""
    text = raw.decode()
    assert text.endswith("\n")
    assert text.splitlines() == text.removesuffix("\n").split("\n") or text == "\n"
    pairs = [line.partition(": ")[::2] for line in text.removesuffix("\n").split("\n") if line]
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


def needs_quotes(text: str) -> bool:
    """The documented rule: what has control characters or line breaks comes as JSON, and what looks like that too."""
    if any((ord(one) < 32 and one != "\t") or 127 <= ord(one) < 160 or one in "\u2028\u2029" for one in text):
        return True
    try:
        inner = json.loads(text) if text[:1] == '"' else None
    except ValueError:
        return False
    return isinstance(inner, str) and needs_quotes(inner)


def read(text: str) -> str:
    try:
        inner = json.loads(text) if text[:1] == '"' else None
    except ValueError:
        return text
    return inner if isinstance(inner, str) and needs_quotes(inner) else text


@given(st.dictionaries(NAMES, SCALARS.filter(lambda value: not isinstance(value, str) or _whole(value)), max_size=6))
def test_scalars_come_through_a_text_as_they_are(values):
    came = {key: read(value) for key, value in lines(encode_input(values, "text")).items()}

    assert came.keys() == values.keys()
    for key, value in values.items():
        assert came[key] == value if isinstance(value, str) else json.loads(came[key]) == value


@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_no_value_forges_a_parameter(values):
    try:
        came = lines(encode_input(values, "text"))
    except (BadArguments, UnicodeEncodeError):
        return
    assert all(any(key == name or key.startswith(f"{name}_") for name in values) for key in came)
    for name, value in values.items():
        if isinstance(value, str):
            assert read(came[name]) == value


@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_json_comes_through_as_it_is(values):
    assert json.loads(encode_input(values, "json")) == values


@each_row(
    ("values", "expected"),
    [
        pytest.param({}, "\n", id="nothing"),
        pytest.param({"dir": "src", "deep": True, "n": 3, "x": 0.5}, "dir: src\ndeep: true\nn: 3\nx: 0.5\n", id="flat"),
        pytest.param({"k": ["a", "b"]}, "k_0: a\nk_1: b\n", id="list"),
        pytest.param({"k": {"sub": 1, "l": [2]}}, "k_sub: 1\nk_l_0: 2\n", id="nested"),
        pytest.param({"k": None, "l": [], "o": {}}, "l: []\no: {}\n", id="empty"),
        pytest.param({"k": "a\nyes: true"}, 'k: "a\\nyes: true"\n', id="newline"),
        pytest.param({"k": "a\rb\x85c\u2028d"}, 'k: "a\\rb\\u0085c\\u2028d"\n', id="other-line-ends"),
        pytest.param({"k": 'say "x" \\n ü'}, 'k: say "x" \\n ü\n', id="as-it-is"),
        pytest.param({"k": '"quoted"'}, 'k: "quoted"\n', id="quotes-as-they-are"),
        pytest.param({"k": '"a\\nb"'}, 'k: "\\"a\\\\nb\\""\n', id="what-looks-like-a-quoted-one"),
        pytest.param({"k": {"a: b\nc": 1}}, "k_a__b_c: 1\n", id="keys-end-nowhere-else"),
        pytest.param({"k": "  two blanks "}, "k:   two blanks \n", id="blanks"),
        pytest.param({"k": ""}, "k: \n", id="empty-text"),
    ],
)
def test_a_text_reads_like_this(values, expected):
    assert encode_input(values, "text").decode() == expected


def test_two_values_of_one_key_are_refused():
    with pytest.raises(BadArguments, match="k_0"):
        encode_input({"k_0": "mine", "k": ["forged"]}, "text")


def _whole(text: str) -> bool:
    return text.isascii() or text.encode("utf-8", "ignore").decode() == text
