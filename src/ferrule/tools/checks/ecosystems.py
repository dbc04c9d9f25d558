"""Find the checks of Python, JavaScript, Rust and other projects from their configuration files.

Python: each configured program, and each one required as a package, is a check. A formatter counts only if the
configuration mentions formatting, because a project that has ruff for linting may not use a formatter at all.
tox and nox create environments, which takes minutes and a network; they run by default only if nothing else is
found.

JavaScript and TypeScript: the checks are the scripts of package.json, and tsc if no script runs it. Of several
scripts about the same thing the first in the table counts. A script that watches for changes, fixes files, or
only says that there are no tests is not a check.

Rust: all checks build into one folder, and cargo lets only one of them in at a time.

Other languages and tools have one row each: the file that shows that a check applies, and its command.

The hooks of pre-commit are one check. They may change files, so nothing runs beside them.
"""

import itertools
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from ferrule.tools.checks import CheckKind
from ferrule.tools.checks.manifests import (
    ALONE,
    PYPROJECT,
    Ecosystem,
    FolderCheck,
    FolderManifests,
    find_dependencies,
    run_as,
)

_MARKS = (
    *(PYPROJECT, "setup.cfg", "setup.py", "tox.ini", "noxfile.py", "mypy.ini", ".mypy.ini", "ruff.toml", ".ruff.toml"),
    *("pytest.ini", ".pytest.ini", "conftest.py", "pyrightconfig.json", "ty.toml", "pyrefly.toml", ".flake8"),
    *(".pylintrc", "pylintrc", "manage.py", "requirements.txt", "Pipfile"),
)
_MOST_TESTS = 30
_MOST_NAMES = 5000


class _Linter(NamedTuple):
    """A program that looks at code, and the signs of it."""

    program: str
    kind: CheckKind
    words: str = ""
    """What follows the program."""
    table: str = ""
    """Its table below `tool` in pyproject.toml, where that is not called as the program is."""
    files: tuple[str, ...] = ()
    sections: tuple[tuple[str, str], ...] = ()
    """Sections of other files."""
    package: str = ""
    """What is asked for to get it, where that is called otherwise."""


_RUFF = _Linter("ruff", "lint", "check", files=("ruff.toml", ".ruff.toml"))
_BLACK = _Linter("black", "format", "--check .")
_MYPY = _Linter("mypy", "types", files=("mypy.ini", ".mypy.ini"), sections=(("setup.cfg", "mypy"),))
_PYRIGHT = _Linter("pyright", "types", files=("pyrightconfig.json",))
_BASED = _Linter("basedpyright", "types")
_PLAIN = (
    _Linter("ty", "types", "check", files=("ty.toml",)),
    _Linter("pyrefly", "types", "check", files=("pyrefly.toml",)),
    _Linter("flake8", "lint", files=(".flake8",), sections=(("setup.cfg", "flake8"), ("tox.ini", "flake8"))),
    _Linter(
        "lint-imports",
        "lint",
        table="importlinter",
        files=(".importlinter",),
        sections=(("setup.cfg", "importlinter"),),
        package="import-linter",
    ),
    _Linter("codespell", "lint", files=(".codespellrc",), sections=(("setup.cfg", "codespell"),)),
)
_PYLINT = _Linter("pylint", "lint", "--recursive=y", files=(".pylintrc", "pylintrc"))
_ISORT = _Linter("isort", "format", "--check-only .", files=(".isort.cfg",))
_BY_NAME = {one.program: one for one in (_RUFF, _BLACK, _MYPY, _PYRIGHT, _BASED, _PYLINT, *_PLAIN)}


def python_rows(files: FolderManifests) -> Iterator[FolderCheck]:
    """The checks of the folder."""
    tests = _test_files(files)
    # A folder below that only has tests in it belongs to a project above, or to none.
    asked = find_dependencies(files)
    if not files.has(*_MARKS) and not asked and (files.shown or not tests):
        return
    found = [*_linters(files, asked), *_types(files, asked), *_tests(files, tests, asked)]
    yield from (row._replace(is_default=row.is_default and not _is_spare(files, row, found)) for row in found)
    for program, source in (("tox", _tox(files)), ("nox", files.has("noxfile.py"))):
        if source:
            yield _row(files, _Linter(program, "tests"), source)._replace(shares="tox", is_default=not found)


