"""Windows of lines: the same from memory and from a stream, and no more read than needed."""

import os
import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.files.text import Binary, TooFarError, Window, window_in, window_of

LINES = st.lists(
    st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0", exclude_categories=["Cc"]), max_size=30)
)


def streamed(raw: bytes, first: int, last: int, *, line_bytes: int = 4096, most_bytes: int = 1 << 30) -> Window:
    """The window through a real file."""
    with tempfile.TemporaryFile() as file:
        file.write(raw)
        file.flush()
        file.seek(0)
        return window_in(file.fileno(), first, last, line_bytes=line_bytes, most_bytes=most_bytes, over=lambda: False)


@given(LINES, st.sampled_from(["\n", "\r\n"]), st.booleans(), st.booleans(), st.integers(1, 12), st.integers(0, 12))
def test_both_ways_give_the_same_lines(lines, end, closed, marked, first, more):
    raw = ("\ufeff" * marked + end.join(lines) + end * closed).encode()
    whole = window_of(raw, first, first + more, line_bytes=4096)
    stream = streamed(raw, first, first + more)

    assert stream.lines == whole.lines
    assert (stream.first, stream.clipped) == (whole.first, whole.clipped)
    assert stream.total in (whole.total, None)


@given(LINES, st.integers(1, 40))
def test_a_line_is_cut_at_a_whole_character_and_not_beyond_the_limit(lines, limit):
    raw = "\n".join(lines).encode()
    for window in (window_of(raw, 1, 1000, line_bytes=limit), streamed(raw, 1, 1000, line_bytes=limit)):
        kept = [line.encode() for line in window.lines]
        wanted = [line.encode() for line in lines][: len(kept)]

        assert len(lines) - len(kept) <= 1
        assert window.clipped == tuple(at for at, line in enumerate(wanted, 1) if len(line) > limit)
        for line, cut in zip(wanted, kept, strict=True):
            assert line.startswith(cut)
            assert min(len(line), limit) - 3 <= len(cut) <= limit


@pytest.mark.parametrize(
    ("raw", "first", "last", "window"),
    [
        pytest.param(b"", 1, 10, Window(1, [], 0, ()), id="empty"),
        pytest.param(b"a\nb\nc\n", 2, 2, Window(2, ["b"], 3, ()), id="middle"),
        pytest.param(b"a\nb\nc", 3, 9, Window(3, ["c"], 3, ()), id="no-newline-at-the-end"),
        pytest.param(b"a\nb\n", 5, 9, Window(5, [], 2, ()), id="past-the-end"),
        pytest.param(b"a\r\r\nb\n", 1, 9, Window(1, ["a\r", "b"], 2, ()), id="one-cr-belongs-to-the-line-end"),
        pytest.param(b"\n\n", 1, 9, Window(1, ["", ""], 2, ()), id="empty-lines"),
    ],
)
def test_windows_of_small_files(raw, first, last, window):
    assert window_of(raw, first, last, line_bytes=4096) == window
    assert streamed(raw, first, last)._replace(total=window.total) == window


def test_a_stream_is_not_read_beyond_the_window(tmp_path):
    path = tmp_path / "huge"
    with path.open("wb") as file:
        file.write(b"line\n" * 2000)
        file.truncate(1 << 40)
    descriptor = os.open(path, os.O_RDONLY)
    window = window_in(descriptor, 10, 12, line_bytes=100, most_bytes=1000, over=lambda: False)
    read = os.lseek(descriptor, 0, os.SEEK_CUR)
    os.close(descriptor)

    assert window == Window(10, ["line"] * 3, None, ())
    assert read <= 1 << 20


def test_one_endless_line_does_not_fill_the_memory(tmp_path):
    path = tmp_path / "long"
    path.write_bytes(b"x" * (5 << 20) + b"\nend\n")
    descriptor = os.open(path, os.O_RDONLY)
    window = window_in(descriptor, 1, 5, line_bytes=100, most_bytes=1000, over=lambda: False)
    os.close(descriptor)

    assert window == Window(1, ["x" * 100, "end"], 2, (1,))


def test_a_line_across_the_borders_of_chunks_is_whole(tmp_path):
    path = tmp_path / "file"
    lines = [b"%07d" % number for number in range(300_000)]
    path.write_bytes(b"\n".join(lines))
    descriptor = os.open(path, os.O_RDONLY)
    window = window_in(descriptor, 131_070, 131_075, line_bytes=100, most_bytes=1000, over=lambda: False)
    os.close(descriptor)

    assert window.lines == [f"{number:07d}" for number in range(131_069, 131_075)]


def test_a_stream_stops_when_it_has_enough_bytes():
    window = streamed(b"0123456789\n" * 100, 1, 100, most_bytes=50)

    assert window.total is None
    assert 5 <= len(window.lines) <= 7


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"\x7fELF\0\0\0\1", id="program"),
        pytest.param("text\n".encode("utf-16"), id="utf-16-is-not-streamed"),
    ],
)
def test_what_is_no_text_is_not_streamed(raw):
    with pytest.raises(Binary):
        streamed(raw, 1, 10)


def test_bytes_that_are_not_utf_8_are_marked_as_such():
    assert streamed(b"caf\xe9\n", 1, 1).lines == ["caf\ufffd"]


def test_a_stream_stops_when_the_call_is_over(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"line\n" * 1_000_000)
    looks = iter([False, True])

    with open(path, "rb") as file, pytest.raises(TooFarError):
        window_in(file.fileno(), 900_000, 900_001, line_bytes=100, most_bytes=1000, over=lambda: next(looks))
