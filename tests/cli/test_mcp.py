"""`ferrule mcp`: adding, listing, trying, approving and removing servers, and the words of what goes wrong."""

import json
import os
import subprocess
import sys

import pytest

from ferrule.cli.main import run

SERVER = """
import json, sys
words = sys.argv[1] if len(sys.argv) > 1 else "Adds."
tools = [
    {"name": "add", "description": words, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "broken", "inputSchema": {"type": "object", "properties": {"a": {"type": "nonsense"}}}},
]
info = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answer = {"jsonrpc": "2.0", "id": asked["id"]}
    if asked["method"] == "initialize":
        answer["result"] = info
    elif asked["method"] == "tools/list":
        answer["result"] = {"tools": tools}
    else:
        answer["error"] = {"code": -32601, "message": "Method not found"}
    print(json.dumps(answer), flush=True)
"""


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    folder = tmp_path / "workspace"
    folder.mkdir()
    (tmp_path / "server.py").write_text(SERVER)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def own(workspace, monkeypatch):
    """The user's own file of servers."""
    settings = workspace.parent / "config" / "settings.toml"
    settings.parent.mkdir()
    settings.touch()
    monkeypatch.setenv("FERRULE_SETTINGS", str(settings))
    return settings.with_name("mcp.json")


def command(*words):
    return ["--", sys.executable, "../server.py", *words]


def said(capsys, *arguments):
    """The exit code of a command line, and all that it printed."""
    code = run(["mcp", *arguments])
    return code, *capsys.readouterr()


def test_a_server_is_added_listed_tried_and_removed(own, capsys):
    assert said(capsys, "list")[:2] == (
        0,
        "No MCP servers are configured here. Add one: ferrule mcp add NAME -- COMMAND ARGS…\n",
    )
    assert run(["mcp", "add", "sums", "--env", "A=b=c", *command()]) == 0
    assert json.loads(own.read_text()) == {
        "mcpServers": {
            "sums": {"command": sys.executable, "args": [os.path.abspath("../server.py")], "env": {"A": "b=c"}}
        }
    }
    told = capsys.readouterr().out
    assert "../server.py is written as " in told
    assert "Next: ferrule mcp test sums" in told
    code, out, err = said(capsys, "test", "sums")
    assert (code, err) == (0, "")
    assert "sums started and listed its tools in " in out
    assert "1 can be used" in out
    assert "  add  Adds. (only reads)\n" in out
    assert "not usable: broken: " in out
    code, out, _ = said(capsys, "list")
    assert code == 0
    assert "ready" in out
    row = json.loads(said(capsys, "list", "--json")[1])
    assert (row["name"], row["state"], row["tools"], row["source"]) == ("sums", "listed", 1, str(own))
    assert [one["name"] for one in row["quarantined"]] == ["broken"]
    assert said(capsys, "remove", "sums")[:2] == (0, f"Removed sums from {own}.\n")
    assert json.loads(own.read_text()) == {"mcpServers": {}}


def test_the_folder_that_it_works_on_is_whichever_workspace_it_is_used_in(own, capsys):
    assert run(["mcp", "add", "files", "--", "npx", "-y", "server-filesystem", "."]) == 0

    assert json.loads(own.read_text())["mcpServers"]["files"]["args"] == ["-y", "server-filesystem", "${WORKSPACE}"]
    assert ". is written as ${WORKSPACE}" in capsys.readouterr().out


def test_a_trial_as_json(own, capsys):
    run(["mcp", "add", "sums", *command()])
    capsys.readouterr()
    code, out, _ = said(capsys, "test", "sums", "--json")
    found = json.loads(out)

    assert code == 0
    assert found["seconds"] > 0
    assert found["error"] == ""
    assert [(tool["name"], tool["called"], tool["readOnly"]) for tool in found["tools"]] == [
        ("add", "mcp__sums__add", True)
    ]


