"""Trust in a project: what ends it, what never has it, and that the file of it survives everything."""

import json
import os
import shutil
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.core.errors import ConfigError
from ferrule.permissions import trust
from ferrule.permissions.trust import Trust

FILES = (".claude/settings.json", ".amp/settings.json")


class Shelf:
    """A state folder and a project beside it."""

    def __init__(self, top):
        self.top = top.resolve()
        self.state = self.top / "state"
        self.work = self.project("work")
        self.trust = Trust(str(self.state))

    def project(self, name):
        folder = self.top / name
        (folder / ".claude").mkdir(parents=True)
        (folder / ".claude/settings.json").write_text("{}")
        return folder

    @property
    def file(self):
        return self.state / "trust/projects.json"

    def grant(self, folder=None):
        self.trust.grant(str(folder or self.work), FILES)

    def look(self, folder=None, files=FILES):
        """As another session would."""
        return Trust(str(self.state)).state(str(folder or self.work), files)


@pytest.fixture
def shelf(tmp_path):
    return Shelf(tmp_path)


def test_a_project_is_unknown_until_it_is_trusted_and_after_trust_ends(shelf):
    assert shelf.look() == "unknown"
    shelf.grant()
    assert shelf.look() == "trusted"
    assert list(Trust(str(shelf.state)).list()) == [str(shelf.work)]
    shelf.trust.revoke(str(shelf.work))

    assert shelf.look() == "unknown"
    assert not shelf.trust.list()


def test_looking_writes_nothing(shelf):
    shelf.look()

    assert not shelf.state.exists()


@pytest.mark.parametrize(
    ("change", "state"),
    [
        pytest.param(lambda w: (w / FILES[0]).write_text("{ }"), "changed", id="a-file-changed"),
        pytest.param(lambda w: (w / FILES[0]).unlink(), "changed", id="a-file-removed"),
        pytest.param(lambda w: shutil.rmtree(w / ".claude"), "changed", id="its-folder-removed"),
        pytest.param(lambda w: (w / ".amp").mkdir(), "trusted", id="an-empty-folder-added"),
        pytest.param(lambda w: (w / "other").write_text("x"), "trusted", id="another-file-added"),
    ],
)
def test_trust_is_in_the_contents(shelf, change, state):
    shelf.grant()
    change(shelf.work)

    assert shelf.look() == state


def test_a_file_that_comes_later_ends_the_trust(shelf):
    shelf.grant()
    (shelf.work / ".amp").mkdir()
    (shelf.work / FILES[1]).write_text("")

    assert shelf.look() == "changed"


def test_a_file_changed_back_is_what_was_trusted(shelf):
    shelf.grant()
    (shelf.work / FILES[0]).write_text("{ }")
    (shelf.work / FILES[0]).write_text("{}")

    assert shelf.look() == "trusted"


def test_same_size_and_time_do_not_hide_a_change(shelf):
    path = shelf.work / FILES[0]
    shelf.grant()
    before = path.stat()
    path.write_text("[]")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert shelf.look() == "changed"


def test_trust_is_about_just_these_files(shelf):
    shelf.grant()

    assert shelf.look(files=[FILES[0]]) == "changed"
    assert shelf.look(files=[*FILES, "more.json"]) == "changed"
    assert shelf.look(files=[FILES[1], FILES[0], FILES[0]]) == "trusted"
    assert shelf.look(files=[str(shelf.work / name) for name in FILES]) == "trusted"


def test_contents_cannot_move_from_one_file_to_the_next(shelf):
    shelf.grant()
    (shelf.work / FILES[0]).unlink()
    (shelf.work / ".amp").mkdir()
    (shelf.work / FILES[1]).write_text("{}")

    assert shelf.look() == "changed"


def test_a_folder_that_is_moved_loses_trust(shelf):
    shelf.grant()
    shelf.work.rename(shelf.top / "moved")

    assert shelf.look(shelf.top / "moved") == "unknown"


def test_a_folder_that_is_replaced_by_its_copy_loses_trust(shelf):
    shelf.grant()
    copy = shelf.top / "copy"
    shutil.copytree(shelf.work, copy)
    shelf.work.rename(shelf.top / "old")
    copy.rename(shelf.work)

    assert shelf.look() == "unknown"


def test_a_link_to_the_folder_is_the_folder(shelf):
    link = shelf.top / "link"
    link.symlink_to(shelf.work)
    shelf.grant(link)

    assert shelf.look() == "trusted"
    assert shelf.look(link, [str(link / name) for name in FILES]) == "trusted"


def test_a_folder_inside_and_one_around_inherit_nothing(shelf):
    inner = shelf.project("work/inner")
    shelf.grant()

    assert shelf.look(inner) == "unknown"
    assert shelf.look(shelf.top) == "unknown"


def test_a_pointer_of_a_work_tree_inherits_nothing(shelf):
    (shelf.work / ".git/worktrees/evil").mkdir(parents=True)
    shelf.grant()
    evil = shelf.project("evil")
    (evil / ".git").write_text(f"gitdir: {shelf.work}/.git/worktrees/evil\n")
    (shelf.work / ".git/worktrees/evil/gitdir").write_text(f"{evil}/.git\n")
    (shelf.work / ".git/worktrees/evil/commondir").write_text("../..\n")

    assert shelf.look(evil) == "unknown"


def _link(path):
    target = path.parent.parent / "elsewhere"
    path.rename(target)
    path.symlink_to(target)


def _link_folder(path):
    path.parent.rename(path.parent.parent / "elsewhere")
    path.parent.symlink_to("elsewhere")


def _dangle(path):
    path.unlink()
    path.symlink_to("nowhere")


