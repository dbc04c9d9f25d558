"""The spawner: it starts commands as `Popen` does, survives junk, and leaves nothing when the engine dies."""

import contextlib
import os
import resource
import select
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from ferrule.sandbox import Profile, cell, orders, spawner
from ferrule.sandbox.spawner import Spawned

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is started this way")
WAYS: tuple[Literal["namespaces", "landlock"], ...] = ("namespaces", "landlock")
LIMIT_SECONDS = 60


@pytest.fixture(params=WAYS)
def starter(request, tmp_path: Path) -> spawner.Confined:
    return spawner.Confined(spawner.CellKind(request.param), Profile(writable=(str(tmp_path),)))


def start(starter: spawner.Confined, script: str, cwd: Path, stdout: int | None = None, **env: str) -> Spawned:
    return start_argv(starter, ["bash", "-c", script], cwd, stdout, **env)


def start_argv(starter: spawner.Confined, argv: list[str], cwd: Path, stdout: int | None = None, **env: str) -> Spawned:
    with open(os.devnull, "r+b") as nothing:
        number = nothing.fileno()
        out = number if stdout is None else stdout
        every = {"PATH": os.environ.get("PATH", os.defpath), **env}
        return starter.start(argv, cwd=str(cwd), env=every, stdin=number, stdout=out, stderr=out)


def output(starter: spawner.Confined, script: str, cwd: Path, **env: str) -> str:
    with open(cwd / "output", "w+b") as file:
        started = start(starter, script, cwd, file.fileno(), **env)
        started.wait(LIMIT_SECONDS)
    return (cwd / "output").read_text()


def await_end(pid: int) -> None:
    """Wait until a process is no more, whoever its parent is."""
    with contextlib.suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        try:
            assert select.select([descriptor], [], [], LIMIT_SECONDS)[0], f"process {pid} lives on"
        finally:
            os.close(descriptor)


@pytest.mark.parametrize(
    ("script", "code"),
    [
        pytest.param("true", 0, id="nothing"),
        pytest.param("exit 7", 7, id="code"),
        pytest.param("exit 255", 255, id="high-code"),
        pytest.param("kill -TERM $$", -15, id="signal"),
        pytest.param("kill -KILL $$", -9, id="killed"),
        pytest.param("kill -SEGV $$", -11, id="fault"),
        pytest.param("exec sh -c 'exit 3'", 3, id="another-program"),
    ],
)
def test_codes_are_those_of_popen(script, code, starter, tmp_path):
    started = start(starter, script, tmp_path)

    assert started.wait(LIMIT_SECONDS) == code
    assert started.returncode == started.poll() == code


@pytest.mark.parametrize(
    ("argv", "cwd", "error", "named"),
    [
        pytest.param(["no-such-program"], "", FileNotFoundError, "no-such-program", id="no-program"),
        pytest.param(["./plain"], "", PermissionError, "./plain", id="not-executable"),
        pytest.param(["true"], "absent", FileNotFoundError, "absent", id="no-folder"),
        pytest.param(["true"], "plain", NotADirectoryError, "plain", id="no-folder-but-a-file"),
        pytest.param(["./garbage"], "", OSError, "./garbage", id="no-format"),
    ],
)
def test_what_cannot_start_says_why(argv, cwd, error, named, starter, tmp_path):
    (tmp_path / "plain").write_text("x")
    (tmp_path / "garbage").write_bytes(b"\x7fELF nonsense")
    (tmp_path / "garbage").chmod(0o755)

    with pytest.raises(error) as raised:
        start_argv(starter, argv, tmp_path / cwd)
    assert str(raised.value.filename).endswith(named)


@pytest.mark.parametrize(
    ("argv", "env"),
    [
        pytest.param([], {}, id="no-words"),
        pytest.param(["echo", "a\0b"], {}, id="nul"),
        pytest.param(["echo"], {"A=B": "c"}, id="name-with-equals"),
        pytest.param(["echo"], {"A": "\0"}, id="nul-in-a-variable"),
    ],
)
def test_what_no_command_can_be_given_is_refused(argv, env, starter, tmp_path):
    with pytest.raises(OSError, match="cannot be started"):
        start_argv(starter, argv, tmp_path, **env)


