"""Confinement by Landlock alone: what it stops, what it cannot stop and says so, and what still works."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ferrule.sandbox import landlock, spawner
from ferrule.sandbox.landlock import Landlock

from .attempts import ATTEMPTS, CHORES, World, confined, world

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Landlock is Linux's; elsewhere works() says so")


@pytest.fixture
def there(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        yield made


@pytest.fixture(autouse=True)
def it_works() -> None:
    assert landlock.landlock_works() == "", f"This machine has no Landlock: {landlock.landlock_works()}"


def stopped(name: str) -> bool:
    """Is an attempt stopped by the Landlock of this kernel? Signals are not, by an old one."""
    version = int(spawner.cell(spawner.CellKind("landlock")).ready[2])
    return version >= 6 or name != "signal-to-engine"


@pytest.mark.parametrize("attempt", [pytest.param(one, id=one.name) for one in ATTEMPTS if not one.needs_mounts])
def test_an_attempt_is_stopped(attempt, there):
    ran = confined(Landlock(), there, attempt.script)

    assert attempt.happened(there, ran) is not stopped(attempt.name), ran.output


@pytest.mark.parametrize("attempt", [pytest.param(one, id=one.name) for one in ATTEMPTS if one.needs_mounts])
def test_what_it_cannot_stop_is_about_secret_or_protected_files_and_is_said(attempt, there):
    """Were one of these stopped one day, it would only be better; that they may come through is what is told."""
    confined(Landlock(), there, attempt.script)

    assert any("Secret files inside" in text for text in Landlock().lacks)
    assert any("Protected files inside" in text for text in Landlock().lacks)
    assert all(text.endswith(".") for text in Landlock().lacks)
    assert (there.outside / "plain").read_text() == "plain\n"


@pytest.mark.parametrize("chore", [pytest.param(one, id=one.name) for one in CHORES if not one.needs_mounts])
def test_a_chore_works(chore, there):
    ran = confined(Landlock(), there, chore.script)

    assert ran == (0, chore.output.format(workspace=there.workspace))


@pytest.mark.parametrize("chore", [pytest.param(one, id=one.name) for one in CHORES if one.needs_mounts])
def test_a_chore_that_is_denied_is_told(chore, there):
    assert confined(Landlock(), there, chore.script).code != 0
    assert any("make terminals" in text for text in Landlock().lacks)


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Both ends of a new one."""
    pair = os.openpty()
    yield pair
    for end in pair:
        os.close(end)


@pytest.mark.parametrize("way", ["<", ">", ">>", "<>"])
@pytest.mark.parametrize("masked", [True, False])
def test_the_terminals_of_others_cannot_be_opened(way, masked, terminal, there):
    profile = there.profile() if masked else there.profile(masked=())
    name = os.ttyname(terminal[1])

    assert "denied" in confined(Landlock(), there, f"exec 3{way} {name} && echo came through", profile).output


@pytest.mark.parametrize("name", ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/ptmx"])
def test_of_the_devices_the_harmless_ones_can_be_opened(name, there):
    assert confined(Landlock(), there, f"exec 3< {name} 4> {name} && echo open") == (0, "open\n")


def test_other_devices_cannot_be_read(there):
    """Those of the machine's disks are an example that not every machine has."""
    known = {"null", "zero", "full", "random", "urandom", "tty", "ptmx"}
    others = [one for one in Path("/dev").iterdir() if one.is_char_device() or one.is_block_device()]
    others = [one for one in others if one.name not in known and not one.is_symlink()]
    script = "".join(f"(exec 3< {one}) 2> /dev/null && echo {one}\n" for one in others)

    assert confined(Landlock(), there, script + "echo over") == (0, "over\n")


def test_a_command_uses_its_own_terminal_by_every_name_and_no_other_one(terminal, there):
    ours, theirs = terminal
    other, another = os.openpty()
    script = (
        "echo one > /dev/stdout; echo two > $(tty); echo three > /dev/tty; "
        f"exec 3<> {os.ttyname(another)} && echo came through; echo over"
    )
    wrapped = Landlock().wrap(["bash", "-c", script], there.profile(), cwd=str(there.workspace))
    assert isinstance(wrapped.starter, spawner.Confined)
    try:
        for _ in range(2):  # each command with a terminal has a ruleset of its own
            started = wrapped.starter.start(
                wrapped.argv, cwd=str(there.workspace), env=there.env(), stdin=theirs, stdout=theirs, stderr=theirs
            )
            said = b""
            while b"over" not in said:
                said += os.read(ours, 1 << 12)
            assert started.wait(60) == 0
            assert [word for word in (b"one", b"two", b"three") if word not in said] == []
            assert b"came through" not in said
    finally:
        os.close(other)
        os.close(another)
    assert "denied" in confined(Landlock(), there, f"echo x > {os.ttyname(theirs)}").output


def test_temporary_files_go_to_a_private_folder(there):
    sandbox = Landlock()

    assert confined(sandbox, there, "echo x > $TMPDIR/a; cat $TMPDIR/a") == (0, "x\n")
    assert confined(sandbox, there, "cat $TMPDIR/a") == (0, "x\n")
    assert confined(sandbox, there, f"echo x > {there.workspace.parent}/b").code != 0


def test_what_comes_into_being_beside_a_secret_later_can_be_read(there):
    sandbox = Landlock()
    assert confined(sandbox, there, "cat $OUT/secret").code != 0
    (there.outside / "later").write_text("later\n")

    assert confined(sandbox, there, "cat $OUT/later") == (0, "later\n")
    assert confined(sandbox, there, "cat $OUT/secret").code != 0


def test_the_network_is_on_or_off(there):
    script = "exec 3<> /dev/tcp/127.0.0.1/$TCP; echo hello >&3; cat <&3"

    assert confined(Landlock(), there, script, there.profile(network=True)) == (0, "heard\n")

    assert there.heard == ["tcp hello\n"]


def test_hosts_that_cannot_be_told_apart_are_not_reached(there):
    profile = there.profile(hosts=("example.org",), proxy=str(there.unix))

    assert confined(Landlock(), there, "echo hello > /dev/tcp/127.0.0.1/3128", profile).code != 0
    assert there.heard == []


def test_a_writable_folder_that_is_not_there_lets_nothing_run(there):
    with pytest.raises(OSError):
        confined(Landlock(), there, "echo ran", there.profile(writable=(str(there.workspace / "absent"),)))


def test_programs_have_no_rights_beyond_the_users(there):
    ran = confined(Landlock(), there, "grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status")

    rights = dict(line.split(":\t") for line in ran.output.splitlines())
    assert rights["NoNewPrivs"] == "1"
    assert rights["CapEff"] == "0" * 16
    assert os.getuid() != 0 or rights["CapBnd"] == "0" * 16
