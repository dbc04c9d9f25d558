"""The problems of a file and of a folder, by real servers and by one that a test has made."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.workspace.languages.noticed import Edited, path_with_servers

from ferrule import Call, Engine
from ferrule.context import CallContext
from ferrule.core.errors import ToolFailure
from ferrule.dialects.amp import render_problems
from ferrule.files.guard import Guard
from ferrule.settings import LanguageServer, LspSettings
from ferrule.tools.lsp import Problem, Problems, diagnostics
from ferrule.tools.lsp.diagnostics import Diagnostics, DiagnosticsArgs
from ferrule.tools.lsp.servers import LanguageServers

SERVER = str(Path(__file__).parents[2] / "workspace" / "languages" / "complaining.py")
WRONG = "def twice(number: int) -> int:\n    return number * numbre\n"
WRONG_TS = "export const one: number = 'one';\n"


class Asked(Edited):
    """Runs the tool; what it noted and said on the way last is kept."""

    def __init__(self, folder: Path, settings: LspSettings) -> None:
        folder.mkdir(exist_ok=True)
        super().__init__(folder, settings)
        self.services.put(LanguageServers, self.servers)
        self.notes: list[str] = []
        self.said: list[str] = []

    async def __call__(self, path: str = ".") -> Problems:
        ctx = CallContext(
            Call("diagnostics", {"path": path}, "call"),
            jail=self.jail,
            services=self.services,
            emit=lambda event: self.said.append(getattr(event, "message", "")),
            clock=lambda: 0.0,
            new_log=lambda: ("", ""),
        )
        self.notes = ctx.notes
        args = DiagnosticsArgs(path=path)
        tool = Diagnostics()
        accesses = [(access.mode, access.key) for access in tool.access(args, ctx)]
        assert accesses == [("read", self.path(path)), ("read", self.path("."))]
        return await tool.run(args, ctx)


def found(outcome: Problems) -> list[tuple[str, int, str, str]]:
    """File, line, severity and code of each, but for hints."""
    every = (one for one in outcome.problems if one.severity != "hint")
    return [(os.path.basename(one.path), one.line, one.severity, one.code) for one in every]


@pytest.fixture
async def real(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Asked]:
    """With the real servers on PATH, the one by a test's wish before others for its language."""
    monkeypatch.setenv("PATH", path_with_servers())
    servers = {request.param: LanguageServer()} if hasattr(request, "param") else {}
    here = Asked(tmp_path / "work", LspSettings(servers=servers, seconds=60.0))
    yield here
    await here.close()


@pytest.fixture
async def fake(tmp_path: Path) -> AsyncIterator[Asked]:
    """With a server for `.txt`, and one for `.doc` that is not installed."""
    here = Asked(tmp_path / "work", complaining(tmp_path))
    yield here
    await here.close()


def complaining(folder: Path, **more: Any) -> LspSettings:
    args = ("-S", "-u", SERVER, "pull", str(folder / "txt.log"))
    servers = {
        "txt": LanguageServer(command=sys.executable, args=args, endings=(".txt",)),
        "doc": LanguageServer(command="no-such-server", endings=(".doc",)),
    }
    return LspSettings(servers=servers, confined=False, **{"seconds": 30.0, **more})


@pytest.mark.parametrize(
    ("real", "name", "text", "expected"),
    [
        pytest.param("ty", "a.py", WRONG, [("a.py", 2, "error", "unresolved-reference")], id="ty"),
        pytest.param(
            "basedpyright",
            "a.py",
            "numbre + 1\n",
            [("a.py", 1, "error", "reportUndefinedVariable"), ("a.py", 1, "warning", "reportUnusedExpression")],
            id="basedpyright",
        ),
        pytest.param("typescript", "a.ts", WRONG_TS, [("a.ts", 1, "error", "2322")], id="typescript"),
        pytest.param("ty", "a.py", WRONG.replace("numbre", "number"), [], id="nothing"),
        pytest.param(
            "ty", "a.py", WRONG.replace("\n", "\r\n"), [("a.py", 2, "error", "unresolved-reference")], id="crlf"
        ),
    ],
    indirect=["real"],
)
async def test_a_file_is_looked_at_by_its_language_s_server(real, name, text, expected):
    (real.folder / name).write_bytes(text.encode())

    outcome = await real(name)

    assert found(outcome) == expected
    assert (outcome.path, outcome.files, outcome.left_out) == (real.path(name), 1, 0)


async def test_a_file_is_seen_as_it_is_now(real):
    real.write(a_py="x = 1\n")
    assert found(await real("a.py")) == []

    real.write(a_py=WRONG)

    assert found(await real("a.py")) == [("a.py", 2, "error", "unresolved-reference")]


