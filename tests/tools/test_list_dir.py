"""list_dir: order, depth, pages, what is left out, and that no link is followed."""

import os
import shutil
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.direct import Direct

from ferrule.core.content import FolderTree, ListDirEntry
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.tools.search import find
from ferrule.tools.search.find import ListDir

TREE = {
    "B.txt": "12345",
    "a/x.py": "x",
    "a/b/c/deep.txt": "",
    "a/.hidden": "",
    "node_modules/m/index.js": "",
    "z.log": "",
    ".gitignore": "node_modules/\n*.log\n",
}


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "w"
    for name, text in TREE.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "empty").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("")
    (folder / "link").symlink_to(tmp_path / "outside")
    os.mkfifo(folder / "pipe")
    return folder


@pytest.fixture
def direct(root):
    made = Direct(root)
    yield made
    made.close()


@pytest.fixture
def names(direct):
    async def listed(**values):
        tree = await direct(ListDir(), **values)
        return [entry.path + "/" * (entry.kind == "folder") for entry in tree.entries]

    return listed


async def test_a_folder_is_listed_with_kinds_and_sizes(root, direct):
    tree = await direct(ListDir())

    assert tree == FolderTree(
        os.path.realpath(root),
        (
            ListDirEntry(".gitignore", "file", len(TREE[".gitignore"])),
            ListDirEntry("B.txt", "file", 5),
            ListDirEntry("a", "folder"),
            ListDirEntry("empty", "folder"),
            ListDirEntry("link", "link"),
            ListDirEntry("node_modules", "folder"),
            ListDirEntry("pipe", "other"),
            ListDirEntry("z.log", "file", 0),
        ),
        0,
    )
    assert [access.key for access in direct.touches] == [os.path.realpath(root)]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param({"path": "a"}, [".hidden", "b/", "x.py"], id="one-level"),
        pytest.param({"path": "a", "depth": 2}, [".hidden", "b/", "b/c/", "x.py"], id="two-levels"),
        pytest.param({"path": "a", "depth": 99}, [".hidden", "b/", "b/c/", "b/c/deep.txt", "x.py"], id="all-levels"),
        pytest.param({"path": "a", "folders_first": True}, ["b/", ".hidden", "x.py"], id="folders-first"),
        pytest.param({"path": "a", "depth": 9, "ignore": ("c",)}, [".hidden", "b/", "x.py"], id="ignore-a-folder"),
        pytest.param(
            {"path": "a", "depth": 9, "ignore": ("*.txt", "x.*")}, [".hidden", "b/", "b/c/"], id="ignore-globs"
        ),
        pytest.param({"path": "a", "depth": 9, "ignore": ("b/c",)}, [".hidden", "b/", "x.py"], id="ignore-a-path"),
        pytest.param({"path": "a", "ignore": (".*", "")}, ["b/", "x.py"], id="ignore-hidden"),
        pytest.param({"path": "empty"}, [], id="empty"),
        pytest.param({"path": "a", "limit": 2}, [".hidden", "b/"], id="first-page"),
        pytest.param({"path": "a", "limit": 2, "offset": 3}, ["x.py"], id="last-page"),
        pytest.param({"path": "a/b/../b/c"}, ["deep.txt"], id="untidy-path"),
        pytest.param(
            {"ignored": False, "depth": 2},
            [".gitignore", "B.txt", "a/", "a/.hidden", "a/b/", "a/x.py", "empty/", "link", "pipe"],
            id="without-what-is-ignored",
        ),
        pytest.param({"ignored": False, "path": "a/b", "depth": 3}, ["c/", "c/deep.txt"], id="below-without-ignored"),
        pytest.param({"ignored": False, "path": "node_modules"}, [], id="an-ignored-folder"),
    ],
)
async def test_what_is_listed(names, values, expected):
    assert await names(**values) == expected


async def test_ignore_files_count_inside_a_repository_too(root, direct, names):
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)

    assert {"z.log", "node_modules/"}.isdisjoint(await names(ignored=False))
    assert direct.notes == ["3 names are left out because ignore files hide them."]  # .git too


async def test_pages_fit_together(direct):
    whole = await direct(ListDir(), depth=9)
    pages = [await direct(ListDir(), depth=9, offset=at, limit=3) for at in range(1, len(whole.entries) + 1, 3)]

    assert tuple(entry for page in pages for entry in page.entries) == whole.entries
    assert [page.remaining for page in pages] == [
        max(0, len(whole.entries) - 3 * number) for number in range(1, len(pages) + 1)
    ]


