"""Which language server a file gets: the table, the settings, where programs are, projects, and how many run."""

import asyncio
import os
import socket
import sys
from pathlib import Path

import pytest
from tests.rows import each_row
from tests.workspace.languages.servers_world import (
    FAKE,
    Clock,
    definition,
    died,
    failure,
    fake,
    misbehaving,
    opened,
    put,
)

from ferrule.sandbox import report
from ferrule.settings import LanguageServer
from ferrule.tools.lsp.known import KNOWN, LanguageServerEntry, rows
from ferrule.tools.lsp.servers import find_program, find_root, is_new_enough, search_path

ROW = LanguageServerEntry("one", "one", (), {".one": "one"}, ("one.toml", "*.ones"))


def executable(path: Path, text: str = "#!/bin/sh\n") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def test_the_table_has_at_least_forty_servers_and_each_of_its_rows_is_whole():
    assert len(KNOWN) >= 40
    assert len({row.name for row in KNOWN}) == len(KNOWN)
    for row in KNOWN:
        assert row.program
        assert row.install
        assert row.languages
        assert all(ending == ending.lower() for ending in row.languages), row.name
        assert os.sep not in row.program


@each_row(
    ("file", "names"),
    [
        pytest.param("a.py", ["ty", "basedpyright", "pyright", "pyrefly", "pylsp"], id="python"),
        pytest.param("A.PY", ["ty", "basedpyright", "pyright", "pyrefly", "pylsp"], id="any-case"),
        pytest.param("a.tsx", ["deno", "typescript", "vtsls", "typescript-language-server"], id="typescript"),
        pytest.param("a.rs", ["rust-analyzer"], id="rust"),
        pytest.param("go.mod", ["gopls"], id="a-whole-name"),
        pytest.param("Dockerfile", ["dockerfile"], id="no-ending"),
        pytest.param("a.nothing", [], id="unknown"),
        pytest.param("README", [], id="no-ending-and-unknown"),
    ],
)
async def test_a_file_has_these_servers_the_best_first(file, names, tmp_path):
    async with opened(tmp_path) as languages:
        assert [row.name for row in languages.find_entries(file)] == names


def test_settings_change_a_known_row_and_put_it_first():
    wanted = LanguageServer(args=("--other",), options={"a": 1}, configuration={"basedpyright": {"x": 2}})
    row = rows(KNOWN, {"basedpyright": wanted})[0]

    assert (row.name, row.program, row.args) == ("basedpyright", "basedpyright-langserver", ("--other",))
    assert row.languages[".py"] == "python"
    assert row.options == {"a": 1}
    assert row.configuration == {"basedpyright": {"analysis": {"diagnosticMode": "openFilesOnly"}, "x": 2}}
    assert row.is_named


def test_settings_add_a_server_and_disable_one():
    own = LanguageServer(command="/opt/own", endings=("own", ".OWNER", "Ownfile"), language="ownish")
    found = rows(KNOWN, {"own": own, "ty": LanguageServer(disabled=True)})

    assert found[0].languages == {".own": "ownish", ".owner": "ownish", "ownfile": "ownish"}
    assert "ty" not in {row.name for row in found}


def test_a_program_of_another_name_is_not_asked_for_its_version():
    (row,) = [row for row in rows(KNOWN, {"typescript": LanguageServer(command="own")}) if row.name == "typescript"]

    assert (row.program, row.least_version) == ("own", 0)


def test_a_program_is_found_outside_the_workspace_only(tmp_path, monkeypatch):
    work, apart = tmp_path / "work", tmp_path / "apart"
    inside, outside = executable(work / "bin" / "one"), executable(apart / "one")
    os.symlink(inside, apart / "linked")
    monkeypatch.setenv("PATH", os.pathsep.join([str(work / "bin"), ".", str(apart)]))

    assert find_program(ROW, [str(work)]) == outside
    assert find_program(ROW._replace(program=inside), [str(work)]) is None
    assert find_program(ROW._replace(program=outside), [str(work)]) == outside
    assert find_program(ROW._replace(program="linked"), [str(work)]) is None
    assert find_program(ROW._replace(program="bin/one"), [str(work)]) is None
    assert find_program(ROW._replace(program="../one"), [str(work)]) is None
    assert search_path([str(work)]) == str(apart)


