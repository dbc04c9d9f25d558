"""Wayland's list of tools that need no question, its modes, and ah's folders that nobody writes."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.core.errors import ConfigError
from ferrule.permissions.rules import wayland
from ferrule.permissions.rules.rule import Subject, Touched


def read(text, layer="user"):
    return wayland.read(text, source="config.toml", layer=layer)


def call(tool: str, *names: str) -> Subject:
    return Subject(tool, frozenset({tool, *names}))


def writing(real: str, spelled: str | None = None, mode="write") -> Subject:
    return Subject("edit", frozenset({"edit"}), paths=(Touched(mode, real, spelled or real),))


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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    ("tool", "category"),
    [
        *(("read", "info"), ("grep", "info"), ("edit", "edit"), ("write", "edit"), ("shell", "exec")),
        *(("shell_write", "exec"), ("never_heard_of", "exec"), ("mcp__a__b", "mcp")),
    ],
)
def test_every_tool_has_a_category(tool, category):
    assert wayland.category(tool) == category


@pytest.mark.parametrize(
    ("mode", "allowed"),
    [("auto_edit", {"read", "edit"}), ("force", {"read", "edit", "shell", "mcp__a__b"})],
)
def test_a_mode_allows_categories(mode, allowed):
    rule = wayland.mode_rule(mode)

    assert rule is not None
    assert {tool for tool in ("read", "edit", "shell", "mcp__a__b") if rule.matches(call(tool))} == allowed


def test_the_usual_mode_adds_nothing_and_there_are_no_others():
    assert wayland.mode_rule("default") is None
    with pytest.raises(ConfigError, match="no mode"):
        wayland.mode_rule("yolo?")


@pytest.mark.parametrize(
    ("subject", "denied"),
    [
        pytest.param(writing("/w/keep"), True, id="the-folder"),
        pytest.param(writing("/w/keep/a/b"), True, id="below-it"),
        pytest.param(writing("/w/keep-not/a"), False, id="a-name-that-begins-alike"),
        pytest.param(writing("/w/other/a"), False, id="elsewhere"),
        pytest.param(writing("/w/KEEP/a"), True, id="in-another-case"),
        pytest.param(writing("/w/keep/a", "/w/link/a"), True, id="through-a-link"),
        pytest.param(writing("/etc/a", "/w/keep/a"), True, id="over-a-link-that-is-in-it"),
        pytest.param(writing("/w/keep/a", "/w/x/../keep/a"), True, id="by-way-of-dots"),
        pytest.param(writing("/w/keep/a", mode="read"), False, id="reading"),
    ],
)
def test_a_protected_folder_is_not_written(subject, denied):
    assert wayland.protection("/w/keep").matches(subject) is denied


def test_whoever_writes_a_folder_around_it_is_asked_about():
    rule = wayland.around("/w/keep")

    assert rule.action == "ask"
    assert rule.matches(writing("/w"))
    assert not rule.matches(writing("/w/other"))


def test_protected_folders_are_where_they_really_are(tmp_path):
    top = tmp_path.resolve()
    (top / "real").mkdir()
    (top / "link").symlink_to("real")
    value = os.pathsep.join(["link", "", f"{top}/link/later/deep", "real", "a/../link/./x"])

    assert wayland.protected_folders(value, str(top)) == (
        f"{top}/real",
        f"{top}/real/later/deep",
        f"{top}/real/x",
    )


def test_no_folders_are_protected_without_a_value():
    assert wayland.protected_folders("", "/w") == ()


@given(st.lists(st.sampled_from(["keep", "keep2", "a", ".."]), min_size=1, max_size=5))
def test_protection_is_by_whole_names(parts):
    real = os.path.normpath(os.path.join("/w", *parts))

    assert wayland.protection("/w/keep").matches(writing(real)) == (f"{real}/".startswith("/w/keep/"))
