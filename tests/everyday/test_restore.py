"""What a destructive command did is taken back by one undo: a sample of the 200 scripts of `make trials`."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from tests.ordinary import worktree
from tests.ordinary.person import myself
from tests.ordinary.picture import differences, picture, removed
from tests.ordinary.restoring import AT_LEAST, Outcome, batch, restored, scripts, summary

SAMPLE = (
    "git-files: reset hard",
    "git-files: clean of untracked and ignored files",
    "git-files: remove tracked files by git",
    "git-state: stash, then drop",
    "git-state: reflog expired and objects pruned",
    "git-folder: the repository removed",
    "remove: everything",
    "remove: names that are no text",
    "remove: a read-only folder",
    "move-and-copy: two folders swapped",
    "move-and-copy: a folder over a file",
    "move-and-copy: a link over a folder",
    "edit: the same size in place, the same time",
    "edit: a setuid file",
    "edit: dd in the middle",
    "modes-and-times: sticky and group bits",
    "archives: tar with other files over it",
    "databases: tables dropped by python",
    "cut-short: kills itself",
    "cut-short: in the background, and it ends",
)
OTHERS = (*SAMPLE[1:20:4], "modes-and-times: a folder closed when its files are gone")
"""What is tried as another user too."""
KNOWN = {script.id: script for script in scripts()}
LIMIT_SECONDS = 60


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    """Built once for each worker; every script has a copy."""
    folder = tmp_path_factory.mktemp("trees")
    yield worktree.built(folder / "trees")
    removed(folder / "trees")


@pytest.mark.parametrize("name", SAMPLE)
async def test_one_undo_brings_back_what_a_command_destroyed(trees, needs, name):
    with myself() as person:
        needs(person, "namespaces")
        outcome = await asyncio.wait_for(restored(KNOWN[name], trees, person.home, "namespaces"), LIMIT_SECONDS)

    assert (outcome.wrong, outcome.unsaid) == ([], "")


def test_one_undo_brings_it_back_for_another_user(other_user, needs):
    needs(other_user, "namespaces")
    outcomes = list(batch(other_user, [KNOWN[name] for name in OTHERS], "namespaces"))

    assert all(one.good for one in outcomes), summary(outcomes)


def test_the_list_is_long_enough_and_names_no_script_twice():
    ids = [script.id for script in scripts()]

    assert len(ids) == len(set(ids)) >= AT_LEAST
    assert {script.git for script in scripts()} == {"", "moves", "removes", "breaks"}


async def test_a_tree_that_is_copied_anew_counts_as_brought_back(trees, tmp_path):
    outcome = await restored(KNOWN["cut-short: two commands in one call"], trees, tmp_path, "none", copy=True)

    assert (outcome.wrong, outcome.changed[:2]) == ([], ["lost 'debug.log'", "lost 'docs'"])


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda top: (top / "README.md").chmod(0o600), ["'README.md' is file 0600"]),
        (lambda top: (top / "notes.txt").write_text("Words that are nowhere else\n"), ["'notes.txt' is file 0644 28"]),
        (lambda top: (top / "notes.txt").unlink(), ["lost 'notes.txt'"]),
        (lambda top: (top / "new").mkdir(), ["left 'new'"]),
        (lambda top: (top / "empty/inner").rmdir(), ["lost 'empty/inner'"]),
        (lambda top: turned(top / "dangling", "elsewhere"), ["'dangling' is link elsewhere"]),
        (lambda top: turned(top / "empty/inner", "src"), ["'empty/inner' is link src"]),
        (lambda top: replaced(top / "pipe"), ["'pipe' is file 0644 0"]),
        (lambda top: (top / "shared").chmod(0o775), ["'shared' is folder 0775"]),
        (lambda top: (top / "suid-tool").chmod(0o755), ["'suid-tool' is file 0755"]),
        (lambda top: (top / os.fsdecode(b"bad-\xff\xfe.txt")).unlink(), [r"lost 'bad-\udcff\udcfe.txt'"]),
        (lambda top: shutil.rmtree(top / ".git"), ["lost '.git'"]),
        (lambda top: top.chmod(0o700), ["'.' is folder 0700"]),
        (lambda top: os.utime(top / "README.md", (1, 1)), []),
        (lambda top: (top / "node_modules/left/index.js").unlink(), []),
        (lambda top: (top / ".git/HEAD").write_text("ref: refs/heads/topic\n"), []),
    ],
)
def test_the_comparison_sees_every_change_that_counts_and_no_other(trees, tmp_path, change, found):
    top = worktree.copied(trees["plain"], tmp_path / "copy")
    before = picture(top, worktree.REMADE)
    change(top)
    seen = differences(before, picture(top, worktree.REMADE))
    removed(top)

    assert [one[: len(start)] for one, start in zip(seen, found, strict=True)] == found


def turned(path: Path, target: str) -> None:
    if path.is_symlink():
        path.unlink()
    else:
        path.rmdir()
    path.symlink_to(target)


def replaced(path: Path) -> None:
    path.unlink()
    path.touch(0o644)


def test_a_script_that_was_not_tried_is_named_in_the_summary():
    outcomes = [Outcome(id="a"), Outcome(id="b", wrong=["lost 'x'"]), Outcome(id="c", skipped="there is no rsync")]

    assert summary(outcomes) == "1 of 2; b: lost 'x'; NOT TRIED c: there is no rsync"
