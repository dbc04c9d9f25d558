"""What a command finds around it: its variables, and the programs that are taken for it."""

import os

import pytest

from ferrule.system.environment import program_on_path, quiet_environment, shell
from tests.rows import each_row


@each_row(
    ("name", "stays"),
    [
        pytest.param("PATH", True, id="path"),
        pytest.param("HOME", True, id="home"),
        pytest.param("PWD", True, id="working-directory"),
        pytest.param("OLDPWD", True, id="earlier-directory"),
        pytest.param("KEYBOARD", True, id="key-inside-a-word"),
        pytest.param("XKB_DEFAULT_LAYOUT", True, id="keyboard-layout"),
        pytest.param("GIT_AUTHOR_NAME", True, id="auth-inside-a-word"),
        pytest.param("TOKENIZERS_PARALLELISM", True, id="token-inside-a-word"),
        pytest.param("PASSENGER_COUNT", True, id="pass-inside-a-word"),
        pytest.param("MONKEY", True, id="key-at-the-end-of-a-word"),
        pytest.param("OPENAI_API_KEY", False, id="key"),
        pytest.param("AWS_ACCESS_KEY_ID", False, id="key-in-the-middle"),
        pytest.param("GITHUB_TOKEN", False, id="token"),
        pytest.param("github_token", False, id="lower-case"),
        pytest.param("SECRET", False, id="secret-alone"),
        pytest.param("DB_PASSWORD", False, id="password"),
        pytest.param("MYSQL_PWD", False, id="pwd-of-something"),
        pytest.param("PGPASSWORD", False, id="password-at-the-end-of-a-word"),
        pytest.param("GOOGLE_APPLICATION_CREDENTIALS", False, id="credentials"),
        pytest.param("npm_config_//registry.example/:_authToken", False, id="npm"),
        pytest.param("SSH_AUTH_SOCK", False, id="agent"),
        pytest.param("BASH_ENV", False, id="start-up-file"),
        pytest.param("ENV", False, id="start-up-file-of-sh"),
        pytest.param("PROMPT_COMMAND", False, id="prompt-command"),
        pytest.param("PS4", False, id="trace-prompt"),
        pytest.param("SHELLOPTS", False, id="shell-options"),
        pytest.param("BASH_FUNC_ls%%", False, id="exported-function"),
        pytest.param("CDPATH", False, id="cdpath"),
        pytest.param("LD_PRELOAD", False, id="preload"),
        pytest.param("LD_LIBRARY_PATH", True, id="library-path"),
    ],
)
def test_which_variables_a_command_inherits(name, stays):
    assert (name in quiet_environment({name: "x"})) is stays


@each_row(
    ("value", "stays"),
    [
        pytest.param("postgres://me:hunter2@db.example/app", False, id="password-in-an-address"),
        pytest.param("http://user:pw@proxy:3128", False, id="proxy-with-a-password"),
        pytest.param("amqp://:pw@host", False, id="password-without-a-user"),
        pytest.param("ghp_" + "a" * 36, False, id="github"),
        pytest.param("sk-ant-api03-" + "a" * 20, False, id="anthropic"),
        pytest.param("AKIA" + "A1" * 8, False, id="aws"),
        pytest.param("xoxb-" + "1" * 20, False, id="slack"),
        pytest.param("sk_live_" + "a" * 24, False, id="stripe"),
        pytest.param("sk-" + "a1" * 24, False, id="old-openai"),
        pytest.param("ya29." + "a" * 30, False, id="google-access"),
        pytest.param("task-" + "a1" * 24, True, id="a-word-that-ends-like-a-prefix"),
        pytest.param("eyJhbGciOiJI.eyJzdWIiOiIx.sig", False, id="jwt"),
        pytest.param("-----BEGIN OPENSSH PRIVATE KEY-----\nabc", False, id="private-key"),
        pytest.param("https://example.com/a:b@c", True, id="address-without-a-password"),
        pytest.param("postgres://me:pw@localhost:5432/test", True, id="this-machine-s-own-service"),
        pytest.param("postgres://me:pw@localhost.example/test", False, id="only-the-beginning-of-its-name"),
        pytest.param("https://user@example.com/", True, id="user-without-a-password"),
        pytest.param("git@example.com:team/app.git", True, id="remote"),
        pytest.param("/usr/bin:/bin", True, id="path"),
        pytest.param("npm_config", True, id="only-a-beginning"),
        pytest.param("", True, id="nothing"),
    ],
)
def test_which_values_a_command_inherits(value, stays):
    assert ("DATA" in quiet_environment({"DATA": value})) is stays
    assert "DATA" in quiet_environment({"DATA": value}, keep={"DATA"})


