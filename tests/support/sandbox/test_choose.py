"""Choosing a sandbox: the strongest that works, the one that was asked for or an error, and a report of all."""

import os
import sys

import pytest

from ferrule.sandbox import NAMES, SandboxError, choose, report

from .attempts import confined, unconfined, world


def broken_bwrap(folder) -> str:
    program = folder / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    program.chmod(0o755)
    return str(folder)


def test_none_is_none():
    assert choose("none") is None


def test_auto_takes_the_first_that_works_of_those_the_report_names():
    rows = report()
    chosen = choose("auto")

    assert [row.name for row in rows] == list(NAMES)
    assert (chosen.name if chosen else None) == next((row.name for row in rows if row.works), None)


@pytest.mark.parametrize("name", NAMES)
def test_a_sandbox_that_is_asked_for_is_had_or_an_error_says_what_to_do(name):
    row = next(row for row in report() if row.name == name)
    if row.works:
        chosen = choose(name)

        assert chosen is not None
        assert chosen.name == name
        assert all(sentence.endswith(".") for sentence in chosen.lacks)
    else:
        with pytest.raises(SandboxError) as caught:
            choose(name)

        assert row.why.rstrip(".") in str(caught.value)
        assert "sandbox.use" in str(caught.value)


def test_a_broken_bubblewrap_is_an_error_where_it_is_wanted_and_passed_over_where_it_is_not(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", broken_bwrap(tmp_path))
    chosen = choose("auto")

    assert chosen is None or chosen.name != "bubblewrap"
    with pytest.raises(SandboxError, match="No permissions to create new namespace"):
        choose("bubblewrap")


def test_a_bubblewrap_of_the_workspace_is_not_used(tmp_path, monkeypatch):
    (tmp_path / "bwrap").write_text("#!/bin/sh\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(SandboxError, match="no program bwrap"):
        choose("bubblewrap", outside=[str(tmp_path)])
    assert not next(row for row in report(outside=[str(tmp_path)]) if row.name == "bubblewrap").works


@pytest.mark.parametrize("wanted", ["", "docker", "None", "AUTO"])
def test_an_unknown_name_is_an_error_and_not_none(wanted):
    with pytest.raises(SandboxError, match="There is no sandbox called"):
        choose(wanted)


def test_the_sandbox_of_another_system_says_so():
    name = "seatbelt" if sys.platform == "linux" else "namespaces"
    row = next(row for row in report() if row.name == name)

    assert (row.works, bool(row.why)) == (False, True)


def test_a_link_that_must_stay_does_stay_whichever_sandbox_it_takes(tmp_path):
    """Bubblewrap cannot mount over a link; what it cannot do is given to namespaces, or nothing runs."""
    chosen = choose("auto")
    if chosen is None or chosen.name not in {"bubblewrap", "namespaces"}:
        assert any(not row.works for row in report()), "Nothing here mounts, so no link can be protected."
        return
    with world(tmp_path) as there:
        link = there.workspace / ".idea"
        link.symlink_to("src")
        kept = there.profile(kept=(str(link),))
        script = "rm .idea; mv .idea x; ln -sfn sub .idea; mkdir -p other; mv -T other .idea; echo over"
        if chosen.name == "bubblewrap" and not next(row for row in report() if row.name == "namespaces").works:
            with pytest.raises(SandboxError, match="symbolic link"):
                confined(chosen, there, script, kept)
        else:
            assert confined(chosen, there, script, kept).output.splitlines()[-1:] == ["over"]

        assert os.readlink(link) == "src"
        assert "over" in unconfined(there, script).output
        assert not link.is_symlink() or os.readlink(link) != "src"