def test_a_program_is_found_beside_the_python_that_runs_this(tmp_path, monkeypatch):
    path = executable(tmp_path / "env" / "bin" / "one")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "env"))

    assert find_program(ROW, [str(tmp_path / "work")]) == path
    assert find_program(ROW, [str(tmp_path)]) is None


@pytest.mark.parametrize(
    ("says", "is_new"),
    [
        pytest.param("echo Version 7.0.2", True, id="new"),
        pytest.param("echo Version 5.9.3", False, id="old"),
        pytest.param("echo nothing", False, id="words"),
        pytest.param("yes 7.0", False, id="endless"),
        pytest.param("exit 1", False, id="failing"),
    ],
)
async def test_a_program_that_must_be_of_a_version_is_asked_for_it(says, is_new, tmp_path):
    path = executable(tmp_path / "tsc", f"#!/bin/sh\n{says}\n")

    assert await is_new_enough(ROW._replace(least_version=7), path) is is_new


@pytest.mark.parametrize(
    ("there", "root"),
    [
        pytest.param((), "", id="none"),
        pytest.param(("one.toml",), "", id="at-the-top"),
        pytest.param(("one.toml", "a/one.toml"), "a", id="the-nearest"),
        pytest.param(("a/b/x.ones",), "a/b", id="by-its-ending"),
        pytest.param(("../one.toml",), "", id="never-above-the-top"),
    ],
)
def test_a_project_begins_at_the_nearest_marker(there, root, tmp_path):
    for name in there:
        put(tmp_path, name, "")
    path = put(tmp_path, "a/b/c.one", "")
    top = str(tmp_path / "work")

    assert find_root(ROW, path, top) == os.path.join(top, root).rstrip(os.sep)


async def test_a_server_for_projects_of_its_own_is_for_no_others(tmp_path, monkeypatch):
    own = executable(tmp_path / "bin" / "deno", f"#!/bin/sh\nexec {sys.executable} -I -S {FAKE}\n")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    plain, other = put(tmp_path, "plain/a.ts", ""), put(tmp_path, "deno/a.ts", "")
    put(tmp_path, "deno/deno.json", "{}")
    async with opened(tmp_path, {"deno": LanguageServer(command=own)}) as languages:
        assert (await languages.server(other)).name == "deno"
        assert (await failure(languages.server(plain))).code == "no-language-server"
        assert languages.warm(plain) is None


async def test_where_no_server_is_installed_it_is_said_how_one_is(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    path, unknown = put(tmp_path, "a.go", ""), put(tmp_path, "a.nothing", "")
    async with opened(tmp_path) as languages:
        error = await failure(languages.server(path))
        assert error.code == "no-language-server"
        assert "gopls: the package gopls of your system" in error.message

        error = await failure(languages.server(unknown))
        assert error.code == "no-language-server"
        assert error.message.startswith("No language server is known for a.nothing.")


async def test_a_server_of_the_workspace_is_not_started(tmp_path, monkeypatch):
    trace = tmp_path / "ran"
    path = put(tmp_path, "a.py", "")
    executable(tmp_path / "work" / "bin" / "ty", f"#!/bin/sh\ntouch {trace}\n")
    executable(tmp_path / "work" / "node_modules" / ".bin" / "pyright-langserver", f"#!/bin/sh\ntouch {trace}\n")
    monkeypatch.setenv("PATH", f"{tmp_path}/work/bin{os.pathsep}{tmp_path}/work/node_modules/.bin")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "work"))
    async with opened(tmp_path) as languages:
        assert (await failure(languages.server(path))).code == "no-language-server"
    assert not trace.exists()


