"""The index of git is read in each of its versions, and what is no index is none."""

import subprocess
from pathlib import Path

import pytest

from ferrule.git import read_index

NAMES = ("a", "a-longer-name/" * 30 + "file", "sub/b", "sub/c", "ü", "with space")


def staged(folder: Path, kind: str = "sha1", *more: str) -> bytes:
    """The index of a commit with some files, after one more command."""
    for name in NAMES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (folder / "a").chmod(0o755)
    told(folder, "init", "-q", f"--object-format={kind}")
    told(folder, "add", ".")
    told(folder, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x")
    (folder / "later").write_text("x")
    if more:
        told(folder, *more)
    return (folder / ".git/index").read_bytes()


def told(folder: Path, *command: str) -> str:
    return subprocess.run(["git", *command], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("kind", ["sha1", "sha256"])
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(("update-index", "--index-version", "2"), id="2"),
        pytest.param(("add", "-N", "later"), id="3"),
        pytest.param(("update-index", "--index-version", "4"), id="4"),
    ],
)
def test_every_version_is_read_as_git_reads_it(tmp_path, kind, command):
    raw = staged(tmp_path, kind, *command)
    index = read_index(raw)
    assert index is not None
    rows = [f"{one.mode:o} {one.blob} 0\t{name.decode()}\0" for name, one in index.files.items()]

    assert "".join(rows) == told(tmp_path, "ls-files", "-sz")
    assert index.tree in ("", told(tmp_path, "rev-parse", "HEAD^{tree}").strip())
    assert index.is_merged


def test_the_tree_is_known_after_a_commit_and_not_after_more_was_staged(tmp_path):
    committed = read_index(staged(tmp_path))
    told(tmp_path, "add", "later")
    more = read_index((tmp_path / ".git/index").read_bytes())
    assert committed is not None
    assert more is not None

    assert (committed.tree, more.tree) == (told(tmp_path, "rev-parse", "HEAD^{tree}").strip(), "")


@pytest.mark.parametrize("raw", [b"", b"DIRC", b"x" * 100], ids=len)
def test_what_is_no_index_is_none(raw):
    assert read_index(raw) is None


def test_a_damaged_index_is_none(tmp_path):
    raw = staged(tmp_path)

    assert read_index(raw[:50] + b"x" + raw[51:]) is None
