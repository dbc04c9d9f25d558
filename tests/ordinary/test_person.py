"""Programs, functions and sessions run as another user: with that user's rights, and with what they need of ours."""

import os
import sys
import tempfile
from pathlib import Path

import pytest

from tests.ordinary import enter
from tests.ordinary.session import session

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="users are told apart on POSIX systems")


def who_and_where() -> list[object]:
    return [os.getuid(), os.getgroups(), os.path.expanduser("~")]


def test_a_function_runs_as_the_other_user_in_its_home(other_user):
    seen = other_user.call("tests.ordinary.test_person:who_and_where")

    assert seen == [other_user.uid, os.getgroups() if os.geteuid() else [], str(other_user.home)]
    assert other_user.uid != 0


def test_a_command_line_of_ferrule_writes_the_other_users_files(other_user):
    work = other_user.folder("work")
    done = other_user.ferrule("call", "create_file", '{"path": "a.txt", "content": "hello\\n"}', "--yes", cwd=work)

    assert (done.returncode, done.stderr) == (0, "")
    assert (work / "a.txt").read_text() == "hello\n"
    assert (work / "a.txt").stat().st_uid == (os.geteuid() if other_user.is_mapped else other_user.uid)


def test_what_is_closed_to_the_other_user_stays_closed(other_user):
    secret = other_user.home / "closed"
    secret.write_text("secret\n")
    secret.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(secret, 0, 0)
    done = other_user.run(["cat", str(secret)])

    assert (done.stdout == "") == (os.geteuid() == 0 and not other_user.is_mapped)


def test_a_session_tells_exit_codes_and_output(person):
    work = person.folder("work")
    with session(person, work, "none") as opened:
        said = opened.bash("id -u; echo two >&2; exit 3")

    assert (said.exit_code, said.output.split()) == (3, [str(person.uid), "two"])


@pytest.mark.parametrize(
    ("closed", "shown", "covers"),
    [
        ("", ["python/lib"], {}),
        ("python", ["python/lib"], {"python": ["python/lib"]}),
        ("", ["python"], {}),
        ("home", ["home/a/venv", "home/b/python", "work"], {"home": ["home/a/venv", "home/b/python"]}),
        ("home/a", ["home/a/b/venv"], {"home/a": ["home/a/b/venv"]}),
    ],
    ids=["open", "closed", "itself", "two in one", "further down"],
)
def test_only_what_lies_in_a_closed_folder_has_to_be_shown(closed, shown, covers):
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder).resolve()
        top.chmod(0o755)
        for name in shown:
            (top / name).mkdir(parents=True)
        if closed:
            (top / closed).chmod(0o700)
        found = enter.covered([str(top / name) for name in shown], uid=12345, gid=12345)

    assert found == {str(top / name): [str(top / one) for one in paths] for name, paths in covers.items()}
