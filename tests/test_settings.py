"""Settings: every default in sight, the user's file over them, and an error that names the file and the key."""

import os
import re

import pytest

from ferrule import Engine
from ferrule.core.errors import ConfigError
from ferrule.settings import (
    FileSettings,
    LimitSettings,
    Output,
    Settings,
    ShellSettings,
    UndoSettings,
    load_settings,
    settings_path,
    state_folder,
)

WHOLE = """
dialect = "amp"

[limits]
seconds = 60
parallel = 4

[files]
add_dirs = ["/data", "~/notes"]
guarded_allow = [".vscode/settings.json"]

[shell]
seconds = 600
log_mb = 10
keep_env = ["GITHUB_TOKEN"]

[output]
keep_days = 1
keep_mb = 64

[undo]
keep_days = 2.5
keep_mb = 32
"""


def written(tmp_path, text: str | bytes) -> str:
    file = tmp_path / "settings.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(file)


def test_the_defaults():
    assert Settings() == Settings(
        dialect="amp",
        limits=LimitSettings(seconds=120.0, parallel=32),
        files=FileSettings(add_dirs=(), guarded_allow=()),
        shell=ShellSettings(seconds=None, log_mb=1024, keep_env=()),
        output=Output(keep_days=7.0, keep_mb=2048),
        undo=UndoSettings(keep_days=30.0, keep_mb=512),
    )


@pytest.mark.parametrize(
    "text", [None, "", "# nothing but a comment\n", "[limits]\n"], ids=["no-file", "empty", "comment", "empty-table"]
)
def test_what_a_file_does_not_say_keeps_its_default(tmp_path, text):
    path = str(tmp_path / "none.toml") if text is None else written(tmp_path, text)

    assert load_settings(path) == Settings()


def test_a_file_that_is_named_and_not_there_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("FERRULE_SETTINGS", str(tmp_path / "typo.toml"))

    with pytest.raises(ConfigError, match=r"typo\.toml, which FERRULE_SETTINGS names"):
        load_settings()


def test_a_file_can_say_everything(tmp_path):
    assert load_settings(written(tmp_path, WHOLE)) == Settings(
        dialect="amp",
        limits=LimitSettings(seconds=60.0, parallel=4),
        files=FileSettings(add_dirs=("/data", "~/notes"), guarded_allow=(".vscode/settings.json",)),
        shell=ShellSettings(seconds=600.0, log_mb=10, keep_env=("GITHUB_TOKEN",)),
        output=Output(keep_days=1.0, keep_mb=64),
        undo=UndoSettings(keep_days=2.5, keep_mb=32),
    )


