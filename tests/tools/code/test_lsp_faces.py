"""LSP and lsp through the whole flow: schemas, permissions, plan mode, and whatever a server may answer."""

import asyncio
import contextlib
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from tests.catalog import LOOKS
from tests.tools.code.asking import Asking, answering
from tests.tools.code.test_answers import JSON

from ferrule import Call, Engine, Question
from ferrule.core.errors import ToolFailure
from ferrule.dialects.outcome_words import code
from ferrule.settings import LspSettings, Permissions, Settings
from ferrule.tools.lsp import CodeQuery, Occurrences
from ferrule.tools.lsp.answers import OccurrenceResolver, ServerLocation, Sources, calls, items, places, symbols

FACES = {"claude": "LSP", "opencode": "lsp"}


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "a.fake").write_text("first = second\n")
    (folder / ".env").write_text("first=TOP SECRET\n")
    return folder


def opened(folder: Path, family: str, **more: Any) -> Engine:
    """A session with a server that answers where `second` is."""
    settings = Settings(lsp=answering(definition(folder)), permissions=more.pop("permissions", Permissions()))
    return Engine(folder, dialect=family, settings=settings, **more)


def definition(folder: Path) -> dict[str, Any]:
    span = {"start": {"line": 0, "character": 8}, "end": {"line": 0, "character": 14}}
    return {"textDocument/definition": {"uri": (folder / "a.fake").as_uri(), "range": span}}


def asking(path: str, **more: Any) -> dict[str, Any]:
    return {"operation": "goToDefinition", "filePath": path, "line": 1, "character": 1, **more}


@pytest.mark.parametrize("family", FACES)
async def test_each_family_asks_in_its_words_and_reads_a_list(folder, family):
    questions: list[Question] = []

    def ask(question: Question) -> bool:
        questions.append(question)
        return False

    async with opened(folder, family, ask=ask) as engine:
        (reply,) = await engine.run([Call(FACES[family], asking("a.fake"))])

    assert reply.ok, reply
    assert reply.text == "Found 1 definition of `first`:\na.fake:1:9: first = second"
    assert questions == []


@pytest.mark.parametrize("family", FACES)
async def test_secret_files_and_files_outside_are_refused(folder, tmp_path, family):
    (tmp_path / "outside.fake").write_text("x\n")
    async with opened(folder, family, ask=lambda question: False) as engine:
        secret, outside = await engine.run(
            [Call(FACES[family], asking(path)) for path in (".env", str(tmp_path / "outside.fake"))]
        )

    assert secret.error is not None
    assert secret.error.error_code == "reading-secret-file"
    assert outside.status == "rejected-by-user"


async def test_a_wrong_operation_or_a_missing_position_is_named(folder):
    async with opened(folder, "claude") as engine:
        replies = await engine.run(
            [
                Call("LSP", {**asking("a.fake"), "operation": "rename"}),
                Call("LSP", {"operation": "hover", "filePath": "a.fake"}),
                Call("LSP", {**asking("a.fake"), "line": 9}),
            ]
        )

    assert [reply.status for reply in replies] == ["error"] * 3
    assert "operation" in replies[0].text
    assert "line" in replies[1].text
    assert replies[2].text == "line: 9 is not a line of a.fake, which has 1 line."


async def test_a_gone_file_is_said_in_the_family_s_words(folder):
    async with opened(folder, "claude") as engine:
        (reply,) = await engine.run([Call("LSP", asking("gone.fake"))])

    assert reply.text == f"File does not exist: {os.path.realpath(folder)}/gone.fake"


async def test_it_works_while_the_session_plans(folder):
    async with opened(folder, "claude", permissions=Permissions(mode="plan")) as engine:
        (reply,) = await engine.run([Call("LSP", asking("a.fake"))])

    assert reply.ok, reply
    assert {"lsp", "diagnostics"} <= LOOKS


async def test_it_comes_after_the_edits_of_its_message(folder):
    async with opened(folder, "claude", ask=lambda question: True) as engine:
        await engine.run([Call("Read", {"file_path": str(folder / "a.fake")})])
        _, reply = await engine.run(
            [
                Call("Write", {"file_path": str(folder / "a.fake"), "content": "changed = before()\n"}),
                Call("LSP", asking("a.fake")),
            ]
        )

    assert reply.text == "Found 1 definition of `changed`:\na.fake:1:9: changed = before()"


async def test_rules_about_files_bind_it(folder):
    async with opened(folder, "claude", permissions=Permissions(deny=("Read(./a.fake)",))) as engine:
        (folder / "b.fake").write_text("first = 1\n")
        denied, other = await engine.run([Call("LSP", asking(path)) for path in ("a.fake", "b.fake")])

    assert denied.status == "error"
    assert "deny rule" in denied.text
    assert other.text == "No definition was found for `first` at b.fake:1:1."
    assert other.notes == ("Places in files that may not be read were left out.",)


def test_whatever_a_server_tells_is_shown_or_left_out(folder, tmp_path):
    """Any JSON value as an answer, down to the text: nothing is raised but failures, and nothing secret is told."""
    ask = Asking(folder, LspSettings(), state=tmp_path / "state")
    near = [
        ServerLocation(f"file://{folder}/{name}", line, 3)
        for name in ("a.fake", ".env", "gone.fake")
        for line in (-1, 0, 9)
    ]

    async def said(told: list[ServerLocation]) -> str:
        found = await OccurrenceResolver(ask.context({}), "utf-16", Sources()).places(told, definitions=told[:1])
        return code(Occurrences(CodeQuery("goToDefinition", "a.fake", 1, 1, "first"), found.places, found.more))

    @given(JSON)
    @settings(max_examples=60)
    def check(answer: Any) -> None:
        told = list(near)
        for read in (places, symbols, items, calling):
            with contextlib.suppress(ToolFailure):
                told += read(answer)

        text = asyncio.run(said(told))

        assert "first = second" in text
        assert "SECRET" not in text
        assert ".env" not in text

    check()
    asyncio.run(ask.close())


def calling(answer: Any) -> list[ServerLocation]:
    return calls(answer, "from")
