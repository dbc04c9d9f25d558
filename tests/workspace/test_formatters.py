"""Which formatter a project uses, from its configuration alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from ferrule.tools.files.format import MOST_BYTES, TABLE, choose, explain_missing, find_formatters, upwards

BLACK, RUFF, RUFF_FORMAT = "[tool.black]\n", "[tool.ruff]\n", "[tool.ruff.format]\n"
PACKAGE = '{"devDependencies": {"prettier": "^3"}}'


def chosen(path, files):
    """Program, folder and words for a file of the project at `/ws`."""
    tree = {f"/ws/{name}": text.encode() if isinstance(text, str) else text for name, text in files.items()}
    found = choose(f"/ws/{path}", "/ws", tree.get)
    return found and (found.formatter.program, found.folder, " ".join(found.words))


@each_row(
    ("path", "files", "program"),
    [
        pytest.param("a.py", {"pyproject.toml": RUFF}, "ruff", id="ruff"),
        pytest.param("a.py", {"pyproject.toml": "[tool.ruff.lint]\nselect = ['E']"}, "ruff", id="ruff-below"),
        pytest.param("a.py", {"ruff.toml": ""}, "ruff", id="ruff-toml"),
        pytest.param("a.pyi", {".ruff.toml": ""}, "ruff", id="hidden-ruff-toml"),
        pytest.param("a.py", {"pyproject.toml": BLACK}, "black", id="black"),
        pytest.param("a.py", {"pyproject.toml": BLACK + RUFF}, "black", id="ruff-only-lints"),
        pytest.param("a.py", {"pyproject.toml": BLACK + RUFF_FORMAT}, "ruff", id="ruff-formats"),
        pytest.param("a.py", {"pyproject.toml": BLACK, "ruff.toml": ""}, "black", id="ruff-toml-only-lints"),
        pytest.param("a.py", {"pyproject.toml": BLACK, "ruff.toml": "[format]"}, "ruff", id="ruff-toml-formats"),
        pytest.param("b/a.py", {"pyproject.toml": BLACK, "b/ruff.toml": ""}, "black", id="black-above-a-linter"),
        pytest.param("b/a.py", {"pyproject.toml": RUFF_FORMAT, "b/pyproject.toml": BLACK}, "black", id="nearer"),
        pytest.param("a.py", {"pyproject.toml": "[project]\nname = 'black ruff'"}, None, id="other-tools"),
        pytest.param("a.py", {"pyproject.toml": "[tool.ruff"}, None, id="broken-toml"),
        pytest.param("a.py", {"pyproject.toml": b"\xff[tool.ruff]"}, None, id="not-utf-8"),
        pytest.param("a.py", {"pyproject.toml": "tool = 'ruff'"}, None, id="no-table"),
        pytest.param("a.py", {"pyproject.toml": "ruff = " + "[" * 100_000}, None, id="deep-toml"),
        pytest.param("a.py", {"pyproject.toml": RUFF + "#" * MOST_BYTES}, None, id="huge-toml"),
        pytest.param("a.py", {".prettierrc": ""}, None, id="not-for-python"),
        pytest.param("a.ts", {".prettierrc": ""}, "prettier", id="prettierrc"),
        pytest.param("a.json", {".prettierrc.toml": ""}, "prettier", id="prettierrc-toml"),
        pytest.param("a.MD", {"prettier.config.mjs": ""}, "prettier", id="prettier-config"),
        pytest.param("a.css", {"package.json": '{"prettier": {}}'}, "prettier", id="package-key"),
        pytest.param("a.yaml", {"package.json": PACKAGE}, "prettier", id="dev-dependency"),
        pytest.param("a.js", {"package.json": '{"name": "prettier"}'}, None, id="only-the-name"),
        pytest.param("a.js", {"package.json": '{"devDependencies": ["prettier"]}'}, None, id="odd-package"),
        pytest.param("a.js", {"package.json": '["prettier"]'}, None, id="odder-package"),
        pytest.param("a.js", {"package.json": "[" * 100_000 + "prettier"}, None, id="deep-json"),
        pytest.param("a.go", {"go.mod": "module x"}, "gofmt", id="go-module"),
        pytest.param("a.go", {}, "gofmt", id="bare-go"),
        pytest.param("a.rs", {"rustfmt.toml": ""}, "rustfmt", id="rustfmt-toml"),
        pytest.param("a.rs", {"Cargo.toml": ""}, "rustfmt", id="cargo"),
        pytest.param("a.rs", {}, None, id="bare-rust"),
        pytest.param("a.cpp", {".clang-format": ""}, "clang-format", id="clang-format"),
        pytest.param("a.proto", {"_clang-format": ""}, "clang-format", id="other-clang-format"),
        pytest.param("a.c", {}, None, id="bare-c"),
        pytest.param("a.txt", {".prettierrc": "", "pyproject.toml": RUFF}, None, id="no-such-formatter"),
        pytest.param("Makefile", {".clang-format": ""}, None, id="no-ending"),
        pytest.param(".py", {"pyproject.toml": RUFF}, None, id="only-an-ending"),
    ],
)
def test_the_configuration_decides(path, files, program):
    found = chosen(path, files)

    assert (found and found[0]) == program


def test_what_lies_above_the_root_does_not_count():
    assert choose("/ws/a/b.py", "/ws/a", {"/ws/ruff.toml": b""}.get) is None


@pytest.mark.parametrize(
    ("path", "files", "found"),
    [
        pytest.param(
            "b/a.py",
            {"pyproject.toml": RUFF},
            ("ruff", "/ws", "format --stdin-filename /ws/b/a.py -"),
            id="ruff",
        ),
        pytest.param("a.py", {"pyproject.toml": BLACK}, ("black", "/ws", "-q --stdin-filename /ws/a.py -"), id="black"),
        pytest.param(
            "b/c/a.js", {"b/.prettierrc": ""}, ("prettier", "/ws/b", "--stdin-filepath /ws/b/c/a.js"), id="prettier"
        ),
        pytest.param("b/a.go", {"go.mod": ""}, ("gofmt", "/ws", ""), id="gofmt"),
        pytest.param("b/a.go", {}, ("gofmt", "/ws/b", ""), id="gofmt-where-the-file-is"),
        pytest.param("a.c", {".clang-format": ""}, ("clang-format", "/ws", "--assume-filename=/ws/a.c"), id="clang"),
        pytest.param("a.rs", {"rustfmt.toml": ""}, ("rustfmt", "/ws", ""), id="rustfmt"),
    ],
)
def test_the_command_has_the_file_as_a_name_and_runs_at_its_configuration(path, files, found):
    assert chosen(path, files) == found


@each_row(
    ("files", "words"),
    [
        pytest.param({"Cargo.toml": "[package]\nedition = '2021'"}, "--edition=2021", id="own"),
        pytest.param({"Cargo.toml": "[package]\nname = 'a'"}, "--edition=2015", id="none-is-the-first"),
        pytest.param({"Cargo.toml": "[workspace]"}, "", id="no-package"),
        pytest.param({"Cargo.toml": "[workspace.package]\nedition = '2024'"}, "--edition=2024", id="workspace-alone"),
        pytest.param(
            {
                "Cargo.toml": "[workspace.package]\nedition = '2024'",
                "b/Cargo.toml": "[package]\nedition.workspace = true",
            },
            "--edition=2024",
            id="workspace",
        ),
        pytest.param(
            {"Cargo.toml": "[package]\nedition = '2018'", "b/Cargo.toml": "[package]\nedition = '2021'"},
            "--edition=2021",
            id="nearest",
        ),
        pytest.param({"Cargo.toml": "[package]\nedition = '2021 --config x'"}, "", id="more-than-an-edition"),
        pytest.param({"Cargo.toml": "[package]\nedition = 2021"}, "", id="a-number"),
        pytest.param({"Cargo.toml": "package = 'x'"}, "", id="odd"),
    ],
)
def test_the_edition_comes_from_the_package(files, words):
    assert chosen("b/a.rs", {**files, "rustfmt.toml": ""})[2] == words


def test_each_file_is_read_once():
    seen = []

    def read(file):
        seen.append(file)
        return b"x" * MOST_BYTES if file.endswith("package.json") else None

    assert choose("/ws" + "/d" * 50 + "/a.js", "/ws", read) is None
    assert len(seen) == len(set(seen))


@pytest.mark.parametrize("formatter", TABLE, ids=lambda one: one.program)
def test_the_explanation_names_what_was_looked_for_and_what_helps(formatter):
    name = f"/ws/b/a{min(formatter.endings)}"
    text = explain_missing(name, "/ws")

    assert formatter in find_formatters(name)
    assert all(word in text for word in (formatter.program, formatter.looked_for, formatter.add, "/ws/b up to /ws"))


def test_a_file_of_no_known_kind_is_told_the_kinds():
    assert explain_missing("/ws/a.txt", "/ws").startswith(
        "No formatter is known for a.txt. These endings have one: .c "
    )


@given(st.dictionaries(st.sampled_from(["pyproject.toml", "ruff.toml", "b/pyproject.toml"]), st.text(max_size=200)))
def test_no_configuration_can_make_it_fail(files):
    assert chosen("b/a.py", files) is None or chosen("b/a.py", files)[0] in {"ruff", "black"}


def test_the_way_up_ends_at_the_root():
    assert list(upwards("/ws/a/b", "/ws")) == ["/ws/a/b", "/ws/a", "/ws"]
    assert list(upwards("/ws", "/ws")) == ["/ws"]
