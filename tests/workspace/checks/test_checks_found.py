"""Which checks are found in the files of projects of many kinds, and which of them run by default."""

import json
import os
import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.rows import each_row

from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.settings import CheckCommand
from ferrule.tools.checks.find import MOST_CHECKS, ProjectChecks, find
from ferrule.tools.checks.manifests import ALONE, reader
from ferrule.tools.files.format import MOST_BYTES

PYTEST = "def test_x():\n    pass\n"
UNITTEST = "import unittest\nclass XTest(unittest.TestCase): pass\n"
CARGO = '[package]\nname = "x"\nversion = "0.1.0"\n'


def put(folder: Path, files: Mapping[str, str | bytes]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir(exist_ok=True)
        else:
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
            if "/bin/" in f"/{name}" or "/.bin/" in name:
                path.chmod(0o755)


def found(folder: Path, files: Mapping[str, str | bytes] | None = None, **more) -> ProjectChecks:
    put(folder, files or {})
    jail = Jail(str(folder))
    try:
        return find(reader(jail, Guard((), jail)), jail.folder, **more)
    finally:
        jail.close()


def lines(checks) -> dict[str, str]:
    return {check.name: check.command for check in checks}


def scripts(**named: str) -> str:
    return json.dumps({"name": "x", "scripts": {name.replace("__", ":"): line for name, line in named.items()}})


PROJECTS = {
    "nothing": ({"README.md": "x"}, {}),
    "python with all its tables": (
        {
            "pyproject.toml": "[tool.ruff.format]\n[tool.mypy]\nfiles = ['src']\n[tool.pytest.ini_options]\n",
            "src/x.py": "",
        },
        {"ruff": "ruff check", "ruff format": "ruff format --check", "mypy": "mypy", "pytest": "pytest"},
    ),
    "mypy that is not told where": ({"mypy.ini": "[mypy]\nstrict = true\n"}, {"mypy": "mypy ."}),
    "mypy with src": ({"setup.cfg": "[mypy]\nstrict = true\n", "src/x.py": ""}, {"mypy": "mypy src"}),
    "black and flake8": (
        {"pyproject.toml": "[tool.black]\n[tool.isort]\nprofile='black'\n", ".flake8": "[flake8]\n"},
        {"black": "black --check .", "isort": "isort --check-only .", "flake8": "flake8"},
    ),
    "what is asked for": (
        {
            "pyproject.toml": "[dependency-groups]\ndev = ['pytest>=8', 'pyright', 'pylint~=3', {include-group='x'}]\n",
            "tests/test_x.py": PYTEST,
        },
        {"pylint": "pylint --recursive=y .", "pyright": "pyright", "pytest": "pytest"},
    ),
    "asked for in the manner of poetry": (
        {"pyproject.toml": "[tool.poetry.group.dev.dependencies]\nty = '*'\nruff = '^0.9'\n", "poetry.lock": ""},
        {"ruff": "poetry run ruff check", "ty": "poetry run ty check"},
    ),
    "asked for in a list": (
        {
            "requirements-dev.txt": "mypy==1.1 # types\npytest\n-r requirements.txt\n",
            "test_x.py": PYTEST,
            "setup.py": "",
        },
        {"mypy": "mypy .", "pytest": "pytest"},
    ),
    "pyright that is basedpyright": (
        {"pyrightconfig.json": "{ // comment\n}", "requirements.txt": "basedpyright\n"},
        {"basedpyright": "basedpyright"},
    ),
    "an environment of its own": (
        {"pyproject.toml": "[tool.ruff]\n[tool.pytest]\n", ".venv/bin/ruff": "x", "uv.lock": ""},
        {"ruff": ".venv/bin/ruff check", "pytest": "uv run --frozen pytest"},
    ),
    "only unittest": ({"tests/test_x.py": UNITTEST}, {"unittest": "python3 -m unittest discover -s tests"}),
    "unittest in a package": (
        {"tests/__init__.py": "", "tests/test_x.py": UNITTEST, "uv.lock": ""},
        {"unittest": "uv run --frozen python -m unittest discover"},
    ),
    "unittest and pytest": ({"tests/test_x.py": UNITTEST, "tests/test_y.py": "import pytest"}, {"pytest": "pytest"}),
    "tests without a name": ({"test_x.py": PYTEST}, {"pytest": "pytest"}),
    "django": ({"manage.py": "x"}, {"manage.py test": "python3 manage.py test --noinput"}),
    "only tox": ({"tox.ini": "[testenv]\ncommands = pytest\n"}, {"tox": "tox"}),
    "tox beside others": (
        {"tox.ini": "[tox]\n[testenv]\n[pytest]\n[flake8]\n"},
        {"flake8": "flake8", "pytest": "pytest"},
    ),
    "scripts of npm": (
        {
            "package.json": scripts(
                typecheck="tsc --noEmit", lint="eslint .", format__check="prettier -c .", test="jest"
            )
        },
        {
            "npm run typecheck": "npm run typecheck",
            "npm run lint": "npm run lint",
            "npm run format:check": "npm run format:check",
            "npm test": "npm test",
        },
    ),
    "pnpm by its lock": (
        {"package.json": scripts(lint="biome ci", test="vitest"), "pnpm-lock.yaml": ""},
        {"pnpm run lint": "pnpm run lint", "pnpm test": "pnpm test"},
    ),
    "vitest and npm": ({"package.json": scripts(test="vitest")}, {"npm test": "npm test"}),
    "yarn by what it says": (
        {"package.json": json.dumps({"packageManager": "yarn@4.1.0", "scripts": {"test": "jest"}}), "bun.lock": ""},
        {"yarn test": "yarn test"},
    ),
    "bun": ({"package.json": scripts(test="bun test"), "bun.lockb": b"\0"}, {"bun run test": "bun run test"}),
    "the placeholder of npm": ({"package.json": scripts(test='echo "Error: no test specified" && exit 1')}, {}),
    "scripts that wait": (
        {"package.json": scripts(test="jest --watch", typecheck="tsc -w", test__unit="jest --ci", lint="nodemon x")},
        {"npm run test:unit": "npm run test:unit"},
    ),
    "scripts that mend": (
        {"package.json": scripts(lint="eslint --fix .", lint__check="eslint .", test="jest -u")},
        {"npm run lint:check": "npm run lint:check"},
    ),
    "types without a script": (
        {"package.json": scripts(test="jest"), "tsconfig.json": "{}"},
        {"npm test": "npm test", "tsc": "tsc --noEmit"},
    ),
    "types of their own": (
        {"tsconfig.json": '{"references": []}', "node_modules/.bin/tsc": "x"},
        {"tsc": "node_modules/.bin/tsc -b --noEmit"},
    ),
    "types in a lint script": (
        {"package.json": scripts(lint="tsc --noEmit && eslint ."), "tsconfig.json": "{}"},
        {"npm run lint": "npm run lint"},
    ),
    "types only in the build": (
        {"package.json": scripts(build="tsc -p .")},
        {"npm run build": "npm run build"},
    ),
    "a script of scripts": (
        {"package.json": scripts(check="npm run lint && npm run test", lint="x", test="y")},
        {"npm run lint": "npm run lint", "npm test": "npm test"},
    ),
    "a script that does more": (
        {"package.json": scripts(check="./check.sh", lint="x")},
        {"npm run check": "npm run check", "npm run lint": "npm run lint"},
    ),
    "a script that does more than run scripts": (
        {"package.json": scripts(ci="npm run lint && ./deploy-test.sh", lint="x", test="y")},
        {"npm run ci": "npm run ci", "npm test": "npm test"},
    ),
    "programs that no script runs": (
        {
            "package.json": scripts(start="x"),
            "eslint.config.mjs": "",
            "vitest.config.ts": "",
            "node_modules/.bin/vitest": "x",
        },
        {"eslint": "eslint .", "vitest": "node_modules/.bin/vitest run"},
    ),
    "rust": (
        {"Cargo.toml": CARGO},
        {
            "cargo check": "cargo check --workspace --all-targets",
            "cargo fmt": "cargo fmt --all --check",
            "cargo test": "cargo test --workspace",
        },
    ),
    "rust with clippy": (
        {"Cargo.toml": CARGO + "[lints.clippy]\nall = 'warn'\n"},
        {
            "cargo check": "cargo check --workspace --all-targets",
            "cargo clippy": "cargo clippy --workspace --all-targets",
            "cargo fmt": "cargo fmt --all --check",
            "cargo test": "cargo test --workspace",
        },
    ),
    "rust that is strict elsewhere": (
        {"Cargo.toml": CARGO, ".github/workflows/ci.yml": "run: cargo clippy -- -D warnings"},
        {
            "cargo check": "cargo check --workspace --all-targets",
            "cargo clippy": "cargo clippy --workspace --all-targets -- -D warnings",
            "cargo fmt": "cargo fmt --all --check",
            "cargo test": "cargo test --workspace",
        },
    ),
    "go": (
        {"go.mod": "module x", ".golangci.yml": ""},
        {
            "go vet": "go vet ./...",
            "go build": "go build -o /dev/null ./...",
            "go test": "go test ./...",
            "golangci-lint": "golangci-lint run",
        },
    ),
    "pre-commit alone": (
        {".pre-commit-config.yaml": "repos: []"},
        {"pre-commit": "pre-commit run --all-files --color=never"},
    ),
    "pre-commit beside a linter": ({".pre-commit-config.yaml": "", "ruff.toml": ""}, {"ruff": "ruff check"}),
    "pre-commit that formats": (
        {".pre-commit-config.yaml": "- id: ruff-format", "ruff.toml": ""},
        {"ruff": "ruff check", "ruff format": "ruff format --check"},
    ),
    "gradle": ({"build.gradle": "", "gradlew": ""}, {"gradlew check": "./gradlew check --console=plain"}),
    "gradle of the machine": ({"build.gradle.kts": ""}, {"gradle check": "gradle check --console=plain"}),
    "maven": ({"pom.xml": "<x/>"}, {"mvn test": "mvn --batch-mode --no-transfer-progress test"}),
    "cmake that is configured": (
        {"CMakeLists.txt": "", "build/CMakeCache.txt": "", "build/CTestTestfile.cmake": ""},
        {"cmake": "cmake --build build", "ctest": "ctest --test-dir build --output-on-failure"},
    ),
    "cmake that is not": ({"CMakeLists.txt": ""}, {}),
    "dotnet": (
        {"X.sln": ""},
        {"dotnet build": "dotnet build", "dotnet test": "dotnet test"},
    ),
    "elixir": (
        {"mix.exs": "", ".formatter.exs": ""},
        {"mix compile": "mix compile", "mix format": "mix format --check-formatted", "mix test": "mix test"},
    ),
    "php": (
        {"phpunit.xml.dist": "", "phpstan.neon": "", "vendor/bin/phpunit": "x"},
        {"phpunit": "vendor/bin/phpunit", "phpstan": "phpstan analyse --no-progress --no-ansi"},
    ),
    "ruby": (
        {"Gemfile": "", ".rubocop.yml": "", ".rspec": ""},
        {"rubocop": "bundle exec rubocop", "rspec": "bundle exec rspec"},
    ),
    "deno": (
        {"deno.json": "{}"},
        {
            "deno check": "deno check .",
            "deno lint": "deno lint",
            "deno fmt": "deno fmt --check",
            "deno test": "deno test",
        },
    ),
    "flutter": (
        {"pubspec.yaml": "dependencies:\n  flutter:\n    sdk: flutter\n", "test/x_test.dart": ""},
        {"dart analyze": "dart analyze", "flutter test": "flutter test"},
    ),
    "terraform": ({"main.tf": ""}, {"terraform fmt": "terraform fmt -check -recursive -no-color"}),
}


@each_row(("files", "expected"), [pytest.param(*case, id=name) for name, case in PROJECTS.items()])
def test_a_project_has_the_checks_that_its_files_speak_of(files, expected, tmp_path):
    assert lines(found(tmp_path, files).checks) == expected


@each_row("files", [pytest.param(case[0], id=name) for name, case in PROJECTS.items()])
def test_every_check_says_what_it_needs_and_who_speaks_for_it(files, tmp_path):
    known = found(tmp_path, files)
    checks = [*known.checks, *known.others]

    assert len({check.name for check in checks}) == len(checks)
    for check in checks:
        words = shlex.split(check.command)
        assert check.program in words or check.program.removeprefix("cargo-") in words
        assert (tmp_path / check.source).is_file()
        assert check.folder == str(tmp_path.resolve())
        assert not {"--fix", "--write", "-u", "--watch"} & set(words)


def test_a_formatter_that_nobody_speaks_of_is_known_and_does_not_run(tmp_path):
    known = found(tmp_path, {"ruff.toml": ""})

    assert (list(lines(known.checks)), list(lines(known.others))) == (["ruff"], ["ruff format"])


def test_a_type_checker_that_is_only_asked_for_gives_way_to_one_that_is_configured(tmp_path):
    project = "[tool.mypy]\nfiles=['x']\n[dependency-groups]\ndev=['mypy', 'ty', 'basedpyright']\n"

    known = found(tmp_path, {"pyproject.toml": project})

    assert list(lines(known.checks)) == ["mypy"]
    assert set(lines(known.others)) == {"ty", "basedpyright"}


def test_checks_of_cargo_wait_for_each_other_and_those_of_python_do_not(tmp_path):
    known = found(tmp_path, {"Cargo.toml": CARGO, "mypy.ini": "[mypy]", "pytest.ini": ""})

    shares = {check.name: check.shares for check in known.checks}
    assert shares["cargo check"] == shares["cargo test"] == "cargo"
    assert shares["mypy"] == shares["pytest"] == ""


def test_hooks_that_change_files_have_the_project_to_themselves(tmp_path):
    (check,) = found(tmp_path, {".pre-commit-config.yaml": ""}).checks

    assert check.shares == ALONE


def test_projects_below_are_found_one_and_two_levels_down(tmp_path):
    known = found(
        tmp_path,
        {
            "api/pyproject.toml": "[tool.pytest]",
            "apps/web/package.json": scripts(test="jest"),
            "a/b/c/pytest.ini": "",
            "node_modules/x/package.json": scripts(test="jest"),
            ".hidden/pytest.ini": "",
            "examples/x/pytest.ini": "",
        },
    )

    assert lines(known.checks) == {"api: pytest": "pytest", "apps/web: npm test": "npm test"}
    assert [check.folder for check in known.checks] == [str(tmp_path / "api"), str(tmp_path / "apps/web")]
    assert known.checks[0].source == "api/pyproject.toml"


@pytest.mark.parametrize(
    ("files", "names"),
    [
        pytest.param({"package.json": scripts(test="x"), "a/package.json": scripts(lint="x")}, ["npm test"], id="node"),
        pytest.param(
            {"package.json": '{"workspaces": ["*"]}', "a/package.json": scripts(lint="x")},
            ["a: npm run lint"],
            id="node-without-scripts",
        ),
        pytest.param({"ruff.toml": "", "a/pyproject.toml": "[tool.pytest]"}, ["ruff"], id="python"),
        pytest.param(
            {"Cargo.toml": "[workspace]", "a/Cargo.toml": CARGO},
            ["cargo check", "cargo fmt", "cargo test"],
            id="rust-workspace",
        ),
        pytest.param(
            {"Cargo.toml": CARGO, "a/Cargo.toml": CARGO},
            ["cargo check", "cargo fmt", "cargo test", "a: cargo check", "a: cargo fmt", "a: cargo test"],
            id="rust-packages",
        ),
        pytest.param(
            {"go.mod": "", "a/go.mod": ""},
            ["go vet", "go build", "go test", "a: go vet", "a: go build", "a: go test"],
            id="go",
        ),
        pytest.param({"Makefile": "test:\n\tx\n", "a/Makefile": "test:\n\tx\n"}, ["make test"], id="make"),
    ],
)
def test_a_folder_above_covers_those_below_where_its_programs_do(files, names, tmp_path):
    assert list(lines(found(tmp_path, files).checks)) == names


def test_an_environment_above_is_the_projects_too(tmp_path):
    put(tmp_path, {".venv/bin/pytest": "x", "api/pytest.ini": ""})
    top = str(tmp_path.resolve())

    assert lines(found(tmp_path).checks) == {"api: pytest": "../.venv/bin/pytest"}
    assert lines(found(tmp_path / "api", top=top).checks) == {"pytest": "../.venv/bin/pytest"}
    assert lines(found(tmp_path / "api").checks) == {"pytest": "pytest"}
    assert found(tmp_path / "api", top=top).looked_in == ("api/pytest.ini",)


def test_checks_of_the_settings_come_beside_those_that_are_found_and_replace_them(tmp_path):
    commands = {
        "ruff": CheckCommand(command="ruff check --strict", kind="lint"),
        "docs": CheckCommand(command="make docs", kind="build", folder="docs", shares="make"),
    }

    known = found(tmp_path, {"ruff.toml": "", "docs/": ""}, commands=commands)

    assert lines(known.checks) == {"ruff": "ruff check --strict", "docs": "make docs"}
    assert (known.checks[1].folder, known.checks[1].kind) == (str(tmp_path / "docs"), "build")
    assert (known.checks[1].shares, known.checks[1].source) == ("make", "settings")


@pytest.mark.parametrize("folder", ["..", "/etc", "link", "a/../../x"])
def test_a_check_of_the_settings_stays_in_the_workspace(folder, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    (work / "link").symlink_to("/etc")

    known = found(work, commands={"x": CheckCommand(command="x", folder=folder)})

    assert known.checks == ()
    assert "is not in" in known.warnings[0]


@pytest.mark.parametrize(
    ("name", "command", "why"),
    [
        pytest.param("\u200b", CheckCommand(command="x"), "it has no name that can be seen", id="name"),
        pytest.param("x", CheckCommand(command=" "), "it has no command", id="command"),
        pytest.param("x", CheckCommand(command="x", folder="../up"), "its folder ../up is not in", id="outside"),
        pytest.param("x", CheckCommand(command="x", folder="gone"), "its folder gone is not there", id="gone"),
    ],
)
def test_a_check_of_the_settings_that_is_left_out_says_why(name, command, why, tmp_path):
    known = found(tmp_path, commands={name: command})

    assert known.checks == ()
    assert why in known.warnings[0]


def test_what_the_settings_disable_runs_only_when_it_is_named(tmp_path):
    files = {"pyproject.toml": "[tool.ruff]\n[tool.mypy]\n[tool.pytest]\n"}

    known = found(tmp_path, files, disable=["py*", "mypy"])

    assert list(lines(known.checks)) == ["ruff"]
    assert set(lines(known.others)) == {"ruff format", "mypy", "pytest"}


def test_a_target_of_the_root_stands_for_what_it_runs_in_a_folder(tmp_path):
    files = {
        "Makefile": "test:\n\tcd api && uv run pytest\n\tnpm --prefix web test\n",
        "api/pyproject.toml": "[tool.pytest]\n[tool.mypy]\n",
        "web/package.json": scripts(lint="x", test="y"),
        "other/pytest.ini": "",
    }

    assert list(lines(found(tmp_path, files).checks)) == [
        "make test",
        "api: mypy",
        "other: pytest",
        "web: npm run lint",
    ]


def test_files_are_not_read_without_end(tmp_path):
    files = {f"requirements{number:02}.txt": "x" * MOST_BYTES for number in range(20)}

    known = found(tmp_path, {"setup.py": "", **files})

    assert any("the rest is not read" in warning for warning in known.warnings)


_LONG = MOST_BYTES - 30_000
HEAVY = {
    "one name very often": "test " * 20_000 + ":\n" + "\tpytest\n" * 20_000,
    "many names": " ".join(f"t{number}" for number in range(3000)) + ":\n" + "\tx\n" * (_LONG // 3),
    "much that is needed": "test: " + "x " * 50_000 + "\n" + "test: y\n" * 10_000,
    "calls": "test:\n" + ("\tmake " + "-a " * 1000 + "!\n") * (_LONG // 3008),
    "variables": "A=$(B)$(B)$(B)\nB=$(A)$(A)$(A)\ntest:\n" + "\t$(A)$(B)$(A)$(B)\n" * (_LONG // 18),
    "commands": "test:\n" + ("\t" + ";" * 3900 + "\n") * (_LONG // 3902),
}


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in HEAVY.items()])
def test_a_makefile_that_is_made_to_be_slow_is_not(text, tmp_path):
    known = found(tmp_path, {f"p{number}/Makefile": text[:MOST_BYTES] for number in range(4)})

    assert all(check.command == "make test" for check in known.checks)


def test_there_are_not_more_checks_than_anybody_reads(tmp_path):
    known = found(tmp_path, {f"p{number:03}/go.mod": "" for number in range(50)})

    assert len(known.checks) == MOST_CHECKS
    assert known.others
    assert "150 checks" in known.warnings[0]


def test_the_files_that_were_read_are_told(tmp_path):
    known = found(tmp_path, {"pyproject.toml": "", "Makefile": "all:\n", "package.json": "{}"})

    assert known.checks == ()
    assert set(known.looked_in) == {"pyproject.toml", "Makefile", "package.json"}


HOSTILE = {
    "no TOML": {"pyproject.toml": "[tool.ruff\n"},
    "no text": {"pyproject.toml": b"\xff\xfe\x00[tool]"},
    "no JSON": {"package.json": "{'scripts': }"},
    "deep JSON": {"package.json": "[" * 200_000},
    "deep TOML": {"pyproject.toml": "a = " + "[" * 100_000},
    "huge numbers": {"package.json": '{"scripts": ' + "9" * 100_000 + "}"},
    "too large": {"package.json": '{"scripts": {"test": "jest"}}' + " " * MOST_BYTES},
}


@pytest.mark.parametrize("files", [pytest.param(files, id=name) for name, files in HOSTILE.items()])
def test_a_file_that_cannot_be_understood_is_told_and_the_others_count(files, tmp_path):
    known = found(tmp_path, {**files, "go.mod": ""})

    assert list(lines(known.checks)) == ["go vet", "go build", "go test"]
    assert len(known.warnings) == 1
    assert next(iter(files)) in known.warnings[0]


@each_row(
    "text",
    [
        pytest.param(text, id=f"{number}")
        for number, text in enumerate(
            (
                '{"scripts": []}',
                '{"scripts": {"test": ["x"]}}',
                '{"scripts": {"test": null, "lint": 1}}',
                '{"packageManager": 4, "scripts": "x"}',
                '{"packageManager": "rm -rf /; npm@1"}',
                "[]",
                '"x"',
                "",
            )
        )
    ],
)
def test_values_of_other_kinds_are_no_checks(text, tmp_path):
    assert found(tmp_path, {"package.json": text}).checks == ()


NASTY = (
    "x; touch pwned",
    "$(touch pwned)",
    "`touch pwned`",
    "a\nb",
    "a b",
    "-rf",
    "test\n",
    "'",
    '"',
    "\x1b[31m",
    "..",
)


@each_row("name", NASTY)
def test_what_a_file_names_is_never_part_of_a_command_line(name, tmp_path):
    package = {"name": name, "packageManager": name, "scripts": {name: "x", "test": name, f"lint:{name}": "x"}}
    known = found(
        tmp_path,
        {
            "package.json": json.dumps(package),
            "Makefile": f"{name}: {name}\n\t{name}\ntest: {name}\n\t{name}\n",
            "justfile": f"{name}:\n  x\nlint {name}:\n  {name}\n",
            "Taskfile.yml": json.dumps({"tasks": {name: {"cmds": [name]}, "verify": name}}),
            "pyproject.toml": f"[tool.mypy]\nfiles = [{json.dumps(name)}]\n[tool.ruff]\nsrc = [{json.dumps(name)}]\n",
        },
    )

    told = {*lines([*known.checks, *known.others]).values()}
    assert told <= {*("npm test", "make test", "task verify", "just lint", "ruff check", "ruff format --check", "mypy")}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
@pytest.mark.parametrize("name", ["a\nb", "x\x1b[31m", "$(touch pwned)", "a;b", "'"])
def test_the_name_of_a_folder_is_only_ever_told(name, tmp_path):
    known = found(tmp_path, {f"{name}/pytest.ini": "", ".venv/bin/pytest": "x"})

    assert {check.command for check in known.checks} <= {"../.venv/bin/pytest"}
    assert all(check.name.isprintable() for check in known.checks)


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_links_that_lead_out_are_not_followed(tmp_path):
    put(tmp_path / "other", {"pytest.ini": "", "pyproject.toml": "[tool.ruff]"})
    work = tmp_path / "work"
    work.mkdir()
    (work / "api").symlink_to(tmp_path / "other")
    (work / "pyproject.toml").symlink_to(tmp_path / "other" / "pyproject.toml")

    assert found(work).checks == ()


def test_a_secret_file_is_not_read(tmp_path):
    put(tmp_path, {".env": "x"})
    jail = Jail(str(tmp_path))

    read = reader(jail, Guard((), jail))

    assert read(str(tmp_path / ".env")) is None
    assert read(str(tmp_path / "gone")) is None
    assert read(str(tmp_path)) is None
    jail.close()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no such files there")
def test_a_pipe_in_the_place_of_a_file_holds_nobody_up(tmp_path):
    os.mkfifo(tmp_path / "pyproject.toml")

    assert found(tmp_path).checks == ()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    raw=st.one_of(
        st.binary(max_size=200),
        st.text(max_size=200).map(str.encode),
        st.dictionaries(st.text(max_size=8), st.one_of(st.none(), st.text(max_size=8), st.lists(st.integers()))).map(
            lambda value: json.dumps({"scripts": value, "tool": value}).encode()
        ),
    ),
    name=st.sampled_from(
        ("pyproject.toml", "package.json", "Cargo.toml", "setup.cfg", "tox.ini", "Makefile", "justfile", "Taskfile.yml")
    ),
)
def test_whatever_is_in_a_file_finding_ends_well(raw, name, tmp_path):
    for old in tmp_path.iterdir():
        old.unlink()

    known = found(tmp_path, {name: raw})

    for check in (*known.checks, *known.others):
        assert check.name.isprintable()
        assert check.command.isprintable()
