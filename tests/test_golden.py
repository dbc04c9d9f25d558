"""Golden files: written once, compared ever after."""

import pytest

from tests.golden import Golden


def test_what_was_written_is_what_is_compared(tmp_path):
    Golden(write=True, folder=tmp_path).check("deep/words.txt", "first\nsecond")
    Golden(write=False, folder=tmp_path).check("deep/words.txt", "first\nsecond\n")

    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["words.txt"]


def test_a_difference_says_what_to_do(tmp_path):
    Golden(write=True, folder=tmp_path).check("words.txt", "old")

    with pytest.raises(AssertionError, match="--golden=write"):
        Golden(write=False, folder=tmp_path).check("words.txt", "new")


def test_a_missing_file_says_what_to_do(tmp_path):
    with pytest.raises(AssertionError, match="--golden=write"):
        Golden(write=False, folder=tmp_path).check("words.txt", "new")
