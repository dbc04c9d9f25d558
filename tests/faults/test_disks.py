"""Disks that are full, read-only or somebody else's: a plain error, nothing half done (faults 4 and 7)."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.faults.desk import Desk, picture
from tests.faults.errands import refusal
from tests.faults.stage import Stage, mounting, why_no_mounts

NOBODY = 65534


@pytest.fixture
def prepared(home):
    """A home with a workspace of one file, and a journal."""
    for name in ("workspace", "journal", "locks"):
        (home / name).mkdir()
    (home / "workspace" / "file").write_bytes(b"old\n")
    return home


def test_a_full_disk_keeps_the_old_file_and_lets_go_of_the_new_one(prepared, cannot):
    if reason := why_no_mounts():
        cannot(f"a disk of 400 kB: {reason}. Writes that fail with ENOSPC are tested.")
    with Stage(mounting(f"mount -t tmpfs -o size=400k none '{prepared}/workspace'")) as stage:
        report = stage.play(errand="full-disk", home=str(prepared))["report"]

    assert report.pop("said") == f"ENOSPC: no space left on device: {prepared}/workspace/file. Nothing was changed."
    assert report == {"kept": True, "left": [], "pending": [], "edited": True, "undone": True}


def test_a_full_disk_of_the_journal_stops_the_write_and_says_which_disk_it_is(prepared, cannot):
    if reason := why_no_mounts():
        cannot(f"a disk of 400 kB: {reason}. Writes that fail with ENOSPC are tested.")
    with Stage(mounting(f"mount -t tmpfs -o size=400k none '{prepared}/journal'")) as stage:
        report = stage.play(errand="full-state", home=str(prepared))["report"]

    assert report.pop("said").startswith(f"ENOSPC: no space left on device: {prepared}/journal/pending/")
    assert report == {"kept": True, "left": [], "history": 1, "undone": True}


def test_a_read_only_disk_is_a_plain_error(prepared, cannot):
    if reason := why_no_mounts():
        cannot(f"a read-only disk: {reason}.")
    root = prepared / "workspace"
    read_only = (f"mount --bind '{root}' '{root}'", f"mount -o remount,bind,ro '{root}'")
    with Stage(mounting(*read_only)) as stage:
        report = stage.play(errand="read-only", home=str(prepared))["report"]

    assert report == {
        "said": [
            f"EACCES: the file is read-only: {root}/file. Nothing was changed.",
            f"EROFS: read-only file system: {root}/made/new.txt. Nothing was changed.",
            f"EROFS: read-only file system: {root}/file. Nothing was changed.",
        ],
        "kept": True,
        "names": ["file"],
        "pending": [],
        "history": 0,
    }


def test_a_folder_that_one_may_not_write_is_a_plain_error(prepared, stage):
    root = prepared / "workspace"
    root.chmod(0o555)
    user = _give_away(prepared / "journal", prepared / "locks")
    report = stage.play(errand="read-only", home=str(prepared), user=user)["report"]
    root.chmod(0o755)

    assert [said.split(":")[0] for said in report.pop("said")] == ["EACCES"] * 3
    assert report == {"kept": True, "names": ["file"], "pending": [], "history": 0}


def test_a_file_that_one_may_not_write_is_not_replaced_although_the_folder_allows_it(prepared, stage, cannot):
    if os.geteuid():
        cannot("files of another user: only root can make them.")
    root = prepared / "workspace"
    (root / "theirs").write_bytes(b"old\n")
    (root / "theirs").chmod(0o644)
    (root / "shared").write_bytes(b"old\n")
    (root / "shared").chmod(0o6666)
    user = _give_away(prepared / "journal", prepared / "locks", root)
    report = stage.play(errand="strangers", home=str(prepared), user=user)["report"]

    assert report == {
        "said": f"EACCES: the file is read-only: {root}/theirs. Nothing was changed.",
        "theirs": True,
        "shared": True,
        "mode": 0o666,
        "notes": [f"{root}/shared belonged to another user; the new file belongs to this one."],
    }


def test_a_file_that_cannot_be_changed_at_all_is_a_plain_error(cannot):
    with tempfile.TemporaryDirectory(prefix="ferrule-immutable-") as home, Desk(home) as desk:
        desk.write("file", b"old\n")
        before = picture(desk.root)
        locked = subprocess.run(["chattr", "+i", desk.path("file")], capture_output=True, text=True, check=False)
        if locked.returncode:
            cannot(f"immutable files: {locked.stderr.strip()}.")
        try:
            said = [refusal(lambda: desk.write("file", b"new\n")), refusal(lambda: desk.write("file", None))]
            after = picture(desk.root)
        finally:
            subprocess.run(["chattr", "-i", desk.path("file")], check=True)

        assert said == [
            f"EACCES: the file is read-only: {desk.path('file')}. Nothing was changed.",
            f"EPERM: operation not permitted: {desk.path('file')}. Nothing was changed.",
        ]
        assert after == before
        assert desk.pending() == []
        assert desk.write("file", b"new\n").entry_id


def _give_away(*folders: Path) -> int:
    """Root is asked for nothing: the test runs as somebody else, who gets these folders."""
    if os.geteuid():
        return 0
    for folder in folders:
        os.chown(folder, NOBODY, NOBODY)
    return NOBODY


_READ_ON_A_FULL_DISK = """
import os, sys
from ferrule.system.sqlite import UnusableError
from ferrule.tools.threads.store import Item, ThreadStore

folder = sys.argv[1]
store = ThreadStore(folder + "/threads")
store.append("T-1", [Item("turn", "user", b"{}", "words")])
store.close()
with open(folder + "/much", "wb", buffering=0) as file:
    try:
        while file.write(bytes(1024)):
            pass
    except OSError:
        pass
try:
    store.find("words")
except UnusableError as error:
    print(error)
os.remove(folder + "/much")
print([finding.about.id for finding in store.find("words").found])
"""


def test_whoever_reads_threads_on_a_full_disk_is_told_that_it_is_full(home, cannot):
    if reason := why_no_mounts():
        cannot(f"a disk of 400 kB: {reason}. A file that may not grow is tested.")
    argv = [*mounting(f"mount -t tmpfs -o size=400k none '{home}'"), sys.executable, "-c", _READ_ON_A_FULL_DISK]
    said = subprocess.run([*argv, str(home)], check=True, capture_output=True, text=True, timeout=60).stdout

    assert said == f"The store of threads {home}/threads/threads.db has no room left on its disk.\n['T-1']\n"
