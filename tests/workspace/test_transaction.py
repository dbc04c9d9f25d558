"""A write is all or nothing, keeps what is not content, and never overwrites what somebody else wrote (rule F2)."""

import contextlib
import errno
import os
import stat
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.descriptors import open_now
from tests.faults.desk import Desk, Picture, picture, temporary

from ferrule.core.errors import ToolFailure
from ferrule.files import transaction
from ferrule.files.journal import find_changed_span
from ferrule.files.ledger import fingerprint
from ferrule.system.folder import Locks

ACCESS_LIST = "system.posix_acl_access"


@pytest.fixture
def desk(tmp_path):
    with Desk(tmp_path) as opened:
        yield opened


def put(desk: Desk, name: str, content: bytes, mode: int = 0o644) -> None:
    os.makedirs(os.path.dirname(desk.path(name)), exist_ok=True)
    with open(desk.path(name), "wb") as file:
        file.write(content)
    os.chmod(desk.path(name), mode)


def mode(desk: Desk, name: str) -> int:
    return stat.S_IMODE(os.lstat(desk.path(name)).st_mode)


def check_untouched(desk: Desk, before: Picture) -> None:
    """Nothing of a failed write is to be seen anywhere."""
    assert picture(desk.root) == before
    assert desk.pending() == []
    assert temporary(os.path.dirname(desk.root)) == []


_waiting: list[tuple[Callable[[str, tuple[Any, ...]], bool], Callable[[], object]]] = []


def _hear(event: str, args: tuple[Any, ...]) -> None:
    if _waiting and _waiting[-1][0](event, args):
        _waiting.pop()[1]()


_hooks: list[object] = []


@contextlib.contextmanager
def just_before(when: Callable[[str, tuple[Any, ...]], bool], action: Callable[[], object]) -> Iterator[None]:
    """Do something once, in the middle of a write: Python tells of every open and rename before it is made."""
    if not _hooks:
        sys.addaudithook(_hear)
        _hooks.append(_hear)
    _waiting.append((when, action))
    try:
        yield
        assert _waiting == [], "it never came to that"
    finally:
        _waiting.clear()


def second_rename() -> Callable[[str, tuple[Any, ...]], bool]:
    renames: list[object] = []

    def when(event: str, args: tuple[Any, ...]) -> bool:
        if event == "os.rename":
            renames.append(args)
        return len(renames) == 2

    return when


def staging(event: str, args: tuple[Any, ...]) -> bool:
    return event == "open" and str(args[0]).startswith(".ferrule-")


def test_a_write_says_what_it_found_and_what_it_left(desk):
    put(desk, "a", b"old")
    written = desk.write("a", b"new")

    assert written.before == {desk.path("a"): b"old"}
    assert written.after == {desk.path("a"): b"new"}
    assert written.entry_id == desk.journal.entries()[0].id
    assert written.notes == ()
    assert desk.bytes("a") == b"new"


def test_the_same_content_is_not_written_again(desk):
    put(desk, "a", b"same")
    before = os.stat(desk.path("a"))
    written = desk.write("a", b"same")

    assert written.entry_id == ""
    assert os.stat(desk.path("a")).st_ino == before.st_ino
    assert desk.journal.entries() == []


def test_an_empty_file_and_no_file_are_two_things(desk):
    assert desk.write("a", b"").entry_id
    assert desk.bytes("a") == b""
    assert desk.write("a", None).entry_id
    assert desk.bytes("a") is None
    assert desk.write("a", None).entry_id == ""


@pytest.mark.parametrize("bits", [0o600, 0o644, 0o755, 0o640, 0o666, 0o620, 0o2755, 0o4711])
def test_the_permission_bits_are_kept(desk, bits):
    put(desk, "a", b"old", bits)
    desk.write("a", b"new")

    assert desk.bytes("a") == b"new"
    assert mode(desk, "a") == bits


def test_a_new_file_obeys_the_umask(desk):
    old = os.umask(0o027)
    try:
        desk.write("made/a", b"new")
    finally:
        os.umask(old)

    assert mode(desk, "made/a") == 0o640
    assert mode(desk, "made") == 0o750


def test_the_owner_is_kept_by_who_may_keep_it(desk):
    put(desk, "a", b"old", 0o640)
    if os.geteuid() == 0:
        os.chown(desk.path("a"), 1234, 4321)
    before = os.stat(desk.path("a"))
    desk.write("a", b"new")
    after = os.stat(desk.path("a"))

    assert (after.st_uid, after.st_gid, after.st_mode) == (before.st_uid, before.st_gid, before.st_mode)