async def test_each_project_has_its_own_server(tmp_path):
    server = fake()
    marked = LanguageServer(command=server.command, args=server.args, endings=(".fake",), markers=("mark",))
    for name in ("a", "b"):
        put(tmp_path, f"{name}/mark", "")
    paths = [put(tmp_path, name, "") for name in ("a/1.fake", "a/2.fake", "b/1.fake")]
    async with opened(tmp_path, {"fake": marked}) as languages:
        roots = [(await languages.server(path)).root for path in paths]

        assert [os.path.basename(root) for root in roots] == ["a", "a", "b"]
        assert len(languages.list_running()) == 2


async def test_the_one_that_was_asked_longest_ago_ends_for_another_and_can_be_asked_again(tmp_path):
    base = fake()
    marked = LanguageServer(command=base.command, args=base.args, endings=(".fake",), markers=("mark",))
    clock = Clock()
    paths = []
    for name in "abc":
        put(tmp_path, f"{name}/mark", "")
        paths.append(put(tmp_path, f"{name}/1.fake", "text\n"))
    async with opened(tmp_path, {"fake": marked}, clock=clock, most=2) as languages:
        servers = []
        for path in paths:
            clock.now += 1
            servers.append(await languages.server(path))
            clock.now += 1
            await servers[-1].sync(path)
        await died(servers[0])

        assert [one.is_ready for one in servers] == [False, True, True]
        assert await servers[0].ask("fake/heard", {})


async def test_a_server_that_nobody_asks_ends_after_a_while(tmp_path):
    clock = Clock()
    path, other = put(tmp_path, "a.fake", ""), put(tmp_path, "b.other", "")
    base = fake()
    second = LanguageServer(command=base.command, args=base.args, endings=(".other",))
    async with opened(tmp_path, {"fake": base, "second": second}, clock=clock, idle_seconds=100.0) as languages:
        server = await languages.server(path)
        clock.now += 99
        await languages.server(other)
        assert server.is_ready

        clock.now += 2
        await languages.server(other)
        await died(server)
        assert [one.name for one in languages.list_running()] == ["second"]


async def test_a_session_that_has_ended_starts_no_server(tmp_path):
    path = put(tmp_path, "a.fake", "")
    async with opened(tmp_path) as languages:
        server = await languages.server(path)
    assert (await failure(languages.server(path))).code == "server-failed"
    assert (await failure(server.sync(path))).code == "server-failed"


async def test_a_server_that_runs_code_of_the_project_needs_a_sandbox_or_a_word_of_the_user(tmp_path, monkeypatch):
    executable(tmp_path / "bin" / "rust-analyzer", f"#!/bin/sh\nexec {sys.executable} -I -S {FAKE}\n")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    path = put(tmp_path, "a.rs", "")
    async with opened(tmp_path) as languages:
        error = await failure(languages.server(path))
        assert error.code == "no-sandbox"
        assert "[lsp.servers.rust-analyzer]" in error.message
    async with opened(tmp_path, {"rust-analyzer": LanguageServer()}) as languages:
        assert (await languages.server(path)).is_ready


@pytest.mark.parametrize("use", ["bubblewrap", "namespaces", "landlock", "none"])
async def test_a_confined_server_writes_nothing_and_sees_no_secret_and_no_network(use, tmp_path, monkeypatch):
    why = {row.name: row.why for row in report() if not row.works}.get(use)
    path, secret = put(tmp_path, "a.fake", "text\n"), put(tmp_path, ".env", "KEY=1")
    monkeypatch.setenv("GITHUB_TOKEN", "not for a server")
    async with opened(tmp_path, use=use) as languages:
        if why is not None:
            assert (await failure(languages.server(path))).code == "no-sandbox"
            return
        with socket.create_server(("127.0.0.1", 0)) as listening:
            server = await languages.server(path)
            params = {
                "write": str(tmp_path / "work" / "written"),
                "secret": secret,
                "port": listening.getsockname()[1],
                "environment": ["GITHUB_TOKEN", "PATH"],
            }
            found = await server.ask("fake/probe", params)

    free = use == "none"
    assert bool(found["write"]) is not free
    assert bool(found["network"]) is not free
    assert bool(found["secret"]) is not free
    assert found["environment"] == ["PATH"]
    assert sorted(os.listdir(tmp_path / "work")) == sorted({".env", "a.fake", *(["written"] if free else [])})


