"""The roster: what a killed engine has left is ended by the next one, and nothing else is."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ferrule.system import proc
from ferrule.system.command import Launch, start
from ferrule.system.tasks import start_detached
from ferrule.system.tree import MARK, ProcessTree, Roster

from .test_process import living
from .test_process_running import mark

__all__ = ["mark"]

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only the process group can be found")
ENGINE = (
    "import asyncio, os, re, sys\n"
    "from ferrule.system.tree import Roster\n"
    "from ferrule.system.command import Launch, start\n"
    "async def main():\n"
    "    launch = Launch(['/bin/bash', '-c', sys.argv[2]], '/', os.environ, roster=Roster(sys.argv[1]), task='b1')\n"
    "    running = start(launch)\n"
    "    await running.wait(until=re.compile('ready'))\n"
    "    print('ready', flush=True)\n"
    "    await running.wait()\n"
    "asyncio.run(main())\n"
)


@pytest.fixture
def engine(tmp_path) -> Iterator[object]:
    """Starts an engine's process with one command, and gives it back when the command is ready."""
    engines: list[subprocess.Popen[str]] = []

    def begin(command: str) -> subprocess.Popen[str]:
        argv = [sys.executable, "-c", ENGINE, str(tmp_path), command]
        one = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        engines.append(one)
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
        return one

    yield begin
    for one in engines:
        one.kill()
        one.wait(60)
        assert one.stdout is not None
        one.stdout.close()


def kill(engine: subprocess.Popen[str]) -> None:
    engine.send_signal(signal.SIGKILL)
    engine.wait(60)


def await_gone(mark: str) -> None:
    until = time.monotonic() + 60
    while living(mark) and time.monotonic() < until:
        pass
    assert living(mark) == []


@linux_only
@pytest.mark.parametrize(
    "command",
    [
        pytest.param("echo ready; sleep {mark}; sleep {mark}", id="plain"),
        pytest.param("trap '' TERM; echo ready; sleep {mark}; sleep {mark}", id="ignores-sigterm"),
        pytest.param("setsid sleep {mark} & echo ready; sleep {mark}; sleep {mark}", id="own-session"),
        pytest.param("(env -i setsid sleep {mark} &); echo ready; wait", id="daemon-without-environment"),
    ],
)
def test_what_a_killed_engine_leaves_is_swept(engine, tmp_path, mark, command):
    one = engine(command.format(mark=mark))
    kill(one)
    swept = Roster(str(tmp_path)).sweep()

    await_gone(mark)
    assert len(swept) <= 1  # one whose output nobody takes may have ended by itself
    assert list(tmp_path.iterdir()) == []


@linux_only
def test_the_commands_of_living_engines_are_listed_and_left_alone(engine, tmp_path, mark):
    engine(f"echo ready; exec sleep {mark}")
    roster = Roster(str(tmp_path))

    assert roster.sweep() == []
    (entry,) = roster.entries()
    assert (entry.task, entry.cwd, entry.detached, entry.pid) == ("b1", "/", False, living(mark)[-1])
    assert f"sleep {mark}" in entry.command
    assert roster.stop(entry)
    await_gone(mark)
    assert roster.entries() == []


async def test_a_command_that_has_ended_is_on_no_roster(tmp_path):
    roster = Roster(str(tmp_path))
    running = start(Launch(["/bin/sh", "-c", "read x"], "/", os.environ, stdin="pipe", roster=roster, task="b7"))

    await asyncio.sleep(0)
    assert [(entry.task, entry.command) for entry in roster.entries()] == [("b7", "/bin/sh -c read x")]
    running.close_stdin()
    await running.wait()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_command_gets_its_id_when_it_becomes_a_task(at_once, tmp_path):
    roster = Roster(str(tmp_path))
    argv = ["/bin/sh", "-c", "read x"]
    running = start(Launch(argv, "/", os.environ, stdin="pipe", roster=roster, command="what the user wrote"))
    if not at_once:
        await asyncio.sleep(0)
        assert [(entry.pid, entry.task) for entry in roster.entries()] == [(running.pid, "")]
    running.name("b8")
    await asyncio.sleep(0)

    assert [(one.pid, one.task, one.command) for one in roster.entries()] == [
        (running.pid, "b8", "what the user wrote")
    ]
    running.close_stdin()
    await running.wait()
    running.name("b9")
    assert list(tmp_path.iterdir()) == []


