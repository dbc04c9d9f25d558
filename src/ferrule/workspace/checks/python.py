"""The checks of a Python project, out of its configuration and the packages that it asks for.

What is configured, or asked for as a package, is a check. A formatter is one only where something is said about
formatting: a project that has ruff for linting may well be formatted by nobody. tox and nox make environments, which
takes minutes and a network; they run by default where nothing else is found.
"""

import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ferrule.core.checks import CheckKind
from ferrule.workspace.checks.files import Files
from ferrule.workspace.checks.packages import PYPROJECT, asked_for, run_as
from ferrule.workspace.checks.row import Row

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


def rows(files: Files) -> Iterator[Row]:
    """The checks of the folder."""
    tests = _test_files(files)
    # A folder below that only has tests in it belongs to a project above, or to none.
    asked = asked_for(files)
    if not files.has(*_MARKS) and not asked and (files.shown or not tests):
        return
    found = [*_linters(files, asked), *_types(files, asked), *_tests(files, tests, asked)]
    yield from (row._replace(is_default=row.is_default and not _is_spare(files, row, found)) for row in found)
    for program, source in (("tox", _tox(files)), ("nox", files.has("noxfile.py"))):
        if source:
            yield _row(files, _Linter(program, "tests"), source)._replace(shares="tox", is_default=not found)


def _is_spare(files: Files, row: Row, found: list[Row]) -> bool:
    """Is a program only asked for as a package, while another one of its kind is configured?"""
    configured = {one.name for one in found if one.name in _BY_NAME and _speaks(files, _BY_NAME[one.name], {})}
    return (
        row.name in _BY_NAME
        and row.name not in configured
        and any(one.kind == row.kind and one.name in configured for one in found)
    )


def _tox(files: Files) -> str:
    sections = files.content("tox.ini")
    if any(name == "tox" or name.startswith("testenv") for name in sections):
        return "tox.ini"
    return PYPROJECT if files.at(PYPROJECT, "tool", "tox") is not None else ""


def _linters(files: Files, asked: Mapping[str, str]) -> Iterator[Row]:
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


def _types(files: Files, asked: Mapping[str, str]) -> Iterator[Row]:
    if mypy := _speaks(files, _MYPY, asked):
        yield _row(files, _MYPY if _mypy_knows(files) else _MYPY._replace(words=_sources(files)), mypy)
    # Both read the same file; the one that is asked for is meant.
    based, plain = _speaks(files, _BASED, asked), _speaks(files, _PYRIGHT, asked)
    if based or plain:
        yield _row(files, _BASED, based) if based else _row(files, _PYRIGHT, plain)
    for linter in _PLAIN:
        if linter.kind == "types" and (source := _speaks(files, linter, asked)):
            yield _row(files, linter, source)


def _row(files: Files, linter: _Linter, source: str) -> Row:
    called, program = run_as(files, linter.program)
    command = f"{called} {linter.words}".rstrip()
    does = f"{linter.program} check" if linter.words == "check" else linter.program
    return Row(linter.program, linter.kind, command, source, program, does=(does,))


def _speaks(files: Files, linter: _Linter, asked: Mapping[str, str]) -> str:
    """The file that speaks for a program: its configuration, or one that asks for the package."""
    if files.at(PYPROJECT, "tool", linter.table or linter.program) is not None:
        return PYPROJECT
    if found := files.has(*linter.files):
        return found
    section = next((file for file, name in linter.sections if files.at(file, name) is not None), "")
    return section or asked.get(linter.package or linter.program, "")


def _ruff_formats(files: Files) -> bool:
    """Is it said that ruff formats?"""
    tables = (files.at(PYPROJECT, "tool", "ruff", "format"), files.at("ruff.toml", "format"))
    is_configured = any(table is not None for table in (*tables, files.at(".ruff.toml", "format")))
    return is_configured or files.says("ruff format", "ruff-format")


def _mypy_knows(files: Files) -> bool:
    """Does the configuration of mypy say what to look at?"""
    places = (("mypy.ini", "mypy"), (".mypy.ini", "mypy"), ("setup.cfg", "mypy"), (PYPROJECT, "tool", "mypy"))
    return any(files.at(*place, key) for place in places for key in ("files", "packages", "modules"))


def _sources(files: Files) -> str:
    return "src" if "src" in files.folders else "."


def _tests(files: Files, tests: list[str], asked: Mapping[str, str]) -> Iterator[Row]:
    sections = (("tox.ini", "pytest"), ("setup.cfg", "tool:pytest"))
    source = PYPROJECT if files.at(PYPROJECT, "tool", "pytest") is not None else files.has("pytest.ini", ".pytest.ini")
    source = source or next((file for file, section in sections if files.at(file, section) is not None), "")
    source = source or files.has("conftest.py") or (asked.get("pytest", "") if tests else "")
    if not source and files.has("manage.py"):
        python, program = run_as(files, "python")
        yield Row("manage.py test", "tests", f"{python} manage.py test --noinput", "manage.py", program)
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


def _unittest(files: Files, source: str) -> Row:
    python, program = run_as(files, "python")
    folder = source.partition("/")[0] if "/" in source else "."
    is_package = folder != "." and os.path.isfile(os.path.join(files.folder, folder, "__init__.py"))
    # A folder of tests that is a package is found from here, under its own name.
    words = "-m unittest discover" if is_package else f"-m unittest discover -s {folder}"
    return Row("unittest", "tests", f"{python} {words}", source, program, does=("unittest",))


def _test_files(files: Files) -> list[str]:
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
