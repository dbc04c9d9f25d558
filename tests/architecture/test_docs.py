"""The documents: everything that a user can name is in them, and everything that they name is there."""

import ast
import importlib
import json
import re
from collections.abc import Iterator

import click
import msgspec
import pytest

import ferrule
from ferrule.cli import codes
from ferrule.cli.main import COMMANDS, cli
from ferrule.dialects.dialect import FAMILIES, load_dialect
from ferrule.permissions.plain import TABLE
from ferrule.settings import Settings
from ferrule.workspace.guarded import PROTECTED, READABLE, SECRET

from .project import PACKAGE, ROOT, links, modules, pages, shown

README = ROOT / "README.md"
DOCS = ROOT / "docs"
EVERY_PAGE = [pytest.param(path, id=shown(path)) for path in pages(".", "docs", "docs/decisions")]

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_VARIABLE = re.compile(r"FERRULE_[A-Z]+")
_CODE = re.compile(r"\bcode ?= ?\"([a-z-]+)\"")


def text(name: str) -> str:
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[object]:
    """The pieces of code in that language, of every page."""
    return [
        pytest.param(body, id=f"{shown(path)}-{number}")
        for path in pages(".", "docs", "docs/decisions")
        for number, (named, body) in enumerate(_BLOCK.findall(path.read_text(encoding="utf-8")), 1)
        if named == language
    ]


def settings(struct: type[msgspec.Struct] = Settings, above: str = "") -> Iterator[tuple[str, object]]:
    """Every setting, as a user writes it, with its default."""
    for field in msgspec.structs.fields(struct):
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            yield from settings(field.type, f"{above}{field.name}.")
        else:
            yield f"{above}{field.name}", field.default


def options() -> Iterator[tuple[str, str]]:
    """Every option of every command."""
    context = click.Context(cli)
    for name, command in [("", cli), *((name, cli.get_command(context, name)) for name in COMMANDS)]:
        assert command is not None
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                yield from ((name, option) for option in parameter.opts)


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_every_tool_and_every_parameter_is_documented(family):
    page = text("tools")
    faces = load_dialect(family).faces
    names = [name for face in faces for name in (face.name, *face.aliases, *face.schema["properties"])]

    assert [name for name in (*names, *load_dialect(family).aliases) if f"`{name}`" not in page] == []


def test_every_setting_is_documented_with_its_default():
    rows = {
        row.split("|")[1].strip(" `"): row.split("|")[2].strip(" `")
        for row in text("settings").splitlines()
        if row.startswith("| `")
    }
    expected = {
        name: "none" if default is None else json.dumps(default).replace("()", "[]") for name, default in settings()
    }

    assert {name: rows.get(name) for name in expected} == expected


def test_every_command_has_a_heading():
    headings = {line.strip("# `").split()[-1] for line in text("cli").splitlines() if line.startswith("## `ferrule")}

    assert headings == set(COMMANDS)


def test_every_option_is_documented():
    page = text("cli")

    assert [f"{command} {option}" for command, option in options() if f"`{option}" not in page] == []


def test_every_environment_variable_is_documented():
    named = {name for path in modules() for name in _VARIABLE.findall(path.read_text(encoding="utf-8"))}
    every_page = "".join(path.read_text(encoding="utf-8") for path in pages("docs"))

    assert {name for name in named if f"`{name}`" not in every_page} == set()


def test_the_documents_name_no_other_environment_variable():
    named = {name for path in modules() for name in _VARIABLE.findall(path.read_text(encoding="utf-8"))}
    documented = {name for path in pages(".", "docs") for name in _VARIABLE.findall(path.read_text(encoding="utf-8"))}

    assert documented <= named