async def test_what_cannot_start_is_on_no_roster(tmp_path):
    with pytest.raises(FileNotFoundError):
        start(Launch(["/no/such/program"], "/", os.environ, roster=Roster(str(tmp_path))))

    assert list(tmp_path.iterdir()) == []


async def test_a_roster_that_cannot_be_written_stops_no_command(tmp_path):
    (tmp_path / "file").touch()
    running = start(Launch(["echo", "hi"], "/", os.environ, roster=Roster(str(tmp_path / "file"))))
    await running.wait()

    assert running.result().text == "hi\n"


@pytest.fixture
def bystander(mark) -> Iterator[subprocess.Popen[bytes]]:
    one = subprocess.Popen(["sleep", mark], start_new_session=True)
    yield one
    one.kill()
    one.wait(60)


def forged(folder: Path, **changes: object) -> None:
    """The entry of an engine that is dead; the rest as the test wants it."""
    dead = subprocess.Popen(["true"])
    dead.wait(60)
    roster = Roster(str(folder))
    token = roster.add(ProcessTree(), command="forged", cwd="/")
    path = folder / token
    fields = {**json.loads(path.read_text()), "engine_pid": dead.pid, "engine_began": 1}
    pid, began = changes.pop("pid", 0), changes.pop("began", 0)
    path.write_text(json.dumps({**fields, **changes}) + f"\n{pid} {began}\n")


@linux_only
def test_a_process_that_has_got_the_id_of_another_is_left_alone(tmp_path, bystander):
    forged(tmp_path, pid=bystander.pid, began=proc.start_time(bystander.pid) - 1)

    assert Roster(str(tmp_path)).entries() == []
    assert Roster(str(tmp_path)).sweep() == []
    assert bystander.poll() is None
    assert list(tmp_path.iterdir()) == []


@linux_only
@pytest.mark.parametrize(
    ("system", "stays"),
    [
        pytest.param("another-start pid:[1]", False, id="before-the-last-start-of-the-system"),
        pytest.param("{boot} pid:[1]", True, id="in-another-namespace"),
    ],
)
def test_ids_of_elsewhere_mean_nothing_here(tmp_path, bystander, system, stays):
    boot = proc.this_system().split()[0]
    forged(tmp_path, pid=bystander.pid, began=proc.start_time(bystander.pid), system=system.format(boot=boot))

    assert Roster(str(tmp_path)).entries() == []
    assert Roster(str(tmp_path)).sweep() == []
    assert bystander.poll() is None
    assert bool(list(tmp_path.iterdir())) is stays


@linux_only
def test_an_engine_does_not_sweep_itself_away(tmp_path, monkeypatch, bystander):
    mark = "a" * 24
    monkeypatch.setenv(MARK, mark)
    forged(tmp_path, pid=bystander.pid, began=proc.start_time(bystander.pid), mark=mark)

    assert Roster(str(tmp_path)).sweep() == []
    assert bystander.poll() is None


@pytest.mark.parametrize(
    "contents",
    [
        pytest.param("", id="empty"),
        pytest.param("{", id="cut-short"),
        pytest.param("[]", id="no-object"),
        pytest.param("{}\n1 1\n", id="nothing-in-it"),
        pytest.param("\x00\xff", id="junk"),
        pytest.param('{"mark": ""}\n-1 1\n', id="no-mark"),
    ],
)
def test_a_file_that_says_nothing_harms_nobody(tmp_path, contents):
    (tmp_path / "1-1-x.process").write_text(contents)
    roster = Roster(str(tmp_path))

    assert (roster.entries(), roster.sweep()) == ([], [])


