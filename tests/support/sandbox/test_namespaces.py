"""Confinement by namespaces: every attempt fails, every chore works, and nothing is left in the workspace."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import ferrule
from ferrule.sandbox import Wrapped, landlock
from ferrule.sandbox import landlock as namespaces
from ferrule.sandbox.landlock import Namespaces
from ferrule.sandbox.spawner import Confined
from ferrule.sandbox.view import ProfilePaths, view
from ferrule.system.child import ProcessHandle

from . import attempts
from .attempts import ATTEMPTS, CHORES, World, confined, unconfined, world

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's; elsewhere works() says so")


@pytest.fixture
def there(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        yield made


@pytest.fixture(autouse=True)
def it_works() -> None:
    assert namespaces.namespaces_work() == "", f"This machine has no user namespaces: {namespaces.namespaces_work()}"


def places(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_dir() and stat.S_IMODE(path.stat().st_mode) == 0o1500]


@pytest.mark.parametrize("attempt", [pytest.param(one, id=one.name) for one in ATTEMPTS])
def test_an_attempt_is_stopped(attempt, there):
    ran = confined(Namespaces(), there, attempt.script)

    assert not attempt.happened(there, ran), ran.output


@pytest.mark.parametrize("attempt", [pytest.param(one, id=one.name) for one in ATTEMPTS])
def test_the_same_attempt_comes_through_unconfined(attempt, there):
    ran = unconfined(there, attempt.script)

    assert attempt.happened(there, ran) is attempt.unconfined, ran.output


@pytest.mark.parametrize("chore", [pytest.param(one, id=one.name) for one in CHORES])
def test_a_chore_works(chore, there):
    ran = confined(Namespaces(), there, chore.script)

    assert ran == (0, chore.output.format(workspace=there.workspace))


def test_shared_memory_is_private(there):
    script = "$PY -c 'import multiprocessing as m; m.Semaphore(1); print(1)' && ls -A /dev/shm && touch /dev/shm/x"

    assert confined(Namespaces(), there, script) == (0, "1\n")
    assert not os.path.exists("/dev/shm/x")


def test_temporary_files_stay_from_command_to_command_and_are_nobody_elses(there):
    name = f"ferrule-{os.getpid()}-{there.workspace.parent.name}"
    profile = there.profile(loopback=True)

    assert confined(Namespaces(), there, f"echo x > /tmp/{name}; echo y > /var/tmp/{name}", profile).code == 0
    assert confined(Namespaces(), there, f"cat /tmp/{name} /var/tmp/{name}", profile) == (0, "x\ny\n")
    assert not os.path.exists(f"/tmp/{name}")
    assert not os.path.exists(f"/var/tmp/{name}")


def start(wrapped: Wrapped, there: World) -> ProcessHandle:
    assert isinstance(wrapped.starter, Confined)
    with open(os.devnull, "r+b") as nothing:
        number = nothing.fileno()
        return wrapped.starter.start(
            wrapped.argv, cwd=str(there.workspace), env=there.env(), stdin=number, stdout=number, stderr=number
        )


def test_nothing_of_ours_is_in_the_workspace_while_a_command_runs(there):
    os.mkfifo(there.workspace / "fifo")
    before = sorted(there.workspace.rglob("*"))
    wrapped = Namespaces().wrap(["bash", "-c", "read x < fifo"], there.profile(), cwd=str(there.workspace))
    started = start(wrapped, there)
    while_it_runs = sorted(there.workspace.rglob("*"))
    (there.workspace / "fifo").write_text("go on\n")
    assert started.wait(60) == 0

    assert while_it_runs == before


def test_an_empty_folder_of_the_users_own_stays(there):
    (there.workspace / ".mcp.json").mkdir()

    assert confined(Namespaces(), there, "touch .mcp.json/x").code != 0
    assert (there.workspace / ".mcp.json").is_dir()


@pytest.mark.parametrize("link", ["src/a.txt", "nowhere", "src"])
def test_a_kept_name_that_is_a_link_cannot_be_replaced(link, there):
    (there.workspace / ".mcp.json").symlink_to(link)
    attacks = ("rm -f .mcp.json", "mv .mcp.json x", "ln -sfT src/b .mcp.json", "echo x > n", "mv -fT n .mcp.json")
    ran = confined(Namespaces(), there, "; ".join(attacks))

    assert ran.code != 0
    assert os.readlink(there.workspace / ".mcp.json") == link


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"writable": ("/",), "kept": (), "masked": ()}, id="everything-writable"),
        pytest.param({"writable": ("relative",), "kept": (), "masked": ()}, id="not-absolute"),
        pytest.param({"masked": ("{parent}",)}, id="workspace-in-a-hidden-folder"),
        pytest.param({"kept": ("{workspace}",)}, id="kept-and-writable"),
        pytest.param({"writable": ("{workspace}/absent",)}, id="writable-and-absent"),
        pytest.param({"masked": ("/etc/../etc/passwd",)}, id="not-normal"),
    ],
)
def test_what_cannot_be_enforced_does_not_run(changes, there):
    words = {"parent": str(there.workspace.parent), "workspace": str(there.workspace)}
    profile = there.profile(**{name: tuple(one.format(**words) for one in paths) for name, paths in changes.items()})

    with pytest.raises(OSError):
        confined(Namespaces(), there, "echo ran", profile)


def test_programs_have_no_rights_at_all(there):
    ran = confined(Namespaces(), there, "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status")

    rights = dict(line.split(":\t") for line in ran.output.splitlines())
    assert rights.pop("NoNewPrivs") == "1"
    assert rights.pop("Seccomp") == "2"
    assert set(rights.values()) == {"0" * 16}


def test_it_talks_to_itself_where_that_is_allowed(there):
    script = (
        '$PY -c \'import socket; s = socket.create_server(("127.0.0.1", 0)); '
        'c = socket.create_connection(s.getsockname()); a, _ = s.accept(); c.send(b"1"); print(a.recv(1))\''
    )

    assert confined(Namespaces(), there, script, there.profile(loopback=True)) == (0, "b'1'\n")
    assert confined(Namespaces(), there, script).code != 0


def test_with_the_network_it_reaches_others_and_still_no_files(there):
    script = "exec 3<> /dev/tcp/127.0.0.1/$TCP; echo hello >&3; cat <&3; echo x 2> /dev/null > $OUT/new"

    confined(Namespaces(), there, script, there.profile(network=True))

    assert there.heard == ["tcp hello\n"]
    assert not (there.outside / "new").exists()


def test_an_ordinary_user_is_confined_just_as_well():
    """Only root can try as somebody else; whoever else runs this has been that user all along."""
    if os.getuid() != 0:
        assert namespaces.namespaces_work() == landlock.landlock_works() == ""
        return
    folder = Path(tempfile.mkdtemp(dir="/var/lib"))
    try:
        package, tests = Path(ferrule.__file__).parent, Path(attempts.__file__).parent
        shutil.copytree(package / "sandbox", folder / "ferrule/sandbox")
        shutil.copytree(tests, folder / "tests/support/sandbox")
        for inside in ("ferrule", "tests", "tests/support"):
            (folder / inside / "__init__.py").touch()
        home = folder / "home"
        home.mkdir()
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
        os.chown(home, 65534, 65534)
        done = subprocess.run(
            [attempts.python(), "-c", _AS_NOBODY, str(home)],
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(home),
                "PYTHONPATH": str(folder),
            },
            cwd=home,
            user=65534,
            group=65534,
            extra_groups=[],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    finally:
        shutil.rmtree(folder)

    assert (done.stderr, done.stdout) == ("", "[] []\n")


_AS_NOBODY = """
import sys
from pathlib import Path
from tests.support.sandbox.attempts import ATTEMPTS, CHORES, came_through, confined, world
from ferrule.sandbox import spawner
from ferrule.sandbox.landlock import Landlock
from ferrule.sandbox.landlock import Namespaces
home = Path(sys.argv[1])
kept = [one for one in ATTEMPTS if not one.needs_tripwire]
for sandbox, attempts in ((Namespaces(), kept), (Landlock(), [one for one in kept if not one.needs_mounts])):
    folder = home / sandbox.name
    folder.mkdir()
    wrong = came_through(sandbox, attempts, folder)
    (folder / "chores").mkdir()
    with world(folder / "chores") as there:
        for chore in [one for one in CHORES if sandbox.name == "namespaces" or not one.needs_mounts]:
            ran = confined(sandbox, there, chore.script, watched=False)
            if ran != (0, chore.output.format(workspace=there.workspace)):
                wrong.append(chore.name)
    print(wrong, end=" " if sandbox.name == "namespaces" else "\\n")