def test_every_public_name_is_documented():
    page = text("library")

    assert [name for name in ferrule.__all__ if f"`{name}" not in page and f"`@{name}" not in page] == []


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, id=kind.__name__) for kind in (ferrule.Engine, ferrule.Access, ferrule.Context)]
)
def test_every_public_method_is_documented(kind):
    page = text("library") + text("output")
    methods = [name for name in vars(kind) if name[0] != "_" and callable(getattr(kind, name))]
    inside = {"need", "param", "new_log", "drop_log", "keep_log"}  # for the tools that come with the engine

    assert methods
    assert [name for name in methods if name not in inside and f"{name}(" not in page] == []


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        pytest.param(ferrule.Question, "library", id="Question"),
        pytest.param(ferrule.Reply, "library", id="Reply"),
        pytest.param(ferrule.ModeConfig, "permissions", id="ModeConfig"),
    ],
)
def test_every_public_field_is_documented(kind, name):
    page = text(name)

    assert [field for field in kind.__struct_fields__ if not re.search(rf"`(\w+\.)?{field}`", page)] == []


def test_every_failure_code_is_documented():
    given = {code for path in modules() for code in _CODE.findall(path.read_text(encoding="utf-8"))}
    every_page = "".join(path.read_text(encoding="utf-8") for path in pages("docs"))

    assert len(given) > 20
    assert {code for code in given if f"`{code}`" not in every_page} == set()


def test_every_exit_code_is_documented():
    rows = "".join(line.split("|")[1] for line in text("cli").splitlines() if re.match(r"\| \d", line))
    documented = {int(number) for number in re.findall(r"\d+", rows)}
    signals = {128 + 1, 128 + 15}

    assert documented == {value for name, value in vars(codes).items() if name.isupper()} | signals


def test_the_readme_leads_to_every_page():
    assert {shown(page) for page in pages("docs") if page not in links(README)} == set()


def test_the_readme_names_the_two_commands():
    page = README.read_text(encoding="utf-8")

    assert "make demo" in page
    assert "make test" in page


def test_the_map_leads_to_every_decision():
    decisions = pages("docs/decisions")

    assert decisions
    assert {shown(path) for path in decisions if path not in links(ROOT / "ARCHITECTURE.md")} == set()


def test_the_map_names_every_part_of_the_package():
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    folders = {f"{path.name}/" for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    files = {path.name for path in PACKAGE.glob("*.py")}

    assert {name for name in folders | files if f"`{name}`" not in page} == set()


@pytest.mark.parametrize("page", EVERY_PAGE)
def test_every_link_leads_somewhere(page):
    assert {target for target in links(page) if not target.exists()} == set()


@pytest.mark.parametrize("page", EVERY_PAGE)
def test_every_file_that_a_page_names_is_there(page):
    named = re.findall(
        r"`((?:src/ferrule|tests|docs|examples|bench|scripts|requirements)/[\w./-]+)`", page.read_text(encoding="utf-8")
    )

    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("code", blocks("python"))
def test_every_python_example_names_what_there_is(code):
    parsed = compile(code, "example", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    taken = [
        node for node in ast.walk(parsed) if isinstance(node, ast.ImportFrom) and str(node.module).startswith("ferrule")
    ]

    for node in taken:
        module = importlib.import_module(str(node.module))
        assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []


@pytest.mark.parametrize("code", blocks("toml"))
def test_every_settings_example_is_a_settings_file(code):
    assert isinstance(msgspec.toml.decode(code, type=Settings), Settings)


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=path.name) for path in sorted((ROOT / "examples").glob("*.py"))]
)
def test_every_example_is_named_in_the_documents(path):
    every_page = "".join(page.read_text(encoding="utf-8") for page in pages(".", "docs"))

    assert f"examples/{path.name}" in every_page


def test_the_licence_is_the_one_that_the_package_names():
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")

    assert licence.split()[:5] == ["Apache", "License", "Version", "2.0,", "January"]


def test_every_guarded_pattern_is_documented():
    page = text("safety")

    assert [pattern for pattern in (*SECRET, *PROTECTED, *READABLE) if f"`{pattern}`" not in page] == []


def test_every_program_that_needs_no_question_is_documented():
    page = text("permissions")
    programs = sorted({known.split(" ")[0] for known in TABLE})

    assert [program for program in programs if f"`{program}`" not in page] == []
