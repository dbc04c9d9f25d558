"""Exclude files as commands see them: git itself passes over exactly the secret files that they name."""

import os
import subprocess

import pytest

from ferrule.sandbox.hidden import exclude_files


def git(folder, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q")
    return folder


@pytest.mark.parametrize(
    "name",
    [
        ".env",
        "deep/er/.env",
        "a*b/.env",
        "a[b]/x.key",
        "a?b/.env",
        "back\\slash/.env",
        "#not a comment.env",
        "!not.env",
        ".env ",
        "two words /.env  ",
        "tab\t.env",
        "ü/ö.env",
        "\udcff.env",
    ],
)
def test_git_passes_over_a_secret_file_of_any_name_and_over_no_other(repository, name):
    near = [os.path.join(os.path.dirname(name), "axb.py"), "axb/.env", "ab/.env", "sub/.env"]
    for path in {name, *near} - {""}:
        (repository / path).parent.mkdir(parents=True, exist_ok=True)
        (repository / path).touch()
    ((path, raw),) = exclude_files([str(repository)], [str(repository)], [str(repository / name)]).items()
    with open(path, "wb") as file:
        file.write(raw)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--others", "--exclude-standard"], cwd=repository, capture_output=True, check=True
    ).stdout.split(b"\0")[:-1]

    assert sorted(map(os.fsdecode, listed)) == sorted({*near} - {name})


def test_what_the_file_said_before_still_holds(repository):
    exclude = repository / ".git/info/exclude"
    exclude.write_bytes(b"*.log")

    ((_, raw),) = exclude_files([str(repository)], [str(repository)], [str(repository / ".env")]).items()
    assert raw.startswith(b"*.log\n#")
    assert raw.endswith(b"\n/.env\n")


def test_a_secret_file_is_named_in_its_innermost_repository(repository):
    inner = repository / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    found = exclude_files([str(repository)], [str(repository), str(inner)], [str(inner / ".env")])

    assert list(found) == [str(inner / ".git/info/exclude")]


def test_a_repository_whose_folder_is_elsewhere_in_the_workspace_is_found(repository):
    git(repository, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "Begin")
    git(repository, "worktree", "add", "-q", "tree")
    tree = repository / "tree"
    found = exclude_files([str(repository)], [str(repository), str(tree)], [str(tree / ".env")])

    assert list(found) == [str(repository / ".git/info/exclude")]


@pytest.mark.parametrize(
    "planted", ["no-file", "linked-file", "linked-folder", "gitfile-outside", "gitfile-junk", "fifo"]
)
def test_what_is_not_there_or_leads_elsewhere_is_left_out(repository, tmp_path, planted):
    outside = tmp_path / "outside"
    (outside / "info").mkdir(parents=True)
    (outside / "info/exclude").write_text("a secret of somebody else's")
    (outside / "commondir").write_text(".")
    top, exclude = repository, repository / ".git/info/exclude"
    exclude.unlink()
    if planted == "linked-file":
        exclude.symlink_to(outside / "info/exclude")
    elif planted == "fifo":
        os.mkfifo(exclude)
    elif planted == "linked-folder":
        exclude.parent.rmdir()
        exclude.parent.symlink_to(outside / "info")
    elif planted.startswith("gitfile"):
        top = repository / "inner"
        top.mkdir()
        (top / ".git").write_text(f"gitdir: {outside}\n" if planted == "gitfile-outside" else "junk")

    assert exclude_files([str(repository)], [str(repository), str(top)], [str(top / ".env")]) == {}
