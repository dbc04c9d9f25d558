"""The ends and the log keep what they promise, however a stream is cut into pieces."""

import os
import stat
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.system.stream import Log, OutputDecoder, TailBuffer, TextEnds

PIECES = st.lists(st.binary(max_size=12) | st.text(max_size=6).map(lambda text: text.encode("utf-8", "surrogatepass")))
TEXTS = st.lists(st.text(max_size=8))
SIZES = st.integers(min_value=0, max_value=20)


@given(TEXTS, SIZES, st.text(max_size=8))
def test_the_tail_is_the_end_of_everything_and_asking_changes_nothing(pieces, limit, more):
    tail = TailBuffer(limit)
    for piece in pieces:
        tail.add(piece)
    whole = "".join(pieces) + more

    assert tail.text(more) == whole[max(0, len(whole) - limit) :] == tail.text(more)


@given(TEXTS, SIZES, SIZES, st.text(max_size=8))
def test_the_ends_are_everything_or_say_what_is_missing(pieces, first, last, more):
    ends = TextEnds(first, last)
    for piece in pieces:
        ends.add(piece)
    whole = "".join(pieces) + more
    missing = max(0, len(whole) - first - last)

    assert ends.missing_chars(more) == missing
    if not first:
        assert ends.text(more) == whole[max(0, len(whole) - last) :]
    elif missing:
        end = whole[len(whole) - last :]
        assert ends.text(more) == f"{whole[:first]}\n\n[{missing:,} characters are not shown here]\n\n{end}"
    else:
        assert ends.text(more) == whole


@given(st.lists(TEXTS))
def test_news_are_what_came_since_they_were_asked_for(rounds):
    ends = TextEnds(1000, 1000)
    for pieces in rounds:
        for piece in pieces:
            ends.add(piece)

        assert ends.news() == "".join(pieces)


def test_news_of_a_flood_are_its_ends():
    ends = TextEnds(4, 4)
    ends.add("told before")
    ends.news()
    for _ in range(100):
        ends.add("abcdef")

    assert ends.news() == "abcd\n\n[592 characters are not shown here]\n\ncdef"
    assert ends.news() == ""


def test_single_characters_are_not_kept_as_single_pieces():
    tail = TailBuffer(50_000)
    for _ in range(60_000):
        tail.add("x")

    assert len(tail._pieces) <= 256
    assert tail.text() == "x" * 50_000


@given(PIECES)
def test_bytes_become_the_same_text_wherever_they_are_cut(pieces):
    cut, whole = OutputDecoder(10_000, 10_000), OutputDecoder(10_000, 10_000)
    for piece in pieces:
        cut.feed(piece)
    whole.feed(b"".join(pieces))
    cut.end()
    whole.end()

    assert (cut.text(), cut.total_chars, cut.total_bytes) == (whole.text(), whole.total_chars, whole.total_bytes)


@given(st.text(alphabet=st.characters(min_codepoint=32, exclude_categories=["Cc", "Cf", "Cs"])), st.data())
def test_plain_text_comes_as_it_is(text, data):
    raw = text.encode()
    shown = OutputDecoder(10_000, 10_000)
    at = 0
    while at < len(raw):
        size = data.draw(st.integers(min_value=1, max_value=3))
        shown.feed(raw[at : at + size])
        at += size

    assert shown.text() == text


def test_a_character_split_between_pieces_is_one_character():
    shown = OutputDecoder(0, 10)
    for byte in "€𝄞".encode():
        shown.feed(bytes([byte]))

    assert (shown.text(), shown.total_chars) == ("€𝄞", 2)


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
        "from ferrule.system.stream import Log\n"
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
