"""Reading hooks: every form, what is wrong in one, and whose hooks somebody may switch off."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.core.errors import ConfigError
from ferrule.hooks import EVENTS, Hook
from ferrule.hooks.read import HookSet, from_claude, from_program, from_settings, together
from ferrule.settings import HookSetting, decode_settings
from tests.rows import each_row

FILE = "settings.json"


def claude(settings, layer="user"):
    return from_claude(json.dumps(settings).encode(), layer=layer, source=FILE)


def entry(event="PreToolUse", matcher="Edit", **fields):
    return {"hooks": {event: [{"matcher": matcher, "hooks": [{"type": "command", "command": "x", **fields}]}]}}


def test_a_file_of_claude_code_is_read_as_it_is():
    settings = {
        "model": "any",
        "hooks": {
            "PreToolUse": [
                {
                    "matcher": "Edit|Write",
                    "hooks": [
                        {"type": "command", "command": "one", "timeout": 5},
                        {"type": "command", "command": "two", "statusMessage": "…"},
                    ],
                },
                {"hooks": [{"type": "command", "command": "three", "timeout": 0.5}]},
            ],
            "SessionStart": [{"matcher": None, "hooks": []}],
            "Stop": [{"hooks": [{"type": "command", "command": "four"}]}],
        },
    }

    assert claude(settings) == HookSet(
        (
            Hook("PreToolUse", "Edit|Write", "one", None, 5.0, "user", FILE),
            Hook("PreToolUse", "Edit|Write", "two", None, 60.0, "user", FILE),
            Hook("PreToolUse", "", "three", None, 0.5, "user", FILE),
            Hook("Stop", "", "four", None, 60.0, "user", FILE),
        )
    )


@pytest.mark.parametrize("settings", [{}, {"hooks": {}}, {"hooks": None}, {"permissions": {"allow": []}}])
def test_a_file_without_hooks_has_none(settings):
    assert claude(settings) == HookSet()


def test_our_own_settings_are_read():
    raw = b"""
    [[hooks.PreToolUse]]
    matcher = "Bash"
    command = "check"
    seconds = 2.5
    [[hooks.SessionEnd]]
    command = "bye"
    """
    hooks = decode_settings(raw, "settings.toml").hooks

    assert from_settings(hooks, layer="managed", source="settings.toml") == HookSet(
        (
            Hook("PreToolUse", "Bash", "check", None, 2.5, "managed", "settings.toml"),
            Hook("SessionEnd", "", "bye", None, 60.0, "managed", "settings.toml"),
        ),
        layer="managed",
    )


BROKEN = [
    pytest.param({"hooks": {"PreToolUse": {}}}, "a list for each event", id="no-list"),
    pytest.param({"hooks": {"PreToolUse": ["x"]}}, "an object with a “matcher”", id="no-group"),
    pytest.param({"hooks": {"PreToolUse": [{"matcher": "x"}]}}, "a list of “hooks”", id="no-hooks"),
    pytest.param({"hooks": {"PreToolUse": [{"hooks": {}}]}}, "a list of “hooks”", id="hooks-are-no-list"),
    pytest.param({"hooks": {"PreToolUse": [{"hooks": ["x"]}]}}, "“type” and “command”", id="no-entry"),
    pytest.param({"hooks": {"PreToolUse": [{"hooks": [{"command": "x"}]}]}}, "the type “None”", id="no-type"),
    pytest.param(entry(type="prompt"), "the type “prompt” is not known", id="another-type"),
    pytest.param(entry(command=["x"]), "must be a text", id="the-command-is-a-list"),
    pytest.param(entry(command=" "), "needs a command or a function", id="the-command-is-empty"),
    pytest.param(entry(command="a\0b"), "NUL", id="the-command-has-a-nul"),
    pytest.param(entry(timeout="5"), "number of seconds", id="the-time-is-a-text"),
    pytest.param(entry(timeout=True), "number of seconds", id="the-time-is-a-flag"),
    pytest.param(entry(timeout=0), "more than 0", id="no-time"),
    pytest.param(entry(timeout=-1), "more than 0", id="less-than-no-time"),
    pytest.param(entry(args=["y"]), "without “args”", id="arguments"),
    pytest.param(entry(shell="powershell"), "for bash", id="another-shell"),
    pytest.param(entry(matcher="("), "“(” cannot be used: it is no regular expression", id="the-matcher-is-broken"),
    pytest.param(entry(matcher=["Edit"]), "“matcher” must be a text", id="the-matcher-is-a-list"),
]


@each_row("layer", ["managed", "user", "session"])
@each_row(("settings", "why"), BROKEN)
def test_a_broken_hook_before_calls_may_not_vanish(settings, why, layer):
    with pytest.raises(ConfigError) as caught:
        claude(settings, layer)

    assert str(caught.value).startswith("settings.json: a hook for PreToolUse cannot be used: ")
    assert why in str(caught.value)


@each_row(("settings", "why"), BROKEN)
def test_a_broken_hook_of_a_project_is_left_out_with_a_warning(settings, why):
    good = [{"hooks": [{"type": "command", "command": "good"}]}]
    found = claude({"hooks": {**settings["hooks"], "PostToolUse": good}}, "project")

    assert [hook.command for hook in found.hooks] == ["good"]
    assert [warning.startswith("settings.json: a hook for PreToolUse is left out: ") for warning in found.warnings] == [
        True
    ]
    assert why in found.warnings[0]


@each_row(("settings", "why"), BROKEN)
def test_a_broken_hook_for_another_event_is_left_out_with_a_warning(settings, why):
    groups = settings["hooks"]["PreToolUse"]
    found = claude({"hooks": {"PostToolUse": groups, "Stop": [{"hooks": [{"type": "command", "command": "good"}]}]}})

    assert [hook.command for hook in found.hooks] == ["good"]
    assert len(found.warnings) == 1
    assert "a hook for PostToolUse is left out" in found.warnings[0]
    assert why in found.warnings[0]


@each_row(
    "raw",
    [
        pytest.param(b"{", id="cut-short"),
        pytest.param(b"[]", id="a-list"),
        pytest.param(b"\xff", id="no-utf8"),
        pytest.param(b"", id="empty"),
        pytest.param(b"[" * 100_000, id="nested-without-end"),
        pytest.param(b'{"hooks": []}', id="hooks-are-a-list"),
        pytest.param(b'{"amp.x": 1, /* */ "hooks": {}}', id="with-a-comment"),
        pytest.param(b'{"hooks": {"preToolUse": []}}', id="almost-the-event"),
        pytest.param(b'{"hooks": {"pre_tool_use": []}}', id="the-event-of-another-system"),
        pytest.param(b'{"hooks": {"PreToolUSe ": []}}', id="mistyped"),
    ],
)
def test_what_may_have_held_a_hook_before_calls_is_an_error_but_for_a_project(raw):
    with pytest.raises(ConfigError, match="might have refused"):
        from_claude(raw, layer="user", source=FILE)
    found = from_claude(raw, layer="project", source=FILE)

    assert found.hooks == ()
    assert len(found.warnings) == 1
    assert found.warnings[0].startswith(FILE)


def test_settings_of_amp_have_no_such_hooks():
    assert from_claude(b'{// mine\n"amp.hooks": []}', layer="user", source=FILE) == HookSet()


def test_an_event_that_there_is_not_is_left_out_with_a_warning():
    found = claude({"hooks": {"WorktreeCreated": [], "Stopp": [], **entry()["hooks"]}})

    assert [hook.event for hook in found.hooks] == ["PreToolUse"]
    assert found.warnings == (
        "settings.json: hooks for “WorktreeCreated” are left out, there is no such event.",
        "settings.json: hooks for “Stopp” are left out, there is no such event. Is Stop meant?",
    )


def test_a_mistyped_event_of_our_settings_is_an_error_too():
    with pytest.raises(ConfigError, match="PreToolUse may be meant"):
        from_settings({"pre_tool_use": (HookSetting(command="x"),)}, layer="user", source="settings.toml")


def test_a_field_that_is_not_known_leaves_the_hook_and_is_said():
    found = claude(entry(**{"if": "Bash(git *)"}))

    assert len(found.hooks) == 1
    assert found.warnings == ("settings.json: “if” of a hook for PreToolUse is not known and has no effect.",)


NO_FUNCTION: Any = "told"


def told(_):
    return None


@each_row("event", EVENTS)
def test_functions_of_the_program_are_of_the_session(event):
    assert from_program([Hook(event, function=told)]).hooks == (
        Hook(event, function=told, layer="session", source="the program"),
    )


@pytest.mark.parametrize(
    "hook",
    [
        pytest.param(Hook("PreTool", function=told), id="unknown-event"),
        pytest.param(Hook("PreToolUse"), id="neither"),
        pytest.param(Hook("PreToolUse", command="x", function=told), id="both"),
        pytest.param(Hook("PreToolUse", function=NO_FUNCTION), id="no-function"),
        pytest.param(Hook("PostToolUse", "(", function=told), id="broken-matcher"),
        pytest.param(Hook("PostToolUse", function=told, seconds=0), id="no-time"),
    ],
)
def test_a_wrong_hook_of_the_program_is_an_error(hook):
    with pytest.raises(ConfigError, match="cannot be used"):
        from_program([hook])


def test_what_is_no_hook_is_an_error():
    with pytest.raises(ConfigError, match="something that is no Hook: 'told'"):
        from_program([NO_FUNCTION])


def layers(**switches):
    """One hook of each layer, and what a layer's file says beside it."""
    founds = [claude({**entry(command=layer), **switches.get(layer, {})}, layer) for layer in reversed(ALL[:3])]
    return [hook.command for hook in together([from_program([Hook("PreToolUse", command="session")]), *founds]).hooks]


