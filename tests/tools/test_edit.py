"""edit_file, through the whole flow."""

import os
import subprocess

import pytest

from ferrule import Call, Engine


@pytest.mark.contract("edit.success-output", "edit.git-style-diff", "edit.track-files")
async def test_the_reply_has_a_diff_a_line_range_and_the_file(engine, root):
    (root / "a.py").write_text("one\ntwo\nthree\n")

    reply = await engine.call("edit_file", path=str(root / "a.py"), old_str="two", new_str="zwei\nzwo")

    assert reply.as_dict() == {
        "status": "done",
        "result": {
            "diff": "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n"
            "@@ -1,3 +1,4 @@\n one\n-two\n+zwei\n+zwo\n three\n",
            "lineRange": [2, 3],
        },
        "trackFiles": [os.path.realpath(root / "a.py")],
    }
    assert (root / "a.py").read_text() == "one\nzwei\nzwo\nthree\n"


async def test_git_can_take_the_diff_back(engine, root):
    before = "".join(f"line {number}\n" for number in range(100))
    (root / "a.py").write_text(before)
    reply = await engine.call("edit_file", path="a.py", old_str="line 50\nline 51\n", new_str="new\n")

    subprocess.run(["git", "apply", "-R", "-"], input=reply.result["diff"].encode(), cwd=root, check=True)

    assert (root / "a.py").read_text() == before


@pytest.mark.contract("edit.error-not-found", "edit.file-must-exist")
async def test_a_missing_file_is_not_made(engine, root):
    reply = await engine.call("edit_file", path="a.py", old_str="x", new_str="y")

    assert reply.error.message.startswith("file not found. Cannot update a file that doesn't exist.")
    assert not (root / "a.py").exists()


@pytest.mark.contract("edit.error-no-match", "edit.old-must-exist")
async def test_a_miss_explains_itself_and_changes_nothing(engine, root):
    (root / "a.py").write_text("def total(x):\n    return x + 1\n")

    reply = await engine.call("edit_file", path="a.py", old_str="def total(x):\n    return x - 1", new_str="pass")

    assert reply.error.message.startswith("Could not find exact match for old_str\n")
    assert "return" in reply.error.message
    assert (root / "a.py").read_text() == "def total(x):\n    return x + 1\n"


@pytest.mark.contract("edit.error-multiple-matches", "edit.once-unless-replace-all")
async def test_two_places_are_one_too_many(engine, root):
    (root / "a.py").write_text("x = 1\ny = 2\nx = 1\n")

    reply = await engine.call("edit_file", path="a.py", old_str="x = 1", new_str="x = 2")

    assert reply.error.message.startswith(
        "found multiple matches for edit (2 occurrences). Use replace_all or provide more context."
    )
    assert (root / "a.py").read_text() == "x = 1\ny = 2\nx = 1\n"


@pytest.mark.contract("edit.error-same-strings", "edit.strings-differ")
async def test_old_and_new_must_differ(engine, root):
    (root / "a.py").write_text("x\n")

    reply = await engine.call("edit_file", path="a.py", old_str="x", new_str="x")

    assert reply.error.message == "old_str and new_str must be different"


@pytest.mark.contract("edit.replace-all")
async def test_replace_all_changes_every_place(engine, root):
    (root / "a.py").write_text("x = 1\ny = 2\nx = 1\n")

    reply = await engine.call("edit_file", path="a.py", old_str="x = 1", new_str="$& = \\1", replace_all=True)

    assert reply.result["lineRange"] == [1, 3]
    assert (root / "a.py").read_text() == "$& = \\1\ny = 2\n$& = \\1\n"