@pytest.mark.parametrize("listed", [True, False], ids=["list-of-the-file", "list-from-the-folder"])
def test_who_may_reach_a_file_does_not_change_with_its_content(desk, listed):
    entries = [(1, 6, -1), (2, 6, 1234), (4, 0, -1), (16, 6, -1), (32, 0, -1)]
    access = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    put(desk, "a", b"old", 0o640)
    try:
        if listed:
            os.setxattr(desk.path("a"), ACCESS_LIST, access)
        else:
            os.setxattr(desk.root, "system.posix_acl_default", access)
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
        return  # such a file system gives nobody such rights
    desk.write("a", b"new")

    assert mode(desk, "a") == (0o660 if listed else 0o640)
    assert (ACCESS_LIST in os.listxattr(desk.path("a"))) is listed
    if listed:
        assert os.getxattr(desk.path("a"), ACCESS_LIST) == access


def test_a_link_stays_a_link_and_its_target_is_written(desk):
    put(desk, "sub/target", b"old", 0o600)
    os.symlink("sub/target", desk.path("link"))
    real = desk.jail.real("link")
    desk.writer.apply([real], lambda _: {real: b"new"}, kind="write")

    assert os.readlink(desk.path("link")) == "sub/target"
    assert desk.bytes("sub/target") == b"new"
    assert mode(desk, "sub/target") == 0o600


def test_other_names_of_the_file_keep_the_old_content_and_the_reply_says_so(desk):
    put(desk, "a", b"old")
    os.link(desk.path("a"), desk.path("b"))
    written = desk.write("a", b"new")

    assert written.notes == (f"{desk.path('a')} had 2 hard links; this name now has a copy of its own.",)
    assert (desk.bytes("a"), desk.bytes("b")) == (b"new", b"old")


def test_removing_one_name_of_a_file_needs_no_word_about_the_others(desk):
    put(desk, "a", b"old")
    os.link(desk.path("a"), desk.path("b"))

    assert desk.write("a", None).notes == ()
    assert desk.bytes("b") == b"old"


@pytest.mark.parametrize("bits", [0o444, 0o400, 0o555, 0o000])
def test_a_read_only_file_is_refused(desk, bits):
    put(desk, "a", b"old", bits)
    with pytest.raises(ToolFailure, match=r"^EACCES: .*Nothing was changed\.$"):
        desk.write("a", b"new")

    os.chmod(desk.path("a"), 0o644)
    check_untouched(desk, {"a": (0o644, b"old")})


def test_a_read_only_file_can_be_removed_as_its_folder_allows(desk):
    put(desk, "a", b"old", 0o444)
    desk.write("a", None)

    assert desk.bytes("a") is None


def _folder(path):
    os.mkdir(path)


def _full_folder(path):
    os.mkdir(path)
    os.mkdir(os.path.join(path, "sub"))


def _dangling(path):
    os.symlink("nowhere", path)


def _link(path):
    os.symlink("/etc/hostname", path)


ODD = [
    pytest.param(_folder, "EISDIR: it is a directory", id="folder"),
    pytest.param(_full_folder, "EISDIR: it is a directory", id="full-folder"),
    pytest.param(os.mkfifo, "EINVAL: it is not a regular file", id="fifo"),
    pytest.param(_dangling, "ELOOP", id="dangling-link"),
    pytest.param(_link, "ELOOP", id="link"),
]


@pytest.mark.parametrize("content", [b"new", None], ids=["write", "remove"])
@pytest.mark.parametrize(("make", "words"), ODD)
def test_what_is_no_regular_file_is_neither_written_nor_removed(desk, make, words, content):
    make(desk.path("odd"))
    before = os.lstat(desk.path("odd"))
    with pytest.raises(ToolFailure) as caught:
        desk.write("odd", content)

    assert caught.value.message.startswith(words)
    assert caught.value.message.endswith("Nothing was changed.")
    assert os.lstat(desk.path("odd")).st_ino == before.st_ino
    assert os.listdir(desk.root) == ["odd"]
    assert desk.pending() == []


def test_the_workspace_itself_is_not_written(desk):
    with pytest.raises(ToolFailure, match="EISDIR"):
        desk.writer.apply([desk.root], lambda _: {desk.root: b"new"}, kind="write")


