"""Files beneath a folder: no way leads out, nothing waits, and what is written is all there."""

import errno
import os
import socket
import stat
import struct
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.system.folder import (
    describe,
    is_regular,
    marks,
    open_folder,
    put_marks,
    read_all,
    remove_empty,
    sync,
    write_all,
)
from tests.descriptors import open_now

ACCESS_LIST = "system.posix_acl_access"


@pytest.fixture
def folder(tmp_path):
    with open_folder(str(tmp_path)) as opened:
        yield opened


def descriptors() -> int:
    """How many files this process has open."""
    return len(os.listdir("/proc/self/fd" if sys.platform == "linux" else "/dev/fd"))


def access_list(user: int, rights: int) -> bytes:
    """The bytes of a list that gives one more user rights: owner rw, group r, others nothing."""
    entries = [(1, 6, 0xFFFFFFFF), (2, rights, user), (4, 4, 0xFFFFFFFF), (16, 6, 0xFFFFFFFF), (32, 0, 0xFFFFFFFF)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def test_a_folder_below_is_reached_step_by_step(folder, tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "file").write_bytes(b"content")
    with folder.below(["a", "b"]) as below:
        descriptor = below.open("file")
        content = read_all(descriptor)
        os.close(descriptor)

    assert below.path == str(tmp_path / "a" / "b")
    assert below.made == ()
    assert content == b"content"


@pytest.mark.parametrize("where", ["first", "middle", "last"])
def test_a_link_on_the_way_is_refused(folder, tmp_path, where):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "b" / "c").mkdir(parents=True)
    parts = {"first": "a", "middle": "a/b", "last": "a/b/c"}[where]
    link = tmp_path / parts
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(tmp_path / "outside")

    with pytest.raises(NotADirectoryError):
        folder.below(parts.split("/"), make=True)
    with pytest.raises(NotADirectoryError):
        folder.below([*parts.split("/"), "b"], make=True)
    assert sorted(os.listdir(tmp_path / "outside")) == ["b"]


def test_a_link_as_the_file_is_refused(folder, tmp_path):
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "link").symlink_to("secret")
    (tmp_path / "dangling").symlink_to("nowhere")

    for name in ("link", "dangling"):
        with pytest.raises(OSError) as caught:
            folder.open(name)
        assert caught.value.errno == errno.ELOOP
        with pytest.raises(FileExistsError):
            folder.fresh(name, 0o600)
    assert not (tmp_path / "nowhere").exists()


def test_missing_folders_are_made_and_named_outermost_first(folder, tmp_path):
    (tmp_path / "a").mkdir()
    with folder.below(["a", "b", "c"], make=True) as below:
        made = below.made

    assert made == (str(tmp_path / "a" / "b"), str(tmp_path / "a" / "b" / "c"))
    assert (tmp_path / "a" / "b" / "c").is_dir()


def test_folders_that_could_not_all_be_made_are_not_made_at_all(folder, tmp_path):
    before = descriptors()
    with pytest.raises(OSError) as caught:
        folder.below(["a", "b", "n" * 300], make=True)

    assert caught.value.errno == errno.ENAMETOOLONG
    assert os.listdir(tmp_path) == []
    assert descriptors() == before


def test_nothing_is_made_unasked(folder, tmp_path):
    before = descriptors()
    with pytest.raises(FileNotFoundError):
        folder.below(["a", "b"])

    assert os.listdir(tmp_path) == []
    assert descriptors() == before


def test_an_open_folder_stays_the_same_folder_when_it_is_moved(folder, tmp_path):
    (tmp_path / "a").mkdir()
    with folder.below(["a"]) as before:
        os.rename(tmp_path / "a", tmp_path / "moved")
        (tmp_path / "a").mkdir()
        with folder.below(["a"]) as after, folder.below(["moved"]) as moved:
            assert not before.same(after)
            assert before.same(moved)
        os.close(before.fresh("file", 0o600))

    assert os.listdir(tmp_path / "moved") == ["file"]
    assert os.listdir(tmp_path / "a") == []


def test_a_removed_folder_knows_that_it_is_gone(folder, tmp_path):
    (tmp_path / "a").mkdir()
    with folder.below(["a"]) as below:
        assert not below.is_removed()
        (tmp_path / "a").rmdir()
        assert below.is_removed()


@pytest.mark.parametrize("kind", ["fifo", "folder", "device"])
def test_opening_what_is_no_regular_file_returns_at_once(folder, tmp_path, kind):
    name = "thing"
    if kind == "fifo":
        os.mkfifo(tmp_path / "thing")
    elif kind == "folder":
        (tmp_path / "thing").mkdir()
    else:
        folder, name = open_folder("/dev"), "null"
    descriptor = folder.open(name)
    regular = is_regular(descriptor)
    os.close(descriptor)
    if kind == "device":
        folder.close()

    assert not regular