spawner.close()
"""


@pytest.mark.parametrize(
    ("kept", "held"),
    [
        pytest.param((), (b"/w/a", b"/w/a/b"), id="all"),
        pytest.param((b"/w/a/x",), (b"/w/a/b",), id="one-is-a-way-already"),
        pytest.param((b"/w/a/b/c",), (), id="both-are"),
        pytest.param((b"/w/a",), (), id="in-a-folder-that-is-kept"),
    ],
)
def test_folders_that_lead_to_a_secret_are_held_where_nothing_holds_them(kept, held):
    paths = ProfilePaths([b"/w"], list(kept), [b"/w/a/b/.env", b"/out/d/.env", b"/w/.env"], [], [], [], [], [])

    assert (view(paths).held, view(paths).closed) == (held, ())


def test_with_very_many_ways_to_secrets_a_folder_cannot_be_written_and_they_stay_secret(there):
    count = 600
    many = there.workspace / "many"
    for number in range(count):
        (many / str(number)).mkdir(parents=True)
        (many / str(number) / ".env").write_text(attempts.SECRET)
    masked = tuple(str(many / str(number) / ".env") for number in range(count))
    script = "cat many/*/.env; mv many/1 many/x; mv many x; echo x > many/1/new; echo x > new; ls many | wc -l"

    ran = confined(Namespaces(), there, script, there.profile(masked=masked))

    assert attempts.SECRET not in ran.output
    assert ran.output.endswith(f"{count}\n")
    assert (many / "1/.env").exists()
    assert not (many / "1/new").exists()
    assert (there.workspace / "new").exists()


def test_what_it_lacks_is_said_in_sentences():
    assert all(text.endswith(".") for text in Namespaces().lacks)
    assert not any("/proc" in text for text in Namespaces().lacks) or not os.access("/proc/1/status", os.R_OK)
