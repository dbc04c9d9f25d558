"""Protected paths that commands bring into being or change are set aside, and nothing is lost."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest
from tests.rows import each_row

from ferrule.files.guard import Guard
from ferrule.git.environment import harmful_keys, without
from ferrule.sandbox.tripwire import Tripwire

KEPT = (".mcp.json", ".claude", ".vscode")
EMPTY = b"[core]\n\tbare = false\n"


@pytest.fixture
def root(tmp_path):
    made = tmp_path / "workspace"
    made.mkdir()
    return made


@pytest.fixture
def wire(tmp_path):
    return Tripwire(Guard(), str(tmp_path / "aside"))


def begin(wire, root, *found):
    wire.begin([str(root)], [str(root / name) for name in KEPT], [str(root / path) for path in found])


def repository(folder):
    subprocess.run(["git", "init", "-q", str(folder)], check=True, timeout=60)
    return folder / ".git"


def test_what_comes_into_being_is_moved_and_kept_whole(wire, root):
    begin(wire, root)
    (root / ".claude").mkdir()
    (root / ".claude/settings.json").write_text("{}")
    (root / ".mcp.json").symlink_to("/etc/passwd")
    wire.end(())
    found = {os.path.basename(one.path): one for one in wire.take()}

    assert sorted(os.listdir(root)) == []
    assert sorted(found) == [".claude", ".mcp.json"]
    assert os.listdir(found[".claude"].kept_at) == ["settings.json"]
    assert os.readlink(found[".mcp.json"].kept_at) == "/etc/passwd"
    assert wire.take() == []


def test_what_was_there_before_stays(wire, root):
    (root / ".vscode").mkdir()
    begin(wire, root)
    (root / ".vscode/new").touch()
    wire.end(())

    assert (root / ".vscode/new").exists()
    assert wire.take() == []


def test_what_the_session_wrote_with_leave_stays_beside_what_a_command_made(tmp_path, root):
    guard = Guard(allow=["**/.claude/**"])
    wire = Tripwire(guard, str(tmp_path / "aside"))
    begin(wire, root)
    guard.check_write(str(root / ".claude/commands/mine.md"))
    (root / ".claude/commands").mkdir(parents=True)
    (root / ".claude/commands/mine.md").touch()
    (root / ".claude/settings.json").touch()
    wire.end(())

    assert [path.name for path in root.rglob("*") if path.is_file()] == ["mine.md"]
    assert [one.path for one in wire.take()] == [str(root / ".claude/settings.json")]


def test_a_link_on_the_way_moves_nothing_of_others(wire, root, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "settings.json").write_text("mine")
    wire.begin([str(root)], [str(root / ".amp/settings.json")], ())
    (root / ".amp").symlink_to(other)
    wire.end(())

    assert (other / "settings.json").read_text() == "mine"


def test_git_may_change_what_runs_nothing(wire, root):
    git = repository(root)
    begin(wire, root, ".git/config")
    for words in (["remote", "add", "o", "https://example.org/x"], ["config", "user.name", "Ada"]):
        subprocess.run(["git", "-C", str(root), *words], check=True, timeout=60)
    after = (git / "config").read_bytes()
    wire.end([str(git / "config")])

    assert (git / "config").read_bytes() == after
    assert wire.take() == []


def test_what_would_run_something_is_taken_out_and_the_rest_stays(wire, root):
    git = repository(root)
    begin(wire, root, ".git/config")
    for key, value in (("core.fsmonitor", "evil"), ("user.email", "a@b"), ("alias.st", "!evil")):
        subprocess.run(["git", "-C", str(root), "config", key, value], check=True, timeout=60)
    wire.end([str(git / "config")])
    (found,) = wire.take()
    text = (git / "config").read_text()

    assert "evil" not in text
    assert "email = a@b" in text
    assert "(alias.st, core.fsmonitor)" in str(found)
    assert "evil" in Path(found.kept_at).read_text()


@pytest.mark.parametrize(
    "plant",
    [
        pytest.param(lambda git: (git / "hooks/pre-commit").write_text("evil"), id="a-hook"),
        pytest.param(lambda git: (git / "commondir").write_text("/elsewhere"), id="commondir"),
        pytest.param(lambda git: (git / "config").write_text("[core]\n\tpager = evil\n"), id="settings"),
    ],
)
def test_a_new_repository_keeps_what_git_makes_and_loses_what_runs(wire, root, plant):
    begin(wire, root)
    git = repository(root / "new")
    plant(git)
    wire.end([str(git / "config")])

    assert len(wire.take()) == 1
    assert not (git / "hooks/pre-commit").exists()
    assert not (git / "commondir").exists()
    assert not (git / "config").exists() or "evil" not in (git / "config").read_text()
    assert all(name.endswith(".sample") for name in os.listdir(git / "hooks"))


@pytest.mark.parametrize("has_notices", [True, False])
async def test_it_is_set_aside_while_the_command_still_runs(wire, root, monkeypatch, has_notices):
    def none(_):
        raise OSError(24, "Too many open files")

    if not has_notices:
        monkeypatch.setattr("ferrule.sandbox.tripwire.InotifyWatch", none)
    begin(wire, root)
    (root / ".mcp.json").write_text("{}")
    async with asyncio.timeout(60):
        while (root / ".mcp.json").exists():
            await asyncio.sleep(0)
    wire.end(())
    wire.close()

    assert [one.path for one in wire.take()] == [str(root / ".mcp.json")]


@each_row(
    ("text", "keys"),
    [
        pytest.param('[branch "x"]\n\tremote = o\n\tmerge = refs/heads/x\n', [], id="branch"),
        pytest.param('[remote "o"]\n\turl = https://e.org/x\n\tfetch = +a:b\n', [], id="remote"),
        pytest.param('[submodule "s"]\n\turl = ../s\n\tactive = true\n', [], id="submodule"),
        pytest.param('[remote "o"]\n\turl = ext::sh -c evil\n', ["remote.o.url"], id="transport-that-runs"),
        pytest.param('[remote "o"]\n\turl = --upload-pack=evil\n', ["remote.o.url"], id="option-as-address"),
        pytest.param('[remote "o"]\n\tuploadpack = evil\n', ["remote.o.uploadpack"], id="uploadpack"),
        pytest.param('[submodule "s"]\n\tupdate = !evil\n', ["submodule.s.update"], id="submodule-update"),
        pytest.param("[core]\n\tsshCommand = evil\n", ["core.sshcommand"], id="ssh"),
        pytest.param("[include]\n\tpath = ../evil\n", ["include.path"], id="include"),
        pytest.param("[core]\n\tworktree = /elsewhere\n", ["core.worktree"], id="worktree"),
        pytest.param('[filter "x"]\n\tclean = evil\n', ["filter.x.clean"], id="filter"),
        pytest.param('[url "evil"]\n\tinsteadOf = https://\n', ["url.evil.insteadof"], id="another-address"),
        pytest.param("[core\n", ["?"], id="unreadable"),
        pytest.param("\0", ["?"], id="no-text"),
    ],
)
def test_keys_that_might_run_something_are_known(text, keys):
    assert harmful_keys(EMPTY, EMPTY + text.encode()) == keys


def test_a_changed_key_gets_its_old_value_back():
    before = b"[core]\n\tpager = less\n"
    now = b"[core]\n\tpager = evil\n[user]\n\tname = Ada\n"
    kept = without(before, now, harmful_keys(before, now))

    assert b"pager = less" in kept
    assert b"name = Ada" in kept
    assert b"evil" not in kept


def test_what_nothing_else_protects_is_brought_back(wire, root):
    hooks = repository(root) / "hooks"
    for sample in hooks.iterdir():
        sample.unlink()
    (hooks / "pre-commit").write_text("mine")
    (hooks / "post-merge").write_text("mine too")
    (root / ".vscode").mkdir()
    wire.begin([str(root)], [], [], [str(hooks), str(root / ".vscode")])
    (hooks / "pre-commit").write_text("theirs")
    (hooks / "post-merge").unlink()
    (hooks / "post-checkout").write_text("theirs")
    (root / ".vscode/tasks.json").write_text("theirs")
    wire.end(())

    assert {path.name: path.read_text() for path in hooks.iterdir()} == {"pre-commit": "mine", "post-merge": "mine too"}
    assert list((root / ".vscode").iterdir()) == []
    asides = {os.path.basename(one.path): one for one in wire.take()}
    assert sorted(asides) == ["post-checkout", "pre-commit", "tasks.json"]
    assert Path(asides["pre-commit"].kept_at).read_text() == "theirs"
