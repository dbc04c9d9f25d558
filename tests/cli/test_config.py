"""`ferrule config`: every setting with its value and its origin."""

import json

import pytest

from ferrule.cli.main import run
from ferrule.settings.layers import list_settings


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

    assert [row["key"] for row in rows(capsys)] == [key for key, _ in list_settings()]


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


BEFORE = """# mine
dialect = "ah"  # why

[limits]
seconds = 5  # short
"""


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        pytest.param("dialect", "pi", 'dialect = "pi"  # why', id="a string without quotes"),
        pytest.param("dialect", '"pi"', 'dialect = "pi"  # why', id="a string in quotes"),
        pytest.param("limits.seconds", "7", "seconds = 7  # short", id="a number"),
        pytest.param("models.default", "ollama:qwen3", 'default = "ollama:qwen3"', id="a new table"),
        pytest.param("tools.disable", '["web_search"]', 'disable = ["web_search"]', id="a list"),
        pytest.param("models.hosts.mine.key_env", "MY_KEY", 'key_env = "MY_KEY"', id="a member of a table"),
    ],
)
def test_one_value_is_set_and_all_else_stays(key, value, line, settings, capsys):
    settings.write_text(BEFORE)

    assert run(["config", "set", key, value]) == 0
    after = settings.read_text().splitlines()
    assert line in after
    assert len([old for old in BEFORE.splitlines() if old not in after]) <= 1
    assert "# mine" in after


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["dialcet", "ah"], "Did you mean dialect or dialects?", id="a key like another"),
        pytest.param(["nowhere.to.be", "1"], "There is no setting 'nowhere.to.be'", id="no such key"),
        pytest.param(["dialect = 1\nsources", "1"], "There is no setting", id="more than a key"),
        pytest.param(["limits.seconds", "soon"], "limits.seconds", id="no number"),
        pytest.param(["limits.seconds", "1\ndialect = 'pi'"], "limits.seconds", id="more than a value"),
        pytest.param(
            ["models.default", "a:b", "--project"], "a project cannot set models.default", id="not a project's"
        ),
    ],
)
def test_what_is_no_setting_is_not_written(arguments, words, settings, capsys):
    settings.write_text(BEFORE)

    assert run(["config", "set", *arguments]) == 2
    assert words in capsys.readouterr().err
    assert settings.read_text() == BEFORE
    assert [path.name for path in settings.parent.iterdir()] == ["settings.toml"]


def test_a_file_that_is_wrong_is_left_alone(settings, capsys):
    settings.write_text("dialect = \n")

    assert run(["config", "set", "dialect", "ah"]) == 2
    assert settings.read_text() == "dialect = \n"


def test_a_project_has_a_file_of_its_own(settings, capsys):
    assert run(["config", "set", "limits.seconds", "9", "--project"]) == 0

    assert (settings.parent / ".ferrule" / "settings.toml").read_text() == "[limits]\nseconds = 9\n"
    assert not settings.exists()


def test_a_file_of_a_project_that_leads_out_of_it_is_not_written(settings, tmp_path, capsys):
    (tmp_path / ".ferrule").mkdir()
    (tmp_path / ".ferrule" / "settings.toml").symlink_to(tmp_path / "other.toml")

    assert run(["config", "set", "limits.seconds", "9", "--project"]) == 2
    assert not (tmp_path / "other.toml").exists()


def test_a_value_is_printed_as_a_program_wants_it(settings, capsys):
    settings.write_text(BEFORE)

    assert [run(["config", "get", key]) for key in ("dialect", "limits.seconds", "limits.secnds")] == [0, 0, 2]
    out, err = capsys.readouterr()
    assert out == "ah\n5.0\n"
    assert "Did you mean limits.seconds?" in err


