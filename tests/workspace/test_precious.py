"""Secret files are found wherever they lie, in no more time than it takes, and away from the event loop."""

import os
import shutil
import tempfile
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.sandbox.hidden import Precious

NAMES = st.sampled_from(
    ["a", "b", "objects", "node_modules", ".git", ".env", "HEAD", "hooks", "x.py", "id_rsa", ".ssh"]
)
PATHS = st.lists(NAMES, min_size=1, max_size=5).map(os.sep.join)
CHANGES = st.lists(st.tuples(st.sampled_from(["write", "folder", "remove", "link", "move"]), PATHS, PATHS), max_size=12)


class Watching(Guard):
    """A guard that tells who asked it."""

    def __init__(self):
        super().__init__()
        self.asked: list[threading.Thread] = []

    def find_substitute(self, path):
        self.asked.append(threading.current_thread())
        return super().find_substitute(path)


async def test_what_a_workspace_has_is_not_looked_at_on_the_event_loop(tmp_path):
    for name in (".env", ".bashrc", *(f"f{at}" for at in range(50))):
        (tmp_path / name).touch()
    guard = Watching()
    precious = Precious(guard)
    await precious.look_ahead([str(tmp_path)])
    found = precious.find([str(tmp_path)])

    assert (found.secret, found.protected) == ((str(tmp_path / ".env"),), (str(tmp_path / ".bashrc"),))
    assert not found.incomplete
    assert guard.asked
    assert threading.main_thread() not in guard.asked


def test_no_depth_and_no_number_hides_a_secret_file(tmp_path):
    deep = tmp_path.joinpath(*["d"] * 300)
    deep.mkdir(parents=True)
    many = tmp_path / "node_modules/many"
    many.mkdir(parents=True)
    for at in range(5_000):
        (many / f"f{at}").touch()
    paths = [deep / ".env", many / "prod.env", tmp_path / "src/objects/.env", tmp_path / ".venv/credentials.json"]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    found = Precious(Guard()).find([str(tmp_path)])

    assert found.secret == tuple(sorted(map(str, paths)))
    assert not found.incomplete


@pytest.mark.parametrize(("length", "hidden"), [(4001, 4001), (4095, 4095), (4096, 3895), (4201, 4000)])
def test_what_has_too_long_a_path_is_hidden_with_a_folder_above(tmp_path, length, hidden):
    """`length` is that of the first folder that is too long to be looked into."""
    count, rest = divmod(length - len(os.fsencode(tmp_path)) - 2, 201)
    at = os.open(tmp_path, os.O_RDONLY)
    for name in ("d" * (rest + 1), *["d" * 200] * (count + 10)):
        os.mkdir(name, dir_fd=at)
        below = os.open(name, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(os.open(".env", os.O_CREAT | os.O_WRONLY, dir_fd=at))
    os.close(at)
    found = Precious(Guard()).find([str(tmp_path)])
    (masked,) = found.secret

    assert len(masked) == hidden
    shutil.rmtree(tmp_path / ("d" * (rest + 1)))


def change(top: str, kind: str, path: str, other: str) -> None:
    place, second = os.path.join(top, path), os.path.join(top, other)
    try:
        os.makedirs(os.path.dirname(place), exist_ok=True)
        if kind == "write":
            with open(place, "w") as file:
                file.write("x")
        elif kind == "folder":
            os.mkdir(place)
        elif kind == "link":
            os.symlink("a", place)
        elif kind == "move":
            os.rename(second, place)
        elif os.path.isdir(place) and not os.path.islink(place):
            shutil.rmtree(place)
        else:
            os.unlink(place)
    except OSError:
        pass  # there is already something else


def naive(top: str) -> set[str]:
    """Every file with a secret name, by a plain walk."""
    guard = Guard((), Jail(top))
    found = set()
    for folder, folders, files in os.walk(top):
        for name in (*files, *folders):
            path = os.path.join(folder, name)
            if not os.path.islink(path) and guard.secret(path):
                found.add(path)
    return found


@settings(max_examples=60, deadline=None)
@given(st.lists(CHANGES, min_size=1, max_size=4))
def test_whatever_changes_a_later_look_finds_what_a_first_one_finds(rounds):
    with tempfile.TemporaryDirectory() as top:
        real = os.path.realpath(top)
        precious = Precious(Guard((), Jail(real)))
        for changes in rounds:
            for kind, path, other in changes:
                change(real, kind, path, other)
            precious._until = float("-inf")
            later, first = precious.find([real]), Precious(Guard((), Jail(real))).find([real])
            # What was secret once stays so under other names, and so does what a link led to.
            assert set(first.secret) <= set(later.secret)
            assert later.protected == first.protected
            assert not later.incomplete
            hidden = {path for path in naive(real) if not any(path.startswith(f"{one}/") for one in first.secret)}
            assert {path for path in hidden if os.path.isfile(path)} <= set(first.secret)