def _is_spare(files: FolderManifests, row: FolderCheck, found: list[FolderCheck]) -> bool:
    """Is a program only asked for as a package, while another one of its kind is configured?"""
    configured = {one.name for one in found if one.name in _BY_NAME and _speaks(files, _BY_NAME[one.name], {})}
    return (
        row.name in _BY_NAME
        and row.name not in configured
        and any(one.kind == row.kind and one.name in configured for one in found)
    )


def _tox(files: FolderManifests) -> str:
    sections = files.content("tox.ini")
    if any(name == "tox" or name.startswith("testenv") for name in sections):
        return "tox.ini"
    return PYPROJECT if files.at(PYPROJECT, "tool", "tox") is not None else ""


def _linters(files: FolderManifests, asked: Mapping[str, str]) -> Iterator[FolderCheck]:
    ruff, black = _speaks(files, _RUFF, asked), _speaks(files, _BLACK, asked)
    if ruff:
        yield _row(files, _RUFF, ruff)
    if ruff and (_ruff_formats(files) or not black):
        formatting = _row(files, _RUFF._replace(kind="format", words="format --check"), ruff)
        yield formatting._replace(name="ruff format", does=("ruff format",), is_default=_ruff_formats(files))
    elif black:
        yield _row(files, _BLACK, black)
    if isort := _speaks(files, _ISORT, {}):
        yield _row(files, _ISORT, isort)
    if pylint := _speaks(files, _PYLINT, asked):
        yield _row(files, _PYLINT._replace(words=f"{_PYLINT.words} {_sources(files)}"), pylint)
    for linter in _PLAIN:
        if linter.kind == "lint" and (source := _speaks(files, linter, asked)):
            yield _row(files, linter, source)


def _types(files: FolderManifests, asked: Mapping[str, str]) -> Iterator[FolderCheck]:
    if mypy := _speaks(files, _MYPY, asked):
        yield _row(files, _MYPY if _mypy_knows(files) else _MYPY._replace(words=_sources(files)), mypy)
    # Both read the same file; the one that is asked for is meant.
    based, plain = _speaks(files, _BASED, asked), _speaks(files, _PYRIGHT, asked)
    if based or plain:
        yield _row(files, _BASED, based) if based else _row(files, _PYRIGHT, plain)
    for linter in _PLAIN:
        if linter.kind == "types" and (source := _speaks(files, linter, asked)):
            yield _row(files, linter, source)


def _row(files: FolderManifests, linter: _Linter, source: str) -> FolderCheck:
    called, program = run_as(files, linter.program)
    command = f"{called} {linter.words}".rstrip()
    does = f"{linter.program} check" if linter.words == "check" else linter.program
    return FolderCheck(linter.program, linter.kind, command, source, program, does=(does,))


def _speaks(files: FolderManifests, linter: _Linter, asked: Mapping[str, str]) -> str:
    """The file that speaks for a program: its configuration, or one that asks for the package."""
    if files.at(PYPROJECT, "tool", linter.table or linter.program) is not None:
        return PYPROJECT
    if found := files.has(*linter.files):
        return found
    section = next((file for file, name in linter.sections if files.at(file, name) is not None), "")
    return section or asked.get(linter.package or linter.program, "")


def _ruff_formats(files: FolderManifests) -> bool:
    """Is it said that ruff formats?"""
    tables = (files.at(PYPROJECT, "tool", "ruff", "format"), files.at("ruff.toml", "format"))
    is_configured = any(table is not None for table in (*tables, files.at(".ruff.toml", "format")))
    return is_configured or files.says("ruff format", "ruff-format")


