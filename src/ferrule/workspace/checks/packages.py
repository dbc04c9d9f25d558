"""What a Python project asks for as packages, and how a program of its environment is run."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ferrule.workspace.checks.files import Files

PYPROJECT = "pyproject.toml"
_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
_MOST_LINES = 5000
_LOCKS = {
    "uv.lock": "uv run --frozen",
    "poetry.lock": "poetry run",
    "pdm.lock": "pdm run",
    "Pipfile.lock": "pipenv run",
}


def asked_for(files: Files) -> dict[str, str]:
    """The packages that the project asks for, each with the file that does."""
    found: dict[str, str] = {}
    for text in _texts(files.content(PYPROJECT)):
        _take(text, PYPROJECT, found)
    if files.has("Pipfile"):
        for key in ("packages", "dev-packages"):
            for name in _keys(files.at("Pipfile", key)):
                _take(name, "Pipfile", found)
    for file in sorted(files.names):
        if file.endswith(("requirements.txt", "requirements.in")) or re.fullmatch(
            r"requirements[\w.-]*\.(txt|in)", file
        ):
            files.has(file)
            for line in files.text(file).splitlines()[:_MOST_LINES]:
                _take(line, file, found)
    return found


def run_as(files: Files, program: str) -> tuple[str, str]:
    """How a program of the project's environment is called, and the program that this needs.

    The project's own copy, if it has an environment; else whoever keeps its lock file runs it; else it is on PATH.
    """
    if own := files.own(program):
        return own, own
    if lock := files.above(*_LOCKS):
        runner = _LOCKS[lock]
        return f"{runner} {program}", runner.partition(" ")[0]
    return (program, program) if program != "python" else ("python3", "python3")


def _take(text: str, source: str, found: dict[str, str]) -> None:
    if name := re.match(_NAME, text):
        found.setdefault(re.sub(r"[._]", "-", name[0].lower()).rstrip("-"), source)


def _texts(project: Mapping[str, Any]) -> Iterator[str]:
    """What every list or table of dependencies in a pyproject.toml names, whoever invented it."""
    tool = _table(project.get("tool"))
    poetry = _table(tool.get("poetry"))
    yield from _items(_table(project.get("project")).get("dependencies"))
    for groups in (
        _table(project.get("project")).get("optional-dependencies"),
        project.get("dependency-groups"),
        _table(tool.get("pdm")).get("dev-dependencies"),
    ):
        for group in _table(groups).values():
            yield from _items(group)
    yield from _items(_table(tool.get("uv")).get("dev-dependencies"))
    for key in ("dependencies", "dev-dependencies"):
        yield from _keys(poetry.get(key))
    for group in _table(poetry.get("group")).values():
        yield from _keys(_table(group).get("dependencies"))
    for env in _table(_table(tool.get("hatch")).get("envs")).values():
        for key in ("dependencies", "extra-dependencies"):
            yield from _items(_table(env).get(key))


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _items(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        yield from (one for one in value if isinstance(one, str))


def _keys(value: Any) -> Iterator[str]:
    yield from _table(value)
