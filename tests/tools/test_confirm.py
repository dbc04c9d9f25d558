"""What a search has found is looked up once more, without following a link, while a command could swap folders."""

import os

import pytest
from tests.direct import Direct

from ferrule.context import CallContext
from ferrule.core.call import Call
from ferrule.tools.search import there


@pytest.fixture
def direct(tmp_path):
    (tmp_path / "ws/folder").mkdir(parents=True)
    (tmp_path / "ws/folder/a.txt").write_text("a")
    (tmp_path / "ws/to-a.txt").symlink_to("folder/a.txt")
    (tmp_path / "away").mkdir()
    (tmp_path / "away/b.txt").write_text("b")
    (tmp_path / "ws/link").symlink_to(tmp_path / "away")
    (tmp_path / "ws/near").symlink_to("folder")
    direct = Direct(tmp_path / "ws")
    yield direct
    direct.close()


async def test_only_what_is_there_without_a_folder_that_is_a_link_is_told(direct):
    context = CallContext(
        Call("glob", {}, "call"),
        jail=direct.jail,
        services=direct.services,
        emit=lambda _: None,
        clock=lambda: 0.0,
        new_log=lambda: ("", ""),
    )
    root = os.path.realpath(direct.jail.folder)
    names = ["folder/a.txt", "to-a.txt", "link/b.txt", "near/a.txt", "folder/gone.txt", "../away/b.txt"]

    assert there(names[:-1], root, context) == ["folder/a.txt", "to-a.txt"]
    assert there(names, root, context) == ["folder/a.txt", "to-a.txt"]