async def test_a_page_past_the_end_is_empty_and_says_so(direct):
    tree = await direct(ListDir(), offset=100)

    assert (tree.entries, tree.remaining) == ((), 0)
    assert direct.notes == ["offset: 100 lies past the end; there are 8 entries."]


async def test_links_are_named_and_never_followed(root, direct, names):
    (root / "a" / "loop").symlink_to(root)

    assert "a/loop" in await names(depth=50)
    assert not any("secret" in name for name in await names(depth=50))
    with pytest.raises(ToolFailure, match="outside"):
        await names(path="link")


@pytest.mark.parametrize(
    ("path", "code"),
    [
        pytest.param("nowhere", "not-found", id="missing"),
        pytest.param("nowhere/at/all", "not-found", id="missing-below-missing"),
        pytest.param("B.txt", "not-a-folder", id="file"),
        pytest.param("pipe", "not-a-folder", id="pipe"),
    ],
)
@pytest.mark.parametrize("ignored", [True, False])
async def test_what_is_no_folder_is_a_clear_failure(names, path, code, ignored):
    with pytest.raises(ToolFailure) as caught:
        await names(path=path, ignored=ignored)

    assert caught.value.code == code


@pytest.mark.parametrize(
    ("values", "wrong"),
    [
        pytest.param({"depth": 0, "offset": 0, "limit": 0}, ["depth", "offset", "limit"], id="numbers"),
        pytest.param({"ignore": ("{a,b}" * 40,)}, ["ignore"], id="glob"),
    ],
)
async def test_wrong_arguments_are_named_one_a_line(names, values, wrong):
    with pytest.raises(BadArguments) as caught:
        await names(**values)

    assert [line.partition(":")[0] for line in caught.value.message.splitlines()] == wrong


async def test_a_tree_without_end_is_cut_with_a_note(direct, names, monkeypatch):
    monkeypatch.setattr(find, "MOST", 5)

    assert len(await names(depth=9)) <= 5
    assert "Only 5 names" in direct.notes[0]


async def test_very_deep_folders_are_listed_with_few_descriptors(root, names):
    folder = root / "deep"
    folder.mkdir()
    descriptor = os.open(folder, os.O_RDONLY)
    # More than a process may have descriptors, and longer than a path may be.
    for _ in range(1100):
        os.mkdir("d" * 10, dir_fd=descriptor)
        below = os.open("d" * 10, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)
    try:
        assert len(await names(path="deep", depth=5000)) == 1100
    finally:
        subprocess.run(["rm", "-rf", str(folder)], check=True)


async def test_a_folder_that_goes_away_meanwhile_is_named_with_a_note(root, direct, names, monkeypatch):
    open_folder = find._open_folder

    def too_late(place, parts=()):
        if parts == ("b",):
            shutil.rmtree(root / "a" / "b")
        return open_folder(place, parts)

    monkeypatch.setattr(find, "_open_folder", too_late)

    assert await names(path="a", depth=3) == [".hidden", "b/", "x.py"]
    assert direct.notes == ["b could not be listed: ENOENT: no such file or directory."]


async def test_a_folder_that_becomes_a_link_meanwhile_is_not_followed(root, direct, names, monkeypatch):
    open_folder = find._open_folder

    def swapped(place, parts=()):
        if parts == ("b",):
            shutil.rmtree(root / "a" / "b")
            (root / "a" / "b").symlink_to(root.parent / "outside")
        return open_folder(place, parts)

    monkeypatch.setattr(find, "_open_folder", swapped)

    assert await names(path="a", depth=3) == [".hidden", "b/", "x.py"]
    assert "b could not be listed" in direct.notes[0]


PATHS = st.lists(st.lists(st.sampled_from(["a", "b", "B", ".c", "d e"]), min_size=1, max_size=4), max_size=8)


@given(PATHS, st.integers(min_value=1, max_value=4), st.booleans())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_listings_agree_with_a_plain_model(tmp_path_factory, paths, depth, folders_first):
    root = tmp_path_factory.mktemp("w") / "w"
    for parts in paths:
        root.joinpath(*parts).mkdir(parents=True, exist_ok=True)
    root.mkdir(exist_ok=True)
    (root / "file").write_text("")

    def model(folder, left):
        entries = sorted(os.listdir(folder))
        if folders_first:
            entries.sort(key=lambda name: not os.path.isdir(folder / name))
        for name in entries:
            yield os.path.relpath(folder / name, root)
            if left > 1 and os.path.isdir(folder / name):
                yield from model(folder / name, left - 1)

    direct = Direct(root)
    try:
        tree = await direct(ListDir(), depth=depth, folders_first=folders_first)
    finally:
        direct.close()
    assert [entry.path for entry in tree.entries] == list(model(root, depth))
