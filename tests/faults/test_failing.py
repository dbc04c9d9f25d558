"""Calls of the operating system that fail: the old content, the cause, nothing left over (faults 4 to 7)."""

import resource
from pathlib import Path
from typing import Any

import pytest

from tests.faults.desk import Desk, temporary
from tests.faults.outcome import Ends, begin, check_files, check_settled, ends, state
from tests.faults.scenes import SCENES
from tests.faults.stage import why_no_strace

ERRORS = {
    "open": "EMFILE",
    "write": "ENOSPC",
    "fsync": "EIO",
    "mkdir": "ENOSPC",
    "replace": "EACCES",
    "unlink": "EPERM",
    "fchmod": "EPERM",
}
INJECTED = {
    "write": ("ENOSPC", "EDQUOT"),
    "fsync": ("EIO",),
    "renameat": ("EACCES", "EXDEV"),
    "rename": ("EACCES",),
    "mkdirat": ("ENOSPC",),
    "unlinkat": ("EROFS",),
    "fchmod": ("EPERM",),
}


def check_failed(ended: dict[str, Any], code: str, scene: str, home: Path, both: Ends) -> None:
    """A call that failed has said why and has cleaned up by itself; then the same works."""
    assert "bug" not in ended, ended.get("bug")
    check_files(home, both)
    with Desk(home) as desk:
        assert temporary(home) == []
        assert desk.pending() == []
        now = state(desk)
    if "failure" in ended:
        assert ended["failure"].startswith(code)
        assert ended["failure"].endswith("Nothing was changed.")
        assert now == both.old
    assert check_settled(scene, home, both) == ("old" if "failure" in ended else "new")


@pytest.mark.parametrize("scene", SCENES)
def test_one_failing_call_means_the_old_content_and_a_plain_message(scene, stage, home):
    both = ends(scene, home)
    begin(scene, home)
    calls = stage.play(scene=scene, home=str(home), watch=None)["calls"]

    failures = 0
    for at, name in enumerate(calls, 1):
        if name in ERRORS:
            begin(scene, home)
            ended = stage.play(scene=scene, home=str(home), watch=[ERRORS[name], at])
            check_failed(ended, ERRORS[name], scene, home, both)
            failures += "failure" in ended

    assert failures > 8


@pytest.mark.parametrize("scene", SCENES)
def test_an_error_that_lasts_loses_nothing(scene, stage, home):
    both = ends(scene, home)
    begin(scene, home)
    calls = stage.play(scene=scene, home=str(home), watch=None)["calls"]

    for at, name in enumerate(calls, 1):
        if name in ("write", "fsync", "replace", "open"):
            begin(scene, home)
            ended = stage.play(scene=scene, home=str(home), watch=[ERRORS[name], at, True])
            assert "bug" not in ended, ended.get("bug")
            check_files(home, both)
            left = check_settled(scene, home, both)
            if "failure" in ended and ended["code"] != "half-done":
                assert left == "old"


@pytest.mark.parametrize("scene", SCENES)
def test_an_error_of_the_kernel_means_the_old_content_and_a_plain_message(scene, stage, home, cannot):
    if reason := why_no_strace():
        cannot(f"errors of system calls: {reason}. Errors of Python's calls are tested.")
    both = ends(scene, home)
    begin(scene, home)
    calls = stage.calls(scene=scene, home=str(home))

    for name, count in calls:
        for code in INJECTED.get(name, ()):
            begin(scene, home)
            inject = ("-e", f"trace={name}", "-e", f"inject={name}:error={code}:when={count}")
            ended = stage.play(*inject, scene=scene, home=str(home))
            assert "failure" in ended
            check_failed(ended, code, scene, home, both)


@pytest.mark.parametrize("scene", ["write", "create", "batch"])
def test_a_write_that_lies_about_its_length_is_noticed(scene, stage, home, cannot):
    if reason := why_no_strace():
        cannot(f"short writes: {reason}. Limits on the size of files are tested.")
    both = ends(scene, home)
    begin(scene, home)
    writes = [count for name, count in stage.calls(scene=scene, home=str(home)) if name == "write"]

    for count in writes:
        begin(scene, home)
        inject = ("-e", "trace=write", "-e", f"inject=write:retval=2:when={count}")
        ended = stage.play(*inject, scene=scene, home=str(home))
        assert "failure" in ended
        check_failed(ended, "EIO", scene, home, both)


def test_an_interrupted_write_goes_on(stage, home, cannot):
    if reason := why_no_strace():
        cannot(f"interrupted writes: {reason}.")
    both = ends("edit", home)
    begin("edit", home)
    inject = ("-e", "trace=write,fsync", "-e", "inject=write,fsync:error=EINTR:when=1")

    assert stage.play(*inject, scene="edit", home=str(home)) == {"signal": 0}
    assert check_settled("edit", home, both) == "new"


@pytest.mark.parametrize("limit_bytes", [0, 100, 1000, 4096, 7000])
@pytest.mark.parametrize("scene", ["write", "edit", "create", "batch", "undo-edit"])
def test_a_limit_on_the_size_of_files_is_met_before_the_rename(scene, limit_bytes, stage, home):
    both = ends(scene, home)
    begin(scene, home)
    ended = stage.play(scene=scene, home=str(home), limits={"RLIMIT_FSIZE": limit_bytes})

    assert "failure" in ended
    check_failed(ended, "EFBIG", scene, home, both)


@pytest.mark.parametrize("scene", SCENES)
def test_running_out_of_descriptors_is_a_plain_error(scene, stage, home):
    both = ends(scene, home)
    lowest, failures = 5, 0
    for most in range(lowest, lowest + 16):
        begin(scene, home)
        ended = stage.play(scene=scene, home=str(home), limits={"RLIMIT_NOFILE": most})
        check_failed(ended, "EMFILE", scene, home, both)
        failures += "failure" in ended

    assert failures > 0
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > lowest + 16