async def test_a_folder_is_looked_at_by_several_servers_at_once(real):
    real.write(
        a_py=WRONG,
        sub__b_py="import a\n\nprint(a.nothing)\n",
        c_ts=WRONG_TS,
        d_odd="Nothing\n",
        ignored__e_py=WRONG,
    )
    (real.folder / ".gitignore").write_text("ignored/\n")

    outcome = await real(".")

    assert {name for name, *_ in found(outcome)} == {"a.py", "b.py", "c.ts"}
    assert (outcome.files, outcome.left_out) == (3, 0)
    assert {"Starting ty", "Starting typescript"} <= set(real.said)


async def test_only_what_lies_below_a_folder_is_looked_at(fake):
    fake.write(a_txt="!x\n", sub__b_txt="!y\n", sub__deep__c_txt="!z\n?w\n")

    outcome = await fake("sub")

    assert found(outcome) == [("b.txt", 1, "error", "!"), ("c.txt", 1, "error", "!"), ("c.txt", 2, "warning", "?")]
    assert outcome.folder == fake.path(".")


async def test_of_very_many_files_those_changed_last_are_looked_at(fake, monkeypatch):
    monkeypatch.setattr(diagnostics, "MOST_FILES", 12)
    for number in range(15):
        path = fake.folder / f"{number:02}.txt"
        path.write_text("!x\n")
        os.utime(path, (number, number))

    outcome = await fake(".")

    assert [name for name, *_ in found(outcome)] == [f"{number:02}.txt" for number in range(3, 15)]
    assert (outcome.files, outcome.left_out) == (12, 3)
    (note,) = fake.notes
    assert note.startswith("Only the 12 files that were changed last were looked at; 3 more were not.")
    assert "10 of 12 files" in fake.said


async def test_what_may_not_be_read_is_left_out(fake):
    fake.write(a_txt="!x\n", credentials_txt="!y\n", denied_txt="!z\n")
    denied = fake.path("denied.txt")
    fake.services[Guard].denied = lambda path, mode: path == denied

    assert [name for name, *_ in found(await fake("."))] == ["a.txt"]


async def test_a_language_without_a_server_is_told_beside_the_others(fake):
    fake.write(a_txt="!x\n", b_doc="!y\n", c_doc="!z\n")

    outcome = await fake(".")

    assert found(outcome) == [("a.txt", 1, "error", "!")]
    assert outcome.left_out == 2
    (note,) = fake.notes
    assert note == "No language server is installed for 2 files: .doc (doc)."


@pytest.mark.parametrize(
    ("path", "code", "words"),
    [
        pytest.param("b.doc", "no-language-server", "No language server for b.doc is installed", id="not-installed"),
        pytest.param("notes.odd", "no-language-server", "known for notes.odd", id="no-such-language"),
        pytest.param("docs", "no-language-server", "is installed", id="a-folder-of-such"),
        pytest.param("odd", "no-language-server", "No file below", id="a-folder-without-a-language"),
        pytest.param("missing.txt", "not-found", "is not there", id="missing"),
        pytest.param("big.txt", "binary", "binary", id="binary"),
    ],
)
async def test_where_nothing_can_be_looked_at_the_reason_is_given(fake, path, code, words):
    fake.write(b_doc="b\n", notes_odd="n\n", docs__c_doc="c\n", odd__d_odd="d\n", big_txt=b"\0\1\2")

    with pytest.raises(ToolFailure, match=words) as failed:
        await fake(path)
    assert failed.value.code == code


async def test_a_hint_says_how_a_server_is_installed(real, monkeypatch):
    monkeypatch.setenv("PATH", os.defpath)
    real.write(a_go="package main\n")

    with pytest.raises(ToolFailure, match="gopls: ") as failed:
        await real("a.go")
    assert failed.value.code == "no-language-server"


async def test_a_silent_server_is_not_waited_for_again_and_again(tmp_path):
    here = Asked(tmp_path / "work", complaining(tmp_path, seconds=0.2))
    for number in range(30):
        (here.folder / f"{number}.txt").write_text("STALL\n")

    with pytest.raises(ToolFailure, match="said nothing about") as failed:
        await here(".")
    assert failed.value.code == "server-slow"
    with pytest.raises(ToolFailure, match=r"1\.txt within 0\.2 seconds"):
        await here("1.txt")
    assert (tmp_path / "txt.log").read_text().count('"textDocument/didOpen"') < 30
    await here.close()


async def test_files_that_a_server_is_silent_about_are_named(tmp_path):
    here = Asked(tmp_path / "work", complaining(tmp_path, seconds=0.5))
    here.write(a_txt="!x\n", b_txt="STALL\n")

    outcome = await here(".")

    assert (found(outcome), outcome.left_out) == ([("a.txt", 1, "error", "!")], 1)
    assert here.notes == ["Nothing was said in time about 1 file: b.txt."]
    await here.close()