def test_a_file_in_the_way_of_a_folder_is_a_plain_error(desk):
    put(desk, "a", b"old")
    with pytest.raises(ToolFailure, match="ENOTDIR"):
        desk.write("a/b/c", b"new")

    check_untouched(desk, {"a": (0o644, b"old")})


def test_a_file_that_is_too_large_to_be_edited_is_refused(desk):
    with open(desk.path("huge"), "wb") as file:
        file.truncate(transaction.MOST_BYTES + 1)
    with pytest.raises(ToolFailure, match="EFBIG: it is too large to be edited"):
        desk.write("huge", b"new")

    assert os.stat(desk.path("huge")).st_size == transaction.MOST_BYTES + 1


def test_missing_folders_are_made_and_noted_in_the_journal(desk):
    put(desk, "x/old", b"old")
    desk.write("x/y/z/new", b"new")

    assert desk.bytes("x/y/z/new") == b"new"
    assert desk.journal.entries()[0].files[0].made == (desk.path("x/y"), desk.path("x/y/z"))


class TestSeveralFiles:
    """All of them or none."""

    def test_they_are_one_entry(self, desk):
        put(desk, "a", b"old a", 0o600)
        put(desk, "gone", b"old gone")
        written = desk.write_all({"a": b"new a", "sub/b": b"new b", "gone": None, "never": None})

        assert picture(desk.root) == {
            "a": (0o600, b"new a"),
            "sub/": (0o755, b""),
            "sub/b": (0o644, b"new b"),
        }
        assert [entry.id for entry in desk.journal.entries()] == [written.entry_id]
        assert [os.path.basename(file.path) for file in desk.journal.entries()[0].files] == ["a", "b", "gone"]

    @pytest.mark.parametrize("last", ["folder", "read-only", "link", "name-too-long", "changed"])
    def test_when_one_cannot_be_written_none_is(self, desk, last):
        put(desk, "a", b"old a", 0o640)
        put(desk, "gone", b"old gone", 0o600)
        names = {"folder": "z/folder", "read-only": "z/read", "link": "z/link", "name-too-long": "z/" + "n" * 300}
        name = names.get(last, "z/changed")
        put(desk, "z/changed", b"old z")
        put(desk, "z/read", b"old z", 0o444)
        os.mkdir(desk.path("z/folder"))
        if last == "link":
            os.symlink("changed", desk.path("z/link"))
        before = picture(desk.root)
        contents = {desk.path(n): c for n, c in {"a": b"new a", "new/b": b"new b", "gone": None, name: b"z"}.items()}

        def plan(found):
            if last == "changed":
                put(desk, "z/changed", b"by hand")
            return contents

        with pytest.raises(ToolFailure):
            desk.writer.apply(list(contents), plan, kind="write")
        if last == "changed":
            before["z/changed"] = (0o644, b"by hand")
        check_untouched(desk, before)
        assert desk.journal.entries() == []

    def test_what_was_renamed_already_is_brought_back_when_a_later_one_cannot_be(self, desk):
        put(desk, "a", b"old a", 0o640)
        put(desk, "b/b", b"old b", 0o600)
        put(desk, "c", b"old c")
        before = picture(desk.root)
        names = ("a", "new/n", "b/b", "c")

        contents = {desk.path(name): b"new" for name in names}
        with just_before(second_rename(), lambda: put(desk, "c", b"by hand")), pytest.raises(ToolFailure) as caught:
            desk.writer.apply(list(contents), lambda _: contents, kind="write")

        assert caught.value.code == "changed-meanwhile"
        before["c"] = (0o644, b"by hand")
        check_untouched(desk, before)

    def test_what_somebody_else_wrote_after_us_is_not_brought_back(self, desk):
        put(desk, "a", b"old a")
        put(desk, "b", b"old b")
        put(desk, "c", b"old c")
        contents = {desk.path(name): b"new" for name in ("a", "b", "c")}

        def meddle():
            put(desk, "a", b"by hand")
            put(desk, "c", b"by hand")

        with just_before(second_rename(), meddle), pytest.raises(ToolFailure):
            desk.writer.apply(list(contents), lambda _: contents, kind="write")

        by_hand = (0o644, b"by hand")
        check_untouched(desk, {"a": by_hand, "b": (0o644, b"old b"), "c": by_hand})


