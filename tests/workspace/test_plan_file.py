"""The files of plans: their names, and reading one as it is, through no link."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.core.errors import ToolFailure
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.tools.plan import PLAN_CHARS, PlanFolder, _slug, read_plan


@pytest.fixture
def folder(tmp_path):
    return PlanFolder(Jail(str(tmp_path)), Guard(), ".ferrule/plans")


@pytest.mark.parametrize(
    ("about", "slug"),
    [
        ("", ""),
        ("Add a login", "add-a-login"),
        ("../../etc/passwd", "etc-passwd"),
        ("ÄÖÜ", ""),
        ("x" * 100, "x" * 40),
        ("one two three four five six seven eight nine", "one-two-three-four-five-six-seven-eight"),
    ],
)
def test_a_plan_is_called_after_what_it_is_about(about, slug):
    assert _slug(about) == slug


@given(about=st.text(max_size=300))
def test_no_text_leads_out_of_the_folder(about, tmp_path_factory):
    top = tmp_path_factory.getbasetemp()
    path = PlanFolder(Jail(str(top)), Guard(), "plans").fresh(about)

    assert os.path.dirname(path) == os.path.join(os.path.realpath(top), "plans")
    assert path.endswith(".md")
    assert path.isascii() or not str(top).isascii()


def test_a_name_is_given_once(folder, tmp_path):
    first = folder.fresh("the same")
    assert not os.path.exists(os.path.dirname(first))
    (tmp_path / ".ferrule" / "plans").mkdir(parents=True)
    os.symlink("nowhere", first)

    assert folder.fresh("the same") != first
    assert folder.fresh() != folder.fresh()


@pytest.mark.parametrize("file", ["a.md", ".ferrule/plans/a.md", "./a.md", "ABSOLUTE"])
def test_a_plan_is_found_by_its_name_or_path(folder, tmp_path, file):
    expected = str(tmp_path.resolve() / ".ferrule" / "plans" / "a.md")

    assert folder.resolve_plan(expected if file == "ABSOLUTE" else file) == expected


@pytest.mark.parametrize("file", ["", " ", "..", ".", "a.txt", "a", "/", "a.md\0", ".ferrule/plans"])
def test_nothing_else_is_a_plan(folder, file):
    with pytest.raises(ToolFailure, match="is no plan"):
        folder.resolve_plan(file)


@pytest.mark.parametrize("file", ["../settings.md", "/etc/hosts.md", "sub/a.md", "../../a.md"])
def test_a_path_elsewhere_means_the_plan_of_that_name(folder, tmp_path, file):
    assert os.path.dirname(folder.resolve_plan(file)) == str(tmp_path.resolve() / ".ferrule" / "plans")


def test_a_plan_is_read_as_it_is(tmp_path):
    (tmp_path / "a.md").write_text("# Plan\nümlaut\n")

    assert read_plan(Jail(str(tmp_path)), str(tmp_path.resolve() / "a.md")) == "# Plan\nümlaut\n"


@pytest.mark.parametrize(
    ("make", "why"),
    [
        pytest.param(lambda path: None, "There is no plan yet", id="missing"),
        pytest.param(lambda path: path.write_text(" \n"), "is empty", id="empty"),
        pytest.param(lambda path: path.write_text("x" * (PLAN_CHARS + 1)), "more than 50,000", id="long"),
        pytest.param(lambda path: path.write_text("€" * (4 * PLAN_CHARS)), "too much|more than", id="very-long"),
        pytest.param(lambda path: path.write_bytes(b"\xff\xfe"), "not UTF-8", id="binary"),
        pytest.param(lambda path: path.symlink_to("secret.md"), "cannot be read", id="link"),
        pytest.param(lambda path: path.mkdir(), "no regular file|cannot be read", id="folder"),
        pytest.param(os.mkfifo, "no regular file", id="fifo"),
    ],
)
def test_what_cannot_be_approved_says_what_to_do(tmp_path, make, why):
    (tmp_path / "secret.md").write_text("KEY")
    make(tmp_path / "a.md")
    with pytest.raises(ToolFailure, match=why):
        read_plan(Jail(str(tmp_path)), str(tmp_path.resolve() / "a.md"))