def test_opening_a_socket_is_refused_at_once(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")

        with pytest.raises(OSError):
            folder.open("socket")


def test_a_fresh_file_was_not_there_before(folder, tmp_path):
    os.close(folder.fresh("new", 0o640))

    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    with pytest.raises(FileExistsError):
        folder.fresh("new", 0o640)


@given(st.binary(max_size=5000), st.integers(0, 6000))
def test_reading_with_a_limit_gives_one_byte_more_as_the_sign_of_too_much(content, limit):
    ours, theirs = os.pipe()
    os.write(theirs, content)
    os.close(theirs)
    read = read_all(ours, limit)
    os.close(ours)

    assert read == content[: limit + 1]


def test_reading_without_a_limit_gives_everything(folder, tmp_path):
    content = os.urandom((1 << 20) + 17)
    (tmp_path / "file").write_bytes(content)
    descriptor = folder.open("file")
    read = read_all(descriptor)
    os.close(descriptor)

    assert read == content


@pytest.mark.parametrize(
    ("make", "read"),
    [
        pytest.param(lambda path: path.write_bytes(b"ab"), b"ab", id="all-of-it"),
        pytest.param(lambda path: path.write_bytes(b"abcdef"), b"abcd", id="one-byte-too-much"),
        pytest.param(os.mkdir, None, id="folder"),
        pytest.param(os.mkfifo, None, id="fifo"),
    ],
)
def test_only_a_regular_file_is_read_and_nothing_stays_open(folder, tmp_path, make, read):
    make(tmp_path / "it")
    before = open_now()

    assert folder.read("it", 3) == read
    assert open_now() - before == {}


@pytest.mark.parametrize("size", [0, 1, 5_000_000])
def test_all_bytes_are_written(folder, tmp_path, size):
    content = os.urandom(size)
    descriptor = folder.fresh("file", 0o600)
    write_all(descriptor, content)
    os.close(descriptor)

    assert (tmp_path / "file").read_bytes() == content


def test_a_file_that_has_not_the_size_of_what_was_written_is_an_error(folder):
    descriptor = folder.fresh("file", 0o600)
    os.write(descriptor, b"somebody else's")
    with pytest.raises(OSError, match="3 bytes were written but the file has 18") as caught:
        write_all(descriptor, b"abc")
    os.close(descriptor)

    assert caught.value.errno == errno.EIO


def test_empty_folders_go_innermost_first_and_full_ones_stay(tmp_path):
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    (tmp_path / "a" / "file").write_bytes(b"")
    remove_empty([str(tmp_path / "a"), str(tmp_path / "a" / "b"), str(tmp_path / "a" / "b" / "c")])

    assert os.listdir(tmp_path / "a") == ["file"]


def test_an_empty_folder_behind_a_link_stays(tmp_path):
    (tmp_path / "elsewhere" / "b").mkdir(parents=True)
    (tmp_path / "a").symlink_to(tmp_path / "elsewhere")
    remove_empty([str(tmp_path / "a"), str(tmp_path / "a" / "b")])

    assert (tmp_path / "elsewhere" / "b").is_dir()


def test_what_cannot_be_synced_at_all_is_no_error():
    ours, theirs = os.pipe()
    try:
        with pytest.raises(OSError) as caught:
            os.fsync(ours)
        assert caught.value.errno == errno.EINVAL
        sync(ours)
    finally:
        os.close(ours)
        os.close(theirs)


def test_any_other_failure_to_sync_is_an_error(tmp_path):
    descriptor = os.open(tmp_path, os.O_RDONLY)
    os.close(descriptor)

    with pytest.raises(OSError):
        sync(descriptor)


@pytest.mark.skipif(sys.platform != "linux", reason="the standard library knows these marks on Linux only")
def test_marks_go_from_one_file_to_another_and_no_others_stay(folder):
    one, other = folder.fresh("one", 0o640), folder.fresh("other", 0o640)
    try:
        given = {"user.note": b"mine", ACCESS_LIST: access_list(user=1234, rights=6)}
        wanted = {name: value for name, value in given.items() if marked(one, name, value)}
        marked(other, "user.stray", b"not mine")
        found = marks(one)
        put_marks(other, found)

        assert wanted
        assert found == wanted
        assert marks(other) == wanted
        put_marks(other, {})
        assert marks(other) == {}
    finally:
        os.close(one)
        os.close(other)


def marked(descriptor: int, name: str, value: bytes) -> bool:
    """Not every file system keeps every kind of mark."""
    try:
        os.setxattr(descriptor, name, value)
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
        return False
    return True


@pytest.mark.parametrize(
    ("error", "words"),
    [
        pytest.param(OSError(errno.ENOSPC, "No space left on device"), "ENOSPC: no space left on device", id="coded"),
        pytest.param(OSError("something odd"), "OSError: something odd", id="no-code"),
    ],
)
def test_an_error_is_described_by_its_code_and_a_few_words(error, words):
    assert describe(error) == words
