"""The documents: everything that a user can name is in them, and everything that they name is there."""

import ast
import importlib
import importlib.util
import json
import re
from collections.abc import Iterator

import click
import msgspec
import pytest
from scripts import catalog

import ferrule
from ferrule.cli import show as codes
from ferrule.cli.main import COMMANDS, cli
from ferrule.core.tool import WHOLE, Face
from ferrule.dialects import COMING, FAMILIES, Dialect, load_dialect
from ferrule.files.guard import HOME, PROTECTED, READABLE, SECRET
from ferrule.files.guidance import NAMES
from ferrule.permissions import MODES
from ferrule.permissions.auto_allow import TABLE
from ferrule.permissions.shell.tables import rows as program_rows
from ferrule.permissions.trust import PROJECT_FILES
from ferrule.sandbox import NAMES as SANDBOXES
from ferrule.sandbox.confinement import KEPT
from ferrule.settings import Settings
from ferrule.tools import BUILTIN
from ferrule.tools.files import format as formatters
from ferrule.wire import WIRES
from tests.rows import each_row

from .project import PACKAGE, ROOT, links, modules, pages, python, shown

README = ROOT / "README.md"
DOCS = ROOT / "docs"
EVERY_PAGE = [pytest.param(path, id=shown(path)) for path in pages(".", "docs", "docs/decisions")]

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_PROGRAM = re.compile(r"^```python\n((?:(?!^```$).*\n)*)```\n\n```text\n((?:(?!^```$).*\n)*)```$", re.MULTILINE)
"""A program and, right below it, what it prints."""
_VARIABLE = re.compile(r"\b(?:FERRULE|AH)_[A-Z_]+")
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


def programs() -> list[object]:
    """The programs of every page that says what they print."""
    return [
        pytest.param(code, printed, id=f"{shown(path)}-{number}")
        for path in pages(".", "docs", "docs/decisions")
        for number, (code, printed) in enumerate(_PROGRAM.findall(path.read_text(encoding="utf-8")), 1)
    ]


def rows(page: str, name: str) -> str:
    """The rows about one thing in the tables of a page."""
    return "\n".join(row for row in text(page).splitlines() if row.startswith(f"| `{name}` |"))


def settings(struct: type[msgspec.Struct] = Settings, above: str = "") -> Iterator[tuple[str, object]]:
    """Every setting, as a user writes it, with its default."""
    for field in msgspec.structs.fields(struct):
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            yield from settings(field.type, f"{above}{field.name}.")
        else:
            made = callable(field.default_factory)
            yield f"{above}{field.name}", field.default_factory() if made else field.default


def options(name: str = "", command: click.Command = cli) -> Iterator[tuple[str, str]]:
    """Every option of every command, and of the commands below it."""
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            yield from ((name, option) for option in parameter.opts)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None
            yield from options(f"{name} {below}".strip(), found)


@each_row("family", FAMILIES)
def test_every_tool_and_every_parameter_is_in_the_catalogue(family):
    section = text("catalog").split(f"\n## {family}\n")[1].split("\n## ")[0]
    faces = load_dialect(family).faces
    names = [name for face in faces for name in (face.name, *face.aliases, *face.schema["properties"])]

    assert [name for name in (*names, *load_dialect(family).aliases) if f"`{name}`" not in section] == []


def test_the_catalogue_is_what_the_faces_say():
    assert text("catalog") == catalog.page(), "Run scripts/catalog.py."


def test_every_tool_of_the_seed_and_its_parameters_are_explained():
    page = text("tools")
    faces = [face for face in load_dialect("amp").faces if face.tool in BUILTIN]

    assert [face.name for face in faces if face.shown and f"## `{face.name}`" not in page] == []
    assert [name for face in faces for name in face.schema["properties"] if f"`{name}`" not in page] == []


@each_row("name", sorted(BUILTIN))
def test_every_tool_is_documented_with_what_families_call_it(name):
    row = next(iter(rows("tools", name).splitlines()), "")
    faces = [face for family in FAMILIES for face in load_dialect(family).faces if face.tool == name]

    assert row.count("|") == len(FAMILIES) + 2
    assert {face.name for face in faces if face.shown and f"`{face.name}`" not in row} == set()


@each_row("family", FAMILIES)
def test_every_family_is_documented_with_its_bounds(family):
    found = rows("dialects", family)
    bounds = [face.bound for face in load_dialect(family).faces if face.tool in BUILTIN and face.bound != WHOLE]
    numbers = {number for bound in bounds for number in msgspec.structs.astuple(bound) if type(number) is int}

    assert found.count("\n") >= 2
    assert {number for number in numbers if f"{number:,}" not in found} == set()


