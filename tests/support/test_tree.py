"""A command's processes: who belongs, who never does, and what falls to a process that adopts orphans."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ferrule.system import proc, tree
from ferrule.system.tree import ProcessTree, Roster

from .test_process import living
from .test_process_running import begin, mark, outcome

__all__ = ["mark"]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only the process group can be found")

STRAY = (
    "import os, resource, sys\n"
    "os.setsid()\n"
    "resource.prlimit(0, 10, (1, resource.prlimit(0, 10)[1]))\n"
    "os.execve('/bin/sleep', ['sleep', sys.argv[1]], {})\n"
)
"""Drops the session, the number and the mark: nothing is left but who has started it."""


@pytest.fixture
def session(mark) -> Iterator[subprocess.Popen[bytes]]:
    """A session of three processes that no tree here has started."""
    one = subprocess.Popen(
        ["sh", "-c", f"sleep {mark} & echo; sleep {mark}"], start_new_session=True, stdout=subprocess.PIPE
    )
    assert one.stdout is not None
    one.stdout.readline()
    yield one
    os.killpg(one.pid, signal.SIGKILL)
    one.wait(60)
    one.stdout.close()


def stranger() -> ProcessTree:
    """The tree of somebody else: no process has its mark or its number."""
    return ProcessTree("f" * 24, 1 << 61 | 12345)


def test_a_recalled_tree_is_the_session_of_its_leader_and_nothing_else(session):
    family = stranger()
    family.recall(session.pid, sure=True)
    found = family.find()

    assert session.pid in found
    assert {os.getsid(pid) for pid in found} == {session.pid}


@pytest.mark.parametrize("pid", [0, 1, 2, -1])
def test_a_tree_without_a_certain_leader_holds_nobody(pid):
    """The first processes have 0 for a parent: a tree whose leader is 0 must not take them for its own."""
    unled, unsure = stranger(), stranger()
    unsure.recall(pid, sure=False)

    assert (unled.find(), unsure.find()) == ([], [])


def test_this_process_and_those_it_descends_from_are_in_no_tree():
    family = stranger()
    family.recall(os.getsid(0), sure=True)

    assert {1, os.getpid(), os.getppid()}.isdisjoint(family.find())
    assert {0, 1, os.getpid(), os.getppid()} <= tree._find_exempt_pids()


def test_nobody_is_signalled_on_the_word_of_a_caller(session):
    family = stranger()
    family.recall(0, sure=False)
    family.signal(signal.SIGKILL, [session.pid, os.getpid(), os.getppid(), 1])

    assert session.poll() is None


async def test_who_dropped_everything_is_found_by_who_started_it(mark):
    running = begin(f"'{sys.executable}' -c \"{STRAY}\" {mark} & echo ready; wait")
    await outcome(running, until=re.compile("ready"))
    while not any(proc.contents(f"/proc/{pid}/comm") == b"sleep\n" for pid in living(mark)):
        pass
    await running.stop()

    assert living(mark) == []


def test_the_beginning_of_a_process_is_its_own(session):
    assert (
        proc.start_time(session.pid) == proc.cached_start_time(session.pid) == proc.cached_start_time(session.pid) > 0
    )
    assert proc.start_time(os.getpid()) <= proc.start_time(session.pid)


ADOPTING = (
    "import asyncio, os, subprocess, sys\n"
    "from ferrule.system.run import run\n"
    "from ferrule.system.tree import adopt_orphans\n"
    "async def main():\n"
    "    assert adopt_orphans()\n"
    "    own = subprocess.Popen(['sleep', '60'])\n"
    "    argv = ['/bin/bash', '-c', sys.argv[1]]\n"
    "    done = await run(argv, cwd='/', env=os.environ, log=None, log_limit_bytes=0, tail_chars=99)\n"
    "    print(done.text.strip(), own.poll(), flush=True)\n"
    "    own.kill()\n"
    "    own.wait()\n"
    "    try:\n"
    "        os.waitpid(-1, os.WNOHANG)\n"
    "    except ChildProcessError:\n"
    "        print('no child is left', flush=True)\n"
    "asyncio.run(main())\n"
)


def test_who_adopts_orphans_ends_and_reaps_those_of_its_commands(mark):
    """In a process of its own: adopting cannot be undone."""
    stray = STRAY.replace("import os", "import os\nif os.fork(): os._exit(0)\nimport os")
    command = f"'{sys.executable}' -c \"{stray}\" {mark}; echo hi"
    done = subprocess.run(
        [sys.executable, "-c", ADOPTING, command], capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.stdout, done.returncode) == ("hi None\nno child is left\n", 0), done.stderr
    assert living(mark) == []


DETACHING = (
    "import asyncio, os, sys\n"
    "from ferrule.system.tasks import start_detached\n"
    "from ferrule.system.run import run\n"
    "from ferrule.system.tree import adopt_orphans\n"
    "from ferrule.system.tree import Roster\n"
    "async def main():\n"
    "    assert adopt_orphans()\n"
    "    folder, command = sys.argv[1:]\n"
    "    roster = Roster(folder + '/roster')\n"
    "    start_detached(['/bin/sh', '-c', command], cwd=folder, env=os.environ, log=folder + '/log',\n"
    "                   log_limit_bytes=9, roster=roster)\n"
    "    argv = ['/bin/bash', '-c', 'until [ -e began ]; do :; done']\n"
    "    await run(argv, cwd=folder, env=os.environ, log=None, log_limit_bytes=0, tail_chars=9)\n"
    "asyncio.run(main())\n"
)


def test_what_was_detached_on_purpose_is_nobodys_orphan(tmp_path, mark):
    command = f"(setsid sh -c 'echo > began; exec sleep {mark}' &); exec sleep {mark}"
    subprocess.run([sys.executable, "-c", DETACHING, str(tmp_path), command], timeout=60, check=True)

    assert len(living(mark)) >= 2
    (entry,) = Roster(str(tmp_path / "roster")).entries()
    assert Roster(str(tmp_path / "roster")).stop(entry)
    assert living(mark) == []
