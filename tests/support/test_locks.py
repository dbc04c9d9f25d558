"""Locks by name: one holder at a time among threads and processes, and none left by the dead."""

import os
import subprocess
import sys
import threading

import pytest

from ferrule.system.folder import SLOTS, Locks, LockTimeoutError, _slot

HOLDER = """
import sys, os
from ferrule.system.folder import Locks
with Locks(sys.argv[1]).hold([sys.argv[2]]):
    print("held", flush=True)
    sys.stdin.readline()
    if sys.argv[3] == "die":
        os.kill(os.getpid(), 9)
"""
LIMIT_SECONDS = 30


@pytest.fixture
def folder(tmp_path):
    return str(tmp_path / "deep" / "locks")


def names_in_different_slots(count: int) -> list[str]:
    found: dict[int, str] = {}
    for number in range(10_000):
        found.setdefault(_slot(f"/file{number}"), f"/file{number}")
        if len(found) == count:
            break
    return list(found.values())


def is_free(folder: str, name: str) -> bool:
    try:
        with Locks(folder, seconds=0).hold([name]):
            return True
    except LockTimeoutError:
        return False


def test_a_name_has_one_holder_at_a_time(folder):
    with Locks(folder).hold(["/a"]):
        assert not is_free(folder, "/a")
    assert is_free(folder, "/a")


def test_other_names_are_not_held_up(folder):
    one, other = names_in_different_slots(2)
    with Locks(folder).hold([one]):
        assert is_free(folder, other)


def test_the_same_name_twice_is_one_lock(folder):
    with Locks(folder, seconds=0).hold(["/a", "/a"]):
        assert not is_free(folder, "/a")


def test_names_that_share_a_slot_can_be_held_together(folder):
    names = [f"/file{number}" for number in range(SLOTS + 1)]
    with Locks(folder, seconds=0).hold(names):
        assert not any(is_free(folder, name) for name in names[:10])


def test_when_the_second_cannot_be_had_the_first_is_let_go(folder):
    names = sorted(names_in_different_slots(2), key=_slot)
    with Locks(folder).hold([names[1]]):
        with pytest.raises(LockTimeoutError), Locks(folder, seconds=0).hold(names):
            pass
        assert is_free(folder, names[0])


def test_an_error_inside_lets_go(folder):
    with pytest.raises(KeyError), Locks(folder).hold(["/a"]):
        raise KeyError
    assert is_free(folder, "/a")


def test_waiting_too_long_says_how_long(folder):
    with (
        Locks(folder).hold(["/a"]),
        pytest.raises(LockTimeoutError, match=r"held the lock for 0\.01 seconds"),
        Locks(folder, seconds=0.01).hold(["/a"]),
    ):
        pass


def test_threads_that_want_the_same_names_in_any_order_all_get_them(folder):
    names = names_in_different_slots(4)
    inside, most = [0], [0]

    def work(order):
        for _ in range(20):
            with Locks(folder, seconds=LIMIT_SECONDS).hold(order):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                inside[0] -= 1

    threads = [threading.Thread(target=work, args=(names[turn:] + names[:turn],)) for turn in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_SECONDS)

    assert not any(thread.is_alive() for thread in threads)
    assert most == [1]


@pytest.mark.parametrize("end", ["leave", "die"])
def test_a_process_that_ends_in_any_way_leaves_no_lock(folder, end):
    argv = [sys.executable, "-c", HOLDER, folder, "/a", end]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        held = not is_free(folder, "/a")
        holder.communicate("\n", LIMIT_SECONDS)

    assert held
    assert is_free(folder, "/a")


def test_the_number_of_lock_files_is_bounded_and_they_are_private(folder):
    for number in range(1000):
        with Locks(folder).hold([f"/file{number}"]):
            pass

    assert len(os.listdir(folder)) <= SLOTS
    assert {os.stat(os.path.join(folder, name)).st_mode & 0o777 for name in os.listdir(folder)} == {0o600}
    assert os.stat(folder).st_mode & 0o777 == 0o700


def test_a_link_in_the_place_of_a_lock_file_is_not_followed(folder, tmp_path):
    os.makedirs(folder)
    os.symlink(tmp_path / "target", os.path.join(folder, f"{_slot('/a'):02x}.lock"))

    with pytest.raises(OSError), Locks(folder).hold(["/a"]):
        pass
    assert not (tmp_path / "target").exists()
