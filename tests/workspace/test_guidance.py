"""Guidance files: at most one in a folder, outermost first, each told once."""

from pathlib import Path

import pytest

from ferrule.workspace.guidance import NAMES, Guidance, guidance_in
from ferrule.workspace.paths import Jail


@pytest.fixture
def jail(tmp_path):
    (tmp_path / "ws").mkdir()
    opened = Jail(str(tmp_path / "ws"))
    yield opened
    opened.close()


@pytest.fixture
def ws(jail, tmp_path):
    return tmp_path / "ws"


def put(folder: Path, name: str = "AGENTS.md") -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("Be kind.")
    return str(folder / name)


@pytest.mark.parametrize("first", range(len(NAMES)))
def test_the_first_name_that_is_there_counts(tmp_path, first):
    for name in NAMES[first:]:
        put(tmp_path, name)

    assert guidance_in(str(tmp_path)) == str(tmp_path / NAMES[first])


def test_a_folder_without_guidance_or_without_existence_has_none(tmp_path):
    (tmp_path / "README.md").write_text("hello")
    (tmp_path / "AGENTS.md").mkdir()

    assert guidance_in(str(tmp_path)) is None
    assert guidance_in(str(tmp_path / "nowhere")) is None


def test_a_folder_of_that_name_does_not_hide_the_file_after_it(tmp_path):
    (tmp_path / "AGENTS.md").mkdir()
    put(tmp_path, "CLAUDE.md")

    assert guidance_in(str(tmp_path)) == str(tmp_path / "CLAUDE.md")


@pytest.mark.contract("create.guidance-discovery")
def test_guidance_on_the_way_is_told_outermost_first_and_once(jail, ws):
    outer, inner = put(ws / "a"), put(ws / "a" / "b" / "c", "CLAUDE.md")
    beside = put(ws / "a" / "d")
    guidance = Guidance(jail)

    assert guidance.discover(str(ws / "a" / "b" / "c" / "file.py")) == (outer, inner)
    assert guidance.discover(str(ws / "a" / "b" / "c" / "other.py")) == ()
    assert guidance.discover(str(ws / "a" / "d" / "file.py")) == (beside,)


def test_the_workspaces_own_guidance_is_known_from_the_start(jail, ws):
    put(ws)

    assert Guidance(jail).discover(str(ws / "file.py")) == ()


def test_the_file_itself_is_no_news(jail, ws):
    written = put(ws / "a")

    assert Guidance(jail).discover(written) == ()


def test_outside_of_the_workspace_nothing_is_looked_for(jail, tmp_path):
    put(tmp_path / "elsewhere" / "a")

    assert Guidance(jail).discover(str(tmp_path / "elsewhere" / "a" / "file.py")) == ()


def test_a_link_that_leads_out_of_the_workspace_is_no_guidance(jail, ws, tmp_path):
    (tmp_path / "secret").write_text("hunter2")
    (ws / "a").mkdir()
    (ws / "a" / "AGENTS.md").symlink_to(tmp_path / "secret")

    assert Guidance(jail).discover(str(ws / "a" / "file.py")) == ()


def test_a_link_within_the_workspace_is_guidance(jail, ws):
    put(ws, "RULES.md")
    (ws / "a").mkdir()
    (ws / "a" / "AGENTS.md").symlink_to("../RULES.md")

    assert Guidance(jail).discover(str(ws / "a" / "file.py")) == (str(ws / "a" / "AGENTS.md"),)


def test_an_added_folder_is_looked_through_from_its_own_root(jail, tmp_path):
    put(tmp_path)
    inner = put(tmp_path / "extra" / "a")
    jail.add(str(tmp_path / "extra"))

    assert Guidance(jail).discover(str(tmp_path / "extra" / "a" / "file.py")) == (inner,)
