"""`ferrule config`: every setting with its value and its origin."""

import json

import pytest

from ferrule.cli.main import run
from ferrule.layered import described


@pytest.fixture
def settings(tmp_path, monkeypatch):
    file = tmp_path / "settings.toml"
    monkeypatch.setenv("FERRULE_SETTINGS", str(file))
    monkeypatch.chdir(tmp_path)
    return file


def rows(capsys, *words):
    assert run(["config", "show", "--json", *words]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_every_setting_is_shown(settings, capsys):
    settings.write_text("")

    assert [row["key"] for row in rows(capsys)] == [key for key, _ in described()]


@pytest.mark.contract("settings.origin")
def test_a_value_says_which_file_it_comes_from(settings, capsys):
    settings.write_text('dialect = "ah"\n')

    found = {row["key"]: row for row in rows(capsys)}
    assert found["dialect"] == {"key": "dialect", "value": "ah", "from": str(settings)}
    assert found["limits.seconds"]["from"] == "default"
    assert [row["key"] for row in rows(capsys, "--changed")] == ["dialect"]


def test_a_secret_that_a_server_is_given_is_not_shown(settings, capsys):
    settings.write_text('[mcp.servers.x]\ncommand = "x"\nenv = {TOKEN = "s3cret", HOST = "${HOST}"}\n')

    (row,) = rows(capsys, "mcp.servers")
    assert row["key"] == "mcp.servers.x"
    assert row["value"]["env"] == {"TOKEN": "…", "HOST": "${HOST}"}


def test_a_part_can_be_shown(settings, capsys):
    settings.write_text("")

    assert {row["key"].split(".")[0] for row in rows(capsys, "sandbox")} == {"sandbox"}


def test_a_setting_that_does_not_exist_is_a_usage_error(settings, capsys):
    settings.write_text("")

    assert run(["config", "show", "sand"]) == 2
    assert "There is no setting 'sand'" in capsys.readouterr().err


def test_the_files_of_every_layer_are_told(settings, capsys):
    settings.write_text("")

    assert run(["config", "path"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["managed", "user", "project"]
    assert lines[1].endswith(str(settings))