ALL = ["managed", "user", "project", "session"]
OFF = {"disableAllHooks": True}


@each_row(
    ("switches", "left"),
    [
        pytest.param({}, ALL, id="in-this-order"),
        pytest.param({"managed": OFF}, [], id="whoever-runs-the-machine-switches-off-all"),
        pytest.param({"user": OFF}, ["managed", "session"], id="the-user-not-those-of-the-machine"),
        pytest.param({"project": OFF}, ["managed", "user", "session"], id="a-project-only-its-own"),
        pytest.param({"project": {"disableAllHooks": "true"}}, ALL, id="a-text-is-no-yes"),
        pytest.param({"user": {"disableAllHooks": False}}, ALL, id="no-is-no"),
        pytest.param({"managed": {"allowManagedHooksOnly": True}}, ["managed", "session"], id="only-the-machines"),
        pytest.param({"user": {"allowManagedHooksOnly": True}}, ALL, id="nobody-else-can-say-so"),
    ],
)
def test_whose_hooks_somebody_may_switch_off(switches, left):
    assert layers(**switches) == left


def test_all_warnings_are_kept():
    founds = [claude({"hooks": {"Nothing": []}}), claude({"disableAllHooks": 1}, "project")]

    assert together(founds).warnings == (
        "settings.json: hooks for “Nothing” are left out, there is no such event.",
        "settings.json: “disableAllHooks” must be true or false; it is taken for false.",
    )


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from([*EVENTS, "command", "Edit"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["hooks", "matcher", "type", "command", "timeout", "args", *EVENTS]), inner, max_size=5
        )
    ),
    max_leaves=20,
)


@given(VALUES)
def test_no_file_of_a_project_raises(settings):
    found = claude({"hooks": settings}, "project")

    assert all(hook.command.strip() and hook.seconds > 0 and hook.event in EVENTS for hook in found.hooks)
