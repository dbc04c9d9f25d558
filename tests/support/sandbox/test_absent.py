"""Placeholders: commands share them, nothing of them stays, and one that was taken away is made anew."""

import os

import pytest

from ferrule.support.sandbox.absent import Held, ours
from tests.descriptors import open_now


@pytest.fixture
def paths(tmp_path):
    return [str(tmp_path / name) for name in (".git", ".claude", ".vscode")]


def test_a_hundred_commands_of_one_process_hold_a_placeholder_with_the_descriptors_of_one(paths):
    before = open_now()
    first = Held(paths)
    one = open_now() - before
    others = [Held(paths) for _ in range(99)]

    assert open_now() - before == one
    for held in (first, *others):
        held.release()
    assert not open_now() - before


def test_it_stays_until_the_last_command_lets_it_go(paths):
    first, second = Held(paths), Held(paths)

    first.release()
    assert all(ours(path) for path in paths)
    first.release()
    assert all(ours(path) for path in paths)
    second.release()
    assert not any(os.path.lexists(path) for path in paths)


def test_what_was_taken_away_is_made_anew_for_the_next_command_and_both_end_well(paths):
    before = open_now()
    first = Held(paths)
    os.rmdir(paths[0])
    second = Held(paths)

    assert ours(paths[0])
    first.release()
    assert all(ours(path) for path in paths)
    second.release()
    assert not any(os.path.lexists(path) for path in paths)
    assert not open_now() - before


def test_where_somebody_put_a_folder_of_their_own_nothing_is_held_and_nothing_removed(paths):
    first = Held(paths)
    os.rmdir(paths[0])
    os.mkdir(paths[0], 0o755)

    with pytest.raises(OSError, match="keeps changing"):
        Held(paths)
    first.release()
    assert os.path.isdir(paths[0])
    assert not os.path.lexists(paths[1])