def test_it_leads_a_session_and_a_group_of_its_own(starter, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    started = start(starter, "read x < fifo", tmp_path)
    try:
        assert os.getsid(started.pid) == os.getpgid(started.pid) == started.pid
        assert started.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            started.wait(0.0)
    finally:
        os.killpg(started.pid, signal.SIGKILL)

    assert started.wait(LIMIT_SECONDS) == -signal.SIGKILL


def test_no_descriptor_is_handed_down(starter, tmp_path):
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    try:
        assert output(starter, "ls /proc/self/fd | tr '\\n' ' '", tmp_path) == "0 1 2 3 "
    finally:
        os.close(reader)
        os.close(writer)


@pytest.mark.parametrize("count", [1, 2, 8])
def test_descriptors_are_handed_down_under_their_own_numbers(count, starter, tmp_path):
    pipes = [os.pipe() for _ in range(count)]
    wanted = [writing for _, writing in pipes]
    script = "; ".join(f"echo {number} >&{number}" for number in wanted)
    try:
        with open(os.devnull, "r+b") as nothing:
            file = nothing.fileno()
            env = {"PATH": os.environ.get("PATH", os.defpath)}
            started = starter.start(
                ["bash", "-c", script],
                cwd=str(tmp_path),
                env=env,
                stdin=file,
                stdout=file,
                stderr=file,
                descriptors=wanted,
            )
        assert started.wait(LIMIT_SECONDS) == 0
        assert [os.read(reading, 64) for reading, _ in pipes] == [f"{number}\n".encode() for number in wanted]
    finally:
        for descriptor in (one for pipe in pipes for one in pipe):
            os.close(descriptor)


_LANDS = """
import os, sys
from ferrule.sandbox import cell as command
folder, *targets = sys.argv[1:]
targets = [int(target) for target in targets]
files = [os.open(f"{folder}/{place}", os.O_CREAT | os.O_RDWR) for place in range(3 + len(targets))]
ruleset = os.open(os.devnull, os.O_RDONLY)
assert [*files, ruleset] == list(range(3, 7 + len(targets))), "as they come in: one behind the other"
(rest,) = command._take([*files, ruleset], targets)
assert os.path.samestat(os.fstat(rest), os.stat(os.devnull))
for place, number in enumerate((0, 1, 2, *targets)):
    os.write(number, b"%d" % place)
"""


@pytest.mark.parametrize("targets", [[3, 4, 5], [5, 4, 3], [9, 3, 7], [100, 3]])
def test_descriptors_land_on_numbers_that_are_taken(targets, tmp_path):
    """In a process whose own descriptors have those numbers."""
    argv = [sys.executable, "-c", _LANDS, str(tmp_path), *map(str, targets)]
    done = subprocess.run(argv, timeout=LIMIT_SECONDS, check=False)
    places = [str(place) for place in range(3 + len(targets))]

    assert done.returncode == 0
    assert [(tmp_path / place).read_text() for place in places] == places


@pytest.mark.parametrize("targets", [[1], [0, 5], [5, 5], [-1]])
def test_standard_descriptors_and_doubles_are_no_targets(targets):
    fields = [b"/", " ".join(map(str, targets)).encode(), b"", b"1", b"true"]
    with pytest.raises(ValueError):
        cell.SandboxCommand.read(fields)


def test_whether_something_is_left_is_known_at_the_end(starter, tmp_path):
    alone, crowd = start(starter, "true", tmp_path), start(starter, "sleep 300 & true", tmp_path)
    try:
        assert (alone.alone(), crowd.alone()) == (True, False)
        assert (alone.returncode, os.getsid(alone.pid)) == (None, alone.pid), "its id is still its own"
    finally:
        crowd.end()
    assert (alone.wait(LIMIT_SECONDS), crowd.wait(LIMIT_SECONDS)) == (0, 0)


def test_words_and_variables_arrive_as_they_are(starter, tmp_path):
    word, value = "\udcff a\n'\"$x é", "v\udce9 \n"
    with open(tmp_path / "out", "w+b") as file:
        start_argv(
            starter, ["bash", "-c", 'printf "%s|%s" "$1" "$V"', "-", word], tmp_path, file.fileno(), V=value
        ).wait(LIMIT_SECONDS)

    assert (tmp_path / "out").read_bytes() == os.fsencode(f"{word}|{value}")


def test_long_commands_go_through(starter, tmp_path):
    argv = ["bash", "-c", 'printf "%s" "$@" | wc -c', "-", *["x" * 100_000] * 10]
    with open(tmp_path / "out", "w+b") as file:
        start_argv(starter, argv, tmp_path, file.fileno(), B="y" * 90_000).wait(LIMIT_SECONDS)

    assert (tmp_path / "out").read_text().strip() == "1000000"


def test_too_long_a_command_is_refused_by_the_kernel_and_the_next_one_runs(starter, tmp_path):
    with pytest.raises(OSError, match="Argument list too long"):
        start_argv(starter, ["true", "x" * 1_000_000], tmp_path)

    assert start(starter, "true", tmp_path).wait(LIMIT_SECONDS) == 0


def test_limits_of_the_engine_hold_at_the_time_of_the_start(starter, tmp_path):
    before = resource.getrlimit(resource.RLIMIT_CORE)
    assert start(starter, "true", tmp_path).wait(LIMIT_SECONDS) == 0
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))
    try:
        assert output(starter, "ulimit -n", tmp_path).strip() == str(soft - 1)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert resource.getrlimit(resource.RLIMIT_CORE) == before