def test_an_address_is_added_with_its_headers(own, capsys):
    added = ["add", "docs", "https://docs.example/mcp", "--header", "Authorization: Bearer ${DOCS:-x}"]

    assert said(capsys, *added)[0] == 0
    assert json.loads(own.read_text())["mcpServers"]["docs"] == {
        "type": "http",
        "url": "https://docs.example/mcp",
        "headers": {"Authorization": "Bearer ${DOCS:-x}"},
    }
    run(["mcp", "add", "old", "https://docs.example/sse", "--sse"])
    assert json.loads(own.read_text())["mcpServers"]["old"] == {"type": "sse", "url": "https://docs.example/sse"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["add", "x"], "Missing argument", id="nothing-to-add"),
        pytest.param(["add", "x", "--header", "A: b", "--", "cmd"], "go with an address", id="header-for-a-command"),
        pytest.param(["add", "x", "http://a.example", "--env", "A=b"], "no --env", id="variable-for-an-address"),
        pytest.param(["add", "x", "http://a.example", "more"], "no arguments", id="argument-for-an-address"),
        pytest.param(["add", "x", "--env", "A", "--", "cmd"], "Write --env KEY=VALUE, not 'A'", id="no-value"),
        pytest.param(["add", "x", "http://a.example", "--header", "A"], "Write --header", id="no-header"),
        pytest.param(["add", "a/b", "--", "cmd"], "a/b", id="no-name"),
        pytest.param(["add", "x", "ftp://a.example"], "begins with http:// or https://", id="another-address"),
        pytest.param(["test", "x"], "There is no MCP server 'x' here. There are: none.", id="test-unknown"),
        pytest.param(["approve", "x"], "There is no MCP server 'x' here", id="approve-unknown"),
        pytest.param(["remove", "x"], "There is no MCP server 'x' here", id="remove-unknown"),
        pytest.param(["list", "--workspace", "nowhere"], "nowhere is not a folder", id="no-folder"),
        pytest.param(["serve", "--workspace", "nowhere"], "is not a folder", id="serve-no-folder"),
        pytest.param(["serve", "--name", "x"], "--name goes with --http", id="name-without-http"),
        pytest.param(["serve", "--http", "nothing"], "is no address", id="serve-no-address"),
        pytest.param(["serve", "--http", ":0", "--token", "short"], "too weak", id="serve-weak-token"),
        pytest.param(["serve", "--dialect", "latin"], "no dialect called 'latin'", id="serve-no-dialect"),
        pytest.param(["nothing"], "No such command", id="unknown-command"),
    ],
)
def test_wrong_use_is_told_in_a_sentence(own, capsys, monkeypatch, arguments, words):
    monkeypatch.setenv("FERRULE_MCP_DEPTH", "0")  # what is served in this process counts itself there
    code, out, err = said(capsys, *arguments)

    assert (code, out) == (2, "")
    assert words in err
    assert "Traceback" not in err
    assert not own.exists()


def test_a_name_is_not_added_twice(own, capsys):
    run(["mcp", "add", "x", "--", "cmd"])
    before = own.read_text()
    code, _, err = said(capsys, "add", "X", "--", "other")

    assert code == 2
    assert "already" in err
    assert own.read_text() == before


def test_a_server_that_does_not_start_is_said_so(own, capsys):
    run(["mcp", "add", "gone", "--", "./no-such-program"])
    capsys.readouterr()
    code, out, err = said(capsys, "test", "gone")

    assert code == 1
    assert out == ""
    assert "gone" in err


def test_a_server_of_the_project_is_not_started_before_it_is_approved(own, workspace, capsys):
    assert said(capsys, "add", "sums", "--project", *command())[1].endswith("Next: ferrule mcp approve sums\n")
    assert "sums" in json.loads((workspace / ".mcp.json").read_text())["mcpServers"]
    code, out, err = said(capsys, "test", "sums")
    assert (code, out) == (3, "")
    assert "is not approved yet, so it was not started" in err
    assert json.loads(said(capsys, "list", "--json")[1])["state"] == "new"


def test_nothing_is_approved_where_nobody_can_be_asked(own, capsys):
    run(["mcp", "add", "sums", "--project", *command()])
    capsys.readouterr()
    code, out, err = said(capsys, "approve", "sums")

    assert code == 3
    assert "../server.py" in out
    assert "--yes approves what is shown above" in err
    assert json.loads(said(capsys, "list", "--json")[1])["state"] == "new"


