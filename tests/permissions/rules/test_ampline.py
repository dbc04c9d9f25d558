"""The text form of Amp's rules: what a line says, how a rule is shown, and that the two agree."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.core.errors import ConfigError
from ferrule.permissions.rules.amp import parse_line, show
from tests.rows import each_row
from tests.strategies import texts

keys = st.one_of(
    st.sampled_from(["cmd", "path", "context", "to", "message", "a.b", "files.0.name", "x:y", "-x", "two words"]),
    texts.filter(bool),
)
numbers = st.integers(-(10**20), 10**20) | st.floats(-1e200, 1e200, allow_nan=False)
simple = (
    texts | st.booleans() | st.none() | numbers | st.sampled_from(["true", "12", "*", "/a b/", "'", "#", "--x", ""])
)
conditions = simple | st.lists(simple, min_size=2, max_size=3)


@st.composite
def entries(draw):
    """Rules as they stand in JSON, with conditions that the text form may have no words for."""
    action = draw(st.sampled_from(["allow", "ask", "reject", "delegate"]))
    entry = {"action": action, "tool": draw(texts.filter(bool))}
    if draw(st.booleans()):
        entry["context"] = draw(st.sampled_from(["thread", "subagent"]))
    if action == "delegate":
        entry["to"] = draw(texts.filter(bool))
    if action == "reject" and draw(st.booleans()):
        entry["message"] = draw(texts)
    matches = draw(st.dictionaries(keys, conditions, max_size=3))
    return entry | {"matches": matches} if matches else entry


@each_row(
    ("line", "entry"),
    [
        pytest.param(
            "allow Bash --cmd 'git diff*' --cmd 'git commit*'",
            {"action": "allow", "tool": "Bash", "matches": {"cmd": ["git diff*", "git commit*"]}},
            id="documented-a-repeated-key-is-a-list",
        ),
        pytest.param(
            "delegate --to amp-git-permissions Bash --cmd '*'",
            {"action": "delegate", "to": "amp-git-permissions", "tool": "Bash", "matches": {"cmd": "*"}},
            id="documented-delegate",
        ),
        pytest.param("reject mermaid", {"action": "reject", "tool": "mermaid"}, id="documented-reject"),
        pytest.param(
            "reject edit_file --path '.*'",
            {"action": "reject", "tool": "edit_file", "matches": {"path": ".*"}},
            id="documented-hidden-files",
        ),
        pytest.param(
            "ask Grep --path '$HOME/*'",
            {"action": "ask", "tool": "Grep", "matches": {"path": "$HOME/*"}},
            id="documented-home",
        ),
        pytest.param(
            "allow --context thread Bash",
            {"action": "allow", "context": "thread", "tool": "Bash"},
            id="documented-context",
        ),
        pytest.param(
            'reject --context subagent Bash --cmd "rm -rf *"',
            {"action": "reject", "context": "subagent", "tool": "Bash", "matches": {"cmd": "rm -rf *"}},
            id="documented-context-of-subagents",
        ),
        pytest.param(
            "reject --message 'Use the other one.' Bash --context x",
            {"action": "reject", "message": "Use the other one.", "tool": "Bash", "matches": {"context": "x"}},
            id="the-same-words-after-the-tool-are-arguments",
        ),
        pytest.param(
            "ask t --a true --b false --c null --d -1.5e3 --e 12",
            {"action": "ask", "tool": "t", "matches": {"a": True, "b": False, "c": None, "d": -1500.0, "e": 12}},
            id="unquoted-literals",
        ),
        pytest.param(
            "ask t --a 'true' --b \"12\" --c \\null --d 007 --e 1x",
            {"action": "ask", "tool": "t", "matches": {"a": "true", "b": "12", "c": "null", "d": "007", "e": "1x"}},
            id="quoted-literals-are-texts",
        ),
        pytest.param(
            r"""ask t --a "\d \" \\ \$x" --b '\d "' --c it\'s""",
            {"action": "ask", "tool": "t", "matches": {"a": r"\d " + '" \\ $x', "b": '\\d "', "c": "it's"}},
            id="quotes-and-backslashes",
        ),
        pytest.param("  allow mcp__*  # all of them", {"action": "allow", "tool": "mcp__*"}, id="comment-at-the-end"),
        pytest.param(
            "ask t --a b#c --d '#e'",
            {"action": "ask", "tool": "t", "matches": {"a": "b#c", "d": "#e"}},
            id="no-comment-inside-of-a-word",
        ),
        pytest.param("# nothing", {}, id="only-a-comment"),
        pytest.param(" \t", {}, id="nothing"),
        pytest.param(
            "ask t --a:regex '^x/y' --b:glob '/srv/' --c:literal '*.py' --d:eq 1 --e:glob '*.py'",
            {
                "action": "ask",
                "tool": "t",
                "matches": {
                    "a": r"/^x\/y/",
                    "b": r"/^\x2fsrv\x2f$/s",
                    "c": r"/^\x2a\x2epy$/",
                    "d": 1,
                    "e": "*.py",
                },
            },
            id="operators",
        ),
        pytest.param(
            "ask t --a:regex '/^x/i'", {"action": "ask", "tool": "t", "matches": {"a": "/^x/i"}}, id="regex-in-slashes"
        ),
    ],
)
def test_a_line_says_what_its_json_says(line, entry):
    assert parse_line(line) == entry