def test_a_file_that_says_one_thing_changes_one_thing(tmp_path):
    settings = load_settings(written(tmp_path, "[shell]\nlog_mb = 1\n"))

    assert settings == Settings(shell=ShellSettings(log_mb=1))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        pytest.param("colour = 1", "`colour`", id="unknown-key"),
        pytest.param("[limits]\nsecnds = 5", "`secnds` - at `$.limits`", id="unknown-key-in-a-table"),
        pytest.param("[network]\nproxy = 'x'", "`network`", id="unknown-table"),
        pytest.param("[limits]\nseconds = 'long'", "$.limits.seconds", id="wrong-type"),
        pytest.param("[limits]\nseconds = 0", "$.limits.seconds", id="no-time-at-all"),
        pytest.param("[limits]\nseconds = -1", "$.limits.seconds", id="negative-time"),
        pytest.param("[limits]\nseconds = nan", "$.limits.seconds", id="not-a-number"),
        pytest.param("[limits]\nparallel = 0", "$.limits.parallel", id="nothing-may-run"),
        pytest.param("[limits]\nparallel = true", "$.limits.parallel", id="true-is-no-number"),
        pytest.param("[shell]\nseconds = 0", "$.shell.seconds", id="commands-without-time"),
        pytest.param("[shell]\nlog_mb = -1", "$.shell.log_mb", id="negative-size"),
        pytest.param("[undo]\nkeep_mb = -1", "$.undo.keep_mb", id="negative-journal"),
        pytest.param("[files]\nadd_dirs = '/data'", "$.files.add_dirs", id="text-for-a-list"),
        pytest.param("[files]\nadd_dirs = [1]", "$.files.add_dirs[0]", id="number-in-a-list"),
        pytest.param("limits = 5", "$.limits", id="value-for-a-table"),
        pytest.param("[limits\nseconds = 5", "line 1", id="not-toml"),
        pytest.param("dialect = 'a'\ndialect = 'b'", "", id="key-twice"),
        pytest.param(b"dialect = '\xff'", "utf-8", id="not-utf-8"),
    ],
)
def test_a_mistake_is_an_error_that_names_the_file_and_the_key(tmp_path, text, named):
    path = written(tmp_path, text)

    with pytest.raises(ConfigError) as caught:
        load_settings(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param('[web.search]\nbackend = "google"', "one of ddgs, brave, tavily, exa and searxng", id="value"),
        pytest.param('[checks.commands.a]\ncommand = "b"\nkind = "c"', "types, lint, format", id="in-an-entry"),
        pytest.param("[web]\nrobotz = true", "Did you mean robots?", id="near-name"),
        pytest.param("[[hooks.PreToolUse]]\ncomand = 'x'", "Did you mean command?", id="in-a-list"),
        pytest.param("zzz = 1", "There are chat, checkpoints, checks, dialect", id="no-name-is-near"),
    ],
)
def test_a_mistake_is_told_with_what_would_be_right(tmp_path, text, words):
    path = tmp_path / "settings.toml"
    path.write_text(text)

    with pytest.raises(ConfigError) as caught:
        load_settings(str(path))
    assert words in str(caught.value)


def test_a_file_that_cannot_be_read_is_an_error_that_names_it(tmp_path):
    with pytest.raises(ConfigError, match=re.escape(f"Cannot read {tmp_path}: ")):
        load_settings(str(tmp_path))


def test_settings_do_not_change():
    with pytest.raises(AttributeError):
        Settings().limits.seconds = 1.0  # type: ignore[misc]


def test_the_environment_says_where_the_file_and_the_state_are(tmp_path, monkeypatch):
    monkeypatch.setenv("FERRULE_SETTINGS", written(tmp_path, "dialect = 'other'"))
    monkeypatch.setenv("FERRULE_STATE", str(tmp_path / "state"))

    assert (load_settings().dialect, settings_path(), state_folder()) == (
        "other",
        str(tmp_path / "settings.toml"),
        str(tmp_path / "state"),
    )


@pytest.mark.parametrize("name", ["FERRULE_SETTINGS", "FERRULE_STATE"])
def test_a_place_that_is_chosen_is_absolute_and_may_begin_at_home(tmp_path, monkeypatch, name):
    find = {"FERRULE_SETTINGS": settings_path, "FERRULE_STATE": state_folder}[name]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    monkeypatch.setenv(name, "here")
    relative = find()
    monkeypatch.setenv(name, os.path.join("~", "there"))

    assert (relative, find()) == (str(tmp_path / "here"), str(tmp_path / "home" / "there"))


def test_without_a_choice_the_files_are_the_user_s_own(monkeypatch, tmp_path):
    for name in ("FERRULE_SETTINGS", "FERRULE_STATE", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))

    assert settings_path().endswith(os.path.join("ferrule", "settings.toml"))
    assert os.path.isabs(state_folder())
    assert "ferrule" in state_folder()


async def test_an_engine_takes_the_user_s_file_unless_it_is_given_settings(tmp_path, monkeypatch):
    monkeypatch.setenv("FERRULE_SETTINGS", written(tmp_path, "[limits]\nseconds = 7\n"))

    assert Engine(tmp_path).settings.limits.seconds == 7.0
    assert Engine(tmp_path, settings=Settings()).settings.limits.seconds == 120.0


def test_nothing_in_the_workspace_is_obeyed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("settings.toml", "ferrule.toml", ".ferrule/settings.toml", ".amp/settings.json", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("[limits]\nseconds = 1\n")

    assert Engine(tmp_path).settings == Settings()