def test_what_an_engine_had_begun_to_write_when_it_was_killed_goes_away_after_a_while(tmp_path):
    old, new = tmp_path / "1-1-x.process", tmp_path / "1-2-x.process"
    for path in (old, new):
        path.write_text('{"mark": "0123')
    os.utime(old, (1, 1))

    Roster(str(tmp_path)).sweep()

    assert (old.exists(), new.exists()) == (False, True)


@linux_only
def test_a_mark_that_is_too_short_to_be_one_harms_nobody(tmp_path, bystander):
    forged(tmp_path, pid=1, began=1, mark="")

    assert Roster(str(tmp_path)).sweep() == []
    assert bystander.poll() is None


DETACH = (
    "import os, sys\n"
    "from ferrule.system.tasks import start_detached\n"
    "from ferrule.system.tree import Roster\n"
    "folder, command = sys.argv[1:]\n"
    "print(start_detached(['/bin/sh', '-c', command], cwd='/', env=os.environ, log=folder + '/log',\n"
    "                     log_limit_bytes=1000, roster=Roster(folder + '/roster'), task='d1'), flush=True)\n"
)


@linux_only
def test_what_is_detached_outlives_its_engine_until_it_is_stopped(tmp_path, mark):
    command = f"echo begun; yes | head -c 100000; exec sleep {mark}"
    done = subprocess.run(
        [sys.executable, "-c", DETACH, str(tmp_path), command], capture_output=True, text=True, check=True, timeout=60
    )
    roster = Roster(str(tmp_path / "roster"))
    until = time.monotonic() + 60
    while (tmp_path / "log").stat().st_size < 1000 and time.monotonic() < until:
        pass

    assert roster.sweep() == []
    (entry,) = roster.entries()
    assert (entry.task, entry.detached, entry.pid) == ("d1", True, int(done.stdout))
    assert (tmp_path / "log").read_text() == ("begun\n" + "y\n" * 500)[:1000]
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600
    assert living(mark) != []
    assert roster.stop(entry)
    await_gone(mark)
    assert roster.entries() == roster.sweep() == []


def test_a_detached_command_that_ends_leaves_the_roster_by_itself(tmp_path):
    roster = Roster(str(tmp_path / "roster"))
    start_detached(
        ["/bin/sh", "-c", 'pwd; echo $0 "$1"; read x; echo end', "a b", "c  d"],
        cwd="/usr",
        env=os.environ,
        log=str(tmp_path / "log"),
        log_limit_bytes=1000,
        roster=roster,
    )
    until = time.monotonic() + 60
    while list((tmp_path / "roster").iterdir()) and time.monotonic() < until:
        time.sleep(0.001)

    assert (tmp_path / "log").read_text() == "/usr\na b c  d\nend\n"
    assert list((tmp_path / "roster").iterdir()) == []


@pytest.mark.parametrize(
    ("argv", "cwd", "error"),
    [
        pytest.param(["no-such-program"], "/", FileNotFoundError, id="unknown-program"),
        pytest.param(["true"], "/no/such/folder", FileNotFoundError, id="unknown-folder"),
        pytest.param(["echo", "a\0b"], "/", OSError, id="nul"),
    ],
)
def test_what_cannot_be_detached_says_why_and_leaves_nothing(tmp_path, argv, cwd, error):
    roster = Roster(str(tmp_path / "roster"))
    with pytest.raises(error):
        start_detached(argv, cwd=cwd, env=os.environ, log=f"{tmp_path}/log", log_limit_bytes=9, roster=roster)

    assert not (tmp_path / "log").exists()
    assert roster.entries() == []


def test_an_entry_costs_one_small_file(tmp_path):
    roster = Roster(str(tmp_path))
    token = roster.add(ProcessTree(), command="x" * 10_000, cwd="/")

    assert re.fullmatch(r"\d+-1-[0-9a-f]{8}\.process", token)
    assert (tmp_path / token).stat().st_size < 1200
    roster.remove(token)
    assert list(tmp_path.iterdir()) == []
