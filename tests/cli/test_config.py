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


def test_a_setting_that_was_mistyped_is_answered_with_the_one_that_was_meant(settings, capsys):
    settings.write_text("")

    assert run(["config", "show", "loop.turn"]) == 2
    assert "Did you mean loop.turns?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("key", "table"),
    [
        pytest.param("models.hosts.mine", '[models.hosts.mine]\nurl = "http://127.0.0.1:9/v1"', id="hosts"),
        pytest.param("models.roles.Explore", '[models.roles]\nExplore = "haiku"', id="roles"),
        pytest.param("models.known.gpt-x", '[models.known."gpt-x"]\ninput = 1.0', id="known"),
        pytest.param("checks.commands.a", '[checks.commands.a]\ncommand = "true"', id="checks"),
        pytest.param("lsp.servers.ty", "[lsp.servers.ty]\ndisabled = true", id="lsp"),
        pytest.param("mcp.servers.x", '[mcp.servers.x]\ncommand = "x"', id="mcp"),
        pytest.param("repositories.engine", '[repositories.engine]\npath = "~/x"', id="repositories"),
        pytest.param("tools.exposure.a", '[tools.exposure]\na = "hidden"', id="exposure"),
        pytest.param("dialects.grok", '[dialects]\ngrok = "amp"', id="dialects"),
    ],
)
def test_a_member_of_a_table_is_no_default(settings, key, table, capsys):
    settings.write_text(f"{table}\n")

    (row,) = rows(capsys, "--changed")
    assert (row["key"], row["from"]) == (key, str(settings))


def test_who_asks_in_an_address_is_not_shown(settings, capsys):
    settings.write_text(
        '[web]\nproxy = "http://me:s3cret@proxy.example:3128"\n[mcp.servers.x]\nurl = "https://s3cret@example.org/a@b"\n'
    )

    found = {row["key"]: row["value"] for row in rows(capsys, "--changed")}
    assert found == {
        "web.proxy": "http://…@proxy.example:3128",
        "mcp.servers.x": {"url": "https://…@example.org/a@b", "permission": "ask", "start_seconds": 30.0},
    }


def test_what_has_no_value_reads_as_it_does_in_the_documents(settings, capsys):
    settings.write_text("")

    assert run(["config", "show", "loop.turns"]) == 0
    assert capsys.readouterr().out == "loop.turns = none\n"


def test_the_variables_that_count_are_shown(settings, capsys, monkeypatch):
    settings.write_text("")
    monkeypatch.setenv("FERRULE_MODEL", "ollama:qwen3")

    assert run(["config", "show", "--changed"]) == 0
    assert "FERRULE_MODEL=ollama:qwen3  # the environment" in capsys.readouterr().out


@pytest.mark.parametrize("action", ["show", "path"])
def test_a_workspace_that_is_no_folder_is_said(settings, action, capsys):
    settings.write_text("")

    assert run(["config", action, "--workspace", "nowhere"]) == 2
    assert "nowhere is not a folder" in capsys.readouterr().err


def test_the_files_of_every_layer_are_told(settings, capsys):
    settings.write_text("")

    assert run(["config", "path"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["managed", "user", "project"]
    assert lines[1].endswith(str(settings))