def _fifo(path):
    path.unlink()
    os.mkfifo(path)


def _folder(path):
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("change", [_link, _link_folder, _dangle, _fifo, _folder])
def test_what_is_no_plain_file_of_the_projects_own_is_never_trusted(shelf, change):
    other = shelf.project("other")
    change(other / FILES[0])
    with pytest.raises(ConfigError):
        shelf.grant(other)
    shelf.grant()
    change(shelf.work / FILES[0])

    assert shelf.look(other) == "unknown"
    assert shelf.look() == "changed"


def test_a_huge_file_is_never_trusted(shelf):
    with (shelf.work / FILES[0]).open("wb") as file:
        file.truncate(1 << 33)

    with pytest.raises(ConfigError, match="larger"):
        shelf.grant()


@pytest.mark.parametrize("name", ["../state/x", "/etc/hostname", ".", "a/../../b"])
def test_files_outside_of_the_project_are_never_trusted(shelf, name):
    with pytest.raises(ConfigError, match="not in the workspace"):
        shelf.trust.grant(str(shelf.work), [name])
    assert shelf.look(files=[name]) == "unknown"


def test_a_project_that_is_not_there_is_unknown(shelf):
    assert shelf.look(shelf.top / "nowhere") == "unknown"
    with pytest.raises(ConfigError):
        shelf.grant(shelf.top / "nowhere")


def test_trust_that_the_project_could_write_itself_is_none(shelf):
    inside = Trust(str(shelf.work / "state"))

    with pytest.raises(ConfigError, match="inside"):
        inside.grant(str(shelf.work), FILES)
    assert inside.state(str(shelf.work), FILES) == "unknown"


def test_what_was_judged_is_what_is_returned(shelf):
    shelf.grant()
    seen = shelf.trust.look(str(shelf.work), FILES)
    (shelf.work / FILES[0]).write_text("evil")

    assert (seen.state, seen.contents) == ("trusted", {FILES[0]: b"{}"})


def test_only_what_the_user_was_shown_is_trusted(shelf):
    shown = shelf.trust.look(str(shelf.work), FILES).fingerprint
    (shelf.work / FILES[0]).write_text("evil")

    with pytest.raises(ConfigError, match="changed since"):
        shelf.trust.grant(str(shelf.work), FILES, seen=shown)
    assert shelf.look() == "unknown"


def test_only_its_owner_can_read_the_file(shelf):
    shelf.grant()

    assert stat.S_IMODE(shelf.file.stat().st_mode) == 0o600
    assert stat.S_IMODE(shelf.file.parent.stat().st_mode) == 0o700
    assert {path.name for path in shelf.file.parent.iterdir()} == {"projects.json", "locks"}


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"{", id="cut"),
        pytest.param(b"\xff\xfe", id="no-text"),
        pytest.param(b"[" * 100_000, id="deep"),
        pytest.param(b'{"workspaces": {"/": 1}}', id="of-another-shape"),
        pytest.param(b'{"version": 2}', id="of-another-version"),
        pytest.param(b'{"surprise": 1}', id="with-unknown-fields"),
        pytest.param(b" " * ((4 << 20) + 1), id="huge"),
    ],
)
def test_a_damaged_file_means_no_trust_and_is_moved_aside(shelf, raw):
    shelf.grant()
    shelf.file.write_bytes(raw)

    assert shelf.look() == "unknown"
    [aside] = [path for path in shelf.file.parent.iterdir() if "damaged" in path.name]
    assert aside.read_bytes() == raw
    shelf.grant()
    assert shelf.look() == "trusted"


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda file: file.chmod(0o666), id="others-can-write-it"),
        pytest.param(lambda file: (file.rename(f"{file}.x"), file.symlink_to(f"{file}.x")), id="a-link"),
        pytest.param(_folder, id="a-folder"),
        pytest.param(_fifo, id="a-fifo"),
    ],
)
def test_a_file_that_is_not_surely_ours_means_no_trust_and_stays(shelf, spoil):
    shelf.grant()
    spoil(shelf.file)

    assert shelf.look() == "unknown"
    with pytest.raises(ConfigError, match=r"only you|cannot be written"):
        shelf.grant()
    assert os.path.lexists(shelf.file)


def test_a_state_folder_that_cannot_be_written_is_said(shelf):
    shelf.state.write_text("")

    with pytest.raises(ConfigError, match="cannot be written"):
        shelf.grant()
    assert shelf.look() == "unknown"


def test_nobodys_trust_is_lost_when_many_write_at_once(shelf):
    # A lock is held by an open file, so threads wait for each other as processes do.
    folders = [str(shelf.project(f"p{number}")) for number in range(24)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda folder: Trust(str(shelf.state)).grant(folder, FILES), folders))

    assert sorted(shelf.trust.list()) == sorted(folders)


def test_paths_that_are_no_text_are_kept_too(shelf):
    folder = os.fsdecode(os.fsencode(shelf.top) + b"/\xff")
    try:
        os.mkdir(folder)
    except OSError:  # a file system that takes text only has no such folder to confuse
        folder = f"{shelf.top}/\u00ff"
        os.mkdir(folder)
    shelf.trust.grant(folder, FILES)

    assert shelf.look(folder) == "trusted"
    assert json.loads(shelf.file.read_bytes())["workspaces"]


contents = st.dictionaries(st.text("ab", min_size=1, max_size=3), st.none() | st.binary(max_size=4), max_size=4)


@given(contents, contents)
def test_different_rules_have_different_fingerprints(one, other):
    same = trust._fingerprint(one) == trust._fingerprint(other)

    assert same == (one == other)
