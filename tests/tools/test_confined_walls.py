"""What confined commands cannot do through the engine, what they can, and what is said and offered when they fail."""

import os
import socket
import subprocess
import sys
import tempfile

import pytest
from tests.tools.confined import CONFINED, HIDES, WAYS, eventually, opened, placeholders, said

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the walls of other systems have tests of their own")
every_way = pytest.mark.parametrize("use", WAYS)
every_wall = pytest.mark.parametrize("use", CONFINED)
that_hides = pytest.mark.parametrize("use", HIDES)

CONNECT = f"{sys.executable} -c \"import socket; socket.create_connection(('{{}}', {{}}), 2)\""
NOWHERE = "192.0.2.1"
"""An address that is nobody's, for documentation."""


def answering(asked, *, agrees):
    def ask(question):
        asked.append(question.kind)
        return question.kind == "call" or agrees

    return ask


@every_wall
async def test_nothing_is_written_outside(use, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("as it was")
    async with opened(tmp_path, use) as engine:
        tries = f"echo x > {outside}/new; echo x > {outside}/file; ln -s {outside} link; echo x > link/by"
        reply = await engine.call("Bash", command=f"echo inside > inside; {tries}")

    assert not reply.ok
    assert (tmp_path / "work/inside").read_text() == "inside\n"
    assert [path.name for path in outside.iterdir()] == ["file"]
    assert (outside / "file").read_text() == "as it was"


@that_hides
async def test_secrets_cannot_be_read_and_protected_files_are_set_aside(use, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    (work / ".env").write_text("TOKEN=hunter2")
    async with opened(tmp_path, use) as engine:
        secret = await engine.call("Bash", command="cat .env; grep -r hunter2 . ; cp .env copy; cat copy")
        made = await engine.call(
            "Bash", command="echo '{}' > .mcp.json; mkdir .claude && echo x > .claude/settings.json"
        )
        assert placeholders(work) == []

    assert "hunter2" not in str(secret)
    assert "set aside" in str(made.notes)
    assert (work / ".env").read_text() == "TOKEN=hunter2"
    assert not (work / ".mcp.json").exists()
    assert not (work / ".claude").exists()


@that_hides
@pytest.mark.parametrize("move", ["mv app target/app", "mv app/deep target/deep", "mv app/deep app/target"])
async def test_a_secret_is_not_moved_to_where_the_next_command_reads_it(use, move, tmp_path):
    """Nobody looks for secrets in `target`, which programs fill."""
    secret = tmp_path / "work/app/deep/.env"
    secret.parent.mkdir(parents=True)
    secret.write_text("TOKEN=hunter2")
    async with opened(tmp_path, use) as engine:
        await engine.call("Bash", command=f"mkdir -p target; {move}")
        reply = await engine.call("Bash", command="grep -rs hunter2 . ; find . -name .env -exec cat {} +")

    assert "hunter2" not in str(reply)
    assert secret.read_text() == "TOKEN=hunter2"


@every_way
async def test_git_works_inside(use, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    subprocess.run(["git", "init", "-q", "-b", "main", str(work)], check=True)
    for name, value in (("user.name", "A"), ("user.email", "a@example.org")):
        subprocess.run(["git", "-C", str(work), "config", name, value], check=True)
    (work / "file").write_text("x")
    async with opened(tmp_path, use) as engine:
        seen = await engine.call("Bash", command="git status --porcelain")
        done = await engine.call("Bash", command="git add -A && git commit -qm first && git log --format=%s")

    assert said(seen) == "?? file"
    assert (done.ok, said(done)) == (True, "first"), done
    assert subprocess.run(["git", "-C", str(work), "ls-files"], check=True, capture_output=True).stdout == b"file\n"


@every_wall
async def test_a_server_of_this_machine_is_out_of_reach(use, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        port = server.getsockname()[1]
        async with opened(tmp_path, use) as engine:
            reply = await engine.call("Bash", command=CONNECT.format("127.0.0.1", port))
        with pytest.raises(BlockingIOError):
            server.accept()

    assert not reply.ok


@every_wall
@pytest.mark.parametrize("agrees", [True, False])
async def test_the_network_is_refused_and_the_way_outside_offered(use, agrees, tmp_path):
    asked: list[str] = []
    async with opened(tmp_path, use, ask=answering(asked, agrees=agrees)) as engine:
        reply = await engine.call("Bash", command=f"echo x >> runs; {CONNECT.format(NOWHERE, 9)}")

    runs = (tmp_path / "work/runs").read_text().count("x")
    assert runs == 1 + agrees
    assert len([kind for kind in asked if kind != "call"]) == 1
    assert any("network" in note.lower() for note in reply.notes), reply.notes
    assert any("run again outside" in note for note in reply.notes) == agrees


@every_wall
async def test_who_agrees_has_a_denied_command_run_outside(use, tmp_path):
    target = tempfile.mkdtemp(prefix="ferrule-", dir=os.path.expanduser("~"))
    refused: list[str] = []
    agreed: list[str] = []
    try:
        async with opened(tmp_path, use, ask=answering(refused, agrees=False)) as engine:
            first = await engine.call("Bash", command=f"echo x > {target}/file")
            assert os.listdir(target) == []
        async with opened(tmp_path, use, ask=answering(agreed, agrees=True)) as engine:
            second = await engine.call("Bash", command=f"echo x > {target}/file")
            there = os.listdir(target)
    finally:
        subprocess.run(["rm", "-r", target], check=True)

    assert (first.ok, second.ok, there) == (False, True, ["file"])
    assert target in str(first.notes)
    assert "run again outside" in str(second.notes)


@that_hides
async def test_while_a_task_runs_nothing_of_ours_is_in_the_workspace(use, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    before = sorted(work.rglob("*"))
    async with opened(tmp_path, use) as engine:
        await engine.call("Bash", command="touch up; until [ -e go ]; do sleep 0.01; done", run_in_background=True)
        await eventually((work / "up").exists)
        (work / "up").unlink()
        held = sorted(work.rglob("*"))
        (work / ".vscode").mkdir()
        (work / ".vscode/tasks.json").touch()
        await eventually(lambda: not (work / ".vscode/tasks.json").exists())
        (work / "go").touch()

    assert held == before