def _mypy_knows(files: FolderManifests) -> bool:
    """Does the configuration of mypy say what to look at?"""
    places = (("mypy.ini", "mypy"), (".mypy.ini", "mypy"), ("setup.cfg", "mypy"), (PYPROJECT, "tool", "mypy"))
    return any(files.at(*place, key) for place in places for key in ("files", "packages", "modules"))


def _sources(files: FolderManifests) -> str:
    return "src" if "src" in files.folders else "."


def _tests(files: FolderManifests, tests: list[str], asked: Mapping[str, str]) -> Iterator[FolderCheck]:
    sections = (("tox.ini", "pytest"), ("setup.cfg", "tool:pytest"))
    source = PYPROJECT if files.at(PYPROJECT, "tool", "pytest") is not None else files.has("pytest.ini", ".pytest.ini")
    source = source or next((file for file, section in sections if files.at(file, section) is not None), "")
    source = source or files.has("conftest.py") or (asked.get("pytest", "") if tests else "")
    if not source and files.has("manage.py"):
        python, program = run_as(files, "python")
        yield FolderCheck("manage.py test", "tests", f"{python} manage.py test --noinput", "manage.py", program)
        return
    if not source and tests:
        source = next((file for file in tests if b"pytest" in files.raw(file)), "")
        unittest = next((file for file in tests if b"unittest" in files.raw(file)), "")
        if unittest and not source:
            yield _unittest(files, unittest)
            return
        source = source or next((file for file in tests if b"def test" in files.raw(file)), "")
    if source:
        yield _row(files, _Linter("pytest", "tests"), source)


def _unittest(files: FolderManifests, source: str) -> FolderCheck:
    python, program = run_as(files, "python")
    folder = source.partition("/")[0] if "/" in source else "."
    is_package = folder != "." and os.path.isfile(os.path.join(files.folder, folder, "__init__.py"))
    # A folder of tests that is a package is found from here, under its own name.
    words = "-m unittest discover" if is_package else f"-m unittest discover -s {folder}"
    return FolderCheck("unittest", "tests", f"{python} {words}", source, program, does=("unittest",))


def _test_files(files: FolderManifests) -> list[str]:
    """Files with tests, the first ones: of the folder itself, and of its folder of tests."""
    found = [name for name in sorted(files.names) if _is_test(name)]
    for folder in ("tests", "test"):
        if folder in files.folders:
            found += [f"{folder}/{name}" for name in sorted(_names(os.path.join(files.folder, folder)))]
    return [name for name in found if _is_test(os.path.basename(name))][:_MOST_TESTS]


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)[:_MOST_NAMES]
    except OSError:
        return []


def _is_test(name: str) -> bool:
    return name.endswith("_test.py") or (name.startswith("test") and name.endswith(".py"))


PACKAGE = "package.json"
_SCRIPTS: tuple[tuple[CheckKind, tuple[str, ...]], ...] = (
    (
        "types",
        (
            *("typecheck", "type-check", "types:check", "check-types", "check:types", "check:type", "type:check"),
            *("lint:types", "test:types", "types", "tsc", "tsc:check", "check:ts", "ts:check", "typecheck:all"),
        ),
    ),
    ("lint", ("lint", "lint:check", "check:lint", "lint:ci", "lint:js", "lint:all", "eslint", "biome", "oxlint", "xo")),
    (
        "format",
        (
            *("format:check", "check:format", "format-check", "check-format", "fmt:check", "check:fmt", "lint:format"),
            *("prettier:check", "check:prettier", "prettier-check", "lint:prettier", "format:ci", "check-formatting"),
        ),
    ),
    (
        "tests",
        ("test", "test:ci", "test:run", "tests", "test:unit", "unit", "unit-test", "test-unit", "vitest", "jest"),
    ),
)
_WHOLE = ("check", "ci", "verify", "validate", "check:all")
"""Scripts that mostly run the others."""
_LOCKS = (
    *(("pnpm-lock.yaml", "pnpm"), ("pnpm-workspace.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lock", "bun")),
    *(("bun.lockb", "bun"), ("package-lock.json", "npm"), ("npm-shrinkwrap.json", "npm")),
)
_MANAGERS = ("npm", "pnpm", "yarn", "bun")
_SEVERAL = ("run-s", "run-p", "npm-run-all", "npm-run-all2")
_WATCHES = (
    r"(?:^|\s)(?:--?watch(?:-?[aA]ll)?(?:=true)?|-w|--ui|watch|nodemon|tsc-watch|chokidar|onchange|cypress open)"
    r"(?=\s|$)"
)
_MENDS = r"(?:^|\s)(?:--fix|--write|--apply|-u|--update(?:-?snapshots?)?)(?=[\s=]|$)"
_TYPES = r"(?:^|[\s/&;|])(?:tsc|tsgo|vue-tsc|svelte-check|astro check|flow check)(?=\s|$)"
_CONFIGURED: tuple[tuple[str, CheckKind, str, str], ...] = (
    ("biome", "lint", "ci --colors=off", r"biome\.jsonc?"),
    ("eslint", "lint", ".", r"eslint\.config\.[cm]?[jt]s|\.eslintrc(?:\.\w+)?"),
    ("vitest", "tests", "run", r"vitest\.config\.[cm]?[jt]s"),
    ("jest", "tests", "--ci", r"jest\.config\.(?:[cm]?[jt]s|json)"),
)
_PLACEHOLDER = "no test specified"
_MOST_CHARS = 4000


