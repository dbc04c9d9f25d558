"""Drafts: each hand sees its own copy, nothing reaches the workspace before all of it does, and nothing is left."""

import os
import signal
import stat
import subprocess
import sys

import pytest
from tests.direct import Direct

from ferrule.checkpoints.undo import Drafts, Undo
from ferrule.core.errors import ToolFailure
from ferrule.files.transaction import Writer
from ferrule.system.folder import try_lock
from ferrule.tools.files.edit import Edit, Write
from ferrule.tools.files.read import Read


class Hand(Direct):
    """Tools that have the services of one draft."""

    def __init__(self, folder, services):
        super().__init__(folder)
        self.services._made |= services


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "a.txt").write_text("one\ntwo\n")
    (folder / "b.txt").write_text("three\n")
    direct = Direct(folder)
    yield direct
    direct.close()


@pytest.fixture
def root(home, tmp_path):
    return tmp_path / "workspace"


@pytest.fixture
def drafts(home, root, tmp_path):
    made = Drafts(home.jail, str(tmp_path / "drafts"))
    made.begin([str(root / name) for name in ("a.txt", "b.txt", "deep/new.txt")])
    yield made
    made.close()


def hand(drafts, root, name):
    return Hand(root, drafts.services(str(root / name)))


def left(tmp_path):
    return [os.path.join(at, name) for at, _, names in os.walk(tmp_path / "drafts") for name in names]


async def test_an_edit_goes_to_the_draft_and_is_read_back_from_it(drafts, root):
    one = hand(drafts, root, "a.txt")
    await one(Edit(), path="a.txt", old="two", new="2")
    seen = await one(Read(), path=str(root / "a.txt"))
    again = await one(Edit(), path="a.txt", old="2", new="zwei")

    assert seen.lines == ("one", "2")
    assert again.path == str(root / "a.txt")
    assert (root / "a.txt").read_text() == "one\ntwo\n"
    assert drafts.find_changed() == {str(root / "a.txt"): b"one\nzwei\n"}


async def test_two_hands_never_see_each_other_s_drafts(drafts, root):
    one, other = hand(drafts, root, "a.txt"), hand(drafts, root, "b.txt")
    await one(Edit(), path="a.txt", old="two", new="2")
    await other(Edit(), path="b.txt", old="three", new="3")

    assert (await other(Read(), path="a.txt")).lines == ("one", "two")
    assert (await one(Read(), path="b.txt")).lines == ("three",)


@pytest.mark.parametrize("name", ["b.txt", "deep/new.txt", "other.txt"])
async def test_only_the_one_file_can_be_written(drafts, root, name):
    one = hand(drafts, root, "a.txt")
    with pytest.raises(ToolFailure) as raised:
        await one(Write(), path=name, content="x")

    assert raised.value.code == "only-one-file"
    assert str(root / "a.txt") in raised.value.message
    assert sorted(path.name for path in root.iterdir()) == ["a.txt", "b.txt"]
    assert drafts.find_changed() == {}


async def test_a_file_is_made_only_by_the_commit(drafts, home, root):
    one = hand(drafts, root, "deep/new.txt")
    await one(Write(), path="deep/new.txt", content="new")
    assert not (root / "deep").exists()

    written = drafts.commit(home.services[Writer], drafts.find_changed(), call_id="c")

    assert (root / "deep" / "new.txt").read_text() == "new\n"
    assert written.entry_id


async def test_all_drafts_are_one_write_and_one_undo_takes_them_back(drafts, home, root):
    for name, old, new in (("a.txt", "one", "1"), ("b.txt", "three", "3")):
        await hand(drafts, root, name)(Edit(), path=name, old=old, new=new)
    await hand(drafts, root, "deep/new.txt")(Write(), path="deep/new.txt", content="new")
    drafts.commit(home.services[Writer], drafts.find_changed(), call_id="c")
    undo = home.services[Undo]
    (entry,) = undo.history()[0]

    assert [(root / name).read_text() for name in ("a.txt", "b.txt", "deep/new.txt")] == ["1\ntwo\n", "3\n", "new\n"]
    assert (entry.kind, entry.call_id, len(entry.files)) == ("edit", "c", 3)
    undo.undo_last()
    assert [(root / name).read_text() for name in ("a.txt", "b.txt")] == ["one\ntwo\n", "three\n"]
    assert not (root / "deep").exists()


