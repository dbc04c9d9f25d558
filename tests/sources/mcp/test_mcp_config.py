"""Configured servers: every form that is read, what is said of what is not understood, and which of two counts."""

import json
import os
from typing import Any

import pytest
from tests.rows import each_row

from ferrule.core.errors import ConfigError
from ferrule.settings import Mcp, McpServer
from ferrule.sources.mcp import McpServerEntry
from ferrule.sources.mcp.config import exist, expand_variables, read_servers, skill_servers, variables


class Places:
    """A workspace and a folder of the user's own, with files in them."""

    def __init__(self, folder):
        self.workspace, self.user = folder / "workspace", folder / "user"
        self.workspace.mkdir()
        self.user.mkdir()

    def write(self, name, content):
        path = (self.user if name == "mcp.json" else self.workspace) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    def read(self, mcp=None, **more):
        return read_servers(str(self.workspace), mcp or Mcp(), user_folder=str(self.user), **more)


@pytest.fixture
def places(tmp_path):
    return Places(tmp_path)


def only(found):
    assert found.warnings == ()
    (server,) = found.servers
    return server


COMMAND = {"command": "npx", "args": ["-y", "x"], "env": {"TOKEN": "${TOKEN}"}}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param(".mcp.json", {"mcpServers": {"x": COMMAND}}, id="claude-code"),
        pytest.param(".amp/settings.json", {"amp.mcpServers": {"x": COMMAND}, "amp.url": "y"}, id="amp"),
        pytest.param(
            ".amp/settings.jsonc",
            '{\n  // ours\n  "amp.mcpServers": {"x": {"command": "npx", "args": ["-y", "x"], /* a */ '
            '"env": {"TOKEN": "${TOKEN}"},},},\n}',
            id="amp-with-comments",
        ),
        pytest.param(
            ".ferrule/settings.toml",
            '[mcp.servers.x]\ncommand = "npx"\nargs = ["-y", "x"]\nenv = { TOKEN = "${TOKEN}" }\n',
            id="ferrule",
        ),
    ],
)
@pytest.mark.contract("mcp.forms")
def test_a_projects_server_is_read_from_every_form(places, name, content):
    path = places.write(name, content)

    assert only(places.read()) == McpServerEntry(
        name="x",
        transport="stdio",
        layer="project",
        source=str(path),
        command="npx",
        args=("-y", "x"),
        env={"TOKEN": "${TOKEN}"},
    )


