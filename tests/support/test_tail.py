"""The tail and the log keep what they promise, however a stream is cut into pieces."""

import os
import stat
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.support.tail import Log, Tail

PIECES = st.lists(st.binary(max_size=12) | st.text(max_size=6).map(lambda text: text.encode("utf-8", "surrogatepass")))


@given(PIECES, st.integers(min_value=0, max_value=20))
def test_the_text_is_the_end_of_decoding_everything_at_once(pieces, limit):
    tail = Tail(limit)
    for piece in pieces:
        tail.feed(piece)
    whole = b"".join(pieces).decode(errors="replace")

    assert tail.text() == whole[max(0, len(whole) - limit) :]
    assert (tail.total_bytes, tail.total_chars) == (len(b"".join(pieces)), len(whole))


@given(PIECES, st.integers(min_value=0, max_value=20))
def test_the_text_is_right_after_every_piece_and_asking_changes_nothing(pieces, limit):
    tail = Tail(limit)
    fed = b""
    for piece in pieces:
        tail.feed(piece)
        fed += piece
        whole = fed.decode(errors="replace")

        assert tail.text() == whole[max(0, len(whole) - limit) :] == tail.text()


@given(st.text(), st.data())
def test_what_feeding_gives_back_is_the_text_itself(text, data):
    raw = text.encode("utf-8", "surrogatepass").decode(errors="replace").encode()
    tail = Tail(5)
    given_back = ""
    at = 0
    while at < len(raw):
        size = data.draw(st.integers(min_value=1, max_value=3))
        given_back += tail.feed(raw[at : at + size])
        at += size

    assert given_back == raw.decode()


def test_single_bytes_are_not_kept_as_single_pieces():
    tail = Tail(50_000)
    for _ in range(60_000):
        tail.feed(b"x")

    assert len(tail._pieces) <= 256
    assert tail.text() == "x" * 50_000


def test_a_character_split_between_pieces_is_one_character():
    tail = Tail(10)
    for byte in "€𝄞".encode():
        tail.feed(bytes([byte]))

    assert (tail.text(), tail.total_chars) == ("€𝄞", 2)


@given(st.lists(st.binary(max_size=30)), st.integers(min_value=0, max_value=60))
def test_the_log_is_the_beginning_of_the_stream(tmp_path_factory, pieces, limit):
    path = tmp_path_factory.mktemp("log") / "log"
    log = Log(str(path), limit)
    for piece in pieces:
        log.write(piece)
    log.close()

    assert path.read_bytes() == b"".join(pieces)[:limit]
    assert (log.logged_bytes, log.error) == (len(path.read_bytes()), None)


def test_only_its_owner_can_read_the_log(tmp_path):
    Log(str(tmp_path / "log"), 10).close()

    assert stat.S_IMODE(os.stat(tmp_path / "log").st_mode) == 0o600


@pytest.mark.parametrize("link", [False, True], ids=["file", "link"])
def test_nothing_is_written_over_what_exists(tmp_path, link):
    (tmp_path / "precious").write_text("old")
    if link:
        (tmp_path / "log").symlink_to(tmp_path / "precious")
    else:
        (tmp_path / "log").write_text("old")

    with pytest.raises(FileExistsError):
        Log(str(tmp_path / "log"), 10)
    assert (tmp_path / "log").read_text() == "old"


def test_a_log_that_cannot_be_made_says_so_and_takes_nothing(tmp_path):
    log = Log(str(tmp_path / "missing" / "log"), 10)
    log.write(b"data")
    log.close()

    assert (log.logged_bytes, log.error) == (0, "No such file or directory")


def test_a_full_disk_ends_the_log_and_is_reported(tmp_path):
    script = (
        "import resource, sys\n"
        "from ferrule.support.tail import Log\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "log = Log(sys.argv[1], 1 << 20)\n"
        "for _ in range(3): log.write(b'x' * 700)\n"
        "print(log.logged_bytes, log.error)\n"
    )
    argv = [sys.executable, "-c", script, str(tmp_path / "log")]
    said = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout

    assert said == "1000 File too large\n"
    assert (tmp_path / "log").stat().st_size == 1000


def test_a_log_for_nothing_leaves_nothing(tmp_path):
    Log(str(tmp_path / "log"), 10).discard()

    assert list(tmp_path.iterdir()) == []
