"""Tools from elsewhere as their pages promise them: what is no tool, and limits that are what the pages say."""

from pathlib import Path

import pytest
from tests.rows import each_row

from ferrule import Engine
from ferrule.hooks import hooks
from ferrule.hooks import hooks as command
from ferrule.hooks import hooks as variables
from ferrule.permissions.trust import SKILLS, TOOLBOXES, TOOLS, Trust, code_files
from ferrule.registry import dynamic, search
from ferrule.serve import http_server
from ferrule.serve.mcp import client as questions
from ferrule.serve.mcp import http, stdio
from ferrule.settings import Settings, state_folder
from ferrule.settings.layers import PROJECT_MAY
from ferrule.sources import mcp as server
from ferrule.sources import toolbox
from ferrule.sources.custom import module as lua
from ferrule.sources.custom import module as sandbox
from ferrule.sources.mcp import config, connection, servers
from ferrule.sources.mcp import config as places
from ferrule.sources.mcp import results as quarantine
from ferrule.sources.toolbox import tool
from ferrule.sources.toolbox import tool as description
from ferrule.tools import meta, skills
from ferrule.tools import skills as one_skill
from ferrule.tools import skills as skill_catalog
from ferrule.tools.skills import text as skill_text
from ferrule.tools.skills import tool as output
from ferrule.tools.skills import tool as skill

DOCS = Path(__file__).parents[2] / "docs"


async def test_programs_in_a_projects_bin_are_no_tools(tmp_path: Path):
    for folder in ("bin", "tools"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"in-{folder}").write_text("#!/bin/sh\necho hi\n")
        (tmp_path / folder / f"in-{folder}").chmod(0o755)
    Trust(state_folder(), "code").grant(str(tmp_path), code_files(str(tmp_path)))
    async with Engine(tmp_path, settings=Settings(), dialect="ah") as engine:
        assert [name for name in ("in-bin", "in-tools") if engine.registry.knows(name)] == ["in-tools"]


@each_row(
    ("page", "sentence", "value"),
    [
        pytest.param("mcp", "{:,} tools at most; a description", quarantine.MOST_TOOLS, id="mcp-tools"),
        pytest.param("mcp", "larger than {} KiB", quarantine._SCHEMA_BYTES >> 10, id="mcp-schema"),
        pytest.param("mcp", "{} levels", quarantine._DEPTH, id="mcp-depth"),
        pytest.param("mcp", "cut after {:,} characters", quarantine._TOOL_WORDS_CHARS, id="mcp-words"),
        pytest.param("mcp", "{} servers at most", config._MOST_SERVERS, id="mcp-servers"),
        pytest.param("mcp", "A file has {} MiB", places._MOST_BYTES >> 20, id="mcp-file"),
        pytest.param("mcp", "longer than {} characters", server.MOST_CHARS, id="mcp-name"),
        pytest.param("mcp", "at most {}, with no `__`", server.SERVER_CHARS, id="mcp-server-name"),
        pytest.param("mcp", "{} at a time", servers.PAGE, id="mcp-resources"),
        pytest.param("mcp", "and so on up to {:g}", connection.PAUSES_SECONDS[-1], id="mcp-rest"),
        pytest.param("mcp", "within {:g} minutes", questions._ASK_SECONDS / 60, id="serve-question"),
        pytest.param("mcp", "of {} characters or more", http_server._TOKEN_CHARS, id="serve-token"),
        pytest.param("mcp", "A request has {} MiB", http._BODY_BYTES >> 20, id="serve-request"),
        pytest.param("mcp", "standard input {} MiB", stdio._LINE_BYTES >> 20, id="serve-line"),
        pytest.param("toolboxes", "A folder has {} tools at most", toolbox.MOST_FILES, id="toolbox-files"),
        pytest.param("toolboxes", "{:,} characters at most", description.MOST_WORDS_CHARS, id="toolbox-words"),
        pytest.param("toolboxes", "the last {:,} characters", tool._ERROR_CHARS, id="toolbox-errors"),
        pytest.param("custom-tools", "{} MiB of memory", sandbox.MEMORY_BYTES >> 20, id="lua-memory"),
        pytest.param("custom-tools", "{:g} seconds to be read", lua._LOAD_SECONDS, id="lua-seconds"),
        pytest.param("skills", "At most {} skills", skills.MOST_SKILLS, id="skills"),
        pytest.param("skills", "has {} KiB at most", skills.FILE_BYTES >> 10, id="skill-file"),
        pytest.param("skills", "cut after {:,} characters", one_skill.MOST_DESCRIPTION_CHARS, id="skill-description"),
        pytest.param("skills", "{:,} characters at most", skill.MOST_ARGUMENTS_CHARS, id="skill-arguments"),
        pytest.param("skills", "{} at most, ", skill_text.MOST_COMMANDS, id="skill-commands"),
        pytest.param("skills", "{:g} seconds each", output.SECONDS, id="skill-seconds"),
        pytest.param("skills", "the last {:,} characters", output.HALF_CHARS, id="skill-output"),
        pytest.param("hooks", "At most {} hooks run at once", hooks._AT_ONCE, id="hooks-at-once"),
        pytest.param("hooks", "more than {} MiB printed", command._OUTPUT_BYTES >> 20, id="hook-output"),
        pytest.param("hooks", "{} names at most", variables._NAMES, id="hook-names"),
        pytest.param("hooks", "{} KiB and", variables._FILE_BYTES >> 10, id="hook-variables"),
        pytest.param("tool-search", "{} unless `limit` says", search.RANKED, id="search-ranked"),
        pytest.param("tool-search", "{} at most", meta.MOST, id="search-most"),
        pytest.param("tool-search", "{:,} characters at most", dynamic.ROOM_CHARS, id="search-told"),
        pytest.param("tool-search", "has {:,} characters at most", skill_catalog.CATALOG_CHARS, id="catalog"),
    ],
)
def test_a_limit_is_what_its_page_says(page: str, sentence: str, value: float):
    text = " ".join((DOCS / f"{page}.md").read_text(encoding="utf-8").split())

    assert sentence.format(value) in text


@pytest.mark.parametrize(
    ("page", "names"),
    [
        pytest.param("permissions", (*TOOLS, *TOOLBOXES, *SKILLS, ".mcp.json"), id="code"),
        pytest.param("custom-tools", TOOLS, id="tools"),
        pytest.param("toolboxes", TOOLBOXES, id="toolboxes"),
        pytest.param("skills", SKILLS, id="skills"),
        pytest.param("settings", tuple(name.removesuffix(".*") for name in PROJECT_MAY), id="project-may"),
    ],
)
def test_every_place_is_on_its_page(page: str, names: tuple[str, ...]):
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")

    assert [name for name in names if f"`{name}`" not in text] == []