@each_row(
    ("line", "message"),
    [
        pytest.param("permit Bash", "begins with allow", id="unknown-action"),
        pytest.param("allow", "tool is missing", id="no-tool"),
        pytest.param("allow --cmd x Bash", "before the tool", id="argument-before-the-tool"),
        pytest.param("allow Bash --cmd git*", "must be in quotes", id="a-bare-star"),
        pytest.param("allow Bash --cmd 'git'*", "must be in quotes", id="a-star-after-the-quotes"),
        pytest.param("allow Bash --cmd", "no value", id="no-value"),
        pytest.param("allow Bash --cmd --path x", "no value", id="a-name-for-a-value"),
        pytest.param("allow Bash git", "an argument's name", id="a-value-without-a-name"),
        pytest.param("allow Bash '--cmd' x", "an argument's name", id="a-quoted-name"),
        pytest.param("allow Bash --cmd=git x", "an argument's name", id="an-equals-sign"),
        pytest.param("allow Bash --cmd 'git", "not closed", id="an-open-quote"),
        pytest.param('allow Bash --cmd "git', "not closed", id="an-open-double-quote"),
        pytest.param("allow Bash --cmd git\\", "backslash", id="a-last-backslash"),
        pytest.param("allow Bash --cmd:like x", "not known", id="an-unknown-operator"),
        pytest.param("allow Bash --cmd:regex ''", "empty", id="an-empty-expression"),
        pytest.param("allow t --n 1e999", "too large", id="no-infinite-numbers"),
        pytest.param("ask --context thread --context subagent Bash", "twice", id="an-option-twice"),
        pytest.param('{"tool": "a", "tool": "b"}', "twice", id="a-key-twice"),
        pytest.param('{"tool": ' + "[" * 100_000, "deep", id="too-deep"),
        pytest.param('{"tool": NaN}', "not JSON", id="no-number"),
    ],
)
def test_a_line_that_is_not_understood_says_what_to_do(line, message):
    with pytest.raises(ConfigError, match=message):
        parse_line(line)


def test_a_rule_is_shown_as_a_person_would_write_it():
    entry = parse_line("""allow --context thread Bash --cmd "git diff*" --cmd:regex ^ls --n 1 --s "1" --q "it's" """)

    expected = "allow --context thread Bash --cmd 'git diff*' --cmd '/^ls/' --n 1 --s '1' --q 'it'\\''s'"
    assert show(entry) == expected


@pytest.mark.parametrize(
    "matches",
    [
        pytest.param({"cmd": "a\nb"}, id="line-break"),
        pytest.param({"cmd": [{"x": 1}, "y"]}, id="objects-in-a-list"),
        pytest.param({"two words": 1}, id="odd-key"),
        pytest.param({"a": {"b": 1}, "a.b": 2}, id="two-of-a-key"),
        pytest.param({"a": {}}, id="empty-object"),
        pytest.param({"a": []}, id="empty-list"),
    ],
)
def test_what_has_no_text_form_is_shown_as_json(matches):
    entry = {"action": "allow", "tool": "t", "matches": matches}

    assert show(entry).startswith("{")
    assert parse_line(show(entry)) == entry


def test_nested_conditions_are_shown_by_dotted_names():
    entry = {"action": "ask", "tool": "t", "matches": {"a": {"b": {"0": "x"}, "c": True}}}

    assert show(entry) == "ask t --a.b.0 x --a.c true"


@given(entries())
def test_a_rule_survives_being_shown_and_read(entry):
    line = show(entry)

    assert "\n" not in line
    assert repr(parse_line(line)) == repr(parse_line(show(parse_line(line))))
    assert parse_line(line) == entry


@given(st.text("allow resk-t:'\"\\#*/1{}= \t", max_size=40))
def test_any_line_is_read_or_refused(line):
    try:
        entry = parse_line(line)
    except ConfigError:
        return
    if entry:
        assert parse_line(show(entry)) == entry
