"""A server that was started in `/` or in the home folder: its client's roots are its workspace, and `/` never is."""

import os
from pathlib import Path
from typing import Any

import pytest

from ferrule.serve.mcp.client import _folder, _is_wide
from tests.serve.program import FERRULE, HELLO, Program, program

ROOTS: dict[str, Any] = {"roots": {"listChanged": True}}


class Rooted(Program):
    """A client that names roots."""

    def __init__(self, program: Program, *roots: object) -> None:
        super().__init__(program.process)
        self.roots = roots
        self.asked = 0

    async def hear(self) -> Any:
        while (message := await super().hear()) is not None and message.get("method") == "roots/list":
            self.asked += 1
            self.say({"id": message["id"], "result": {"roots": [{"uri": str(one)} for one in self.roots]}})
        return message

    async def join(self, capabilities: Any) -> Any:
        answer = await self.ask("initialize", {**HELLO, "capabilities": capabilities})
        self.say({"method": "notifications/initialized"})
        return answer["result"]

    async def read(self, path: str) -> tuple[bool, str]:
        answer = await self.ask("tools/call", {"name": "Read", "arguments": {"path": path}})
        return answer["result"].get("isError", False), answer["result"]["content"][0]["text"]


def folder(parent: Path, name: str) -> Path:
    made = parent / name
    made.mkdir(parents=True)
    (made / "here.txt").write_text(f"this is {name}\n")
    return made


async def test_the_first_root_that_is_a_folder_is_the_workspace(tmp_path):
    one, two = folder(tmp_path, "one ü"), folder(tmp_path, "two")
    async with program(*FERRULE, folder=Path("/")) as started:
        client = Rooted(started, "file:///", "file:///no/such/folder", one.as_uri(), two.as_uri())
        greeted = await client.join(ROOTS)
        tools = await client.ask("tools/list")
        here = await client.read("here.txt")
        outside = await client.read(str(two / "here.txt"))
        warned = (await started.process.stderr.readline()).decode()

    assert "first folder among the client's roots" in greeted["instructions"]
    assert "Read" in [tool["name"] for tool in tools["result"]["tools"]]
    assert (here[0], "this is one ü" in here[1]) == (False, True)
    assert outside[0]
    assert "Started in /" in warned
    assert "--workspace" in warned
    assert client.asked == 1


async def test_when_the_roots_change_the_workspace_follows_unless_it_is_still_among_them(tmp_path):
    one, two = folder(tmp_path, "one"), folder(tmp_path, "two")
    async with program(*FERRULE, folder=Path("/")) as started:
        client = Rooted(started, one.as_uri())
        await client.join(ROOTS)
        said = [await client.read("here.txt")]
        for roots in ((two.as_uri(), one.as_uri()), (two.as_uri(),), ()):
            client.roots = roots
            client.say({"method": "notifications/roots/list_changed"})
            await client.ask("ping")
            while client.asked < len(said) + 1:
                await client.ask("ping")
            said.append(await client.read("here.txt"))

    assert ["one" in words for _, words in said] == [True, True, False, False]
    assert ["two" in words for _, words in said] == [False, False, True, True]
    assert not any(failed for failed, _ in said)


@pytest.mark.parametrize(
    ("capabilities", "roots", "why"),
    [
        pytest.param({}, (), "names no roots", id="without"),
        pytest.param(ROOTS, (), "none of this client's roots", id="none"),
        pytest.param(ROOTS, ("file:///", "file://host/etc"), "none of this client's roots", id="no-folder"),
        pytest.param(ROOTS, ("https://host/x",), "cannot be read", id="no-file"),
    ],
)
async def test_the_whole_machine_is_never_the_workspace(tmp_path, capabilities, roots, why):
    async with program(*FERRULE, folder=Path("/")) as started:
        client = Rooted(started, *roots)
        await client.join(capabilities)
        listed = await client.ask("tools/list")
        failed, words = await client.read("etc/hostname")

    assert failed
    assert words.startswith("There is no workspace: the server was started in /")
    assert why in words
    assert "`--workspace DIR`" in words
    assert words == listed["error"]["message"]


async def test_the_home_folder_is_taken_with_a_warning_where_nobody_names_a_better_one(tmp_path, monkeypatch):
    home = folder(tmp_path, "home")
    monkeypatch.setenv("HOME", str(home))
    async with program(*FERRULE, folder=home) as started:
        client = Rooted(started)
        await client.join({})
        here = await client.read("here.txt")
        warned = [(await started.process.stderr.readline()).decode() for _ in range(2)]

    assert here == (False, "1: this is home")
    assert "The workspace is the home folder" in warned[1]


async def test_a_root_that_is_the_home_folder_is_taken_with_a_warning(tmp_path, monkeypatch):
    home = folder(tmp_path, "home")
    monkeypatch.setenv("HOME", str(home))
    async with program(*FERRULE, folder=Path("/")) as started:
        client = Rooted(started, home.as_uri())
        await client.join(ROOTS)
        here = await client.read("here.txt")
        warned = [(await started.process.stderr.readline()).decode() for _ in range(2)]

    assert here == (False, "1: this is home")
    assert f"The workspace is {home}, the home folder, because it is this client's first root" in warned[1]


@pytest.mark.parametrize(
    ("root", "words"),
    [
        ("{home}", "the home folder"),
        ("{home}/..", "with the home folder in it"),
        ("/etc", "a folder of the system"),
        ("{home}/project", ""),
        ("/etc/nginx", ""),
        ("/srv", ""),
    ],
)
def test_a_root_is_wide_where_it_holds_more_than_a_project(tmp_path, monkeypatch, root, words):
    home = folder(tmp_path, "home")
    monkeypatch.setenv("HOME", str(home))

    assert _is_wide(os.path.normpath(root.format(home=home))) == words


async def test_a_folder_that_the_user_named_is_taken_whatever_the_client_says(tmp_path):
    one, two = folder(tmp_path, "one"), folder(tmp_path, "two")
    async with program(*FERRULE, "--workspace", str(one), folder=Path("/")) as started:
        client = Rooted(started, two.as_uri())
        await client.join(ROOTS)
        here = await client.read("here.txt")

    assert "this is one" in here[1]
    assert client.asked == 0


async def test_over_http_the_whole_machine_is_refused_at_once():
    async with program(*FERRULE, "--http", "127.0.0.1:0", folder=Path("/")) as started:
        code = await started.ended()
        said = (await started.process.stderr.read()).decode()

    assert code == 2
    assert "would be /, the whole machine: choose a folder with `--workspace DIR`" in said


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a%20b/%C3%BC", "/a b/ü"),
        ("file://localhost/a", "/a"),
        ("file://host/a", ""),
        ("http://host/a", ""),
        ("file:a", ""),
        ("file:///a%00b", ""),
        ("file://[", ""),
    ],
)
def test_a_root_is_a_path_of_this_machine_or_nothing(uri, path):
    assert _folder(uri) == path
