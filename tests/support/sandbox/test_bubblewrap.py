"""Bubblewrap: what a command inside can see and change, and that nothing stays behind in the workspace."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.sandbox import Profile, SandboxError, Wrapped, bubblewrap
from ferrule.sandbox.bubblewrap import Bubblewrap
from ferrule.sandbox.landlock import Namespaces
from ferrule.sandbox.placeholders import LinkError, layout, ways

from .attempts import ATTEMPTS, CHORES, LIMIT_SECONDS, SECRET, Ran, World, tripwire, unconfined, world

WHY = Bubblewrap().works()
"""Why this machine has no bubblewrap that works. Then only what needs none is tested, and that it says so."""
needs_bwrap = pytest.mark.skipif(bool(WHY), reason=f"NOT TESTED HERE, bubblewrap does not confine: {WHY}")


@pytest.fixture
def there(tmp_path):
    with world(tmp_path) as made:
        yield made


def confined(there: World, script: str, profile: Profile | None = None) -> Ran:
    wire = tripwire(there, profile)
    wrapped = Bubblewrap().wrap(("/bin/bash", "-c", script), profile or there.profile(), cwd=str(there.workspace))
    result = ran(wrapped, there.env(), there.workspace)
    wire.end(())
    return result


def ran(wrapped: Wrapped, env: dict[str, str], cwd: Path) -> Ran:
    try:
        done = subprocess.run(
            wrapped.argv,
            cwd=cwd,
            env={**env, **wrapped.env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=wrapped.descriptors,
            start_new_session=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )
    finally:
        over(wrapped)
    return Ran(done.returncode, done.stdout.decode(errors="replace"))


def over(wrapped: Wrapped) -> None:
    for descriptor in wrapped.descriptors:
        os.close(descriptor)
    wrapped.done()


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_machine_without_it_is_told_so(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))

    assert Bubblewrap().works() == "There is no program bwrap on PATH."
    with pytest.raises(SandboxError, match="Install bubblewrap"):
        Bubblewrap().wrap(("true",), Profile(), cwd="/")


@pytest.mark.parametrize("said", ["bwrap: No permissions to create new namespace", ""])
def test_one_that_does_not_work_is_known_by_trying(monkeypatch, tmp_path, said):
    (tmp_path / "bwrap").write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert Bubblewrap().works() == f"bwrap fails: {said or 'exit code 1'}"


def test_the_workspace_does_not_bring_its_own(monkeypatch, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "bwrap").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    with pytest.raises(SandboxError, match="outside the workspace"):
        Bubblewrap().wrap(("true",), Profile(writable=(str(tmp_path),)), cwd=str(tmp_path))


@pytest.mark.parametrize("attempt", [pytest.param(each, id=each.name) for each in ATTEMPTS if each.unconfined])
def test_unconfined_the_attempt_comes_through(there, attempt):
    assert attempt.happened(there, unconfined(there, attempt.script))


@needs_bwrap
@pytest.mark.parametrize("attempt", [pytest.param(each, id=each.name) for each in ATTEMPTS])
def test_confined_the_attempt_fails_and_leaves_nothing(there, attempt):
    result = confined(there, attempt.script)

    assert not attempt.happened(there, result), result.output


@needs_bwrap
@pytest.mark.parametrize("chore", [pytest.param(each, id=each.name) for each in CHORES])
def test_what_people_do_all_day_still_works(there, chore):
    if chore.name == "read-outside" and str(there.outside).startswith(("/tmp/", "/var/tmp/")):
        pytest.xfail("This user's home is in a temporary folder, which is another one inside.")
    result = confined(there, chore.script)

    assert (result.code, result.output) == (0, chore.output.format(workspace=there.workspace))


@needs_bwrap
def test_work_in_the_workspace_goes_on(there):
    script = """
        set -e
        echo new > new; mkdir -p a/b; mv new a/b; ln -s a/b l; ln a/b/new hard; rm src/a.txt
        echo x > .git/index; echo x > $TMPDIR/t; cat $TMPDIR/t /tmp/t; cat /etc/passwd > /dev/null
        $PY -c 'import socket, threading
