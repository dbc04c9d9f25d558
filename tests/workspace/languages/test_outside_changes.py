"""What others than tools change in a project, as an editor or git in another terminal: servers learn it in time."""

import asyncio
import os
import threading

import pytest
from tests.sources.mcp.node import found as node
from tests.workspace.languages.servers_world import SECONDS, fake, heard, opened, put, watches, wrong

from ferrule.settings import LanguageServer
from ferrule.tools.lsp import opened as stirred

WATCHED = "workspace/didChangeWatchedFiles"
GOOD = {".py": "def helper(x: int) -> int:\n    return x\n", ".ts": "export function helper(x: number) { return x }\n"}
BAD = {".py": "def helper(x: str) -> str:\n    return x\n", ".ts": "export function helper(x: string) { return x }\n"}
CALLER = {".py": "from b import helper\nhelper(1)\n", ".ts": 'import { helper } from "./b";\nhelper(1);\n'}


def servers(name: str, request: pytest.FixtureRequest, tmp_path) -> dict[str, LanguageServer]:
    if name != "typescript":
        put(tmp_path, "pyproject.toml", "")
        return {name: LanguageServer()}
    there = node(request)
    put(tmp_path, "tsconfig.json", '{"compilerOptions": {"strict": true, "types": []}}')
    compiler = os.path.join(there.modules, "typescript", "bin", "tsc")
    return {name: LanguageServer(command=there.program, args=(compiler, "--lsp", "--stdio"))}


@pytest.fixture
def each_question_looks(monkeypatch):
    """Whoever asks looks through the project, however short ago somebody did, and waits until that was done."""
    monkeypatch.setattr(stirred, "_EVERY_SECONDS", 0.0)
    monkeypatch.setattr(stirred, "_PATIENCE_SECONDS", SECONDS)


def watching(**options) -> dict[str, LanguageServer]:
    return {"fake": fake(register=[WATCHED], **options)}


async def told(server) -> list[tuple[str, int]]:
    """Each file that the fake server was told about, and what became of it."""
    events = [change for one in await heard(server, WATCHED) for change in one["changes"]]
    return [(os.path.basename(change["uri"]), change["type"]) for change in events]


@pytest.mark.usefixtures("each_question_looks")
@pytest.mark.parametrize(
    ("name", "before", "after", "lines"),
    [
        pytest.param("ty", GOOD, BAD, [2], id="ty-changed"),
        pytest.param("ty", None, GOOD, [], id="ty-created"),
        pytest.param("ty", GOOD, None, [1], id="ty-deleted"),
        pytest.param("typescript", GOOD, BAD, [2], id="typescript-changed"),
        pytest.param("typescript", None, GOOD, [], id="typescript-created"),
        pytest.param("basedpyright", GOOD, BAD, [2], id="basedpyright-changed"),
    ],
)
async def test_an_imported_file_that_somebody_else_changed_is_seen(name, before, after, lines, request, tmp_path):
    ending = ".ts" if name == "typescript" else ".py"
    path, other = put(tmp_path, f"a{ending}", CALLER[ending]), tmp_path / "work" / f"b{ending}"
    if before is not None:
        other.write_text(before[ending])
    async with opened(tmp_path, servers(name, request, tmp_path)) as languages:
        server = await languages.server(path)
        await server.sync(path)
        assert await wrong(server, path) == ([1] if before is None else [])
        await watches(server)

        if after is None:
            other.unlink()
        else:
            other.write_text(after[ending])
        await server.sync(path)

        assert await wrong(server, path) == lines


@pytest.mark.usefixtures("each_question_looks")
async def test_a_new_file_of_somebody_else_is_among_the_references(request, tmp_path):
    path = put(tmp_path, "b.py", GOOD[".py"])
    async with opened(tmp_path, servers("ty", request, tmp_path)) as languages:
        server = await watches(await languages.server(path))

        async def files() -> set[str]:
            document = await server.sync(path)
            at = {"textDocument": {"uri": document.uri}, "position": {"line": 0, "character": 5}}
            found = await server.ask("textDocument/references", {**at, "context": {"includeDeclaration": True}})
            return {os.path.basename(one["uri"]) for one in found or ()}

        assert await files() == {"b.py"}
        put(tmp_path, "deep/c.py", "from b import helper\n\nhelper(1)\n")
        assert await files() == {"b.py", "c.py"}


