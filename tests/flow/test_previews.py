"""Before anybody is asked: what would be written is known, and what cannot be done is not asked about."""

import json
from pathlib import Path
from typing import Any

import pytest

from ferrule import Call, Engine, Settings
from ferrule.permissions import NO, YES, Answer, Question
from tests.scripted import Scripted

CELL: dict[str, Any] = {
    "cell_type": "code",
    "id": "a",
    "metadata": {},
    "outputs": [],
    "execution_count": None,
    "source": ["1"],
}
BOOK = {"cells": [CELL], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
PATCH = "*** Begin Patch\n*** Update File: a.txt\n@@\n-{}\n+2\n*** End Patch"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work" / "sub").mkdir(parents=True)
    (tmp_path / "work" / "a.txt").write_text("one\ntwo\ntwo\n")
    (tmp_path / "work" / "n.ipynb").write_text(json.dumps(BOOK))
    return tmp_path / "work"


async def run(work: Path, asker: Scripted, dialect: str, *calls: Call, **more: Any) -> list[Any]:
    async with Engine(work, dialect=dialect, ask=asker, state=work.parent / "state", **more) as engine:
        return [reply for call in calls for reply in await engine.run([call])]


@pytest.mark.parametrize(
    ("dialect", "name", "values"),
    [
        pytest.param("amp", "edit_file", {"path": "a.txt", "old_str": "three", "new_str": "3"}, id="no-match"),
        pytest.param("amp", "edit_file", {"path": "a.txt", "old_str": "two", "new_str": "2"}, id="two-places"),
        pytest.param("amp", "edit_file", {"path": "b.txt", "old_str": "two", "new_str": "2"}, id="no-file"),
        pytest.param("amp", "edit_file", {"path": "sub", "old_str": "two", "new_str": "2"}, id="folder"),
        pytest.param("amp", "create_file", {"path": "a.txt/b", "content": "x"}, id="parent-is-a-file"),
        pytest.param("amp", "create_file", {"path": "sub", "content": "x"}, id="write-to-a-folder"),
        pytest.param("amp", "undo_edit", {"path": "a.txt"}, id="nothing-to-undo"),
        pytest.param("amp", "delete_file", {"path": "b.txt"}, id="nothing-to-delete"),
        pytest.param(
            "claude", "Edit", {"file_path": "a.txt", "old_string": "one", "new_string": "1"}, id="edit-not-read"
        ),
        pytest.param("claude", "Write", {"file_path": "a.txt", "content": "x"}, id="write-not-read"),
        pytest.param(
            "claude", "NotebookEdit", {"notebook_path": "n.ipynb", "cell_id": "zz", "new_source": "2"}, id="no-cell"
        ),
        pytest.param("codex", "apply_patch", {"input": PATCH.format("three")}, id="patch-does-not-apply"),
        pytest.param("codex", "apply_patch", {"input": PATCH.format("two")}, id="patch-in-two-places"),
    ],
)
async def test_what_is_known_to_fail_is_not_asked_about_and_fails_with_the_same_words(work, dialect, name, values):
    asker = Scripted()
    asked = (await run(work, asker, dialect, Call(name, values)))[0]
    unasked = (await run(work, asker, dialect, Call(name, values), permission_mode="bypassPermissions"))[0]

    assert asker.questions == []
    assert asked.status == "error"
    assert asked.error == unasked.error


@pytest.mark.parametrize(
    ("dialect", "name", "values", "rows"),
    [
        pytest.param(
            "amp",
            "edit_file",
            {"path": "a.txt", "old_str": "one", "new_str": "1"},
            ("1 - one", "1 + 1", "2   two", "3   two"),
            id="edit",
        ),
        pytest.param(
            "amp",
            "edit_file",
            {"path": "a.txt", "old_str": "two", "new_str": "2", "replace_all": True},
            ("1   one", "2 - two", "3 - two", "2 + 2", "3 + 2"),
            id="everywhere",
        ),
        pytest.param("amp", "create_file", {"path": "b", "content": "x"}, ("(new file, 2 bytes)", "1 + x"), id="new"),
        pytest.param(
            "amp",
            "create_file",
            {"path": "a.txt", "content": "one\ntwo\n"},
            ("1   one", "2   two", "3 - two"),
            id="overwrite",
        ),
        pytest.param(
            "amp",
            "delete_file",
            {"path": "a.txt"},
            ("(deletes the file, 12 bytes)", "1 - one", "2 - two", "3 - two"),
            id="delete",
        ),
        pytest.param(
            "codex",
            "apply_patch",
            {"input": PATCH.format("one") + ""},
            ("1 - one", "1 + 2", "2   two", "3   two"),
            id="patch",
        ),
    ],
)
async def test_the_question_shows_the_change_as_it_would_be_made(work, dialect, name, values, rows):
    asker = Scripted(NO)
    (reply,) = await run(work, asker, dialect, Call(name, values))

    assert reply.status == "rejected-by-user"
    assert asker.questions[0].changes == rows
    assert asker.questions[0].given == values


async def test_a_call_sees_what_the_calls_before_it_in_the_message_have_done(work):
    asker = Scripted(YES, YES)
    calls = [
        Call("edit_file", {"path": "a.txt", "old_str": "one", "new_str": "1"}),
        Call("edit_file", {"path": "a.txt", "old_str": "1\n", "new_str": "un\n"}),
    ]
    async with Engine(work, dialect="amp", ask=asker, state=work.parent / "state") as engine:
        replies = await engine.run(calls)

    assert [reply.status for reply in replies] == ["done", "done"]
    assert asker.questions[1].changes == ("1 - 1", "1 + un", "2   two", "3   two")


@pytest.mark.parametrize("allow", [True, False])
async def test_what_changed_since_the_question_is_not_written_over(work, allow):
    def ask(_: Question) -> Answer:
        (work / "a.txt").write_text("one\nelse\n")
        return Answer(allow=allow)

    async with Engine(work, dialect="amp", ask=ask, state=work.parent / "state") as engine:
        reply = await engine.call("edit_file", path="a.txt", old_str="one", new_str="1")

    assert (work / "a.txt").read_text() == "one\nelse\n"
    assert reply.status == ("error" if allow else "rejected-by-user")
    assert not allow or (reply.error is not None and reply.error.error_code == "changed-meanwhile")


@pytest.mark.parametrize("old", ["one", "three"])
@pytest.mark.parametrize(
    "rule", [{"deny": ("Read(a.txt)",)}, {"deny": ("Edit(a.txt)",)}, {"ask": ("Read(a.txt)",)}], ids=str
)
async def test_an_edit_of_what_may_not_be_read_does_not_tell_whether_its_text_is_there(work, old, rule):
    said = []
    for text in (old, "one"):
        settings = _settings(**rule)
        asker = Scripted(NO)
        call = Call("edit_file", {"path": "a.txt", "old_str": text, "new_str": "x"})
        (reply,) = await run(work, asker, "amp", call, settings=settings)
        said.append((reply.status, reply.error))

    assert said[0] == said[1]


def _settings(**rules: tuple[str, ...]) -> Settings:
    import msgspec

    return msgspec.convert({"permissions": rules}, Settings)
