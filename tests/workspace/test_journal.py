"""The journal: durable intents, an order that clocks cannot upset, and damage that is noticed (fault 22)."""

import os
import random
import time
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.faults.desk import Desk, picture

from ferrule.core.errors import ToolFailure
from ferrule.files.journal import DamagedError, FileChange, Journal, JournalEntry, encode_file, read_both, read_head
from ferrule.files.ledger import Ledger, fingerprint, fingerprint_at


class Note(msgspec.Struct):
    text: str


@pytest.fixture
def journal(tmp_path):
    return Journal(str(tmp_path / "journal"), keep_bytes=1 << 20, keep_days=30)


def change(path: object, before: bytes | None, after: bytes | None, **more: Any) -> FileChange:
    return FileChange(
        path=str(path),
        temp=".ferrule-1.tmp",
        before=None if before is None else fingerprint(before),
        after=None if after is None else fingerprint(after),
        start=0,
        old=len(before or b""),
        new=len(after or b""),
        **more,
    )


def committed(journal: Journal, payload: bytes = b"") -> JournalEntry:
    pending = journal.announce("write", [], payload)
    journal.commit(pending)
    return pending.entry


def files(journal: Journal, folder: str) -> list[str]:
    try:
        return sorted(os.listdir(os.path.join(journal.folder, folder)))
    except FileNotFoundError:
        return []


def entry_files(journal: Journal) -> list[str]:
    return [os.path.join(journal.folder, "entries", name) for name in files(journal, "entries")]


def test_an_announced_write_is_pending_until_it_is_committed(journal):
    pending = journal.announce("write", [change("/ws/a", None, b"new")], b"new", call_id="call_1")
    while_pending = (files(journal, "pending"), journal.entries())
    journal.commit(pending)

    assert while_pending == ([pending.entry.id], [])
    assert files(journal, "pending") == []
    assert journal.entries() == [pending.entry]
    assert journal.payload(pending.entry) == b"new"
    assert pending.entry.call_id == "call_1"


def test_a_write_that_was_withdrawn_leaves_nothing(journal):
    journal.withdraw(journal.announce("write", [], b"payload"))

    assert files(journal, "pending") + files(journal, "entries") == []


def test_a_journal_that_was_never_written_is_empty(journal):
    assert journal.entries() == []
    assert journal.sweep() == []
    assert not os.path.exists(journal.folder)


def test_entries_of_several_journals_on_one_folder_are_in_the_order_of_their_commits(tmp_path):
    journals = [Journal(str(tmp_path / "journal"), keep_bytes=1 << 20, keep_days=30) for _ in range(3)]
    order = [journals[turn * 7 % 3] for turn in range(30)]
    ids = [committed(journal).id for journal in order]

    for journal in journals:
        assert [entry.id for entry in journal.entries()] == ids


def test_the_commit_decides_the_order_and_not_the_announcement(journal):
    first, second = journal.announce("write", [], b""), journal.announce("write", [], b"")
    journal.commit(second)
    journal.commit(first)

    assert [entry.id for entry in journal.entries()] == [second.entry.id, first.entry.id]


def test_the_order_holds_when_the_clock_jumps(journal, monkeypatch):
    ids = []
    for now in (2e9, 1e9, 0.0, 1.5e9):
        monkeypatch.setattr(time, "time", lambda now=now: now)
        ids.append(committed(journal).id)

    assert [entry.id for entry in journal.entries()] == ids


def test_old_entries_go_when_there_are_too_many_bytes_and_numbers_are_never_used_again(tmp_path):
    small = Journal(str(tmp_path / "journal"), keep_bytes=20_000, keep_days=30)
    other = Journal(str(tmp_path / "journal"), keep_bytes=20_000, keep_days=30)
    committed(other)
    ids = [committed(small, payload=bytes(1000)).id for _ in range(200)]
    kept = [entry.id for entry in small.entries()]
    last = committed(other).id

    assert len(kept) < 100
    assert kept == ids[-len(kept) :]
    assert [entry.id for entry in small.entries()] == [*kept, last]


def test_old_entries_go_by_age(tmp_path):
    journal = Journal(str(tmp_path / "journal"), keep_bytes=1 << 20, keep_days=1)
    for _ in range(63):
        committed(journal)
    for path in entry_files(journal)[:40]:
        os.utime(path, (0, 0))
    committed(journal)

    assert len(journal.entries()) == 24


def test_what_is_older_than_an_entry_that_goes_by_age_goes_too(tmp_path):
    journal = Journal(str(tmp_path / "journal"), keep_bytes=1 << 20, keep_days=1)
    for _ in range(63):
        committed(journal)
    os.utime(entry_files(journal)[39], (0, 0))
    committed(journal)

    assert len(journal.entries()) == 24


def test_one_entry_that_is_larger_than_all_that_may_be_kept_is_kept(tmp_path):
    journal = Journal(str(tmp_path / "journal"), keep_bytes=10, keep_days=1)
    for _ in range(63):
        committed(journal)
    last = committed(journal, payload=bytes(1000))

    assert journal.entries() == [last]