async def test_who_is_cancelled_while_a_server_starts_leaves_nothing_and_the_next_one_starts_it(tmp_path):
    path = put(tmp_path, "a.fake", "")
    async with opened(tmp_path) as languages:
        for _ in range(6):
            starting = asyncio.create_task(languages.server(path))
            while not (languages._servers and next(iter(languages._servers.values())).pid):
                await asyncio.sleep(0)
            starting.cancel()
            await asyncio.wait([starting])
            assert starting.cancelled()

        assert (await languages.server(path)).is_ready


SHIM = """#!/bin/sh
echo "error: Unknown binary 'one'" >&2
for number in 1 2 3 4 5 6 7 8 9 10 11 12; do echo "  $number: frame of a backtrace" >&2; done
exit 1
"""


async def test_one_that_does_not_start_is_answered_like_one_that_is_missing(tmp_path):
    """As a stand-in of rustup's whose component was never installed: the file is there, and it is no server."""
    broken = LanguageServer(command=executable(tmp_path / "bin" / "one", SHIM), endings=(".one",))
    path = put(tmp_path, "a.one", "text\n")
    async with opened(tmp_path, {"one": broken}) as languages:
        error = await failure(languages.server(path))

    assert error.code == "no-language-server"
    assert (
        "The language server one ended with exit code 1. It said first:\nerror: Unknown binary 'one'" in error.message
    )
    assert "and last:\n  5: frame of a backtrace" in error.message
    assert "12: frame of a backtrace\nHow to get one that can (one: see its own page)." in error.message


async def test_where_the_best_one_does_not_start_the_next_one_does_and_the_first_is_not_tried_each_time(tmp_path):
    count = tmp_path / "count"
    text = f"#!/bin/sh\necho x >> {count}\nexit 1\n"
    broken = LanguageServer(command=executable(tmp_path / "bin" / "one", text), endings=(".fake",))
    path, other = put(tmp_path, "a.fake", ""), put(tmp_path, "b.fake", "")
    clock = Clock()
    async with opened(tmp_path, {"one": broken, "fake": fake()}, clock=clock) as languages:
        assert (await languages.server(path)).name == "fake"
        assert (await languages.server(other)).name == "fake"
        assert (warm := languages.warm(other)) is not None
        assert warm.name == "fake"
        clock.now += 60
        assert (await languages.server(path)).name == "fake"

    assert count.read_text() == "x\n"


async def test_where_the_best_one_may_not_be_started_the_next_one_is(tmp_path, monkeypatch):
    executable(tmp_path / "bin" / "pyrefly", f"#!/bin/sh\nexec {sys.executable} -I -S {FAKE}\n")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    path = put(tmp_path, "a.py", "")
    named = {name: LanguageServer(disabled=True) for name in ("ty", "basedpyright", "pyright")}
    last = LanguageServer(command=sys.executable, args=("-I", "-S", FAKE))
    async with opened(tmp_path, {**named, "pylsp": last}) as languages:
        assert (await languages.server(path)).name == "pylsp"
    async with opened(tmp_path, {**named, "pylsp": LanguageServer(disabled=True)}) as languages:
        assert (await failure(languages.server(path))).code == "no-sandbox"


async def test_a_session_that_ends_while_a_server_starts_waits_for_no_first_words(tmp_path):
    path = put(tmp_path, "a.fake", "")
    silent = fake(env={"FAKE": '{"stall_on": "initialize"}'})
    async with opened(tmp_path, {"fake": silent}, start_seconds=3600) as languages:
        starting = asyncio.create_task(languages.server(path))
        while not (languages._servers and next(iter(languages._servers.values())).pid):
            await asyncio.sleep(0)
        await languages.close()
        error = await failure(starting)

    assert error.code == "server-failed"


