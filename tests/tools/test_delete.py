"""Deleting a file, through the whole flow."""

import os
import stat

import pytest
from tests.scripted import NO, YES, Scripted

from ferrule import Engine
from ferrule.core.access import Access


@pytest.fixture
def path(root):
    """A file to delete."""
    (root / "a.txt").write_bytes(b"old\n")
    (root / "a.txt").chmod(0o640)
    return root / "a.txt"


@pytest.mark.contract("delete.deletes")
@pytest.mark.contract("delete.deletes")
async def test_a_file_goes_and_the_reply_says_so(engine, path):
    reply = await engine.call("delete_file", path="a.txt")

    assert reply.as_dict() == {
        "status": "done",
        "result": f"Successfully deleted file {os.path.realpath(path)}",
        "trackFiles": [os.path.realpath(path)],
    }
    assert not path.exists()


@pytest.mark.parametrize("back", ["undo_edit", "engine"])
async def test_a_deleted_file_comes_back_with_its_bytes_and_its_mode(engine, path, back):
    await engine.call("delete_file", path="a.txt")
    if back == "engine":
        await engine.undo("a.txt")
    else:
        await engine.call("undo_edit", path="a.txt")

    assert path.read_bytes() == b"old\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


async def test_a_read_only_file_can_be_deleted_and_comes_back_read_only(engine, path):
    path.chmod(0o444)

    assert (await engine.call("delete_file", path="a.txt")).ok
    assert not path.exists()

    await engine.undo()

    assert stat.S_IMODE(path.stat().st_mode) == 0o444


async def test_a_binary_file_can_be_deleted_and_comes_back(engine, root):
    raw = bytes(range(256)) * 10
    (root / "a.bin").write_bytes(raw)
    await engine.call("delete_file", path="a.bin")
    reply = await engine.call("undo_edit", path="a.bin")

    assert "a.bin: binary, 0 bytes before and 2,560 bytes after." in reply.result
    assert (root / "a.bin").read_bytes() == raw


@pytest.mark.parametrize(
    ("target", "start"),
    [
        pytest.param("nope.txt", "ENOENT: no such file or directory", id="missing"),
        pytest.param("folder/nope.txt", "ENOENT: no such file or directory", id="missing-in-a-folder"),
        pytest.param("folder", "EISDIR", id="a-folder"),
        pytest.param("folder/", "EISDIR", id="a-folder-with-a-slash"),
        pytest.param(".", "EISDIR", id="the-workspace"),
        pytest.param("", "A path cannot be empty.", id="nothing"),
        pytest.param("link", "{root}/link is a link to {root}/a.txt. Remove the link", id="a-link"),
        pytest.param("gone", "{root}/gone is a link to {root}/nowhere. Remove the link", id="a-link-to-nothing"),
        pytest.param("pipe", "", id="a-pipe"),
    ],
)
async def test_only_a_file_that_is_there_is_deleted(engine, root, path, target, start):
    (root / "folder").mkdir()
    (root / "link").symlink_to("a.txt")
    (root / "gone").symlink_to("nowhere")
    os.mkfifo(root / "pipe")
    before = sorted(os.listdir(root))
    reply = await engine.call("delete_file", path=target)

    assert reply.status == "error"
    assert reply.error.message.startswith(start.format(root=os.path.realpath(root)))
    assert sorted(os.listdir(root)) == before
    assert path.read_bytes() == b"old\n"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        pytest.param(".env", "writing-secret-file", id="secret"),
        pytest.param("id_rsa", "writing-secret-file", id="key"),
        pytest.param(".git/config", "writing-protected-file", id="protected"),
        pytest.param(".git/hooks/pre-commit", "writing-protected-file", id="hook"),
    ],
)
async def test_guarded_files_are_not_deleted_whoever_says_yes(engine, root, name, code):
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text("x")
    reply = await engine.call("delete_file", path=name)

    assert (reply.status, reply.error.error_code) == ("error", code)
    assert (root / name).read_text() == "x"


@pytest.mark.parametrize("inside", ["../outside.txt", "way/outside.txt"])
async def test_nothing_outside_is_deleted(engine, root, inside):
    outside = root.parent / "outside.txt"
    outside.write_text("x")
    (root / "way").symlink_to("..")
    reply = await engine.call("delete_file", path=inside)

    assert reply.status == "rejected-by-user"
    assert outside.read_text() == "x"


@pytest.mark.contract("delete.requires-approval")
@pytest.mark.contract("delete.requires-approval")
async def test_a_deletion_asks_and_a_no_is_a_no(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    asker = Scripted(NO, YES)
    async with Engine(tmp_path, ask=asker) as engine:
        no = await engine.call("delete_file", path="a.txt")
        still = (tmp_path / "a.txt").exists()
        yes = await engine.call("delete_file", path="a.txt")

    assert (no.status, still, yes.status) == ("rejected-by-user", True, "done")
    assert [question.summary for question in asker.questions] == ["delete_file: delete a.txt"] * 2
    assert asker.questions[0].touches == (Access.write(os.path.realpath(tmp_path / "a.txt")),)


async def test_a_deleted_file_counts_as_unread(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    async with Engine(tmp_path, dialect="claude", ask=lambda question: True) as engine:
        await engine.call("Read", file_path="a.txt")
        await engine.call("delete_file", path="a.txt")
        (tmp_path / "a.txt").write_text("somebody else's")
        reply = await engine.call("Write", file_path="a.txt", content="mine")

    assert reply.as_dict()["error"]["errorCode"] == "not-read"
    assert (tmp_path / "a.txt").read_text() == "somebody else's"