def test_every_tool_to_come_is_documented_with_its_issue():
    page = text("dialects")

    assert [name for name, issue in COMING.items() if f"| `{name}` | {issue} |" not in page] == []


@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.__name__) for kind in (Face, Dialect)])
def test_every_field_of_a_dialect_is_documented(kind):
    page = text("dialects")

    assert [field for field in kind.__struct_fields__ if f"`{field}`" not in page] == []


@pytest.mark.parametrize("name", WIRES)
def test_every_wire_format_is_documented(name):
    wire = importlib.import_module(WIRES[name])
    page = text("wire")
    functions = [name for name in vars(wire) if name.endswith(("_in", "_out")) and name in getattr(wire, "__all__", ())]

    assert f"| `{name}` |" in page
    assert [function for function in functions if f"`{function}(" not in page] == []


def test_every_guidance_file_is_documented():
    assert [name for name in NAMES if f"`{name}`" not in text("guidance")] == []


def test_every_formatter_is_documented():
    assert [one.program for one in formatters.TABLE if f"| `{one.program}` |" not in text("tools")] == []


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


def test_every_command_below_a_command_is_documented():
    page = text("cli")
    groups = {name: cli.get_command(click.Context(cli), name) for name in COMMANDS}
    below = [
        f"{name} {one}"
        for name, group in groups.items()
        if isinstance(group, click.Group)
        for one in group.list_commands(click.Context(group))
    ]

    assert below
    assert [command for command in below if f"\nferrule {command}" not in page] == []


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
    inside = {
        "need",
        "param",
        "new_log",
        "drop_log",
        "keep_log",
        "mark",
        "approve_hosts",
    }  # for the tools that come with the engine

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

    assert documented == {value for value in vars(codes).values() if isinstance(value, int)} | signals


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
    # A folder that a merge has emptied may still hold byte code.
    folders = {f"{path.name}/" for path in PACKAGE.iterdir() if path.is_dir() and any(path.rglob("*.py"))}
    files = {path.name for path in PACKAGE.glob("*.py")}

    assert {name for name in folders | files if f"`{name}`" not in page} == set()


@each_row("page", EVERY_PAGE)
def test_every_link_leads_somewhere(page):
    assert {target for target in links(page) if not target.exists()} == set()


@each_row("page", EVERY_PAGE)
def test_every_file_that_a_page_names_is_there(page):
    named = re.findall(
        r"`((?:src/ferrule|tests|docs|examples|bench|scripts|requirements)/[\w./-]+)`", page.read_text(encoding="utf-8")
    )

    assert [name for name in named if not (ROOT / name).exists()] == []


@each_row("code", blocks("python"))
def test_every_python_example_names_what_there_is(code):
    parsed = compile(code, "example", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    taken = [
        node for node in ast.walk(parsed) if isinstance(node, ast.ImportFrom) and str(node.module).startswith("ferrule")
    ]

    for node in taken:
        module = importlib.import_module(str(node.module))
        absent = [alias.name for alias in node.names if not hasattr(module, alias.name)]
        assert [name for name in absent if importlib.util.find_spec(f"{node.module}.{name}") is None] == []


@pytest.mark.parametrize(("code", "printed"), programs())
def test_every_program_prints_what_its_page_says(code, printed, tmp_path):
    assert python(code, home=tmp_path) == printed


@each_row("code", blocks("toml"))
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


def test_every_program_that_can_only_read_is_documented():
    page = text("permissions")
    programs = sorted({known.split(" ")[0] for known, form in program_rows().items() if form.harmless})

    assert [program for program in programs if f"`{program}`" not in page] == []


def test_every_permission_mode_is_documented():
    assert [mode.name for mode in MODES if f"| `{mode.name}` |" not in text("permissions")] == []


def test_every_file_of_rules_of_a_project_is_documented():
    assert [name for name in PROJECT_FILES if f"`{name}`" not in text("permissions")] == []


def test_every_way_to_confine_commands_is_documented():
    assert [name for name in SANDBOXES if f"| `{name}` |" not in text("sandbox")] == []


def test_everything_that_the_sandbox_keeps_or_masks_is_documented():
    page = text("sandbox")

    assert [path for path in (*KEPT, *HOME) if f"`{path}`" not in page] == []
