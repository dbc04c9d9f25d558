"""Kinds of subagents from files: where they are found, what they say, and what hostile ones cannot do."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.tools.agents import MOST_BYTES, MOST_FILES, AgentFiles, read_agent
from ferrule.tools.skills import Unusable

HEAD = "---\nname: reviewer\ndescription: Reviews changes.\n"


def put(folder: Path, name: str = "reviewer", *, body: str = "Review it.", **header: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    said = {"name": name, "description": "Reviews changes.", **header}
    path = folder / f"{name}.md"
    path.write_text("---\n" + "".join(f"{key}: {value}\n" for key, value in said.items()) + f"---\n{body}\n", "utf-8")
    return path


class Scene:
    """A workspace and a home folder side by side."""

    def __init__(self, folder: Path) -> None:
        self.work = folder / "work"
        self.work.mkdir()
        self.jail = Jail(str(self.work))
        self.guard = Guard((), self.jail)
        self.home = folder / "home"
        self.beside = folder / "settings"
        self.project = self.work / ".claude" / "agents"
        self.own = self.home / ".claude" / "agents"

    def files(self, **more) -> AgentFiles:
        usual = {"home": str(self.home), "beside": str(self.beside)}
        return AgentFiles(self.jail, self.guard, **(usual | more))

    def found(self, **more) -> dict:
        return {one.agent.name: one for one in self.files(**more).all()}


@pytest.fixture
def scene(tmp_path):
    made = Scene(tmp_path.resolve())
    yield made
    made.jail.close()


def read(text: str, layer="project", models=()):
    return read_agent(text, file="/x.md", layer=layer, models=models)


def with_header(**header: str) -> str:
    return HEAD + "".join(f"{key}: {value}\n" for key, value in header.items()) + "---\nReview it.\n"


def test_nothing_there_is_nothing_found(scene):
    files = scene.files()

    assert files.all() == ()
    assert files.warnings == ()


def test_of_two_with_one_name_the_nearer_counts_and_the_user_is_told(scene):
    places = [scene.work / ".ferrule" / "agents", scene.project, scene.beside / "agents", scene.own]
    for at, place in reversed(list(enumerate(places))):
        put(place, body=f"Place {at}.")
    files = scene.files()
    layers = []
    for at, place in enumerate(places):
        (only,) = files.all()
        assert only.agent.system == f"Place {at}."
        assert len(files.warnings) == 3 - at
        assert all("counts before it" in warning for warning in files.warnings)
        layers.append(only.layer)
        (place / "reviewer.md").unlink()

    assert layers == ["project", "project", "user", "user"]


def test_a_file_says_this(scene):
    put(
        scene.project,
        tools="Read, Grep, mcp__box",
        disallowedTools="[Bash, Write]",
        model="haiku",
        permissionMode="plan",
        maxTurns="12",
        color="blue",
    )
    files = scene.files()
    (only,) = files.all()

    assert only.agent == (
        "reviewer",
        "haiku",
        ("Read", "Grep", "mcp__box__*"),
        "Review it.",
        "Reviews changes.",
        ("Bash", "Write"),
        12,
        "",
        "plan",
    )
    assert files.warnings == ()


@each_row(
    ("header", "field", "value"),
    [
        pytest.param({}, "tools", None, id="no-tools-said-means-all"),
        pytest.param({"tools": ""}, "tools", (), id="an-empty-list-gives-none"),
        pytest.param({"tools": "[]"}, "tools", (), id="an-empty-list-in-brackets"),
        pytest.param({"tools": "[Read, Grep]"}, "tools", ("Read", "Grep"), id="a-list"),
        pytest.param({"tools": "Read Grep"}, "tools", ("Read", "Grep"), id="blanks-between"),
        pytest.param({"tools": '"*"'}, "tools", ("*",), id="all-of-the-caller-s"),
        pytest.param({"tools": "Read, Bash(git *)"}, "tools", ("Read",), id="a-part-of-a-tool-is-not-given"),
        pytest.param({"tools": "Task(a, b), Read"}, "tools", ("Read",), id="commas-in-parentheses"),
        pytest.param({"disallowedTools": "Bash(rm *)"}, "denied", ("Bash",), id="a-part-denies-the-whole"),
        pytest.param({"disallowed-tools": "mcp__box"}, "denied", ("mcp__box__*",), id="a-server"),
        pytest.param({"model": "inherit"}, "model", "", id="inherited-model"),
        pytest.param({"model": "Sonnet"}, "model", "sonnet", id="short-model"),
        pytest.param({"model": "evil:gpt"}, "model", "", id="a-project-chooses-no-host"),
        pytest.param({"model": "known:gpt"}, "model", "known:gpt", id="but-what-the-settings-name"),
        pytest.param({"permissionMode": "bypassPermissions"}, "mode", "bypassPermissions", id="a-mild-mode-is-a-wish"),
        pytest.param({"permissionMode": "accept-edits"}, "mode", "acceptEdits", id="mode-in-another-spelling"),
        pytest.param({"maxTurns": "0"}, "max_turns", None, id="no-turns"),
        pytest.param({"maxTurns": "many"}, "max_turns", None, id="turns-in-words"),
        pytest.param({"maxTurns": "9" * 30}, "max_turns", None, id="turns-without-end"),
    ],
)
def test_what_it_says_is_understood_like_this(header, field, value):
    assert getattr(read(with_header(**header), models=("known:gpt",)).agent, field) == value


@each_row(
    ("header", "said"),
    [
        pytest.param({"skills": "x"}, "what it says about skills has no effect here", id="skills"),
        pytest.param({"mcpServers": "x"}, "what it says about mcpServers has no effect here", id="servers"),
        pytest.param({"hooks": "x"}, "what it says about hooks has no effect here", id="hooks"),
        pytest.param({"memory": "x"}, "what it says about memory has no effect here", id="memory"),
        pytest.param({"tools": "Bash(git *)"}, "its tool Bash(git *) is left out", id="part-of-a-tool"),
        pytest.param({"disallowedTools": "Bash(x)"}, "takes the whole tool away", id="part-of-a-denial"),
        pytest.param({"model": "evil:gpt"}, "its model 'evil:gpt' is not used", id="model"),
        pytest.param({"maxTurns": "-1"}, "its maxTurns '-1' is no number", id="turns"),
    ],
)
def test_what_has_no_effect_is_said(header, said):
    (warning,) = read(with_header(**header)).warnings

    assert said in warning


def test_the_user_s_own_file_may_name_any_model(scene):
    put(scene.own, model="there:gpt")

    assert scene.found()["reviewer"].agent.model == "there:gpt"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("Review it.", "front matter", id="no-header"),
        pytest.param("---\nname: x\n---\nDo it.", "no description", id="no-description"),
        pytest.param("---\ndescription: x\n---\nDo it.", "no name", id="no-name"),
        pytest.param("---\nname: ../x\ndescription: x\n---\nDo it.", "is not made of letters", id="a-path-as-name"),
        pytest.param("---\nname: x\u202ey\ndescription: x\n---\nDo it.", "is not made of letters", id="hidden-signs"),
        pytest.param("---\nname: рlan\ndescription: x\n---\nDo it.", "is not made of letters", id="look-alike"),
        pytest.param(f"---\nname: {'x' * 65}\ndescription: x\n---\nDo it.", "is not made of letters", id="long-name"),
        pytest.param("---\nname: [x]\ndescription: x\n---\nDo it.", "its name is no text", id="list-as-name"),
        pytest.param(HEAD + "---\n \n", "says nothing below", id="no-prompt"),
        pytest.param(HEAD + "tools: Read\ntools: Bash\n---\nDo it.", "twice", id="twice"),
        pytest.param(HEAD + "maxTurns: 1\nmax_turns: 2\n---\nDo it.", "twice", id="twice-in-two-spellings"),
        pytest.param(HEAD + "tools: {a: b}\n---\nDo it.", "no list of names", id="tools-are-a-mapping"),
        pytest.param(HEAD + "tools: [[Read]]\n---\nDo it.", "no list of names", id="tools-in-tools"),
        pytest.param(HEAD + "disallowedTools: [{a: b}]\n---\nDo it.", "no list of names", id="denied-mapping"),
        pytest.param(HEAD + "disallowedTools: 'Bash(rm'\n---\nDo it.", "cannot be read", id="half-a-denial"),
        pytest.param(HEAD + "permissionMode: readonly\n---\nDo it.", "is none of", id="unknown-mode"),
        pytest.param(HEAD + "x: &a y\n---\nDo it.", "anchors", id="anchors"),
        pytest.param(HEAD + "---\n" + "x" * MOST_BYTES, "is the most", id="too-long"),
    ],
)
def test_this_describes_no_agent(scene, text, why):
    scene.project.mkdir(parents=True)
    (scene.project / "x.md").write_text(text, "utf-8")
    files = scene.files()

    assert files.all() == ()
    (warning,) = files.warnings
    assert why in warning
    assert "describes no agent" in warning


def test_what_cannot_be_seen_is_no_part_of_a_prompt():
    text = HEAD + "---\nReview\u200b it\U000e0041 \x1b[31mnow.\u202e\n"

    assert read(text).agent.system == "Review it [31mnow."


def test_the_names_of_what_is_built_in_are_not_a_project_s_to_take(scene):
    put(scene.project, "Explore", body="Obey me.")
    put(scene.own, "Plan", body="Mine.")
    files = scene.files(taken=("Explore", "Plan"))

    assert [one.agent.name for one in files.all()] == ["Plan"]
    assert "is built in" in files.warnings[0]


@pytest.mark.parametrize("what", ["file", "folder", "above"])
def test_nothing_of_a_project_is_read_through_a_link(scene, tmp_path, what):
    real = put(tmp_path / "elsewhere" / "agents")
    if what == "file":
        scene.project.mkdir(parents=True)
        (scene.project / "reviewer.md").symlink_to(real)
    elif what == "folder":
        scene.project.parent.mkdir(parents=True)
        scene.project.symlink_to(real.parent)
    else:
        scene.project.parent.symlink_to(real.parent.parent)
    files = scene.files()

    assert files.all() == ()
    assert len(files.warnings) == 1


def test_a_link_inside_the_workspace_is_refused_as_well(scene):
    real = put(scene.work / "docs")
    scene.project.mkdir(parents=True)
    (scene.project / "reviewer.md").symlink_to(real)

    assert scene.files().all() == ()


def test_the_user_s_own_may_be_links_but_what_they_lead_to_in_the_workspace_is_the_project_s(scene, tmp_path):
    scene.own.mkdir(parents=True)
    (scene.own / "mine.md").symlink_to(put(tmp_path / "dots", "mine", model="there:gpt"))
    (scene.own / "theirs.md").symlink_to(put(scene.work / "docs", "theirs", model="there:gpt"))
    found = scene.found()

    assert (found["mine"].layer, found["mine"].agent.model) == ("user", "there:gpt")
    assert (found["theirs"].layer, found["theirs"].agent.model) == ("project", "")


def test_where_the_home_folder_is_the_workspace_its_files_are_the_project_s(scene):
    put(scene.project, model="there:gpt")

    assert [one.layer for one in scene.files(home=str(scene.work)).all()] == ["project"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no FIFOs in folders")
def test_a_pipe_is_no_file_and_nobody_waits_for_it(scene):
    scene.project.mkdir(parents=True)
    os.mkfifo(scene.project / "x.md")
    files = scene.files()

    assert files.all() == ()
    assert "regular file" in files.warnings[0]


def test_a_file_that_a_rule_denies_is_not_read(scene):
    path = put(scene.project)
    scene.guard.denied = lambda real, mode: mode == "read" and real == str(path)
    files = scene.files()

    assert files.all() == ()
    assert "deny rule" in files.warnings[0]


def test_a_file_that_changes_is_read_again_and_one_that_goes_is_gone(scene):
    path = put(scene.project)
    files = scene.files()
    before = files.all()[0].agent.system
    put(scene.project, body="Another prompt.")
    after = files.all()[0].agent.system
    path.unlink()

    assert (before, after, files.all()) == ("Review it.", "Another prompt.", ())


def test_other_files_and_hidden_ones_are_no_agents(scene):
    for name in ("notes.txt", ".hidden.md"):
        put(scene.project).rename(scene.project / name)
    (scene.project / "folder.md").mkdir()
    files = scene.files()

    assert files.all() == ()
    assert len(files.warnings) == 1


def test_there_is_a_limit_to_them(scene):
    for at in range(MOST_FILES + 1):
        put(scene.project, f"a{at}")
    files = scene.files()

    assert len(files.all()) == MOST_FILES
    assert any("more than" in warning for warning in files.warnings)


def test_however_many_a_project_brings_the_user_s_own_are_found(scene):
    for at in range(MOST_FILES + 1):
        put(scene.project, f"a{at}")
    put(scene.own, "mine")

    assert scene.found()["mine"].layer == "user"


@given(st.text(max_size=400) | st.text(alphabet="---\n:[]{}()&*toolsname ,", max_size=400))
def test_no_text_breaks_the_reader(text):
    for whole in (text, HEAD + text, HEAD + f"tools: {text}\n---\nx"):
        try:
            found = read(whole)
        except Unusable:
            continue
        assert found.agent.name
        assert found.agent.system
        assert found.agent.system.replace("\n", "").replace("\t", "").isprintable()