@pytest.mark.parametrize(
    ("entry", "fields"),
    [
        pytest.param({"url": "https://h/mcp"}, {"transport": "http", "url": "https://h/mcp"}, id="address"),
        pytest.param({"type": "sse", "url": "http://h"}, {"transport": "sse"}, id="sse"),
        pytest.param({"type": "http", "url": "http://h", "headers": {"A": "b"}}, {"headers": {"A": "b"}}, id="headers"),
        pytest.param({"transport": "streamable-http", "url": "http://h"}, {"transport": "http"}, id="streamable"),
        pytest.param({"command": "c", "type": "stdio", "cwd": "sub"}, {"cwd": "sub"}, id="folder"),
        pytest.param({"command": "c", "disabled": True}, {"disabled": True}, id="disabled"),
        pytest.param({"command": "c", "includeTools": ["a*"]}, {"include": ("a*",)}, id="some-tools"),
        pytest.param({"command": "c", "exposure": "hidden"}, {"exposure": "hidden"}, id="exposure"),
        pytest.param({"command": "c", "permission": "allow"}, {"permission": "allow"}, id="permission"),
        pytest.param({"command": "c", "timeout": 1500}, {"seconds": 1.5}, id="milliseconds"),
        pytest.param({"command": "c", "seconds": 2}, {"seconds": 2.0}, id="seconds"),
        pytest.param(
            {"command": "c", "env": {"PORT": 80, "ON": True}}, {"env": {"PORT": "80", "ON": "true"}}, id="env"
        ),
        pytest.param({"url": "${BASE:-http://h}/mcp"}, {"transport": "http"}, id="variable-address"),
    ],
)
def test_every_key_is_understood(places, entry, fields):
    places.write("mcp.json", {"mcpServers": {"x": entry}})

    server = only(places.read())

    assert {name: getattr(server, name) for name in fields} == fields
    assert server.layer == "user"


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        pytest.param("npx", "it is an object with command or url", id="no-object"),
        pytest.param({}, "command is missing", id="empty"),
        pytest.param({"type": "http"}, "url is missing", id="no-address"),
        pytest.param({"command": "a", "url": "http://b"}, "it has a command and a url", id="both"),
        pytest.param({"command": ["a"]}, "command holds something that is no text", id="command-list"),
        pytest.param({"command": "a", "args": "b"}, "args is a list of texts", id="args-text"),
        pytest.param({"command": "a", "args": [1]}, "args holds something that is no text", id="args-number"),
        pytest.param({"command": "a", "env": ["A=b"]}, "env is an object of names and texts", id="env-list"),
        pytest.param({"command": "a", "env": {"A=B": "c"}}, "env has a name that cannot be one", id="env-name"),
        pytest.param({"url": "http://h", "headers": {"": "c"}}, "headers has a name that cannot", id="header-name"),
        pytest.param({"url": "http://h", "headers": {"a": "b\r\nc: d"}}, "line break", id="header-value"),
        pytest.param({"command": "a\0b"}, "command holds something that is no text", id="nul"),
        pytest.param({"command": "a", "disabled": "no"}, "disabled is true or false", id="disabled-text"),
        pytest.param({"command": "a", "type": "ws"}, "the transport 'ws' is not known", id="transport"),
        pytest.param({"url": "file:///etc/passwd"}, "its url begins with http:// or https://", id="file-address"),
        pytest.param({"command": "a", "timeout": -1}, "timeout is a number above 0", id="time"),
        pytest.param({"command": "a", "seconds": True}, "seconds is a number above 0", id="time-flag"),
        pytest.param({"command": "a", "seconds": 10**400}, "seconds is a number above 0", id="time-huge"),
        pytest.param({"command": "a", "seconds": float("nan")}, "seconds is a number above 0", id="time-none"),
        pytest.param({"command": "a", "args": ["\ud800"]}, "args holds something", id="half-a-character"),
        pytest.param({"command": "a", "permission": "yes"}, "permission is one of allow, ask, deny", id="permission"),
    ],
)
def test_a_wrong_server_is_dropped_alone_and_named(places, entry, words):
    places.write("mcp.json", {"mcpServers": {"bad": entry, "good": {"command": "c"}}})

    found = places.read()

    assert [server.name for server in found.servers] == ["good"]
    (warning,) = found.warnings
    assert "the MCP server bad is not used" in warning
    assert words in warning


@pytest.mark.parametrize("name", ["a__b", "a b", "gіt", "x" * 41, "_a", "a_"])
def test_a_server_with_a_name_that_cannot_be_is_told_what_to_do(places, name):
    places.write("mcp.json", {"mcpServers": {name: {"command": "c"}}})

    found = places.read()

    assert found.servers == ()
    assert "give it" in found.warnings[0]


def test_unknown_keys_and_oauth_are_warnings(places):
    places.write("mcp.json", {"mcpServers": {"x": {"url": "http://h", "retries": 3, "oauth": {"clientId": "c"}}}})

    found = places.read()

    assert [server.name for server in found.servers] == ["x"]
    assert [("retries" in one, "oauth is not supported" in one) for one in found.warnings] == [
        (True, False),
        (False, True),
    ]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("{", id="broken"),
        pytest.param("[]", id="list"),
        pytest.param('{"mcpServers": []}', id="servers-list"),
        pytest.param('{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}', id="twice"),
        pytest.param("[" * 100_000, id="deep"),
        pytest.param('{"mcpServers": {"a": "' + "x" * (1 << 20) + '"}}', id="huge"),
        pytest.param(json.dumps({"mcpServers": {f"s{n}": {"command": "c"} for n in range(501)}}), id="many"),
    ],
)
def test_a_file_that_nobody_understands_is_one_warning(places, content):
    path = places.write(".mcp.json", content)
    places.write("mcp.json", {"mcpServers": {"mine": {"command": "c"}}})

    found = places.read()

    assert [server.name for server in found.servers] == ["mine"]
    assert len(found.warnings) == 1
    assert found.warnings[0].startswith(str(path))


ORDER = (
    "managed",
    "session",
    "settings",
    "mcp.json",
    "files",
    ".ferrule/settings.toml",
    ".mcp.json",
    ".amp/settings.json",
)