@pytest.mark.contract("edit.fuzzy-whitespace")
@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        pytest.param(b"a\r\nb\r\n", "a\nb", "c\nd", b"c\r\nd\r\n", id="line-endings"),
        pytest.param(b"if x:  \n    y\n", "if x:\n    y", "if x:\n    z", b"if x:  \n    z\n", id="trailing-blanks"),
        pytest.param(b"    a\n      b\n", "a\n  b", "c\n  d", b"    c\n      d\n", id="indentation"),
        pytest.param(
            b"\tif x:\n\t\ty\n", "    if x:\n        y", "    if x:\n        z", b"\tif x:\n\t\tz\n", id="tabs"
        ),
    ],
)
async def test_blanks_are_forgiven_and_noted(engine, root, before, old, new, after):
    (root / "a.py").write_bytes(before)

    reply = await engine.call("edit_file", path="a.py", old_str=old, new_str=new)

    assert reply.ok, reply
    assert (root / "a.py").read_bytes() == after
    assert any("loosely" in note for note in reply.notes)


async def test_an_empty_old_text_is_refused(engine, root):
    (root / "a.py").write_text("x\n")

    reply = await engine.call("edit_file", path="a.py", old_str="", new_str="y")

    assert reply.error.message.startswith("old_str must not be empty")


async def test_a_link_is_kept_and_its_target_edited(engine, root):
    (root / "real.py").write_text("x\n")
    (root / "link.py").symlink_to("real.py")

    reply = await engine.call("edit_file", path="link.py", old_str="x", new_str="y")

    assert reply.track_files == (os.path.realpath(root / "real.py"),)
    assert (root / "link.py").is_symlink()
    assert (root / "real.py").read_text() == "y\n"


async def test_mode_bits_stay(engine, root):
    (root / "run.sh").write_text("x\n")
    (root / "run.sh").chmod(0o751)

    await engine.call("edit_file", path="run.sh", old_str="x", new_str="y")

    assert (root / "run.sh").stat().st_mode & 0o777 == 0o751


async def test_a_change_behind_the_back_is_told(engine, root):
    (root / "a.py").write_text("one\n")
    await engine.call("Read", path="a.py")
    (root / "a.py").write_text("two\n")

    reply = await engine.call("edit_file", path="a.py", old_str="one", new_str="three")

    assert "changed since" in reply.error.message


async def test_a_denied_edit_does_not_tell_whether_the_text_is_there(tmp_path):
    (tmp_path / "a.py").write_text("secret\n")
    async with Engine(tmp_path) as engine:
        there = await engine.call("edit_file", path="a.py", old_str="secret", new_str="x")
        absent = await engine.call("edit_file", path="a.py", old_str="absent", new_str="x")

    assert there.as_dict() == absent.as_dict()


@pytest.mark.parametrize(
    "name", [".git/config", ".git/hooks/pre-commit", ".ferrule/settings.toml", ".amp/settings.json", ".GIT/config"]
)
async def test_protected_files_are_never_written(engine, root, name):
    reply = await engine.call("create_file", path=name, content="x")

    assert reply.error.error_code == "writing-protected-file"
    assert not (root / name).exists()


@pytest.mark.contract("edit.lock")
async def test_many_edits_of_one_file_in_one_message_all_arrive(engine, root):
    (root / "a.txt").write_text("".join(f"slot {number};\n" for number in range(50)))
    replies = await engine.run(
        [Call("edit_file", {"path": "a.txt", "old_str": f"slot {n};", "new_str": f"done {n};"}) for n in range(50)]
    )

    assert all(reply.ok for reply in replies)
    assert (root / "a.txt").read_text() == "".join(f"done {number};\n" for number in range(50))


async def test_a_binary_file_is_called_binary_and_nobody_is_sent_to_read_it(tmp_path):
    (tmp_path / "data.bin").write_bytes(b"\x00\x01needle\x00")
    async with Engine(tmp_path, dialect="claude", state=tmp_path / "state", ask=lambda _: True) as engine:
        reply = await engine.call("Edit", file_path="data.bin", old_string="needle", new_string="x")

    assert reply.error is not None
    assert reply.error.error_code == "binary"


@pytest.mark.parametrize(
    ("path", "code"),
    [("folder", "is-folder"), ("folder/", "is-folder"), ("new/", "is-folder"), ("file/below", "not-a-folder")],
)
async def test_what_cannot_be_a_file_has_a_code(engine, root, path, code):
    (root / "folder").mkdir()
    (root / "file").write_text("x")
    reply = await engine.call("create_file", path=path, content="x")

    assert reply.error.error_code == code