def node_rows(files: FolderManifests) -> Iterator[FolderCheck]:
    """The checks of the folder."""
    if files.has(PACKAGE):
        yield from _script_rows(files, _scripts(files))
    elif files.has("tsconfig.json") and not files.has("deno.json", "deno.jsonc"):
        yield _tsc(files)


def covers(files: FolderManifests) -> bool:
    """A package.json without scripts for checks leaves them to its packages."""
    return files.has(PACKAGE) != "" and any(True for _ in _script_rows(files, _scripts(files)))


def runner_of(files: FolderManifests) -> str:
    """The program that runs scripts: as the package says, or as its lock file does, here or above."""
    said = files.at(PACKAGE, "packageManager")
    name = said.partition("@")[0] if isinstance(said, str) else ""
    if name in _MANAGERS:
        return name
    lock = files.above(*(lock for lock, _ in _LOCKS))
    return dict(_LOCKS).get(lock, "npm")


def _scripts(files: FolderManifests) -> Mapping[str, str]:
    scripts: Any = files.at(PACKAGE, "scripts")
    if not isinstance(scripts, dict):
        return {}
    return {name: line[:_MOST_CHARS] for name, line in scripts.items() if isinstance(line, str) and line.strip()}


def _script_rows(files: FolderManifests, scripts: Mapping[str, str]) -> Iterator[FolderCheck]:
    runner = runner_of(files)
    found: dict[str, FolderCheck] = {}
    for kind, names in _SCRIPTS:
        usable = ((name, _node_row(runner, kind, name, scripts[name])) for name in names if name in scripts)
        found |= dict(itertools.islice(((name, row) for name, row in usable if row), 1))
    wholes = ((name, _node_row(runner, "other", name, scripts[name])) for name in _WHOLE if name in scripts)
    whole = next(((name, row) for name, row in wholes if row), None)
    running = [scripts[name] for name in found]
    if whole is not None:
        named, does_more = _parse_script(scripts[whole[0]])
        # A script that does nothing but run these is the same as they are, and says less about each.
        is_default = does_more or not named <= found.keys()
        yield whole[1]._replace(is_default=is_default)
        found = {name: row._replace(is_default=not is_default or name not in named) for name, row in found.items()}
        running += [scripts[whole[0]]] if is_default else []
    yield from found.values()
    yield from _config_rows(files, {row.kind for row in found.values()}, "\n".join(running))
    is_typed = any(row.kind == "types" for row in found.values()) or re.search(_TYPES, "\n".join(running))
    if not is_typed and not files.has("tsconfig.json") and re.search(_TYPES, scripts.get("build", "")):
        yield from filter(None, [_node_row(runner, "build", "build", scripts["build"])])