def put(places, place, given):
    """Configure the server x in a place; its command tells which."""
    if place in {"managed", "settings"}:
        given[place] = Mcp(servers={"x": McpServer(command=place)}, files=given.get("files", ()))
    elif place == "session":
        given["session"] = [json.dumps({"x": {"command": place}})]
    elif place == "files":
        given["files"] = (str(places.write("more.json", {"mcpServers": {"x": {"command": place}}})),)
    elif place.endswith(".toml"):
        places.write(place, f'[mcp.servers.x]\ncommand = "{place}"\n')
    else:
        key = "amp.mcpServers" if "amp" in place else "mcpServers"
        places.write(place, {key: {"x": {"command": place}}})


@pytest.mark.parametrize("at", range(len(ORDER)), ids=ORDER)
def test_the_nearer_to_the_user_a_server_is_written_the_more_it_counts(places, at):
    given: dict[str, Any] = {}
    for place in reversed(ORDER[at:]):
        put(places, place, given)

    found = places.read(
        given.get("settings", Mcp(files=given.get("files", ()))),
        given=given.get("session", ()),
        managed=given.get("managed"),
    )

    assert [server.command for server in found.servers] == [ORDER[at]]
    assert len(found.warnings) == len(ORDER) - at - 1 + (at == 0)


def test_a_project_cannot_take_the_name_of_a_users_server(places):
    places.write("mcp.json", {"mcpServers": {"github": {"command": "mine"}}})
    path = places.write(".mcp.json", {"mcpServers": {"GitHub": {"command": "evil"}, "github": {"command": "evil"}}})

    found = places.read()

    assert [(server.name, server.command) for server in found.servers] == [("github", "mine")]
    assert [str(path) in warning and "not used" in warning for warning in found.warnings] == [True, True]


def test_a_project_cannot_step_in_for_a_users_server_that_is_broken(places):
    places.write("mcp.json", {"mcpServers": {"github": {"command": 1}}})
    places.write(".mcp.json", {"mcpServers": {"github": {"command": "evil"}}})

    found = places.read()

    assert found.servers == ()
    assert len(found.warnings) == 2


def test_a_project_cannot_allow_its_own_calls(places):
    places.write(".mcp.json", {"mcpServers": {"x": {"command": "c", "permission": "allow"}}})

    found = places.read()

    assert [server.permission for server in found.servers] == ["ask"]
    assert "only your own settings can allow" in found.warnings[0]


def test_whoever_runs_the_machine_may_forbid_a_server(places):
    places.write("mcp.json", {"mcpServers": {"x": {"command": "c"}}})

    found = places.read(managed=Mcp(servers={"x": McpServer(disabled=True), "y": McpServer(permission="deny")}))

    assert [(server.name, server.layer, server.disabled) for server in found.servers] == [
        ("x", "managed", True),
        ("y", "managed", False),
    ]


@pytest.mark.parametrize("link", ["file", "folder"])
def test_a_projects_file_behind_a_link_is_not_read(places, tmp_path, link):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "settings.json").write_text('{"amp.mcpServers": {"x": {"command": "c"}}}')
    if link == "file":
        (places.workspace / ".amp").mkdir()
        (places.workspace / ".amp" / "settings.json").symlink_to(outside / "settings.json")
    else:
        (places.workspace / ".amp").symlink_to(outside)

    found = places.read()

    assert found.servers == ()
    assert "through a link" in found.warnings[0]


def test_a_projects_file_that_is_a_pipe_holds_nobody_up(places):
    os.mkfifo(places.workspace / ".mcp.json")

    found = places.read()

    assert found.servers == ()
    assert "not a regular file" in found.warnings[0]


@pytest.mark.parametrize("form", ["mcpServers", "amp.mcpServers", "bare"])
@pytest.mark.parametrize("as_file", [True, False], ids=["file", "text"])
def test_a_session_is_given_servers_in_any_form(places, form, as_file):
    content = {"x": {"command": "c"}} if form == "bare" else {form: {"x": {"command": "c"}}}
    text = str(places.write("given.json", content)) if as_file else json.dumps(content)

    server = only(places.read(given=[text]))

    assert (server.name, server.layer) == ("x", "session")


def test_a_file_that_was_named_and_is_not_there_is_a_warning(places):
    found = places.read(Mcp(files=("/nowhere/mcp.json",)), given=["/nowhere/else.json"])

    assert [warning.split(",")[0] for warning in found.warnings] == ["/nowhere/else.json", "/nowhere/mcp.json"]


def test_a_skills_servers_are_a_bare_map():
    server = only(skill_servers({"x": {"command": "c"}}, source="a skill"))

    assert (server.name, server.layer, server.source) == ("x", "skill", "a skill")


def rejected(*entries):
    return {"amp.mcpPermissions": [{"matches": matches, "action": action} for matches, action in entries]}