class TestSomebodyElseWrites:
    """Between the reading and the rename; their bytes win (fault 9)."""

    @pytest.mark.parametrize(
        ("before", "theirs", "ours"),
        [
            pytest.param(b"old", b"theirs", b"ours", id="changed"),
            pytest.param(b"old", None, b"ours", id="removed"),
            pytest.param(None, b"theirs", b"ours", id="made"),
            pytest.param(b"old", b"theirs", None, id="changed-while-we-remove"),
            pytest.param(b"old", b"", b"ours", id="emptied"),
            pytest.param(b"old", b"old and more", b"ours", id="appended"),
        ],
    )
    def test_their_bytes_win(self, desk, before, theirs, ours):
        if before is not None:
            put(desk, "a", before)
        real = desk.path("a")

        def plan(_):
            if theirs is None:
                os.unlink(real)
            else:
                put(desk, "a", theirs)
            return {real: ours}

        with pytest.raises(ToolFailure) as caught:
            desk.writer.apply([real], plan, kind="edit")

        assert caught.value.code in ("changed-meanwhile", None)
        assert caught.value.path == real
        check_untouched(desk, {} if theirs is None else {"a": (0o644, theirs)})
        assert desk.journal.entries() == []

    def test_the_same_size_and_the_same_time_do_not_hide_other_bytes(self, desk):
        put(desk, "a", b"old content")
        real, times = desk.path("a"), os.stat(desk.path("a"))

        def plan(_):
            with open(real, "r+b") as file:
                file.write(b"OLD CONTENT")
            os.utime(real, ns=(times.st_atime_ns, times.st_mtime_ns))
            return {real: b"ours"}

        with pytest.raises(ToolFailure) as caught:
            desk.writer.apply([real], plan, kind="edit")

        assert os.stat(real).st_mtime_ns == times.st_mtime_ns
        assert caught.value.code == "changed-meanwhile"
        check_untouched(desk, {"a": (0o644, b"OLD CONTENT")})

    def test_a_file_that_was_only_touched_is_written(self, desk):
        put(desk, "a", b"old")
        real = desk.path("a")

        def plan(_):
            os.utime(real)
            return {real: b"ours"}

        assert desk.writer.apply([real], plan, kind="edit").entry_id

    def test_a_folder_that_was_moved_away_is_not_written(self, desk):
        put(desk, "sub/a", b"old")

        def move():
            os.rename(desk.path("sub"), desk.path("moved"))
            put(desk, "sub/a", b"old")

        with just_before(staging, move), pytest.raises(ToolFailure) as caught:
            desk.write("sub/a", b"ours")

        assert caught.value.code == "changed-meanwhile"
        old, folder = (0o644, b"old"), (0o755, b"")
        check_untouched(desk, {"sub/": folder, "sub/a": old, "moved/": folder, "moved/a": old})

    def test_a_folder_put_in_the_files_place_stays(self, desk):
        real = desk.path("a")

        def plan(_):
            os.mkdir(real)
            return {real: b"ours"}

        with pytest.raises(ToolFailure, match="EISDIR"):
            desk.writer.apply([real], plan, kind="edit")
        check_untouched(desk, {"a/": (0o755, b"")})

    def test_the_folder_of_a_file_that_is_made_may_be_made_by_somebody_else(self, desk):
        real = desk.path("made/by/us")

        def plan(_):
            put(desk, "made/by/them", b"theirs")
            return {real: b"ours"}

        desk.writer.apply([real], plan, kind="write")

        assert (desk.bytes("made/by/us"), desk.bytes("made/by/them")) == (b"ours", b"theirs")


