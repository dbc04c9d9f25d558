"""The private /tmp of a session: its own, or shared by the calls of a workspace; nothing is left."""

import os
import subprocess
import sys
import time

from ferrule.sandbox.home import Temporary


def test_a_session_has_its_own_and_removes_it(tmp_path):
    one, other = Temporary(str(tmp_path)), Temporary(str(tmp_path))
    closed = os.path.join(one.path, "closed")
    os.makedirs(os.path.join(closed, "below"))
    os.chmod(closed, 0)
    one.close()

    assert one.path != other.path
    assert not os.path.exists(one.path)
    assert os.path.isdir(other.path)
    other.close()
    assert os.listdir(tmp_path / "machines") == []


def test_calls_of_one_workspace_share_theirs_until_an_hour_has_passed(tmp_path):
    first = Temporary(str(tmp_path), workspace="/w")
    open(os.path.join(first.path, "log"), "w").close()
    first.close()
    again = Temporary(str(tmp_path), workspace="/w")
    kept = os.listdir(again.path)
    again.close()
    long_ago = time.time() - 3700
    os.utime(os.path.dirname(again.path), (long_ago, long_ago))
    later = Temporary(str(tmp_path), workspace="/w")

    assert (kept, os.listdir(later.path)) == (["log"], [])
    assert Temporary(str(tmp_path), workspace="/other").path != later.path


def test_what_a_killed_engine_left_is_removed_by_the_next(tmp_path):
    use = "from ferrule.sandbox.home import Temporary; Temporary(sys.argv[1])"
    script = f"import os, sys; {use}; os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False, timeout=60)
    left = os.listdir(tmp_path / "machines")
    made = Temporary(str(tmp_path))

    assert len(left) == 1
    assert os.listdir(tmp_path / "machines") == [os.path.basename(os.path.dirname(made.path))]


def test_only_one_session_at_a_time_writes_the_user_s_caches(tmp_path):
    one, other = Temporary(str(tmp_path)), Temporary(str(tmp_path))
    found = [one.caches(), other.caches(), one.caches()]
    one.close()
    found.append(other.caches())
    other.close()

    shared = str(tmp_path / "caches")
    assert [path == shared for path in found] == [True, False, True, True]