def test_signals_are_no_more_ignored_or_blocked_than_in_the_engines_other_children(starter, tmp_path):
    script = "grep -E '^Sig(Ign|Blk)' /proc/self/status"
    run = output(starter, script, tmp_path)
    other = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, timeout=LIMIT_SECONDS)
    ours, theirs = ([int(row.split()[1], 16) for row in text.splitlines()] for text in (run, other.stdout))

    # Tests that a shell has put into its background ignore a few, and their other children with them.
    assert len(ours) == len(theirs) == 2
    assert [mine & ~yours for mine, yours in zip(ours, theirs, strict=True)] == [0, 0]


def test_fifty_at_once(starter, tmp_path):
    running = [start(starter, f"echo {number} > {number}", tmp_path) for number in range(50)]

    assert [started.wait(LIMIT_SECONDS) for started in running] == [0] * 50
    assert sorted(int((tmp_path / str(number)).read_text()) for number in range(50)) == list(range(50))


def test_many_threads_can_start(starter, tmp_path):
    codes: list[int] = []
    threads = [
        threading.Thread(target=lambda: codes.append(start(starter, "exit 5", tmp_path).wait(LIMIT_SECONDS)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_SECONDS)

    assert codes == [5] * 8


def test_the_end_of_the_command_counts_and_not_that_of_what_it_left(starter, tmp_path):
    """What it left lives on until its group is ended, as with `Popen`."""
    for name in ("fifo", "late"):
        os.mkfifo(tmp_path / name)
    started = start(starter, "(read x < fifo; echo $x > late) & exit 4", tmp_path)
    assert started.wait(LIMIT_SECONDS) == 4
    (tmp_path / "fifo").write_text("still here\n")

    assert (tmp_path / "late").read_text() == "still here\n"


def test_all_of_it_can_be_ended_also_what_hides(starter, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    hidden = "(setsid setsid bash -c 'trap \"\" TERM; echo > ready; read x < fifo' &)"
    os.mkfifo(tmp_path / "ready")
    started = start(starter, f"{hidden}; read x < fifo", tmp_path)
    (tmp_path / "ready").read_text()
    family = below(spawner._state.process.pid if spawner._state.process else 0)
    commands = [pid for pid in family if b"fifo" in cmdline(pid)]
    assert len(commands) >= 2
    started.end()

    assert started.wait(LIMIT_SECONDS) == -signal.SIGKILL
    for pid in commands:
        await_end(pid)


def cmdline(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def test_junk_is_answered_and_survived(tmp_path):
    kind = spawner.CellKind("landlock")
    starter = spawner.Confined(kind, Profile(writable=(str(tmp_path),)))
    assert start(starter, "true", tmp_path).wait(LIMIT_SECONDS) == 0
    channel = spawner.cell(kind)
    for junk in (b"", b"\0", b"start", b"start\0\0\0", b"profile\0x\0y\0z", b"\xff" * 1000, b"pid\x001", b"settle\0x"):
        orders.send(channel._socket, junk)
        assert orders.receive(channel._socket)[0] == b"error\0%d\0" % 74

    channel._socket.send(b"junk without a head")
    assert orders.receive(channel._socket)[0] == b"error\0%d\0" % 74
    assert start(starter, "exit 6", tmp_path).wait(LIMIT_SECONDS) == 6


def test_a_killed_cell_takes_its_commands_along_and_the_next_command_gets_another(tmp_path):
    engine = Engine("namespaces", tmp_path, "die")

    assert engine.said == ["-9", "0"]


def test_a_killed_spawner_is_replaced(tmp_path):
    engine = Engine("landlock", tmp_path, "replace")

    assert engine.said[-1] == "0"


class Engine:
    """A process of its own that has a spawner, and does what it is told."""

    def __init__(self, way: str, folder: Path, task: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _ENGINE, way, str(folder), task],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.said: list[str] = []
        if task != "wait":
            text, _ = self.process.communicate(timeout=LIMIT_SECONDS)
            self.said = text.split()


_ENGINE = """
import os, signal, sys
from ferrule.sandbox import spawner
from ferrule.sandbox import Profile
way, folder, task = sys.argv[1:]
kept = (folder + "/.absent",)
starter = spawner.Confined(spawner.CellKind(way), Profile(writable=(folder,), kept=kept))
nothing = os.open(os.devnull, os.O_RDWR)
def start(script):
    env = {"PATH": os.environ["PATH"]}
    return starter.start(["bash", "-c", script], cwd=folder, env=env, stdin=nothing, stdout=nothing, stderr=nothing)
script = "setsid bash -c 'read x < fifo' & (setsid setsid bash -c 'trap \\"\\" TERM; read x < fifo' &); read x < fifo"
def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(one) for one in file.read().split()]
os.mkfifo(folder + "/fifo")
if task == "wait":
    running = start(script)
    print(running.pid, spawner._state.process.pid, flush=True)
    sys.stdin.read()
elif task == "die":
    running = start(script)
    [cell] = children(spawner._state.process.pid)
    os.kill(cell, signal.SIGKILL)
    print(running.wait(60))
    print(start("true").wait(60))
else:
    running = start("true")
    running.wait(60)
    os.kill(spawner._state.process.pid, signal.SIGKILL)
    spawner._state.process.wait()
    starter = spawner.Confined(spawner.CellKind(way, unix_sockets=True), Profile(writable=(folder,)))
    print(start("true").wait(60))
"""


def below(pid: int) -> set[int]:
    found: set[int] = set()
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()
            if int(fields[1]) == pid:
                found |= {int(name), *below(int(name))}
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("how", ["killed", "closed"])
def test_nothing_outlives_the_engine(way, how, tmp_path):
    engine = Engine(way, tmp_path, "wait")
    assert engine.process.stdout is not None
    assert engine.process.stdin is not None
    command, parent = (int(word) for word in engine.process.stdout.readline().split())
    family = {command, parent, *below(parent)}
    assert len(family) >= 4
    if how == "killed":
        engine.process.kill()
    engine.process.communicate(timeout=LIMIT_SECONDS)

    for pid in family:
        await_end(pid)
    assert sorted(os.listdir(tmp_path)) == ["fifo"]


def test_a_fork_of_the_engine_does_not_keep_its_commands_alive(starter, tmp_path):
    assert start(starter, "true", tmp_path).wait(LIMIT_SECONDS) == 0
    pid = os.fork()
    if pid == 0:
        os._exit(0 if spawner._state.socket is None and not spawner._state.cells else 1)

    assert os.waitpid(pid, 0)[1] == 0


def test_packets_of_any_size_arrive_with_their_descriptors():
    one, two = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with one, two, open(os.devnull, "rb") as nothing:
        for size in (0, 1, 1 << 15, (1 << 15) + 1, 3_000_000):
            orders.send(one, b"x" * size, [nothing.fileno()])
            data, files = orders.receive(two)
            assert data == b"x" * size
            assert [stat.S_ISCHR(os.fstat(file).st_mode) for file in files] == [True]
            assert not any(os.get_inheritable(file) for file in files)
            for file in files:
                os.close(file)
        one.close()
        assert orders.receive(two) == (None, [])


@pytest.fixture(autouse=True)
def no_descriptor_is_left() -> Iterator[None]:
    for way in WAYS:
        spawner.cell(spawner.CellKind(way))
    before = sorted(os.listdir("/dev/fd"))
    yield
    assert sorted(os.listdir("/dev/fd")) == before