@pytest.mark.parametrize(
    ("written", "code", "after"),
    [
        pytest.param('dialect = "pi"', 0, 'dialect = "pi"\n', id="right"),
        pytest.param("dialect = 1", 2, BEFORE, id="wrong"),
    ],
)
def test_an_editor_writes_only_settings(written, code, after, settings, capsys, monkeypatch):
    settings.write_text(BEFORE)
    editor = settings.parent / "editor"
    editor.write_text(f"#!/bin/sh\necho '{written}' > \"$1\"\n")
    editor.chmod(0o755)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", str(editor))

    assert run(["config", "edit"]) == code
    assert settings.read_text() == after


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        pytest.param("dialect", "latin", "There is no dialect called 'latin'", id="no dialect"),
        pytest.param("permissions.mode", "nope", "There is no permission mode 'nope'", id="no mode"),
        pytest.param("models.default", "nope", "No host is known for the model 'nope'", id="no host"),
        pytest.param("limits.seconds", "soon", "limits.seconds takes a number, and 'soon' is none.", id="no number"),
        pytest.param("models.retries", "1.5", "models.retries takes a whole number, and '1.5' is none.", id="no count"),
        pytest.param("models.retries", "yes", "models.retries takes a whole number, and 'yes' is none.", id="a word"),
        pytest.param("permissions.allow", "[", "permissions.allow takes a list, as", id="no list"),
        pytest.param("models.defualt", "x", "Did you mean models.default?", id="no setting"),
    ],
)
def test_what_there_is_not_is_not_written(settings, capsys, key, value, words):
    settings.write_text('# mine\ndialect = "ah"\n')

    assert run(["config", "set", key, value]) == 2
    assert words in capsys.readouterr().err
    assert settings.read_text() == '# mine\ndialect = "ah"\n'


def test_a_value_is_taken_away_and_all_else_stays(settings, capsys):
    settings.write_text('# mine\ndialect = "ah"\n\n[loop]\nturns = 5\ncost = 1.0 # a dollar\n')

    assert run(["config", "unset", "loop.turns"]) == 0
    assert "loop.turns is at its default again (none)." in capsys.readouterr().out
    assert settings.read_text() == '# mine\ndialect = "ah"\n\n[loop]\ncost = 1.0 # a dollar\n'


@pytest.mark.parametrize(
    ("key", "words"),
    [
        pytest.param("loop.turns", "loop.turns is not set in", id="not set"),
        pytest.param("loop.trns", "Did you mean loop.turns?", id="no setting"),
    ],
)
def test_what_is_not_set_cannot_be_taken_away(settings, capsys, key, words):
    settings.write_text('dialect = "ah"\n')

    assert run(["config", "unset", key]) == 2
    assert words in capsys.readouterr().err
    assert settings.read_text() == 'dialect = "ah"\n'


def test_whoever_writes_none_is_told_how_a_value_is_taken_away(settings, capsys):
    settings.touch()

    assert run(["config", "set", "loop.turns", "none"]) == 2
    assert "`ferrule config unset loop.turns` takes the value away" in capsys.readouterr().err


def test_a_wrong_value_can_be_replaced(settings, capsys):
    settings.write_text('dialect = "latin"\n')

    assert run(["config", "set", "permissions.mode", "plan"]) == 0
    assert run(["config", "set", "dialect", "codex"]) == 0
    assert settings.read_text() == 'dialect = "codex"\n\n[permissions]\nmode = "plan"\n'


def test_no_editor_waits_where_there_is_no_terminal(settings, capsys, monkeypatch):
    settings.write_text("")
    monkeypatch.delenv("EDITOR", raising=False)
    monkeypatch.delenv("VISUAL", raising=False)

    assert run(["config", "edit"]) == 2
    assert "There is no terminal for an editor" in capsys.readouterr().err


def test_an_editor_that_writes_what_there_is_not_changes_nothing(settings, capsys, monkeypatch):
    settings.write_text('dialect = "ah"\n')
    monkeypatch.setenv("EDITOR", "sed -i s/ah/latin/")
    monkeypatch.delenv("VISUAL", raising=False)

    assert run(["config", "edit"]) == 2
    assert "There is no dialect called 'latin'" in capsys.readouterr().err
    assert settings.read_text() == 'dialect = "ah"\n'