class TestFailures:
    """A plan that fails changes nothing, and locks are let go."""

    @pytest.mark.parametrize(
        "error", [ToolFailure("no"), KeyError("bug"), KeyboardInterrupt()], ids=["failure", "bug", "stop"]
    )
    def test_an_error_in_the_plan_changes_nothing(self, desk, error):
        put(desk, "a", b"old")

        def plan(_):
            raise error

        with pytest.raises(type(error)):
            desk.writer.apply([desk.path("a"), desk.path("new/b")], plan, kind="write")
        check_untouched(desk, {"a": (0o644, b"old")})
        assert desk.write("a", b"new").entry_id

    def test_a_file_that_somebody_else_is_writing_is_waited_for_and_then_refused(self, tmp_path):
        with Desk(tmp_path, seconds=0.01) as desk:
            with (
                Locks(str(tmp_path / "locks")).hold([desk.path("a")]),
                pytest.raises(ToolFailure, match="being written by another process"),
            ):
                desk.write("a", b"new")
            assert desk.bytes("a") is None
            assert desk.write("a", b"new").entry_id

    def test_outside_of_the_workspace_nothing_is_written(self, desk, tmp_path):
        for path in (tmp_path / "outside", tmp_path / "workspace-evil" / "a"):
            with pytest.raises(ToolFailure) as caught:
                desk.writer.apply([str(path)], lambda _, path=path: {str(path): b"new"}, kind="write")
            assert caught.value.code == "outside-workspace"
        assert not (tmp_path / "outside").exists()

    def test_a_journal_that_cannot_be_written_stops_the_write_and_is_named(self, desk, tmp_path):
        put(desk, "a", b"old")
        (tmp_path / "journal").write_bytes(b"in the way")
        with pytest.raises(ToolFailure) as caught:
            desk.write("a", b"new")

        assert caught.value.message.startswith("ENOTDIR")
        assert str(tmp_path / "journal") in caught.value.message
        assert picture(desk.root) == {"a": (0o644, b"old")}

    def test_no_descriptor_is_left_open(self, desk):
        put(desk, "a", b"old")
        desk.write("warm/up", b"1")
        before = open_now()
        for content in (b"new", None, b"again"):
            desk.write_all({"a": content, "x/y": content})
        for name in ("warm", "n" * 300):
            with contextlib.suppress(ToolFailure):
                desk.write_all({"b": b"new", name: b"new"})
        desk.undo.undo_last()

        assert not open_now() - before


def test_a_reader_sees_the_old_content_or_the_new_one_and_nothing_else(desk):
    contents = [bytes([65 + turn]) * 100_000 for turn in range(8)]
    put(desk, "a", contents[0])
    stop, torn, reads = threading.Event(), [], [0]

    def read():
        while not stop.is_set():
            found = desk.bytes("a")
            reads[0] += 1
            if found not in contents:
                torn.append(found)

    reader = threading.Thread(target=read)
    reader.start()
    for turn in range(1, 60):
        desk.write("a", contents[turn % 8])
    stop.set()
    reader.join(30)

    assert torn == []
    assert reads[0] > 1


def test_a_program_that_runs_can_be_replaced(desk):
    put(desk, "tool.sh", b"#!/bin/sh\nread line\necho old\n", 0o755)
    with subprocess.Popen([desk.path("tool.sh")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        desk.write("tool.sh", b"#!/bin/sh\necho new\n")
        old = running.communicate("go\n", 30)[0]

    assert old == "old\n"
    assert subprocess.run([desk.path("tool.sh")], capture_output=True, text=True, check=True).stdout == "new\n"


PIECES = st.lists(st.sampled_from([b"a", b"b", b"ab", b"\n", b"xyz"]), max_size=12).map(b"".join)


@given(PIECES, PIECES)
@example(b"aaaa", b"aa")
@example(b"", b"x")
@example(b"abab", b"ab")
def test_the_changed_span_is_all_that_changed(before, after):
    start, old, new = find_changed_span(before, after)

    assert before[:start] + after[start : start + new] + before[start + old :] == after
    assert after[:start] + before[start : start + old] + after[start + new :] == before
    assert min(start, old, new) >= 0
    if old and new:
        assert before[start] != after[start]
        assert before[start + old - 1] != after[start + new - 1]
    assert (old, new) != (0, 0) or before == after


@given(PIECES, PIECES, st.binary(min_size=1, max_size=5), st.binary(max_size=5))
def test_the_changed_span_is_no_longer_than_what_was_replaced(head, tail, old, new):
    start, was, becomes = find_changed_span(head + old + tail, head + new + tail)

    assert start >= len(head) or (was, becomes) == (0, 0)
    assert was <= len(old)
    assert becomes <= len(new)


def test_the_journal_holds_the_changed_bytes_and_not_the_whole_file(desk):
    put(desk, "a", b"x" * 1_000_000 + b"needle" + b"y" * 1_000_000)
    written = desk.edit("a", b"needle", b"pin")
    entry = desk.journal.entries()[0]

    assert desk.journal.payload(entry) == b"needlepin"
    assert entry.files[0].before == fingerprint(written.before[desk.path("a")])
