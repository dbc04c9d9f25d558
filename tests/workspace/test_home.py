"""What commands see of the home folder: whole environments, toolchains, caches, and what git names."""

import os

import pytest

from ferrule.sandbox.home import environments, find_hidden_path, home_view


def make(home, *paths):
    for path in paths:
        (home / path).mkdir(parents=True, exist_ok=True)


def test_toolchains_and_caches_that_exist_are_shown_and_nothing_else(tmp_path):
    make(tmp_path, ".pyenv/bin", ".cargo/registry", ".cache/pip", "letters", ".ssh")
    seen = home_view(str(tmp_path), {})

    assert {os.path.relpath(path, tmp_path) for path in seen.shown} == {".pyenv", ".cargo"}
    assert {os.path.relpath(path, tmp_path) for path in seen.caches} == {".cache", ".cargo/registry"}


@pytest.mark.parametrize(
    ("made", "env", "shown"),
    [
        pytest.param(("venv/bin",), {"PATH": "{home}/venv/bin"}, ["venv", "base"], id="virtual-environment"),
        pytest.param(("sdk/go/bin",), {"PATH": "{home}/sdk/go/bin"}, ["sdk/go"], id="toolchain"),
        pytest.param(("bin",), {"PATH": "{home}/bin"}, ["bin"], id="programs-of-the-user"),
        pytest.param((".local/bin",), {"PATH": "{home}/.local/bin"}, [".local/bin"], id="local-programs"),
        pytest.param(
            ("conda/envs/x/bin",), {"CONDA_PREFIX": "{home}/conda/envs/x"}, ["conda/envs/x"], id="by-variable"
        ),
        pytest.param((), {"PATH": "relative:/usr/bin", "GOPATH": "{home}"}, ["/usr/bin"], id="not-the-home-itself"),
    ],
)
def test_an_environment_is_shown_as_a_whole(tmp_path, made, env, shown):
    make(tmp_path, *made)
    (tmp_path / "venv").mkdir(exist_ok=True)
    (tmp_path / "venv/pyvenv.cfg").write_text(f"home = {tmp_path}/base/bin\n")
    found = environments({name: value.format(home=tmp_path) for name, value in env.items()}, str(tmp_path))

    assert found == [os.path.join(tmp_path, path) for path in shown]


def test_files_that_git_s_settings_name_are_shown(tmp_path):
    (tmp_path / ".gitconfig").write_text("[core]\n\texcludesFile = ~/.ignored\n[include]\n\tpath = more.inc\n")
    (tmp_path / "more.inc").touch()
    seen = home_view(str(tmp_path), {})

    assert {os.path.relpath(path, tmp_path) for path in seen.shown} == {".gitconfig", "more.inc"}


def test_what_a_failed_command_missed_is_named(tmp_path):
    (tmp_path / "notes").touch()
    home = str(tmp_path)

    assert find_hidden_path(f"cat: {home}/notes: No such file or directory", home, ()) == f"{home}/notes"
    assert find_hidden_path(f"cat: {home}/nothing: No such file or directory", home, ()) == ""
    assert find_hidden_path(f"cat: {home}/notes: No such file", home, (home,)) == ""