async def test_very_many_problems_are_counted_and_cut(fake, monkeypatch):
    monkeypatch.setattr(diagnostics, "MOST_PROBLEMS", 3)
    fake.write(a_txt="!a !b !c !d !e\n")

    outcome = await fake("a.txt")

    assert (len(outcome.problems), outcome.total) == (3, 5)
    assert render_problems(outcome).splitlines()[-1] == "... and 2 more"


ONE = Problem("/project/src/a.py", 3, "wrong", 5, "error", "ty", "E1")


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        pytest.param(
            Problems("/project/a.py", (ONE,), total=1), "/project/src/a.py:3:5: error: wrong [ty E1]", id="absolute"
        ),
        pytest.param(
            Problems("/project", (ONE,), 2, 1, folder="/project"),
            "src/a.py:3:5: error: wrong [ty E1]",
            id="from-the-workspace",
        ),
        pytest.param(
            Problems("/project", (ONE._replace(line=0, character=0, code="", source=""),), 2, 1, folder="/project"),
            "src/a.py: error: wrong",
            id="the-whole-file",
        ),
        pytest.param(
            Problems(
                "/w", (ONE, ONE._replace(severity="warning"), ONE._replace(severity="hint")), 1, 3, folder="/project"
            ),
            "src/a.py:3:5: error: wrong [ty E1]\nsrc/a.py:3:5: warning: wrong [ty E1]\n(1 hint left out)",
            id="hints-are-left-out",
        ),
        pytest.param(
            Problems("/w", (ONE._replace(severity="hint"),), 1, 1, folder="/project"),
            "src/a.py:3:5: hint: wrong [ty E1]",
            id="unless-there-is-nothing-else",
        ),
        pytest.param(Problems("/project/a.py", ()), "No problems were found in /project/a.py.", id="none"),
        pytest.param(
            Problems("/project", (), 7), "No problems were found in /project (7 files).", id="none-in-a-folder"
        ),
    ],
)
def test_problems_read_like_this(outcome, expected):
    assert render_problems(outcome) == expected


async def test_amp_asks_for_diagnostics_by_their_name(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", path_with_servers())
    (tmp_path / "a.py").write_text(WRONG)
    (tmp_path / ".env").write_text("K=1\n")
    async with Engine(tmp_path, dialect="amp") as engine:
        told = await engine.call("get_diagnostics", path="a.py")
        missing = await engine.call("get_diagnostics", path="b.py")
        secret = await engine.call("get_diagnostics", path=".env")

    assert told.text == "a.py:2:21: error: Name `numbre` used when not defined [ty unresolved-reference]"
    assert missing.error is not None
    assert missing.error.message.startswith("ENOENT: no such file or directory")
    assert secret.error is not None
    assert secret.error.error_code == "reading-secret-file"


def test_a_session_that_asks_no_server_loads_none_of_this():
    code = "import sys, ferrule.tools, ferrule.dialects.amp as amp; amp.dialect(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert not [name for name in loaded.split() if "languages" in name or "problems" in name]


async def test_edits_of_other_files_in_the_same_message_are_seen_in_the_order_of_the_message(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", path_with_servers())
    (tmp_path / "a.py").write_text("from b import one\n\nprint(one + 1)\n")
    other = tmp_path / "b.py"
    other.write_text("one = 1\n")
    calls = [
        Call("get_diagnostics", {"path": str(tmp_path / "a.py")}, "before"),
        Call("edit_file", {"path": str(other), "old_str": "one = 1", "new_str": "one = ''"}, "edit"),
        Call("get_diagnostics", {"path": str(tmp_path / "a.py")}, "after"),
    ]
    async with Engine(tmp_path, dialect="amp", ask=lambda _: True) as engine:
        await engine.run(calls[:1])
        assert [[call.id for call in batch] for batch in engine.plan(calls)] == [["before"], ["edit"], ["after"]]
        before, edit, after = await engine.run(calls)

    assert edit.status == "done"
    assert "No problems" in before.text
    assert "a.py:3:7: error" in after.text


async def test_a_server_of_the_user_s_that_is_not_found_is_noted_once_where_another_answers(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", path_with_servers())
    mine = LanguageServer(command="nope-lsp", endings=(".py",))
    here = Asked(tmp_path / "work", LspSettings(servers={"mine": mine}, seconds=60.0))
    here.write(a_py=WRONG)
    try:
        assert found(await here("a.py")) == [("a.py", 2, "error", "unresolved-reference")]
        (note,) = here.notes
        await here("a.py")
        assert here.notes == []
    finally:
        await here.close()

    assert note.startswith("The language server mine of the settings is not used, for nope-lsp was not found (")
    assert note.endswith("). ty answers in its place.")
