"""What is committed when a session begins is no secret; nothing that a command does later makes it so."""

import os
import subprocess
from pathlib import Path

import pytest

from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.git import Committed
from ferrule.sandbox.hidden import Precious

KEY = "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n"


def git(folder, *words):
    who = [
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "-c",
        "protocol.file.allow=always",
        "-c",
        "commit.gpgsign=false",
    ]
    done = subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture(params=["sha1", "sha256"])
def work(tmp_path, request):
    """A repository with secret names in its commit, and one beside it that is not in it."""
    folder = tmp_path / "work"
    folder.mkdir()
    git(folder, "init", "-q", f"--object-format={request.param}")
    for name in (".env", "tests/server.key", "deep/er/credentials.json", "run.env"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(KEY)
    (folder / "run.env").chmod(0o755)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "one")
    (folder / ".env.local").write_text("K=1\n")
    return folder


def seen(folder, state):
    """What commands see, by name: `None` for the file itself, nothing, or other bytes."""
    precious = Precious(Guard((), Jail(str(folder))), str(state))
    return shown(precious, folder), precious


def shown(precious, folder):
    precious._until = float("-inf")
    found = precious.find([str(folder)])
    assert not found.incomplete
    masked = {os.path.relpath(path, folder): "" for path in found.secret}
    return masked | {os.path.relpath(path, folder): Path(other).read_text() for path, other in found.replaced}


def test_commands_see_the_committed_bytes(work, tmp_path):
    (work / "tests/server.key").write_text("local\n")
    (work / "run.env").write_text("local\n")
    (work / "run.env").chmod(0o755)
    found, precious = seen(work, tmp_path / "state")
    modes = {
        os.path.basename(path): os.stat(other).st_mode & 0o777 for path, other in precious.find([str(work)]).replaced
    }
    precious.close()

    assert found == {".env.local": "", "tests/server.key": KEY, "run.env": KEY}
    assert modes == {"server.key": 0o444, "run.env": 0o555}
    assert os.listdir(tmp_path / "state") == []


def test_without_a_folder_for_them_what_differs_is_masked(work):
    (work / ".env").write_text("local\n")

    assert Precious(Guard((), Jail(str(work)))).find([str(work)]).secret == (
        str(work / ".env"),
        str(work / ".env.local"),
    )


def test_tools_read_committed_keys_but_no_environment_files(work):
    guard = Guard((), Jail(str(work)))
    names = [".env", "tests/server.key", "deep/er/credentials.json", ".env.local"]

    assert [guard.secret(str(work / name)) for name in names] == [True, False, True, True]


def in_the_index(work):
    git(work, "add", "-f", ".env.local")


def in_a_commit(work):
    git(work, "add", "-f", ".env.local")
    git(work, "commit", "-qm", "two")


def on_another_branch(work):
    git(work, "checkout", "-qb", "other")
    in_a_commit(work)


def by_replacement(work):
    before = git(work, "rev-parse", "HEAD")
    in_a_commit(work)
    git(work, "replace", before, git(work, "rev-parse", "HEAD"))
    git(work, "update-ref", "HEAD", before)


def by_graft(work):
    in_a_commit(work)
    (work / ".git/info").mkdir(exist_ok=True)
    (work / ".git/info/grafts").write_text(git(work, "rev-parse", "HEAD") + "\n")


def by_a_repository_around_it(work):
    (work / "inner").mkdir()
    (work / ".env.local").rename(work / "inner/.env.local")
    git(work / "inner", "init", "-q")
    git(work / "inner", "add", "-A")
    git(work / "inner", "commit", "-qm", "mine")


def by_settings(work):
    (work / ".git/config").write_text((work / ".git/config").read_text() + "[core]\n\tfsmonitor = touch ran\n")
    (work / ".gitattributes").write_text("* filter=x diff=x\n")
    in_the_index(work)


@pytest.mark.parametrize(
    "attack",
    [in_the_index, in_a_commit, on_another_branch, by_replacement, by_graft, by_a_repository_around_it, by_settings],
)
def test_nothing_that_a_command_does_to_a_repository_unmasks_a_file(work, tmp_path, attack):
    found, precious = seen(work, tmp_path / "state")
    assert found == {".env.local": ""}
    attack(work)
    path = next(work.rglob(".env.local"))

    assert shown(precious, work) == {os.path.relpath(path, work): ""}


def test_what_was_committed_stays_so_when_it_is_committed_anew(work, tmp_path):
    _, precious = seen(work, tmp_path / "state")
    (work / ".env").write_text("K=mine\n")
    git(work, "commit", "-qam", "two")

    assert shown(precious, work) == {".env": KEY, ".env.local": ""}


def test_local_keys_that_git_is_told_to_overlook_stay_hidden(work, tmp_path):
    git(work, "update-index", "--skip-worktree", ".env")
    (work / ".env").write_text("K=mine\n")

    assert seen(work, tmp_path / "state")[0] == {".env": KEY, ".env.local": ""}


def test_a_link_is_not_what_was_committed(work, tmp_path):
    (work / "keys").write_text("K=mine\n")
    (work / ".env").unlink()
    (work / ".env").symlink_to("keys")
    found, precious = seen(work, tmp_path / "state")
    assert found == {".env": "", "keys": "", ".env.local": ""}
    (work / ".env").unlink()

    assert shown(precious, work) == {"keys": "", ".env.local": ""}


def test_a_secret_file_stays_hidden_under_another_name(work, tmp_path):
    (work / ".aws").mkdir()
    (work / ".aws/config").write_text("key\n")
    _, precious = seen(work, tmp_path / "state")
    (work / ".aws").rename(work / "plain")

    assert shown(precious, work) == {"plain/config": "", ".env.local": ""}


def test_forged_objects_are_not_believed(work, tmp_path):
    (work / ".env").write_text("K=mine\n")
    for path in (work / ".git/objects").glob("??/*"):
        path.chmod(0o644)
        path.write_bytes(b"x\x9cforged")

    assert seen(work, tmp_path / "state")[0][".env"] == ""


def test_work_trees_and_submodules_have_commits_of_their_own(work, tmp_path):
    git(work, "worktree", "add", "-q", str(tmp_path / "tree"))
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", str(work), str(other))
    git(other, "submodule", "--quiet", "add", str(work), "sub")
    git(other, "commit", "-qm", "sub")
    git(other, "pack-refs", "--all")

    assert seen(tmp_path / "tree", tmp_path / "state")[0] == {}
    assert seen(other, tmp_path / "state")[0] == {}


@pytest.mark.parametrize("harm", ["no git", "no repository", "no commit", "HEAD is odd"])
def test_where_nothing_can_be_told_nothing_is_committed(work, monkeypatch, harm):
    if harm == "no git":
        monkeypatch.setenv("PATH", "/nowhere")
    elif harm == "no repository":
        (work / ".git").rename(work / "git")
    else:
        (work / ".git/HEAD").write_text("ref: refs/heads/none\n" if harm == "no commit" else "ref: ../../x\n")
    committed = Committed()
    committed.begin([str(work)])

    assert committed.state(str(work / ".env")).verdict == "absent"


def test_folders_of_source_code_and_environments_are_seen_file_by_file(work, tmp_path):
    for name in ("credentials/__init__.py", "lib/.env/pyvenv.cfg", "lib/.env/x.pem", "own/credentials/prod"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("x\n")

    assert seen(work, tmp_path / "state")[0] == {"own/credentials": "", "lib/.env/x.pem": "", ".env.local": ""}