def test_what_is_approved_is_shown_and_used_until_it_changes(own, workspace, capsys):
    run(["mcp", "add", "sums", "--project", *command()])
    capsys.readouterr()
    code, out, _ = said(capsys, "approve", "sums", "--yes")
    assert code == 0
    assert "It would run this program, with your own rights:" in out
    assert "sums is approved as it is now, with 1 tools." in out
    assert said(capsys, "test", "sums")[0] == 0
    changed = (workspace / ".mcp.json").read_text().replace('"../server.py"', '"../server.py", "Adds otherwise."')
    (workspace / ".mcp.json").write_text(changed)
    assert json.loads(said(capsys, "list", "--json")[1])["state"] == "changed"
    assert said(capsys, "test", "sums")[0] == 3
    assert said(capsys, "approve", "sums", "--yes")[0] == 0
    assert "Adds otherwise." in said(capsys, "test", "sums")[1]
    assert said(capsys, "remove", "sums")[0] == 2
    assert said(capsys, "remove", "sums", "--project")[0] == 0
    run(["mcp", "add", "sums", "--project", *command("Adds otherwise.")])
    capsys.readouterr()
    assert json.loads(said(capsys, "list", "--json")[1])["state"] == "new"


def test_tools_that_have_changed_are_withheld_and_shown(own, workspace, capsys):
    run(["mcp", "add", "sums", *command()])
    assert run(["mcp", "test", "sums"]) == 0
    program = workspace.parent / "server.py"
    program.write_text(SERVER.replace('"Adds."', '"Sends your files away."'))
    capsys.readouterr()
    code, out, _ = said(capsys, "test", "sums")
    assert code == 0
    assert "0 can be used" in out
    assert "withheld: add is new or has changed" in out
    code, out, _ = said(capsys, "approve", "sums", "--yes")
    assert code == 0
    assert "Sends your files away." in out
    assert "1 can be used" in said(capsys, "test", "sums")[1]


def test_a_server_of_the_settings_is_taken_out_by_hand(own, capsys):
    own.with_name("settings.toml").write_text('[mcp.servers.sums]\ncommand = "x"\ndisabled = true\n')
    assert said(capsys, "test", "sums")[0] == 3
    code, _, err = said(capsys, "remove", "sums")

    assert code == 2
    assert "by hand" in err


def test_what_is_wrong_with_a_file_is_a_warning_and_the_rest_is_listed(own, workspace, capsys):
    run(["mcp", "add", "sums", *command()])
    capsys.readouterr()
    (workspace / ".mcp.json").write_text("{")
    code, out, err = said(capsys, "list")

    assert code == 0
    assert "sums" in out
    assert "warning: " in err
    assert ".mcp.json" in err


@pytest.mark.parametrize(
    ("package", "arguments"),
    [pytest.param("mcp", [], id="mcp"), pytest.param("uvicorn", ["--http", ":0"], id="uvicorn")],
)
def test_a_package_that_is_not_there_is_named(own, capsys, monkeypatch, package, arguments):
    monkeypatch.setitem(sys.modules, package, None)
    code, out, err = said(capsys, "serve", *arguments)

    assert (code, out) == (2, "")
    assert f"needs the package `{package}`: pip install 'ferrule[mcp]'" in err


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such terminals")
def test_a_person_who_starts_it_by_hand_is_told_what_it_waits_for(own, workspace):
    import pty

    here, there = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "ferrule", "mcp", "serve"], stdin=there, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as started:
        os.close(there)
        assert started.stderr is not None
        lines = [started.stderr.readline()]
        while lines[-1] not in (b"Ctrl-D ends it.\n", b""):
            lines.append(started.stderr.readline())
        os.write(here, b"\x04")
        out, _ = started.communicate(timeout=60)
    os.close(here)
    text = b"".join(lines).decode()
    entry = json.loads(text[text.index("{") : text.rindex("}") + 1])["mcpServers"]["ferrule"]

    assert (started.returncode, out) == (0, b"")
    assert entry["args"][:4] == ["mcp", "serve", "--workspace", str(workspace)]


def test_a_server_that_serves_itself_ends_soon(own, workspace, monkeypatch):
    monkeypatch.setenv("FERRULE_MCP_DEPTH", "3")
    done = subprocess.run(
        [sys.executable, "-m", "ferrule", "mcp", "serve"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 2
    assert b"was started by itself" in done.stderr
    assert done.stdout == b""
