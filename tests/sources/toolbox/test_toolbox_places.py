"""Where toolboxes are looked for, in which order, and which folders are nobody's to name."""

import os

import pytest

from ferrule.settings import Tools
from ferrule.sources.toolbox import PROJECT, Box, choose_folder, folders


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home folder with both default toolboxes, three more folders, and a workspace with its own."""
    for name in ("home/.config/amp/tools", "conf/toolbox", "a", "b", "c", "work/mine", *(f"work/{p}" for p in PROJECT)):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


def found(home, tools=None, *, trusted=False, workspace="work", **environment):
    root = os.path.join(home, workspace)
    places = folders(
        tools or Tools(),
        environment=environment,
        settings_file=f"{home}/conf/settings.toml",
        roots=[root],
        project=[os.path.join(root, name) for name in PROJECT],
        trusted=trusted,
    )
    return [os.path.relpath(box.path, home) for box in places.boxes], places.warnings


DEFAULT = ["home/.config/amp/tools", "conf/toolbox"]


@pytest.mark.parametrize(
    ("setting", "ferrule", "amp", "expected"),
    [
        pytest.param(None, None, None, DEFAULT, id="nothing-is-said"),
        pytest.param(None, None, "a:b", ["a", "b"], id="amp"),
        pytest.param(None, "b", "a", ["b"], id="ours-before-amps"),
        pytest.param(("c",), "b", "a", ["c"], id="setting-before-both"),
        pytest.param(None, None, "", [], id="amp-empty"),
        pytest.param(None, "", "a", [], id="ours-empty"),
        pytest.param((), "b", "a", [], id="setting-empty"),
        pytest.param(None, None, "b::a:b", ["b", "a"], id="once-each-in-order"),
        pytest.param(None, None, "~/.config/amp/tools", DEFAULT[:1], id="home"),
    ],
)
@pytest.mark.contract("toolbox.folders")
def test_the_folders_are_these(home, setting, ferrule, amp, expected):
    def absolute(paths):
        return [path if path[:1] in ("", "~") else f"{home}/{path}" for path in paths]

    environment = {
        name: os.pathsep.join(absolute(value.split(":")))
        for name, value in (("FERRULE_TOOLBOX", ferrule), ("AMP_TOOLBOX", amp))
        if value is not None
    }
    tools = Tools(toolbox=None if setting is None else tuple(absolute(setting)))

    assert found(home, tools, **environment) == (expected, ())


def test_a_projects_folders_come_last_and_only_with_trust(home):
    assert found(home)[0] == DEFAULT
    assert found(home, trusted=True)[0] == [*DEFAULT, *(f"work/{name}" for name in PROJECT)]


def test_a_project_has_its_layer(home):
    places = folders(
        Tools(toolbox=()), environment={}, settings_file="/x/y", project=[f"{home}/a", f"{home}/none"], trusted=True
    )

    assert places.boxes == (Box(f"{home}/a", "project"),)


@pytest.mark.parametrize(
    ("named", "said"),
    [
        pytest.param("tools", "absolute path", id="relative"),
        pytest.param(".", "absolute path", id="here"),
        pytest.param("{home}/work/mine", "in the workspace", id="in-the-workspace"),
        pytest.param("{home}/link", "in the workspace", id="linked-into-the-workspace"),
        pytest.param("{home}/nowhere", "not there", id="missing"),
        pytest.param("{home}/file", "not there", id="file"),
    ],
)
def test_what_nobody_may_name_is_left_out_and_said(home, named, said, monkeypatch):
    monkeypatch.chdir(home / "work")
    (home / "link").symlink_to(home / "work" / "mine")
    (home / "file").touch()

    boxes, warnings = found(home, trusted=True, AMP_TOOLBOX=named.format(home=home))

    assert boxes == [f"work/{name}" for name in PROJECT]
    assert len(warnings) == 1
    assert said in warnings[0]
    assert "AMP_TOOLBOX" in warnings[0]


def test_a_folder_that_nobody_named_is_said_to_be_nobodys(home):
    (home / "conf" / "toolbox").rmdir()
    (home / "conf" / "toolbox").symlink_to(home / "work" / "mine")

    _, (warning,) = found(home)

    assert warning.startswith(f"The toolbox folder {home}/conf/toolbox is not used: it lies in the workspace.")


def test_who_works_at_home_keeps_their_own_toolboxes(home):
    assert found(home, workspace="home") == (DEFAULT, ())


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        pytest.param({}, "/conf/toolbox", id="nothing-is-said"),
        pytest.param({"AMP_TOOLBOX": "rel:/a:/b"}, "/a", id="the-first-that-can-be"),
        pytest.param({"FERRULE_TOOLBOX": ""}, None, id="none"),
    ],
)
def test_a_new_tool_goes_there(environment, expected):
    assert choose_folder(Tools(), environment=environment, settings_file="/conf/settings.toml") == expected
