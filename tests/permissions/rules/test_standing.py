"""Permission modes: what each makes of a decision, and what they are called elsewhere."""

import itertools

import pytest

from ferrule.core.errors import ConfigError
from ferrule.permissions import MODES, parse_mode, tighten_mode
from tests.rows import each_kept_row, each_row

TABLE = {
    # mode: (other call, edits inside, only reads), each for a question
    "default": ("ask", "ask", "ask"),
    "acceptEdits": ("ask", "allow", "ask"),
    "plan": ("deny", "deny", "ask"),
    "dontAsk": ("deny", "deny", "deny"),
    "bypassPermissions": ("allow", "allow", "allow"),
}


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_a_mode_settles_questions_like_this(mode):
    found = (
        mode.settles("ask", edits_only_inside=False, reads_only=False),
        mode.settles("ask", edits_only_inside=True, reads_only=False),
        mode.settles("ask", edits_only_inside=False, reads_only=True),
    )

    assert found == TABLE[mode.name]


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_no_mode_undoes_a_denial(mode):
    for inside, reads in itertools.product((True, False), repeat=2):
        assert mode.settles("deny", edits_only_inside=inside, reads_only=reads) == "deny"


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_what_a_rule_allows_only_plan_takes_back(mode):
    assert mode.settles("allow", edits_only_inside=False, reads_only=True) == "allow"
    expected = "deny" if mode.name == "plan" else "allow"
    assert mode.settles("allow", edits_only_inside=True, reads_only=False) == expected
    assert mode.settles("allow", edits_only_inside=False, reads_only=False) == expected


@each_kept_row
def test_a_mode_has_names_of_many_programs(text, name):
    assert parse_mode(text).name == name


@pytest.mark.parametrize(
    ("text", "meant"), [("acceptEdit", "acceptEdits"), ("bypass", ""), ("yolo!", "yolo"), ("", "")]
)
def test_a_name_that_is_none_names_the_nearest(text, meant):
    with pytest.raises(ConfigError, match="no permission mode") as caught:
        parse_mode(text)

    assert str(caught.value).endswith(f" Did you mean {meant}?") or not meant


@each_row(
    ("held", "wish", "found"),
    [
        ("default", "plan", "plan"),
        ("default", "dontAsk", "dontAsk"),
        ("default", "acceptEdits", "default"),
        ("default", "bypassPermissions", "default"),
        ("acceptEdits", "default", "default"),
        ("bypassPermissions", "acceptEdits", "acceptEdits"),
        ("plan", "default", "plan"),
        ("plan", "dontAsk", "plan"),
        ("dontAsk", "plan", "dontAsk"),
        ("plan", "plan", "plan"),
    ],
)
def test_a_project_may_only_tighten_the_mode(held, wish, found):
    assert tighten_mode(parse_mode(held), parse_mode(wish)).name == found
