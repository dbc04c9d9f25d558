"""Targets of Makefiles, justfiles and Taskfiles: what is read of them, and what runs beside or instead of them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.tools.checks.find import (
    ProjectChecks,
    TargetRecipe,
    closure,
    find,
    list_programs,
    read_just,
    read_make,
    read_task,
)
from ferrule.tools.checks.manifests import reader

PYTHON = "[tool.ruff.format]\n[tool.mypy]\nfiles = ['x']\n[tool.pytest]\n"
ALL = ["ruff", "ruff format", "mypy", "pytest"]


def found(folder: Path, files: dict[str, str]) -> ProjectChecks:
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    jail = Jail(str(folder))
    try:
        return find(reader(jail, Guard((), jail)), jail.folder)
    finally:
        jail.close()


CASES = {
    "a target that runs a program stands for it": (
        {"pyproject.toml": PYTHON, "Makefile": "test:\n\tpytest -x --cov\n"},
        ["ruff", "ruff format", "mypy", "make test"],
    ),
    "through an environment": (
        {"pyproject.toml": PYTHON, "Makefile": "test:\n\tPYTHONPATH=src uv run --frozen python -m pytest\n"},
        ["ruff", "ruff format", "mypy", "make test"],
    ),
    "through variables": (
        {
            "pyproject.toml": PYTHON,
            "Makefile": "V := .venv\nPT = $(V)/bin/pytest\ntypes:\n\t@${V}/bin/mypy\ntest:\n\t$(PT)\n",
        },
        ["ruff", "ruff format", "make types", "make test"],
    ),
    "one target for everything": (
        {
            "pyproject.toml": PYTHON,
            "Makefile": "test: .venv\n\t@ruff format --check . && ruff check .\n\t@echo types; mypy\n\tpytest\n",
        },
        ["make test"],
    ),
    "a target of targets gives way to them": (
        {"pyproject.toml": PYTHON, "Makefile": "check: lint test\nlint:\n\truff check\ntest:\n\tpytest\n"},
        ["ruff format", "mypy", "make lint", "make test"],
    ),
    "a target that calls targets gives way to them": (
        {"Makefile": "check:\n\t@echo all\n\t$(MAKE) lint\n\t$(MAKE) test\nlint:\n\tx\ntest:\n\ty\n"},
        ["make lint", "make test"],
    ),
    "a target that does more takes their place": (
        {"Makefile": "ci: lint docs test\ncheck: lint test\nlint:\n\tx\ntest:\n\ty\ndocs:\n\tz\n"},
        ["make ci"],
    ),
    "a target that does more and no others": (
        {"Makefile": "check: lint\n\t./script.sh\nlint:\n\tx\ntest:\n\ty\n"},
        ["make check", "make test"],
    ),
    "a target that shows nothing stands for its kind": (
        {"pyproject.toml": PYTHON, "Makefile": "test:\n\t./scripts/test.sh\n"},
        ["ruff", "ruff format", "mypy", "make test"],
    ),
    "a whole that shows nothing runs beside": (
        {"pyproject.toml": PYTHON, "Makefile": "check:\n\t./scripts/check.sh\n"},
        [*ALL, "make check"],
    ),
    "a target of another language takes nothing away": (
        {"pyproject.toml": PYTHON, "Makefile": "test:\n\tnpm test\n"},
        [*ALL, "make test"],
    ),
    "a target that mends is none": (
        {"pyproject.toml": PYTHON, "Makefile": "lint:\n\truff check --fix .\n"},
        ALL,
    ),
    "cargo": (
        {"Cargo.toml": "[package]", "Makefile": "test:\n\tcargo +nightly test --all\nlint:\n\tcargo clippy\n"},
        ["cargo check", "cargo fmt", "make lint", "make test"],
    ),
    "go": (
        {"go.mod": "", "Makefile": ".PHONY: test\ntest: ## run\n\tgo test -race ./...\n%.o: %.c\n\tcc\n"},
        ["go vet", "go build", "make test"],
    ),
    "a justfile": (
        {
            "pyproject.toml": PYTHON,
            "justfile": "set shell := ['bash']\n\n# tests\ntest *args:\n    uv run pytest {{args}}\n",
        },
        ["ruff", "ruff format", "mypy", "just test"],
    ),
    "a recipe that wants an argument": ({"justfile": "test name:\n  x\nlint x='1':\n  y\n"}, ["just lint"]),
    "a Taskfile": (
        {
            "go.mod": "",
            "Taskfile.yml": "version: '3'\ntasks:\n  check:\n    deps: [lint, test]\n  lint: go vet ./...\n"
            "  test:\n    cmds:\n      - go test ./...\n",
        },
        ["go build", "task lint", "task test"],
    ),
    "the same target in two files": (
        {"Makefile": "test:\n\tx\n", "justfile": "test:\n  x\nlint:\n  y\n"},
        ["make test", "just lint"],
    ),
    "other targets": ({"Makefile": "all: x.o\nclean:\n\trm -rf x\ntest-data:\n\tx\ntest.x:\n\ty\n"}, []),
    "no targets but assignments": ({"Makefile": "test := x\ntest: CFLAGS = -O\ncheck::= y\nlint ?= z\n"}, []),
    "pre-commit gives way to a target": ({".pre-commit-config.yaml": "", "Makefile": "lint:\n\tx\n"}, ["make lint"]),
    "pre-commit in a target": (
        {".pre-commit-config.yaml": "", "Makefile": "lint:\n\tpre-commit run -a\n"},
        ["make lint"],
    ),
}


@each_row(("files", "names"), [pytest.param(*case, id=name) for name, case in CASES.items()])
def test_what_runs_by_default(files, names, tmp_path):
    known = found(tmp_path, files)

    assert [check.name for check in known.checks] == names
    assert known.warnings == ()


@each_row("files", [pytest.param(case[0], id=name) for name, case in CASES.items()])
def test_nothing_that_was_found_is_lost(files, tmp_path):
    (tmp_path / "with").mkdir()
    (tmp_path / "without").mkdir()
    kept = {name: text for name, text in files.items() if name not in {"Makefile", "justfile", "Taskfile.yml"}}

    alone = found(tmp_path / "without", kept)
    known = found(tmp_path / "with", files)

    names = {check.name for check in (*known.checks, *known.others)}
    assert {check.name for check in (*alone.checks, *alone.others)} <= names


def test_a_target_shares_what_its_programs_share(tmp_path):
    known = found(tmp_path, {"Cargo.toml": "[package]", "Makefile": "test:\n\tcargo test\nlint:\n\tx\n"})

    shares = {check.name: check.shares for check in known.checks}
    assert (shares["make test"], shares["make lint"]) == ("cargo", "make")


def test_this_projects_own_makefile_is_understood():
    root = Path(__file__).parents[3]

    recipes = read_make((root / "Makefile").read_text(encoding="utf-8"))

    run = {word for line in closure(recipes, "test")[1] for word in list_programs(line)}
    assert {"ruff format", "ruff check", "mypy", "lint-imports", "pytest"} <= run


@each_row(
    ("line", "word"),
    [
        pytest.param(line, word, id=line)
        for line, word in (
            ("@pytest -q", "pytest"),
            ("-$(BIN)/mypy src", "mypy"),
            ("cd api && poetry run ruff check .", "ruff check"),
            ("A=1 B=2 python3.12 -m pytest", "pytest"),
            ("coverage run -m pytest", "pytest"),
            ("$(PYTHON) -m mypy", "mypy"),
            ("npm run lint -- --quiet", "npm run lint"),
            ("yarn lint", "yarn lint"),
            ("npx --no-install eslint .", "eslint"),
            ("cargo +stable clippy --all", "cargo clippy"),
            ("(bundle exec rspec)", "rspec"),
            ("x | tee y; go test ./...", "go test"),
        )
    ],
)
def test_what_a_line_runs_is_seen(line, word):
    assert word in set(list_programs(line))


def test_a_target_that_needs_itself_comes_to_an_end():
    recipes = read_make("a: b\n\tx\nb: a\n\ty\n")

    assert closure(recipes, "a") == (frozenset({"b"}), ("x", "y"))


def test_a_variable_that_grows_is_not_followed_far():
    grown = read_make("A = $(A)$(A)$(A)$(A)$(A)$(A)$(A)$(A)\ntest:\n\t" + "$(A)" * 900 + "\n")

    assert len(grown["test"].lines[0]) <= 4000


def test_a_taskfile_with_anchors_is_not_expanded():
    recipes = read_task("tasks:\n  a: &x {cmds: [y]}\n  test: *x\n")

    assert recipes == {"a": TargetRecipe(), "test": TargetRecipe()}


def test_lines_that_go_on_are_one():
    assert read_make("test: a \\\n  b\n\tx \\\n\t  y\n")["test"] == (("a", "b"), ("x y",))


@pytest.mark.parametrize("read", [read_make, read_just, read_task])
@given(text=st.text(alphabet=st.sampled_from("ab:=\t\n \\$(){}%#@-|;'\"[]*&!,.\0é"), max_size=200))
def test_any_text_can_be_read(read, text):
    for recipe in read(text).values():
        for line in recipe.lines:
            assert list(list_programs(line))


@pytest.mark.parametrize(
    "piece", ["a: a\n", "\t", "\\\n", "$(", "a:\n\t$(A)\nA=$(A)\n", "a=", "a " * 50, ":", "- " * 9]
)
@pytest.mark.parametrize("read", [read_make, read_just])
def test_a_large_file_is_read_in_one_go(read, piece):
    """Each of these takes milliseconds; what walks back would not come to an end."""
    assert len(read(piece * (200_000 // len(piece)))) <= 2000


@pytest.mark.parametrize(
    "more",
    [
        pytest.param("x: &x [a]\ny: *x\n", id="anchors"),
        pytest.param("# " + "x" * 20_000 + "\n", id="long"),
    ],
)
def test_tasks_of_a_file_that_is_not_read_whole_are_known_by_their_names(more):
    text = f"vars:\n  test: x\n{more}tasks:\n  lint:\n    cmds:\n      - check: x\n  test: pytest\nend:\n  ci: x\n"

    assert list(read_task(text)) == ["lint", "test"]