@pytest.mark.parametrize(
    ("mine", "why"),
    [
        pytest.param(
            LanguageServer(command="nope-lsp", endings=(".fake",)),
            "for nope-lsp was not found (a name on PATH",
            id="gone",
        ),
        pytest.param(LanguageServer(endings=(".fake",)), "for mine was not found (a name on PATH", id="no-command"),
        pytest.param(misbehaving(refuse=True), "The language server mine does not start: not today", id="refusing"),
        pytest.param(misbehaving(crash_on="initialize"), "The language server mine ended with exit code 3", id="dying"),
    ],
)
async def test_a_server_that_the_user_named_and_that_is_not_used_is_noted_once(mine, why, tmp_path):
    paths = [put(tmp_path, name, "") for name in ("a.fake", "b.fake")]
    notes: list[str] = []
    async with opened(tmp_path, {"mine": mine, "fake": fake()}) as languages:
        await languages.server(paths[0])
        assert notes == []
        for path in (*paths, *paths):
            languages._recent.clear()
            assert (await languages.server(path, note=notes.append)).name == "fake"

    (note,) = notes
    assert why in note
    assert note.endswith("fake answers in its place.")


async def test_one_that_comes_after_the_one_that_answers_or_that_nobody_named_is_not_noted(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    path = put(tmp_path, "a.py", "")
    notes: list[str] = []
    good = LanguageServer(command=sys.executable, args=("-I", "-S", FAKE))
    async with opened(tmp_path, {"pylsp": good, "pyrefly": LanguageServer()}) as languages:
        assert (await languages.server(path, note=notes.append)).name == "pylsp"
    assert notes == []


async def test_a_server_that_the_user_named_and_that_is_not_there_is_named_where_no_other_is(tmp_path):
    path = put(tmp_path, "a.mine", "")
    async with opened(tmp_path, {"mine": LanguageServer(command="nope-lsp", endings=(".mine",))}) as languages:
        error = await failure(languages.server(path))

    assert error.code == "no-language-server"
    assert "(mine: its program nope-lsp was not found)" in error.message


async def test_where_one_ends_again_and_again_the_next_one_is_used(tmp_path):
    path = put(tmp_path, "a.fake", "def helper(\n\nhelper()\n")
    servers = {"bad": misbehaving(crash_on="textDocument/definition"), "good": fake()}
    async with opened(tmp_path, servers) as languages:

        def asked():
            return languages.use(path, lambda server: definition(server, path, 3, 2), tell=print, note=print)

        assert (await failure(asked())).code == "server-failed"
        # It dies twice more, and in the middle of the question it is given up.
        server = await languages.server(path)
        server._starts.append(languages._clock())
        assert await asked() == [1]
        assert (await languages.server(path)).name == "good"


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
@pytest.mark.parametrize("link", [os.symlink, os.link], ids=["linked", "the-same-file"])
def test_rustup_s_stand_in_counts_only_where_a_toolchain_has_the_program(link, tmp_path, monkeypatch):
    (row,) = [row for row in KNOWN if row.name == "rust-analyzer"]
    rustup = executable(tmp_path / "cargo" / "rustup")
    stand_in, real = str(tmp_path / "cargo" / "rust-analyzer"), str(tmp_path / "own" / "rust-analyzer")
    link(rustup, stand_in)
    monkeypatch.setenv("PATH", os.pathsep.join([os.path.dirname(stand_in), os.path.dirname(real)]))
    monkeypatch.setenv("RUSTUP_HOME", str(tmp_path / "rustup"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))

    assert find_program(row, [str(tmp_path / "work")]) is None
    executable(tmp_path / "rustup" / "toolchains" / "stable" / "bin" / "cargo")
    assert find_program(row, [str(tmp_path / "work")]) is None
    executable(tmp_path / "own" / "rust-analyzer")
    assert find_program(row, [str(tmp_path / "work")]) == real
    executable(tmp_path / "rustup" / "toolchains" / "nightly" / "bin" / "rust-analyzer")
    assert find_program(row, [str(tmp_path / "work")]) == stand_in