def _config_rows(files: FolderManifests, kinds: set[CheckKind], running: str) -> Iterator[FolderCheck]:
    """Programs that are configured here and that no script runs."""
    if "types" not in kinds and files.has("tsconfig.json") and not re.search(_TYPES, running):
        yield _tsc(files)
    for program, kind, words, marks in _CONFIGURED:
        source = next((name for name in sorted(files.names) if re.fullmatch(marks, name)), "")
        if source and kind not in kinds and program not in running:
            files.has(source)
            called, needed = _find_program(files, program)
            yield FolderCheck(program, kind, f"{called} {words}", source, needed, does=(program,))


def _parse_script(line: str) -> tuple[frozenset[str], bool]:
    """The scripts that a script runs, and whether it does something else as well."""
    named: set[str] = set()
    does_more = False
    for part in re.split(r"&&|;", line):
        words = part.split()
        if len(words) > 2 and words[0] in _MANAGERS and words[1] == "run":
            words = [words[0], *words[2:]]
        given = [word for word in words[1:] if not word.startswith("-")]
        is_plain = bool(words) and all(re.fullmatch(r"[\w:-]+", word) for word in words)
        if is_plain and given and (words[0] in _SEVERAL or (words[0] in _MANAGERS and len(given) == 1)):
            named |= {"test" if one == "t" else one for one in given}
        else:
            does_more = True
    return frozenset(named), does_more


def _node_row(runner: str, kind: CheckKind, name: str, line: str) -> FolderCheck | None:
    """The check that a script is, if it is one. Its name is one of ours."""
    if _PLACEHOLDER in line or any(re.search(pattern, line) for pattern in (_WATCHES, _MENDS)):
        return None
    words = "test" if name == "test" and runner != "bun" else f"run {shlex.quote(name)}"
    # In plain words, which is what the policy knows. That npm is silent and that vitest runs once is said by the
    # environment that checks run in.
    command = f"{runner} {words}"
    does = (f"{runner} {words}", f"{runner} run {name}", f"{runner} {name}")
    return FolderCheck(f"{runner} {words}", kind, command, PACKAGE, runner, "dist" if kind == "build" else "", does)


def _tsc(files: FolderManifests) -> FolderCheck:
    # A tsconfig.json that only refers to others checks nothing by itself.
    words = "-b --noEmit" if b'"references"' in files.raw("tsconfig.json") else "--noEmit"
    called, program = _find_program(files, "tsc")
    return FolderCheck("tsc", "types", f"{called} {words}", "tsconfig.json", program, does=("tsc",))


def _find_program(files: FolderManifests, program: str) -> tuple[str, str]:
    """How a program of the project is called, and what that needs: its own copy, else the one on PATH.

    `npx` is never asked for it: where it finds none it goes to the network, whatever it is told about installing.
    """
    called = files.own(program, "node_modules/.bin") or program
    return called, called


CARGO = "Cargo.toml"


def rust_rows(files: FolderManifests) -> Iterator[FolderCheck]:
    """The checks of the folder."""
    if not files.has(CARGO):
        return
    yield FolderCheck(
        "cargo check", "types", "cargo check --workspace --all-targets", CARGO, "cargo", "cargo", ("cargo check",)
    )
    if clippy := _clippy(files):
        # Warnings are only errors where the project says so itself.
        strict = " -- -D warnings" if files.says("-D warnings", "-Dwarnings") else ""
        command = f"cargo clippy --workspace --all-targets{strict}"
        yield FolderCheck("cargo clippy", "lint", command, clippy, "cargo-clippy", "cargo", ("cargo clippy",))
    yield FolderCheck("cargo fmt", "format", "cargo fmt --all --check", CARGO, "cargo-fmt", "", ("cargo fmt",))
    does = ("cargo test", "cargo nextest")
    yield FolderCheck("cargo test", "tests", "cargo test --workspace", CARGO, "cargo", "cargo", does)


def rust_covers(files: FolderManifests) -> bool:
    """A workspace has its packages below it; any other package stands for itself."""
    return isinstance(files.at(CARGO, "workspace"), dict)