@pytest.mark.parametrize(
    ("name", "meanwhile"),
    [
        pytest.param("b.txt", lambda root: (root / "b.txt").write_text("theirs\n"), id="written"),
        pytest.param("b.txt", lambda root: (root / "b.txt").unlink(), id="removed"),
        pytest.param(
            "deep/new.txt",
            lambda root: ((root / "deep").mkdir(), (root / "deep" / "new.txt").write_text("theirs\n")),
            id="made",
        ),
    ],
)
async def test_what_somebody_else_has_changed_meanwhile_stops_all_of_it(drafts, home, root, name, meanwhile):
    await hand(drafts, root, "a.txt")(Edit(), path="a.txt", old="one", new="1")
    await hand(drafts, root, name)(Write(), path=name, content="ours")
    meanwhile(root)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    with pytest.raises(ToolFailure) as raised:
        drafts.commit(home.services[Writer], drafts.find_changed(), call_id="c")

    assert raised.value.code == "changed-meanwhile"
    assert raised.value.path == str(root / name)
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("place", ["link-out", "folder-link"])
async def test_a_link_put_in_the_place_of_a_file_is_not_followed(drafts, home, root, tmp_path, place):
    await hand(drafts, root, "a.txt")(Edit(), path="a.txt", old="one", new="1")
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "a.txt").write_text("one\ntwo\n")
    if place == "link-out":
        (root / "a.txt").unlink()
        (root / "a.txt").symlink_to(victim / "a.txt")
    else:
        root.rename(tmp_path / "moved")
        root.symlink_to(victim)
    with pytest.raises(ToolFailure):
        drafts.commit(home.services[Writer], drafts.find_changed(), call_id="c")

    assert (victim / "a.txt").read_text() == "one\ntwo\n"


async def test_a_file_that_is_read_only_is_so_as_a_draft(home, root, tmp_path):
    (root / "a.txt").chmod(0o444)
    drafts = Drafts(home.jail, str(tmp_path / "drafts"))
    drafts.begin([str(root / "a.txt")])
    try:
        with pytest.raises(ToolFailure, match="read-only"):
            await hand(drafts, root, "a.txt")(Edit(), path="a.txt", old="one", new="1")
    finally:
        drafts.close()


async def test_the_mode_of_a_file_is_kept(drafts, home, root):
    (root / "a.txt").chmod(0o755)
    await hand(drafts, root, "a.txt")(Edit(), path="a.txt", old="one", new="1")
    drafts.commit(home.services[Writer], drafts.find_changed(), call_id="c")

    assert stat.S_IMODE((root / "a.txt").stat().st_mode) == 0o755


def test_the_copies_are_private_and_go_with_their_end(home, root, tmp_path):
    drafts = Drafts(home.jail, str(tmp_path / "drafts"))
    drafts.begin([str(root / "a.txt")])
    (scratch,) = [path for path in (tmp_path / "drafts").iterdir() if path.is_dir()]

    assert stat.S_IMODE(scratch.stat().st_mode) == 0o700
    drafts.close()
    drafts.close()
    assert list((tmp_path / "drafts").iterdir()) == []


def test_a_beginning_that_fails_leaves_nothing_after_its_end(home, root, tmp_path):
    (root / "pipe").mkdir()
    drafts = Drafts(home.jail, str(tmp_path / "drafts"))
    with pytest.raises(ToolFailure, match="Nothing was changed"):
        drafts.begin([str(root / "a.txt"), str(root / "pipe")])
    drafts.close()

    assert left(tmp_path) == []


def test_too_much_is_refused(home, root, tmp_path, monkeypatch):
    monkeypatch.setattr("ferrule.checkpoints.undo.TOTAL_BYTES", 10)
    drafts = Drafts(home.jail, str(tmp_path / "drafts"))
    with pytest.raises(ToolFailure) as raised:
        drafts.begin([str(root / "a.txt"), str(root / "b.txt")])
    drafts.close()

    assert raised.value.code == "too-large"
    assert left(tmp_path) == []


KILLED = """
import os, signal, sys
from ferrule.checkpoints.undo import Drafts
from ferrule.files.jail import Jail
drafts = Drafts(Jail(sys.argv[1]), sys.argv[2])
drafts.begin([os.path.join(sys.argv[1], "a.txt")])
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_left_goes_with_the_next_and_what_lives_stays(home, root, tmp_path):
    folder = tmp_path / "drafts"
    alive = Drafts(home.jail, str(folder))
    alive.begin([str(root / "a.txt")])
    killed = subprocess.run([sys.executable, "-c", KILLED, str(root), str(folder)], check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert len([path for path in folder.iterdir() if path.is_dir()]) == 2

    last = Drafts(home.jail, str(folder))
    last.begin([str(root / "b.txt")])

    assert len([path for path in folder.iterdir() if path.is_dir()]) == 2
    assert alive.find_changed() == {}
    last.close()
    alive.close()
    assert list(folder.iterdir()) == []


def test_a_lock_that_another_sweep_has_taken_is_given_up(home, root, tmp_path, monkeypatch):
    tries = []

    def shy(descriptor):
        tries.append(descriptor)
        return len(tries) > 1 and try_lock(descriptor)

    monkeypatch.setattr("ferrule.checkpoints.undo.try_lock", shy)
    drafts = Drafts(home.jail, str(tmp_path / "drafts"))
    drafts.begin([str(root / "a.txt")])

    assert len(tries) == 2
    assert drafts.find_changed() == {}
    drafts.close()