@pytest.mark.parametrize("piece", ["a", "a:", "a://", "eyJ", "x@", "-----BEGIN ", "ghp "])
def test_the_longest_value_that_a_system_takes_is_looked_at_in_no_time(piece):
    """What grows with the square of the value would not end here within the life of the test."""
    assert "DATA" in quiet_environment({"DATA": piece * (131_072 // len(piece))})


@pytest.mark.parametrize("name", ["HOME", "PATH", "TMPDIR"])
def test_a_folder_that_is_called_like_a_token_stays(name):
    value = "/home/me/npm_config_of_my_project/bin"

    assert quiet_environment({name: value})[name] == value


def test_variables_can_be_kept_but_not_those_that_run_code():
    kept = quiet_environment({"A_TOKEN": "t", "BASH_ENV": "x"}, keep={"A_TOKEN", "BASH_ENV"})

    assert (kept.get("A_TOKEN"), kept.get("BASH_ENV")) == ("t", None)


def test_git_is_not_told_to_count_settings_that_were_left_out():
    given = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "me"}

    assert "GIT_CONFIG_COUNT" not in quiet_environment(given)
    assert given.items() <= quiet_environment(given, keep=["GIT_CONFIG_KEY_0"]).items()


def test_nothing_pages_edits_or_asks_whatever_the_user_prefers():
    loud = {
        "PAGER": "less",
        "LESS": "+G",
        "EDITOR": "vi",
        "GIT_EDITOR": "vi",
        "GIT_TERMINAL_PROMPT": "1",
        "TERM": "xterm",
    }
    quiet = quiet_environment(loud)

    assert {name: quiet[name] for name in loud} == {
        "PAGER": "cat",
        "LESS": "-FRXE",
        "EDITOR": "true",
        "GIT_EDITOR": "true",
        "GIT_TERMINAL_PROMPT": "0",
        "TERM": "dumb",
    }
    assert quiet["DEBIAN_FRONTEND"] == "noninteractive"
    assert "CI" not in quiet


def test_every_change_of_the_environment_counts_at_once_and_nobody_changes_that_of_another():
    source = {"A": "1"}
    quiet_environment(source)["A"] = "spoiled"
    first = quiet_environment(source)
    source["A"] = "2"
    second = quiet_environment(source)

    assert (first["A"], second["A"]) == ("1", "2")
    assert "S_TOKEN" not in quiet_environment({"S_TOKEN": "x"})
    assert "S_TOKEN" in quiet_environment({"S_TOKEN": "x"}, keep={"S_TOKEN"})
    assert "S_TOKEN" not in quiet_environment({"S_TOKEN": "x"})


def test_a_program_that_was_found_is_looked_for_again_when_it_has_changed(tmp_path, monkeypatch):
    for folder in ("first", "second", "workspace"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "tool").write_text("#!/bin/sh\n")
        (tmp_path / folder / "tool").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/first{os.pathsep}{tmp_path}/second")
    outside = [f"{tmp_path}/workspace"]

    assert (
        program_on_path("tool", outside=outside) == program_on_path("tool", outside=outside) == f"{tmp_path}/first/tool"
    )
    (tmp_path / "first/tool").unlink()
    assert program_on_path("tool", outside=outside) == f"{tmp_path}/second/tool"
    (tmp_path / "second/tool").unlink()
    (tmp_path / "second/tool").symlink_to(tmp_path / "workspace/tool")
    assert program_on_path("tool", outside=outside) is None


def test_a_program_is_taken_from_absolute_and_trusted_folders_only(tmp_path, monkeypatch):
    for folder in ("workspace/bin", "system"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "tool").write_text("#!/bin/sh\n")
        (tmp_path / folder / "tool").chmod(0o755)
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "tool").symlink_to(tmp_path / "workspace/bin/tool")
    monkeypatch.chdir(tmp_path / "system")
    monkeypatch.setenv(
        "PATH", os.pathsep.join([".", "", f"{tmp_path}/links", f"{tmp_path}/workspace/bin", f"{tmp_path}/system"])
    )

    assert program_on_path("tool") == f"{tmp_path}/links/tool"
    assert program_on_path("tool", outside=[f"{tmp_path}/workspace"]) == f"{tmp_path}/system/tool"
    assert program_on_path("tool", outside=[str(tmp_path)]) is None
    assert program_on_path("missing") is None


def test_without_bash_there_is_sh(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    assert shell() == "/bin/sh"