def _clippy(files: FolderManifests) -> str:
    """The file that speaks for clippy: it has opinions that not every project shares."""
    if file := files.has("clippy.toml", ".clippy.toml"):
        return file
    tables = (files.at(CARGO, "lints", "clippy"), files.at(CARGO, "workspace", "lints", "clippy"))
    return CARGO if any(table is not None for table in tables) or files.says("cargo clippy", "clippy") else ""


class CheckRule(NamedTuple):
    """One check."""

    marks: str
    """Files that speak for it, any of them, between blanks: a name, `*.ending`, or `folder/` or `folder/name` below."""
    name: str
    kind: CheckKind
    command: str
    """`{own:program|otherwise}` is a program that the project may have for itself."""
    shares: str = ""
    needs: str = ""
    """Another mark that has to be there as well."""
    is_default: bool = True


_GO = (
    CheckRule("go.mod", "go vet", "lint", "go vet ./..."),
    # Without an output nothing is written, even where there is only one program to build.
    CheckRule("go.mod", "go build", "build", "go build -o /dev/null ./..."),
    CheckRule("go.mod", "go test", "tests", "go test ./..."),
    CheckRule(
        ".golangci.yml .golangci.yaml .golangci.toml .golangci.json", "golangci-lint", "lint", "golangci-lint run"
    ),
    CheckRule("staticcheck.conf", "staticcheck", "lint", "staticcheck ./..."),
)
_GRADLE = "build.gradle build.gradle.kts settings.gradle settings.gradle.kts"
_JVM = (
    CheckRule(_GRADLE, "gradlew check", "tests", "./gradlew check --console=plain", "gradle", "gradlew"),
    CheckRule(_GRADLE, "gradle check", "tests", "gradle check --console=plain", "gradle", "!gradlew"),
    CheckRule("pom.xml", "mvnw test", "tests", "./mvnw --batch-mode --no-transfer-progress test", "maven", "mvnw"),
    CheckRule("pom.xml", "mvn test", "tests", "mvn --batch-mode --no-transfer-progress test", "maven", "!mvnw"),
    CheckRule("build.sbt", "sbt test", "tests", "sbt -no-colors test", "sbt"),
    CheckRule("project.clj", "lein test", "tests", "lein test", "lein"),
)
_NATIVE = (
    # Only where somebody has configured a build: how to do that is not for a check to choose.
    CheckRule("CMakeLists.txt", "cmake", "build", "cmake --build build", "cmake", "build/CMakeCache.txt"),
    CheckRule(
        "CMakeLists.txt",
        "ctest",
        "tests",
        "ctest --test-dir build --output-on-failure",
        "cmake",
        "build/CTestTestfile.cmake",
    ),
    CheckRule("meson.build", "meson test", "tests", "meson test -C build", "meson", "build/build.ninja"),
    CheckRule("build.zig", "zig build", "build", "zig build", "zig"),
    CheckRule("build.zig", "zig build test", "tests", "zig build test", "zig"),
    CheckRule("Package.swift", "swift build", "build", "swift build", "swift"),
    CheckRule("Package.swift", "swift test", "tests", "swift test", "swift"),
    CheckRule("MODULE.bazel WORKSPACE.bazel WORKSPACE", "bazel test", "tests", "bazel test //...", "bazel"),
)
_SOLUTIONS = "*.sln *.slnx *.csproj *.fsproj *.vbproj"
_DOTNET = (
    CheckRule(_SOLUTIONS, "dotnet build", "build", "dotnet build", "dotnet"),
    CheckRule(_SOLUTIONS, "dotnet test", "tests", "dotnet test", "dotnet"),
    CheckRule(_SOLUTIONS, "dotnet format", "format", "dotnet format --verify-no-changes", "dotnet", is_default=False),
)
_ELIXIR = (
    CheckRule("mix.exs", "mix compile", "types", "mix compile", "mix"),
    CheckRule(".formatter.exs", "mix format", "format", "mix format --check-formatted", "mix", "mix.exs"),
    CheckRule(".credo.exs", "mix credo", "lint", "mix credo", "mix", "mix.exs"),
    CheckRule("mix.exs", "mix test", "tests", "mix test", "mix"),
    CheckRule("rebar.config", "rebar3 eunit", "tests", "rebar3 eunit", "rebar3"),
)
_PHP = (
    CheckRule("phpstan.neon phpstan.neon.dist", "phpstan", "types", "{own:phpstan} analyse --no-progress --no-ansi"),
    CheckRule("psalm.xml psalm.xml.dist", "psalm", "types", "{own:psalm} --no-progress --monochrome"),
    CheckRule("phpcs.xml phpcs.xml.dist .phpcs.xml", "phpcs", "lint", "{own:phpcs}"),
    CheckRule(".php-cs-fixer.php .php-cs-fixer.dist.php", "php-cs-fixer", "format", "{own:php-cs-fixer} fix --dry-run"),
    CheckRule("phpunit.xml phpunit.xml.dist", "phpunit", "tests", "{own:phpunit}"),
)
_RUBY = (
    CheckRule(".rubocop.yml", "rubocop", "lint", "bundle exec rubocop", needs="Gemfile"),
    CheckRule(".rubocop.yml", "rubocop", "lint", "rubocop", needs="!Gemfile"),
    CheckRule("sorbet/config", "srb tc", "types", "bundle exec srb tc", needs="Gemfile"),
    CheckRule(".rspec spec/spec_helper.rb", "rspec", "tests", "bundle exec rspec", needs="Gemfile"),
    CheckRule(".rspec spec/spec_helper.rb", "rspec", "tests", "rspec", needs="!Gemfile"),
    CheckRule("bin/rails", "rails test", "tests", "bin/rails test", needs="test/"),
    CheckRule("Rakefile", "rake test", "tests", "rake test", needs="test/"),
)
_DENO = (
    CheckRule("deno.json deno.jsonc", "deno check", "types", "deno check ."),
    CheckRule("deno.json deno.jsonc", "deno lint", "lint", "deno lint"),
    CheckRule("deno.json deno.jsonc", "deno fmt", "format", "deno fmt --check"),
    CheckRule("deno.json deno.jsonc", "deno test", "tests", "deno test"),
)
_DART = (
    CheckRule("pubspec.yaml", "dart analyze", "types", "dart analyze"),
    CheckRule(
        "pubspec.yaml", "dart format", "format", "dart format --output=none --set-exit-if-changed .", is_default=False
    ),
    CheckRule("pubspec.yaml", "flutter test", "tests", "flutter test", needs="test/ &flutter"),
    CheckRule("pubspec.yaml", "dart test", "tests", "dart test", needs="test/ !&flutter"),
)
_FUNCTIONAL = (
    CheckRule("stack.yaml", "stack test", "tests", "stack test", "haskell"),
    CheckRule("cabal.project *.cabal", "cabal test", "tests", "cabal test all", "haskell", "!stack.yaml"),
    CheckRule("dune-project", "dune build", "types", "dune build @check", "dune"),
    CheckRule("dune-project", "dune test", "tests", "dune test", "dune"),
    CheckRule("shard.yml", "crystal spec", "tests", "crystal spec", needs="spec/"),
    CheckRule("gleam.toml", "gleam check", "types", "gleam check", "gleam"),
    CheckRule("gleam.toml", "gleam test", "tests", "gleam test", "gleam"),
)
_OPERATIONS = (
    CheckRule("*.tf", "terraform fmt", "format", "terraform fmt -check -recursive -no-color"),
    # It needs what `terraform init` brings, out of the network.
    CheckRule("*.tf", "terraform validate", "types", "terraform validate -no-color", needs=".terraform/"),
    CheckRule(".tflint.hcl", "tflint", "lint", "tflint --recursive"),
    CheckRule(".shellcheckrc", "shellcheck", "lint", "shellcheck --format=gcc ./*.sh", needs="*.sh"),
    CheckRule(".yamllint .yamllint.yml .yamllint.yaml", "yamllint", "lint", "yamllint --format parsable ."),
    CheckRule(".hadolint.yaml", "hadolint", "lint", "hadolint Dockerfile", needs="Dockerfile"),
    CheckRule("buf.yaml", "buf lint", "lint", "buf lint"),
)