@pytest.mark.usefixtures("each_question_looks")
async def test_each_change_is_told_once_and_only_of_files_that_the_server_is_for(tmp_path):
    path, gone = put(tmp_path, "a.fake", "text\n"), put(tmp_path, "gone.fake", "")
    async with opened(tmp_path, watching()) as languages:
        server = await watches(await languages.server(path))
        await server.sync(path)
        put(tmp_path, "new.fake", "")
        put(tmp_path, "other.txt", "")
        os.unlink(gone)
        for _ in range(3):
            await server.sync(path)

        assert await told(server) == [("new.fake", 1), ("gone.fake", 3)]


async def test_who_asks_again_at_once_waits_for_no_look(tmp_path, monkeypatch):
    monkeypatch.setattr(stirred, "_EVERY_SECONDS", 3600.0)
    path = put(tmp_path, "a.fake", "text\n")
    async with opened(tmp_path, watching()) as languages:
        server = await watches(await languages.server(path))
        put(tmp_path, "new.fake", "")
        for _ in range(3):
            await server.sync(path)

        assert await told(server) == []


@pytest.mark.usefixtures("each_question_looks")
async def test_a_text_that_somebody_gives_and_a_comparison_of_edits_wait_for_no_look(tmp_path):
    path = put(tmp_path, "a.fake", "text\n")
    async with opened(tmp_path, watching()) as languages:
        server = await watches(await languages.server(path))
        await server.sync(path)
        put(tmp_path, "new.fake", "")
        await server.sync(path, "given\n")
        server.release([path])
        await server.sync(path, looks=False)
        assert await told(server) == [("a.fake", 2)]

        await server.sync(path)
        assert await told(server) == [("a.fake", 2), ("new.fake", 1)]


async def test_what_a_slow_look_finds_is_told_with_the_next_question(tmp_path, monkeypatch):
    monkeypatch.setattr(stirred, "_EVERY_SECONDS", 0.0)
    monkeypatch.setattr(stirred, "_PATIENCE_SECONDS", 0.01)
    path = put(tmp_path, "a.fake", "text\n")
    open_again, looking = threading.Event(), threading.Semaphore(0)
    plain = stirred.Inventory

    def slow(*args):
        looking.release()
        assert open_again.wait(SECONDS)
        return plain(*args)

    async with opened(tmp_path, watching()) as languages:
        server = await watches(await languages.server(path))
        await server.sync(path)
        lookout = server._opened._lookout
        await asyncio.wait(lookout._looks)
        await server.sync(path)  # all that was begun is told by now
        put(tmp_path, "new.fake", "")
        monkeypatch.setattr(stirred, "Inventory", slow)
        try:
            for _ in range(3):
                await server.sync(path)
            assert await told(server) == []
            assert len(lookout._looks) == 2  # one at a time
        finally:
            open_again.set()
        await asyncio.wait(lookout._looks)
        await server.sync(path)

        assert await told(server) == [("new.fake", 1)]


@pytest.mark.usefixtures("each_question_looks")
async def test_a_server_that_tells_by_itself_is_waited_for_until_it_has(tmp_path):
    path = put(tmp_path, "a.fake", "text\n")
    async with opened(tmp_path, watching(push=True, republish=True)) as languages:
        server = await watches(await languages.server(path))
        await server.sync(path)
        assert await wrong(server, path) == []
        put(tmp_path, "new.fake", "")
        await server.sync(path)

        assert await wrong(server, path) == [1]


@pytest.mark.usefixtures("each_question_looks")
async def test_a_server_that_sleeps_is_told_nothing_and_wakes_with_the_files_as_they_are(tmp_path):
    path = put(tmp_path, "a.fake", "text\n")
    async with opened(tmp_path, watching()) as languages:
        server = await watches(await languages.server(path))
        await server.sync(path)
        await server.sleep()
        assert server._opened._lookout._looks == []
        put(tmp_path, "new.fake", "")
        await languages.server(path)
        await watches(server)
        await server.sync(path)

        assert await told(server) == []
