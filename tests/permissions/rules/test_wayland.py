"""Wayland's list of tools that need no question."""

import pytest

from ferrule.core.errors import ConfigError
from ferrule.permissions.rules import Subject, claude
from tests.rows import each_row


def read(text, layer="user"):
    return claude.read_wayland(text, source="config.toml", layer=layer)


def call(tool: str, *names: str) -> Subject:
    return Subject(tool, frozenset({tool, *names}))


def test_the_list_of_a_file_is_what_needs_no_question():
    rules = read('[tools]\nallow_list = ["Read", "Bash", "Read"]\n')

    assert [(rule.action, rule.tool) for rule in rules.rules] == [("allow", "Read"), ("allow", "Bash")]
    assert (rules.ordered, rules.mode, rules.warnings) == (False, "", ())


def test_a_file_without_a_list_has_the_documented_one():
    rules = read({"tools": {"auto_approve": False}})

    assert tuple(rule.tool for rule in rules.rules) == (
        *("Read", "Grep", "Glob", "web", "WebFetch", "vision_analyze", "transcribe_audio", "ToolSearch", "Skill"),
        *("wayland_status", "wayland_telemetry_query"),
    )


def test_an_empty_list_allows_nothing():
    assert read("[tools]\nallow_list = []").rules == ()


@pytest.mark.parametrize("name", ["Bash", "shell", "run_shell_command"])
def test_a_name_of_any_family_binds_the_tool(name):
    rules = read({"tools": {"allow_list": [name]}})

    assert rules.verdict(call("shell", "Bash", "run_shell_command")).action == "allow"
    assert rules.verdict(call("edit", "Edit")) is None


def test_names_are_no_patterns():
    rules = read({"tools": {"allow_list": ["*"]}})

    assert rules.verdict(call("shell", "Bash")) is None
    assert "no patterns" in rules.warnings[0]


def test_to_approve_everything_is_a_mode_that_a_project_cannot_choose():
    text = "[tools]\nauto_approve = true"

    assert read(text).mode == "bypassPermissions"
    assert read(text, layer="project").mode == ""
    assert "a project does not" in read(text, layer="project").warnings[0]


@each_row(
    "text",
    [
        *("[tools", "x = 1", "", "tools = 1", '[tools]\nallow_list = "Read"', "[tools]\nallow_list = [1]"),
        *('[tools]\nallow_list = [""]', "[tools]\nauto_approve = 1", '[tools]\nauto_approve = "true"'),
        *("[tools]\nauto_approve = true\nauto_approve = false", "a = " + "[" * 10_000, " " * (1 << 20 | 1)),
    ],
)
def test_a_file_that_is_not_understood_is_refused(text):
    with pytest.raises(ConfigError, match=r"config\.toml"):
        read(text)


def test_what_is_not_used_is_named():
    assert read("[tools]\nsandbox = 1").warnings == ("config.toml: sandbox is not used here.",)
