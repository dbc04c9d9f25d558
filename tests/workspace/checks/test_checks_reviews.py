"""Reviews from files: where they are found, what they are about, and what hostile ones cannot do."""

import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.tools.checks.choice import MOST_BYTES, MOST_REVIEWS, Review, Reviews, find_reviews, read_review
from ferrule.tools.skills import Unusable


def put(
    folder: Path, name: str = "security", *, body: str = "Look for injection.", file: str = "", **header: str
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    said = {"name": name} | {key.replace("_", "-"): value for key, value in header.items()}
    path = folder / f"{file or name}.md"
    path.write_text("---\n" + "".join(f"{key}: {value}\n" for key, value in said.items()) + f"---\n{body}\n", "utf-8")
    return path


class Scene:
    """A repository with the workspace in it, and a home folder beside."""

    def __init__(self, folder: Path) -> None:
        self.repository = folder / "repository"
        self.work = self.repository / "work"
        self.work.mkdir(parents=True)
        self.jail = Jail(str(self.work))
        self.home = folder / "home"
        self.beside = folder / "settings"

    def found(self, guard: Guard | None = None) -> Reviews:
        guard = guard or Guard((), self.jail)
        return find_reviews(self.jail, guard, beside=str(self.beside), home=str(self.home))


@pytest.fixture
def scene(tmp_path):
    made = Scene(tmp_path.resolve())
    yield made
    made.jail.close()


def read(text: str) -> Review:
    return read_review(text, path="/x.md", scope="/")[0]


def test_a_review_says_who_it_is_and_what_to_look_for(scene):
    path = put(scene.work / ".agents/checks", description="Finds holes.", severity_default="high", tools="[Read, Grep]")

    (review,) = scene.found().reviews

    assert review == Review(
        name="security",
        description="Finds holes.",
        severity="high",
        tools=("Read", "Grep"),
        body="Look for injection.",
        scope=str(scene.work),
        path=str(path),
    )


def test_only_a_name_and_instructions_are_needed(scene):
    put(scene.work / ".agents/checks")

    (review,) = scene.found().reviews

    assert (review.description, review.severity, review.tools) == ("", "medium", None)


def test_a_review_is_about_the_files_beside_and_below_it(scene):
    put(scene.work / ".agents/checks", "whole")
    put(scene.work / "api/v1/.agents/checks", "part")

    scopes = {review.name: review.scope for review in scene.found().reviews}

    assert scopes == {"part": str(scene.work / "api/v1"), "whole": str(scene.work)}


def test_a_closer_review_of_the_same_name_holds_for_its_files_and_the_outer_one_for_the_rest(scene):
    put(scene.work / ".agents/checks", body="outer")
    put(scene.work / "api/.agents/checks", body="inner")
    put(scene.work / "web/.agents/checks", body="other")

    found = [(one.body, one.scope, one.without) for one in scene.found().reviews]

    api, web = str(scene.work / "api"), str(scene.work / "web")
    assert found == [("inner", api, ()), ("other", web, ()), ("outer", str(scene.work), (api, web))]


def test_reviews_of_the_workspace_replace_those_above_and_the_users(scene):
    (scene.repository / ".git").mkdir()
    put(scene.work / ".agents/checks", "a", body="workspace")
    for name in ("a", "b"):
        put(scene.repository / ".agents/checks", name, body="repository")
    for name in ("a", "b", "c"):
        put(scene.beside / "checks", name, body="ferrule")
    for name in ("a", "b", "c", "d"):
        put(scene.home / ".config/amp/checks", name, body="amp")
    put(scene.home / ".config/agents/checks", "e", body="agents")

    found = {one.name: (one.body, one.layer) for one in scene.found().reviews}

    assert found == {
        "a": ("workspace", "project"),
        "b": ("repository", "project"),
        "c": ("ferrule", "user"),
        "d": ("amp", "user"),
        "e": ("agents", "user"),
    }


def test_folders_above_count_as_far_as_the_repository_goes(scene):
    put(scene.repository / ".agents/checks")

    assert scene.found().reviews == ()

    (scene.repository / ".git").mkdir()
    assert [one.scope for one in scene.found().reviews] == [str(scene.work)]

    (scene.work / ".git").mkdir()
    assert scene.found().reviews == ()


def test_the_users_own_reviews_are_about_the_whole_workspace(scene):
    put(scene.beside / "checks")

    assert [one.scope for one in scene.found().reviews] == [str(scene.work)]


@pytest.mark.parametrize("folder", ["node_modules/x", ".hidden", "a/b/c/d/e/f/g"])
def test_folders_that_are_not_the_projects_own_are_not_entered(folder, scene):
    put(scene.work / folder / ".agents/checks")

    assert scene.found() == Reviews(())


BAD = {
    "no header": ("Look.", "does not begin with a front matter"),
    "no name": ("---\ndescription: x\n---\nLook.", "no name"),
    "a name that is a list": ("---\nname: [x]\n---\nLook.", "its name is no text"),
    "a long name": (f"---\nname: {'x' * 101}\n---\nLook.", "more than 100 characters"),
    "an invisible name": ("---\nname: '\u200b'\n---\nLook.", "no name"),
    "nothing to do": ("---\nname: x\n---\n\n", "says nothing"),
    "only what cannot be seen": ("---\nname: x\n---\n\u200b\u2060\n", "says nothing"),
    "twice": ("---\nname: x\nname: y\n---\nLook.", "twice"),
    "twice in other letters": ("---\nname: x\ntools: [a]\nTools: [b]\n---\nLook.", "twice"),
    "anchors": ("---\nname: &a x\ndescription: *a\n---\nLook.", "anchors"),
    "tools that are a mapping": ("---\nname: x\ntools: {Read: yes}\n---\nLook.", "no list of names"),
    "tools in part": ("---\nname: x\ntools: [Bash(git *)]\n---\nLook.", "given whole"),
    "too long": (f"---\nname: x\n---\n{'x' * MOST_BYTES}", "is the most"),
    "no text": ("---\nname: x\n---\n\0", "no text"),
}


@pytest.mark.parametrize(("text", "why"), [pytest.param(*case, id=name) for name, case in BAD.items()])
def test_a_file_that_describes_no_review_is_told_and_the_others_count(text, why, scene):
    put(scene.work / ".agents/checks", "good")
    (scene.work / ".agents/checks/bad.md").write_text(text, encoding="utf-8")

    found = scene.found()

    assert [one.name for one in found.reviews] == ["good"]
    (warning,) = found.warnings
    assert "bad.md describes no review" in warning
    assert why in warning


def test_an_importance_that_nobody_knows_is_told_and_does_no_harm(scene):
    put(scene.work / ".agents/checks", severity_default="extreme", model="big")

    found = scene.found()

    assert found.reviews[0].severity == "medium"
    assert [warning.partition(": ")[2] for warning in found.warnings] == [
        "what it says about model has no effect here.",
        "its severity-default 'extreme' is none of low, medium, high, critical.",
    ]


@pytest.mark.parametrize(
    ("tools", "given"),
    [
        pytest.param("tools:\n", (), id="empty"),
        pytest.param("tools: []\n", (), id="none"),
        pytest.param("tools: Read, Grep\n", ("Read", "Grep"), id="words"),
        pytest.param("tools:\n  - Read\n  - Grep\n", ("Read", "Grep"), id="list"),
        pytest.param("", None, id="unsaid"),
    ],
)
def test_tools_are_a_list_of_names(tools, given, scene):
    assert read(f"---\nname: x\n{tools}---\nLook.").tools == given


def test_two_files_of_one_folder_with_one_name_are_told(scene):
    put(scene.work / ".agents/checks", body="first", file="a")
    put(scene.work / ".agents/checks", body="second", file="b")

    found = scene.found()

    assert [one.body for one in found.reviews] == ["first"]
    assert "b.md is left out" in found.warnings[0]


def test_what_cannot_be_seen_is_taken_out_of_the_instructions():
    review = read("---\nname: x\ndescription: a\u202eb\n---\nLook\u200b.\n\tNo\x1b[31mw\r\u2028.\n")

    assert (review.description, review.body) == ("ab", "Look.\n\tNo[31mw  .")


def test_a_project_is_not_read_through_links(scene, tmp_path):
    outside = put(tmp_path / "outside", "stolen")
    checks = scene.work / ".agents/checks"
    checks.mkdir(parents=True)
    (checks / "stolen.md").symlink_to(outside)
    (scene.work / "api").mkdir()
    (scene.work / "api/.agents").symlink_to(tmp_path / "linked")
    put(tmp_path / "linked/checks", "linked")
    (scene.work / "web/.agents").mkdir(parents=True)
    (scene.work / "web/.agents/checks").symlink_to(tmp_path / "linked/checks")

    found = scene.found()

    assert found.reviews == ()
    assert any("stolen.md describes no review" in warning for warning in found.warnings)
    assert any("is reached through a link" in warning for warning in found.warnings)


def test_the_user_may_keep_files_elsewhere(scene, tmp_path):
    path = put(tmp_path / "dotfiles", "mine")
    (scene.beside / "checks").mkdir(parents=True)
    (scene.beside / "checks/mine.md").symlink_to(path)

    assert [(one.name, one.layer) for one in scene.found().reviews] == [("mine", "user")]


def test_what_lies_in_the_workspace_is_the_projects_whoever_links_to_it(scene):
    path = put(scene.work / "kept", "mine")
    (scene.beside / "checks").mkdir(parents=True)
    (scene.beside / "checks/mine.md").symlink_to(path)

    assert [(one.name, one.layer) for one in scene.found().reviews] == [("mine", "project")]


def test_a_rule_that_denies_a_file_holds_here_too(scene):
    path = put(scene.work / ".agents/checks")
    guard = Guard((), scene.jail)
    guard.denied = lambda one, mode: one == str(path) and mode == "read"

    found = scene.found(guard)

    assert found.reviews == ()
    assert "describes no review" in found.warnings[0]


def test_there_are_not_more_reviews_than_anybody_pays_for(scene):
    for number in range(MOST_REVIEWS + 5):
        put(scene.work / ".agents/checks", f"r{number:03}")

    found = scene.found()

    assert len(found.reviews) == MOST_REVIEWS
    assert "more than" in found.warnings[0]


def test_a_file_that_says_much_without_effect_does_not_flood_anybody(scene):
    for number in range(3):
        put(scene.work / ".agents/checks", f"r{number}", **{f"k{key}": "v" for key in range(500)})

    found = scene.found()

    assert len(found.reviews) == 3
    assert len(found.warnings) == 20


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no such files there")
def test_a_pipe_in_the_place_of_a_review_holds_nobody_up(scene):
    (scene.work / ".agents/checks").mkdir(parents=True)
    os.mkfifo(scene.work / ".agents/checks/x.md")

    found = scene.found()

    assert found.reviews == ()
    assert len(found.warnings) == 1


@given(header=st.text(max_size=80), body=st.text(max_size=40))
def test_any_text_is_a_review_of_a_good_form_or_none(header, body):
    with contextlib.suppress(Unusable):
        review = read(f"---\nname: x\n{header}\n---\n{body}")

        assert review.name.isprintable()
        assert review.body
        assert review.severity in {"low", "medium", "high", "critical"}