@pytest.mark.parametrize(
    ("rules", "left"),
    [
        pytest.param([], ["local", "remote"], id="none"),
        pytest.param([({"url": "https://evil.*"}, "reject")], ["local"], id="address"),
        pytest.param([({"command": "npx", "args": "-y bad*"}, "reject")], ["remote"], id="command"),
        pytest.param([({"command": "npx", "args": "-y good*"}, "reject")], ["local", "remote"], id="other-arguments"),
        pytest.param([({"command": "npx"}, "allow"), ({}, "reject")], ["local"], id="first-match-wins"),
        pytest.param([({}, "reject"), ({"command": "npx"}, "allow")], [], id="all"),
        pytest.param([({"url": "*"}, "reject")], ["local"], id="a-command-has-no-address"),
    ],
)
@pytest.mark.parametrize("layer", ["user", "project"])
def test_amps_list_says_which_servers_are_used(places, rules, left, layer):
    places.write(
        "mcp.json",
        {
            "mcpServers": {
                "local": {"command": "npx", "args": ["-y", "bad-server"]},
                "remote": {"url": "https://evil.h/"},
            },
            **(rejected(*rules) if layer == "user" else {}),
        },
    )
    if layer == "project":
        places.write(".amp/settings.json", rejected(*rules))

    assert [server.name for server in places.read().servers] == left


def test_a_projects_list_cannot_bring_back_what_the_user_rejects(places):
    rules = places.write("rules.json", rejected(({"command": "*"}, "reject")))
    places.write(".amp/settings.json", {"amp.mcpServers": {"x": {"command": "c"}}, **rejected(({}, "allow"))})

    found = places.read(rule_files=[str(rules)])

    assert found.servers == ()
    assert f"{rules} rejects it" in found.warnings[0]


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param("reject", id="text"),
        pytest.param([{"action": "deny"}], id="action"),
        pytest.param([{"matches": {"name": "x"}, "action": "reject"}], id="part"),
        pytest.param([{"matches": {"url": 1}, "action": "reject"}], id="number"),
        pytest.param([{"action": "reject", "message": "no"}], id="key"),
    ],
)
def test_a_list_that_nobody_understands_keeps_every_server_out(places, entries):
    places.write("mcp.json", {"mcpServers": {"x": {"command": "c"}}, "amp.mcpPermissions": entries})

    found = places.read()

    assert (found.servers, found.is_shut) == ((), True)
    assert "until that is mended" in found.warnings[0]


@each_row(
    ("text", "value"),
    [
        pytest.param("plain", "plain", id="plain"),
        pytest.param("${A}", "one", id="variable"),
        pytest.param("x${A}y${A}", "xoneyone", id="twice"),
        pytest.param("${NO:-two}", "two", id="otherwise"),
        pytest.param("${NO:-}", "", id="otherwise-nothing"),
        pytest.param("${A:-two}", "one", id="set"),
        pytest.param("${EMPTY:-two}", "two", id="empty"),
        pytest.param("${EMPTY}", "", id="empty-without"),
        pytest.param("${NESTED}", "${A}", id="once-only"),
        pytest.param("$A ${1} ${} ${A-b} $(id)", "$A ${1} ${} ${A-b} $(id)", id="other-texts"),
    ],
)
@pytest.mark.contract("mcp.variables")
def test_variables_are_put_in_everywhere(text, value):
    server = McpServerEntry(
        name="x", transport="stdio", layer="user", source="s", command=f"/{text}", args=(text,), env={"E": text}
    )
    environment = {"A": "one", "EMPTY": "", "NESTED": "${A}"}

    ready = expand_variables(server, environment)

    assert (ready.command, ready.args, ready.env) == (f"/{value}", (value,), {"E": value})


def test_a_variable_that_is_not_set_is_named():
    server = McpServerEntry(
        name="x", transport="http", layer="user", source="s", url="http://h/${NO_SUCH}", headers={"A": "${B}"}
    )

    assert variables(server) == ("NO_SUCH", "B")
    with pytest.raises(ConfigError, match="The MCP server x needs the variable NO_SUCH, which is not set"):
        expand_variables(server, {})


def test_nothing_is_looked_for_where_nothing_is_configured(places):
    there = str(places.workspace), str(places.user)

    assert not exist(*there, Mcp())
    assert exist(*there, Mcp(servers={"x": McpServer(command="c")}))

    places.write(".mcp.json", {})

    assert exist(*there, Mcp())