def test_an_entry_that_is_gone_says_so(journal):
    entry = committed(journal, payload=b"bytes")
    journal.entries()
    os.unlink(entry_files(journal)[0])

    with pytest.raises(DamagedError, match="gone"):
        journal.payload(entry)


def test_an_entry_under_the_number_of_another_is_not_taken_for_it(journal):
    one, _ = committed(journal, payload=b"one"), committed(journal, payload=b"two")
    journal.entries()
    first, second = entry_files(journal)
    os.replace(second, first)

    with pytest.raises(DamagedError):
        journal.payload(one)


def test_paths_that_are_not_utf_8_are_kept(journal):
    pending = journal.announce("write", [change("/ws/\udcff\udc80/ü", None, b"new")], b"new")
    journal.commit(pending)

    assert journal.entries() == [pending.entry]
    assert journal.payload(journal.entries()[0]) == b"new"


def test_the_files_of_the_journal_are_private(journal):
    committed(journal)
    modes = {os.stat(path).st_mode & 0o777 for path in entry_files(journal)}

    assert modes == {0o600}
    assert os.stat(os.path.join(journal.folder, "pending")).st_mode & 0o777 == 0o700


class TestSweep:
    """What dead processes leave."""

    def abandon(self, journal: Journal, files: list[FileChange]) -> None:
        """Die after announcing, as far as anybody can see."""
        journal.leave(journal.announce("write", files, b""))

    def test_a_living_owner_is_left_alone(self, journal, tmp_path):
        (tmp_path / ".ferrule-1.tmp").write_bytes(b"half")
        pending = journal.announce("write", [change(tmp_path / "a", None, b"new")], b"new")

        assert Journal(journal.folder, keep_bytes=1, keep_days=1).sweep() == []
        assert files(journal, "pending") == [pending.entry.id]
        assert (tmp_path / ".ferrule-1.tmp").exists()
        journal.withdraw(pending)

    def test_a_write_that_did_not_happen_is_forgotten(self, journal, tmp_path):
        (tmp_path / "a").write_bytes(b"old")
        (tmp_path / ".ferrule-1.tmp").write_bytes(b"half")
        self.abandon(journal, [change(tmp_path / "a", b"old", b"new")])

        assert journal.sweep() == [str(tmp_path / "a")]
        assert journal.entries() == []
        assert files(journal, "pending") == []
        assert os.listdir(tmp_path / "journal" / "pending") == []
        assert (tmp_path / "a").read_bytes() == b"old"
        assert not (tmp_path / ".ferrule-1.tmp").exists()

    def test_a_write_that_did_happen_becomes_history(self, journal, tmp_path):
        (tmp_path / "a").write_bytes(b"new")
        self.abandon(journal, [change(tmp_path / "a", b"old", b"new")])
        journal.sweep()

        assert [entry.files[0].path for entry in journal.entries()] == [str(tmp_path / "a")]
        assert journal.sweep() == []

    def test_a_write_comes_after_what_a_dead_process_did_to_the_file(self, tmp_path):
        with Desk(tmp_path) as desk:
            desk.write("a", b"one")
            pending = desk.journal.announce("write", [change(desk.path("a"), b"one", b"two")], b"onetwo")
            with open(desk.path("a"), "wb") as file:
                file.write(b"two")
            desk.journal.leave(pending)
            desk.write("a", b"three")
            for content in (b"two", b"one", None):
                desk.undo.undo_last()
                assert desk.bytes("a") == content

    def test_folders_of_a_file_that_was_never_written_go(self, journal, tmp_path):
        (tmp_path / "x" / "y").mkdir(parents=True)
        made = (str(tmp_path / "x"), str(tmp_path / "x" / "y"))
        self.abandon(journal, [change(tmp_path / "x" / "y" / "a", None, b"new", made=made)])
        journal.sweep()

        assert not (tmp_path / "x").exists()

    def test_folders_of_a_file_that_was_removed_go(self, journal, tmp_path):
        (tmp_path / "x").mkdir()
        self.abandon(journal, [change(tmp_path / "x" / "a", b"old", None, made=(str(tmp_path / "x"),))])
        journal.sweep()

        assert not (tmp_path / "x").exists()
        assert len(journal.entries()) == 1

    @pytest.mark.parametrize("raw", [b"", b"ferrule journal 1\n", b"\0" * 100], ids=["empty", "cut", "zeros"])
    def test_an_announcement_that_was_never_finished_goes(self, journal, raw):
        committed(journal)
        with open(os.path.join(journal.folder, "pending", "0123"), "wb") as file:
            file.write(raw)
        journal.sweep()

        assert files(journal, "pending") == []
        assert len(journal.entries()) == 1

    @pytest.mark.parametrize("kind", ["folder", "fifo", "link", "unreadable-parent"])
    def test_something_odd_in_the_place_of_the_file_stops_nothing(self, journal, tmp_path, kind):
        target = tmp_path / "a"
        if kind == "folder":
            target.mkdir()
        elif kind == "fifo":
            os.mkfifo(target)
        elif kind == "link":
            target.symlink_to("/dev/zero")
        else:
            (tmp_path / "file").write_bytes(b"")
            target = tmp_path / "file" / "a"
        self.abandon(journal, [change(target, b"old", b"new")])
        journal.sweep()

        assert journal.entries() == []
        assert files(journal, "pending") == []

    def test_what_cannot_be_settled_stops_only_writes_of_the_same_file(self, journal, tmp_path):
        (tmp_path / "a").write_bytes(b"new")
        self.abandon(journal, [change(tmp_path / "a", b"old", b"new")])
        entries = os.path.join(journal.folder, "entries")
        with open(entries, "wb") as file:
            file.write(b"in the way")

        assert journal.sweep() == []
        assert journal.sweep(before=[str(tmp_path / "b")]) == []
        with pytest.raises(OSError):
            journal.sweep(before=[str(tmp_path / "a")])
        os.unlink(entries)
        journal.sweep(before=[str(tmp_path / "a")])
        assert len(journal.entries()) == 1

    def test_a_reserved_number_without_an_entry_is_no_entry(self, journal):
        one = committed(journal)
        with open(os.path.join(journal.folder, "entries", "000000000002"), "wb"):
            pass
        two = committed(journal)

        assert journal.entries() == [one, two]