class _Table:
    """The rules of an ecosystem, and what a folder must have for any of them to hold."""

    def __init__(self, rules: Sequence[CheckRule]) -> None:
        self.rules = rules
        marks = [mark for rule in rules for mark in rule.marks.split()]
        self._names = {mark for mark in marks if not mark.startswith("*") and "/" not in mark}
        self._endings = tuple(mark[1:] for mark in marks if mark.startswith("*"))
        self._below = " ".join(mark for mark in marks if "/" in mark)

    def may_hold(self, files: FolderManifests) -> bool:
        """Most folders of a project have nothing of it."""
        if not files.names.isdisjoint(self._names) or _find_mark(files, self._below):
            return True
        return bool(self._endings) and any(name.endswith(self._endings) for name in files.names)


def _rows(table: _Table, files: FolderManifests) -> Iterator[FolderCheck]:
    for rule in table.rules if table.may_hold(files) else ():
        if (source := _find_mark(files, rule.marks)) and all(
            _holds(files, need, source) for need in rule.needs.split()
        ):
            own = f"vendor/bin/{rule.name}"
            called = own if os.path.isfile(os.path.join(files.folder, *own.split("/"))) else rule.name
            command = rule.command.replace(f"{{own:{rule.name}}}", called)
            program = command.partition(" ")[0]
            yield FolderCheck(
                rule.name, rule.kind, command, source, program, rule.shares, (rule.name,), rule.is_default
            )


