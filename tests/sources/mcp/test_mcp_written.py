"""Adding servers to files and taking them out: the rest stays, and a broken file is never overwritten."""

import json
import os
import stat

import pytest

from ferrule.core.errors import ConfigError
from ferrule.sources.mcp.config import add_server, remove_server

ENTRY = {"command": "npx", "args": ["-y", "x"]}


def test_a_file_that_is_not_there_is_made_for_its_owner_alone(tmp_path):
    path = tmp_path / "new" / "mcp.json"

    add_server(str(path), "x", ENTRY)

    assert json.loads(path.read_text()) == {"mcpServers": {"x": ENTRY}}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        pytest.param("mcp.json", "", {"mcpServers": {"x": ENTRY}}, id="empty"),
        pytest.param(
            "mcp.json",
            {"z": [1], "mcpServers": {"b": {}, "a": {}}, "é": None},
            {"z": [1], "mcpServers": {"b": {}, "a": {}, "x": ENTRY}, "é": None},
            id="others-keep-their-order",
        ),
        pytest.param(
            "settings.json",
            {"amp.url": "u", "amp.mcpServers": {}},
            {"amp.url": "u", "amp.mcpServers": {"x": ENTRY}},
            id="amp",
        ),
        pytest.param(
            ".amp/settings.json", {"amp.url": "u"}, {"amp.url": "u", "amp.mcpServers": {"x": ENTRY}}, id="amp-new"
        ),
    ],
)
def test_the_rest_of_a_file_stays(tmp_path, name, before, after):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(before) if before else "")
    path.chmod(0o640)

    add_server(str(path), "x", ENTRY)

    assert json.dumps(json.loads(path.read_text())) == json.dumps(after)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(path.parent) == [path.name]

    assert remove_server(str(path), "x")
    assert not remove_server(str(path), "x")
    assert "npx" not in path.read_text()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param("{", "not JSON", id="broken"),
        pytest.param("[]", "not an object", id="list"),
        pytest.param('{"mcpServers": []}', "mcpServers is not an object", id="servers"),
        pytest.param('{"a": 1, "a": 2}', "twice", id="twice"),
        pytest.param('{ // mine\n "mcpServers": {}}', "has comments, which would be lost", id="comments"),
        pytest.param('{"mcpServers": {"X": {}}}', "has a server called x already", id="there"),
    ],
)
def test_what_cannot_be_kept_is_not_written(tmp_path, content, words):
    path = tmp_path / "mcp.json"
    path.write_text(content)

    with pytest.raises(ConfigError, match=words):
        add_server(str(path), "x", ENTRY)

    assert path.read_text() == content


@pytest.mark.parametrize(
    ("name", "entry"), [("a__b", ENTRY), ("x", {}), ("x", {"command": "c", "args": "d"}), ("x", {"url": "ftp://h"})]
)
def test_what_could_not_be_used_is_not_written(tmp_path, name, entry):
    with pytest.raises(ConfigError):
        add_server(str(tmp_path / "mcp.json"), name, entry)

    assert os.listdir(tmp_path) == []


def test_a_link_of_the_users_stays_a_link(tmp_path):
    (tmp_path / "kept.json").write_text("{}")
    (tmp_path / "mcp.json").symlink_to(tmp_path / "kept.json")

    add_server(str(tmp_path / "mcp.json"), "x", ENTRY)

    assert (tmp_path / "mcp.json").is_symlink()
    assert "npx" in (tmp_path / "kept.json").read_text()


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(ConfigError, match="cannot be written"):
        add_server(str(tmp_path / "file" / "mcp.json"), "x", ENTRY)
