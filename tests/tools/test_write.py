"""create_file, through the whole flow."""

import os

import pytest

from ferrule import Engine


@pytest.mark.contract("create.parents", "create.message")
async def test_missing_folders_are_made(engine, root):
    path = os.path.realpath(root / "a" / "b" / "c.txt")

    reply = await engine.call("create_file", path=path, content="x\n")

    assert reply.as_dict() == {
        "status": "done",
        "result": f"Successfully created file {path}",
        "trackFiles": [path],
    }
    assert (root / "a" / "b" / "c.txt").read_bytes() == b"x\n"


@pytest.mark.contract("create.trailing-newline")
@pytest.mark.parametrize(
    ("content", "written"),
    [
        pytest.param("x", b"x\n", id="added"),
        pytest.param("x\n", b"x\n", id="kept"),
        pytest.param("", b"", id="empty-stays-empty"),
        pytest.param("a\r\nb\r\n", b"a\r\nb\r\n", id="bytes-as-given"),
        pytest.param("é", "é\n".encode(), id="utf-8"),
    ],
)
async def test_a_final_newline_is_added(engine, root, content, written):
    await engine.call("create_file", path="a.txt", content=content)

    assert (root / "a.txt").read_bytes() == written


@pytest.mark.contract("create.overwrites")
async def test_a_file_that_is_there_is_replaced(engine, root):
    (root / "a.txt").write_text("old\n")
    (root / "a.txt").chmod(0o600)

    reply = await engine.call("create_file", path="a.txt", content="new")

    assert reply.result == f"Successfully overwrote file {os.path.realpath(root / 'a.txt')}"
    assert (root / "a.txt").read_text() == "new\n"
    assert (root / "a.txt").stat().st_mode & 0o777 == 0o600


@pytest.mark.contract("create.guidance-discovery")
async def test_guidance_on_the_way_is_told_once(engine, root):
    (root / "AGENTS.md").write_text("known from the start\n")
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "sub" / "CLAUDE.md").write_text("x\n")
    (root / "sub" / "AGENT.md").write_text("x\n")
    (root / "sub" / "deep" / "agents.md").write_text("x\n")

    first = await engine.call("create_file", path="sub/deep/a.py", content="x")
    again = await engine.call("create_file", path="sub/deep/b.py", content="x")

    real = os.path.realpath(root)
    assert first.result == {
        "message": f"Successfully created file {real}/sub/deep/a.py",
        "discoveredGuidanceFiles": [f"{real}/sub/AGENT.md", f"{real}/sub/deep/agents.md"],
    }
    assert again.result == f"Successfully created file {real}/sub/deep/b.py"


@pytest.mark.contract("permission.auto-allowed-amp")
async def test_notes_of_the_agent_need_no_question(tmp_path):
    async with Engine(tmp_path) as engine:
        note = await engine.call("create_file", path=".amp/notes.md", content="x")
        settings = await engine.call("create_file", path=".amp/settings.json", content="{}")

    assert (note.status, settings.status) == ("done", "error")


async def test_a_folder_in_the_way_is_a_clear_error(engine, root):
    (root / "a").mkdir()

    reply = await engine.call("create_file", path="a", content="x")

    assert reply.status == "error"
    assert "directory" in reply.error.message


async def test_a_file_in_the_way_of_a_folder_is_a_clear_error(engine, root):
    (root / "a").write_text("x\n")

    reply = await engine.call("create_file", path="a/b", content="x")

    assert reply.status == "error"
    assert (root / "a").read_text() == "x\n"


async def test_a_link_that_leads_out_is_refused(engine, root, tmp_path):
    (root / "out").symlink_to(tmp_path)

    reply = await engine.call("create_file", path="out/evil.txt", content="x")

    assert reply.status == "rejected-by-user"
    assert not (tmp_path / "evil.txt").exists()
