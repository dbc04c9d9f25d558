"""What every language server does for a session, the fake one like the real ones: it passes the same tests."""

import os
import signal
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.sources.mcp.node import found as node
from tests.workspace.languages.servers_world import (
    PYTHON,
    SCRIPT,
    SECONDS,
    definition,
    died,
    fake,
    opened,
    put,
    watches,
    wrong,
)

from ferrule.settings import LanguageServer
from ferrule.system.environment import program_on_path


class Kind(NamedTuple):
    """One server, and the project that it is shown."""

    servers: dict[str, LanguageServer]
    file: str
    text: str


@pytest.fixture
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> Kind:
    name = request.param
    if name == "fake":
        return Kind({"fake": fake()}, "a.fake", PYTHON)
    if name == "typescript":
        there = node(request)
        put(tmp_path, "tsconfig.json", '{"compilerOptions": {"strict": true, "types": []}}')
        compiler = os.path.join(there.modules, "typescript", "bin", "tsc")
        started = LanguageServer(command=there.program, args=(compiler, "--lsp", "--stdio"))
        return Kind({"typescript": started}, "a.ts", SCRIPT)
    put(tmp_path, "pyproject.toml", "")
    return Kind({name: LanguageServer()}, "a.py", PYTHON)


@pytest.mark.parametrize("kind", ["fake", "ty", "basedpyright", "typescript"], indirect=True)
async def test_a_server_lives_through_a_session(kind, tmp_path):
    path = put(tmp_path, kind.file, kind.text)
    async with opened(tmp_path, kind.servers, use="auto") as languages:
        server = await languages.server(path)

        assert server.is_ready
        assert server.root == str(tmp_path / "work")
        assert languages.warm(path) is server
        assert await definition(server, path, 5, 2) == [1]
        assert await wrong(server, path) == [5]

        put(tmp_path, kind.file, "\n" + kind.text.replace('helper("s")', "helper(1)"))
        assert await definition(server, path, 6, 2) == [2]
        assert await wrong(server, path) == []

        await server.sync(path, kind.text)
        assert await wrong(server, path) == [5]

        pid = server.pid
        os.kill(pid, signal.SIGKILL)
        await died(server)
        assert languages.warm(path) is None
        assert await definition(server, path, 6, 2) == [2]
        assert await wrong(server, path) == []
        assert server.pid not in {0, pid}
    assert languages.list_running() == ()
    assert {name for name in os.listdir(tmp_path / "work") if name.startswith(".")} == set()


@pytest.mark.parametrize(
    ("kind", "change", "touched"),
    [
        pytest.param("ty", "changed", "file", id="ty-changed"),
        pytest.param("ty", "created", "file", id="ty-created"),
        pytest.param("ty", "deleted", "file", id="ty-deleted"),
        pytest.param("ty", "created", "folder", id="ty-created-somewhere"),
        pytest.param("ty", "deleted", "folder", id="ty-deleted-somewhere"),
        pytest.param("typescript", "changed", "file", id="typescript-changed"),
        pytest.param("typescript", "created", "file", id="typescript-created"),
        pytest.param("typescript", "deleted", "folder", id="typescript-deleted-somewhere"),
        pytest.param("typescript", "changed", "folder", id="typescript-changed-somewhere"),
        pytest.param("basedpyright", "changed", "file", id="basedpyright-changed"),
    ],
    indirect=["kind"],
)
async def test_a_file_that_is_not_open_and_was_touched_by_a_tool_is_seen(kind, change, touched, tmp_path):
    begin = {"a.py": "from b import helper\n", "a.ts": 'import { helper } from "./b";\n'}[kind.file]
    good = kind.text.split("\n\n", maxsplit=1)[0].replace("function", "export function")
    bad = good.replace("int", "str", 1).replace("number", "string", 1).replace("return x", "return 1")
    before, after = {"changed": (good, bad), "created": (None, good), "deleted": (good, None)}[change]
    name = "b" + os.path.splitext(kind.file)[1]
    path, other = put(tmp_path, kind.file, begin + "helper(1);\n"), tmp_path / "work" / name
    if before is not None:
        put(tmp_path, name, before)
    async with opened(tmp_path, kind.servers) as languages:
        server = await languages.server(path)
        await server.sync(path)
        assert await wrong(server, path) == ([1] if before is None else [])
        await watches(server)

        if after is None:
            other.unlink()
        else:
            put(tmp_path, name, after)
        server.touch([str(other) if touched == "file" else str(tmp_path / "work")])
        await server.sync(path)

        assert await wrong(server, path) == {"changed": [2], "created": [], "deleted": [1]}[change]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
@pytest.mark.parametrize("name", ["ty", "basedpyright"])
async def test_packages_of_the_projects_environment_are_found_and_its_interpreter_is_never_run(name, tmp_path):
    put(tmp_path, "pyproject.toml", "")
    trace = tmp_path / "ran"
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    put(tmp_path, f".venv/lib/{version}/site-packages/shelf/__init__.py", "def book(x: int) -> int:\n    return x\n")
    put(tmp_path, f".venv/lib/{version}/site-packages/shelf/py.typed", "")
    put(tmp_path, ".venv/pyvenv.cfg", f"home = {os.path.dirname(program_on_path('python3') or sys.executable)}\n")
    for each in ("python", "python3"):
        os.chmod(put(tmp_path, f".venv/bin/{each}", f'#!/bin/sh\ntouch {trace}\nexec {sys.executable} "$@"\n'), 0o755)
    put(tmp_path, "pyrightconfig.json", '{"venvPath": ".", "venv": ".venv", "pythonPath": "./.venv/bin/python"}')
    path = put(tmp_path, "a.py", 'from shelf import book\n\nbook("s")\n')
    async with opened(tmp_path, {name: LanguageServer()}, use="none") as languages:
        server = await languages.server(path)
        document = await server.sync(path)
        position = {"line": 2, "character": 1}
        params = {"textDocument": {"uri": document.uri}, "position": position}
        found = await server.ask("textDocument/definition", params, seconds=SECONDS)

        assert "shelf/__init__.py" in str(found)
        assert await wrong(server, path) == [3]
    assert not trace.exists()
