"""Settings of several files: what holds over what, what a project may say, and where each value came from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule import Engine
from ferrule.core.errors import ConfigError
from ferrule.engine.build import layers_of, resolve_settings
from ferrule.permissions.trust import Trust, project_files
from ferrule.settings import Settings
from ferrule.settings.layers import PROJECT_MAY, LayerFile, Name, leaves, list_settings, merge_layers, value_of
from tests.rows import each_row


def together(**files: str):
    names: dict[str, Name] = {"managed": "managed", "user": "user", "project": "project"}
    return merge_layers([LayerFile(names[layer], f"/{layer}.toml", text.encode()) for layer, text in files.items()])


def test_without_files_everything_has_its_default():
    whole = merge_layers([])

    assert whole.settings == Settings()
    assert not whole.origins


@pytest.mark.contract("settings.layers")
def test_the_project_holds_over_the_user_and_the_machine_over_both():
    whole = together(
        project="[limits]\nseconds = 2\nparallel = 2",
        managed="[limits]\nseconds = 3",
        user='dialect = "ah"\n[limits]\nseconds = 1\nparallel = 1',
    )

    assert (whole.settings.dialect, whole.settings.limits.seconds, whole.settings.limits.parallel) == ("ah", 3.0, 2)
    assert whole.origins == {
        "dialect": "/user.toml",
        "limits.seconds": "/managed.toml",
        "limits.parallel": "/project.toml",
    }


@each_row(
    ("text", "key"),
    [
        pytest.param("[sandbox]\nnetwork = true", "sandbox.network", id="network"),
        pytest.param('[sandbox]\nuse = "none"', "sandbox.use", id="sandbox"),
        pytest.param('[files]\nadd_dirs = ["/"]', "files.add_dirs", id="folders"),
        pytest.param('[files]\nguarded_allow = [".env"]', "files.guarded_allow", id="secrets"),
        pytest.param('[shell]\nkeep_env = ["TOKEN"]', "shell.keep_env", id="environment"),
        pytest.param('[tools]\nfolders = ["x"]', "tools.folders", id="tools"),
        pytest.param('[tools]\ntoolbox = ["x"]', "tools.toolbox", id="toolbox"),
        pytest.param('[mcp]\nfiles = ["x"]', "mcp.files", id="servers"),
        pytest.param('[skills]\nfolders = ["x"]', "skills.folders", id="skills"),
    ],
)
@pytest.mark.contract("settings.project")
def test_a_project_opens_nothing(text, key):
    whole = together(project=text)

    assert whole.settings == Settings()
    assert whole.warnings == (f"/project.toml: a project cannot set {key}; put it into your own settings.",)


def test_rules_hooks_and_servers_of_other_layers_are_not_the_users():
    text = '[permissions]\nallow = ["Bash"]\n[mcp.servers.x]\ncommand = "x"\n[[hooks.PreToolUse]]\ncommand = "x"\n'
    whole = together(project=text, managed=text)

    assert whole.settings == Settings()
    assert not whole.warnings
    assert list(whole.layers["project"].mcp.servers) == list(whole.layers["managed"].mcp.servers) == ["x"]


def test_names_with_dots_are_one_name():
    whole = together(user='[dialects]\n"gpt-5.2" = "codex"', managed='[tools.exposure]\n"mcp__a.b__*" = "hidden"')

    assert whole.settings.dialects == {"gpt-5.2": "codex"}
    assert whole.settings.tools.exposure == {"mcp__a.b__*": "hidden"}
    assert whole.origins["dialects.gpt-5.2"] == "/user.toml"


def test_what_has_one_more_level_is_put_together_piece_by_piece():
    whole = together(
        user='[web.search]\nbackend = "brave"\n[lsp.servers."a.b"]\ncommand = "l"\n[lsp.servers.ty]\ndisabled = true',
        managed="[web.search]\nresults = 3\n[lsp.servers.ty]\ndisabled = false",
    )

    assert (whole.settings.web.search.backend, whole.settings.web.search.results) == ("brave", 3)
    assert set(whole.settings.lsp.servers) == {"a.b", "ty"}
    assert not whole.settings.lsp.servers["ty"].disabled
    assert whole.origins["web.search.backend"] == "/user.toml"


def test_a_wrong_file_of_any_layer_is_an_error_that_names_it():
    with pytest.raises(ConfigError, match=r"/managed.toml.*sekonds"):
        together(user="", managed="[limits]\nsekonds = 1")


def test_what_a_project_may_set_exists():
    known = {key for key, _ in list_settings()}

    assert {key.removesuffix(".*") for key in PROJECT_MAY} <= known | {"limits", "checks"}


@given(st.sampled_from([key for key, _ in list_settings()]))
def test_every_setting_has_a_value_of_its_name(key):
    assert value_of(Settings(), key) == dict(list_settings())[key]


def test_every_setting_is_one_leaf():
    nested = {"dialect": "x", "mcp": {"servers": {"a": {"command": "x"}}, "defer_tokens": 1}, "hooks": {"Stop": []}}

    assert dict(leaves(nested)) == {
        "dialect": "x",
        "mcp.servers.a": {"command": "x"},
        "mcp.defer_tokens": 1,
        "hooks.Stop": [],
    }


@pytest.fixture
def project(tmp_path):
    (tmp_path / "work/.ferrule").mkdir(parents=True)
    (tmp_path / "work/.ferrule/settings.toml").write_text('dialect = "codex"\n')
    return tmp_path / "work"


def test_a_project_that_is_not_trusted_sets_nothing(project, tmp_path):
    state = str(tmp_path / "state")

    assert resolve_settings(str(project), state)[0].dialect == "amp"
    assert "is not trusted" in layers_of(str(project), state).warnings[0]
    assert Engine(project, state=state).dialect.name == "amp"


def test_a_trusted_project_chooses_its_dialect_until_its_file_changes(project, tmp_path):
    state = str(tmp_path / "state")
    Trust(state).grant(str(project), project_files(str(project)))

    assert Engine(project, state=state).dialect.name == "codex"
    assert Engine(project, state=state, settings=Settings()).dialect.name == "amp"
    (project / ".ferrule/settings.toml").write_text('dialect = "codex"\n\n')
    assert Engine(project, state=state).dialect.name == "amp"


def test_what_a_session_wants_counts_over_the_files_and_under_the_machine_s():
    files = [
        LayerFile("managed", "/managed.toml", b"[models]\nretries = 1"),
        LayerFile("user", "/user.toml", b'[models]\nretries = 2\nquiet_seconds = 5\n[permissions]\ndeny = ["Bash"]'),
    ]
    over = {"models": {"retries": 3, "quiet_seconds": 7, "effort": "low"}, "permissions": {"deny": ["Edit"]}}

    settings = merge_layers(files, over).settings

    assert (settings.models.retries, settings.models.quiet_seconds, settings.models.effort) == (1, 7.0, "low")
    assert settings.permissions.deny == ("Bash", "Edit")


@pytest.mark.parametrize("sources", [[], ["project"], ["user"]])
def test_without_the_user_s_files_only_how_the_machine_is_used_stays(sources):
    user = b'[models]\nretries = 2\n[permissions]\ndeny = ["Bash"]\n[skills]\nfolders = ["s"]\n'
    user += b'[[hooks.Stop]]\ncommand = "x"\n[mcp.servers.a]\ncommand = "x"\n'

    settings = merge_layers([LayerFile("user", "/user.toml", user)], {"sources": sources}).settings

    kept = (settings.permissions.deny, settings.skills.folders, set(settings.hooks), set(settings.mcp.servers))
    assert kept == ((("Bash",), ("s",), {"Stop"}, {"a"}) if "user" in sources else ((), (), set(), set()))
    assert (settings.models.retries, settings.sources) == (2, tuple(sources))


async def test_a_session_reads_no_file_of_a_project_whose_files_do_not_count(tmp_path):
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text('{"permissions": {"deny": ["WebFetch"]}}')
    (tmp_path / "AGENTS.md").write_text("THE PROJECT")
    found = []
    for sources in (["user", "project"], ["user"]):
        async with Engine(tmp_path, dialect="claude", over={"sources": sources}) as engine:
            guidance = [guide.text for guide in await engine.guidance()]
            found.append((guidance, "WebFetch" in [face.name for face in engine.faces()]))

    assert found == [(["THE PROJECT"], False), ([], True)]
