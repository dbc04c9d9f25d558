"""Taking back the last write of a file, as a tool: what comes back, what is refused, and that nobody is asked."""

import os
import stat

import pytest
from tests.scripted import NO, YES, Scripted

from ferrule import Call, Engine, Event, Prepared
from ferrule.core.access import Access

PATCH = """*** Begin Patch
*** Update File: a.txt
@@
-one
+1
*** Add File: sub/new.txt
+new
*** Delete File: b.txt
*** End Patch"""


@pytest.fixture
def files(root):
    """A text to edit and one to lose."""
    (root / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    (root / "b.txt").write_bytes(b"bee\n")
    return root


@pytest.mark.contract("undo.reverts-last-edit")
@pytest.mark.contract("undo.reverts-last-edit")
async def test_an_edit_is_taken_back_and_shown_as_a_fenced_diff(engine, files):
    await engine.call("edit_file", path="a.txt", old_str="one", new_str="1")
    reply = await engine.call("undo_edit", path="a.txt")

    assert reply.result == (
        "```diff\ndiff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-1\n+one\n two\n```"
    )
    assert reply.track_files == (os.path.realpath(files / "a.txt"),)
    assert (files / "a.txt").read_bytes() == b"one\r\ntwo\r\n"


async def test_edits_are_taken_back_one_by_one_and_made_again_one_by_one(engine, files):
    for old, new in (("one", "1"), ("1", "uno"), ("uno", "eins")):
        await engine.call("edit_file", path="a.txt", old_str=old, new_str=new)

    back = []
    for _ in range(3):
        await engine.call("undo_edit", path="a.txt")
        back.append((files / "a.txt").read_bytes().split()[0])
    last = await engine.call("undo_edit", path="a.txt")
    again = []
    for _ in range(3):
        await engine.redo("a.txt")
        again.append((files / "a.txt").read_bytes().split()[0])

    assert (back, again) == ([b"uno", b"1", b"one"], [b"1", b"uno", b"eins"])
    assert last.error.message == f"No edit history found for file '{os.path.realpath(files / 'a.txt')}'."


@pytest.mark.parametrize("path", ["a.txt", "nope.txt", "sub/nope.txt"])
async def test_without_a_history_it_says_so(engine, files, path):
    reply = await engine.call("undo_edit", path=path)

    real = os.path.realpath(files / path)
    assert reply.as_dict() == {
        "status": "error",
        "error": {
            "message": f"No edit history found for file '{real}'.",
            "errorCode": "no-history",
            "absolutePath": real,
        },
    }


async def test_a_created_file_goes_with_the_folders_that_came_with_it(engine, files):
    await engine.call("create_file", path="x/y/new.txt", content="new\n")
    reply = await engine.call("undo_edit", path="x/y/new.txt")

    assert "deleted file mode" in reply.result
    assert not (files / "x").exists()


async def test_an_overwritten_file_has_its_old_content_again(engine, files):
    await engine.call("create_file", path="b.txt", content="other\n")
    await engine.call("undo_edit", path="b.txt")

    assert (files / "b.txt").read_bytes() == b"bee\n"


async def test_a_deleted_file_is_there_again_with_its_mode(engine, files):
    (files / "b.txt").chmod(0o600)
    await engine.call("delete_file", path="b.txt")
    reply = await engine.call("undo_edit", path="b.txt")

    assert "new file mode" in reply.result
    assert "+bee" in reply.result
    assert (files / "b.txt").read_bytes() == b"bee\n"
    assert stat.S_IMODE((files / "b.txt").stat().st_mode) == 0o600


@pytest.mark.parametrize("path", ["a.txt", "b.txt", "sub/new.txt"])
async def test_files_that_were_changed_together_go_back_together(engine, files, path):
    [applied] = await engine.run([Call("apply_patch", PATCH)])
    reply = await engine.call("undo_edit", path=path)

    assert applied.ok
    assert sorted(map(os.path.basename, reply.track_files)) == ["a.txt", "b.txt", "new.txt"]
    assert reply.result.count("diff --git") == 3
    assert (files / "a.txt").read_bytes() == b"one\r\ntwo\r\n"
    assert (files / "b.txt").read_bytes() == b"bee\n"
    assert not (files / "sub").exists()


async def test_a_batch_that_undoes_a_patch_waits_for_all_of_its_files(engine, files):
    await engine.run([Call("apply_patch", PATCH)])
    plan = engine.plan([Call("undo_edit", {"path": "a.txt"}), Call("Read", {"path": "b.txt"})])

    assert [[call.name for call in batch] for batch in plan] == [["undo_edit"], ["Read"]]


async def test_a_file_that_somebody_else_changed_stays_and_the_change_is_shown(engine, files):
    await engine.call("edit_file", path="a.txt", old_str="one", new_str="1")
    (files / "a.txt").write_bytes(b"mine\n")
    reply = await engine.call("undo_edit", path="a.txt")

    assert (reply.status, reply.error.error_code) == ("error", "changed-since")
    assert "was changed since by something else" in reply.error.message
    assert "\n-1\n" in reply.error.message
    assert "\n+one\n" in reply.error.message
    assert (files / "a.txt").read_bytes() == b"mine\n"


async def test_one_changed_file_of_a_patch_keeps_all_of_it(engine, files):
    await engine.run([Call("apply_patch", PATCH)])
    (files / "sub" / "new.txt").write_text("mine\n")
    reply = await engine.call("undo_edit", path="a.txt")

    assert reply.error.error_code == "changed-since"
    assert (files / "a.txt").read_bytes() == b"1\r\ntwo\r\n"
    assert not (files / "b.txt").exists()


@pytest.mark.contract("undo.always-allowed")
@pytest.mark.contract("undo.always-allowed")
async def test_nobody_is_asked_about_going_back_but_about_every_write(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    asker = Scripted(YES, YES)
    async with Engine(tmp_path, ask=asker) as engine:
        await engine.call("edit_file", path="a.txt", old_str="one", new_str="1")
        await engine.call("delete_file", path="a.txt")
        replies = [await engine.call("undo_edit", path="a.txt") for _ in range(3)]

    assert [question.summary for question in asker.questions] == ["edit_file: write a.txt", "delete_file: delete a.txt"]
    assert [reply.status for reply in replies] == ["done", "done", "error"]
    assert (tmp_path / "a.txt").read_text() == "one\n"


async def test_a_write_of_another_session_goes_back_only_with_a_yes(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    async with Engine(tmp_path, ask=lambda question: True) as engine:
        await engine.call("edit_file", path="a.txt", old_str="one", new_str="1")
    asker = Scripted(NO, YES)
    async with Engine(tmp_path, ask=asker) as engine:
        no = await engine.call("undo_edit", path="a.txt")
        still = (tmp_path / "a.txt").read_text()
        yes = await engine.call("undo_edit", path="a.txt")

    assert (no.status, still, yes.status) == ("rejected-by-user", "1\n", "done")
    assert [question.summary for question in asker.questions] == ["undo_edit: take back the last write of a.txt"] * 2
    assert (tmp_path / "a.txt").read_text() == "one\n"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        pytest.param("../a.txt", "outside-workspace", id="outside"),
        pytest.param(".env", "writing-secret-file", id="secret"),
        pytest.param(".git/config", "writing-protected-file", id="protected"),
    ],
)
async def test_what_may_not_be_written_may_not_be_restored(engine, root, name, code):
    reply = await engine.call("undo_edit", path=name)

    assert reply.error.error_code == code


async def test_going_back_is_declared_as_such(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    (tmp_path / "b.txt").write_text("bee\n")
    prepared = []

    def listen(event: Event) -> None:
        if isinstance(event, Prepared):
            prepared.append(event.touches)

    async with Engine(tmp_path, ask=lambda question: True, on_event=listen) as engine:
        await engine.run([Call("apply_patch", PATCH)])
        await engine.call("undo_edit", path="b.txt")

    names = [os.path.realpath(tmp_path / name) for name in ("b.txt", "a.txt", "sub/new.txt")]
    assert prepared[-1] == tuple(map(Access.restore, names))


async def test_what_was_restored_counts_as_read_only_where_it_was_read(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    async with Engine(tmp_path, dialect="claude", ask=lambda question: True) as engine:
        await engine.call("Read", file_path="a.txt")
        await engine.call("Edit", file_path="a.txt", old_string="one", new_string="1")
        await engine.call("undo_edit", path="a.txt")
        known = await engine.call("Write", file_path="a.txt", content="two\n")
        await engine.call("delete_file", path="a.txt")
        await engine.call("undo_edit", path="a.txt")
        unknown = await engine.call("Write", file_path="a.txt", content="three\n")

    assert known.ok
    assert unknown.as_dict()["error"]["errorCode"] == "not-read"
    assert (tmp_path / "a.txt").read_text() == "two\n"