@given(st.text(st.characters(exclude_categories=["Cs"])), st.binary(max_size=300))
def test_what_was_sealed_is_read_again(tmp_path_factory, text, body):
    path = str(tmp_path_factory.getbasetemp() / f"sealed-{os.getpid()}")
    with open(path, "wb") as file:
        file.write(encode_file(Note(text), body))

    assert read_head(path, Note) == Note(text)
    assert read_both(path, Note) == (Note(text), body)


@given(st.binary(max_size=200), st.data())
def test_a_flipped_or_missing_byte_anywhere_is_noticed(tmp_path_factory, body, data):
    path = str(tmp_path_factory.getbasetemp() / f"damaged-{os.getpid()}")
    raw = bytearray(encode_file(Note("the head of it"), body))
    at = data.draw(st.integers(0, len(raw) - 1))
    if data.draw(st.booleans()):
        raw[at] ^= data.draw(st.integers(1, 255))
    else:
        del raw[at:]
    with open(path, "wb") as file:
        file.write(raw)

    with pytest.raises(DamagedError):
        read_both(path, Note)


def test_a_sealed_file_of_another_kind_is_damaged(tmp_path):
    (tmp_path / "file").write_bytes(encode_file(Note("text"), b""))

    with pytest.raises(DamagedError, match="another version"):
        read_head(str(tmp_path / "file"), JournalEntry)


@pytest.mark.parametrize("seed", range(12))
def test_undo_from_a_damaged_journal_never_restores_wrong_bytes(tmp_path, seed):
    chance = random.Random(seed)
    with Desk(tmp_path) as desk:
        contents = [b""]
        for turn in range(6):
            contents.append(contents[-1] + b"line %d\n" % turn)
            desk.write("file", contents[-1])
        path = chance.choice(entry_files(desk.journal))
        with open(path, "rb") as file:
            raw = bytearray(file.read())
        at = chance.randrange(len(raw))
        if chance.random() < 0.5:
            raw[at] ^= 1 << chance.randrange(8)
        else:
            del raw[at:]
        with open(path, "wb") as file:
            file.write(raw)

    with Desk(tmp_path) as desk:
        undone, refusals = [], []
        for _ in range(8):
            try:
                desk.undo.undo_last()
            except ToolFailure as refused:
                refusals.append(refused.code)
            undone.append(desk.bytes("file"))

        good = len(undone) - len(refusals)
        way = [*contents[:0:-1], None]
        assert refusals
        assert set(refusals) <= {"journal-damaged", "changed-since", "no-history"}
        assert undone == way[1 : good + 1] + [way[good]] * len(refusals)
        assert set(picture(desk.root)) <= {"file"}


def test_the_ledger_knows_what_was_seen():
    ledger = Ledger()
    ledger.saw("/a", b"one")

    assert ledger.knows("/a")
    assert not ledger.stale("/a", b"one")
    assert ledger.stale("/a", b"two")
    assert not ledger.stale("/b", b"anything")
    ledger.forget("/a")
    ledger.forget("/a")
    assert not ledger.knows("/a")
    assert not ledger.stale("/a", b"two")


def test_the_fingerprint_of_a_file_is_that_of_its_bytes(tmp_path):
    (tmp_path / "a").write_bytes(b"content")
    os.mkfifo(tmp_path / "fifo")

    assert fingerprint_at(str(tmp_path / "a")) == fingerprint(b"content")
    assert fingerprint_at(str(tmp_path / "none")) is None
    assert fingerprint_at(str(tmp_path / "fifo")) == ""
    assert fingerprint_at(str(tmp_path)) == ""