def _find_mark(files: FolderManifests, marks: str) -> str:
    """The first of the marks that is there, or nothing."""
    for mark in marks.split():
        if mark.startswith("*"):
            found = files.find_by_suffix(mark[1:])
        elif mark.endswith("/"):
            found = mark if mark[:-1] in files.folders else ""
        elif "/" in mark:
            found = mark if os.path.isfile(os.path.join(files.folder, *mark.split("/"))) else ""
        else:
            found = files.has(mark)
        if found:
            return found
    return ""


def _holds(files: FolderManifests, need: str, source: str) -> bool:
    """`name` is there, `!name` is not, `&word` stands in the file that speaks for the check."""
    wanted = need.lstrip("!")
    is_there = wanted[1:].encode() in files.raw(source) if wanted.startswith("&") else bool(_find_mark(files, wanted))
    return is_there != need.startswith("!")


def _each_for_itself(_: FolderManifests) -> bool:
    return False


TABLES = (
    Ecosystem("rust", rust_rows, rust_covers),
    # `./...` does not lead into another module.
    Ecosystem("go", partial(_rows, _Table(_GO)), _each_for_itself),
    Ecosystem("jvm", partial(_rows, _Table(_JVM))),
    Ecosystem("native", partial(_rows, _Table(_NATIVE))),
    Ecosystem("dotnet", partial(_rows, _Table(_DOTNET))),
    Ecosystem("elixir", partial(_rows, _Table(_ELIXIR))),
    Ecosystem("php", partial(_rows, _Table(_PHP))),
    Ecosystem("ruby", partial(_rows, _Table(_RUBY))),
    Ecosystem("deno", partial(_rows, _Table(_DENO))),
    Ecosystem("dart", partial(_rows, _Table(_DART))),
    Ecosystem("functional", partial(_rows, _Table(_FUNCTIONAL))),
    Ecosystem("operations", partial(_rows, _Table(_OPERATIONS))),
)


def precommit_rows(files: FolderManifests) -> Iterator[FolderCheck]:
    """The check of the folder; hooks are only ever run from the root of a repository."""
    if not files.shown and (source := files.has(".pre-commit-config.yaml", ".pre-commit-config.yml")):
        called, program = run_as(files, "pre-commit")
        yield FolderCheck(
            "pre-commit", "lint", f"{called} run --all-files --color=never", source, program, ALONE, ("pre-commit",)
        )
