"""Undo and redo: every write can be taken back and brought again, and nothing is lost on the way."""

import os
import stat
import tempfile

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.faults.desk import Desk, picture, temporary

from ferrule.core.errors import ToolFailure
from ferrule.files.journal import FileChange
from ferrule.files.ledger import fingerprint
from ferrule.files.transaction import Contents

MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Hundreds of examples with an fsync in each step take long on a disk."""
NAMES = ("a", "b", "new/c")
CONTENTS = st.one_of(st.none(), st.binary(max_size=12), st.sampled_from([b"", b"same", b"x" * 100]))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.dictionaries(st.sampled_from(NAMES), CONTENTS, min_size=1, max_size=3)),
        st.tuples(st.just("undo"), st.none()),
        st.tuples(st.just("redo"), st.none()),
        st.tuples(st.just("undo"), st.sampled_from(NAMES)),
        st.tuples(st.just("redo"), st.sampled_from(NAMES)),
    ),
    max_size=14,
)


@pytest.fixture
def desk(tmp_path):
    with Desk(tmp_path) as opened:
        yield opened


def contents(desk: Desk) -> dict[str, bytes | None]:
    return {name: desk.bytes(name) for name in NAMES}


def put(desk: Desk, name: str, content: bytes, mode: int = 0o644) -> None:
    os.makedirs(os.path.dirname(desk.path(name)), exist_ok=True)
    with open(desk.path(name), "wb") as file:
        file.write(content)
    os.chmod(desk.path(name), mode)


def mode(desk: Desk, name: str) -> int:
    return stat.S_IMODE(os.stat(desk.path(name)).st_mode)


Change = dict[str, tuple[bytes | None, bytes | None]]
"""Name → content before and after."""


class Model:
    """What undo and redo mean, on a dictionary: a list of changes, of which the last done one is undone first."""

    def __init__(self) -> None:
        self.files: Contents = dict.fromkeys(NAMES)
        self.done: list[Change] = []
        self.undone: list[Change] = []

    def write(self, new: Contents) -> None:
        change = {name: (self.files[name], content) for name, content in new.items() if self.files[name] != content}
        if change:
            self.files = {**self.files, **new}
            self.done.append(change)
            self.undone = [old for old in self.undone if not old.keys() & change.keys()]

    def step(self, name: str | None, source: list[Change], goal: list[Change], side: int) -> str | None:
        """Whether there was something to step over, and whether it could be done without losing something."""
        at = next((at for at in reversed(range(len(source))) if name is None or name in source[at]), None)
        if at is None:
            return "no-history"
        change = source[at]
        if any(self.files[name] not in (sides[side], sides[1 - side]) for name, sides in change.items()):
            return "changed-since"
        goal.append(source.pop(at))
        self.files = {**self.files, **{name: sides[side] for name, sides in change.items()}}
        return None


@settings(max_examples=200)
@given(STEPS)
@example([("write", {"a": b"", "b": b""}), ("undo", None), ("write", {"b": b""}), ("redo", "a")])
@example([("write", {"a": b""}), ("write", {"a": None}), ("write", {"a": b""}), ("undo", None), ("undo", None)])
def test_any_sequence_of_writes_undos_and_redos_does_what_it_says(steps):
    """In turns by two engines on the same workspace."""
    model = Model()
    with tempfile.TemporaryDirectory(dir=MEMORY) as home, Desk(home) as one, Desk(home) as other:
        for at, (what, which) in enumerate(steps):
            desk = (one, other)[at % 2]
            if what == "write":
                desk.write_all(which)
                model.write(which)
                continue
            back = what == "undo"
            path = None if which is None else desk.path(which)
            sides = (model.done, model.undone, 0) if back else (model.undone, model.done, 1)
            expected = model.step(which, *sides)
            try:
                (desk.undo.undo_last if back else desk.undo.redo_last)(path)
                code = None
            except ToolFailure as refused:
                code = refused.code
            assert code == expected
            assert contents(desk) == model.files
        assert one.history() == other.history()
        assert [len(stack) for stack in one.history()] == [len(model.done), len(model.undone)]
        assert one.pending() + temporary(home) == []


@settings(max_examples=30)
@given(st.lists(st.binary(max_size=40), min_size=1, max_size=8, unique=True))
def test_all_the_way_back_and_forth_again(versions):
    with tempfile.TemporaryDirectory(dir=MEMORY) as home, Desk(home) as desk:
        for version in versions:
            desk.write("deep/file", version)
        for version in [*reversed(versions[:-1]), None]:
            desk.undo.undo_last()
            assert desk.bytes("deep/file") == version
        assert picture(desk.root) == {}
        for version in versions:
            desk.undo.redo_last()
            assert desk.bytes("deep/file") == version


def test_an_undo_tells_what_it_found_and_left(desk):
    desk.write("a", b"one")
    desk.write("a", b"two")
    undone = desk.undo.undo_last()

    assert undone.before == {desk.path("a"): b"two"}
    assert undone.after == {desk.path("a"): b"one"}
    assert undone.entry.kind == "write"


@pytest.mark.parametrize("path", [None, "a"])
def test_with_nothing_to_undo_or_redo_it_says_so(desk, path):
    path = path and desk.path(path)
    where = f"file '{path}'" if path else "this workspace"
    with pytest.raises(ToolFailure) as undoing:
        desk.undo.undo_last(path)
    with pytest.raises(ToolFailure) as redoing:
        desk.undo.redo_last(path)

    assert undoing.value.message == f"No edit history found for {where}."
    assert redoing.value.message == f"Nothing to redo for {where}."
    assert (undoing.value.code, redoing.value.code) == ("no-history", "no-history")


def test_one_file_can_be_undone_without_the_others(desk):
    desk.write("a", b"a1")
    desk.write("b", b"b1")
    desk.write("a", b"a2")
    desk.write("b", b"b2")
    desk.undo.undo_last(desk.path("a"))

    assert contents(desk) == {"a": b"a1", "b": b"b2", "new/c": None}
    desk.undo.undo_last()
    assert contents(desk) == {"a": b"a1", "b": b"b1", "new/c": None}


def test_a_new_write_ends_the_redo_of_its_files_only(desk):
    desk.write("a", b"a1")
    desk.write("b", b"b1")
    desk.undo.undo_last()
    desk.undo.undo_last()
    desk.write("a", b"a2")

    with pytest.raises(ToolFailure, match="Nothing to redo"):
        desk.undo.redo_last(desk.path("a"))
    desk.undo.redo_last()
    assert contents(desk) == {"a": b"a2", "b": b"b1", "new/c": None}


@pytest.mark.parametrize("theirs", [b"by hand", None, b""], ids=["changed", "removed", "emptied"])
@pytest.mark.parametrize("way", ["undo", "redo"])
def test_what_was_changed_since_is_not_lost(desk, way, theirs):
    desk.write("a", b"one")
    desk.write("a", b"two")
    if way == "redo":
        desk.undo.undo_last()
    if theirs is None:
        os.unlink(desk.path("a"))
    else:
        put(desk, "a", theirs)
    with pytest.raises(ToolFailure) as caught:
        (desk.undo.undo_last if way == "undo" else desk.undo.redo_last)()

    assert caught.value.code == "changed-since"
    assert caught.value.path == desk.path("a")
    assert desk.bytes("a") == theirs
    assert desk.pending() == []


def test_the_same_size_and_time_do_not_hide_a_change(desk):
    desk.write("a", b"one")
    desk.write("a", b"two")
    times = os.stat(desk.path("a"))
    put(desk, "a", b"TWO")
    os.utime(desk.path("a"), ns=(times.st_atime_ns, times.st_mtime_ns))

    with pytest.raises(ToolFailure) as caught:
        desk.undo.undo_last()
    assert caught.value.code == "changed-since"
    assert desk.bytes("a") == b"TWO"


def test_several_files_are_undone_together_or_not_at_all(desk):
    put(desk, "a", b"old a")
    put(desk, "b", b"old b")
    desk.write_all({"a": b"new a", "b": None, "new/c": b"new c"})
    after = picture(desk.root)
    put(desk, "b", b"by hand")
    with pytest.raises(ToolFailure):
        desk.undo.undo_last()
    refused = picture(desk.root)
    os.unlink(desk.path("b"))
    desk.undo.undo_last()

    assert refused == {**after, "b": (0o644, b"by hand")}
    assert picture(desk.root) == {"a": (0o644, b"old a"), "b": (0o644, b"old b")}


def test_a_write_that_was_taken_back_by_hand_counts_as_undone(desk):
    desk.write("a", b"one")
    desk.write("a", b"two")
    put(desk, "a", b"one")
    first = desk.undo.undo_last()
    second = desk.undo.undo_last()

    assert first.after == {desk.path("a"): b"one"}
    assert second.after == {desk.path("a"): None}
    desk.undo.redo_last()
    desk.undo.redo_last(desk.path("a"))
    assert desk.bytes("a") == b"two"


def test_undoing_a_creation_removes_the_file_and_the_folders_made_for_it(desk):
    put(desk, "kept/file", b"old")
    desk.write("kept/x/y/file", b"new")
    desk.undo.undo_last()

    assert picture(desk.root) == {"kept/": (0o755, b""), "kept/file": (0o644, b"old")}


def test_folders_that_hold_something_else_by_now_stay(desk):
    desk.write("x/y/file", b"new")
    put(desk, "x/theirs", b"theirs")
    desk.undo.undo_last()

    assert picture(desk.root) == {"x/": (0o755, b""), "x/theirs": (0o644, b"theirs")}


def test_folders_that_were_there_before_stay_although_they_are_empty(desk):
    os.makedirs(desk.path("x/y"))
    desk.write("x/y/file", b"new")
    desk.undo.undo_last()

    assert picture(desk.root) == {"x/": (0o755, b""), "x/y/": (0o755, b"")}


def test_redoing_a_creation_makes_the_folders_again_and_undoing_it_removes_them_again(desk):
    desk.write("x/y/file", b"new")
    for _ in range(3):
        desk.undo.undo_last()
        assert picture(desk.root) == {}
        desk.undo.redo_last()
        assert desk.bytes("x/y/file") == b"new"


@pytest.mark.parametrize("bits", [0o600, 0o755, 0o640])
def test_undoing_a_removal_brings_the_permission_bits_back(desk, bits):
    put(desk, "a", b"private", bits)
    desk.write("a", None)
    desk.undo.undo_last()

    assert desk.bytes("a") == b"private"
    assert mode(desk, "a") == bits


def test_permission_bits_that_were_changed_since_stay_as_they_are(desk):
    desk.write("a", b"one")
    desk.write("a", b"two")
    os.chmod(desk.path("a"), 0o700)
    desk.undo.undo_last()

    assert (desk.bytes("a"), mode(desk, "a")) == (b"one", 0o700)


def test_a_removal_from_a_folder_that_is_gone_is_undone_with_the_folder(desk):
    put(desk, "x/a", b"old")
    desk.write("x/a", None)
    os.rmdir(desk.path("x"))
    desk.undo.undo_last()

    assert desk.bytes("x/a") == b"old"


def test_two_engines_on_one_workspace_share_the_history(tmp_path):
    with Desk(tmp_path) as one, Desk(tmp_path) as other:
        one.write("a", b"1")
        other.write("a", b"2")
        one.write("b", b"3")
        other.write("a", b"4")
        assert one.history() == other.history()
        other.undo.undo_last()
        assert one.history() == other.history()
        one.undo.undo_last()
        other.undo.undo_last()
        assert contents(one) == {"a": b"1", "b": None, "new/c": None}
        one.undo.redo_last()
        other.undo.redo_last()
        one.undo.redo_last()
        assert contents(one) == {"a": b"4", "b": b"3", "new/c": None}
        assert one.history() == other.history()


def test_a_file_outside_of_the_workspace_by_now_is_not_undone(desk, tmp_path):
    (tmp_path / "extra").mkdir()
    desk.jail.add(str(tmp_path / "extra"))
    real = str(tmp_path / "extra" / "a")
    desk.writer.apply([real], lambda _: {real: b"new"}, kind="write")

    with Desk(tmp_path) as narrower, pytest.raises(ToolFailure) as caught:
        narrower.undo.undo_last()
    assert caught.value.code == "outside-workspace"
    assert (tmp_path / "extra" / "a").read_bytes() == b"new"


def test_a_link_put_in_the_files_place_is_not_followed(desk, tmp_path):
    (tmp_path / "theirs").write_bytes(b"two")
    desk.write("a", b"one")
    desk.write("a", b"two")
    os.unlink(desk.path("a"))
    os.symlink(tmp_path / "theirs", desk.path("a"))

    with pytest.raises(ToolFailure, match="ELOOP"):
        desk.undo.undo_last()
    assert (tmp_path / "theirs").read_bytes() == b"two"


def test_a_change_whose_bytes_are_gone_is_refused_and_says_why(desk):
    desk.write("a", b"one")
    desk.write("a", b"two")
    folder = os.path.join(desk.journal.folder, "entries")
    last = os.path.join(folder, max(os.listdir(folder)))
    with open(last, "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"!")

    with pytest.raises(ToolFailure, match=r"Cannot undo: its journal entry is damaged\. Nothing was changed") as caught:
        desk.undo.undo_last()
    assert caught.value.code == "journal-damaged"
    assert desk.bytes("a") == b"two"


def test_a_change_that_does_not_fit_the_file_is_refused(desk):
    put(desk, "a", b"new content")
    wrong = FileChange(
        path=desk.path("a"),
        temp=".ferrule-1.tmp",
        before=fingerprint(b"old content"),
        after=fingerprint(b"new content"),
        start=1,
        old=3,
        new=3,
    )
    desk.journal.commit(desk.journal.announce("write", [wrong], b"oldnew"))

    with pytest.raises(ToolFailure, match="the journal does not fit") as caught:
        desk.undo.undo_last()
    assert caught.value.code == "journal-damaged"
    assert desk.bytes("a") == b"new content"