server = socket.create_server(("127.0.0.1", 0))
one = socket.create_connection(server.getsockname()); print("loopback of its own")'
        $PY -c 'import socket; a, b = socket.socketpair(); a.send(b"pair"); print(b.recv(9))'
        : > /dev/null; head -c 1 /dev/urandom > /dev/null; sleep 0 & wait; echo done
    """

    result = confined(there, script, there.profile(loopback=True))

    assert (result.code, result.output.splitlines()[-1]) == (0, "done"), result.output
    assert (there.workspace / "hard").read_text() == "new\n"
    assert not os.path.exists("/tmp/t")


@needs_bwrap
@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -9 $$", 137), ("true", 0)])
def test_the_exit_code_is_the_commands(there, script, code):
    assert confined(there, script).code == code


@needs_bwrap
def test_an_ordinary_user_is_confined_too(there):
    if os.getuid() != 0:
        assert confined(there, "id -u").output.strip() == str(os.getuid())
        return
    wrapped = Bubblewrap().wrap(("/bin/sh", "-c", "id -u; echo x > /etc/ferrule-test; echo x > in"), Profile(), cwd="/")
    try:
        done = subprocess.run(
            wrapped.argv,
            capture_output=True,
            pass_fds=wrapped.descriptors,
            user=65534,
            group=65534,
            extra_groups=[],
            env={},
            timeout=LIMIT_SECONDS,
            check=False,
        )
    finally:
        over(wrapped)

    assert done.stdout == b"65534\n", done.stderr
    assert b"Read-only file system" in done.stderr or b"Permission denied" in done.stderr


def given_away(there: World, uid: int) -> None:
    for path in (there.workspace, *there.workspace.rglob("*")):
        os.chown(path, uid, uid, follow_symlinks=False)


@needs_bwrap
@pytest.mark.parametrize("attempt", [pytest.param(each, id=each.name) for each in ATTEMPTS])
def test_root_in_a_folder_of_somebody_else_is_confined_as_well(there, attempt):
    """It keeps some rights over the files there. An ordinary user has none to keep, and is tested above."""
    if os.getuid() == 0:
        given_away(there, 1000)
    profile = there.profile()
    result = confined(there, attempt.script, profile)

    assert not attempt.happened(there, result), result.output
    assert ("CAP_FOWNER" in bubblewrap._apart(shutil.which("bwrap") or "", profile, network=False)) is (
        os.getuid() == 0 and not bubblewrap._probe(shutil.which("bwrap") or "", user_namespace=False)
    )


@needs_bwrap
def test_root_can_work_in_a_folder_of_somebody_else(there):
    if os.getuid() != 0 or bubblewrap._probe(shutil.which("bwrap") or "", user_namespace=False):
        assert not bubblewrap._for_others(there.profile()) or os.getuid() == 0
        return
    given_away(there, 1000)
    (there.workspace / "src").chmod(0o700)
    result = confined(there, "echo b >> src/a.txt && echo new > src/new && grep -i capeff /proc/self/status")

    assert (result.code, result.output.split()) == (0, ["CapEff:", "000000000000000b"])
    assert (there.workspace / "src/a.txt").read_text() == "a\nb\n"


@needs_bwrap
def test_nothing_of_ours_is_in_the_workspace_while_a_command_runs_or_after_it_was_killed(there):
    before = names(there.workspace)
    wrapped = Bubblewrap().wrap(
        ("/bin/bash", "-c", "setsid sleep 1000 & echo up; wait"), there.profile(), cwd=str(there.workspace)
    )
    with subprocess.Popen(wrapped.argv, stdout=subprocess.PIPE, pass_fds=wrapped.descriptors) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        assert names(there.workspace) == before
        process.kill()
        # All who could still write to it are gone when it ends.
        assert process.stdout.read() == b""
    over(wrapped)

    assert process.returncode == -signal.SIGKILL
    assert names(there.workspace) == before


def laid(tmp_path: Path, **given: tuple[str, ...]) -> list[tuple[str, str]]:
    profile = Profile(**{name: tuple(str(tmp_path / path) for path in paths) for name, paths in given.items()})  # type: ignore[arg-type]
    return [(os.path.relpath(path, tmp_path), kind) for path, kind, _ in layout(profile, private=())]


def test_mounts_come_from_the_top_and_the_most_special_one_wins(tmp_path):
    for name in ("w/.claude/trees/t/.git", "w/keys/k", "w/a"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "w/a/.env").write_text("")

    assert laid(
        tmp_path,
        writable=("w", "w/.claude/trees/t"),
        kept=("w/.claude", "w/.claude/settings.json", "w/.claude/trees/t/.git", "w/keys/k", "w/a/b/c", "elsewhere"),
        masked=("w/keys", "w/a/.env", "nowhere"),
    ) == [
        ("w", "bind"),
        ("w/.claude", "read-only"),
        ("w/.claude/trees/t", "bind"),
        ("w/.claude/trees/t/.git", "read-only"),
        ("w/a", "bind"),
        ("w/a/.env", "nothing"),
        ("w/keys", "empty"),
    ]


def test_folders_that_lead_to_a_secret_are_mounts_unless_they_are_read_only_anyway(tmp_path):
    for name in ("w/a/b", "w/.claude/c", "w/keys/d", "out/e"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / ".env").write_text("")

    assert laid(
        tmp_path,
        writable=("w",),
        kept=("w/.claude",),
        masked=("w/a/b/.env", "w/.claude/c/.env", "w/keys", "w/keys/d/.env", "out/e/.env"),
    ) == [
        ("out/e/.env", "nothing"),
        ("w", "bind"),
        ("w/.claude", "read-only"),
        ("w/.claude/c/.env", "nothing"),
        ("w/a", "bind"),
        ("w/a/b", "bind"),
        ("w/a/b/.env", "nothing"),
        ("w/keys", "empty"),
    ]


@pytest.mark.parametrize(
    ("most", "held", "closed"),
    [
        pytest.param(9, ["/w/a", "/w/c", "/w/a/1", "/w/a/2", "/w/a/1/x"], [], id="all"),
        pytest.param(5, ["/w/a", "/w/c", "/w/a/1", "/w/a/2", "/w/a/1/x"], [], id="just-all"),
        pytest.param(4, ["/w/a", "/w/c", "/w/a/2"], ["/w/a/1"], id="without-the-deepest"),
        pytest.param(3, ["/w/c"], ["/w/a"], id="the-first-level"),
        pytest.param(1, [], ["/w"], id="none"),
    ],
)
def test_of_too_many_ways_to_secrets_the_upper_ones_are_held_and_what_is_below_is_closed(most, held, closed):
    masked = ("/w/a/1/x/.env", "/w/a/2/.env", "/w/c/.env", "/w/.env", "/elsewhere/.env")

    found = ways(masked, ("/w",), most=most)

    assert (sorted(found.held), found.closed) == (sorted(held), closed)


@given(
    st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=5), max_size=12),
    st.integers(min_value=0, max_value=12),
)
def test_however_many_ways_there_are_every_folder_above_a_secret_is_held_or_in_a_closed_one(found, most):
    masked = ["/".join(["/w", *parts, ".env"]) for parts in found]

    held, closed = ways(masked, ("/w",), most=most)

    assert len(held) <= most
    for upper in {str(upper) for path in masked for upper in Path(path).parents if Path("/w") in upper.parents}:
        assert upper in held or any(upper == one or upper.startswith(one + "/") for one in closed)


def test_a_folder_with_too_many_ways_is_closed_and_nothing_in_it_is_open(tmp_path, monkeypatch):
    monkeypatch.setattr("ferrule.sandbox.placeholders.ways", lambda masks, writable: ways(masks, writable, most=2))
    for name in ("w/a/1", "w/a/2", "w/a/n/3", "w/b"):
        (tmp_path / name / "d").mkdir(parents=True)
        (tmp_path / name / "d/.env").write_text("")

    assert laid(
        tmp_path,
        writable=("w", "w/a/n"),
        kept=("w/a/1/.vscode/tasks.json", "w/a/2/d"),
        masked=("w/a/1/d/.env", "w/b/d/.env"),
    ) == [
        ("w", "bind"),
        ("w/a", "read-only"),
        ("w/a/1/d/.env", "nothing"),
        ("w/a/2/d", "read-only"),
        ("w/a/n", "bind"),
        ("w/b", "read-only"),
        ("w/b/d/.env", "nothing"),
    ]


@pytest.mark.parametrize("path", ["relative", "/a/../b", "/a//b", "/a\0b", ""])
def test_paths_that_can_be_read_in_two_ways_are_refused(path):
    with pytest.raises(SandboxError, match="absolute"):
        layout(Profile(writable=(path,)), private=())


@pytest.mark.parametrize("kept", [".vscode", ".vscode/tasks.json"])
def test_a_link_that_must_stay_is_refused_or_given_to_another_sandbox(tmp_path, kept):
    (tmp_path / "real").mkdir()
    (tmp_path / "real/tasks.json").touch()
    (tmp_path / ".vscode").symlink_to("real")
    profile = Profile(writable=(str(tmp_path),), kept=(str(tmp_path / kept),))
    answer = Wrapped(("another",))

    class Other:
        name = "another"
        lacks = ()

        def __init__(self, why: str) -> None:
            self.why = why

        def works(self) -> str:
            return self.why

        def wrap(self, argv, profile, *, cwd):
            return answer

    if not WHY:
        with pytest.raises(LinkError, match="symbolic link"):
            Bubblewrap().wrap(("true",), profile, cwd=str(tmp_path))
        with pytest.raises(LinkError, match="symbolic link"):
            Bubblewrap(otherwise=lambda: Other("broken")).wrap(("true",), profile, cwd=str(tmp_path))
        assert Bubblewrap(otherwise=lambda: Other("")).wrap(("true",), profile, cwd=str(tmp_path)) is answer
    with pytest.raises(LinkError, match="symbolic link"):
        layout(profile, private=())


@needs_bwrap
@pytest.mark.parametrize(("count", "is_other"), [(90, False), (120, True)])
def test_what_takes_very_many_mounts_is_given_to_another_sandbox_where_there_is_one(tmp_path, count, is_other):
    for number in range(count):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / ".env").touch()
    masked = tuple(str(tmp_path / str(number) / ".env") for number in range(count))
    profile = Profile(writable=(str(tmp_path),), masked=masked)
    kinds = []
    for otherwise in (None, Namespaces):
        wrapped = Bubblewrap(otherwise=otherwise).wrap(("true",), profile, cwd=str(tmp_path))
        kinds.append(wrapped.starter is not None)
        over(wrapped)

    assert kinds == [False, is_other and not Namespaces().works()]


@needs_bwrap
def test_a_secret_behind_a_link_is_masked_at_both_names(there):
    (there.workspace / "link").symlink_to("src/a.txt")
    (there.workspace / "src/a.txt").write_text(SECRET)
    profile = there.profile(masked=(str(there.workspace / "link"),))

    assert SECRET not in confined(there, "cat link src/a.txt", profile).output
    assert SECRET in confined(there, "cat link src/a.txt", there.profile(masked=())).output


@needs_bwrap
def test_the_network_is_there_when_it_is_allowed(there):
    script = "echo hello > /dev/tcp/127.0.0.1/$TCP && echo came through"

    assert "came through" in confined(there, script, there.profile(network=True)).output
    assert "came through" not in confined(there, script).output


@needs_bwrap
def test_nothing_of_the_engine_leaks_into_the_command(there):
    result = confined(there, "ls /proc/self/fd | wc -l; ls -l /proc/self/fd")

    assert result.output.splitlines()[0] == "4", result.output


@needs_bwrap
def test_what_it_lacks_without_a_table_of_system_calls_is_said(monkeypatch):
    monkeypatch.setattr(bubblewrap, "_build_call_filter", lambda **_: b"")

    assert Bubblewrap().lacks[2].startswith("System calls are not restricted")


@needs_bwrap
@pytest.mark.parametrize("alone", ["_build_call_filter", "_nested"])
def test_either_of_two_walls_keeps_user_namespaces_out(there, monkeypatch, alone):
    """From a user namespace of its own a command could detach what lies over a protected file, and replace it."""
    attempt = ATTEMPTS_BY_NAME["namespaces"]
    if alone == "_build_call_filter":
        monkeypatch.setattr(bubblewrap, "_build_call_filter", lambda **_: b"")
        if not bubblewrap._can_disable_userns(shutil.which("bwrap") or ""):
            assert any("User namespaces" in each for each in Bubblewrap().lacks)
            return
    else:
        monkeypatch.setattr(bubblewrap, "_can_disable_userns", lambda path: False)

    assert not attempt.happened(there, confined(there, attempt.script))


@needs_bwrap
def test_its_own_loopback_is_no_way_to_the_machines(there):
    script = "echo hello > /dev/tcp/127.0.0.1/$TCP"
    confined(there, script, there.profile(loopback=True))

    assert there.heard == []


ATTEMPTS_BY_NAME = {each.name: each for each in ATTEMPTS}


@pytest.fixture(autouse=True)
def bash_is_there():
    assert shutil.which("bash") is not None
