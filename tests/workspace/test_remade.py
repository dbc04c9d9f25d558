"""Folders that a tool makes again."""

import pytest
from tests.rows import each_row

from ferrule.checkpoints import BESIDE, HOLDING, REMADE, is_remade


@each_row("name", REMADE)
def test_a_name_that_only_tools_give_is_enough(name: str) -> None:
    assert is_remade(f"/work/{name}", ())


@each_row(("name", "beside"), [(name, one) for name, found in BESIDE.items() for one in found])
def test_a_name_of_sources_too_counts_beside_the_file_that_says_so(name: str, beside: str) -> None:
    known = beside.replace("*", "any")

    assert (is_remade(f"/work/{name}", ["README.md", known]), is_remade(f"/work/{name}", ["README.md"])) == (
        True,
        False,
    )


@pytest.mark.parametrize(("name", "held"), [(name, one) for name, found in HOLDING.items() for one in found])
def test_a_name_of_sources_too_counts_with_what_the_tool_left_inside(name: str, held: str) -> None:
    assert (is_remade(f"/work/{name}", (), inside=[held]), is_remade(f"/work/{name}", ())) == (True, False)


@pytest.mark.parametrize(
    ("folder", "siblings"),
    [
        ("/work/src", ["package.json", "Cargo.toml"]),
        ("/work/build", ["package.json"]),
        ("/work/target", ["package.json"]),
        ("/work/vendor", ["go.mod"]),
        ("/work/bundle", ["Gemfile"]),
        ("/work/.cache", ["package.json"]),
        ("/work/my_node_modules", []),
    ],
)
def test_sources_are_not_taken_for_what_a_tool_makes(folder: str, siblings: list[str]) -> None:
    assert not is_remade(folder, siblings)


def test_a_folder_that_git_tracks_is_the_projects_own() -> None:
    assert not is_remade("/work/dist", ["package.json"], is_tracked=True)


def test_a_path_may_end_with_a_slash_or_be_relative() -> None:
    assert [is_remade(path, ()) for path in ("node_modules/", "./vendor/bundle", "a/.venv/")] == [True] * 3
