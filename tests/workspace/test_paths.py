"""The jail: what is inside, what is outside, and what happens when somebody moves the walls (rule F1, fault 23)."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.descriptors import open_now
from tests.faults.desk import Desk, picture
from tests.rows import each_row

from ferrule.core.errors import ToolFailure
from ferrule.files.jail import Jail, Outside
from ferrule.files.transaction import read_file

NAMES = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=12)


@pytest.fixture
def ws(tmp_path):
    root = tmp_path / "ws"
    root.mkdir()
    return root


@pytest.fixture
def jail(ws):
    opened = Jail(str(ws))
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("path", "real"),
    [
        pytest.param("a.txt", "ws/a.txt", id="relative"),
        pytest.param("./sub//a.txt", "ws/sub/a.txt", id="not-normal"),
        pytest.param("sub/../a.txt", "ws/a.txt", id="dots-inside"),
        pytest.param("sub/", "ws/sub", id="trailing-slash"),
        pytest.param(".", "ws", id="the-workspace-itself"),
        pytest.param("../ws/a.txt", "ws/a.txt", id="out-and-in-again"),
        pytest.param("link/a.txt", "ws/sub/a.txt", id="link-inside"),
        pytest.param("link/../a.txt", "ws/a.txt", id="dots-behind-a-link-are-those-of-its-target"),
        pytest.param("in/deep.txt", "ws/sub/deep.txt", id="link-that-leaves-and-comes-back"),
        pytest.param("none/such/file", "ws/none/such/file", id="nothing-there-yet"),
    ],
)
def test_what_lies_inside_has_a_place(jail, ws, tmp_path, path, real):
    (ws / "sub").mkdir()
    (ws / "link").symlink_to("sub")
    (tmp_path / "hop").symlink_to(ws / "sub")
    (ws / "in").symlink_to(tmp_path / "hop")

    place = jail.place(jail.real(path))

    assert place.path == str(tmp_path / real)
    assert os.path.join(place.root.path, *place.parts) == place.path


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("..", id="above"),
        pytest.param("../other/a.txt", id="beside"),
        pytest.param("sub/../../other", id="dots-after-a-folder"),
        pytest.param("none/../../other", id="dots-after-what-is-not-there"),
        pytest.param("../ws-evil/a.txt", id="sibling-with-the-same-beginning"),
        pytest.param("/etc/passwd", id="absolute"),
        pytest.param("//etc/passwd", id="two-slashes"),
        pytest.param("out/a.txt", id="through-a-link"),
        pytest.param("out", id="a-link-itself"),
        pytest.param("dangling", id="a-link-to-what-is-not-there-yet"),
        pytest.param("deep/x/y", id="a-link-to-a-link"),
        pytest.param("sub/up/other", id="a-link-upwards"),
        pytest.param("/proc/self/cwd", id="a-link-of-the-kernel"),
        pytest.param("~/file", id="home"),
        pytest.param("~root", id="a-users-home"),
    ],
)
def test_what_lies_outside_has_none_and_the_message_names_the_option(jail, ws, tmp_path, monkeypatch, path):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("other", "ws-evil", "home"):
        (tmp_path / name).mkdir()
    (ws / "sub").mkdir()
    (ws / "out").symlink_to(tmp_path / "other")
    (ws / "dangling").symlink_to(tmp_path / "other" / "new.txt")
    (ws / "deep").symlink_to("out")
    (ws / "sub" / "up").symlink_to("../..")

    with pytest.raises(Outside) as caught:
        jail.place(jail.real(path))

    assert "--add-dir" in caught.value.message
    assert caught.value.code == "outside-workspace"


def test_a_workspace_at_home_is_reached_by_the_tilde(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    jail = Jail(str(tmp_path))

    assert jail.place(jail.real("~/a.txt")).parts == ("a.txt",)
    assert jail.real("~nobody-of-that-name/a") == str(tmp_path / "~nobody-of-that-name" / "a")
    jail.close()


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("", id="empty"),
        pytest.param("a\0b", id="nul"),
        pytest.param("\0", id="only-nul"),
        pytest.param("a\ud800b", id="lone-surrogate"),
        pytest.param("d/" * 3000 + "f", id="longer-than-any-path"),
    ],
)
def test_what_is_no_path_is_refused_in_words(jail, path):
    with pytest.raises(ToolFailure, match="A path cannot"):
        jail.real(path)


def test_a_name_that_is_too_long_is_refused_in_words(tmp_path):
    with Desk(tmp_path) as desk:
        for name in ("n" * 300, "made/" + "n" * 300, "made/twice/" + "n" * 300 + "/file"):
            with pytest.raises(ToolFailure, match=r"^ENAMETOOLONG: .*Nothing was changed\.$"):
                desk.write(name, b"new")
        assert picture(desk.root) == {}


def test_a_loop_of_links_leads_nowhere(jail, ws):
    (ws / "one").symlink_to("two")
    (ws / "two").symlink_to("one")

    with pytest.raises((OSError, ToolFailure)):
        read_file(jail.place(jail.real("one")))


@given(
    st.lists(st.sampled_from(["..", ".", "a", "b", "in", "out", "up", "ws-evil", "dangling"]), min_size=1, max_size=8)
)
def test_no_chain_of_names_opens_anything_outside(tmp_path_factory, parts):
    tree = _crooked_tree(tmp_path_factory)
    jail = Jail(str(tree / "ws"))
    real = jail.real("/".join(parts))
    try:
        place = jail.place(real)
        content = read_file(place)
    except (ToolFailure, OSError):
        return
    finally:
        jail.close()

    assert real == str(tree / "ws") or real.startswith(str(tree / "ws") + "/")
    assert content in (None, b"inside")


_TREES: dict[str, Path] = {}


def _crooked_tree(factory: pytest.TempPathFactory) -> Path:
    """One tree for all examples: they only look at it."""
    if "tree" not in _TREES:
        tree = factory.mktemp("crooked").resolve()
        for folder in ("ws/a/b", "ws/b", "out/a/b", "ws-evil/a"):
            (tree / folder).mkdir(parents=True)
        for folder in ("out", "out/a", "ws-evil", "ws-evil/a"):
            for name in ("file", "b.txt"):
                (tree / folder / name).write_bytes(b"outside")
        (tree / "out" / "secret").write_bytes(b"outside")
        for folder in ("ws", "ws/a", "ws/a/b", "ws/b"):
            (tree / folder / "in").symlink_to(tree / "ws" / "a")
            (tree / folder / "out").symlink_to(tree / "out" / "secret")
            (tree / folder / "up").symlink_to("../..")
            (tree / folder / "dangling").symlink_to(tree / "out" / "nothing")
        _TREES["tree"] = tree
    return _TREES["tree"]


@given(st.lists(NAMES, min_size=1, max_size=4))
def test_the_place_of_a_real_path_leads_back_to_it(tmp_path_factory, names):
    jail = Jail(str(_crooked_tree(tmp_path_factory) / "ws"))
    real = jail.real("/".join(names))
    if jail.holds(real):
        place = jail.place(real)
        assert os.path.join(place.root.path, *place.parts) == real
        assert all(part not in ("", ".", "..") and "/" not in part for part in place.parts)
    jail.close()


@pytest.mark.parametrize("victim", ["sub", "sub/file.txt"])
def test_a_link_swapped_in_after_the_path_was_resolved_is_not_followed(tmp_path, victim):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file.txt").write_bytes(b"theirs")
    with Desk(tmp_path) as desk:
        desk.write("sub/file.txt", b"ours")
        real = desk.jail.real("sub/file.txt")
        os.rename(desk.path(victim), tmp_path / "aside")
        os.symlink(outside if victim == "sub" else outside / "file.txt", desk.path(victim))

        with pytest.raises(OSError):
            read_file(desk.jail.place(real))
        for content in (b"new", None):
            with pytest.raises(ToolFailure, match=r"(ENOTDIR|ELOOP): .*Nothing was changed"):
                desk.write("sub/file.txt", content)
    assert picture(outside) == {"file.txt": (0o644, b"theirs")}


@pytest.mark.parametrize("content", [b"new", None], ids=["write", "delete"])
def test_a_folder_swapped_while_the_write_is_planned_is_not_written(tmp_path, content):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file.txt").write_bytes(b"ours")
    with Desk(tmp_path) as desk:
        desk.write("sub/file.txt", b"ours")
        real = desk.path("sub/file.txt")

        def plan(_):
            os.rename(desk.path("sub"), tmp_path / "aside")
            os.symlink(outside, desk.path("sub"))
            return {real: content}

        with pytest.raises(ToolFailure, match="Nothing was changed"):
            desk.writer.apply([real], plan, kind="write")
        assert desk.pending() == []
    assert picture(outside) == {"file.txt": (0o644, b"ours")}
    assert picture(tmp_path / "aside") == {"file.txt": (0o644, b"ours")}


def _moved(root: Path, tmp_path: Path) -> None:
    os.rename(root, tmp_path / "moved")


def _replaced(root: Path, tmp_path: Path) -> None:
    _moved(root, tmp_path)
    os.mkdir(root)
    (root / "file.txt").write_bytes(b"ours")


def _linked_away(root: Path, tmp_path: Path) -> None:
    _moved(root, tmp_path)
    (tmp_path / "away").mkdir()
    (tmp_path / "away" / "file.txt").write_bytes(b"ours")
    os.symlink(tmp_path / "away", root)


def _linked_to_itself(root: Path, tmp_path: Path) -> None:
    _moved(root, tmp_path)
    os.symlink(tmp_path / "moved", root)


def _file(root: Path, tmp_path: Path) -> None:
    _moved(root, tmp_path)
    root.write_bytes(b"a file")


CHANGES = [
    pytest.param(_moved, id="moved"),
    pytest.param(_replaced, id="replaced-by-a-folder"),
    pytest.param(_linked_away, id="replaced-by-a-link"),
    pytest.param(_linked_to_itself, id="replaced-by-a-link-to-itself"),
    pytest.param(_file, id="replaced-by-a-file"),
]


@each_row("when", ["before", "meanwhile"])
@each_row("change", CHANGES)
def test_a_workspace_that_is_no_longer_there_is_not_written(tmp_path, change, when):
    with Desk(tmp_path) as desk:
        root = tmp_path / "workspace"
        (root / "file.txt").write_bytes(b"ours")
        real = desk.path("file.txt")

        def plan(_):
            if when == "meanwhile":
                change(root, tmp_path)
            return {real: b"new"}

        if when == "before":
            change(root, tmp_path)
        with pytest.raises(ToolFailure) as caught:
            desk.writer.apply([real], plan, kind="write")

        assert caught.value.code == "workspace-gone"
        assert desk.pending() == []
    assert picture(tmp_path / "moved") == {"file.txt": (0o644, b"ours")}
    if (tmp_path / "away").exists():
        assert picture(tmp_path / "away") == {"file.txt": (0o644, b"ours")}
    if root.is_dir():
        assert picture(root) == {"file.txt": (0o644, b"ours")}


def test_a_workspace_that_was_deleted_is_not_made_again(tmp_path):
    with Desk(tmp_path) as desk:
        os.rmdir(desk.root)

        with pytest.raises(ToolFailure) as caught:
            desk.write("made/file.txt", b"new")

        assert caught.value.code == "workspace-gone"
    assert not os.path.exists(desk.root)


def test_a_workspace_replaced_before_it_was_ever_used_is_noticed(tmp_path):
    (tmp_path / "ws").mkdir()
    (tmp_path / "elsewhere").mkdir()
    jail = Jail(str(tmp_path / "ws"))
    (tmp_path / "ws").rmdir()
    (tmp_path / "ws").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(ToolFailure) as caught:
        jail.place(str(tmp_path / "ws" / "file")).folder()
    jail.close()

    assert caught.value.code == "workspace-gone"


def test_a_root_that_comes_into_being_later_can_be_used(jail, tmp_path):
    later = tmp_path / "later"
    jail.add(str(later))
    place = jail.place(str(later / "file"))
    with pytest.raises(ToolFailure):
        place.folder()
    later.mkdir()
    (later / "file").write_bytes(b"there")

    assert read_file(place) == b"there"


def test_a_root_that_comes_into_being_as_a_link_cannot(jail, tmp_path):
    (tmp_path / "elsewhere" / "sub").mkdir(parents=True)
    jail.add(str(tmp_path / "later"))
    jail.add(str(tmp_path / "other" / "sub"))
    (tmp_path / "later").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "other").symlink_to(tmp_path / "elsewhere")

    for path in ("later/file", "other/sub/file"):
        with pytest.raises(ToolFailure):
            jail.place(str(tmp_path / path)).folder()


def test_an_added_folder_is_inside_and_its_neighbours_are_not(jail, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("extra", "extra-evil", "third"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(name.encode())
    jail.add("~/extra")
    (tmp_path / "by-link").symlink_to(tmp_path / "third")
    jail.add(str(tmp_path / "by-link"))

    assert read_file(jail.place(str(tmp_path / "extra" / "file"))) == b"extra"
    assert read_file(jail.place(jail.real(str(tmp_path / "by-link" / "file")))) == b"third"
    with pytest.raises(Outside):
        jail.place(str(tmp_path / "extra-evil" / "file"))


def test_a_folder_inside_a_root_is_not_added_again(jail, ws):
    (ws / "sub").mkdir()
    jail.add(str(ws / "sub"))

    assert [root.path for root in jail.roots] == [str(ws)]


def test_paths_are_shown_so_that_they_lead_back_to_the_same_file(jail, ws, tmp_path):
    (tmp_path / "extra").mkdir()
    jail.add(str(tmp_path / "extra"))

    for path in (ws / "a" / "b.txt", ws, tmp_path / "extra" / "a.txt", tmp_path / "elsewhere.txt"):
        assert jail.real(jail.display_path(str(path))) == str(path)
    assert jail.display_path(str(ws / "a" / "b.txt")) == "a/b.txt"
    assert jail.display_path(str(tmp_path / "extra" / "a.txt")) == str(tmp_path / "extra" / "a.txt")


def test_the_whole_disk_can_be_a_root(jail):
    jail.add("/")

    assert jail.place("/etc/hosts").parts[-2:] == ("etc", "hosts")


def test_missing_folders_are_named_outermost_first(jail, ws):
    (ws / "a").mkdir()

    assert jail.place(str(ws / "a" / "b" / "c" / "file")).find_missing_folders() == (
        str(ws / "a" / "b"),
        str(ws / "a" / "b" / "c"),
    )
    assert jail.place(str(ws / "a" / "file")).find_missing_folders() == ()
    assert jail.place(str(ws / "file")).find_missing_folders() == ()


def test_closing_lets_go_of_the_folders(ws, tmp_path):
    before = open_now()
    jail = Jail(str(ws), (str(tmp_path),))
    jail.place(str(ws / "file")).folder().close()
    jail.close()

    assert not open_now() - before


@pytest.mark.parametrize(
    ("path", "spelled"),
    [
        pytest.param("a/b", "{root}/a/b", id="relative"),
        pytest.param("a/../b", "{root}/b", id="tidied"),
        pytest.param("link/x", "{root}/link/x", id="links-stay"),
        pytest.param("{top}/way/link/x", "{root}/link/x", id="through-a-link-to-the-root"),
        pytest.param("/elsewhere/x", "/elsewhere/x", id="outside"),
    ],
)
def test_a_path_can_be_told_as_it_was_written(tmp_path, path, spelled):
    root = tmp_path.resolve() / ".claude" / "work"
    (root / "real").mkdir(parents=True)
    (root / "link").symlink_to("real")
    (tmp_path / "way").symlink_to(root)
    jail = Jail(str(root))

    assert jail.lexical_path(path.format(top=tmp_path)) == spelled.format(root=root)
    jail.close()
