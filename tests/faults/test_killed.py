"""kill -9 at every step of every kind of write: old bytes or new bytes, and a history that agrees (faults 1 and 2)."""

import collections
import signal

import pytest

from tests.faults.outcome import begin, check_files, check_settled, ends
from tests.faults.scenes import SCENES
from tests.faults.stage import why_no_strace

MEMORY_CALLS = {"brk", "mmap", "munmap", "mremap", "mprotect", "madvise", "futex", "getrandom"}
"""How many of these a process makes depends on the allocator's mood, not on what it writes."""


@pytest.mark.parametrize("scene", SCENES)
def test_a_kill_at_any_system_call_leaves_the_old_file_or_the_new_one(scene, stage, home, cannot):
    if reason := why_no_strace():
        cannot(f"kill -9 at every system call: {reason}. The same at every call of Python's is tested.")
    both = ends(scene, home)
    begin(scene, home)
    calls = stage.calls(scene=scene, home=str(home))

    seen: collections.Counter[str] = collections.Counter()
    for name, count in calls:
        begin(scene, home)
        inject = ("-e", f"trace={name}", "-e", f"inject={name}:signal=KILL:when={count}")
        ended = stage.play(*inject, scene=scene, home=str(home))
        assert ended == {"signal": signal.SIGKILL} or (name in MEMORY_CALLS and ended == {"signal": 0})
        check_files(home, both)
        seen[check_settled(scene, home, both)] += 1

    assert seen["old"] > 10
    assert seen["new"] > 3


@pytest.mark.parametrize("scene", SCENES)
def test_a_kill_at_any_call_of_the_os_module_leaves_the_old_file_or_the_new_one(scene, stage, home):
    both = ends(scene, home)
    begin(scene, home)
    calls = stage.play(scene=scene, home=str(home), watch=None)["calls"]

    seen: collections.Counter[str] = collections.Counter()
    for at, name in enumerate(calls, 1):
        for how in ("kill", "torn") if name == "write" else ("kill",):
            begin(scene, home)
            assert stage.play(scene=scene, home=str(home), watch=[how, at]) == {"signal": signal.SIGKILL}
            check_files(home, both)
            seen[check_settled(scene, home, both)] += 1

    assert seen["old"] > 5
    assert seen["new"] > 1


def test_a_batch_that_was_killed_half_way_is_one_step_of_the_history(stage, home):
    both = ends("batch", home)
    begin("batch", home)
    calls = stage.play(scene="batch", home=str(home), watch=None)["calls"]
    second_rename = [at for at, name in enumerate(calls, 1) if name == "replace"][1]
    begin("batch", home)

    assert stage.play(scene="batch", home=str(home), watch=["kill", second_rename])["signal"] == signal.SIGKILL
    assert check_settled("batch", home, both) == "half"


@pytest.mark.parametrize("scene", SCENES)
def test_what_comes_next_begins_when_the_step_before_it_is_durable(scene, stage, home):
    begin(scene, home)
    calls = stage.play(scene=scene, home=str(home), watch=None)["calls"]
    changes = [name for name in calls if name in ("write", "fsync", "mkdir", "replace", "unlink")]
    announcement = changes[changes.index("write") :]
    *puts, commit = (at for at, name in enumerate(announcement) if name in ("replace", "unlink"))

    assert announcement[:2] == ["write", "fsync"]
    assert all(announcement[at + 1] == "fsync" for at in range(puts[-1]) if announcement[at] == "mkdir")
    assert all("fsync" in announcement[at : puts[0]] for at, name in enumerate(announcement) if name == "write")
    assert "fsync" in announcement[puts[-1] : commit]
